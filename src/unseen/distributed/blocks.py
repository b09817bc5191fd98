"""Blocks of a target: consecutive rows (or columns) with the cells that they hold.

A block knows the columns that it touches and numbers them from 0, so a solver needs the
factors of these columns and of no others. Where blocks begin depends on the data and on their
number alone, never on who works on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data.pattern import index_dtype
from unseen.exceptions import InvalidDataError
from unseen.typing import Array, FloatArray, IndexArray

__all__ = [
    "CellBlock",
    "Triples",
    "build_block",
    "choose_bounds",
    "group_by_block",
    "histogram",
    "outgoing",
    "sources",
]

Indices = npt.NDArray[np.int64]
Merge = Literal["mean", "sum"]

MAX_BINS = 1 << 14
"""Bins in which cells are counted to cut blocks of equal work: a table that is small for any target."""


class Triples(NamedTuple):
    """Cells as columns; no values stand for ones, and no weights for ones too."""

    rows: IndexArray
    cols: IndexArray
    values: FloatArray | None
    weights: FloatArray | None = None

    def side(self, side: str) -> Triples:
        """The same cells with the blocks' own side first."""
        return self if side == "row" else self._replace(rows=self.cols, cols=self.rows)

    def chosen(self, place: Any) -> Triples:
        """Some of the cells."""
        rows, cols, values, weights = (None if column is None else column[place] for column in self)
        assert rows is not None
        assert cols is not None
        return Triples(rows, cols, values, weights)

    @classmethod
    def joined(cls, parts: Sequence[Triples]) -> Triples:
        """Cells of all parts, one after another."""
        filled = [part for part in parts if len(part.rows)] or list(parts[:1])
        if not filled:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64), None)
        if len(filled) == 1:
            return filled[0]
        rows, cols = (np.concatenate([part[place] for part in filled]) for place in (0, 1))
        columns: list[FloatArray | None] = []
        for name in ("values", "weights"):
            found = [getattr(part, name) for part in filled]
            columns.append(None if any(column is None for column in found) else np.concatenate(found))
        return cls(rows, cols, *columns)


@dataclass(frozen=True)
class CellBlock:
    """The cells of the rows ``start`` to ``stop`` in CSR order.

    Attributes
    ----------
    start, stop : int
        Rows of the target (columns, for a block of columns).
    indptr, indices : ndarray
        CSR pattern; indices are places in ``touched``.
    values : ndarray or None
        Values of the cells; None stands for ones.
    touched : ndarray
        Columns of the target with at least one cell here, increasing.
    n_merged : int
        Cells that repeated another one.
    weights : ndarray or None
        How much each cell counts; None stands for ones.
    own_blank, other_blank : ndarray or None
        Weights of the background of the block's rows and of the touched columns; None stands for ones.
    """

    start: int
    stop: int
    indptr: IndexArray
    indices: IndexArray
    values: FloatArray | None
    touched: Indices
    n_merged: int = 0
    weights: FloatArray | None = None
    own_blank: FloatArray | None = None
    other_blank: FloatArray | None = None

    @property
    def n_cells(self) -> int:
        """Cells stored."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    @property
    def rows(self) -> Indices:
        """Row of each cell, from 0."""
        return np.repeat(np.arange(self.stop - self.start), np.diff(self.indptr))

    @property
    def degrees(self) -> FloatArray:
        """Sum of the weights of each row's cells; their number where none has a weight."""
        if self.weights is None:
            return np.diff(self.indptr).astype(np.float64)
        return np.bincount(self.rows, self.weights, minlength=self.stop - self.start).astype(np.float64)

    def filled(self, dtype: npt.DTypeLike) -> FloatArray:
        """Values of the cells; ones take no memory."""
        if self.values is None:
            return np.broadcast_to(np.ones((), dtype=dtype), (self.n_cells,))
        return self.values


