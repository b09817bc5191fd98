"""NMF, PMF and MMMF on observed cells: what they minimise, cold rows, and the door of completers."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from sklearn.base import clone

import unseen
from unseen import Observations
from unseen.baselines import MMMF, NMF, PMF
from unseen.baselines.mmmf import mmmf_value
from unseen.exceptions import (
    ConvergenceWarning,
    DivergedError,
    InvalidDataError,
    NotFittedError,
    ParameterError,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, M = 30, 20


def ratings(seed: int = 0, observed: float = 0.5, dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    full = 3 + rng.standard_normal((N, 2)) @ rng.standard_normal((2, M))
    full = np.clip(np.round(full), 1, 5)
    return np.where(rng.random((N, M)) < observed, full, np.nan).astype(dtype)


MODELS = {
    "nmf": NMF(3, random_state=0),
    "nmf-biases": NMF(3, cold="biases", random_state=0),
    "pmf": PMF(3, random_state=0),
    "pmf-factor": PMF(3, reg=(0.1, 0.2), per="factor", batch_size=50, random_state=0),
    "pmf-als": PMF(3, solver="als", reg=0.05, random_state=0),
    "mmmf": MMMF(3, random_state=0),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return clone(MODELS[request.param])


def test_objectives_fall(model: Any) -> None:
    model.fit(ratings())
    objectives = [entry["objective"] for entry in model.history_]
    assert len(objectives) == model.n_iter_
    assert objectives[-1] < objectives[0]
    if not (isinstance(model, PMF) and model.solver == "sgd"):
        assert all(b <= a * (1 + 1e-10) for a, b in itertools.pairwise(objectives))


def test_predictions_learn_the_cells(model: Any) -> None:
    X = ratings()
    rows, cols = np.nonzero(~np.isnan(X))
    error = np.sqrt(np.mean((model.fit(X).predict_entries(rows, cols) - X[rows, cols]) ** 2))
    assert error < 0.9 * np.nanstd(X)


def test_nmf_objective_and_signs() -> None:
    X = ratings()
    model = NMF(3, reg=0.3, random_state=0).fit(X)
    U, V = model.row_factors_[:, :3], model.col_factors_[:, :3]
    assert U.min() >= 0
    assert V.min() >= 0
    seen = ~np.isnan(X)
    by_hand = np.sum((U @ V.T - X)[seen] ** 2) + 0.3 * (np.sum(U**2) + np.sum(V**2))
    np.testing.assert_allclose(model.history_[-1]["objective"], by_hand)
    assert abs(by_hand - (0.2 * np.sum(U**2) + by_hand)) > 1e-3


def test_nmf_stops_at_a_stationary_point() -> None:
    X = ratings()
    model = NMF(2, reg=0.5, max_iter=20_000, tol=1e-13, random_state=0).fit(X)
    U, V = model.row_factors_[:, :2], model.col_factors_[:, :2]
    rest = np.where(np.isnan(X), 0.0, U @ V.T - X)
    slope = rest @ V + 0.5 * U
    # Complementary slackness: no slope where the factor is free, none downhill at the bound.
    assert np.abs(slope[U > 1e-3]).max() < 1e-3
    assert slope[U <= 1e-3].min(initial=0.0) > -1e-3
    np.testing.assert_allclose(model.fold_in(X)[:, :2] @ V.T, U @ V.T, atol=1e-3)


@pytest.mark.parametrize("per", ["cell", "factor"])
def test_pmf_batches_reach_what_least_squares_reaches(per: str) -> None:
    X = ratings()
    options: dict[str, Any] = {"reg": 0.2 if per == "cell" else 2.0, "per": per, "random_state": 0}
    exact = PMF(2, solver="als", max_iter=2000, tol=1e-13, **options).fit(X)
    batches = PMF(2, max_iter=3000, tol=0.0, batch_size=10_000, **options).fit(X)
    np.testing.assert_allclose(batches.history_[-1]["objective"], exact.history_[-1]["objective"], rtol=1e-5)
    U, V, seen = exact.row_factors_[:, :2], exact.col_factors_[:, :2], ~np.isnan(X)
    size = seen.sum(1) if per == "cell" else np.ones(N), seen.sum(0) if per == "cell" else np.ones(M)
    penalty = options["reg"] * (size[0] @ np.sum(U**2, 1) + size[1] @ np.sum(V**2, 1))
    by_hand = np.sum((np.nanmean(X) + U @ V.T - X)[seen] ** 2) + penalty
    np.testing.assert_allclose(exact.history_[-1]["objective"], by_hand)
    np.testing.assert_allclose(exact.fold_in(X), exact.row_factors_, atol=1e-9)


def test_mmmf_gradient() -> None:
    rng = np.random.default_rng(0)
    cells = Observations.from_dense(ratings())
    place = np.searchsorted(np.arange(1.0, 6.0), cells.values)
    shapes = [(N, 2), (M, 2), (N, 4)]
    limits = np.cumsum([np.prod(shape) for shape in shapes])[:-1]

    def value(vector: np.ndarray) -> float:
        parts = [p.reshape(s) for p, s in zip(np.split(vector, limits), shapes, strict=True)]
        return mmmf_value(cells, place, *parts, 1.5)[0]

    def gradient(vector: np.ndarray) -> np.ndarray:
        parts = [p.reshape(s) for p, s in zip(np.split(vector, limits), shapes, strict=True)]
        return np.concatenate([g.ravel() for g in mmmf_value(cells, place, *parts, 1.5)[1]])

    x = rng.standard_normal(sum(int(np.prod(s)) for s in shapes))
    size = np.linalg.norm(gradient(x))
    assert check_grad(value, gradient, x) < 1e-5 * size
    assert check_grad(value, lambda v: 1.01 * gradient(v), x) > 1e-3 * size


def test_mmmf_objective_by_its_definition() -> None:
    def hinge(z: float) -> float:
        return 0.5 - z if z <= 0 else 0.5 * (1 - z) ** 2 if z < 1 else 0.0

    X = ratings()[:6, :5]
    model = MMMF(2, random_state=0).fit(X)
    U, V = model.row_factors_[:, :2], model.col_factors_[:, :2]
    total = 0.5 * (np.sum(U**2) + np.sum(V**2))
    for i, j in zip(*np.nonzero(~np.isnan(X)), strict=True):
        for t, gap in enumerate(model.levels_[:-1]):
            sign = 1.0 if X[i, j] <= gap else -1.0
            total += 1.5 * hinge(sign * (model.thresholds_[i, t] - U[i] @ V[j]))
    np.testing.assert_allclose(model.history_[-1]["objective"], total, rtol=1e-6)


def test_mmmf_predicts_levels() -> None:
    X = ratings()
    model = MMMF(3, random_state=0).fit(X)
    assert set(np.unique(model.predict_new())) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    rows, cols = np.indices(X.shape).reshape(2, -1)
    np.testing.assert_array_equal(model.predict_entries(rows, cols), model.predict_new().ravel())
    # Thresholds of a new row are learned with it.
    assert np.mean(model.transform(X) == model.predict_new()) > 0.8
    # Lists are by score, which orders levels within a row.
    ids, _ = model.recommend([0], k=M, exclude=None)
    levels = model.predict_entries(np.zeros(M, dtype=int), ids[0])
    assert (np.diff(levels) <= 0).all()


@pytest.mark.parametrize("cold", ["mean", "biases"])
def test_cold_rows_and_columns_get_the_baseline(model: Any, cold: str) -> None:
    X = ratings()
    X[3] = np.nan
    X[:, 7] = np.nan
    model.set_params(cold=cold).fit(X)
    offsets = model.offsets_
    row = np.zeros(N) if offsets.row is None else offsets.row
    col = np.zeros(M) if offsets.col is None else offsets.col
    rows, cols = np.array([3, 3, 0, 5]), np.array([0, 7, 7, 7])
    expected = np.nanmean(X) + row[rows] + col[cols]
    np.testing.assert_allclose(model.predict_entries(rows, cols), expected)
    np.testing.assert_allclose(model.predict_new()[rows, cols], expected)
    empty = model.transform(np.full((1, M), np.nan))
    np.testing.assert_allclose(empty[0], np.nanmean(X) + col)
    if cold == "biases":
        assert np.abs(col).max() > 0.1


def test_input_forms_types_seeds_threads(model: Any) -> None:
    X = ratings()
    first = model.fit(X).predict_new()
    sparse_form = sparse.coo_array(Observations.from_dense(X).csr)
    np.testing.assert_array_equal(clone(model).fit(sparse_form).predict_new(), first)
    np.testing.assert_array_equal(clone(model).set_params(n_jobs=1).fit(X).predict_new(), first)
    small = clone(model).fit(ratings(dtype=np.float32))
    assert small.row_factors_.dtype == np.float32
    assert small.predict_new().dtype == np.float32
    assert small.fold_in(X[:2].astype(np.float32)).dtype == np.float32


def test_save_and_load(model: Any, tmp_path: Any) -> None:
    X = ratings()
    model.fit(X).save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_entries([1, 2], [3, 4]), model.predict_entries([1, 2], [3, 4])
    )
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_folded_rows_are_independent(model: Any) -> None:
    X = ratings()
    model.fit(X)
    np.testing.assert_allclose(model.fold_in(X[4:5]), model.fold_in(X[3:6])[1:2], atol=1e-8)


def test_bad_input(model: Any) -> None:
    with pytest.raises(NotFittedError):
        model.predict_entries([0], [0])
    with pytest.raises(InvalidDataError, match="no observed cell"):
        model.fit(np.full((3, 4), np.nan))
    with pytest.raises(ParameterError, match="row_features"):
        model.fit(ratings(), row_features=np.ones((N, 1)))
    with pytest.raises(ParameterError, match="cold"):
        clone(model).set_params(cold="zero").fit(ratings())
    with pytest.raises(ParameterError, match="rank"):
        clone(model).set_params(rank=0).fit(ratings())
    bad = ratings()
    bad[1, 2] = np.inf
    with pytest.raises(InvalidDataError, match=r"row 1.*col.* 2"):
        model.fit(bad)
    # All equal, one row, isolated cells.
    assert np.isfinite(model.fit(np.where(np.isnan(ratings()), np.nan, 4.0)).predict_new()).all()
    assert np.isfinite(model.fit(np.array([[1.0, np.nan, 3.0]])).predict_new()).all()
    assert np.isfinite(model.fit(np.where(np.eye(5) > 0, 2.0, np.nan)).predict_new()).all()


def test_refusals_of_single_models() -> None:
    X = ratings()
    X[2, 3] = -1.0
    with pytest.raises(InvalidDataError, match=r"-1 in row 2, column 3"):
        NMF(2).fit(X)
    with pytest.raises(InvalidDataError, match="max_levels=3"):
        MMMF(2, max_levels=3).fit(ratings())
    with pytest.raises(ParameterError, match="per"):
        PMF(2, per="rating").fit(ratings())
    with pytest.raises(ParameterError, match="solver"):
        PMF(2, solver="adam").fit(ratings())
    with pytest.raises(DivergedError, match="sweep"), np.errstate(all="ignore"):
        PMF(2, learning_rate=100.0).fit(ratings())


@pytest.mark.parametrize("per", ["cell", "factor"])
@pytest.mark.parametrize("reg", [0.2, (0.1, 0.4), (0.4, 0.1), (0.0, 0.1), (0.1, 0.0)])
def test_pmf_of_two_penalties_by_least_squares(reg: Any, per: str) -> None:
    X = ratings()
    model = PMF(2, reg=reg, per=per, solver="als", max_iter=30, tol=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    objectives = [entry["objective"] for entry in model.history_]
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(objectives))
    # Rows are solved last, so a row's own cells give it back.
    folded = model.fold_in(X) @ model.col_factors_.T
    np.testing.assert_allclose(folded, model.predict_new(), rtol=1e-6, atol=1e-6)
