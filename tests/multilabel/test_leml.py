"""LEML: the objective by definition, its steps, label features."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unseen
from unseen import (
    L1,
    LEML,
    Background,
    Biased,
    Completion,
    Fourier,
    Full,
    Given,
    Identity,
    LowRank,
    Ridge,
    Squared,
    Term,
    WithOnes,
)
from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.linalg.designs import as_design
from unseen.problem import Problem
from unseen.solvers import AlternatingCG
from unseen.solvers.uniform import UniformALS, closed_form


def data(seed: int = 0, n: int = 90, n_labels: int = 12) -> tuple[np.ndarray, sparse.csr_array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    scores = X @ rng.standard_normal((6, 2)) @ rng.standard_normal((2, n_labels))
    return X, sparse.csr_array((scores > 1).astype(float))


def fit(X: Any, Y: Any, rank: int = 3, **settings: Any) -> LEML:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LEML(rank, **{"intercept": False, **settings}, random_state=0, n_jobs=1).fit(X, Y)


@pytest.mark.parametrize("label_features", [None, 5, "own"])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_objective_by_definition_and_monotone(label_features: Any, as_sparse: bool) -> None:
    X, Y = data()
    side = np.random.default_rng(1).standard_normal((12, 4)) if label_features == "own" else label_features
    model = fit(sparse.csr_array(X) if as_sparse else X, Y, reg=0.4, label_features=side, tol=0.0)
    objectives = [record["objective"] for record in model.history_]
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0])
    data_part = 0.5 * np.sum((Y.toarray() - X @ model.coef_ @ model.label_factors_.T) ** 2)
    penalty = objectives[-1] - data_part - 0.2 * np.sum(model.coef_**2)
    if label_features is None:
        assert penalty == pytest.approx(0.2 * np.sum(model.label_factors_**2), rel=1e-8)
        assert penalty != pytest.approx(0.4 * np.sum(model.label_factors_**2), rel=1e-3)
    else:
        assert penalty > 0


def test_full_rank_reaches_the_nuclear_norm_optimum() -> None:
    """At full rank the optimum has equal penalties of both factors, and random starts agree."""
    X, Y = data()
    settings = {"reg": 2.0, "tol": 1e-12, "max_iter": 600, "cg_steps": 60}
    scores = []
    for seed in (0, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LEML(6, **{"intercept": False, **settings}, random_state=seed, n_jobs=1).fit(X, Y)
        assert np.sum(model.coef_**2) == pytest.approx(np.sum(model.label_factors_**2), rel=1e-2)
        scores.append(model.decision_function(X))
    np.testing.assert_allclose(scores[0], scores[1], atol=0.02)


def test_orthonormal_label_features_only_rotate() -> None:
    X, Y = data()
    basis, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))
    settings = {"reg": 1.0, "tol": 1e-13, "max_iter": 300, "cg_steps": 60}
    plain, rotated = fit(X, Y, **settings), fit(X, Y, label_features=basis, **settings)
    assert plain.history_[-1]["objective"] == pytest.approx(rotated.history_[-1]["objective"], rel=1e-6)
    scaled = fit(X, Y, label_features=basis * np.arange(1, 13), **settings)
    assert plain.history_[-1]["objective"] != pytest.approx(scaled.history_[-1]["objective"], rel=1e-3)


def test_label_step_solves_its_equation() -> None:
    rng = np.random.default_rng(0)
    F, P = rng.standard_normal((8, 5)), rng.standard_normal((20, 3))
    wanted, B = rng.standard_normal((8, 3)), P.T @ P
    H = closed_form(as_design(F), np.linalg.eigh(F.T @ F), wanted, B, 0.7)
    np.testing.assert_allclose(F.T @ F @ H @ B + 0.7 * H, F.T @ wanted, atol=1e-9)


@pytest.mark.parametrize("label_features", [None, 5])
def test_leml_is_imc_with_a_background(label_features: Any) -> None:
    """The same optimum as alternating conjugate gradients find for the same composition."""
    X, Y = data()
    settings = {"reg": 2.0, "tol": 1e-12, "max_iter": 400, "cg_steps": 60}
    model = fit(X, Y, rank=6, intercept=True, label_features=label_features, **settings)
    side = None if label_features is None else model._label_side(Y, np.random.default_rng(0))
    term = Term(WithOnes(), Identity() if side is None else Given(), LowRank(6), Ridge(2.0))
    same = Completion(
        [term], loss=Squared(1.0, Background(1.0)), solver=AlternatingCG(cg_steps=60),
        max_iter=2000, tol=1e-12, random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same.fit(Y, row_features=X, col_features=side)
    assert model.history_[-1]["objective"] == pytest.approx(same.history_[-1]["objective"], rel=1e-4)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_an_intercept_takes_up_what_all_rows_share(as_sparse: bool) -> None:
    X, Y = data(n=200)
    Y = sparse.csr_array(np.hstack([Y.toarray(), np.ones((200, 2))]))
    given = sparse.csr_array(X) if as_sparse else X
    settings = {"reg": 0.1, "rank": 4, "tol": 1e-10, "max_iter": 200}
    plain, offset = fit(given, Y, **settings), fit(given, Y, intercept=True, **settings)
    assert offset.history_[-1]["objective"] < 0.7 * plain.history_[-1]["objective"]
    scores = offset.decision_function(given)
    naive = (X @ offset.coef_ + offset.intercept_) @ offset.label_factors_.T
    np.testing.assert_allclose(scores, naive, atol=1e-10)
    assert scores[:, -1].mean() > 0.9 > plain.decision_function(given)[:, -1].mean()


@pytest.mark.parametrize(
    ("loss", "term"),
    [
        (Squared(), Term(Given(), Identity(), LowRank(2))),
        (Biased(0.9), Term(Given(), Identity(), LowRank(2))),
        (Squared(1.0, Background(1.0, 0.5)), Term(Given(), Identity(), LowRank(2))),
        (Squared(1.0, Background(1.0)), Term(Given(), Identity(), LowRank(2), L1(1.0))),
        (Squared(1.0, Background(1.0)), Term(Given(), Identity(), Full())),
        (Squared(1.0, Background(1.0)), Term(Fourier(3, learnable=True), Identity(), LowRank(2))),
    ],
)
def test_the_solver_refuses_what_it_would_get_wrong(loss: Any, term: Any) -> None:
    X, Y = data()
    problem = Problem(Observations.from_any(Y), [term], loss, row_features=X)
    assert UniformALS().refuses(problem)


def test_threads_dtype_and_files(tmp_path: Path) -> None:
    X, Y = data(n=300)
    fits = [fit(X.astype(np.float32), Y, max_iter=4) for _ in range(2)]
    assert fits[0].coef_.dtype == np.float32
    assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()
    fits[0].save(tmp_path / "m")
    again = unseen.load(tmp_path / "m")
    np.testing.assert_array_equal(fits[0].decision_function(X), again.decision_function(X))


def test_bad_parameters_are_named() -> None:
    X, Y = data()
    for settings, message in (
        ({"rank": 0}, "rank"),
        ({"reg": 0.0}, "reg"),
        ({"label_features": np.ones((3, 2))}, "label_features has 3 rows and Y has 12 labels"),
        ({"label_features": 12}, "label_features=12 singular vectors"),
        ({"cg_steps": 0}, "cg_steps"),
    ):
        with pytest.raises(ParameterError, match=message):
            LEML(**settings).fit(X, Y)


def test_memory_of_many_labels() -> None:
    n, n_labels, rng = 20_000, 30_000, np.random.default_rng(0)
    X = sparse.random_array((n, 500), density=0.01, rng=rng, format="csr")
    Y = sparse.csr_array((np.ones(n), rng.integers(0, n_labels, n), np.arange(n + 1)), shape=(n, n_labels))
    tracemalloc.start()
    try:
        fit(X, Y, rank=8, max_iter=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * n_labels // 20, f"{peak / 2**20:.0f} MiB"