def histogram(indices: IndexArray, length: int) -> Indices:
    """Cells in each of at most `MAX_BINS` equal ranges of the indices."""
    width = -(-length // MAX_BINS)
    counts: Indices = np.bincount(indices // width, minlength=-(-length // width)).astype(np.int64)
    return counts


def choose_bounds(counts: Indices, length: int, n_blocks: int) -> Indices:
    """Where blocks begin and end so that each holds about as many cells as the others.

    A row counts as one cell more, so that rows without cells do not all end up in one block.
    """
    width = -(-length // MAX_BINS)
    edges = np.minimum(np.arange(len(counts) + 1, dtype=np.int64) * width, length)
    work = np.concatenate([[0], np.cumsum(counts + np.diff(edges))])
    wanted = work[-1] * np.arange(1, n_blocks) / n_blocks
    inner = edges[np.searchsorted(work, wanted)]
    return np.unique(np.concatenate([[0], inner, [length]])).astype(np.int64)


def group_by_block(cells: Triples, bounds: Indices) -> tuple[Triples, Indices]:
    """Cells ordered by the block of their first index, and where each block begins among them."""
    n_blocks = len(bounds) - 1
    # Sorting small integers is linear in NumPy.
    small = np.uint8 if n_blocks <= 256 else np.uint16 if n_blocks <= 65536 else np.int64
    block = (np.searchsorted(bounds, cells.rows, side="right") - 1).astype(small)
    order = np.argsort(block, kind="stable")
    cuts = np.concatenate([[0], np.cumsum(np.bincount(block, minlength=n_blocks))]).astype(np.int64)
    return cells.chosen(order), cuts


def build_block(
    cells: Triples, start: int, stop: int, n_other: int, merge: Merge, dtype: npt.DTypeLike
) -> CellBlock:
    """Sort the cells of some rows into a block; repeated cells are merged as in memory."""
    touched, local = _touched(cells.cols, n_other)
    shape = (stop - start, max(len(touched), 1))
    kind = index_dtype(shape, len(local))
    place = ((cells.rows - start).astype(kind, copy=False), local.astype(kind, copy=False))
    weights = cells.weights

    def added(data: Array) -> Any:
        total = sparse.csr_array((data, place), shape=shape)
        total.sum_duplicates()
        return total

    plain = np.ones(len(local), dtype=dtype) if cells.values is None else cells.values.astype(dtype)
    csr = added(plain)
    n_merged = len(local) - csr.nnz
    counts = None if weights is None else added(weights.astype(np.float64)).data
    if n_merged:
        # Again in float64: float32 would lose digits on long runs.
        total = added(plain.astype(np.float64)).data
        if merge == "mean":
            total /= added(np.ones(len(local))).data
            if weights is not None and counts is not None:
                # Where all weights of a cell are zero its value does not matter.
                np.divide(added(plain * weights.astype(np.float64)).data, counts, out=total, where=counts > 0)
        with np.errstate(over="ignore"):
            csr.data = total.astype(dtype)
        if not np.isfinite(csr.data).all():
            raise InvalidDataError("merging repeated cells overflowed; smaller values would be accepted")
    ones = cells.values is None and (merge == "mean" or not n_merged)
    indptr, indices = (part.astype(kind, copy=False) for part in (csr.indptr, csr.indices))
    return CellBlock(
        start,
        stop,
        indptr,
        indices,
        None if ones else csr.data,
        touched,
        n_merged,
        None if counts is None else counts.astype(dtype),
    )


def _touched(other: IndexArray, n_other: int) -> tuple[Indices, IndexArray]:
    """Distinct indices in increasing order, and the place of each index among them."""
    if n_other > 4 * len(other):
        distinct, local = np.unique(other, return_inverse=True)
        return distinct.astype(np.int64), local.reshape(-1)
    marks = np.zeros(n_other, dtype=bool)
    marks[other] = True
    touched: Indices = np.flatnonzero(marks).astype(np.int64)
    place: IndexArray = np.empty(n_other, dtype=np.int32 if n_other < 2**31 else np.int64)
    place[touched] = np.arange(len(touched))
    found: IndexArray = place[other]
    return touched, found


def sources(touched: Indices, bounds: Indices) -> Indices:
    """Where the touched columns of each block of columns begin and end."""
    return np.searchsorted(touched, bounds)


def outgoing(touched: Indices, bounds: Indices, source: int) -> Indices:
    """Rows of factor block ``source`` that somebody who touches these columns must be sent."""
    first, last = np.searchsorted(touched, bounds[source : source + 2])
    return np.asarray(touched[first:last] - bounds[source])
