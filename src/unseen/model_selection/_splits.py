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

from unseen.data import Observations
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.typing import BoolArray, IndexArray
from unseen.validation import check_fraction, check_rng

__all__ = [
    "Split",
    "by_mask",
    "is_mirrored",
    "part_size",
    "split_both",
    "split_cols",
    "split_entries",
    "split_rows",
    "units_of",
]


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
    units = units_of(observations, symmetric)
    n_units = int(units.max()) + 1 if units.size else 0
    n_test = part_size(n_units, fraction, "cells")
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
    return by_mask(observations, held_out[units])


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
    held_out = draw_groups(observations.rows, observations.shape[0], test_fraction, random_state, "rows")
    return by_mask(observations, held_out[observations.rows], rows=np.flatnonzero(held_out))


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
    held_out = draw_groups(col_of_cell, observations.shape[1], test_fraction, random_state, "columns")
    return by_mask(observations, held_out[col_of_cell], cols=np.flatnonzero(held_out))


def split_both(
    X: Any, *, test_fraction: float = 0.2, col_fraction: float | None = None, random_state: Any = None
) -> Split:
    """Hold out whole rows and whole columns, as where both sides are new.

    Test cells have a held-out row and a held-out column, training cells neither. Cells with one of the two
    are in no part: in training they would show a held-out row or column.

    Parameters
    ----------
    X : Observations, sparse matrix or dense array with NaN
        What to split.
    test_fraction : float, default=0.2
        Share of the rows with cells that is held out.
    col_fraction : float, optional
        Share of the columns with cells; that of the rows by default.
    random_state : None, int, Generator or RandomState
        Source of the draw.

    Returns
    -------
    Split
        ``rows`` and ``cols`` are held out: empty in ``train``, and the only ones in ``test``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import split_both
    >>> split = split_both(np.ones((10, 5)), test_fraction=0.2, random_state=0)
    >>> split.train.nnz, split.test.nnz
    (32, 2)
    """
    observations = Observations.from_any(X)
    rng = check_rng(random_state)
    row_of, col_of = observations.rows, observations.indices
    new_rows = draw_groups(row_of, observations.shape[0], test_fraction, rng, "rows")
    share = test_fraction if col_fraction is None else check_fraction("col_fraction", col_fraction)
    new_cols = draw_groups(col_of, observations.shape[1], share, rng, "columns")
    both, neither = new_rows[row_of] & new_cols[col_of], ~(new_rows[row_of] | new_cols[col_of])
    for name, part in (("test", both), ("training", neither)):
        if not part.any():
            raise InvalidDataError(
                f"{int(new_rows.sum())} rows and {int(new_cols.sum())} columns are held out, which leaves no "
                f"{name} cells; choose another test_fraction or random_state"
            )
    return Split(
        observations.select(neither),
        observations.select(both),
        np.flatnonzero(new_rows),
        np.flatnonzero(new_cols),
    )


def by_mask(
    observations: Observations,
    held_out: BoolArray,
    rows: IndexArray | None = None,
    cols: IndexArray | None = None,
) -> Split:
    return Split(observations.select(~held_out), observations.select(held_out), rows, cols)


def part_size(n: int, fraction: float, things: str) -> int:
    """Round a share to a number that leaves something on both sides."""
    if n < 2:
        raise InvalidDataError(f"X has {n} {things} to divide between training and test; at least 2 needed")
    return min(max(round(n * fraction), 1), n - 1)


def units_of(observations: Observations, symmetric: bool) -> IndexArray:
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


def draw_groups(
    group_of_cell: IndexArray, n_groups: int, test_fraction: float, random_state: Any, things: str
) -> BoolArray:
    """Choose a share of the groups that have cells."""
    fraction = check_fraction("test_fraction", test_fraction)
    filled = np.flatnonzero(np.bincount(group_of_cell, minlength=n_groups))
    n_test = part_size(filled.size, fraction, f"{things} with cells")
    held_out = np.zeros(n_groups, dtype=np.bool_)
    held_out[check_rng(random_state).permutation(filled)[:n_test]] = True
    return held_out
