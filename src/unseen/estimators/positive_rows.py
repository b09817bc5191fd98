"""What models share that score rows by their own positives."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from unseen.data import Observations
from unseen.estimators.pu_base import read_positives
from unseen.estimators.row_scores import RowScores
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.typing import CSR, FloatArray

__all__ = ["PositiveRows", "degree_scales"]


class PositiveRows(RowScores):
    """Base of the models whose scores of a row are a linear function of its positives."""

    positives_: CSR
    weights: bool | None

    def _read_positives(self, X: Any, row_features: Any, col_features: Any) -> Observations:
        """The target, with at least one positive."""
        if row_features is not None or col_features is not None:
            raise ParameterError(f"{type(self).__name__} takes no row_features or col_features; use BiasIMC")
        cells = self._read_target(X)
        if not cells.values.any():
            raise InvalidDataError(f"X ({cells.shape[0]} x {cells.shape[1]}) has no observed cell above zero")
        return cells

    def _read_target(self, X: Any) -> Observations:
        return read_positives(X, self.weights)

    def _weighed(self, cells: Observations) -> CSR:
        """Positives as a matrix of their weights; one of weight zero is not there."""
        weights = cells.values if cells.weights is None else cells.values * cells.weights
        return sparse.csr_array((weights.astype(cells.dtype), cells.indices, cells.indptr), shape=cells.shape)

    def _finish(self, cells: Observations) -> None:
        self.history_: list[dict[str, Any]] = []
        self.n_iter_, self.converged_ = 1, True
        self._remember(cells)

    def _ranks_cells(self) -> bool:
        return True

    def _fold_in(self, cells: Observations, row_features: Any) -> FloatArray:
        return self._scores_from(self._weighed(cells).astype(self._dtype()))

    def _n_rows(self) -> int:
        return int(self.positives_.shape[0])

    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(self.positives_.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def degree_scales(positives: CSR, powers: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Sums of rows and of columns to minus a power each; zero where there is nothing."""
    degrees = [np.asarray(positives.sum(axis=axis), dtype=np.float64) for axis in (1, 0)]
    row_scale, col_scale = (
        np.power(total, -power, out=np.zeros_like(total), where=total > 0)
        for total, power in zip(degrees, powers, strict=True)
    )
    return row_scale, col_scale
