"""Augmented matrix factorisation as an estimator."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import unseen
from unseen import (
    AugmentedMF,
    Background,
    BiasMC,
    BiasModel,
    Completion,
    LowRank,
    Observations,
    Ridge,
    Squared,
    Term,
)
from unseen.exceptions import InvalidDataError, ParameterError, TooLargeError
from unseen.solvers.line_search import product_distance

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

M, N = 30, 20


def target(seed: int = 0, observed: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    full = rng.standard_normal((M, 2)) @ rng.standard_normal((2, N)) + 3.0
    return np.where(rng.random((M, N)) < observed, full, np.nan)


def blocks(seed: int = 0) -> np.ndarray:
    """Two blocks, 15 x 12 and 10 x 9, without a common row or column."""
    rng = np.random.default_rng(seed)
    X = np.full((25, 21), np.nan)
    X[:15, :12] = rng.standard_normal((15, 3)) @ rng.standard_normal((3, 12))
    X[15:, 12:] = rng.standard_normal((10, 3)) @ rng.standard_normal((3, 9))
    return X


def augmented(rank: int = 3, **options: Any) -> AugmentedMF:
    """With the penalty of the paper, unless another is named."""
    return AugmentedMF(rank, **{"reg": 0.02, **options})


def expected_loss(U: np.ndarray, V: np.ndarray, X: np.ndarray, model: AugmentedMF) -> float:
    observed, others = model.weights_
    seen, scores = ~np.isnan(X), U @ V.T
    fit = observed * np.sum((scores - X)[seen] ** 2) + others * np.sum(scores[~seen] ** 2)
    return float(fit + model.reg * (np.sum(U**2) + np.sum(V**2)))


@pytest.mark.parametrize("augmentation", ["expected", "rank_one", "hashed", "explicit"])
@pytest.mark.parametrize("solver", ["als", "linesearch"])
def test_objective_never_rises(augmentation: str, solver: str) -> None:
    if solver == "als" and augmentation != "expected":
        pytest.skip("rows of one draw are not solved one by one")
    model = augmented(
        3, augmentation=augmentation, solver=solver, c0=0.5, max_iter=25, random_state=0, tol=0.0
    ).fit(target())
    objectives = [entry["objective"] for entry in model.history_]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(objectives))
    assert objectives[-1] < objectives[0]
    if solver == "linesearch":  # what steps promise is what they bring
        gains = [a - b for a, b in itertools.pairwise(objectives)]
        promised = [entry["decrease"] for entry in model.history_[1:]]
        np.testing.assert_allclose(gains, promised, rtol=1e-5, atol=1e-9)


def test_both_solvers_reach_the_same_objective() -> None:
    X = target()
    als, line = (
        augmented(3, solver=solver, reg=0.5, max_iter=4000, tol=1e-14, random_state=0).fit(X)
        for solver in ("als", "linesearch")
    )
    np.testing.assert_allclose(als.history_[-1]["objective"], line.history_[-1]["objective"], rtol=1e-8)
    np.testing.assert_allclose(als.transform(X), line.predict_new(), atol=1e-3)


@pytest.mark.parametrize("augmentation", ["rank_one", "hashed", "explicit"])
def test_objective_of_one_draw_is_that_of_the_paper(augmentation: str) -> None:
    X = target()
    model = augmented(3, augmentation=augmentation, center="none", c0=0.5, max_iter=20, random_state=0).fit(X)
    draw, U, V = model.measurement_.draw(Observations.from_dense(X)), model.row_factors_, model.col_factors_
    assert draw.n_rows == model.n_constraints_
    off = draw.forward(U, V) - draw.of_cells()
    by_hand = off @ off + model.reg * (np.sum(U**2) + np.sum(V**2))
    np.testing.assert_allclose(model.history_[-1]["objective"], by_hand, rtol=1e-10)


def test_objective_is_that_of_the_paper_divided_by_lambda() -> None:
    X = target()
    model = augmented(3, center="none", random_state=0).fit(X)
    by_hand = expected_loss(model.row_factors_, model.col_factors_, X, model)
    np.testing.assert_allclose(model.history_[-1]["objective"], by_hand, rtol=1e-10)
    p = model.n_constraints_
    assert p == int(np.ceil(3 * (M + N) * np.log(M * N)))
    assert model.weights_ == (1.0 + (1.0 - 1.0 / p), 1.0)
    # Negative control: another penalty is another objective.
    model.reg = 0.05
    wrong = expected_loss(model.row_factors_, model.col_factors_, X, model)
    assert abs(wrong / by_hand - 1) > 1e-4


def test_new_rows_only_have_weights_of_their_own() -> None:
    X = target()
    n_cells = int(np.sum(~np.isnan(X)))
    model = augmented(3, resample_original=False, weight=0.5, random_state=0).fit(X)
    share = 0.5 * (model.n_constraints_ - n_cells) / model.n_constraints_
    np.testing.assert_allclose(model.weights_, (1 + share, share))


def test_expected_form_is_a_composition() -> None:
    X = target()
    model = augmented(3, center="mean", reg=0.1, weight=0.3, max_iter=300, tol=1e-13, random_state=0).fit(X)
    observed, others = model.weights_
    same = Completion(
        [Term(core=LowRank(3), reg=Ridge(0.2))],
        loss=Squared(2 * observed, Background(2 * others)),
        center="mean",
        max_iter=300,
        tol=1e-13,
        random_state=0,
    ).fit(X)
    np.testing.assert_allclose(model.transform(X), same.transform(X), atol=1e-4)


def test_weights_are_those_of_biased_positives() -> None:
    """On ones and without offsets it is BiasMC with alpha = (1 + tau)/(1 + 2 tau), rescaled."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((M, N)) < 0.3).astype(float))
    tau, reg = 0.5, 0.2
    model = augmented(
        3, center="none", weight=tau, reg=reg, c0=1e9, max_iter=500, tol=1e-14, random_state=0
    ).fit(X)
    scale = 1 + 2 * tau
    bias = BiasMC(
        3,
        alpha=(1 + tau) / scale,
        reg=2 * reg / scale,
        max_iter=500,
        tol=1e-14,
        random_state=0,
        cg_steps=None,
    ).fit(X)
    np.testing.assert_allclose(
        model.history_[-1]["objective"] / scale, bias.history_[-1]["objective"], rtol=1e-6
    )


