"""Draws of the device code as NumPy, and on a GPU where there is one, beside the kernels of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unseen import kernels
from unseen.exceptions import DeviceError, TooLargeError


@pytest.fixture(params=["twin", pytest.param("cuda", marks=pytest.mark.gpu)])
def place(request):
    try:
        return kernels.get_provider(request.param)
    except DeviceError as error:
        pytest.skip(f"no CUDA device: {error}")


def drawn(provider, X, k, dtype, *, offset, shifted, by_cell, seed=3):
    rng = np.random.default_rng(seed)
    n, m = X.shape
    other, prior = rng.normal(size=(m, k)).astype(dtype), np.eye(k) * 3 + 0.1
    noise = rng.normal(size=(n, k)).astype(dtype)
    offset = None if offset is None else rng.normal(size=(offset, k)).astype(dtype)
    shift = rng.normal(size=m).astype(dtype) if shifted else None
    weights = (X.data, 2 * X.data) if by_cell else (1.0, X.data)
    cells = provider.pattern(X.indptr, X.indices, *weights, n_cols=m)
    out, means = (provider.asarray(np.full((n, k), np.nan, dtype)) for _ in range(2))
    given = map(provider.asarray, (other, prior, noise))
    shift = None if shift is None else provider.asarray(shift)
    sizes = np.empty((k, k + 1))
    provider.als_draw(cells, *given, out, scale=1.7, offset=offset, shift=shift, means=means, sizes=sizes)
    return provider.to_host(out), provider.to_host(means), sizes


def pattern(dtype, n=40, m=3000):
    rng = np.random.default_rng(5)
    stored = rng.random((n, m)) < 0.5 * rng.random((n, 1)) ** 2
    stored[1], stored[2] = False, True  # nothing, and more than a block adds up
    X = sparse.csr_array(stored.astype(dtype))
    X.data[:] = rng.uniform(0.5, 2.0, X.nnz)
    return X


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 2e-5), (np.float64, 1e-11)])
@pytest.mark.parametrize("k", [1, 11, 40])
def test_rows_are_drawn_as_on_the_cpu(place, dtype, limit, k):
    X = pattern(dtype)
    for options in (
        {"offset": None, "shifted": False, "by_cell": False},
        {"offset": 1, "shifted": True, "by_cell": True},
        {"offset": 40, "shifted": False, "by_cell": True},
    ):
        found = drawn(place, X, k, dtype, **options)
        expected = drawn(kernels.get_provider("reference"), X, k, dtype, **options)
        for one, two in zip(found, expected, strict=True):
            assert np.abs(one - two).max() < limit * np.abs(two).max()
        again = drawn(place, X, k, dtype, **options)
        assert found[0].tobytes() == again[0].tobytes()
    other = drawn(place, X, k, dtype, offset=40, shifted=True, by_cell=True)
    assert np.abs(other[1] - expected[1]).max() > 1e-3


def test_numbers_are_those_of_the_native_kernel(place):
    for dtype, limit in ((np.float32, 1e-5), (np.float64, 1e-12)):
        for shape in ((1, 1), (300, 7), (5, 64)):
            found = place.to_host(place.normals(shape, 2**62 + 5, 3, 9, dtype))
            expected = kernels.normals(shape, 2**62 + 5, 3, 9, dtype=dtype)
            assert found.dtype == dtype
            assert np.abs(found - expected).max() < limit
    assert place.to_host(place.normals((0, 4), 1, 1, 1, np.float32)).shape == (0, 4)


def test_a_row_without_a_positive_matrix_is_no_number(place):
    X = sparse.csr_array(np.ones((2, 3)))
    cells = place.pattern(X.indptr, X.indices, np.r_[np.full(3, -9.0), np.ones(3)], 1.0, n_cols=3)
    out = place.asarray(np.zeros((2, 2)))
    place.als_draw(cells, *map(place.asarray, (np.eye(3, 2), np.eye(2), np.zeros((2, 2)))), out)
    assert np.isnan(place.to_host(out)).any(axis=1).tolist() == [True, False]


def test_too_wide_rows_are_refused(place):
    with pytest.raises(TooLargeError, match="200 coordinates"):
        place.als_draw(None, None, None, None, place.xp.zeros((1, 200)))
