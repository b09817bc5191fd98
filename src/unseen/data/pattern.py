"""Which cells are stored, and how cells become canonical CSR."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from scipy import sparse

from unseen.data.vocabulary import Vocabulary
from unseen.exceptions import DataWarning, InvalidDataError, NotNumbersError
from unseen.typing import CSR, Array, FloatArray, IndexArray
from unseen.validation import check_sparse, refuse_long, refuse_masked

__all__ = [
    "CSCPattern",
    "Pattern",
    "SideIds",
    "as_indices",
    "assemble",
    "check_shape",
    "check_structure",
    "check_weights",
    "index_dtype",
    "on_stored",
    "read_only",
    "refuse_outside",
    "refused",
    "spot",
    "stored_coordinates",
]

_A = TypeVar("_A", bound=Array)


@dataclass(frozen=True)
class CSCPattern:
    """The stored cells, column by column; `order[t]` is the place of cell `t` in row order."""

    indptr: IndexArray
    indices: IndexArray
    order: IndexArray


class Pattern:
    """Which cells are stored. Shared by all `Observations` that differ in their values only."""

    def __init__(self, indptr: IndexArray, indices: IndexArray, shape: tuple[int, int]) -> None:
        self.indptr = read_only(indptr)
        self.indices = read_only(indices)
        self.shape = shape

    @cached_property
    def rows(self) -> IndexArray:
        """Row of each cell."""
        numbers = np.arange(self.shape[0], dtype=self.indices.dtype)
        return read_only(np.repeat(numbers, np.diff(self.indptr)))

    @cached_property
    def csc(self) -> CSCPattern:
        """The cells column by column."""
        positions = np.arange(self.indices.size, dtype=self.indices.dtype)
        by_column = sparse.csr_array((positions, self.indices, self.indptr), shape=self.shape).tocsc()
        parts = (by_column.indptr, by_column.indices, by_column.data)
        return CSCPattern(*(read_only(part.astype(self.indices.dtype, copy=False)) for part in parts))

    def to_columns(self, values: Array) -> tuple[IndexArray, IndexArray, Array]:
        """``indptr``, ``indices`` and values column by column; unlike :attr:`csc`, nothing is kept."""
        if "csc" in self.__dict__:
            return self.csc.indptr, self.csc.indices, values[self.csc.order]
        by_column = sparse.csr_array((values, self.indices, self.indptr), shape=self.shape).tocsc()
        index = self.indices.dtype
        return (
            by_column.indptr.astype(index, copy=False),
            by_column.indices.astype(index, copy=False),
            by_column.data,
        )

    def locate(self, position: int) -> tuple[int, int]:
        """Row and column of a stored cell."""
        row = int(np.searchsorted(self.indptr, position, side="right")) - 1
        return row, int(self.indices[position])


def read_only(array: _A) -> _A:
    """Return a contiguous view that cannot be written to; the caller's own array stays as it was."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return cast(_A, view)


def index_dtype(shape: tuple[int, ...], nnz: int) -> np.dtype[Any]:
    """Return the narrowest of int32 and int64 that can count rows, columns and cells."""
    return np.dtype(np.int32 if max(*shape, nnz) <= np.iinfo(np.int32).max else np.int64)


SideIds: TypeAlias = tuple[Vocabulary | None, Vocabulary | None]
"""What rows and columns are called."""


def refused(row: int, col: int, value: Any, ids: SideIds = (None, None)) -> InvalidDataError:
    """Return the error for a value that cannot be observed."""
    accepted = "finite values" if np.isnan(value) else "finite values, or NaN for a missing cell"
    return InvalidDataError(f"X holds {value} in {spot(row, col, ids)}; {accepted} would be accepted.")


def spot(row: int, col: int, ids: SideIds = (None, None)) -> str:
    """A cell in words, by the names of its row and column where they have some."""
    at_row, at_col = (
        str(place) if names is None else repr(names[place].item())
        for place, names in zip((row, col), ids, strict=True)
    )
    return f"row {at_row}, column {at_col}"


def check_structure(X: Any) -> Any:
    """Check dimensions, kind of numbers and emptiness as scikit-learn does; values are seen to later."""
    from sklearn.utils.validation import check_array  # many modules that other kinds of data do without

    kind = None if sparse.issparse(X) else "numeric"
    if isinstance(X, np.matrix):
        X = np.asarray(X)
    try:
        return check_array(X, accept_sparse=True, dtype=kind, ensure_all_finite=False, input_name="X")
    except TypeError as error:
        raise NotNumbersError(f"X must hold numbers: {error}.") from error
    except ValueError as error:
        raise InvalidDataError(str(error)) from error


def as_indices(name: str, values: Any) -> IndexArray:
    """Return a one-dimensional array of integers, or refuse."""
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise InvalidDataError(
            f"{name} must be a one-dimensional array of integers, got {array.dtype} of shape {array.shape}. "
            "Observations.from_frame takes ids of other kinds."
        )
    return array if array.size else array.astype(np.int64)


