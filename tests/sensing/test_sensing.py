"""Linear maps, their mean, and gradient steps over shards."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from unseen import Observations
from unseen.exceptions import TooLargeError
from unseen.kernels import signs
from unseen.sensing import (
    EntriesMap,
    ExpectedFit,
    ExplicitMap,
    HashedMap,
    Law,
    MeasurementOperator,
    RankOneMap,
    SampledFit,
    col_step,
    expected_weights,
    n_constraints,
    objective,
    residuals,
    row_step,
    split,
)

M, N, RANK, REG = 9, 7, 3, 0.3


def make_cells(seed: int = 0, shape: tuple[int, int] = (M, N)) -> Observations:
    rng = np.random.default_rng(seed)
    return Observations.from_dense(np.where(rng.random(shape) < 0.4, rng.standard_normal(shape), np.nan))


def factors(seed: int = 1, shape: tuple[int, int] = (M, N)) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((shape[0], RANK)), rng.standard_normal((shape[1], RANK))


LAW = Law(150, weight=0.7, gamma=0.05, seed=11)
MAPS = {
    "entries": lambda cells: EntriesMap(cells),
    "hashed": lambda cells: HashedMap(cells, LAW),
    "explicit": lambda cells: ExplicitMap(cells, LAW),
    "hashed-few": lambda cells: HashedMap(cells, Law(150, weight=0.7, gamma=0.003, seed=1)),
    "rank_one": lambda cells: RankOneMap(cells, LAW),
    "hashed-new-rows": lambda cells: HashedMap(cells, Law(150, 1.0, 0.05, False, 3)),
    "rank_one-new-rows": lambda cells: RankOneMap(cells, Law(150, 1.0, 0.05, False, 3)),
}


def dense(a_map: MeasurementOperator) -> np.ndarray:
    """The p x (m n) matrix of a map, one cell at a time."""
    m, n = a_map.shape
    eye_m, eye_n = np.eye(m), np.eye(n)
    return np.stack([a_map.forward(eye_m[:, [i]], eye_n[:, [j]]) for i in range(m) for j in range(n)], axis=1)


@pytest.fixture(params=MAPS)
def a_map(request: pytest.FixtureRequest) -> MeasurementOperator:
    return MAPS[request.param](make_cells())


def test_forward_adjoint_and_right_hand_side_agree_with_the_dense_matrix(a_map: Any) -> None:
    A, (U, V) = dense(a_map), factors()
    np.testing.assert_allclose(a_map.forward(U, V), A @ (U @ V.T).ravel(), atol=1e-12)
    e = np.random.default_rng(2).standard_normal(a_map.n_rows)
    adjoint = (A.T @ e).reshape(M, N)
    np.testing.assert_allclose(a_map.dot(e, V), adjoint @ V, atol=1e-12)
    np.testing.assert_allclose(a_map.tdot(e, U), adjoint.T @ U, atol=1e-12)
    np.testing.assert_allclose(a_map.squared_norm(U, V), np.sum((A @ (U @ V.T).ravel()) ** 2))
    filled = a_map.cells.csr.toarray()
    np.testing.assert_allclose(a_map.of_cells(), A @ filled.ravel(), atol=1e-12)
    # Negative control: the adjoint of other values is another one.
    assert np.abs(a_map.dot(e + 1.0, V) - adjoint @ V).max() > 0.1


@pytest.mark.parametrize("name", ["hashed", "explicit", "rank_one"])
def test_first_measurements_hold_their_cell_and_nothing_else_there(name: str) -> None:
    cells = make_cells()
    A = dense(MAPS[name](cells))
    own = cells.rows * N + cells.indices
    np.testing.assert_allclose(A[np.arange(cells.nnz), own], 1.0, atol=1e-14)
    size = LAW.dense_size if name == "rank_one" else LAW.sign_size
    rest = A.copy()
    rest[np.arange(cells.nnz), own] = 0.0
    np.testing.assert_allclose(np.unique(np.abs(rest[np.abs(rest) > 1e-12])), size)
    if name == "hashed":
        assert abs(np.mean(rest != 0) - 2 * LAW.gamma) < 0.02
    # Without random entries the observed measurements are single ones.
    bare = dense(MAPS[f"{'rank_one' if name == 'rank_one' else 'hashed'}-new-rows"](cells))
    assert np.count_nonzero(np.abs(bare[: cells.nnz]) > 1e-12) == cells.nnz
    assert np.count_nonzero(bare[cells.nnz :]) > 0


@pytest.mark.parametrize("name", ["hashed", "hashed-few", "rank_one"])
@pytest.mark.parametrize("n_blocks", [1, 2, 7])
def test_draw_has_the_same_bits_for_any_number_of_blocks(name: str, n_blocks: int) -> None:
    whole = MAPS[name](make_cells())
    limits = np.linspace(0, whole.n_rows, n_blocks + 1).astype(int)
    parts = [whole.part(low, high) for low, high in itertools.pairwise(limits)]
    U, V = factors()
    np.testing.assert_array_equal(np.concatenate([p.forward(U, V) for p in parts]), whole.forward(U, V))
    np.testing.assert_array_equal(np.concatenate([p.of_cells() for p in parts]), whole.of_cells())
    other = HashedMap(whole.cells, Law(150, 0.7, 0.05, seed=12))
    assert not np.array_equal(other.forward(U, V), whole.forward(U, V))


def test_explicit_stores_the_draw_of_hashed() -> None:
    cells, (U, V) = make_cells(), factors()
    np.testing.assert_array_equal(MAPS["explicit"](cells).forward(U, V), MAPS["hashed"](cells).forward(U, V))


@pytest.mark.parametrize("kind", [HashedMap, RankOneMap])
@pytest.mark.parametrize("resample", [True, False])
def test_expected_form_is_the_mean_of_many_draws(kind: Any, resample: bool) -> None:
    cells, (U, V) = make_cells(), factors()
    law = Law(120, weight=0.6, gamma=0.1, resample_original=resample)
    sampled = np.array(
        [SampledFit(kind(cells, Law(120, 0.6, 0.1, resample, seed))).residual(U, V) for seed in range(600)]
    )
    values = (sampled**2).sum(axis=1)
    fit = ExpectedFit(cells, expected_weights(law, cells.nnz))
    expected = fit.value(fit.residual(U, V), U, V)
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - expected) < 4.5 * error
    # Negative control: the weights of the other rule, or of no augmentation, are told apart.
    wrong = ExpectedFit(cells, (1.0, 0.0))
    assert abs(values.mean() - wrong.value(wrong.residual(U, V), U, V)) > 10 * error
    other = Law(120, weight=0.6, gamma=0.1, resample_original=not resample)
    wrong = ExpectedFit(cells, expected_weights(other, cells.nnz))
    assert abs(values.mean() - wrong.value(wrong.residual(U, V), U, V)) > 4.5 * error


def test_expected_form_by_its_definition() -> None:
    cells, (U, V) = make_cells(), factors()
    fit = ExpectedFit(cells, (1.7, 0.4))
    seen = np.zeros((M, N), dtype=bool)
    seen[cells.rows, cells.indices] = True
    X = U @ V.T
    naive = 1.7 * np.sum((X - cells.csr.toarray())[seen] ** 2) + 0.4 * np.sum(X[~seen] ** 2)
    np.testing.assert_allclose(fit.value(fit.residual(U, V), U, V), naive, rtol=1e-12)
    g = fit.change(U, V)
    naive = 1.7 * np.sum(X[seen] ** 2) + 0.4 * np.sum(X[~seen] ** 2)
    np.testing.assert_allclose(fit.curvature(g, U, V), naive, rtol=1e-12)


FITS = {
    **{name: (lambda cells, make=make: SampledFit(make(cells))) for name, make in MAPS.items()},
    "expected": lambda cells: ExpectedFit(cells, (1.8, 0.8)),
    "plain": lambda cells: ExpectedFit(cells, (1.0, 0.0)),
}


@pytest.fixture(params=FITS)
def fit(request: pytest.FixtureRequest) -> Any:
    return FITS[request.param](make_cells())


def value_at(fit: Any, U: np.ndarray, V: np.ndarray) -> float:
    return objective([fit], residuals([fit], U, V), U, V, REG)


def test_gradients_by_finite_differences(fit: Any) -> None:
    U, V = factors()
    kept = residuals([fit], U, V)
    rng = np.random.default_rng(4)
    for side, step in ((0, row_step), (1, col_step)):
        taken = step([fit], kept, U, V, REG)
        gradient = (np.array([U, V], dtype=object)[side] - taken.factor) / taken.length
        D = rng.standard_normal(gradient.shape)
        h = 1e-5
        moved = [(U + h * D, V), (U - h * D, V)] if side == 0 else [(U, V + h * D), (U, V - h * D)]
        numeric = (value_at(fit, *moved[0]) - value_at(fit, *moved[1])) / (2 * h)
        np.testing.assert_allclose(np.sum(np.asarray(gradient, float) * D), numeric, rtol=1e-7)
        assert abs(1.01 * np.sum(np.asarray(gradient, float) * D) / numeric - 1) > 1e-3


def test_step_length_and_decrease_are_exact(fit: Any) -> None:
    U, V = factors()
    for _ in range(4):
        before = value_at(fit, U, V)
        kept = residuals([fit], U, V)
        rows = row_step([fit], kept, U, V, REG)
        middle = value_at(fit, rows.factor, V)
        np.testing.assert_allclose(before - middle, rows.decrease, rtol=1e-9)
        # The kept residual is that of the new point.
        np.testing.assert_allclose(rows.residuals[0], fit.residual(rows.factor, V), atol=1e-11)
        # No other length on the line is better.
        direction = rows.factor - U
        for factor in (0.9, 1.1):
            assert value_at(fit, U + factor * direction, V) > middle
        cols = col_step([fit], rows.residuals, rows.factor, V, REG)
        np.testing.assert_allclose(middle - value_at(fit, rows.factor, cols.factor), cols.decrease, rtol=1e-9)
        U, V = rows.factor, cols.factor


def test_step_length_in_the_constants_of_the_paper() -> None:
    """alpha of equation 21, for L with the penalty lambda on the fit, lies in (0, 1/2]."""
    fit, (U, V) = FITS["hashed"](make_cells()), factors()
    lam = 1.0 / REG
    taken = row_step([fit], residuals([fit], U, V), U, V, REG)
    gradient = 2 * U + 2 * lam * fit.row_pull(fit.residual(U, V), U, V)
    g = fit.change(gradient, V)
    square = np.sum(gradient**2)
    alpha = 0.5 * square / (square + lam * g @ g)
    assert 0 < alpha <= 0.5
    np.testing.assert_allclose(taken.factor, U - alpha * gradient, rtol=1e-12)


def test_zero_gradient_moves_nothing() -> None:
    fit = FITS["expected"](make_cells())
    U, V = np.zeros((M, RANK)), np.zeros((N, RANK))
    taken = row_step([fit], residuals([fit], U, V), U, V, 0.0)
    assert taken.length == 0.0
    np.testing.assert_array_equal(taken.factor, U)


@pytest.mark.parametrize("n_blocks", [1, 2, 7])
def test_shards_equal_the_single_process(fit: Any, n_blocks: int) -> None:
    alone, shards = [fit], split(fit, n_blocks)
    assert len(shards) == n_blocks
    U, V = factors()
    P, Q = factors()
    kept, parts = residuals(alone, U, V), residuals(shards, P, Q)
    for _ in range(3):
        np.testing.assert_allclose(
            objective(shards, parts, P, Q, REG), objective(alone, kept, U, V, REG), rtol=1e-12
        )
        one, many = row_step(alone, kept, U, V, REG), row_step(shards, parts, P, Q, REG)
        np.testing.assert_allclose(many.factor, one.factor, rtol=1e-11, atol=1e-13)
        (U, kept), (P, parts) = (one.factor, one.residuals), (many.factor, many.residuals)
        one, many = col_step(alone, kept, U, V, REG), col_step(shards, parts, P, Q, REG)
        np.testing.assert_allclose(many.factor, one.factor, rtol=1e-11, atol=1e-13)
        (V, kept), (Q, parts) = (one.factor, one.residuals), (many.factor, many.residuals)
    if n_blocks > 1:  # negative control: a shard that is lost is noticed
        lost = row_step(shards[1:], parts[1:], P, Q, REG)
        assert np.abs(lost.factor - row_step(alone, kept, U, V, REG).factor).max() > 1e-6


def test_any_engine_that_keeps_order_can_map() -> None:
    from concurrent.futures import ThreadPoolExecutor

    shards, (U, V) = split(FITS["expected"](make_cells()), 3), factors()
    kept = residuals(shards, U, V)
    with ThreadPoolExecutor(3) as pool:
        there = row_step(shards, kept, U, V, REG, mapper=pool.map)
    np.testing.assert_array_equal(there.factor, row_step(shards, kept, U, V, REG).factor)


def test_number_of_measurements() -> None:
    # Yelp 2013 at rank 10 (AMF, table 1).
    assert n_constraints((45_981, 11_537), 229_907, 10, 1.0) == pytest.approx(1.16e7, rel=0.01)
    assert n_constraints((10, 10), 90, 1, 0.1) == 90
    assert n_constraints((1, 1), 1, 5, 1.0) == 1


def test_explicit_map_that_would_not_fit_is_refused_with_the_figure() -> None:
    cells = Observations.from_sparse(sparse.random_array((943, 1682), density=0.05, rng=0))
    with pytest.raises(TooLargeError, match=r"7\.\d*e\+10 non-zeros.*max_nonzeros"):
        ExplicitMap(cells, Law(n_constraints(cells.shape, cells.nnz, 60, 1.0)))


@pytest.mark.parametrize("kind", ["hashed", "rank_one"])
def test_draws_out_of_reach_are_refused_with_the_figure(kind: str) -> None:
    cells = Observations.from_triples([0, 299_999], [0, 199_999], [1.0, 2.0], shape=(300_000, 200_000))
    law = Law(n_constraints(cells.shape, cells.nnz, 10, 1.0))
    figure = {"hashed": r"1\.\d*e\+17", "rank_one": r"6\.\d*e\+13"}[kind]
    with pytest.raises(TooLargeError, match=f"{figure} random signs.*'expected'"):
        {"hashed": HashedMap, "rank_one": RankOneMap}[kind](cells, law)


def test_signs_have_the_share_and_the_balance_they_were_asked_for() -> None:
    n, length, rate = 400, 3000, 0.04
    indptr, cells, values = signs(np.full(n, -1), length, rate, 0.5, seed=5)
    counts = np.diff(indptr)

    def far(rate: float) -> float:
        return abs(cells.size - n * length * rate) / np.sqrt(n * length * rate * (1 - rate))

    assert far(rate) < 4.0
    assert far(1.05 * rate) > 4.0  # negative control: another share is told apart
    assert abs(counts.var() / (length * rate * (1 - rate)) - 1.0) < 0.3
    assert abs(np.sum(values > 0) - cells.size / 2) < 4.0 * np.sqrt(cells.size) / 2
    np.testing.assert_array_equal(np.unique(values), [-0.5, 0.5])
    expected = cells.size / 30
    hits = np.bincount(cells // (length // 30), minlength=30)
    assert np.sum((hits - expected) ** 2 / expected) < 70.0  # 29 degrees of freedom
    rows = np.repeat(np.arange(n), counts)
    assert np.all(np.diff(cells)[np.diff(rows) == 0] > 0)
    # A cell that is left out takes nothing from the others.
    skip = cells[indptr[:-1]]
    fewer = signs(skip, length, rate, 0.5, seed=5)
    np.testing.assert_array_equal(fewer[1], np.delete(cells, indptr[:-1]))
    assert not np.array_equal(signs(np.full(n, -1), length, rate, 0.5, seed=6)[1][:50], cells[:50])


def test_maps_never_form_the_matrix() -> None:
    cells = Observations.from_sparse(sparse.random_array((20_000, 15_000), density=1e-5, rng=0))
    U, V = factors(shape=cells.shape)
    dense_bytes = 8 * cells.shape[0] * cells.shape[1]
    for make in (HashedMap, RankOneMap):
        a_map = make(cells, Law(128, gamma=1e-6), 0, 128)
        tracemalloc.start()
        try:
            a_map.dot(a_map.forward(U, V), V)
            assert tracemalloc.get_traced_memory()[1] < dense_bytes / 20
        finally:
            tracemalloc.stop()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6), st.floats(0.001, 0.49))
def test_any_small_map_agrees_with_its_dense_matrix(seed: int, m: int, n: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, n)) < 0.5, rng.standard_normal((m, n)), np.nan)
    X[0, 0] = 1.0
    cells = Observations.from_dense(X)
    U, V = rng.standard_normal((m, 2)), rng.standard_normal((n, 2))
    law = Law(cells.nnz + int(rng.integers(0, 70)), gamma=gamma, seed=seed)
    for kind in (HashedMap, RankOneMap):
        a_map = kind(cells, law)
        A = dense(a_map)
        np.testing.assert_allclose(a_map.forward(U, V), A @ (U @ V.T).ravel(), atol=1e-10)
        np.testing.assert_allclose(a_map.of_cells(), A @ np.nan_to_num(X).ravel(), atol=1e-10)
