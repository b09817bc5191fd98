"""Indices, and what all arrays and sparse matrices must be."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.exceptions import InvalidDataError, TooLargeError

__all__ = [
    "check_entries",
    "check_index_pairs",
    "check_indices",
    "check_sparse",
    "float_dtype",
    "refuse_long",
    "refuse_masked",
]

LONGEST_SIDE = 1 << 33
"""Rows or columns that a matrix can have: one number for each of them fills 64 GiB."""


def check_entries(
    rows: Any, cols: Any, shape: tuple[int, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Check pairs of row and column indices.

    Parameters
    ----------
    rows, cols : array-like of int
        Indices from 0, one-dimensional and of equal length; a single integer counts as length one.
    shape : tuple of int
        Number of rows and columns.

    Examples
    --------
    >>> check_entries([0, 1], [2, 0], (2, 3))
    (array([0, 1]), array([2, 0]))
    """
    checked = (check_indices("rows", rows, shape[0]), check_indices("cols", cols, shape[1]))
    if checked[0].shape != checked[1].shape:
        raise InvalidDataError(
            f"rows and cols must have the same length, got {checked[0].size} and {checked[1].size}."
        )
    return checked


def check_index_pairs(name: str, pairs: Any, shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Check pairs of indices, given as an array with two columns.

    Parameters
    ----------
    pairs : array-like of int, shape (n_pairs, 2)
        What the user passed.
    shape : tuple of int
        What the first and the second of each pair must stay below.

    Examples
    --------
    >>> check_index_pairs("pairs", [[0, 2]], (2, 3))
    array([[0, 2]])
    """
    refuse_masked(pairs, name)
    given = np.asarray(pairs)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise InvalidDataError(
            f"{name} must be integers of shape (n_pairs, 2), got {given.dtype} of shape {given.shape}."
        )
    bad = ((given < 0) | (given >= np.array(shape))).any(axis=1)
    if bad.any():
        place = int(np.argmax(bad))
        first, second = given[place].tolist()
        raise InvalidDataError(
            f"{name}[{place}] is ({first}, {second}), outside of 0..{shape[0] - 1} and 0..{shape[1] - 1}."
        )
    return given.astype(np.int64, copy=False)


def check_indices(name: str, values: Any, length: int) -> npt.NDArray[np.int64]:
    """Check indices from 0 into something of a length; a single integer counts as an array of one.

    Parameters
    ----------
    values : array-like of int
        What the user passed.
    length : int
        What they must stay below.

    Examples
    --------
    >>> check_indices("rows", 2, 3)
    array([2])
    """
    refuse_masked(values, name)
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1:
        raise InvalidDataError(f"{name} must be one-dimensional, got an array of shape {array.shape}.")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidDataError(f"{name} must hold integers, got dtype {array.dtype}.")
    bad = (array < 0) | (array >= length)
    if bad.any():
        first = int(np.argmax(bad))
        raise InvalidDataError(f"{name}[{first}] is {array[first]}, outside of 0..{length - 1}.")
    return array.astype(np.int64, copy=False)


def float_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The floating type that data of some type is kept in: float32 stays, all else becomes float64.

    Parameters
    ----------
    dtype : dtype
        Type of the data as it came.

    Examples
    --------
    >>> float_dtype(np.int8)
    dtype('float64')
    """
    return np.dtype(np.float32) if np.dtype(dtype) == np.float32 else np.dtype(np.float64)


def check_sparse(matrix: Any, name: str) -> None:
    """Refuse a sparse matrix that points outside of itself: native code of any library would follow it.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        Of any format.
    """
    try:
        if matrix.format in ("csr", "csc"):
            matrix.check_format(full_check=True)
            if np.any(matrix.indptr[1:] < matrix.indptr[:-1]):  # a last entry below zero passes for no entry
                raise ValueError("indptr must not decrease")
        elif matrix.format == "coo":
            for indices, length in zip(matrix.coords, matrix.shape, strict=True):
                if indices.size and not 0 <= indices.min() <= indices.max() < length:
                    raise ValueError(f"an index is outside of 0..{length - 1}")
        elif matrix.format == "bsr":
            matrix.check_format(full_check=True)
        elif matrix.format == "lil":
            if any(len(cols) != len(values) for cols, values in zip(matrix.rows, matrix.data, strict=True)):
                raise ValueError("a row has other numbers of indices than of values")
            if any(cols and not 0 <= min(cols) <= max(cols) < matrix.shape[1] for cols in matrix.rows):
                raise ValueError(f"an index is outside of 0..{matrix.shape[1] - 1}")
        elif matrix.format == "dok":
            length, width = matrix.shape
            if any(not (0 <= row < length and 0 <= col < width) for row, col in matrix.keys()):  # noqa: SIM118
                raise ValueError(f"a key is outside of {length} x {width}")
    except ValueError as error:
        raise InvalidDataError(f"{name} is not a valid sparse matrix: {error}.") from error


def refuse_long(name: str, shape: tuple[int, ...]) -> None:
    """Refuse a matrix with a side for which this machine has no array."""
    longest = min(LONGEST_SIDE, _memory() // 8)
    if max(shape, default=0) > longest:
        raise TooLargeError(
            f"{name} has shape {tuple(shape)}; a side of at most {longest} is accepted, a number for each of "
            "which fits into memory. Observations.from_frame numbers only the ids that occur."
        )


@cache
def _memory() -> int:
    """Bytes of memory of this machine; without an end where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


def refuse_masked(values: Any, name: str, hint: str = "fill in or leave out what is masked") -> None:
    """Refuse arrays with a mask, which would be lost: what it hides must not count."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InvalidDataError(f"{name} is a masked array with masked entries; {hint}.")
