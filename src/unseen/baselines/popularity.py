"""The list that everybody gets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from unseen.data import Observations
from unseen.data.ids import Side
from unseen.estimators.base import Completer
from unseen.exceptions import InvalidDataError, ParameterError, UnsupportedComposition
from unseen.losses import cells_that_count
from unseen.typing import Features, FloatArray

__all__ = ["Popularity"]


class Popularity(Completer):
    """Ranks columns by how many rows have them: the baseline of every ranking.

    The score of a cell is the share of rows whose cell in its column is stored and not zero,
    whatever the row. A stored cell counts by its weight, a blank one counts one.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Ones, and the share of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.baselines import Popularity
    >>> X = np.array([[1.0, np.nan, 1.0], [np.nan, np.nan, 1.0]])
    >>> Popularity().fit(X).recommend([1], 2, exclude=None)[0].tolist()
    [[2, 0]]
    """

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Count the non-zero cells of each column.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations of shape (n_rows, n_cols)
            Target.
        y : None
            Ignored; there for scikit-learn.
        row_features, col_features : None
            Not used by this model; refused if given.

        Returns
        -------
        self
        """
        if row_features is not None or col_features is not None:
            raise ParameterError("Popularity takes no row_features or col_features; use BiasIMC for these")
        cells = self._read_target(X)
        if cells_that_count(cells).nnz == 0:
            raise InvalidDataError(f"X ({cells.shape[0]} x {cells.shape[1]}) has no observed cell")
        n_rows, n_cols = cells.shape
        weights = None if cells.weights is None else cells.weights[cells.values != 0]
        counts = np.bincount(cells.indices[cells.values != 0], weights, minlength=n_cols)
        blank = n_rows - np.bincount(cells.indices, minlength=n_cols)
        total = np.maximum(blank + cells.degrees("col"), np.finfo(float).tiny)
        self.col_factors_ = (counts / total)[:, None].astype(cells.dtype)
        self.row_factors_ = np.ones((cells.shape[0], 1), dtype=cells.dtype)
        self.history_, self.n_iter_, self.converged_ = [], 1, True
        self._remember(cells)
        return self

    def _directions(self, side: Side) -> FloatArray:
        raise UnsupportedComposition(f"{type(self).__name__} has no factors that could be similar")

    def _ranks_cells(self) -> bool:
        return True

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        return np.ones((cells.shape[0], 1), dtype=self.row_factors_.dtype)
