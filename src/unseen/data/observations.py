"""The stored cells of a matrix: what every estimator and solver reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
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
    refuse_outside,
    refused,
    stored_coordinates,
)
from unseen.data.stored import StoredTable
from unseen.data.times import check_times, latest
from unseen.data.vocabulary import Vocabulary
from unseen.exceptions import InvalidDataError
from unseen.typing import CSR, Array, FloatArray, SparseLike
from unseen.validation import (
    check_choice,
    check_sparse,
    float_dtype,
    refuse_masked,
)

if TYPE_CHECKING:
    pass

__all__ = ["CSCPattern", "Observations"]

Duplicates = Literal["mean", "sum"]


class Observations(StoredTable):
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
