"""Ways to hold out a part of the stored cells.

All splits keep the shape: training and test part are `Observations` of the full matrix with
disjoint cells, so row and column numbers mean the same everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data import Observations
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.typing import Array, BoolArray, IndexArray
from unseen.validation import check_count, check_fraction, check_rng

__all__ = ["KFoldEntries", "Split", "split_cols", "split_entries", "split_rows", "split_time"]


@dataclass(frozen=True, eq=False)
class Split:
    """A training and a test part of one matrix; unpacks as ``train, test = split``.

    Attributes
    ----------
    train, test : Observations
        Of the same shape, without a common cell.
    rows, cols : ndarray of int or None
        The rows or columns that were held out as a whole, sorted; None where cells were split.
    """

    train: Observations
    test: Observations
    rows: IndexArray | None = None
    cols: IndexArray | None = None

    def __iter__(self) -> Iterator[Observations]:
        return iter((self.train, self.test))

    def __repr__(self) -> str:
        return f"Split(train={self.train!r}, test={self.test!r})"


def split_entries(
    X: Any,
    *,
    test_fraction: float = 0.2,
    random_state: Any = None,
    keep_rows_covered: bool = False,
    symmetric: bool = False,
) -> Split:
    """Hold out cells drawn uniformly without replacement.

    Parameters
    ----------
    X : Observations, sparse matrix or dense array with NaN
        What to split; stored zeros are cells.
    test_fraction : float, default=0.2
        Share of the cells for the test part.
    random_state : None, int, Generator or RandomState
        Source of the draw.
    keep_rows_covered : bool, default=False
        Keep at least one training cell in every row that has cells. With few cells in a row the
        test part may become smaller than asked; a warning says so.
    symmetric : bool, default=False
        Treat (i, j) and (j, i) as one unit of a square matrix. Without it, a held-out link of an
        undirected graph would still be visible in training as its mirror image.

    Returns
    -------
    Split
        With parts ``train`` and ``test``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import split_entries
    >>> train, test = split_entries(np.arange(12.0).reshape(3, 4), test_fraction=0.25, random_state=0)
    >>> train.nnz, test.nnz, test.shape
    (9, 3, (3, 4))
    """
    observations = Observations.from_any(X)
    fraction = check_fraction("test_fraction", test_fraction)
    rng = check_rng(random_state)
    units = _units(observations, symmetric)
    n_units = int(units.max()) + 1 if units.size else 0
    n_test = _part_size(n_units, fraction, "cells")
    order: IndexArray = rng.permutation(n_units)
    if keep_rows_covered:
        order = _spare_one_per_row(observations, units, order)
        if order.size < n_test:
            warnings.warn(
                f"keep_rows_covered leaves {order.size} of {n_units} cells free to be held out, "
                f"fewer than the {n_test} asked for",
                DataWarning,
                stacklevel=2,
            )
        if order.size == 0:
            raise InvalidDataError("keep_rows_covered leaves no cell to hold out: no row can spare one")
    held_out = np.zeros(n_units, dtype=np.bool_)
    held_out[order[:n_test]] = True
    return _by_mask(observations, held_out[units])


def split_rows(X: Any, *, test_fraction: float = 0.2, random_state: Any = None) -> Split:
    """Hold out whole rows, as for users or items that were not there at training time.

    Parameters
    ----------
    X : Observations, sparse matrix or dense array with NaN
        What to split.
    test_fraction : float, default=0.2
        Share of the rows with cells for the test part.
    random_state : None, int, Generator or RandomState
        Source of the draw.

    Returns
    -------
    Split
        ``rows`` are the held-out rows; they are empty in ``train`` and the only ones in ``test``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import split_rows
    >>> split = split_rows(np.ones((10, 4)), test_fraction=0.3, random_state=0)
    >>> len(split.rows), split.test.nnz
    (3, 12)
    """
    observations = Observations.from_any(X)
    held_out = _draw_groups(observations.rows, observations.shape[0], test_fraction, random_state, "rows")
    return _by_mask(observations, held_out[observations.rows], rows=np.flatnonzero(held_out))


def split_cols(X: Any, *, test_fraction: float = 0.2, random_state: Any = None) -> Split:
    """Hold out whole columns; see `split_rows`.

    Parameters
    ----------
    X : Observations, sparse matrix or dense array with NaN
        What to split.
    test_fraction : float, default=0.2
        Share of the columns with cells for the test part.
    random_state : None, int, Generator or RandomState
        Source of the draw.

    Returns
    -------
    Split
        ``cols`` are the held-out columns; they are empty in ``train`` and the only ones in ``test``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import split_cols
    >>> split = split_cols(np.ones((10, 4)), test_fraction=0.25, random_state=0)
    >>> len(split.cols), split.test.nnz
    (1, 10)
    """
    observations = Observations.from_any(X)
    col_of_cell = observations.indices
    held_out = _draw_groups(col_of_cell, observations.shape[1], test_fraction, random_state, "columns")
    return _by_mask(observations, held_out[col_of_cell], cols=np.flatnonzero(held_out))


def split_time(X: Any, times: Any, *, test_fraction: float = 0.2, cutoff: Any = None) -> Split:
    """Hold out the latest cells.

    Cells of one moment stay together, so no training cell is as late as the earliest test cell;
    the test part can therefore be a little larger than asked.

    Parameters
    ----------
    X : Observations, sparse matrix or dense array with NaN
        What to split.
    times : array of shape (nnz,), sparse matrix or Observations
        When each cell arose: numbers or datetimes in the order of ``Observations.values`` (then `X`
        must be `Observations`, else the order is anybody's guess), or a matrix with the same cells.
    test_fraction : float, default=0.2
        Share of the cells for the test part.
    cutoff : number or datetime, optional
        Hold out cells from this moment on, instead of a share.

    Returns
    -------
    Split
        With parts ``train`` and ``test``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Observations
    >>> from unseen.model_selection import split_time
    >>> X = Observations.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [5.0, 3.0, 4.0, 1.0])
    >>> split_time(X, [2021, 2024, 2022, 2020], test_fraction=0.25).test.values
    array([3.])
    """
    observations = Observations.from_any(X)
    moments = _aligned_times(X, observations, times)
    if cutoff is None:
        fraction = check_fraction("test_fraction", test_fraction)
        n_test = _part_size(observations.nnz, fraction, "cells")
        cutoff = np.sort(moments)[observations.nnz - n_test]
    elif moments.dtype.kind == "M":
        cutoff = np.datetime64(cutoff)
    held_out = np.asarray(moments >= cutoff)
    if held_out.all() or not held_out.any():
        raise InvalidDataError(
            f"times run from {moments.min()} to {moments.max()}, so a cut at {cutoff} leaves "
            f"{'no training' if held_out.all() else 'no test'} cells; choose another cutoff or test_fraction"
        )
    return _by_mask(observations, held_out)


class KFoldEntries:
    """Split the cells into folds of equal size; each fold is the test part once.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2.
    shuffle : bool, default=True
        Deal the cells at random. Otherwise folds are consecutive cells in row order, which holds out
        whole runs of rows.
    random_state : None, int, Generator or RandomState
        Source of the draw.
    symmetric : bool, default=False
        Keep (i, j) and (j, i) of a square matrix in the same fold.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import KFoldEntries
    >>> folds = KFoldEntries(3, random_state=0)
    >>> [test.nnz for train, test in folds.split(np.ones((3, 4)))]
    [4, 4, 4]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = None, symmetric: bool = False
    ) -> None:
        self.n_splits = check_count("n_splits", n_splits, minimum=2)
        self.shuffle = shuffle
        self.random_state = random_state
        self.symmetric = symmetric

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored; here for scikit-learn's habit.

        Returns
        -------
        int
            ``n_splits``.
        """
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield one split for each fold; only one is in memory at a time.

        Parameters
        ----------
        X : Observations, sparse matrix or dense array with NaN
            What to split.
        y, groups : object
            Ignored; here for scikit-learn's habit.

        Yields
        ------
        Split
            With parts ``train`` and ``test``.
        """
        observations = Observations.from_any(X)
        units = _units(observations, self.symmetric)
        n_units = int(units.max()) + 1 if units.size else 0
        if n_units < self.n_splits:
            raise ParameterError(f"n_splits={self.n_splits} but there are only {n_units} cells to deal out")
        fold_of = np.arange(n_units) * self.n_splits // n_units
        if self.shuffle:
            fold_of = check_rng(self.random_state).permutation(fold_of)
        for fold in range(self.n_splits):
            yield _by_mask(observations, (fold_of == fold)[units])

    def __repr__(self) -> str:
        return (
            f"KFoldEntries(n_splits={self.n_splits}, shuffle={self.shuffle}, "
            f"random_state={self.random_state!r}, symmetric={self.symmetric})"
        )