def refuse_outside(name: str, indices: IndexArray, length: int) -> None:
    """Raise if an index is not in 0..length-1."""
    if indices.size and (indices.min() < 0 or indices.max() >= length):
        first = int(np.argmax((indices < 0) | (indices >= length)))
        raise InvalidDataError(f"{name}[{first}] is {indices[first]}, outside of 0..{length - 1}.")


def check_shape(
    shape: tuple[int, int] | None,
    rows: IndexArray,
    cols: IndexArray,
    row_ids: Vocabulary | None,
    col_ids: Vocabulary | None,
) -> tuple[int, int]:
    """Return the shape, found from ids or indices where it is not given; an empty side is refused."""
    if shape is None:
        n_rows, n_cols = (
            len(ids) if ids is not None else (int(indices.max()) + 1 if indices.size else 0)
            for ids, indices in ((row_ids, rows), (col_ids, cols))
        )
        shape = (n_rows, n_cols)
    for axis, kind in ((0, "sample"), (1, "feature")):
        if shape[axis] < 1:
            raise InvalidDataError(
                f"Found array with 0 {kind}(s) (shape={tuple(shape)}) while a minimum of 1 is required."
            )
    refuse_long("X", shape)
    return int(shape[0]), int(shape[1])


def check_weights(
    weights: Any, rows: IndexArray, cols: IndexArray, dtype: np.dtype[Any], ids: SideIds = (None, None)
) -> FloatArray:
    """Return weights of cells in the given type; negative, infinite and missing ones are refused."""
    refuse_masked(weights, "weights", "give a weight of zero to what is not to count")
    array = np.asarray(weights)
    if array.shape != rows.shape or array.dtype.kind not in "fiub":
        raise InvalidDataError(
            f"weights must hold {rows.size} numbers, one a cell; got {array.dtype} of shape {array.shape}."
        )
    array = array.astype(dtype, copy=False)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        first = int(np.argmax(bad))
        raise InvalidDataError(
            f"weights holds {array[first]} for {spot(int(rows[first]), int(cols[first]), ids)}; "
            "finite numbers >= 0 would be accepted."
        )
    return array


def stored_coordinates(X: Any) -> tuple[IndexArray, IndexArray]:
    """Row and column of each stored cell of a sparse matrix, in the order of its data."""
    if X.format in ("csr", "csc"):
        check_sparse(X, "X")
        major = np.repeat(np.arange(len(X.indptr) - 1), np.diff(X.indptr))
        minor = X.indices[: major.size]
        return (major, minor) if X.format == "csr" else (minor, major)
    if X.format == "coo":
        return X.coords[0], X.coords[1]
    raise InvalidDataError(
        f"weights and times need X as CSR, CSC or COO, got {X.format!r}; call X.tocsr() first."
    )


def on_stored(given: Any, rows: IndexArray, cols: IndexArray, X: Any, name: str) -> Any:
    """Weights or times in the order of the data of ``X``, from an array of that order or a matrix."""
    if not sparse.issparse(given):
        return given
    check_sparse(given, name)
    known: CSR = sparse.csr_array(cast(Any, given))
    if known.shape != X.shape:
        raise InvalidDataError(f"{name} must have the shape of X, {X.shape}; got {known.shape}.")
    there = sparse.csr_array((np.ones(known.nnz), known.indices, known.indptr), shape=known.shape)
    missing = np.asarray(there[rows, cols]).ravel() == 0
    if missing.any():
        first = int(np.argmax(missing))
        hint = "; store a 0 for a cell that is not to count" if name == "weights" else ""
        raise InvalidDataError(
            f"{name} has no entry for row {rows[first]}, column {cols[first]}, which X stores "
            f"({int(missing.sum())} such cells){hint}."
        )
    return np.asarray(known[rows, cols]).ravel()


def assemble(
    rows: IndexArray,
    cols: IndexArray,
    data: FloatArray,
    shape: tuple[int, int],
    how: str,
    weights: FloatArray | None = None,
) -> tuple[CSR, FloatArray | None]:
    """Sort cells, and their weights, into CSR; repeated ones are merged, with a warning."""

    def added(values: Array) -> CSR:
        total = sparse.csr_array((values, (rows, cols)), shape=shape)
        total.sum_duplicates()
        return total

    csr = added(data)
    repeated = data.size - csr.nnz
    if not repeated:
        return csr, None if weights is None else added(weights).data
    verb = {"mean": "averaged", "sum": "summed"}[how]
    warnings.warn(
        f"{repeated} of {data.size} cells repeat another one; duplicates were {verb}.",
        DataWarning,
        stacklevel=4,
    )
    # Repeated cells are added up again in float64: float32 would lose digits on long runs.
    wide = data.astype(np.float64)
    total = added(wide).data
    sums = None if weights is None else added(weights.astype(np.float64)).data
    if how == "mean":
        total /= added(np.ones(data.size)).data
        if weights is not None and sums is not None:
            # Where all weights of a cell are zero its value does not matter.
            np.divide(added(wide * weights).data, sums, out=total, where=sums > 0)
    csr.data = total.astype(data.dtype)
    if not np.isfinite(csr.data).all():
        raise InvalidDataError("merging duplicates overflowed; values of smaller size would be accepted.")
    return csr, None if sums is None else sums.astype(data.dtype)
