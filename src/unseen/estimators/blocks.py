"""Completers that say nothing of their own about cells between blocks that share no observation."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from unseen.data import Observations
from unseen.estimators.composed import ComposedCompleter
from unseen.linalg.blocked import matmul
from unseen.parallel import one_blas_thread
from unseen.typing import BoolArray, FloatArray, IndexArray
from unseen.validation import check_entries

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

    def _predict_entries(self, rows: Any, cols: Any) -> FloatArray:
        out = super()._predict_entries(rows, cols)
        if not self._baseline_across():
            return out
        i, j = check_entries(rows, cols, (self.row_factors_.shape[0], self.col_factors_.shape[0]))
        across = ~self._joined(self.row_block_[i], self.col_block_[j])
        width = sum(self.widths_)
        left, right = self.row_factors_[i[across], width:], self.col_factors_[j[across], width:]
        out[across] = np.einsum("ij,ij->i", left, right)
        return out

    def _joined(self, row_block: IndexArray, col_block: IndexArray) -> BoolArray:
        """Whether rows and columns share a block; those without a cell have the number -1 and share none."""
        joined: BoolArray = (row_block >= 0) & (row_block == col_block)
        return joined

    def predict_new(self, row_features: Any = None, col_features: Any = None) -> FloatArray:
        """Predictions for all training rows and columns; this model takes no features.

        Parameters
        ----------
        row_features, col_features : None
            Refused if given.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
            Dense block of predictions.
        """
        out = super().predict_new(row_features, col_features)
        if self._baseline_across():
            across = ~self._joined(self.row_block_[:, None], self.col_block_)
            self._take_back(out, self.row_factors_, across)
        return out

    def transform(self, X: Any, row_features: Any = None) -> FloatArray:
        """Complete rows: a dense matrix of predictions for every cell of ``X``.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations, with the training columns
            Rows to complete, known ones or new ones. A new row belongs to the blocks of the columns in
            which it has cells.
        row_features : None
            Refused if given.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
            Predictions, observed cells included.
        """
        factors = self.fold_in(X, row_features=row_features)
        with one_blas_thread():
            out = matmul(factors, self.col_factors_.T, n_threads=self._n_threads())
        if self._baseline_across():
            self._take_back(out, factors, self._foreign(self._read_target(X)))
        return out

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
        self, picked: IndexArray, k: int, exclude: Any, candidates: Any
    ) -> tuple[IndexArray, FloatArray]:
        if not self._baseline_across():
            return super()._best_columns(picked, k, exclude, candidates)
        ids = np.empty((picked.size, k), dtype=np.int64)
        scores = np.empty((picked.size, k), dtype=self.row_factors_.dtype)
        for block in np.unique(self.row_block_[picked]):
            mine = np.flatnonzero(self.row_block_[picked] == block)
            part = copy(self)  # a shallow copy: only its column factors are its own
            part.cross_component = "model"
            part.col_factors_ = self.col_factors_.copy()
            # Outside of the block only the offsets speak.
            part.col_factors_[~self._joined(block, self.col_block_), : sum(self.widths_)] = 0.0
            ids[mine], scores[mine] = part._best_columns(picked[mine], k, exclude, candidates)
        return ids, scores
