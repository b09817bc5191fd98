"""Completers that say nothing of their own about cells between blocks that share no observation."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from unseen.data import Observations
from unseen.data.ids import SeenCells, Side
from unseen.estimators.composed import ComposedCompleter
from unseen.estimators.ids import Places
from unseen.linalg.blocked import matmul
from unseen.typing import BoolArray, Features, FloatArray, IndexArray

__all__ = ["BlockwiseCompleter"]


class BlockwiseCompleter(ComposedCompleter):
    """Predictions between blocks are the offsets alone, unless ``cross_component`` is "model".

    Turning the factors of one block changes every prediction between blocks and neither the fit nor the
    penalty, so what factors say there means nothing.
    """

    cross_component: str = "baseline"
    row_block_: IndexArray
    col_block_: IndexArray

    def _baseline_across(self) -> bool:
        return self.cross_component == "baseline"

    def _predict_entries(self, i: Places, j: Places) -> FloatArray:
        out = super()._predict_entries(i, j)
        if not self._baseline_across():
            return out
        across = ~self._joined(self.row_block_[i], self.col_block_[j])
        width = sum(self.widths_)
        left, right = self.row_factors_[i[across], width:], self.col_factors_[j[across], width:]
        out[across] = np.einsum("ij,ij->i", left, right)
        return out

    def _average(self, side: Side) -> FloatArray:
        mean = super()._average(side)
        if self._baseline_across():  # of no block
            mean[: sum(self.widths_)] = 0
        return mean

    def _joined(self, row_block: IndexArray, col_block: IndexArray) -> BoolArray:
        """Whether rows and columns share a block; those without a cell have the number -1 and share none."""
        joined: BoolArray = (row_block >= 0) & (row_block == col_block)
        return joined

    def _block(self, row_features: Features | None, col_features: Features | None) -> FloatArray:
        out = super()._block(row_features, col_features)
        if self._baseline_across():
            across = ~self._joined(self.row_block_[:, None], self.col_block_)
            self._take_back(out, self.row_factors_, across)
        return self._predictions(out)

    def _complete(self, cells: Observations, factors: FloatArray) -> FloatArray:
        # A new row belongs to the blocks of the columns in which it has cells.
        out = matmul(factors, self.col_factors_.T, n_threads=self._n_threads())
        if self._baseline_across():
            self._take_back(out, factors, self._foreign(cells))
        return self._predictions(out)

    def _ranks_cells(self) -> bool:
        return False  # blank cells only hold the values back

    def _hidden_scores(self, cells: Observations, hidden: BoolArray, factors: FloatArray) -> FloatArray:
        completed = self._complete(self._read_target(cells.select(~hidden)), factors)
        return completed[cells.rows[hidden], cells.indices[hidden]]

    def _foreign(self, cells: Observations) -> BoolArray:
        """Cells of these rows in columns of blocks in which they have no observation."""
        places = self.col_block_[cells.indices]
        foreign: BoolArray = np.ones(cells.shape, dtype=bool)
        for row in range(cells.shape[0]):
            own = np.unique(places[cells.indptr[row] : cells.indptr[row + 1]])
            foreign[row] = ~np.isin(self.col_block_, own[own >= 0])
        return foreign

    def _take_back(self, out: FloatArray, factors: FloatArray, across: BoolArray) -> None:
        rows, cols = np.nonzero(across)
        width = sum(self.widths_)
        step = 1 << 20
        for start in range(0, rows.size, step):
            i, j = rows[start : start + step], cols[start : start + step]
            out[i, j] = np.einsum("ij,ij->i", factors[i, width:], self.col_factors_[j, width:])

    def _best_columns(
        self, picked: IndexArray, k: int, seen: SeenCells | None, columns: Any
    ) -> tuple[IndexArray, FloatArray]:
        if not self._baseline_across():
            return super()._best_columns(picked, k, seen, columns)
        ids = np.empty((picked.size, k), dtype=np.int64)
        scores = np.empty((picked.size, k), dtype=self.row_factors_.dtype)
        for block in np.unique(self.row_block_[picked]):
            mine = np.flatnonzero(self.row_block_[picked] == block)
            part = self._speaking_of(self._joined(block, self.col_block_))
            ids[mine], scores[mine] = part._best_columns(picked[mine], k, seen, columns)
        return ids, scores

    def _best_of_new(
        self, factors: FloatArray, cells: Observations | None, k: int, seen: SeenCells | None, columns: Any
    ) -> tuple[IndexArray, FloatArray]:
        if not self._baseline_across() or cells is None:
            return super()._best_of_new(factors, cells, k, seen, columns)
        own = ~self._foreign(cells)
        patterns, place = np.unique(own, axis=0, return_inverse=True)
        ids = np.empty((cells.shape[0], k), dtype=np.int64)
        scores = np.empty((cells.shape[0], k), dtype=factors.dtype)
        for number, joined in enumerate(patterns):
            mine = np.flatnonzero(place.reshape(-1) == number)
            part = self._speaking_of(joined)
            left_out = None if seen is None else seen.rows(mine)
            ids[mine], scores[mine] = part._top_columns(factors[mine], k, left_out, columns)
        return ids, scores

    def _speaking_of(self, joined: BoolArray) -> Self:
        """The model where only offsets speak of columns that are not joined; other arrays are shared."""
        part = copy(self)
        part.cross_component = "model"
        part.col_factors_ = self.col_factors_.copy()
        part.col_factors_[~joined, : sum(self.widths_)] = 0.0
        return part
