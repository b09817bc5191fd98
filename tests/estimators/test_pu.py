"""Completion from positives only: objectives, solvers, choices and refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import unseen
from unseen import BiasMC, Observations, ShiftMC
from unseen.datasets import make_positives, make_scale_graph
from unseen.estimators.pu_rates import alpha_grid, given_rates, held_out_positives, hidden_share
from unseen.exceptions import (
    ConvergenceWarning,
    DataWarning,
    InvalidDataError,
    ParameterError,
    TooLargeError,
    UnsupportedComposition,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, M = 40, 30


def positives(seed: int = 0, density: float = 0.2, dtype: Any = np.float64) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array((rng.random((N, M)) < density).astype(dtype))


def objective(
    X: sparse.csr_array, model: Any, a: float, b: float, tau: float, weights: np.ndarray | None = None
) -> float:
    """(FWH) of the specification, written over all cells."""
    W, H = model.row_factors_, model.col_factors_
    A, scores = X.toarray(), W @ H.T
    seen = A != 0
    w = np.ones_like(A) if weights is None else weights
    loss = a * np.sum((w * (scores - tau) ** 2)[seen]) + b * np.sum(scores[~seen] ** 2)
    return float(loss + model.reg_ / 2 * (np.sum(W**2) + np.sum(H**2)))


FITTED = {
    "als": BiasMC(4, alpha=0.9, reg=0.5, random_state=0, cg_steps=None),
    "als-cg": BiasMC(4, alpha=0.9, reg=0.5, cg_steps=3, random_state=0),
    "als-svd": BiasMC(4, alpha=0.9, reg=0.5, init="svd", random_state=0, cg_steps=None),
    "ccd": BiasMC(4, alpha=0.9, reg=0.5, solver="ccd", random_state=0, cg_steps=None),
    "prox": BiasMC(None, alpha=0.9, reg=0.5, solver="prox", random_state=0, cg_steps=None),
    "auto": BiasMC(4, reg="0.1max", random_state=0, cg_steps=None),
    "relaxed": ShiftMC(4, rho=0.3, random_state=0),
    "box": ShiftMC(rho=0.3, bound="box", random_state=0, max_iter=2000, tol=1e-6),
    "none": ShiftMC(None, rho=0.3, bound="none", random_state=0),
}
MONOTONE = [name for name in FITTED if name != "box"]


@pytest.fixture(params=FITTED)
def model(request: pytest.FixtureRequest) -> Any:
    return clone(FITTED[request.param])


# -- objective and solvers -----------------------------------------------------------


@pytest.mark.parametrize("name", ["als", "als-cg", "ccd", "prox"])
def test_objective_of_bias_is_that_of_the_paper(name: str) -> None:
    X = positives()
    fitted = clone(FITTED[name]).fit(X)
    expected = objective(X, fitted, 0.9, 0.1, 1.0)
    np.testing.assert_allclose(fitted.history_[-1]["objective"], expected, rtol=1e-9)
    # Negative control: with 1/2 on the loss, as the parts of the library have it, this fails.
    assert abs(objective(X, fitted, 0.45, 0.05, 1.0) / expected - 1) > 0.01


@pytest.mark.parametrize("name", ["relaxed", "none"])
def test_objective_of_shift_is_that_of_the_paper(name: str) -> None:
    X = positives()
    fitted = clone(FITTED[name]).fit(X)
    expected = objective(X, fitted, 1.0, 1.0, 1 / 0.7)
    np.testing.assert_allclose(fitted.history_[-1]["objective"], expected, rtol=1e-9)
    assert abs(objective(X, fitted, 1.0, 1.0, 1.0) / expected - 1) > 0.01


def test_weights_multiply_the_loss_of_positives() -> None:
    rng = np.random.default_rng(1)
    X = positives()
    X.data = rng.uniform(0.5, 3.0, X.nnz)
    for solver in ("als", "ccd", "prox"):
        fitted = BiasMC(
            6, alpha=0.8, reg=0.5, solver=solver, weights=True, random_state=0, cg_steps=None
        ).fit(X)
        expected = objective(X, fitted, 0.8, 0.2, 1.0, X.toarray())
        np.testing.assert_allclose(fitted.history_[-1]["objective"], expected, rtol=1e-9)
    ignored = BiasMC(6, alpha=0.8, weights=False, random_state=0, cg_steps=None).fit(X)
    X.data[:] = 1.0
    plain = BiasMC(6, alpha=0.8, random_state=0, cg_steps=None).fit(X)
    np.testing.assert_array_equal(ignored.row_factors_, plain.row_factors_)


@pytest.mark.parametrize("name", MONOTONE)
def test_objective_never_rises(name: str) -> None:
    fitted = clone(FITTED[name]).set_params(tol=0.0, max_iter=25).fit(positives())
    objectives = [entry["objective"] for entry in fitted.history_]
    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(objectives))


def test_solvers_agree_when_the_rank_suffices() -> None:
    X = sparse.csr_array((np.random.default_rng(3).random((23, 17)) < 0.3).astype(float))
    common = {"alpha": 0.8, "reg": 1.5, "max_iter": 5000, "tol": 1e-13, "random_state": 0}
    convex = BiasMC(None, solver="prox", **common).fit(X)
    values = convex.row_factors_ @ convex.col_factors_.T
    for solver, cg_steps in (("als", None), ("als", 5), ("ccd", None)):
        factored = BiasMC(17, solver=solver, cg_steps=cg_steps, **common).fit(X)
        np.testing.assert_allclose(
            factored.history_[-1]["objective"], convex.history_[-1]["objective"], rtol=1e-6
        )
        np.testing.assert_allclose(factored.row_factors_ @ factored.col_factors_.T, values, atol=2e-3)
    # Negative control: one column fewer than the optimum needs is not enough.
    short = BiasMC(convex.row_factors_.shape[1] - 1, cg_steps=None, **common).fit(X)
    assert short.history_[-1]["objective"] > convex.history_[-1]["objective"] * (1 + 1e-6)


def implicit_half_step(X: sparse.csr_array, items: np.ndarray, alpha: float, reg: float) -> np.ndarray:
    """Rows of weighted least squares for implicit feedback, straight from their normal equations."""
    out = np.zeros((X.shape[0], items.shape[1]))
    for i in range(X.shape[0]):
        liked = X.toarray()[i] != 0
        confidence = np.where(liked, alpha, 1.0)
        system = (items.T * confidence) @ items + reg * np.eye(items.shape[1])
        out[i] = np.linalg.solve(system, items.T @ (confidence * liked))
    return out


def test_coordinate_descent_keeps_up_with_alternating_least_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = make_scale_graph(800, 20.0, random_state=0).observations

    def reached(solver: str) -> float:
        model = BiasMC(16, alpha=0.95, solver=solver, max_iter=10, tol=0, random_state=0)
        with pytest.warns(ConvergenceWarning):
            return float(model.fit(cells).history_[-1]["objective"])

    least = reached("als")
    assert reached("ccd") < 1.003 * least
    monkeypatch.setattr("unseen.solvers.ccd.balanced", lambda rows, cols, n_threads: (rows, cols))
    assert reached("ccd") > 1.006 * least  # without the turn of the components it lags behind


@pytest.mark.parametrize(("alpha", "reg"), [(0.6, 0.3), (0.9, 1.0), (0.99, 2.0)])
def test_half_step_is_that_of_implicit_feedback(alpha: float, reg: float) -> None:
    X = positives()
    fitted = BiasMC(4, alpha=alpha, reg=reg, random_state=0, cg_steps=None).fit(X)
    theirs = implicit_half_step(X, fitted.col_factors_, alpha / (1 - alpha), reg / (2 * (1 - alpha)))
    np.testing.assert_allclose(fitted.row_factors_, theirs, atol=1e-9)
    forgotten = implicit_half_step(X, fitted.col_factors_, alpha / (1 - alpha), reg / (1 - alpha))
    assert np.abs(fitted.row_factors_ - forgotten).max() > 1e-4


def test_half_step_of_the_real_package() -> None:
    als = pytest.importorskip("implicit.cpu.als")
    X, alpha, reg = positives(), 0.9, 1.0
    fitted = BiasMC(4, alpha=alpha, reg=reg, random_state=0, cg_steps=None).fit(X)
    theirs = als.AlternatingLeastSquares(
        factors=4,
        alpha=alpha / (1 - alpha),
        regularization=reg / (2 * (1 - alpha)),
        use_cg=False,
        dtype=np.float64,
        num_threads=1,
    )
    theirs.item_factors = fitted.col_factors_
    rows = theirs.recalculate_user(np.arange(N), sparse.csr_matrix(X))
    np.testing.assert_allclose(rows, fitted.row_factors_, atol=1e-6)


def test_unbounded_shift_is_one_thresholded_svd() -> None:
    X = positives()
    fitted = ShiftMC(None, rho=0.4, bound="none", reg=2.0).fit(X)
    u, s, vt = np.linalg.svd(X.toarray() / 0.6)
    expected = (u[:, :M] * np.maximum(s - 1.0, 0)) @ vt
    np.testing.assert_allclose(fitted.row_factors_ @ fitted.col_factors_.T, expected, atol=1e-9)


def test_box_is_the_constrained_optimum() -> None:
    X = positives()
    fitted = clone(FITTED["box"]).fit(X)
    values = fitted.row_factors_ @ fitted.col_factors_.T
    assert fitted.converged_
    assert -1e-4 < values.min() < 1e-4 < 1 < values.max() < 1 + 1e-4
    A = X.toarray()

    def value(Z: np.ndarray) -> float:
        nuclear = np.linalg.svd(Z, compute_uv=False).sum()
        return float(np.sum((Z - A / 0.7) ** 2) + fitted.reg_ * nuclear)

    best = value(values)
    rng = np.random.default_rng(0)
    for _ in range(30):  # no feasible direction leads down
        other = np.clip(values + 0.1 * rng.standard_normal(values.shape), 0, 1)
        mixed = 0.95 * np.clip(values, 0, 1) + 0.05 * other
        assert value(mixed) > best - 1e-2
    # Negative control: clipping the unbounded solution is feasible too, but not the optimum.
    free = ShiftMC(None, rho=0.3, bound="none").fit(X)
    assert value(np.clip(free.row_factors_ @ free.col_factors_.T, 0, 1)) > best + 1e-2


def test_relaxed_bounds_hold() -> None:
    fitted = clone(FITTED["relaxed"]).fit(positives())
    for factors in (fitted.row_factors_, fitted.col_factors_):
        assert factors.min() >= 0
        assert factors.max() <= np.sqrt(1 / 4) + 1e-12
    values = fitted.row_factors_ @ fitted.col_factors_.T
    assert values.max() <= 1 + 1e-12


def test_box_refuses_large_targets() -> None:
    with pytest.raises(TooLargeError, match=r"40 x 30 = 1,200.*max_dense_cells=1,000.*relaxed"):
        ShiftMC(rho=0.3, bound="box", max_dense_cells=1000).fit(positives())


# -- the contract ---------------------------------------------------------------------


def test_contract(model: Any, tmp_path: Any) -> None:
    X = positives()
    model.fit(X)
    values = model.row_factors_ @ model.col_factors_.T
    np.testing.assert_allclose(model.predict_entries([3, 39], [0, 29]), values[[3, 39], [0, 29]], atol=1e-12)
    np.testing.assert_array_equal(
        model.predict_labels([3, 39], [0, 29]), values[[3, 39], [0, 29]] > model.threshold_
    )
    dense = X.toarray()
    np.testing.assert_allclose(clone(model).fit(dense).transform(dense), model.transform(X), atol=1e-10)
    dense[dense == 0] = np.nan
    np.testing.assert_allclose(clone(model).fit(dense).transform(X), model.transform(X), atol=1e-10)
    ids, scores = model.recommend([0, 5], k=M, exclude=X)
    for row, i in enumerate([0, 5]):
        assert set(ids[row][ids[row] >= 0]) == set(np.flatnonzero(X.toarray()[i] == 0))
    assert np.isnan(scores[ids == -1]).all()
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.row_factors_, model.row_factors_)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.threshold_ == model.threshold_


def test_float32_and_threads(model: Any) -> None:
    X = positives(dtype=np.float32)
    model.set_params(max_iter=4)
    small = model.fit(X)
    assert small.row_factors_.dtype == small.transform(X).dtype == np.float32
    values = small.row_factors_ @ small.col_factors_.T
    model.fit(X.astype(np.float64))
    np.testing.assert_allclose(values, model.row_factors_ @ model.col_factors_.T, atol=5e-3)
    one = model.set_params(n_jobs=1).fit(X).row_factors_.copy()
    for n_jobs in (2, None):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).fit(X).row_factors_, one)


def test_fold_in_is_a_row_solve(model: Any) -> None:
    X = positives()
    model.set_params(max_iter=3000, tol=1e-10 if model.get_params().get("bound") != "box" else 1e-7).fit(X)
    folded = model.fold_in(X[:5])
    values = model.row_factors_[:5] @ model.col_factors_.T
    np.testing.assert_allclose(folded @ model.col_factors_.T, values, atol=1e-3)
    if getattr(model, "solver", "") == "als" and model.cg_steps is None:
        np.testing.assert_allclose(folded, model.row_factors_[:5], atol=1e-9)
    np.testing.assert_allclose(model.fold_in(sparse.csr_array((1, M))), 0.0, atol=1e-12)
    if model.get_params().get("bound") == "relaxed":  # rows do not touch each other
        np.testing.assert_allclose(model.fold_in(X[2:3]), folded[2:3], atol=1e-9)


def test_empty_rows_and_columns_are_predicted_as_zero(model: Any) -> None:
    X = positives().tolil()
    X[2], X[:, 4] = 0, 0
    model.fit(sparse.csr_array(X))
    np.testing.assert_allclose(model.predict_entries([2, 0, 2], [0, 4, 4]), 0.0, atol=1e-4)


# -- what the values mean -------------------------------------------------------------


def test_stored_zeros_and_repeated_cells() -> None:
    X = positives()
    plain = BiasMC(4, alpha=0.9, random_state=0, cg_steps=None).fit(X)
    explicit = Observations.from_dense(X.toarray())  # every zero is stored
    assert explicit.nnz == N * M
    np.testing.assert_array_equal(
        BiasMC(4, alpha=0.9, random_state=0, cg_steps=None).fit(explicit).row_factors_, plain.row_factors_
    )
    twice = sparse.coo_array(X)
    twice = sparse.coo_array(
        (np.r_[twice.data, twice.data], (np.r_[twice.row, twice.row], np.r_[twice.col, twice.col])),
        shape=(N, M),
    )
    with pytest.warns(DataWarning):
        again = BiasMC(4, alpha=0.9, random_state=0, cg_steps=None).fit(twice)
    np.testing.assert_array_equal(again.row_factors_, plain.row_factors_)
    with pytest.warns(DataWarning):
        heavier = BiasMC(4, alpha=0.9, weights=True, random_state=0, cg_steps=None).fit(twice)
    X.data[:] = 2.0
    doubled = BiasMC(4, alpha=0.9, weights=True, random_state=0, cg_steps=None).fit(X)
    np.testing.assert_allclose(heavier.row_factors_, doubled.row_factors_, atol=1e-12)


def test_bad_values_are_named() -> None:
    X = positives().tolil()
    X[3, 7] = 2.5
    with pytest.raises(InvalidDataError, match=r"2\.5 in row 3, column 7.*weights=True"):
        BiasMC(4, alpha=0.9, cg_steps=None).fit(sparse.csr_array(X))
    X[3, 7] = -1.0
    for weights in (None, True, False):
        with pytest.raises(InvalidDataError, match=r"-1 in row 3, column 7"):
            BiasMC(4, alpha=0.9, weights=weights, cg_steps=None).fit(sparse.csr_array(X))
    for bad in (np.nan, np.inf):
        X[3, 7] = bad
        with pytest.raises(InvalidDataError, match=r"row 3.*col.* 7"):
            BiasMC(4, alpha=0.9, cg_steps=None).fit(sparse.csr_array(X))
    with pytest.raises(ParameterError, match="ShiftMC knows no weights"):
        ShiftMC(4, rho=0.5, weights=True).fit(positives())
    with pytest.raises(ParameterError, match="weights"):
        BiasMC(4, alpha=0.9, weights="yes", cg_steps=None).fit(positives())


def test_no_positive_gives_zero_with_a_warning(model: Any) -> None:
    with pytest.warns(DataWarning, match="no positive"):
        model.fit(sparse.csr_array((N, M)))
    np.testing.assert_allclose(model.row_factors_ @ model.col_factors_.T, 0.0, atol=1e-9)
    assert not model.predict_labels([0], [0]).any()


def test_full_matrix_and_full_row() -> None:
    full = BiasMC(3, alpha=0.9, reg=1e-3, random_state=0, max_iter=500, cg_steps=None).fit(np.ones((12, 9)))
    np.testing.assert_allclose(full.row_factors_ @ full.col_factors_.T, 1.0, atol=1e-3)
    X = positives().tolil()
    X[5] = 1.0
    model = BiasMC(8, alpha=0.9, reg=0.1, random_state=0, cg_steps=None).fit(sparse.csr_array(X))
    assert model.predict_entries(np.full(M, 5), np.arange(M)).mean() > 0.8
    ids, scores = model.recommend([5], k=3, exclude=sparse.csr_array(X))
    assert (ids == -1).all()
    assert np.isnan(scores).all()


@settings(max_examples=20, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 10), st.integers(1, 10)),
    seed=st.integers(0, 10_000),
    density=st.floats(0.0, 1.0),
    alpha=st.floats(0.01, 0.999),
)
@pytest.mark.filterwarnings("ignore")
def test_any_small_matrix_gives_finite_predictions(
    shape: tuple[int, int], seed: int, density: float, alpha: float
) -> None:
    X = (np.random.default_rng(seed).random(shape) < density).astype(float)
    for model in (
        BiasMC(3, alpha=alpha, reg=0.1, random_state=0, max_iter=5, cg_steps=None),
        BiasMC(3, alpha=alpha, reg="0.1max", solver="prox", random_state=0, max_iter=5, cg_steps=None),
        ShiftMC(3, rho=0.5, random_state=0, max_iter=5),
    ):
        assert np.isfinite(model.fit_transform(X)).all()


# -- rates, penalties and thresholds --------------------------------------------------


def test_rates_follow_from_each_other() -> None:
    by_rho = given_rates("auto", 0.8, None, 0.02)
    by_prior = given_rates("auto", None, 0.1, 0.02)
    by_alpha = given_rates(0.9, None, None, 0.02)
    assert by_rho is not None
    for other in (by_prior, by_alpha):
        np.testing.assert_allclose(by_rho, other, rtol=1e-12)
    np.testing.assert_allclose(by_rho, (0.9, 0.8, 0.1))
    np.testing.assert_allclose(by_rho.level, 1.8 / 2.6)  # (1 + rho)/(1 + 2 rho)
    assert given_rates("auto", None, None, 0.02) is None


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"alpha": 1.0}, "alpha"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": "best"}, "alpha"),
        ({"rho": 1.0}, "rho"),
        ({"rho": -0.1}, "rho"),
        ({"class_prior": 0.01}, "class_prior=0.01 is below"),
        ({"class_prior": 1.5}, "class_prior"),
        ({"alpha": 0.9, "rho": 0.8}, "alpha and rho.*exactly one"),
        ({"rho": 0.5, "class_prior": 0.5}, "rho and class_prior"),
        ({"alpha": 0.9, "reg": -1.0}, "reg"),
        ({"alpha": 0.9, "reg": "max0.1"}, "0.1max"),
        ({"alpha": 0.9, "solver": "sgd"}, "solver"),
        ({"alpha": 0.9, "rank": None}, "rank"),
        ({"alpha": 0.9, "cg_steps": 0}, "cg_steps"),
        ({"alpha": 0.9, "init": "zeros"}, "init"),
        ({"alpha": 0.9, "threshold": "median"}, "threshold"),
        ({"alpha": 0.9, "threshold": np.nan}, "threshold"),
        ({"list_length": 0}, "list_length"),
    ],
)
def test_bad_parameters_are_named(params: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BiasMC(4, random_state=0, cg_steps=None).set_params(**params).fit(positives())


def test_shift_needs_a_rate() -> None:
    with pytest.raises(ParameterError, match=r"rho.*class_prior"):
        ShiftMC(4).fit(positives())
    with pytest.raises(ParameterError, match="bound"):
        ShiftMC(4, rho=0.5, bound="tight").fit(positives())
    with pytest.raises(ParameterError, match="BiasIMC"):
        BiasMC(4, alpha=0.9, cg_steps=None).fit(positives(), row_features=np.ones((N, 2)))


@pytest.mark.parametrize("solver", ["als", "ccd", "prox"])
def test_share_of_the_largest_reg(solver: str) -> None:
    X = positives()
    largest = 2 * 0.8 * np.linalg.norm(X.toarray(), 2)
    common = {"alpha": 0.8, "solver": solver, "random_state": 0, "max_iter": 3000, "tol": 1e-12}
    model = BiasMC(4, reg="0.25max", cg_steps=None, **common).fit(X)
    np.testing.assert_allclose(model.reg_, 0.25 * largest, rtol=1e-6)
    gone = BiasMC(4, reg="1.001max", cg_steps=None, **common).fit(X)
    assert np.abs(gone.row_factors_ @ gone.col_factors_.T).max(initial=0.0) < 1e-3
    left = BiasMC(4, reg="0.97max", cg_steps=None, **common).fit(X)
    assert np.abs(left.row_factors_ @ left.col_factors_.T).max() > 5e-3
    shifted = ShiftMC(4, rho=0.3, reg="1e-1max").fit(X)
    np.testing.assert_allclose(shifted.reg_, 0.1 * 2 / 0.7 * np.linalg.norm(X.toarray(), 2), rtol=1e-6)


def test_thresholds() -> None:
    data = make_positives(120, 90, n_groups=3, inside=1.0, across=0.0, rho=0.5, random_state=0)
    model = BiasMC(6, rho=0.5, reg="0.1max", random_state=0, cg_steps=None).fit(data.observations)
    assert model.threshold_ == pytest.approx(0.5 * 1.5 / 2.0)
    prior = clone(model).set_params(threshold="prior").fit(data.observations)
    rows, cols = np.divmod(np.arange(120 * 90), 90)
    assert prior.predict_labels(rows, cols).mean() == pytest.approx(prior.class_prior_, abs=1e-3)
    assert prior.class_prior_ == pytest.approx(data.positives.nnz / (120 * 90), rel=0.02)
    truth = data.positives.toarray()[rows, cols] != 0
    for fitted in (model, prior):
        assert np.mean(fitted.predict_labels(rows, cols) != truth) < 0.02
    # Negative control: a fixed cut at one half misses most hidden positives of a shrunken model.
    half = clone(model).set_params(threshold=0.5, reg="0.4max").fit(data.observations)
    assert np.mean(half.predict_labels(rows, cols) != truth) > 0.1


def test_grid_of_weights() -> None:
    np.testing.assert_allclose(alpha_grid(1e-3), [0.5, 0.9, 0.99, 0.999])
    np.testing.assert_allclose(alpha_grid(0.2), [0.5, 0.8])
    assert alpha_grid(0.9) == [0.5]


def test_auto_weight_loses_little() -> None:
    data = make_positives(400, 300, rank=4, class_prior=0.05, rho=0.5, random_state=1)
    truth = data.hidden
    recalls = {}
    for alpha in (*alpha_grid(data.observations.nnz / 120_000), "auto"):
        model = BiasMC(8, alpha=alpha, reg="0.05max", random_state=0, cg_steps=None).fit(data.observations)
        ids, _ = model.recommend(np.arange(400), k=10, exclude=data.observations)
        recalls[alpha] = unseen.metrics.recall_at_k(truth, ids, k=10)
    chosen = recalls.pop("auto")
    assert chosen > 0.9 * max(recalls.values())
    assert max(recalls.values()) > 1.1 * min(recalls.values())  # there was something to lose
    assert len(model.alpha_path_) == len(recalls)
    assert model.alpha_ in recalls
    assert model.rho_ == pytest.approx(0.5, abs=0.08)
    assert model.class_prior_ == pytest.approx(0.05, rel=0.15)
    # Negative control: the weight that ranks best is no estimate of the hidden share.
    assert abs((2 * model.alpha_ - 1) - 0.5) > 0.2


@pytest.mark.parametrize(("rho", "purity"), [(0.3, 1.0), (0.8, 1.0), (0.8, 0.5)])
def test_hidden_share_from_lists(rho: float, purity: float) -> None:
    rng = np.random.default_rng(0)
    positive = np.r_[np.ones(20_000, dtype=bool), np.zeros(20_000, dtype=bool)]
    positive[:20_000] = rng.random(20_000) < purity
    seen = rng.random(40_000) < 1 - rho
    held = rng.random(40_000) < 0.2
    listed = ~(positive & seen & ~held)
    hits = (positive & seen & held)[listed]
    expected = rho if purity == 1.0 else None
    if expected is None:
        assert hidden_share(hits, 0.2) > rho  # a bound from above where lists hold negatives
    else:
        assert hidden_share(hits, 0.2) == pytest.approx(rho, abs=0.05)
    assert hidden_share(np.zeros(10, dtype=bool), 0.2) == 1.0


def test_held_out_links_go_in_both_directions() -> None:
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((60, 60)) < 0.2, 1)
    cells = Observations.from_sparse(sparse.csr_array((upper | upper.T).astype(float)))
    held = cells.select(held_out_positives(cells, rng)).csr.toarray()
    np.testing.assert_array_equal(held, held.T)
    assert 0.1 < held.sum() / cells.nnz < 0.3
    oriented = Observations.from_sparse(sparse.csr_array(upper.astype(float)))
    single = oriented.select(held_out_positives(oriented, rng))
    assert 0 < single.nnz < oriented.nnz


def test_auto_with_too_few_positives_says_so() -> None:
    X = sparse.csr_array(([1.0], ([0], [0])), shape=(3, 3))
    with pytest.warns(DataWarning, match="hold out"):
        assert BiasMC(1, random_state=0, cg_steps=None).fit(X).alpha_ == 0.5


# -- neighbours and explanations ------------------------------------------------------


def test_similar_cols(model: Any) -> None:
    model.fit(positives())
    ids, cosines = model.similar_cols([3, 8], k=4)
    H = model.col_factors_
    unit = H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-300)
    for row, col in enumerate((3, 8)):
        expected = unit @ unit[col]
        expected[col] = -np.inf
        order = np.lexsort((np.arange(M), -expected))[:4]
        np.testing.assert_allclose(cosines[row], expected[order], atol=1e-9)
        assert col not in ids[row]
    ids, _ = model.similar_cols(0, k=M)
    assert (ids[0] == -1).sum() == 1
    with pytest.raises(InvalidDataError, match="30"):
        model.similar_cols([30])


@pytest.mark.parametrize("weights", [None, True])
def test_explanation_adds_up(weights: bool | None) -> None:
    X = positives()
    if weights:
        X.data = np.random.default_rng(0).uniform(0.5, 2, X.nnz)
    model = BiasMC(6, alpha=0.9, reg=0.5, weights=weights, random_state=0, cg_steps=None).fit(X)
    for row, col in ((0, 3), (7, 29)):
        cols, shares = model.explain(X, row, col)
        assert set(cols) == set(X.indices[X.indptr[row] : X.indptr[row + 1]])
        assert (np.diff(shares) <= 0).all()
        np.testing.assert_allclose(shares.sum(), model.predict_entries([row], [col])[0], atol=1e-9)
    # A positive's share is what the score loses in its right-hand side: a new row, checked by hand.
    new = sparse.csr_array(([1.0, 1.0], ([0, 0], [2, 5])), shape=(1, M))
    cols, shares = model.explain(new, 0, 9)
    np.testing.assert_allclose(shares.sum(), (model.fold_in(new) @ model.col_factors_[9])[0], atol=1e-9)
    empty, nothing = model.explain(sparse.csr_array((1, M)), 0, 9)
    assert empty.size == nothing.size == 0


def test_explanations_are_refused_where_rows_are_not_linear() -> None:
    X = positives()
    for bound in ("relaxed", "box"):
        fitted = ShiftMC(4, rho=0.3, bound=bound, random_state=0).fit(X)
        with pytest.raises(UnsupportedComposition, match="linear in their positives"):
            fitted.explain(X, 0, 0)


def test_warm_start_continues() -> None:
    X = positives()
    model = BiasMC(4, alpha=0.9, warm_start=True, init="svd", max_iter=3, tol=0.0, cg_steps=None).fit(X)
    before = model.history_[-1]["objective"]
    assert model.fit(X).history_[0]["objective"] <= before
    with pytest.warns(ConvergenceWarning):
        model.fit(X)


@pytest.mark.filterwarnings("ignore::unseen.exceptions.DataWarning")
def test_grid_search_takes_shares_of_the_largest_reg() -> None:
    from unseen.model_selection import GridSearch

    grid = {"reg": ["0.5max", "0.05max"]}
    model = BiasMC(4, alpha=0.9, random_state=0, cg_steps=None)
    search = GridSearch(model, grid, cv=2).fit(positives())
    assert search.best_params_["reg"] in grid["reg"]


@pytest.mark.parametrize("name", ["als", "als-cg", "ccd", "prox", "auto", "relaxed", "none"])
def test_same_bits_for_any_number_of_threads(name: str) -> None:
    # Larger than one block of rows, so that threads really share the work.
    X = sparse.random_array((20_000, 60), density=0.02, rng=np.random.default_rng(0), format="csr")
    X.data[:] = 1.0
    model = clone(FITTED[name]).set_params(max_iter=2, reg="0.3max")
    one = model.set_params(n_jobs=1).fit(X).row_factors_.copy()
    for n_jobs in (2, None):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).fit(X).row_factors_, one)
