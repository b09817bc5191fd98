"""Bring kernel arguments to the one form that the providers understand.

Nothing gets past that could make native code leave its memory: dtypes, lengths, and indices in range. Indices
are looked at once in each call, or once for all where an array cannot be written to: a fit asks for the same
pattern in every sweep.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.exceptions import ParameterError
from unseen.typing import Array, FloatArray, IndexArray
from unseen.validation import check_count

WORK_A_THREAD = 200_000
"""Multiplications below which waking another thread costs more than it brings."""
MOST_THREADS = 1024
"""More than any machine has use for; a system that runs out of threads ends the process."""
MOST_NUMBERS = 1 << 40
"""Numbers that an answer can have: more than any memory holds, less than overflows a count of bytes."""
LONGEST_LIST = 2**31 - 1


class _Process:
    """What a forked process must know: the threads of the one before are gone, and OpenMP waits for them."""

    threaded = False
    alone = False

    @classmethod
    def forked(cls) -> None:
        """Called in the new process."""
        cls.alone = cls.alone or cls.threaded


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


def threads(n_threads: int, work: int) -> int:
    """Threads worth waking for an amount of work; results do not depend on it."""
    wanted = min(check_count("n_threads", n_threads), MOST_THREADS, work // WORK_A_THREAD)
    if wanted <= 1 or _Process.alone:
        return 1
    _Process.threaded = True
    return wanted


def common_float(*arrays: Any) -> np.dtype[Any]:
    """float32 when every array is float32 (or coarser), otherwise float64; scalars do not count."""
    given = (np.asarray(array) for array in arrays)
    widest = np.result_type(np.float32, *(_numbers(a).dtype for a in given if a.ndim))
    return np.dtype(np.float32 if widest == np.float32 else np.float64)


def _numbers(array: Array, name: str = "an argument") -> Array:
    if array.dtype.kind not in "fiub":
        raise ParameterError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


def dense(name: str, array: npt.ArrayLike, dtype: np.dtype[Any], *, ndim: int = 2) -> FloatArray:
    """C-contiguous array of the given dtype and number of dimensions."""
    result: FloatArray = np.ascontiguousarray(_numbers(np.asarray(array), name), dtype=dtype)
    if result.ndim != ndim:
        raise ParameterError(f"{name} must have {ndim} dimensions, got an array of shape {result.shape}")
    return result


def on_cells(name: str, values: npt.ArrayLike, n_cells: int, dtype: np.dtype[Any]) -> FloatArray:
    """Values for every stored cell; a scalar becomes an array of length one."""
    if np.ndim(values) == 0:
        return np.full(1, _numbers(np.asarray(values), name), dtype=dtype)
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
    if isinstance(array, np.ma.MaskedArray):
        raise ParameterError(f"{name} is written in place and cannot be a masked array")
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise ParameterError(f"{name} is written in place and must be C-contiguous and writeable")
    return array


def table(name: str, array: Array, dtype: np.dtype[Any]) -> FloatArray:
    """Two-dimensional array that a kernel writes to, of any shape."""
    shape = np.shape(array)
    return in_place(name, array, dtype, shape if len(shape) == 2 else (-1, -1))


def number(name: str, value: Any) -> float:
    """A real number, NaN and infinity included."""
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise ParameterError(f"{name} must be a number, got {value!r}")
    return float(value)


def pattern(
    indptr: IndexArray, indices: IndexArray, n_rows: int | None = None, n_cols: int | None = None
) -> tuple[IndexArray, IndexArray]:
    """Compressed pattern with one index width for both arrays, within the given shape."""
    indptr, indices = indices_of("indptr", indptr), indices_of("indices", indices)
    wide = max(indptr.dtype.itemsize, indices.dtype.itemsize) > 4
    dtype = np.int64 if wide else np.int32
    indptr = np.ascontiguousarray(indptr, dtype=dtype)
    indices = np.ascontiguousarray(indices, dtype=dtype)
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
        raise ParameterError(
            f"indptr must start at 0 and end at the number of stored cells ({len(indices)}), got {indptr!r}"
        )
    if n_rows is not None and len(indptr) != n_rows + 1:
        raise ParameterError(f"indptr must have {n_rows + 1} entries for {n_rows} rows, got {len(indptr)}")
    if not _Known.holds(indptr, indices, n_cols):
        if np.any(indptr[1:] < indptr[:-1]):
            raise ParameterError(f"indptr must not decrease, got {indptr!r}")
        if n_cols is not None:
            within("indices", indices, n_cols)
        _Known.add(indptr, indices, n_cols)
    return indptr, indices


def indices_of(name: str, values: npt.ArrayLike, ndim: int = 1) -> IndexArray:
    """Array of integers; a copy only where they are no array yet."""
    array: Array = np.asarray(values)
    if array.ndim != ndim or (array.dtype.kind not in "iu" and array.size):
        raise ParameterError(
            f"{name} must be integers in {ndim} dimensions, got {array.dtype} of shape {array.shape}"
        )
    if array.dtype.kind == "u" and array.dtype.itemsize > 2:  # no width of ours holds all of them
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise ParameterError(f"{name} must be below 2**63, got {array.max()}")
        array = array.astype(np.int64)
    return array if array.dtype.kind == "i" else array.astype(np.int32)


def two_arrays(name: str, value: Any) -> tuple[Any, Any]:
    """What should be ``(indptr, indices)``."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ParameterError(f"{name} must be the pair (indptr, indices), got {type(value).__name__}")
    return value[0], value[1]


def within(name: str, indices: IndexArray, length: int) -> IndexArray:
    """Indices from 0 to ``length - 1``, or an error."""
    if indices.size and (indices.min() < 0 or indices.max() >= length):
        first = indices[(indices < 0) | (indices >= length)].flat[0]
        raise ParameterError(f"{name} must be in 0..{length - 1}, got {first}")
    return indices


def sorted_rows(name: str, indptr: IndexArray, indices: IndexArray) -> None:
    """Refuse rows whose indices do not increase."""
    falls = indices[1:] <= indices[:-1]
    starts = indptr[1:-1]
    falls[starts[(starts > 0) & (starts < len(indices))] - 1] = False
    if falls.any():
        raise ParameterError(f"{name} must increase within each row")


class _Known:
    """Patterns that were found to be in order, by the arrays themselves; none that can be written to."""

    patterns: dict[int, tuple[weakref.ref[Array], weakref.ref[Array], int]] = {}  # noqa: RUF012

    @classmethod
    def holds(cls, indptr: IndexArray, indices: IndexArray, n_cols: int | None) -> bool:
        """Whether this pattern was looked at before, for no more columns than now."""
        found = cls.patterns.get(id(indices))
        return (
            found is not None
            and found[0]() is indices
            and found[1]() is indptr
            and (n_cols is None or found[2] <= n_cols)
        )

    @classmethod
    def add(cls, indptr: IndexArray, indices: IndexArray, n_cols: int | None) -> None:
        """Remember a pattern as long as its arrays live."""
        if n_cols is None or indptr.flags.writeable or indices.flags.writeable:
            return
        key = id(indices)

        def forget(reference: Any) -> None:
            found = cls.patterns.get(key)
            if found is not None and found[0] is reference:
                cls.patterns.pop(key, None)

        cls.patterns[key] = weakref.ref(indices, forget), weakref.ref(indptr), n_cols


def same_rank(**factors: FloatArray) -> None:
    """Refuse factors with different numbers of columns."""
    if len({array.shape[1] for array in factors.values()}) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in factors.items())
        raise ParameterError(f"factors must have the same number of columns, got {shapes}")