def _by_mask(
    observations: Observations,
    held_out: BoolArray,
    rows: IndexArray | None = None,
    cols: IndexArray | None = None,
) -> Split:
    return Split(observations.select(~held_out), observations.select(held_out), rows, cols)


def _part_size(n: int, fraction: float, things: str) -> int:
    """Round a share to a number that leaves something on both sides."""
    if n < 2:
        raise InvalidDataError(f"X has {n} {things} to divide between training and test; at least 2 needed")
    return min(max(round(n * fraction), 1), n - 1)


def _units(observations: Observations, symmetric: bool) -> IndexArray:
    """Number the things that are dealt out: each cell, or each unordered pair of mirrored cells."""
    n_rows, n_cols = observations.shape
    if not symmetric:
        if n_rows == n_cols and is_mirrored(observations):
            warnings.warn(
                "X is symmetric, so a held-out cell (i, j) stays visible in training as (j, i); "
                "pass symmetric=True to hold out both",
                DataWarning,
                stacklevel=3,
            )
        return np.arange(observations.nnz)
    if n_rows != n_cols:
        raise ParameterError(f"symmetric=True needs a square matrix, but X is {n_rows} x {n_cols}")
    rows, cols = observations.rows.astype(np.int64), observations.indices.astype(np.int64)
    pairs = np.minimum(rows, cols) * n_cols + np.maximum(rows, cols)
    unit_of_cell: IndexArray = np.unique(pairs, return_inverse=True)[1]
    return unit_of_cell