def test_draws_come_close_to_their_mean_as_c0_grows() -> None:
    X = target()
    mean = augmented(2, max_iter=300, random_state=0).fit(X).predict_new()

    def distance(c0: float) -> float:
        model = augmented(2, augmentation="rank_one", c0=c0, max_iter=300, random_state=0).fit(X)
        return float(np.sqrt(np.mean((model.predict_new() - mean) ** 2)))

    assert distance(8.0) < 0.5 * distance(0.3)


def test_hashed_and_explicit_are_one_model() -> None:
    X = target()
    first, second = (
        augmented(2, augmentation=name, c0=0.5, max_iter=10, random_state=3).fit(X)
        for name in ("hashed", "explicit")
    )
    np.testing.assert_array_equal(first.row_factors_, second.row_factors_)


def test_turning_one_block_changes_nothing_but_the_cells_between() -> None:
    X = blocks()
    model = augmented(3, weight=0.0, reg=0.1, center="none", random_state=0, max_iter=200).fit(X)
    U, V = model.row_factors_, model.col_factors_
    before = expected_loss(U, V, X, model)
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    P, R = U.copy(), V.copy()
    P[15:], R[12:] = U[15:] @ Q, V[12:] @ Q
    assert abs(expected_loss(P, R, X, model) / before - 1) < 1e-10
    assert np.abs((P @ R.T - U @ V.T)[:15, 12:]).max() > 0.1
    # Negative control: turning only one side is no symmetry.
    assert abs(expected_loss(P, V, X, model) / before - 1) > 1e-3


