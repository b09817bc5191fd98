"""Bring kernel arguments to the one form that the providers understand.

Cheap by design: dtypes, contiguity and lengths. Values, and indices in range, are the business of
:mod:`unseen.validation`, long before a kernel is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.exceptions import ParameterError
from unseen.typing import Array, FloatArray, IndexArray

WORK_A_THREAD = 200_000
"""Multiplications below which waking another thread costs more than it brings."""


def threads(n_threads: int, work: int) -> int:
    """Threads worth waking for an amount of work; results do not depend on it."""
    return max(1, min(n_threads, work // WORK_A_THREAD))


def common_float(*arrays: Any) -> np.dtype[Any]:
    """float32 when every array is float32 (or coarser), otherwise float64; scalars do not count."""
    widest = np.result_type(np.float32, *(a.dtype for a in arrays if isinstance(a, np.ndarray) and a.ndim))
    return np.dtype(np.float32 if widest == np.float32 else np.float64)


def dense(name: str, array: npt.ArrayLike, dtype: np.dtype[Any], *, ndim: int = 2) -> FloatArray:
    """C-contiguous array of the given dtype and number of dimensions."""
    result: FloatArray = np.ascontiguousarray(array, dtype=dtype)
    if result.ndim != ndim:
        raise ParameterError(f"{name} must have {ndim} dimensions, got an array of shape {result.shape}")
    return result


def on_cells(name: str, values: npt.ArrayLike, n_cells: int, dtype: np.dtype[Any]) -> FloatArray:
    """Values for every stored cell; a scalar becomes an array of length one."""
    if np.ndim(values) == 0:
        return np.full(1, values, dtype=dtype)
    result = dense(name, values, dtype, ndim=1)
    if len(result) != n_cells:
        raise ParameterError(
            f"{name} must be a scalar or have {n_cells} values, one a cell; got {len(result)}"
        )
    return result


def in_place(name: str, array: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> FloatArray:
    """Array that a kernel writes to: it cannot be converted, only refused."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
        found = (
            f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        )
        raise ParameterError(f"{name} is written in place and must be {dtype} of shape {shape}, got {found}")
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise ParameterError(f"{name} is written in place and must be C-contiguous and writeable")
    return array


def pattern(
    indptr: IndexArray, indices: IndexArray, n_rows: int | None = None
) -> tuple[IndexArray, IndexArray]:
    """Compressed pattern with one index width for both arrays."""
    wide = np.result_type(indptr, indices).itemsize > 4
    dtype = np.int64 if wide else np.int32
    indptr = np.ascontiguousarray(indptr, dtype=dtype)
    indices = np.ascontiguousarray(indices, dtype=dtype)
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
        raise ParameterError(
            f"indptr must start at 0 and end at the number of stored cells ({len(indices)}), got {indptr!r}"
        )
    if n_rows is not None and len(indptr) != n_rows + 1:
        raise ParameterError(f"indptr must have {n_rows + 1} entries for {n_rows} rows, got {len(indptr)}")
    return indptr, indices


def same_rank(**factors: FloatArray) -> None:
    """Refuse factors with different numbers of columns."""
    if len({array.shape[1] for array in factors.values()}) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in factors.items())
        raise ParameterError(f"factors must have the same number of columns, got {shapes}")
