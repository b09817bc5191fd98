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
from unseen import LEML
from unseen.exceptions import ParameterError


def data(seed: int = 0, n: int = 90, n_labels: int = 12) -> tuple[np.ndarray, sparse.csr_array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    scores = X @ rng.standard_normal((6, 2)) @ rng.standard_normal((2, n_labels))
    return X, sparse.csr_array((scores > 1).astype(float))


def fit(X: Any, Y: Any, rank: int = 3, **settings: Any) -> LEML:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LEML(rank, random_state=0, n_jobs=1, **settings).fit(X, Y)


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
            model = LEML(6, random_state=seed, n_jobs=1, **settings).fit(X, Y)
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
    from unseen.multilabel.leml import _gram_of, _label_step

    rng = np.random.default_rng(0)
    F, P = rng.standard_normal((8, 5)), rng.standard_normal((20, 3))
    wanted, B = rng.standard_normal((8, 3)), P.T @ P
    H, right = _label_step(F, np.linalg.eigh(_gram_of(F)), wanted, B, 0.7)
    np.testing.assert_allclose(F.T @ F @ H @ B + 0.7 * H, F.T @ wanted, atol=1e-9)
    np.testing.assert_allclose(right, F @ H)


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
