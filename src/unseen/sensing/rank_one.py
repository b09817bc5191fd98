"""Measurements by products of random signs: as isometric on average, and made of matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unseen.data import Observations
from unseen.exceptions import TooLargeError
from unseen.sensing.base import MeasurementOperator
from unseen.sensing.law import CHUNK, MOST_DRAWS, Law, chunk_generator
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["RankOneMap"]


class Signs(NamedTuple):
    """One chunk: measurements, their signs for rows and columns, and the cells that they own."""

    place: slice
    row: FloatArray
    col: FloatArray
    owner: IndexArray
    own_row: IndexArray
    own_col: IndexArray
    own: FloatArray
    """Value of the measurement at its own cell, less that of the product of signs."""


class RankOneMap(MeasurementOperator):
    """``A_k = sqrt(tau/p) g h'`` with random signs g and h; the first p0 hold one observed cell each as well.

    At its own cell such a measurement has a one in place of the sign, as in Algorithm 1 of AMF, so the mean
    over all draws is that of the sparse maps. Signs are drawn anew by chunk, as in :class:`HashedMap`.
    """

    def __init__(self, cells: Observations, law: Law, start: int = 0, stop: int | None = None) -> None:
        self.cells, self.shape, self.law = cells, cells.shape, law
        self.start, self.stop = start, law.n_rows if stop is None else stop
        drawn = float(self.n_rows) * sum(self.shape)
        if drawn > MOST_DRAWS:
            m, n = self.shape
            raise TooLargeError(
                f"augmentation='rank_one' would draw about {drawn:.3g} random signs in each pass "
                f"({self.n_rows:,} measurements of {m:,} + {n:,} signs), more than {MOST_DRAWS:.0e}; "
                "use 'expected', which is their mean"
            )

    def part(self, start: int, stop: int) -> RankOneMap:
        return RankOneMap(self.cells, self.law, start, stop)

    def _chunks(self) -> Iterator[Signs]:
        for chunk in range(self.start // CHUNK, -(-self.stop // CHUNK)):
            first, last = max(chunk * CHUNK, self.start), min((chunk + 1) * CHUNK, self.stop)
            rng = chunk_generator(self.law.seed, chunk)
            inside = slice(first - chunk * CHUNK, last - chunk * CHUNK)
            row, col = (
                2.0 * rng.integers(0, 2, size=(CHUNK, length), dtype=np.int8)[inside] - 1.0
                for length in self.shape
            )
            row *= self.law.dense_size
            originals = np.arange(first, min(last, self.cells.nnz))
            owner = originals - first
            own_row, own_col = self.cells.rows[originals], self.cells.indices[originals]
            if not self.law.resample_original:
                row[owner] = 0.0
            own = 1.0 - row[owner, own_row] * col[owner, own_col]
            place = slice(first - self.start, last - self.start)
            yield Signs(place, row, col, owner, own_row, own_col, own)

    def forward(self, left: FloatArray, right: FloatArray) -> FloatArray:
        out = np.empty(self.n_rows)
        for signs in self._chunks():
            values: Array = np.einsum("ij,ij->i", signs.row @ left, signs.col @ right)
            values[signs.owner] += signs.own * np.einsum(
                "ij,ij->i", left[signs.own_row], right[signs.own_col]
            )
            out[signs.place] = values
        return out

    def dot(self, values: FloatArray, right: FloatArray) -> FloatArray:
        out = np.zeros((self.shape[0], right.shape[1]))
        for signs in self._chunks():
            mine = values[signs.place]
            out += signs.row.T @ (mine[:, None] * (signs.col @ right))
            own = (mine[signs.owner] * signs.own)[:, None] * right[signs.own_col]
            np.add.at(out, signs.own_row, own)
        return out

    def tdot(self, values: FloatArray, left: FloatArray) -> FloatArray:
        out = np.zeros((self.shape[1], left.shape[1]))
        for signs in self._chunks():
            mine = values[signs.place]
            out += signs.col.T @ (mine[:, None] * (signs.row @ left))
            own = (mine[signs.owner] * signs.own)[:, None] * left[signs.own_row]
            np.add.at(out, signs.own_col, own)
        return out

    def of_cells(self) -> FloatArray:
        out = np.empty(self.n_rows)
        matrix = self.cells.csr.astype(np.float64)
        for signs in self._chunks():
            values: Array = np.einsum("ij,ij->i", (matrix.T @ signs.row.T).T, signs.col)
            values[signs.owner] += (
                signs.own * self.cells.values[self.start :][signs.place][: signs.owner.size]
            )
            out[signs.place] = values
        return out
