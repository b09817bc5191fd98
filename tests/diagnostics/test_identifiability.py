"""Spread of predictions: against definitions, rotations, refits and known truth."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import ortho_group, spearmanr

import unseen
from tests.peaks import LIMIT, peak_of, target
from unseen import (
    IMC,
    AugmentedMF,
    BiasMC,
    BiasModel,
    Completion,
    LowRank,
    MatrixFactorization,
    NonNegative,
    Observations,
    Ridge,
    SoftImpute,
    Squared,
    Term,
)
from unseen.baselines import NMF
from unseen.datasets import make_imc, make_low_rank
from unseen.diagnostics import find_blocks, identifiability
from unseen.diagnostics.curvature import curvature_of
from unseen.exceptions import InvalidDataError, NotFittedError, ParameterError
from unseen.links import CommonNeighbors
from unseen.model_selection import GridSearch

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def small(seed: int = 0, shape: tuple[int, int] = (25, 18), density: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    full = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1])) + 3.0
    noisy = full + 0.3 * rng.standard_normal(shape)
    return np.where(rng.random(shape) < density, noisy, np.nan)


def two_blocks(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.full((27, 21), np.nan)
    for rows, cols in ((slice(0, 15), slice(0, 12)), (slice(15, 25), slice(12, 21))):
        n, m = rows.stop - rows.start, cols.stop - cols.start
        X[rows, cols] = rng.standard_normal((n, 3)) @ rng.standard_normal((3, m))
    return X + 0.05 * rng.standard_normal(X.shape)


def naive_leverage(model: Any, X: np.ndarray, i: int, j: int, reg: float, bias_reg: float | None) -> float:
    k = model.widths_[0]
    P, Q = model.row_factors_[:, :k], model.col_factors_[:, :k]
    known = np.isfinite(X)
    total = 0.0
    for vectors, near, mask in ((Q, Q[j], known[i]), (P, P[i], known[:, j])):
        A = reg * np.eye(k) + vectors[mask].T @ vectors[mask]
        total += near @ np.linalg.solve(A, near)
        if bias_reg is not None:
            total += 1 / (mask.sum() + bias_reg)
    return total


@pytest.mark.parametrize("center", ["none", "mean", "biases"])
def test_leverage_is_its_definition(center: str):
    X = small()
    model = MatrixFactorization(2, reg=0.7, center=center, bias_reg=3.0, random_state=0).fit(X)
    curvature = curvature_of(model, Observations.from_dense(X))
    rows, cols = np.array([4, 0, 24, 4]), np.array([3, 17, 3, 0])
    bias_reg = 3.0 if center == "biases" else None
    expected = [naive_leverage(model, X, i, j, 0.7, bias_reg) for i, j in zip(rows, cols, strict=True)]
    np.testing.assert_allclose(curvature.leverage(rows, cols), expected, rtol=1e-7)
    planted = [naive_leverage(model, X, i, j, 1.4, bias_reg) for i, j in zip(rows, cols, strict=True)]
    assert not np.allclose(curvature.leverage(rows, cols), planted, rtol=1e-3)


def test_wide_models_take_the_same_numbers():
    X = small()
    narrow = curvature_of(
        model := MatrixFactorization(2, reg=0.7, random_state=0, center="none").fit(X), seen(X)
    )
    padded = [np.hstack([f, np.zeros((len(f), 30))]) for f in (model.row_factors_, model.col_factors_)]
    model.row_factors_, model.col_factors_, model.widths_ = *padded, [32]
    rows, cols = np.repeat(np.arange(25), 18), np.tile(np.arange(18), 25)
    wide = curvature_of(model, seen(X))
    np.testing.assert_allclose(wide.leverage(rows, cols), narrow.leverage(rows, cols), rtol=1e-7)


def seen(X: np.ndarray) -> Observations:
    return Observations.from_dense(X)


def test_leverage_is_the_derivative_of_a_fit_by_its_value():
    X = small()
    model = MatrixFactorization(2, reg=0.5, random_state=0, center="none").fit(X)
    curvature = curvature_of(model, seen(X))
    i = 3
    j = int(np.flatnonzero(np.isfinite(X[i]))[0])
    step = 1e-4
    moved = []
    for sign in (1, -1):
        row = X[[i]].copy()
        row[0, j] += sign * step
        moved.append(float(model.fold_in(row)[0] @ model.col_factors_[j]))
    pattern = curvature.cells.indptr, curvature.cells.indices
    by_row = curvature._side(*pattern, 1.0, curvature.right, curvature.ridge, np.array([i]), np.array([j]))
    np.testing.assert_allclose(by_row[0], (moved[0] - moved[1]) / (2 * step), rtol=1e-6)


def objective(P: np.ndarray, Q: np.ndarray, X: np.ndarray, reg: float) -> float:
    known = np.isfinite(X)
    return 0.5 * float(np.sum((P @ Q.T - X)[known] ** 2) + reg * (np.sum(P**2) + np.sum(Q**2)))


def test_rotating_a_block_changes_only_what_is_reported_as_free():
    X, reg, k = two_blocks(), 0.1, 3
    model = MatrixFactorization(k, reg=reg, random_state=0, max_iter=500, tol=1e-12, center="none").fit(X)
    blocks = find_blocks(seen(X))
    P, Q = model.row_factors_, model.col_factors_
    start = objective(P, Q, X, reg)
    rows, cols = (axis.ravel() for axis in np.indices(X.shape))
    found = identifiability(model, rows, cols)
    inside = blocks.connected(rows, cols)
    np.testing.assert_array_equal(found.determined, inside)
    changes = []
    for rotation in ortho_group.rvs(k, size=400, random_state=0):
        turned_p, turned_q = P.copy(), Q.copy()
        turned_p[blocks.row_block == 1] = P[blocks.row_block == 1] @ rotation
        turned_q[blocks.col_block == 1] = Q[blocks.col_block == 1] @ rotation
        assert abs(objective(turned_p, turned_q, X, reg) - start) <= 1e-10 * start
        changes.append((turned_p @ turned_q.T)[rows, cols])
    moved = np.std(changes, axis=0)
    assert moved[inside].max() < 1e-12
    free = ~inside & (moved > 0)
    ratio = found.std[free] / moved[free]
    assert ratio.min() > 0.8  # 400 draws
    # The size is right as well as the order: the curvature adds little here.
    assert np.median(ratio) < 1.5
    reach = np.linalg.norm(P[rows], axis=1) * np.linalg.norm(Q[cols], axis=1)
    assert np.all(np.abs(changes).max(axis=0)[free] <= reach[free] * (1 + 1e-9))
    # Without the rotations, the curvature alone would miss it.
    alone = np.sqrt(found.noise**2 * curvature_of(model, seen(X)).leverage(rows, cols))
    assert np.median(alone[free] / moved[free]) < 0.5


def test_restarts_agree_inside_blocks_and_not_between():
    X = two_blocks()
    model = MatrixFactorization(3, reg=0.1, random_state=0, max_iter=300, tol=1e-12, center="none").fit(X)
    rows, cols = (axis.ravel() for axis in np.indices(X.shape))
    found = identifiability(model, rows, cols, method="restarts", n_refits=4)
    inside = found.determined
    has_cells = np.isfinite(X).any(axis=1)[rows]
    assert found.std[inside].max() < 1e-3
    assert np.median(found.std[~inside & has_cells]) > 0.1


def test_error_grows_with_the_spread_and_has_its_size():
    rng = np.random.default_rng(0)
    data = make_low_rank(300, 200, rank=3, density=0.5, noise=0.5, random_state=0)
    # Rows with very different numbers of cells: that is what the spread has to notice.
    keep = rng.random(data.observations.nnz) < rng.uniform(0.05, 0.8, 300)[data.observations.rows]
    train = data.observations.select(keep)
    model = MatrixFactorization(3, reg=2.0, random_state=0, center="none").fit(train)
    rows, cols = rng.integers(0, 300, 20_000), rng.integers(0, 200, 20_000)
    truth = np.einsum("ij,ij->i", data.row_factors[rows], data.col_factors[cols])
    found = identifiability(model, rows, cols)
    error = np.abs(found.prediction - truth)
    assert spearmanr(found.std, error).statistic > 0.3
    assert abs(spearmanr(rng.permutation(found.std), error).statistic) < 0.05  # negative control
    by_spread = np.array_split(error[np.argsort(found.std)], 5)
    levels = [float(np.sqrt(np.mean(part**2))) for part in by_spread]
    assert levels == sorted(levels)
    noisy = truth + 0.5 * rng.standard_normal(len(truth))
    ratio = np.sqrt(np.mean((found.prediction - noisy) ** 2) / np.mean(found.error**2))
    assert 0.8 < ratio < 1.25


def test_noisy_rows_are_known_as_such():
    rng = np.random.default_rng(1)
    level = np.where(np.arange(200) < 100, 0.1, 1.0)
    X = (
        rng.standard_normal((200, 1))
        + rng.standard_normal(80)
        + level[:, None] * rng.standard_normal((200, 80))
    )
    X[rng.random(X.shape) < 0.5] = np.nan
    found = identifiability(BiasModel(0.1).fit(X), np.arange(200), np.zeros(200, dtype=int))
    assert 5 < np.median(found.noise[100:]) / np.median(found.noise[:100]) < 12


def test_units_of_the_weights_do_not_matter():
    """The same objective times four has the same solution, and the same spread of it."""
    X = small()
    models = [
        Completion(
            [Term(core=LowRank(2), reg=Ridge(0.5 * scale))], loss=Squared(weight=scale), max_iter=300,
            tol=1e-12, random_state=0,
        ).fit(X)
        for scale in (1.0, 4.0)
    ]  # fmt: skip
    one, four = (identifiability(model, [0, 3, 9], [1, 2, 3]) for model in models)
    np.testing.assert_allclose(four.prediction, one.prediction, rtol=1e-4)
    np.testing.assert_allclose(four.std, one.std, rtol=1e-3)
    np.testing.assert_allclose(four.noise, one.noise, rtol=1e-3)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_order_of_rows_and_columns_does_not_matter(seed: int):
    rng = np.random.default_rng(seed)
    X = small(seed)
    rows, cols = rng.permutation(25), rng.permutation(18)
    i, j = rng.integers(0, 25, 10), rng.integers(0, 18, 10)
    found = identifiability(BiasModel().fit(X), rows[i], cols[j])
    moved = identifiability(BiasModel().fit(X[rows][:, cols]), i, j)
    np.testing.assert_allclose(moved.std, found.std, rtol=1e-6)
    np.testing.assert_array_equal(moved.determined, found.determined)


def test_threads_do_not_change_a_bit():
    X = small(shape=(60, 40))
    stds = [
        MatrixFactorization(3, random_state=0, n_jobs=n, reg=1.0, center="none")
        .fit(X)
        .predict_entries([0, 5], [3, 9], return_std=True)[1]
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(*stds)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_and_the_short_form(dtype: Any):
    model = MatrixFactorization(2, random_state=0, reg=1.0, center="none").fit(small().astype(dtype))
    prediction, std = model.predict_entries([0, 1], [2, 3], return_std=True)
    found = identifiability(model, [0, 1], [2, 3])
    np.testing.assert_array_equal(std, found.std)
    np.testing.assert_array_equal(prediction, model.predict_entries([0, 1], [2, 3]))
    assert std.dtype == found.noise.dtype == dtype
    np.testing.assert_allclose(found.error**2, found.std**2 + found.noise**2, rtol=1e-5)


POSITIVES = sparse.random_array((40, 40), density=0.2, rng=0, data_sampler=lambda size: np.ones(size))
GRAPH = sparse.csr_array(sparse.triu(POSITIVES, 1) + sparse.triu(POSITIVES, 1).T)


@pytest.mark.parametrize(
    ("model", "X", "method"),
    [
        (BiasModel(), small(), "curvature"),
        (SoftImpute(2.0, center="mean", max_rank=None), small(), "curvature"),
        (MatrixFactorization(2, reg=0.0, random_state=0, center="none"), small(), "curvature"),
        (BiasMC(2, alpha=0.9, random_state=0, cg_steps=None), POSITIVES, "curvature"),
        (AugmentedMF(2, random_state=0), small(), "curvature"),
        (NMF(2, max_iter=20, random_state=0), np.abs(small()), "resample"),
        (Completion([Term(core=LowRank(2), reg=NonNegative(0.1))], random_state=0), small(), "resample"),
        (CommonNeighbors(), GRAPH, "resample"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_model_answers(model: Any, X: Any, method: str):
    model.fit(X)
    found = identifiability(model, [0, 1, 2], [3, 4, 5], n_refits=8)
    assert found.method == method
    assert np.isfinite(found.std).all()
    assert (found.std >= 0).all()
    assert found.std.max() > 0
    np.testing.assert_array_equal(found.prediction, model.predict_entries([0, 1, 2], [3, 4, 5]))


def test_models_with_features_are_fitted_again():
    data = make_imc(60, 40, 4, 3, rank=2, density=0.2, noise=0.3, random_state=0)
    features = {"row_features": data.row_features, "col_features": data.col_features}
    model = IMC(2, random_state=0, max_iter=20, reg=1.0, center="none").fit(data.observations, **features)
    prediction, std = model.predict_entries([0, 1], [2, 3], return_std=True)
    again = identifiability(model, [0, 1], [2, 3], data.observations, **features)
    np.testing.assert_array_equal(std, again.std)
    assert again.method == "resample"
    assert again.determined.all()
    with pytest.raises(ParameterError, match="row_features"):
        identifiability(model, [0], [0], data.observations)
    with pytest.raises(ParameterError, match="features; 'resample'"):
        identifiability(model, [0], [0], method="curvature")
    assert prediction.shape == std.shape == (2,)


def test_resampling_has_the_size_of_the_truth():
    """For a mean of n values of variance one, the spread is n^-1/2."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1, 400))
    found = identifiability(BiasModel(1e9).fit(X), [0], [0], method="resample", n_refits=200)
    assert abs(found.std[0] / 0.05 - 1) < 0.2


