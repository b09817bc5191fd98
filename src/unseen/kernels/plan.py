"""How the rows of a pattern are dealt out to blocks of a device: by their lengths alone.

Rows of about the same length share a launch; a row longer than ``limit`` is cut into chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unseen.typing import Array, IndexArray

__all__ = ["BIN_CELLS", "Bin", "Plan", "plan"]

BIN_CELLS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Most cells of a row in each bin."""
CHUNK_CELLS = 512
WORTH_A_LAUNCH = 1 / 64
"""Share of the work below which a bin goes to the next one: a launch costs as much as some thousand rows."""
ROW_WORK = 8
"""Cells that the part of a row without cells is worth."""


@dataclass(frozen=True)
class Bin:
    """Rows with at most ``most`` cells each; iterates over (row, start, stop)."""

    most: int
    rows: Any
    indptr: Any

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        for row in self.rows:
            yield int(row), int(self.indptr[row]), int(self.indptr[row + 1])


@dataclass(frozen=True)
class Plan:
    """Every cell once: short rows in bins, longer ones in chunks.

    Parameters
    ----------
    bins : tuple of Bin
        Largest first.
    chunks : int64 array of shape (c, 3)
        (row, start, stop) of parts of the long rows, in order.
    """

    bins: tuple[Bin, ...]
    chunks: IndexArray

    @property
    def long_rows(self) -> IndexArray:
        """Rows that are cut, increasing."""
        rows: IndexArray = np.unique(self.chunks[:, 0])
        return rows

    @property
    def chunk_ptr(self) -> IndexArray:
        """Where the chunks of each long row begin."""
        starts: IndexArray = np.searchsorted(self.chunks[:, 0], self.long_rows)
        return np.append(starts, len(self.chunks)).astype(np.int64)


def plan(indptr: Any, *, limit: int = BIN_CELLS[-1], chunk: int = CHUNK_CELLS, xp: Any = np) -> Plan:
    """Bins of rows with up to ``limit`` cells and chunks of the longer ones.

    Parameters
    ----------
    indptr : array of shape (n + 1,)
        Where the cells of each row begin.
    limit : int, default=512
        Most cells of a row that stays whole.
    chunk : int, default=512
        Most cells of a chunk.
    xp : module, default=numpy
        NumPy, or CuPy for an ``indptr`` on a device.

    Returns
    -------
    Plan
        The same for any order of equal lengths elsewhere: it looks at lengths only.

    Examples
    --------
    >>> import numpy as np
    >>> found = plan(np.array([0, 2, 2, 9]), limit=4, chunk=4)
    >>> [list(one) for one in found.bins], found.chunks.tolist()
    ([[(0, 0, 2), (1, 2, 2)]], [[2, 2, 6], [2, 6, 9]])
    """
    lengths = indptr[1:] - indptr[:-1]
    edges = [most for most in BIN_CELLS if most < limit] + [limit]
    counts = [int(xp.count_nonzero(lengths <= edge)) for edge in edges]
    rows = np.diff([0, *counts])
    work = rows * (np.array(edges) + ROW_WORK)
    needed = WORTH_A_LAUNCH * max(int(work.sum()), 1)
    bins: list[Bin] = []
    low, held = -1, 0.0
    for place, edge in enumerate(edges):
        held += work[place]
        if rows[place:].sum() == 0:
            break
        last = rows[place + 1 :].sum() == 0
        if (held >= needed or last) and counts[place] > (0 if low < 0 else counts[edges.index(low)]):
            chosen = xp.flatnonzero((lengths > low) & (lengths <= edge)).astype(np.int32)
            bins.append(Bin(edge, chosen, indptr))
            low, held = edge, 0.0
    return Plan(tuple(reversed(bins)), _chunks(indptr, lengths, limit, chunk, xp))


def _chunks(indptr: Any, lengths: Any, limit: int, chunk: int, xp: Any) -> IndexArray:
    found = xp.flatnonzero(lengths > limit)
    rows, starts, ends = (_host(a) for a in (found, indptr[found], indptr[found + 1]))
    parts = [
        (row, first, min(first + chunk, end))
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
        for first in range(start, end, chunk)
    ]
    return np.array(parts, dtype=np.int64).reshape(-1, 3)


def _host(array: Any) -> Array:
    return np.asarray(array if isinstance(array, np.ndarray) else array.get())
