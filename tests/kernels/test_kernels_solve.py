"""Properties of the solving kernels: exact solutions, degenerate systems, descent."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import make_case

from unseen import kernels
from unseen.kernels import reference

EMPTY = np.zeros(0, dtype=np.int32)


def dense_system(case, i, curvature, linear, gram):
    cells = slice(case.indptr[i], case.indptr[i + 1])
    factors = case.right[case.indices[cells]].astype(float)
    matrix = gram + factors.T @ (curvature[cells, None] * factors)
    return matrix, factors.T @ linear[cells]


@pytest.mark.parametrize("rank", [3, 17, 64])
@pytest.mark.parametrize("method", ["cholesky", "cg"])
def test_solves_the_normal_equations(method, rank):
    case = make_case((40, 60), rank, np.float64, np.int32)
    gram = np.eye(rank) + 0.2 * case.right.T @ case.right
    out = kernels.als_solve(
        case.indptr, case.indices, case.data, 2 * case.data, case.right, gram, None,
        np.zeros_like(case.left), method=method, cg_steps=200,
    )  # fmt: skip
    for i in range(len(out)):
        matrix, rhs = dense_system(case, i, case.data, 2 * case.data, gram)
        np.testing.assert_allclose(matrix @ out[i], rhs, atol=1e-8)
    # Control: with one value changed the same solution no longer fits.
    matrix, rhs = dense_system(case, 0, case.data, 2.01 * case.data, gram)
    assert np.abs(matrix @ out[0] - rhs).max() > 1e-4


@pytest.mark.parametrize("method", ["cholesky", "cg"])
def test_each_row_may_scale_what_all_rows_share(method):
    case = make_case((40, 60), 17, np.float64, np.int32)
    gram = np.eye(17) + 0.2 * case.right.T @ case.right
    scale = np.random.default_rng(0).uniform(0.1, 3.0, len(case.left))
    out = kernels.als_solve(
        case.indptr, case.indices, case.data, 2 * case.data, case.right, gram, None,
        np.zeros_like(case.left), gram_scale=scale, method=method, cg_steps=200,
    )  # fmt: skip
    for i in range(len(out)):
        matrix, rhs = dense_system(case, i, case.data, 2 * case.data, scale[i] * gram)
        np.testing.assert_allclose(matrix @ out[i], rhs, atol=1e-8)
    # Control: the factor of another row does not fit.
    matrix, rhs = dense_system(case, 0, case.data, 2 * case.data, scale[1] * gram)
    assert np.abs(matrix @ out[0] - rhs).max() > 1e-4


def test_cg_improves_step_by_step_and_starts_warm():
    case = make_case((40, 60), 17, np.float64, np.int32)
    gram = np.eye(17) + 0.2 * case.right.T @ case.right
    arguments = (case.indptr, case.indices, 1.0, case.data, case.right, gram, None)
    exact = kernels.als_solve(*arguments, np.zeros_like(case.left))
    errors = [
        np.linalg.norm(kernels.als_solve(*arguments, case.left.copy(), method="cg", cg_steps=steps) - exact)
        for steps in (0, 1, 2, 4, 8)
    ]
    assert errors[0] == pytest.approx(np.linalg.norm(case.left - exact))
    assert all(after < before for before, after in itertools.pairwise(errors))
    np.testing.assert_allclose(kernels.als_solve(*arguments, exact.copy(), method="cg"), exact, atol=1e-10)


@pytest.mark.parametrize("curvature", [0.0, -0.2])
def test_weights_below_the_background(curvature):
    # Stored cells may weigh less than the background, as long as all weights stay positive.
    case = make_case((12, 30), 8, np.float64, np.int32)
    gram = case.right.T @ case.right + 0.1 * np.eye(8)
    values = np.full(len(case.indices), curvature)
    for method in ("cholesky", "cg"):
        out = kernels.als_solve(
            case.indptr, case.indices, curvature, case.data, case.right, gram, None,
            np.zeros_like(case.left), method=method, cg_steps=60,
        )  # fmt: skip
        for i in range(len(out)):
            matrix, rhs = dense_system(case, i, values, case.data, gram)
            np.testing.assert_allclose(matrix @ out[i], rhs, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [5, 40])
def test_singular_systems_get_the_shortest_solution(rank, dtype):
    case = make_case((12, 20), rank, dtype, np.int32)
    gram = np.zeros((rank, rank), dtype=dtype)
    out = kernels.als_solve(case.indptr, case.indices, 1.0, case.data, case.right, gram, None, case.left)
    for i in range(len(out)):
        cells = slice(case.indptr[i], case.indptr[i + 1])
        expected = np.linalg.lstsq(
            case.right[case.indices[cells]].astype(float), case.data[cells], rcond=None
        )[0]
        np.testing.assert_allclose(out[i], expected, atol=2e-3 if dtype == np.float32 else 1e-8)
    assert np.all(out[1] == 0)  # an empty row


def test_indefinite_system_gets_its_least_squares_solution():
    gram = np.diag([2.0, -1.0, 0.0])
    out = np.ones((1, 3))
    pattern = (np.array([0, 0], dtype=np.int32), EMPTY)
    kernels.als_solve(*pattern, 1.0, 1.0, np.zeros((0, 3)), gram, np.array([4.0, 3.0, 5.0]), out)
    np.testing.assert_allclose(out, [[2.0, -3.0, 0.0]], atol=1e-12)


@pytest.mark.parametrize("method", ["cholesky", "cg"])
def test_a_nan_is_not_hidden(method):
    case = make_case((6, 9), 4, np.float64, np.int32)
    case.right[case.indices[0]] = np.nan
    out = kernels.als_solve(
        case.indptr, case.indices, 1.0, case.data, case.right, np.eye(4), None, case.left, method=method
    )
    assert np.isnan(out[0]).any()


def objective(case, left, right, c, d, background, target, reg, l1):
    scores = np.einsum("tk,tk->t", left[case_rows(case)], right[case.indices])
    total = np.sum(c / 2 * scores**2 - d * scores)
    total += background / 2 * np.sum((left.T @ left) * (right.T @ right))
    total -= background * target * left.sum(0) @ right.sum(0)
    total += reg / 2 * (np.sum(left**2) + np.sum(right**2))
    return total + l1 * (np.abs(left).sum() + np.abs(right).sum())


def case_rows(case):
    return np.repeat(np.arange(len(case.indptr) - 1), np.diff(case.indptr))


@settings(max_examples=40, deadline=None)
@given(
    rank=st.sampled_from([1, 4, 9]),
    background=st.sampled_from([0.0, 0.3]),
    target=st.floats(-1, 1),
    reg=st.floats(0.01, 1),
    l1=st.sampled_from([0.0, 0.2]),
    bounded=st.booleans(),
    inner=st.integers(1, 3),
    seed=st.integers(0, 100),
)
def test_ccd_never_increases_its_objective(rank, background, target, reg, l1, bounded, inner, seed):
    case = make_case((25, 17), rank, np.float64, np.int32, seed)
    lower, upper = (0.0, 0.7) if bounded else (-np.inf, np.inf)
    left, right = np.clip(case.left, lower, upper), np.clip(case.right, lower, upper)
    scores = kernels.sddmm(case.indptr, case.indices, left, right)
    # Weights below the background too: c = w - w0 with w > 0.
    c = case.data - background
    given_objective = (c, case.data, background, target, reg, l1)
    before = objective(case, left, right, *given_objective)
    for _ in range(4):
        kernels.ccd_sweep(
            case.indptr, case.indices, *case.csc, c, case.data, scores, left, right,
            background=background, target=target, reg=reg, l1=l1, lower=lower, upper=upper, inner=inner,
        )  # fmt: skip
        after = objective(case, left, right, *given_objective)
        assert after <= before + 1e-9 * abs(before)
        before = after
    assert min(left.min(), right.min()) >= lower
    assert max(left.max(), right.max()) <= upper
    np.testing.assert_allclose(scores, kernels.sddmm(case.indptr, case.indices, left, right), atol=1e-12)


def test_ccd_and_als_meet_at_the_same_minimum():
    case = make_case((20, 15), 3, np.float64, np.int32)
    left, right = case.left, case.right
    scores = kernels.sddmm(case.indptr, case.indices, left, right)
    for _ in range(3000):
        kernels.ccd_sweep(
            case.indptr, case.indices, *case.csc, 0.7, 1.2, scores, left, right, background=0.3, reg=0.5
        )
    gram = 0.3 * kernels.gram(right) + 0.5 * np.eye(3)
    solved = kernels.als_solve(case.indptr, case.indices, 0.7, 1.2, right, gram, None, left.copy())
    np.testing.assert_allclose(left, solved, atol=1e-6)
    wrong = kernels.als_solve(case.indptr, case.indices, 0.7, 1.3, right, gram, None, left.copy())
    assert np.abs(left - wrong).max() > 1e-3


def test_long_sums_stay_accurate_in_single_precision():
    n = 300_000
    rng = np.random.default_rng(0)
    dense = rng.uniform(0.5, 1.5, (n, 3)).astype(np.float32)
    indptr, indices = np.array([0, n], dtype=np.int32), np.arange(n, dtype=np.int32)
    exact = dense.astype(np.float64)
    np.testing.assert_allclose(kernels.gram(dense), exact.T @ exact, rtol=1e-6)
    np.testing.assert_allclose(kernels.spmm(indptr, indices, 1.0, dense)[0], exact.sum(0), rtol=1e-5)
    wide = np.repeat(dense, 8, axis=1)
    np.testing.assert_allclose(kernels.spmm(indptr, indices, 1.0, wide)[0, ::8], exact.sum(0), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("by_cell", [False, True])
@pytest.mark.parametrize("rank", [4, 16, 70])
def test_conjugate_gradient_takes_rows_of_every_length(rank, by_cell, dtype):
    # Blocks of cells, their remainders, sums in parts, and a row that no near cache holds; the last row
    # ends with the arrays.
    lengths = [*range(40), 511, 512, 513, 2500, 3]
    rng = np.random.default_rng(rank)
    other = (rng.normal(size=(2600, rank)) / np.sqrt(rank)).astype(dtype)
    indptr = np.cumsum([0, *lengths])
    indices = np.concatenate([rng.permutation(len(other))[:n] for n in lengths])
    curvature, linear = (
        rng.uniform(0.5, 2.0, len(indices)).astype(dtype) if by_cell else value for value in (1.5, 0.7)
    )
    shift = rng.normal(size=len(other)).astype(dtype)
    gram = (np.eye(rank) + other.T @ other).astype(dtype)
    start = rng.normal(size=(len(lengths), rank)).astype(dtype)
    found = []
    for module in (None, reference):
        values = np.empty(len(lengths))
        given = {} if module is None else {"module": module}
        out = kernels.als_solve(
            indptr, indices, curvature, linear, other, gram, None, start.copy(),
            shift=shift, row_values=values, method="cg", cg_steps=3, **given,
        )  # fmt: skip
        found.append((out, values))
    tolerance = 2e-3 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(found[0][0], found[1][0], atol=tolerance)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=tolerance / 10, atol=tolerance)
    # Control: another value of the last cell of the last row alone is seen.
    moved = np.broadcast_to(np.asarray(linear, dtype), len(indices)).copy()
    moved[-1] += 1000
    out = kernels.als_solve(
        indptr, indices, curvature, moved, other, gram, None, start.copy(), shift=shift, method="cg"
    )
    assert np.abs(out[:-1] - found[0][0][:-1]).max() <= tolerance
    assert np.abs(out[-1] - found[0][0][-1]).max() > 1e-2


def test_a_fit_begins_its_factors_with_a_line_of_the_cache():
    from unseen.kernels.providers import CACHE_LINE, HostProvider

    for size in (3, 50, 4097):
        given = np.arange(size * 5, dtype=np.float32).reshape(size, 5)
        copy = HostProvider().copy(given)
        assert copy.ctypes.data % CACHE_LINE == 0
        assert copy.flags.c_contiguous
        np.testing.assert_array_equal(copy, given)
        copy[0, 0] = -1
        assert given[0, 0] == 0