def test_saved_models_need_the_cells_again(tmp_path):
    X = small()
    model = MatrixFactorization(2, random_state=0, reg=1.0, center="none").fit(X)
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    with pytest.raises(InvalidDataError, match="does not hold its training cells"):
        loaded.predict_entries([0], [0], return_std=True)
    np.testing.assert_array_equal(
        identifiability(loaded, [0, 4], [1, 2], X).std, identifiability(model, [0, 4], [1, 2]).std
    )
    with pytest.raises(InvalidDataError, match="fitted to"):
        identifiability(loaded, [0], [0], X[:, :-1])
    assert "_spread" not in vars(pickle.loads(pickle.dumps(model)))


def test_searches_hand_on_to_their_best_model():
    X = small()
    search = GridSearch(
        MatrixFactorization(2, random_state=0, reg=1.0, center="none"), {"reg": [0.5, 1.0]}, cv=2
    ).fit(X)
    np.testing.assert_array_equal(
        identifiability(search, [0], [1]).std, search.predict_entries([0], [1], return_std=True)[1]
    )
    assert (search.recommend([0], k=3, max_std=0.0)[0] == -1).all()


def test_models_that_give_baselines_between_blocks_do_not_move_there():
    X = two_blocks()
    model = MatrixFactorization(3, reg=0.1, center="biases", random_state=0).fit(X)
    moving = identifiability(model, [0, 0], [1, 20])
    model.cross_component = "baseline"  # as AugmentedMF has it
    steady = identifiability(model, [0, 0], [1, 20])
    assert steady.std[0] == moving.std[0]
    assert steady.std[1] < 0.5 * moving.std[1]
    assert not steady.determined[1]