def test_with_augmentation_signs_remain_free() -> None:
    X = blocks()
    model = augmented(3, center="none", random_state=0, max_iter=3000, tol=1e-16).fit(X)
    U, V = model.row_factors_, model.col_factors_
    before = expected_loss(U, V, X, model)
    _, basis = np.linalg.eigh(U[15:].T @ U[15:])
    for signs in itertools.product([-1.0, 1.0], repeat=3):
        Q = basis @ np.diag(signs) @ basis.T
        P, R = U.copy(), V.copy()
        P[15:], R[12:] = U[15:] @ Q, V[12:] @ Q
        assert abs(expected_loss(P, R, X, model) / before - 1) < 1e-8
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    P, R = U.copy(), V.copy()
    P[15:], R[12:] = U[15:] @ Q, V[12:] @ Q
    assert expected_loss(P, R, X, model) > before * (1 + 1e-6)  # a general turn now costs


@pytest.mark.parametrize("center", ["none", "mean", "biases"])
def test_between_blocks_is_the_baseline(center: str, tmp_path: Any) -> None:
    X = blocks() + 2.0
    model = augmented(3, center=center, random_state=0).fit(X)
    rows, cols = np.nonzero(np.isnan(X))
    baseline = {"none": 0.0, "mean": np.nanmean(X), "biases": None}[center]
    if baseline is None:
        offsets = model.offsets_
        baseline = offsets.mean + offsets.row[rows] + offsets.col[cols]
    np.testing.assert_allclose(model.predict_entries(rows, cols), baseline, atol=1e-12)
    for whole in (model.transform(X), model.predict_new()):
        np.testing.assert_allclose(whole[rows, cols], baseline, atol=1e-12)
    inside = ~np.isnan(X)
    np.testing.assert_allclose(model.predict_new()[inside], model.transform(X)[inside], atol=1e-9)
    # A row with cells in both blocks belongs to both.
    both = np.full((1, 21), np.nan)
    both[0, 0], both[0, 20] = 1.0, 2.0
    folded = model.fold_in(both)
    np.testing.assert_allclose(model.transform(both), folded @ model.col_factors_.T, atol=1e-12)
    # Lists follow the predictions.
    ids, scores = model.recommend([0, 24, 3], k=21, exclude=None)
    for row, i in enumerate([0, 24, 3]):
        np.testing.assert_allclose(scores[row], model.predict_entries(np.full(21, i), ids[row]), atol=1e-9)
        assert sorted(ids[row]) == list(range(21))
    model.save(tmp_path / "m")
    loaded = unseen.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_entries(rows, cols), model.predict_entries(rows, cols))
    # Negative control: the factors alone say something else.
    free = augmented(3, center=center, cross_component="model", random_state=0).fit(X)
    assert np.abs(free.predict_entries(rows, cols) - baseline).max() > 1e-3
    np.testing.assert_array_equal(free.row_factors_, model.row_factors_)


def test_paper_rule_and_relative_rule() -> None:
    X = target()
    for solver in ("als", "linesearch"):
        relative = augmented(3, solver=solver, tol=1e-3, random_state=0).fit(X)
        assert relative.converged_
        loose = augmented(3, solver=solver, eps_abs=1e6, random_state=0).fit(X)
        assert loose.n_iter_ == 1
        absolute = augmented(3, solver=solver, eps_abs=1e-3, max_iter=500, random_state=0).fit(X)
        changes = [entry["change"] for entry in absolute.history_]
        assert changes[-1] < 1e-3
        assert min(changes[:-1]) >= 1e-3


def test_change_of_the_product() -> None:
    rng = np.random.default_rng(0)
    U, V, P, Q = (rng.standard_normal((n, 3)) for n in (8, 6, 8, 6))
    naive = np.sum((U @ V.T - P @ Q.T) ** 2)
    np.testing.assert_allclose(product_distance((U, V), (P, Q)), naive)
    assert product_distance((U, V), (U, V)) >= 0.0


def test_cold_rows_are_zero() -> None:
    X = target()
    X[4] = np.nan
    X[:, 7] = np.nan
    for solver in ("als", "linesearch"):
        model = augmented(3, solver=solver, cross_component="model", center="none", random_state=0).fit(X)
        assert not model.row_factors_[4].any()
        assert not model.col_factors_[7].any()


