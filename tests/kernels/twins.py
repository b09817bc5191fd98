"""Every kernel beside its NumPy twin on random problems; also a script, for one instruction set at a time."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.kernels import _arguments, reference

RANKS = (1, 3, 8, 17, 64, 100, 130)
SHAPES = ((11, 31), (1, 40), (3, 700), (6, 1), (0, 4), (4, 0))
DTYPES = (np.float32, np.float64)
INDEX_TYPES = (np.int32, np.int64)

Arrays = list[np.ndarray[Any, Any]]


@dataclass
class Case:
    """A sparse matrix with empty rows and columns, by rows and by columns, and factors for both sides."""

    indptr: Any
    indices: Any
    csc: tuple[Any, Any, Any]
    data: Any
    left: Any
    right: Any
    rng: np.random.Generator

    @property
    def dtype(self) -> Any:
        return self.left.dtype.type


def make_case(shape: tuple[int, int], rank: int, dtype: Any, index: Any, seed: int = 0) -> Case:
    rng = np.random.default_rng([seed, *shape, rank])
    stored = rng.random(shape) < (0.9 if shape[0] == 3 else 0.3)
    if shape[0] > 2:
        stored[1] = False
    if shape[1] > 2:
        stored[:, 2] = False
    rows, cols = np.nonzero(stored)
    pattern = sparse.csr_array((np.arange(len(rows)), (rows, cols)), shape=shape)
    by_col = pattern.tocsc()
    return Case(
        indptr=pattern.indptr.astype(index),
        indices=pattern.indices.astype(index),
        csc=(by_col.indptr.astype(index), by_col.indices.astype(index), by_col.data.astype(index)),
        data=rng.uniform(0.5, 2.0, len(rows)).astype(dtype),
        left=rng.normal(size=(shape[0], rank)).astype(dtype),
        right=rng.normal(size=(shape[1], rank)).astype(dtype),
        rng=rng,
    )


def both_sddmm(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    given = (case.indptr, case.indices, case.left, case.right)
    return [kernels.sddmm(*given, n_threads=n_threads)], [reference.sddmm(*given, 1)]


def both_spmm(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    given = (case.indptr, case.indices, case.data, case.right)
    return [kernels.spmm(*given, n_threads=n_threads)], [reference.spmm(*given, 1)]


def both_spmm_t(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    given = (case.indptr, case.indices, case.data, case.left, len(case.right))
    return [kernels.spmm_t(*given, n_threads=n_threads)], [reference.spmm_t(*given, 1)]


def both_gram(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return [kernels.gram(case.left, n_threads=n_threads)], [reference.gram(case.left, 1)]


def _both_als(
    method: str,
    gram_weight: float,
    n_offsets: int,
    case: Case,
    n_threads: int,
    *,
    shifted: bool = False,
    scaled: bool = False,
) -> tuple[Arrays, Arrays]:
    n_rows, rank = case.left.shape
    gram = (gram_weight * reference.gram(case.right, 1) + np.eye(rank)).astype(case.dtype)
    offset = case.rng.normal(size=(n_offsets or n_rows, rank)).astype(case.dtype)
    ridge = case.rng.uniform(0.5, 3.0, n_rows).astype(case.dtype)
    shift = case.rng.normal(size=len(case.right)).astype(case.dtype) if shifted else None
    scale = case.rng.uniform(0.0, 2.0, n_rows).astype(case.dtype) if scaled else None
    found, expected = case.left.copy(), case.left.copy()
    given = (case.indptr, case.indices, case.data, 2 * case.data, case.right, gram)
    options: dict[str, Any] = {
        "ridge": ridge,
        "gram_scale": scale,
        "shift": shift,
        "method": method,
        "n_threads": n_threads,
    }
    values, expected_values = np.empty(n_rows), np.empty(n_rows)
    kernels.als_solve(*given, offset, found, row_values=values, **options)
    reference.als_solve(*given, offset, expected, ridge, shift, expected_values, method, 3, 1, scale)
    return [found, values], [expected, expected_values]


def both_cholesky(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_als("cholesky", 0.1, 1, case, n_threads)


def both_cholesky_diagonal(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_als("cholesky", 0.0, 0, case, n_threads)


def both_cholesky_shifted(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_als("cholesky", 0.0, 0, case, n_threads, shifted=True)


def both_cholesky_scaled(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_als("cholesky", 0.1, 0, case, n_threads, scaled=True)


def both_cg_scaled(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_als("cg", 0.1, 0, case, n_threads, scaled=True)


def both_cg_shifted(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_als("cg", 0.1, 0, case, n_threads, shifted=True)


def both_cg(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_als("cg", 0.1, 0, case, n_threads)


def both_cg_diagonal(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_als("cg", 0.0, 1, case, n_threads)


def both_draw(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    n_rows, rank = case.left.shape
    precision = (0.1 * reference.gram(case.right, 1) + np.eye(rank)).astype(case.dtype)
    offset, noise = (case.rng.normal(size=(n_rows, rank)).astype(case.dtype) for _ in range(2))
    shift = case.rng.normal(size=len(case.right)).astype(case.dtype)
    found, expected = case.left.copy(), case.left.copy()
    given = (case.indptr, case.indices, case.data, 2 * case.data, case.right, precision)
    means, expected_means = np.empty_like(found), np.empty_like(found)
    sizes, expected_sizes = np.empty((rank, rank + 1)), np.empty((rank, rank + 1))
    kernels.als_draw(
        *given, noise, found, offset=offset, shift=shift, means=means, sizes=sizes, n_threads=n_threads
    )
    reference.als_draw(*given, offset, shift, noise, expected, expected_means, expected_sizes, 1)
    return [found, means, sizes], [expected, expected_means, expected_sizes]


def both_normals(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    expected = np.empty_like(case.left)
    seed, sweep, block, first = 2**40 + 3, 5, 2**31, 2**33 + 1
    found = kernels.normals(
        expected.shape, seed, sweep, block, first_row=first, dtype=case.dtype, n_threads=n_threads
    )
    reference.normals(seed, sweep, block, first, expected, 1)
    return [found * case.left], [expected * case.left]  # the numbers themselves know no case


def both_signs(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    n_rows, weights = len(case.left), case.right.ravel()[:5000]
    length, skip = weights.size, case.rng.integers(-1, max(weights.size, 1), n_rows)
    seed, block, first, size = 2**40 + 3, 2**31, 2**33 + 1, 0.25
    place = {"block": block, "first_row": first, "n_threads": n_threads}
    found, expected = [], []
    for rate in (0.02, 0.5, 1.0):
        got = kernels.signs(skip, length, rate, size, seed, **place)
        room = [np.zeros(n, np.int64) for n in (n_rows + 1, n_rows * length)]
        values = np.zeros(n_rows * length)
        reference.signs(seed, block, first, length, rate, size, skip, *room, values, 1)
        stored = slice(0, room[0][-1])
        both = got[::-1], (values[stored], room[1][stored], room[0])
        for sums, arrays in zip((found, expected), both, strict=True):
            sums.append(sparse.csr_array(arrays, shape=(n_rows, length)) @ weights)
    return found, expected


def _both_ccd(
    curvature: Any, linear: Any, case: Case, n_threads: int, *options: float
) -> tuple[Arrays, Arrays]:
    scale = 1 / np.sqrt(case.left.shape[1])
    left, right = (case.left * scale).astype(case.dtype), (case.right * scale).astype(case.dtype)
    found = [reference.sddmm(case.indptr, case.indices, left, right, 1), left, right]
    expected = [array.copy() for array in found]
    names = ("background", "target", "reg", "l1", "lower", "upper", "inner")
    given = (case.indptr, case.indices, *case.csc)
    kernels.ccd_sweep(
        *given,
        curvature,
        linear,
        *found,
        **dict(zip(names, options, strict=True)),
        n_threads=n_threads,  # type: ignore[arg-type]
    )
    reference.ccd_sweep(*given, np.atleast_1d(curvature), np.atleast_1d(linear), *expected, *options, 1)  # type: ignore[arg-type, call-arg]
    return found, expected


def both_ccd(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_ccd(1.0, case.data, case, n_threads, 0.0, 0.0, 0.3, 0.0, -np.inf, np.inf, 1)


def both_ccd_background(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    return _both_ccd(case.data, 1.5, case, n_threads, 0.4, 0.2, 0.3, 0.05, -0.5, 0.9, 2)


def both_topk(case: Case, n_threads: int) -> tuple[Arrays, Arrays]:
    # Small integers: every score is exact, so ties are ties in both.
    left, right = np.round(case.left), np.round(case.right)
    ids = 3 * np.arange(len(right)) + 1
    exclude = (case.indptr, 3 * case.indices + 1)
    found = kernels.topk(left, right, 7, exclude=exclude, col_ids=ids, n_threads=n_threads)
    expected = reference.topk(left, right, 7, exclude, ids, 1)
    return list(found), list(expected)


CHECKS: dict[str, Callable[[Case, int], tuple[Arrays, Arrays]]] = {
    name.removeprefix("both_"): function
    for name, function in list(globals().items())
    if name.startswith("both_")
}


def tolerance(name: str, dtype: Any) -> float:
    """Rounding that a kernel is allowed; coordinate descent hands it on from one component to the next."""
    if dtype is np.float64:
        return 1e-10
    return 2e-3 if name.startswith("ccd") else 1e-4


def relative_error(found: Arrays, expected: Arrays) -> float:
    """Largest difference relative to the largest expected entry; NaN must meet NaN."""
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        if not np.array_equal(np.isnan(one), np.isnan(other)):
            return np.inf
        difference = np.abs(np.nan_to_num(one.astype(float)) - np.nan_to_num(other.astype(float)))
        size = np.abs(np.nan_to_num(other.astype(float))).max(initial=0.0)
        worst = max(worst, float(difference.max(initial=0.0)) / (size or 1.0))
    return worst


def main() -> int:
    """Print the instruction set and the kernels that do not agree with their twins."""
    print(kernels.provider(), kernels.isa())
    _arguments.WORK_A_THREAD = 1  # or small problems would stay on one thread
    for name, rank, dtype in itertools.product(CHECKS, (3, 17, 64), DTYPES):
        for shape in SHAPES[: 3 if rank == 17 else 1]:
            error = relative_error(*CHECKS[name](make_case(shape, rank, dtype, np.int32), 2))
            if not error <= tolerance(name, dtype):
                print(f"{name} of rank {rank}, {dtype.__name__}, {shape}: relative error {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
