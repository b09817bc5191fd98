"""How well a fitted completer predicts what it is not told of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations
from unseen.exceptions import InvalidDataError
from unseen.linalg.blocked import matmul
from unseen.metrics import rmse
from unseen.parallel import one_blas_thread
from unseen.typing import BoolArray, Features, FloatArray

__all__ = ["Judged", "held_back"]

SHARE = 0.2
"""Share of the cells of a row that are held back."""
BLOCK_CELLS = 1 << 22
"""Scores that exist at a time."""


class Judged:
    """``score`` of completers: it hides cells of rows, folds the rest in and looks at the hidden ones."""

    n_features_in_: int

    def score(self, X: Any, y: None = None, *, row_features: Any = None, positions: bool = False) -> float:
        """How well a fifth of each row's cells is predicted from the others; greater is better.

        Rows are folded in, so they may be new, as in scikit-learn's ``cross_val_score`` and
        ``GridSearchCV``. Which cells are held back depends on the row's own cells alone: the same rows have
        the same score in any order. Of a row with one cell nothing is held back.

        - Models of values: minus the root mean squared error, or minus the loss's own deviance
          (:meth:`unseen.losses.Loss.deviance`).
        - Models for which blank cells count (positives, links, lists): the chance that a hidden positive
          scores above a blank cell of its row, ties counted one half; 0.5 for scores that say nothing.

        Weights of cells are weights here too. For the rows that a model was fitted to the score is too good:
        its columns have seen the hidden cells.

        Parameters
        ----------
        X : array with NaN, sparse matrix, frame or Observations, with the training columns
            Rows with known cells. Where the model was fitted with ids, columns are matched by id.
        y : None
            Ignored; there for scikit-learn.
        row_features : array, sparse matrix or frame, optional
            Features of these rows, for models that were fitted with row features.
        positions : bool, default=False
            Take the columns in the order of the training columns, whatever the ids.

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.model_selection import GridSearchCV
        >>> from unseen import BiasModel
        >>> X = np.add.outer(np.arange(12.0), np.arange(8.0))
        >>> X[::2, 1] = np.nan
        >>> search = GridSearchCV(BiasModel(), {"reg": [0.1, 100.0]}, cv=3).fit(X)
        >>> search.best_params_
        {'reg': 0.1}
        """
        check_is_fitted(self)
        cells, features = self._read_new(X, row_features, positions, "X", as_target=False)
        ranks = self._ranks_cells()
        judged = np.ones(cells.nnz, dtype=bool) if cells.weights is None else cells.weights > 0
        hidden = held_back(cells, judged & (cells.values != 0) if ranks else judged)
        if not hidden.any():
            raise InvalidDataError(
                f"X ({cells.shape[0]} x {cells.shape[1]}) has no row with two "
                f"{'positives' if ranks else 'cells'} that count, so nothing can be held back and predicted"
            )
        with one_blas_thread():
            found = [
                self._chances(part, mask, factors) if ranks else self._hidden_scores(part, mask, factors)
                for part, mask, factors in self._folded(cells, hidden, features)
            ]
        held = cells.select(hidden)
        if not ranks:
            return -self._deviance(np.concatenate(found), held)
        return float(np.average(np.concatenate(found), weights=held.weights))

    # -- hooks -----------------------------------------------------------------------

    def _ranks_cells(self) -> bool:
        """Whether blank cells say something, so that hidden positives are judged by their rank."""
        return False

    def _deviance(self, scores: FloatArray, held: Observations) -> float:
        """Error of the scores of cells."""
        return rmse(held, self._predictions(scores))

    def _hidden_scores(self, cells: Observations, hidden: BoolArray, factors: FloatArray) -> FloatArray:
        """Scores of the hidden cells of rows, from the factors that the others give."""
        rows, cols = cells.rows[hidden], cells.indices[hidden]
        scores: FloatArray = np.einsum("ij,ij->i", factors[rows], self.col_factors_[cols])
        return scores

    def _row_scores(self, factors: FloatArray) -> FloatArray:
        """Scores of all cells of rows, from their factors."""
        return matmul(factors, self.col_factors_.T, n_threads=self._n_threads())

    # -- helpers ---------------------------------------------------------------------

    def _folded(
        self, cells: Observations, hidden: BoolArray, features: Features | None
    ) -> Iterator[tuple[Observations, BoolArray, FloatArray]]:
        """Rows, a block at a time: all their cells, which are hidden, and the factors of the others."""
        step = max(1, BLOCK_CELLS // max(cells.shape[1], 1))
        for start in range(0, cells.shape[0], step):
            rows = slice(start, min(start + step, cells.shape[0]))
            mask = hidden[cells.indptr[rows.start] : cells.indptr[rows.stop]]
            part = cells[rows]
            told = self._read_target(part.select(~mask))
            yield part, mask, self._fold_in(told, None if features is None else features[rows])

    def _chances(self, cells: Observations, hidden: BoolArray, factors: FloatArray) -> FloatArray:
        """Chance of each hidden positive to score above a blank cell of its row."""
        scores = self._row_scores(factors)
        rows, own = cells.rows[hidden], np.array(scores[cells.rows[hidden], cells.indices[hidden]])
        stored = (cells.values != 0) if cells.weights is None else (cells.values != 0) | (cells.weights == 0)
        scores = np.array(scores)
        scores[cells.rows[stored], cells.indices[stored]] = np.nan  # neither above nor below
        blank = np.count_nonzero(~np.isnan(scores), axis=1)[rows]
        above = np.empty(rows.size)
        step = max(1, BLOCK_CELLS // max(cells.shape[1], 1))
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            others, mine = scores[rows[part]], own[part, None]
            above[part] = np.count_nonzero(others < mine, axis=1)
            above[part] += 0.5 * np.count_nonzero(others == mine, axis=1)
        # A row without a blank cell has all in order.
        chances: FloatArray = np.divide(above, blank, out=np.full(rows.size, 1.0), where=blank > 0)
        return chances

    if TYPE_CHECKING:  # what completers have
        col_factors_: Any

        def _read_new(
            self,
            X_new: Any,
            row_features: Any,
            positions: bool,
            argument: str = "X_new",
            *,
            as_target: bool = True,
        ) -> tuple[Observations, Features | None]: ...

        def _read_target(self, X: Any) -> Observations: ...

        def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray: ...

        def _predictions(self, scores: FloatArray) -> FloatArray: ...

        def _n_threads(self) -> int: ...


def held_back(cells: Observations, judged: BoolArray, share: float = SHARE) -> BoolArray:
    """Cells that are hidden: a share of those of each row that may be, drawn by the row's own cells.

    At least one of two, and none of one. No random numbers: a row's cells, hashed, decide.
    """
    places = np.flatnonzero(judged)
    rows = cells.rows[places].astype(np.int64)
    bits = cells.values[places].astype(np.float64).view(np.uint64)
    own = _mixed(cells.indices[places].astype(np.uint64) + _mixed(bits))
    of_row = np.zeros(cells.shape[0], dtype=np.uint64)
    np.add.at(of_row, rows, own)  # wraps, whatever the order
    order = np.lexsort((_mixed(own ^ _mixed(of_row)[rows]), rows))
    counts = np.bincount(rows, minlength=cells.shape[0])
    starts = np.cumsum(counts) - counts
    wanted = np.where(counts >= 2, np.maximum(1, np.rint(share * counts)), 0)
    rank = np.arange(places.size) - starts[rows[order]]
    hidden = np.zeros(cells.nnz, dtype=bool)
    hidden[places[order[rank < wanted[rows[order]]]]] = True
    return hidden


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Whole numbers, spread over all bits (the finaliser of splitmix64)."""
    out = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        out = (out ^ (out >> np.uint64(shift))) * np.uint64(factor)
    return out ^ (out >> np.uint64(31))