@pytest.mark.parametrize(
    "X",
    [
        np.where(np.isfinite(small()), 3.0, np.nan),
        np.array([[1.0, 2.0, np.nan, 4.0]]),
        np.where(np.eye(6), np.arange(6.0)[:, None], np.nan),
        np.array([[1.0]]),
    ],
    ids=["all equal", "one row", "isolated cells", "one cell"],
)
@pytest.mark.parametrize("center", ["none", "biases"])
def test_poor_data_gives_numbers(X: np.ndarray, center: str):
    model = MatrixFactorization(2, reg=0.5, center=center, random_state=0).fit(X)
    rows, cols = (axis.ravel() for axis in np.indices(X.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = identifiability(model, rows, cols)
    assert np.isfinite(found.std).all()
    assert (found.std >= 0).all()


def test_nothing_known_and_no_penalty_is_infinite():
    X = small()
    X[7] = np.nan
    found = identifiability(
        MatrixFactorization(2, reg=0.0, random_state=0, center="none").fit(X), [7, 8], [0, 0]
    )
    assert np.isinf(found.std[0])
    assert not found.determined[0]
    assert np.isfinite(found.std[1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rows": [99]}, InvalidDataError, "rows"),
        ({"rows": [0, 1]}, InvalidDataError, "rows"),
        ({"method": "guess"}, ParameterError, "method"),
        ({"n_refits": 1}, ParameterError, "n_refits"),
        ({"share": 1.0}, ParameterError, "share"),
        ({"model": MatrixFactorization(2, reg=1.0, center="none")}, NotFittedError, "not fitted"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    fitted = BiasModel().fit(small())
    with pytest.raises(error, match=message):
        identifiability(**{"model": fitted, "rows": [0], "cols": [0], **arguments})


# --- lists ------------------------------------------------------------------------------------


def test_lists_without_what_is_not_determined():
    X = two_blocks()
    model = MatrixFactorization(3, reg=0.1, random_state=0, center="none").fit(X)
    rows = np.array([0, 20, 26, 1])
    ids, scores = model.recommend(rows, k=30, determined_only=True, exclude=None)
    blocks = find_blocks(seen(X))
    for row, listed, values in zip(rows, ids, scores, strict=True):
        wanted = np.flatnonzero(blocks.col_block == blocks.row_block[row]) if row != 26 else np.array([])
        kept = listed[listed >= 0]
        assert set(kept) == set(wanted)
        expected = model.predict_entries(np.full(len(kept), row), kept)
        np.testing.assert_allclose(values[: len(kept)], np.sort(expected)[::-1], rtol=1e-10)
        assert np.isnan(values[len(kept) :]).all()
    plain, _ = model.recommend(rows, k=30, exclude=None)
    assert set(plain[0]) == set(range(21))
    few, _ = model.recommend([0], k=5, determined_only=True, candidates=[3, 20], exclude=None)
    assert few[0].tolist() == [3, -1, -1, -1, -1]


@pytest.mark.parametrize("k", [1, 3, 18])
def test_lists_up_to_a_spread(k: int):
    X = small(density=0.3)
    model = MatrixFactorization(2, reg=0.5, random_state=0, center="none").fit(X)
    rows = np.arange(25)
    everything = identifiability(model, np.repeat(rows, 18), np.tile(np.arange(18), 25)).std.reshape(25, 18)
    limit = float(np.quantile(everything, 0.3))
    ids, scores = model.recommend(rows, k=k, max_std=limit, exclude=None)
    predicted = model.predict_new()
    for row in rows:
        allowed = np.flatnonzero(everything[row] <= limit)
        best = allowed[np.argsort(-predicted[row, allowed], kind="stable")][:k]
        assert ids[row].tolist() == [*best.tolist(), *[-1] * (k - len(best))]
        assert np.isnan(scores[row]).sum() == k - len(best)
    with pytest.raises(ParameterError, match="max_std"):
        model.recommend([0], max_std=-1.0)


def test_memory_is_that_of_the_cells():
    X = target(positive=False)
    model = MatrixFactorization(4, center="biases", max_iter=2, random_state=0, reg=1.0).fit(X)
    rows, cols = np.arange(1000), np.arange(1000)
    assert peak_of(lambda: identifiability(model, rows, cols)) < LIMIT // 4
    assert peak_of(lambda: model.recommend(rows, max_std=5.0, determined_only=True)) < LIMIT // 4
