"""Completers without factors of all cells: scores of whole rows are computed when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from unseen import kernels
from unseen.data import Observations
from unseen.data.ids import SeenCells, Side
from unseen.estimators.base import Completer
from unseen.estimators.ids import Places
from unseen.exceptions import ParameterError, UnsupportedComposition
from unseen.linalg.blocked import matmul
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, BoolArray, Features, FloatArray, IndexArray

__all__ = ["RowParts", "RowScores"]

ROWS_AT_A_TIME = 128
"""Rows of scores that are made together; about as many as go through a sparse product at speed."""
BLOCK_CELLS = 1 << 22
"""... as long as they have no more cells than this."""


class RowParts(NamedTuple):
    """Scores of some rows: ``block.T + left @ right.T``, where either may be missing."""

    block: FloatArray | None
    """Shape (n_cols, n_rows): columns of the matrix first, as sparse products give it."""
    left: FloatArray | None = None
    right: FloatArray | None = None

    def dense(self, n_threads: int = 1) -> FloatArray:
        """The scores, (n_rows, n_cols)."""
        if self.left is None or self.right is None:
            assert self.block is not None
            return np.ascontiguousarray(self.block.T)
        product = matmul(self.left, self.right.T, n_threads=n_threads)
        if self.block is not None:
            product += self.block.T
        return product

    def top(
        self,
        k: int,
        exclude: tuple[IndexArray, IndexArray] | None,
        ids: IndexArray | None,
        n_threads: int = 1,
    ) -> tuple[IndexArray, FloatArray]:
        """Best columns of each row by the kernel that never stores the scores.

        A block of scores goes through it as factors of an identity: products with zeros and ones are exact.
        """
        lefts, rights = [], []
        if self.block is not None:
            lefts.append(np.eye(self.block.shape[1], dtype=self.block.dtype))
            rights.append(self.block)
        if self.left is not None and self.right is not None:
            lefts.append(self.left)
            rights.append(self.right)
        right = rights[0] if len(rights) == 1 else np.hstack(rights)
        if ids is not None:
            right = np.ascontiguousarray(right[ids])
        return kernels.topk(np.hstack(lefts), right, k, exclude=exclude, col_ids=ids, n_threads=n_threads)


class RowScores(Completer):
    """Base of the models that compute scores of whole rows when they are asked for.

    In place of factors, a row has its scores with all columns, and ``col_factors_`` is the identity.
    """

    @abstractmethod
    def _parts(self, rows: IndexArray) -> RowParts:
        """Scores of training rows."""

    @abstractmethod
    def _scores_from(self, cells: CSR) -> FloatArray:
        """Scores of rows with the given cells, with all columns."""

    @abstractmethod
    def _n_rows(self) -> int:
        """Training rows."""

    @abstractmethod
    def _dtype(self) -> np.dtype[Any]:
        """Type of the scores."""

    @property
    def col_factors_(self) -> CSR:  # type: ignore[override]
        """The identity: coordinates of a row are its scores."""
        return sparse.csr_array(sparse.eye_array(self.n_features_in_, dtype=self._dtype()))

    def score_rows(self, rows: Any, *, positions: bool = False) -> FloatArray:
        """Scores of some rows with all columns.

        Parameters
        ----------
        rows : array-like of ids
            Training rows; positions where the model was fitted without ids.
        positions : bool, default=False
            Take positions, whatever the ids.

        Returns
        -------
        ndarray of shape (len(rows), n_cols)
            Dense; ask for few rows at a time.
        """
        check_is_fitted(self)
        with one_blas_thread():
            return self._scores_at(self._places(rows, "row", "rows", positions))

    def _scores_at(self, picked: IndexArray) -> FloatArray:
        return self._parts(picked).dense(self._n_threads())

    def _predict_entries(self, i: Places, j: Places) -> FloatArray:
        asked, place = np.unique(i, return_inverse=True)
        order = np.argsort(place, kind="stable")
        out: FloatArray = np.empty(len(i), dtype=self._dtype())
        step = self._rows_at_a_time()
        with one_blas_thread():
            for start in range(0, len(asked), step):
                first, last = np.searchsorted(place[order], [start, start + step])
                cells = order[first:last]
                scores = self._scores_at(asked[start : start + step])
                out[cells] = scores[place[cells] - start, j[cells]]
        return out

    def _directions(self, side: Side) -> FloatArray:
        raise UnsupportedComposition(
            f"{type(self).__name__} has no factors; recommend lists the columns with the highest scores"
        )

    def _average(self, side: Side) -> FloatArray:
        raise ParameterError(
            f"on_unknown='popular': {type(self).__name__} scores the cells of single rows, not of an average"
        )

    def _block(self, row_features: Features | None, col_features: Features | None) -> FloatArray:
        with one_blas_thread():
            return self._scores_at(np.arange(self._n_rows()))

    def _complete(self, cells: Observations, factors: FloatArray) -> FloatArray:
        return factors  # of a row these are its scores

    def _hidden_scores(self, cells: Observations, hidden: BoolArray, factors: FloatArray) -> FloatArray:
        return factors[cells.rows[hidden], cells.indices[hidden]]

    def _row_scores(self, factors: FloatArray) -> FloatArray:
        return factors

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        return self._scores_from(cells.csr.astype(self._dtype()))

    def _best_columns(
        self, picked: IndexArray, k: int, seen: SeenCells | None, columns: Any
    ) -> tuple[IndexArray, FloatArray]:
        def parts(rows: slice) -> RowParts:
            return self._parts(picked[rows])

        return self._by_blocks(parts, len(picked), k, self._left_out(seen, picked), columns)

    def _best_of_new(
        self, factors: FloatArray, cells: Observations | None, k: int, seen: SeenCells | None, columns: Any
    ) -> tuple[IndexArray, FloatArray]:
        def parts(rows: slice) -> RowParts:
            return RowParts(np.ascontiguousarray(factors[rows].T))

        left_out = None if seen is None else (seen.indptr, seen.indices)
        return self._by_blocks(parts, len(factors), k, left_out, columns)

    def _by_blocks(
        self,
        parts: Callable[[slice], RowParts],
        n_rows: int,
        k: int,
        left_out: tuple[IndexArray, IndexArray] | None,
        columns: IndexArray | None,
    ) -> tuple[IndexArray, FloatArray]:
        ids = np.full((n_rows, k), -1, dtype=np.int64)
        scores = np.full((n_rows, k), np.nan, dtype=self._dtype())
        step = self._rows_at_a_time()
        with one_blas_thread():
            for start in range(0, n_rows, step):
                rows = slice(start, min(start + step, n_rows))
                own = None
                if left_out is not None:
                    ends = left_out[0][rows.start : rows.stop + 1]
                    own = (ends - ends[0], left_out[1][ends[0] : ends[-1]])
                ids[rows], scores[rows] = parts(rows).top(k, own, columns, self._n_threads())
        return ids, scores

    def _rows_at_a_time(self) -> int:
        return max(1, min(ROWS_AT_A_TIME, BLOCK_CELLS // max(self.n_features_in_, 1)))
