"""The thresholded SVD against LAPACK, cold and warm, on both paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import svds

from unseen import Observations
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import nuclear_norm_of_product, singular_value, spectral_norm, thresholded_svd


def operator(n: int, m: int, rank: int, seed: int = 0) -> LowRankPlusSparse:
    rng = np.random.default_rng(seed)
    stored = rng.random((n, m)) < 0.1
    cells = Observations.from_dense(np.where(stored, rng.standard_normal((n, m)), np.nan))
    left = rng.standard_normal((n, rank)) * np.linspace(3, 1, rank)
    return LowRankPlusSparse(cells, cells.values, left, rng.standard_normal((m, rank)))


def test_products_equal_the_dense_matrix(rng: np.random.Generator) -> None:
    op = operator(30, 20, 3)
    dense = op.toarray()
    assert np.linalg.norm(dense) > 1
    v, u = rng.standard_normal((20, 4)), rng.standard_normal((30, 4))
    np.testing.assert_allclose(op.dot(v), dense @ v, atol=1e-12)
    np.testing.assert_allclose(op.tdot(u), dense.T @ u, atol=1e-12)


@pytest.mark.parametrize(("n", "m", "rank"), [(60, 40, 3), (40, 90, 6), (200, 150, 30)])
@pytest.mark.parametrize("share", [0.9, 0.3, 0.1, 0.02])
@pytest.mark.parametrize("warm", [False, True])
def test_against_lapack(n: int, m: int, rank: int, share: float, warm: bool) -> None:
    op = operator(n, m, rank)
    u, s, vt = np.linalg.svd(op.toarray(), full_matrices=False)
    threshold = share * s[0]
    kept = s > threshold
    rng = np.random.default_rng(1)
    start = None
    if warm:
        start = np.linalg.qr(vt[kept].T + 0.1 * rng.standard_normal((m, int(kept.sum()))))[0]
    found = thresholded_svd(op, threshold, start=start, rng=rng, tol=1e-9, max_power=500, dense=False)
    assert found.s.size == kept.sum()
    np.testing.assert_allclose(found.s, s[kept], rtol=1e-8)
    exact = (u[:, kept] * (s[kept] - threshold)) @ vt[kept]
    shrunk = found.shrunk(threshold)
    np.testing.assert_allclose((shrunk.u * shrunk.s) @ shrunk.v.T, exact, atol=1e-6 * s[0])
    # Control: a block that stops too early misses values, and this test would see it.
    if kept.sum() > 3:
        capped = thresholded_svd(op, threshold, rng=rng, max_rank=int(kept.sum()) - 1, dense=False)
        assert capped.s.size == kept.sum() - 1


@pytest.mark.parametrize(("n", "m"), [(60, 40), (700, 600)])
def test_a_singular_value_by_its_number(n: int, m: int) -> None:
    op = operator(n, m, 3)
    s = np.linalg.svd(op.toarray(), compute_uv=False)
    for k in (1, 3, 30):
        found = singular_value(op, k, np.random.default_rng(0))
        assert 0.95 * s[k - 1] <= found <= s[k - 1] * (1 + 1e-9)
    # Control: the bounds tell the third from the fourth, and one step from several.
    assert 0.95 * s[2] > s[3]
    assert singular_value(op, m + 1, np.random.default_rng(0)) == 0.0


def test_nothing_above_the_threshold() -> None:
    op = operator(60, 40, 3)
    for dense in (True, False):
        found = thresholded_svd(op, 1e9, rng=np.random.default_rng(0), dense=dense)
        assert found.s.size == 0
        assert found.u.shape == (60, 0)


def test_deterministic_and_sign_fixed() -> None:
    op = operator(60, 40, 3)
    first, second = (thresholded_svd(op, 1.0, rng=np.random.default_rng(4), dense=False) for _ in range(2))
    np.testing.assert_array_equal(first.v, second.v)
    exact = thresholded_svd(op, 1.0, rng=np.random.default_rng(0), dense=True)
    np.testing.assert_allclose(first.v[:, :3], exact.v[:, :3], atol=1e-5)


def test_norms(rng: np.random.Generator) -> None:
    op = operator(600, 550, 3)
    dense = op.toarray()
    assert abs(spectral_norm(op, rng) / np.linalg.norm(dense, 2) - 1) < 5e-3
    a, b = rng.standard_normal((30, 4)), rng.standard_normal((20, 4))
    np.testing.assert_allclose(nuclear_norm_of_product(a, b), np.linalg.norm(a @ b.T, "nuc"), rtol=1e-12)
    assert nuclear_norm_of_product(a[:, :0], b[:, :0]) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_a_cold_start_does_not_overlook_a_few_values_just_above_the_threshold(seed: int) -> None:
    """From a random block all Ritz values lie below a threshold that the true ones pass."""
    rng = np.random.default_rng(seed)
    seen = rng.random((900, 800)) < 0.05
    cells = Observations.from_dense(np.where(seen, rng.standard_normal(seen.shape), np.nan))
    left, right = rng.standard_normal((900, 2)), rng.standard_normal((800, 2))
    op = LowRankPlusSparse(cells, cells.values, left * 0.02, right)
    s = np.linalg.svd(op.toarray(), compute_uv=False)
    threshold = 0.5 * (s[1] + s[2])
    found = thresholded_svd(op, threshold, rng=rng, dense=False)
    np.testing.assert_allclose(found.s, s[:2], rtol=1e-6)


def test_a_few_values_above_a_wide_bulk_are_found_from_a_random_start() -> None:
    """One product with a random block shows the bulk alone; it must not be taken for all there is."""
    rng = np.random.default_rng(0)
    n, m, cells = 20_000, 4000, 400_000
    keys = np.unique(rng.integers(0, n * m, cells))
    rows, cols = np.divmod(keys, m)
    left, right = rng.standard_normal(n), rng.standard_normal(m)
    values = 1.2 * left[rows] * right[cols] + rng.standard_normal(keys.size)
    observed = Observations.from_triples(rows, cols, values, shape=(n, m))
    empty = [np.zeros((size, 0)) for size in observed.shape]
    bulk = LowRankPlusSparse(observed, observed.values, empty[0], empty[1], 1)
    largest = svds(observed.csr, k=2, return_singular_vectors=False, random_state=0)
    second, first = np.sort(largest)
    for threshold in (1.08 * second, 1.15 * second):
        assert threshold < first
        found = thresholded_svd(bulk, threshold, rng=np.random.default_rng(1), tol=1e-4, dense=False)
        assert found.s.size == 1
