"""The stored cells of a matrix: what every estimator and solver reads."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data.origin import Origin, refuse_list_of_cells, wide_ids
from unseen.data.pattern import (
    CSCPattern,
    Pattern,
    as_indices,
    assemble,
    check_shape,
    check_structure,
    check_weights,
    index_dtype,
    on_stored,
    read_only,
    refuse_outside,
    refused,
    spot,
    stored_coordinates,
)
from unseen.data.times import check_times, latest, shown_time
from unseen.data.vocabulary import Vocabulary
from unseen.exceptions import InvalidDataError
from unseen.typing import CSR, Array, BoolArray, FloatArray, IndexArray, SparseLike
from unseen.validation import (
    check_choice,
    check_indices,
    check_sparse,
    float_dtype,
    refuse_long,
    refuse_masked,
)

if TYPE_CHECKING:
    from unseen.data.frames import FrameBackend

__all__ = ["CSCPattern", "Observations"]

Duplicates = Literal["mean", "sum"]


class Observations:
    """The stored cells of a matrix, immutable, in canonical CSR order.

    What a blank cell means is not decided here: that belongs to the estimator. Stored zeros are
    observations and stay. Build one with `from_any`, `from_sparse`, `from_dense`, `from_triples`
    or `from_frame`.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and columns.
    nnz : int
        Number of stored cells.
    dtype : numpy.dtype
        float32 or float64.
    values : ndarray of shape (nnz,)
        Values in CSR order.
    weights : ndarray of shape (nnz,) or None
        How much each cell counts, in the order of the values; None where all count one. The objective of
        a model is the sum of weight times loss, so a cell of weight 0 says nothing, not even that it is
        blank.
    times : ndarray of shape (nnz,) or None
        When each cell arose, in the order of the values: numbers or datetimes; None where that is not known.
        Splits by time read them, models do not.
    indptr, indices : ndarray
        The CSR pattern, int32 where that is enough, else int64.
    rows : ndarray of shape (nnz,)
        Row of each cell.
    csc : CSCPattern
        The cells column by column, built at the first use.
    row_ids, col_ids : Vocabulary or None
        What the user calls the rows and the columns.
    origin : Origin or None
        Names of the columns and library of the frame that the cells came from.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Observations
    >>> seen = Observations.from_dense([[5.0, np.nan, 1.0], [np.nan, 0.0, np.nan]])
    >>> seen
    Observations(2 x 3, 3 cells = 50%, float64)
    >>> seen.values
    array([5., 1., 0.])
    >>> seen.transpose().shape
    (3, 2)
    """

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

    # --- builders -------------------------------------------------------------------------------

    @classmethod
    def from_any(
        cls,
        X: Any,
        *,
        weights: Any = None,
        times: Any = None,
        duplicates: Duplicates = "mean",
        accept_nan: bool = True,
    ) -> Observations:
        """Take a dense array with NaN for missing, a sparse matrix, a wide frame, or observations.

        Parameters
        ----------
        X : array-like, scipy.sparse, DataFrame or Observations
            Observations are returned as they are. Of a frame with a line for each row and a column for each
            column the names of the columns become ids, and in pandas the index, unless it just counts.
        weights : array-like or scipy.sparse, optional
            How much each cell counts, as `from_dense` and `from_sparse` take it; for observations, an array
            in the order of their values.
        times : array-like or scipy.sparse, optional
            When each cell arose, given like weights.
        duplicates : {"mean", "sum"}, default="mean"
            What to do with cells that are stored more than once.
        accept_nan : bool, default=True
            NaN means missing; otherwise NaN is refused.

        Returns
        -------
        Observations

        Examples
        --------
        >>> from scipy import sparse
        >>> Observations.from_any(sparse.eye_array(3))
        Observations(3 x 3, 3 cells = 33.3%, float64)
        """
        if isinstance(X, Observations):
            weighted = X if weights is None else X.with_weights(weights)
            return weighted if times is None else weighted.with_times(times)
        about = {"weights": weights, "times": times, "accept_nan": accept_nan}
        if sparse.issparse(X):
            return cls.from_sparse(X, duplicates=duplicates, **about)
        ids = wide_ids(X)
        if ids is None:
            return cls.from_dense(X, **about)
        refuse_list_of_cells(X)
        return cls._from_dense(X, ids[0], ids[1], **about)._changed(origin=ids[2])

    @classmethod
    def from_dense(
        cls, X: Any, *, weights: Any = None, times: Any = None, accept_nan: bool = True
    ) -> Observations:
        """Take a dense array: every cell that is not NaN is stored.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_cols)
            Numbers, NaN for missing.
        weights : array-like of shape (n_rows, n_cols), optional
            How much each cell counts; what stands beside a missing cell is ignored.
        times : array-like of shape (n_rows, n_cols), optional
            When each cell arose; what stands beside a missing cell is ignored.
        accept_nan : bool, default=True
            Otherwise NaN is refused.

        Returns
        -------
        Observations

        Examples
        --------
        >>> Observations.from_dense([[1, 2], [3, 4]]).nnz
        4
        """
        return cls._from_dense(X, None, None, weights=weights, times=times, accept_nan=accept_nan)

    @classmethod
    def _from_dense(
        cls,
        X: Any,
        row_ids: Vocabulary | None,
        col_ids: Vocabulary | None,
        *,
        weights: Any,
        times: Any,
        accept_nan: bool,
    ) -> Observations:
        array: Array = check_structure(X)
        array = array.astype(float_dtype(array.dtype), copy=False)
        if np.ma.isMaskedArray(X):  # what is masked is missing
            array = np.where(np.ma.getmaskarray(X), np.nan, array).astype(array.dtype, copy=False)
        stored = ~np.isnan(array)
        if not accept_nan and not stored.all():
            row, col = np.unravel_index(int(np.argmin(stored)), array.shape)
            raise refused(int(row), int(col), array[row, col], (row_ids, col_ids))
        index = index_dtype(array.shape, int(np.count_nonzero(stored)))
        indptr = np.zeros(array.shape[0] + 1, dtype=index)
        np.cumsum(np.count_nonzero(stored, axis=1), out=indptr[1:])
        indices = np.broadcast_to(np.arange(array.shape[1], dtype=index), array.shape)[stored]
        pattern = Pattern(indptr, indices, (array.shape[0], array.shape[1]))
        seen = cls(pattern, array[stored], row_ids, col_ids)._refuse_infinite()
        for name, given in (("weights", weights), ("times", times)):
            if given is not None and np.shape(given) != array.shape:
                raise InvalidDataError(
                    f"{name} must have the shape of X, {array.shape}; got {np.shape(given)}."
                )
        if weights is not None:
            seen = seen.with_weights(np.asarray(weights)[stored])
        return seen if times is None else seen.with_times(np.asarray(times)[stored])

    @classmethod
    def from_sparse(
        cls,
        X: SparseLike,
        *,
        weights: Any = None,
        times: Any = None,
        duplicates: Duplicates = "mean",
        accept_nan: bool = True,
    ) -> Observations:
        """Take a sparse matrix or array of any format: every stored cell is kept, zeros included.

        A canonical CSR matrix of floats is not copied, so it should not be changed afterwards.

        Parameters
        ----------
        X : scipy.sparse matrix or array
            The cells.
        weights : scipy.sparse of the same shape, or array-like, optional
            How much each cell counts: a matrix with an entry for every stored cell of X, or an array in the
            order of ``X.data``.
        times : scipy.sparse of the same shape, or array-like, optional
            When each cell arose, given like weights.
        duplicates : {"mean", "sum"}, default="mean"
            What to do with cells that are stored more than once.
        accept_nan : bool, default=True
            A stored NaN is missing and is dropped; otherwise it is refused.

        Returns
        -------
        Observations

        Examples
        --------
        >>> from scipy import sparse
        >>> Observations.from_sparse(sparse.coo_array(([1.0, 0.0], ([0, 1], [2, 0]))))
        Observations(2 x 3, 2 cells = 33.3%, float64)
        """
        check_structure(X)
        check_sparse(X, "X")
        if weights is not None or times is not None:
            rows, cols = stored_coordinates(X)
            about = {"weights": weights, "times": times}
            on_cells = {name: on_stored(given, rows, cols, X, name) for name, given in about.items()}
            return cls.from_triples(
                rows, cols, X.data, X.shape, duplicates=duplicates, accept_nan=accept_nan, **on_cells
            )
        if X.format == "coo":  # its own conversion to CSR would add up duplicates in silence
            return cls.from_triples(
                X.coords[0], X.coords[1], X.data, X.shape, duplicates=duplicates, accept_nan=accept_nan
            )
        csr = sparse.csr_array(X)
        if not csr.has_sorted_indices:
            csr = csr.sorted_indices()
        if not csr.has_canonical_format:
            rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
            return cls.from_triples(
                rows, csr.indices, csr.data, csr.shape, duplicates=duplicates, accept_nan=accept_nan
            )
        return cls._from_canonical(csr)._without_nan(accept_nan)._refuse_infinite()

    @classmethod
    def from_triples(
        cls,
        rows: Any,
        cols: Any,
        values: Any = None,
        shape: tuple[int, int] | None = None,
        *,
        weights: Any = None,
        times: Any = None,
        duplicates: Duplicates | None = None,
        accept_nan: bool = True,
        row_ids: Vocabulary | None = None,
        col_ids: Vocabulary | None = None,
    ) -> Observations:
        """Take three arrays: row, column and value of each cell.

        Parameters
        ----------
        rows, cols : array-like of int
            Indices from 0.
        values : array-like, optional
            Without values every pair counts one.
        shape : tuple of int, optional
            By default the vocabularies or the largest indices give the shape.
        weights : array-like, optional
            How much each cell counts, zero or larger. Repeated cells add their weights, and average their
            values by them.
        times : array-like, optional
            When each cell arose: numbers, datetimes or ISO 8601 text. Repeated cells keep their latest time.
        duplicates : {"mean", "sum"}, optional
            By default values are averaged and counts are summed.
        accept_nan : bool, default=True
            NaN is missing and is dropped; otherwise it is refused.
        row_ids, col_ids : Vocabulary, optional
            What the indices are called.

        Returns
        -------
        Observations

        Examples
        --------
        >>> Observations.from_triples([0, 1, 1], [0, 2, 0], [5, 3, 4]).csr.toarray()
        array([[5., 0., 0.],
               [4., 0., 3.]])
        """
        how = check_choice("duplicates", duplicates or ("sum" if values is None else "mean"), ("mean", "sum"))
        rows, cols = as_indices("rows", rows), as_indices("cols", cols)
        refuse_masked(values, "values", "leave out the cells that are masked")
        data = np.ones(rows.size) if values is None else np.asarray(values)
        if not rows.size == cols.size == data.size:
            raise InvalidDataError(
                "rows, cols and values must have the same length, "
                f"got {rows.size}, {cols.size} and {data.size}."
            )
        if data.dtype.kind == "c":
            raise InvalidDataError(f"values: Complex data not supported, got dtype {data.dtype}.")
        data = data.astype(float_dtype(data.dtype), copy=False)
        size = check_shape(shape, rows, cols, row_ids, col_ids)
        refuse_outside("rows", rows, size[0])
        refuse_outside("cols", cols, size[1])
        ids = (row_ids, col_ids)
        counts = None if weights is None else check_weights(weights, rows, cols, data.dtype, ids)
        moments = None if times is None else check_times(times, rows, cols, ids)
        stored = np.isfinite(data)
        if not stored.all():
            unusable = np.isinf(data) if accept_nan else ~stored
            if unusable.any():
                first = int(np.argmax(unusable))
                raise refused(int(rows[first]), int(cols[first]), data[first], ids)
            rows, cols, data = rows[stored], cols[stored], data[stored]
            counts = None if counts is None else counts[stored]
            moments = None if moments is None else moments[stored]
        csr, counts = assemble(rows, cols, data, size, how, counts)
        moments = None if moments is None else latest(rows, cols, moments)
        return cls._from_canonical(csr, row_ids, col_ids, counts, moments)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        row: str,
        col: str,
        value: str | None = None,
        weight: str | None = None,
        time: str | None = None,
        duplicates: Duplicates | None = None,
        row_ids: Vocabulary | None = None,
        col_ids: Vocabulary | None = None,
    ) -> Observations:
        """Take a data frame (pandas, polars or pyarrow) with one cell in each line.

        Parameters
        ----------
        frame : DataFrame or Table
            The cells.
        row, col : str
            Columns with the ids of rows and columns: integers, strings or categories.
        value : str, optional
            Column with the values; without it every pair counts one.
        weight : str, optional
            Column with how much each cell counts, zero or larger.
        time : str, optional
            Column with when each cell arose: datetimes, dates, numbers or ISO 8601 text. Moments with a time
            zone are kept in UTC. Of repeated cells the latest time stays.
        duplicates : {"mean", "sum"}, optional
            By default values are averaged and counts are summed.
        row_ids, col_ids : Vocabulary, optional
            Ids in the order wanted; an id outside of it is an error. By default the sorted ids found.

        Returns
        -------
        Observations
            With vocabularies.

        Examples
        --------
        >>> import pandas as pd
        >>> visits = pd.DataFrame({"who": ["ann", "bob", "ann"], "page": [7, 7, 9]})
        >>> seen = Observations.from_frame(visits, row="who", col="page")
        >>> seen.row_ids
        Vocabulary(2 ids: 'ann', 'bob')
        """
        from unseen.data.frames import frame_to_triples, open_frame

        found = frame_to_triples(
            frame, row, col, {"value": value, "weight": weight, "time": time}, row_ids, col_ids
        )
        origin = Origin.of(open_frame(frame), row=row, col=col, value=value, weight=weight)
        cells = cls.from_triples(
            found.rows,
            found.cols,
            found.values,
            weights=found.weights,
            times=found.times,
            duplicates=duplicates,
            row_ids=found.row_ids,
            col_ids=found.col_ids,
        )
        return cells._changed(origin=origin)

    @classmethod
    def _from_canonical(
        cls,
        csr: CSR,
        row_ids: Vocabulary | None = None,
        col_ids: Vocabulary | None = None,
        weights: FloatArray | None = None,
        times: Array | None = None,
    ) -> Observations:
        index = index_dtype(csr.shape, csr.nnz)
        # Arrays longer than the number of cells are legal in CSR; nobody below should see the surplus.
        pattern = Pattern(
            csr.indptr.astype(index, copy=False),
            csr.indices[: csr.nnz].astype(index, copy=False),
            (int(csr.shape[0]), int(csr.shape[1])),
        )
        values = csr.data[: csr.nnz].astype(float_dtype(csr.dtype), copy=False)
        return cls(pattern, values, row_ids, col_ids, weights, times=times)

    def _without_nan(self, accept_nan: bool) -> Observations:
        missing = np.isnan(self.values)
        if not missing.any():
            return self
        if not accept_nan:
            first = int(np.argmax(missing))
            raise refused(*self._pattern.locate(first), self.values[first], (self.row_ids, self.col_ids))
        return self.select(~missing)

    def _refuse_infinite(self) -> Observations:
        infinite = np.isinf(self.values)
        if infinite.any():
            first = int(np.argmax(infinite))
            raise refused(*self._pattern.locate(first), self.values[first], (self.row_ids, self.col_ids))
        return self

    # --- views ----------------------------------------------------------------------------------

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

    def transpose(self) -> Observations:
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

    def _changed(self, **parts: Any) -> Observations:
        """The same with other parts; every part that is not named is kept."""
        kept = ("_pattern", "values", "row_ids", "col_ids", "weights", "origin", "times")
        return Observations(*(parts[name] if name in parts else getattr(self, name) for name in kept))

    def to_columns(self, values: Array) -> tuple[IndexArray, IndexArray, Array]:
        """``indptr``, ``indices`` and the given values, column by column."""
        return self._pattern.to_columns(values)

    def with_values(self, values: Any) -> Observations:
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

    def with_weights(self, weights: Any) -> Observations:
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
        >>> Observations.from_dense([[1.0, 2.0]]).with_weights([0.5, 1.0]).weights
        array([0.5, 1. ])
        """
        checked = None
        if weights is not None:
            ids = (self.row_ids, self.col_ids)
            checked = check_weights(weights, self.rows, self.indices, self.dtype, ids)
        return self._changed(weights=checked)

    def with_times(self, times: Any) -> Observations:
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
        >>> Observations.from_dense([[1.0, 2.0]]).with_times(["2024-05-31", "2024-06-01"])
        Observations(1 x 2, 2 cells = 100%, float64, times 2024-05-31..2024-06-01)
        """
        ids = (self.row_ids, self.col_ids)
        return self._changed(
            times=None if times is None else check_times(times, self.rows, self.indices, ids)
        )

    def with_ids(self, row_ids: Vocabulary | None, col_ids: Vocabulary | None) -> Observations:
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

    def select(self, mask: npt.ArrayLike) -> Observations:
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

    def __getitem__(self, rows: Any) -> Observations:
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