def test_permuting_rows_and_columns_leaves_the_objective() -> None:
    X = target()
    rng = np.random.default_rng(5)
    options: dict[str, Any] = {"reg": 1.0, "max_iter": 2000, "tol": 1e-14, "random_state": 0}
    one = augmented(2, **options).fit(X)
    rows, cols = rng.permutation(M), rng.permutation(N)
    other = augmented(2, **options).fit(X[np.ix_(rows, cols)])
    np.testing.assert_allclose(other.history_[-1]["objective"], one.history_[-1]["objective"], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("c0", 0.0),
        ("c0", -1.0),
        ("gamma", 0.0),
        ("gamma", 0.5),
        ("gamma", np.nan),
        ("weight", -0.1),
        ("reg", -1.0),
        ("rank", 0),
        ("eps_abs", 0.0),
        ("augmentation", "random"),
        ("solver", "sgd"),
        ("center", "median"),
        ("cross_component", "zero"),
        ("bias_reg", (1.0, 2.0, 3.0)),
        ("max_nonzeros", 0),
    ],
)
def test_bad_settings_are_named(name: str, value: Any) -> None:
    model = augmented(3, augmentation="explicit").set_params(**{name: value})
    with pytest.raises(ParameterError, match=name):
        model.fit(target())


def test_als_is_for_the_expected_form() -> None:
    with pytest.raises(ParameterError, match=r"linesearch"):
        augmented(3, augmentation="hashed", solver="als").fit(target())
    with pytest.raises(ParameterError, match="IMC"):
        augmented(3).fit(target(), row_features=np.ones((M, 2)))


def test_explicit_that_would_not_fit_is_refused() -> None:
    with pytest.raises(TooLargeError, match=r"non-zeros.*max_nonzeros=1,000"):
        augmented(3, augmentation="explicit", max_nonzeros=1000).fit(target())


@pytest.mark.parametrize("augmentation", ["expected", "rank_one", "hashed"])
def test_odd_matrices(augmentation: str) -> None:
    model = augmented(2, augmentation=augmentation, random_state=0, max_iter=20)
    equal = model.fit_transform(np.where(np.isnan(target()), np.nan, 4.0))
    np.testing.assert_allclose(equal, 4.0, atol=1e-6)
    assert np.isfinite(model.fit_transform(np.array([[1.0, np.nan, 3.0]]))).all()
    isolated = model.fit_transform(np.where(np.eye(6) > 0, np.arange(6.0), np.nan))
    assert np.isfinite(isolated).all()
    np.testing.assert_allclose(model.fit_transform(np.array([[2.5]])), 2.5, atol=1e-6)
    with pytest.raises(InvalidDataError, match="no observed cell"):
        model.fit(np.full((3, 4), np.nan))


def test_bias_reg_for_each_side() -> None:
    X = target()
    model = augmented(2, bias_reg=(7.0, 3.0), reg=1e6, random_state=0).fit(X)
    alone = BiasModel((7.0, 3.0), tol=0.0, max_iter=15).fit(X)
    np.testing.assert_allclose(model.predict_new(), alone.predict_new(), atol=1e-3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 8), st.floats(0.0, 3.0))
def test_any_small_matrix(seed: int, m: int, n: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, n)) < 0.5, rng.standard_normal((m, n)) * 5, np.nan)
    X[0, 0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in ("als", "linesearch"):
            model = augmented(3, weight=weight, reg=0.0, solver=solver, max_iter=5, random_state=0)
            assert np.isfinite(model.fit_transform(X)).all()


def test_held_out_cells_are_not_taken_for_blank() -> None:
    cells = Observations.from_dense(np.random.default_rng(0).normal(3.0, 1.0, (9, 8)))
    model = AugmentedMF(2, reg=0.1, validation_fraction=0.25, random_state=0)
    features, rng = {"row": None, "col": None}, np.random.default_rng(0)
    model._choose(cells, features, rng)
    bound = model._bind(cells, features, rng)
    weights = bound.problem.observations.weights
    assert bound.held_out is not None
    assert bound.held_out.nnz == np.count_nonzero(weights == 0.0) == 18
    assert model.weights_[1] > 0.0  # blank cells do count
