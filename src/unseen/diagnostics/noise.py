"""How noisy each row and each column is, from the residuals of the training cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unseen.diagnostics.curvature import Curvature
from unseen.losses import CellLoss, Squared
from unseen.typing import FloatArray, IndexArray

__all__ = ["Noise", "noise_of"]

PRIOR_CELLS = 5.0
"""A row's own residuals count as much as the average row's once it has so many cells."""
N_SWEEPS = 10
MAX_LEVERAGE = 0.9


@dataclass(frozen=True)
class Noise:
    """Variance of residuals, ``mean * row[i] * col[j]``; factors of None are one.

    That of cells of weight one: a cell of weight w has 1/w of it.
    """

    mean: float
    row: FloatArray | None = None
    col: FloatArray | None = None

    def at(self, rows: IndexArray, cols: IndexArray) -> FloatArray:
        """Variance of the given cells."""
        if self.row is None or self.col is None:
            return np.full(len(rows), self.mean)
        return np.asarray(self.mean * self.row[rows] * self.col[cols])


def noise_of(model: Any, curvature: Curvature) -> Noise:
    """Learn the noise from the training cells, corrected for what each cell gave to its own fit.

    A training residual e is smaller than a new one; with the cell's leverage h (the derivative of
    its prediction by its value), w e^2 / (1 - h) has the variance of the noise, w the weight of the cell.
    Rows and columns multiply it, shrunk to one by as much as ``PRIOR_CELLS`` average cells.

    Parameters
    ----------
    model : completer
        Fitted.
    curvature : Curvature
        Of the model at its training cells.

    Returns
    -------
    Noise
        For values one factor for each row and column; for positives, whose other cells are in the
        objective too, one variance of all cells in units of the weights.
    """
    cells = curvature.cells
    rows, cols = cells.rows, cells.indices
    scores = np.asarray(model.predict_entries(rows, cols, positions=True), dtype=np.float64)
    loss = model.loss_ if getattr(model, "terms_", []) else Squared()
    if not isinstance(loss, Squared):
        shift = np.asarray(curvature.offsets.at(rows, cols))
        weight, wanted = CellLoss(loss, cells.with_values(cells.values - shift)).stored()
        return Noise(_of_all_cells(model, curvature, scores, wanted + shift, weight))
    leverage = curvature.leverage(rows, cols)
    residual = cells.values.astype(np.float64) - scores
    if cells.weights is not None:
        counted = cells.weights > 0
        weights = cells.weights[counted].astype(np.float64)
        rows, cols, leverage = rows[counted], cols[counted], weights * leverage[counted]
        residual = np.sqrt(weights) * residual[counted]
    squares = residual**2 / (1.0 - np.minimum(leverage, MAX_LEVERAGE))
    return _by_row_and_column(squares, rows, cols, cells.shape)


def _of_all_cells(model: Any, curvature: Curvature, scores: FloatArray, target: Any, weight: Any) -> float:
    """Weighted mean square over all cells of the matrix, known or not."""
    n, m = curvature.cells.shape
    w0, _ = model.loss_.blank()
    residual = scores - target
    known = float(np.sum(weight * residual * residual))
    shift = np.asarray(curvature.offsets.at(curvature.cells.rows, curvature.cells.indices))
    blank = CellLoss(model.loss_, curvature.cells).blank
    rest = 2.0 * blank.value(curvature.left, curvature.right, scores - shift, w0, 1)
    total = float(np.sum(np.broadcast_to(weight, scores.shape))) + w0 * (n * m - scores.size)
    return float((known + rest) / total)


def _by_row_and_column(
    squares: FloatArray, rows: IndexArray, cols: IndexArray, shape: tuple[int, int]
) -> Noise:
    n, m = shape
    mean = float(squares.mean())
    row: FloatArray = np.ones(n)
    col: FloatArray = np.ones(m)
    if mean == 0.0:
        return Noise(mean, row, col)
    relative = squares / mean
    row_cells, col_cells = np.bincount(rows, minlength=n), np.bincount(cols, minlength=m)
    for _ in range(N_SWEEPS):
        col = (np.bincount(cols, relative / row[rows], minlength=m) + PRIOR_CELLS) / (col_cells + PRIOR_CELLS)
        row = (np.bincount(rows, relative / col[cols], minlength=n) + PRIOR_CELLS) / (row_cells + PRIOR_CELLS)
    return Noise(mean, row, col)
