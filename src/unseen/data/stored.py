"""What can be asked of stored cells, and what can be changed in a copy of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data.origin import Origin
from unseen.data.pattern import CSCPattern, Pattern, check_weights, read_only, refused, spot
from unseen.data.times import check_times, shown_time
from unseen.data.vocabulary import Vocabulary
from unseen.exceptions import InvalidDataError
from unseen.typing import CSR, Array, BoolArray, FloatArray, IndexArray
from unseen.validation import check_indices, float_dtype, refuse_long

if TYPE_CHECKING:
    from unseen.data.frames import FrameBackend

__all__ = ["StoredTable"]


class StoredTable:
    """Pattern, values, weights, times and ids of stored cells; `Observations` says how to build them."""

    def __init__(
        self,
        pattern: Pattern,
        values: FloatArray,
        row_ids: Vocabulary | None = None,
        col_ids: Vocabulary | None = None,
        weights: FloatArray | None = None,
        origin: Origin | None = None,
        times: Array | None = None,
    ) -> None:
        refuse_long("X", pattern.shape)
        self._pattern = pattern
        self.values: FloatArray = read_only(values)
        self.weights: FloatArray | None = None if weights is None else read_only(weights)
        self.times: Array | None = None if times is None else read_only(times)
        for name, ids, length in (("row_ids", row_ids, self.shape[0]), ("col_ids", col_ids, self.shape[1])):
            if ids is not None and len(ids) != length:
                raise InvalidDataError(f"{name} holds {len(ids)} ids, but the matrix has {length}.")
        self.row_ids = row_ids
        self.col_ids = col_ids
        self.origin = origin

    def _without_nan(self, accept_nan: bool) -> Self:
        missing = np.isnan(self.values)
        if not missing.any():
            return self
        if not accept_nan:
            first = int(np.argmax(missing))
            raise refused(*self._pattern.locate(first), self.values[first], (self.row_ids, self.col_ids))
        return self.select(~missing)

    def _refuse_infinite(self) -> Self:
        infinite = np.isinf(self.values)
        if infinite.any():
            first = int(np.argmax(infinite))
            raise refused(*self._pattern.locate(first), self.values[first], (self.row_ids, self.col_ids))
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self._pattern.shape

    @property
    def nnz(self) -> int:
        """Number of stored cells."""
        return int(self.values.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values, float32 or float64."""
        return self.values.dtype

    @property
    def indptr(self) -> IndexArray:
        """Where each row begins."""
        return self._pattern.indptr

    @property
    def indices(self) -> IndexArray:
        """Column of each cell."""
        return self._pattern.indices

    @property
    def rows(self) -> IndexArray:
        """Row of each cell."""
        return self._pattern.rows

    @property
    def csc(self) -> CSCPattern:
        """The pattern column by column."""
        return self._pattern.csc

    @cached_property
    def csr(self) -> CSR:
        """A canonical `csr_array` that shares memory with these observations."""
        csr = sparse.csr_array((self.values, self.indices, self.indptr), shape=self.shape)
        csr.has_canonical_format = True
        return csr

    def transpose(self) -> Self:
        """Swap rows and columns."""
        indptr, indices, values = self.to_columns(self.values)
        return self._changed(
            _pattern=Pattern(indptr, indices, (self.shape[1], self.shape[0])),
            values=values,
            row_ids=self.col_ids,
            col_ids=self.row_ids,
            origin=None if self.origin is None else self.origin.transposed(),
            weights=None if self.weights is None else self.to_columns(self.weights)[2],
            times=None if self.times is None else self._times_by_column(self.times),
        )

    def _times_by_column(self, times: Array) -> Array:
        bits: Array = self.to_columns(times.view(np.int64))[2]  # SciPy has no datetimes
        return bits.view(times.dtype)

    def _changed(self, **parts: Any) -> Self:
        """The same with other parts; every part that is not named is kept."""
        kept = ("_pattern", "values", "row_ids", "col_ids", "weights", "origin", "times")
        return type(self)(*(parts[name] if name in parts else getattr(self, name) for name in kept))

    def to_columns(self, values: Array) -> tuple[IndexArray, IndexArray, Array]:
        """``indptr``, ``indices`` and the given values, column by column."""
        return self._pattern.to_columns(values)

    def with_values(self, values: Any) -> Self:
        """Keep the cells and change their values.

        Parameters
        ----------
        values : array-like of shape (nnz,)
            In the order of `values`; NaN and infinity are refused.

        Returns
        -------
        Observations
        """
        array = np.asarray(values)
        if array.shape != self.values.shape:
            raise InvalidDataError(f"values must have shape {self.values.shape}, got {array.shape}.")
        array = array.astype(float_dtype(array.dtype), copy=False)
        changed = self._changed(values=array)
        changed._without_nan(accept_nan=False)
        return changed._refuse_infinite()

    def with_weights(self, weights: Any) -> Self:
        """Keep cells and values, and change how much each cell counts.

        Parameters
        ----------
        weights : array-like of shape (nnz,) or None
            In the order of `values`, zero or larger; None lets every cell count one.

        Returns
        -------
        Observations

        Examples
        --------
        >>> from unseen import Observations
        >>> Observations.from_dense([[1.0, 2.0]]).with_weights([0.5, 1.0]).weights
        array([0.5, 1. ])
        """
        checked = None
        if weights is not None:
            ids = (self.row_ids, self.col_ids)
            checked = check_weights(weights, self.rows, self.indices, self.dtype, ids)
        return self._changed(weights=checked)

    def with_times(self, times: Any) -> Self:
        """Keep cells and values, and change when each cell arose.

        Parameters
        ----------
        times : array-like of shape (nnz,) or None
            In the order of `values`: numbers, datetimes or ISO 8601 text; None forgets them.

        Returns
        -------
        Observations

        Examples
        --------
        >>> from unseen import Observations
        >>> Observations.from_dense([[1.0, 2.0]]).with_times(["2024-05-31", "2024-06-01"])
        Observations(1 x 2, 2 cells = 100%, float64, times 2024-05-31..2024-06-01)
        """
        ids = (self.row_ids, self.col_ids)
        return self._changed(
            times=None if times is None else check_times(times, self.rows, self.indices, ids)
        )

    def with_ids(self, row_ids: Vocabulary | None, col_ids: Vocabulary | None) -> Self:
        """Keep cells and values, and change what rows and columns are called.

        Parameters
        ----------
        row_ids, col_ids : Vocabulary or None
            The new names; None takes them away.

        Returns
        -------
        Observations
        """
        return self._changed(row_ids=row_ids, col_ids=col_ids)

    def id_name(self, side: str) -> str | None:
        """Name of the column that the ids of one side came from, where it is known."""
        if self.origin is None:
            return None
        return self.origin.row if side == "row" else self.origin.col

    def spot(self, at: int) -> str:
        """One of the stored cells in words, by the ids of its row and column where they have some.

        Parameters
        ----------
        at : int
            Place of the cell in ``values``.

        Returns
        -------
        str
        """
        return spot(int(self.rows[at]), int(self.indices[at]), (self.row_ids, self.col_ids))

    def select(self, mask: npt.ArrayLike) -> Self:
        """Keep some of the cells; shape, ids, weights and times stay.

        Parameters
        ----------
        mask : array-like of bool, shape (nnz,)
            True for the cells to keep.

        Returns
        -------
        Observations
        """
        keep: BoolArray = np.asarray(mask)
        if keep.dtype != np.bool_ or keep.shape != self.values.shape:
            raise InvalidDataError(
                f"mask must be boolean of shape {self.values.shape}, got {keep.dtype} of {keep.shape}."
            )
        before = np.zeros(keep.size + 1, dtype=self.indptr.dtype)
        np.cumsum(keep, out=before[1:])
        pattern = Pattern(before[self.indptr], self.indices[keep], self.shape)
        return self._changed(
            _pattern=pattern,
            values=self.values[keep],
            weights=None if self.weights is None else self.weights[keep],
            times=None if self.times is None else self.times[keep],
        )

    def __getitem__(self, rows: Any) -> Self:
        """Some rows, in the order asked for; their ids, weights and times go with them.

        Parameters
        ----------
        rows : slice, array-like of int, or mask of shape (n_rows,)
            Positions of rows. As in NumPy, an ellipsis may follow.

        Returns
        -------
        Observations
            With all columns.

        Examples
        --------
        >>> from unseen import Observations
        >>> Observations.from_dense([[1.0, 2.0], [np.nan, 3.0]])[[1]].values
        array([3.])
        """
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        if isinstance(rows, tuple) or (np.ndim(rows) == 0 and not isinstance(rows, slice)):
            raise InvalidDataError(f"Observations take several rows, as in cells[[0, 2]]; got {rows!r:.60}.")
        if isinstance(rows, slice):
            picked = np.arange(self.shape[0])[rows]
        elif np.asarray(rows).dtype == np.bool_:
            if np.shape(rows) != (self.shape[0],):
                raise InvalidDataError(f"a mask must have shape ({self.shape[0]},), got {np.shape(rows)}.")
            picked = np.flatnonzero(rows)
        elif self.row_ids is not None and np.asarray(rows).dtype.kind in "USO":
            first = np.asarray(rows).ravel()[0]
            raise InvalidDataError(
                f"Observations take positions of rows, got {str(first)!r}; "
                f"cells[cells.row_ids.index_of([{str(first)!r}])] takes rows by id"
            )
        else:
            picked = check_indices("rows", rows, self.shape[0])
        if self.row_ids is not None and np.unique(picked).size < picked.size:
            raise InvalidDataError("rows holds a row more than once, and ids must be unique.")
        counts = np.diff(self.indptr)[picked]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(self.indptr.dtype)
        place = np.arange(indptr[-1]) + np.repeat(self.indptr[picked] - indptr[:-1], counts)
        return self._changed(
            _pattern=Pattern(indptr, self.indices[place], (picked.size, self.shape[1])),
            values=self.values[place],
            row_ids=None if self.row_ids is None else Vocabulary(self.row_ids.values[picked]),
            weights=None if self.weights is None else self.weights[place],
            times=None if self.times is None else self.times[place],
        )

    def degrees(self, side: str) -> FloatArray:
        """Sum of the weights of the cells of each row (``"row"``) or column (``"col"``).

        Parameters
        ----------
        side : {"row", "col"}
            Which.

        Returns
        -------
        ndarray of float64
            The number of cells where none has a weight.
        """
        if self.weights is None and side == "row":
            return np.diff(self.indptr).astype(np.float64)
        picked, length = (self.rows, self.shape[0]) if side == "row" else (self.indices, self.shape[1])
        return np.bincount(picked, self.weights, minlength=length).astype(np.float64)

    def to_frame(
        self,
        backend: FrameBackend = "pandas",
        *,
        row: str = "row",
        col: str = "col",
        value: str = "value",
        weight: str = "weight",
        time: str = "time",
    ) -> Any:
        """One line for each cell, with the user's ids where known.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Library of the result.
        row, col, value, weight, time : str
            Names of the columns; the last two are there only if cells have weights and times.

        Returns
        -------
        DataFrame or Table

        Examples
        --------
        >>> from unseen import Observations
        >>> Observations.from_triples([0, 1], [1, 0], [2.5, 3.5]).to_frame()["value"].tolist()
        [2.5, 3.5]
        """
        from unseen.data.frames import triples_to_frame

        return triples_to_frame(self, backend, row, col, value, weight, time)

    def __repr__(self) -> str:
        share = self.nnz / (self.shape[0] * self.shape[1])
        cells = f"{self.nnz:,} cells = {100 * share:.3g}%"
        parts = [f"{self.shape[0]:,} x {self.shape[1]:,}", cells, str(self.dtype)]
        for name, ids in (("row", self.row_ids), ("col", self.col_ids)):
            if ids is not None:
                parts.append(f"{name} ids [{ids.sample()}]")
        for name, about in (("weights", self.weights), ("times", self.times)):
            if about is not None:
                span = f" {shown_time(about.min())}..{shown_time(about.max())}" if about.size else ""
                parts.append(name + span)
        return f"Observations({', '.join(parts)})"