def is_mirrored(observations: Observations) -> bool:
    """Whether X equals its transpose and has cells off the diagonal."""
    csc = observations.csc
    return (
        bool(np.any(observations.rows != observations.indices))
        and np.array_equal(csc.indptr, observations.indptr)
        and np.array_equal(csc.indices, observations.indices)
        and np.array_equal(observations.values[csc.order], observations.values)
    )


def _spare_one_per_row(observations: Observations, units: IndexArray, order: IndexArray) -> IndexArray:
    """Drop from the order of draws the unit that each row meets last, which so stays in training."""
    turn = np.empty(order.size, dtype=np.int64)
    turn[order] = np.arange(order.size)
    filled = np.flatnonzero(np.diff(observations.indptr))
    if filled.size == 0:
        return order
    latest = np.maximum.reduceat(turn[units], observations.indptr[filled])
    free = np.ones(order.size, dtype=np.bool_)
    free[latest] = False
    return order[free]


def _draw_groups(
    group_of_cell: IndexArray, n_groups: int, test_fraction: float, random_state: Any, things: str
) -> BoolArray:
    """Choose a share of the groups that have cells."""
    fraction = check_fraction("test_fraction", test_fraction)
    filled = np.flatnonzero(np.bincount(group_of_cell, minlength=n_groups))
    n_test = _part_size(filled.size, fraction, f"{things} with cells")
    held_out = np.zeros(n_groups, dtype=np.bool_)
    held_out[check_rng(random_state).permutation(filled)[:n_test]] = True
    return held_out


def _aligned_times(X: Any, observations: Observations, times: Any) -> Array:
    if sparse.issparse(times) or isinstance(times, Observations):
        given = Observations.from_any(times)
        same = given.shape == observations.shape and np.array_equal(given.indptr, observations.indptr)
        if not same or not np.array_equal(given.indices, observations.indices):
            raise InvalidDataError(
                f"times store {given.nnz} cells of a {given.shape} matrix that are not the "
                f"{observations.nnz} cells of X, which is {observations.shape}"
            )
        return given.values
    moments: npt.NDArray[Any] = np.asarray(times)
    if not isinstance(X, Observations):
        raise ParameterError(
            f"times is an array but X is a {type(X).__name__}, whose cells have no agreed order; "
            "pass X as Observations, with times in the order of its values, or times as a sparse matrix"
        )
    if moments.shape != (observations.nnz,):
        raise InvalidDataError(
            f"times have shape {moments.shape}; expected one for each of {observations.nnz} cells"
        )
    missing = np.isnat(moments) if moments.dtype.kind in "mM" else np.isnan(moments.astype(np.float64))
    if missing.any():
        raise InvalidDataError(
            f"times have no value at position {int(np.argmax(missing))}; every cell needs one"
        )
    return moments
