"""What is subtracted before a model is fitted: a mean, or a mean and biases.

BiasModel:  min over b, c   1/2 sum_stored (x_ij - mu - b_i - c_j)^2
                            + reg_row/2 ||b||^2 + reg_col/2 ||c||^2,   mu = mean of the stored cells
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unseen.data import Observations
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["Offsets", "bias_sweeps", "fit_offsets", "row_biases"]


@dataclass(frozen=True)
class Offsets:
    """``mean + row[i] + col[j]``; None stands for zeros."""

    mean: float = 0.0
    row: FloatArray | None = None
    col: FloatArray | None = None
    reg_row: float = 0.0
    reg_col: float = 0.0

    @property
    def width(self) -> int:
        """Extra coordinates that the offsets need in the factors."""
        if self.row is not None or self.col is not None:
            return 2
        return 1 if self.mean else 0

    def at(self, rows: IndexArray, cols: IndexArray) -> FloatArray | float:
        """Offsets of the given cells."""
        total: FloatArray | float = self.mean
        if self.row is not None:
            total = total + self.row[rows]
        if self.col is not None:
            total = total + self.col[cols]
        return total

    def row_coordinates(self, n_rows: int, row: FloatArray | None) -> FloatArray:
        """Extra coordinates of row factors: ``[mean + b_i, 1]``; new rows without a bias get the mean."""
        first = np.full(n_rows, self.mean) if row is None else self.mean + row
        return np.column_stack([first, np.ones(n_rows)])[:, : self.width]

    def col_coordinates(self, n_cols: int, col: FloatArray | None) -> FloatArray:
        """Extra coordinates of column factors: ``[1, c_j]``."""
        second = np.zeros(n_cols) if col is None else col
        return np.column_stack([np.ones(n_cols), second])[:, : self.width]


def fit_offsets(
    cells: Observations, center: str, reg: tuple[float, float] = (5.0, 5.0), n_sweeps: int = 15
) -> Offsets:
    """Offsets for ``center`` in {"none", "mean", "biases"}."""
    if center == "none":
        return Offsets()
    if center == "mean":
        return Offsets(mean=float(cells.values.mean(dtype=np.float64)))
    sweeps = bias_sweeps(cells, *reg)
    return [next(sweeps)[0] for _ in range(n_sweeps)][-1]


def bias_sweeps(cells: Observations, reg_row: float, reg_col: float) -> Iterator[tuple[Offsets, float]]:
    """Exact alternating minimisation over row and column biases, with the objective of each sweep.

    Rows come last, so a row's bias is what :func:`row_biases` gives for the same cells.
    """
    n, m = cells.shape
    mean = float(cells.values.mean(dtype=np.float64))
    deviation = cells.values - mean
    row: FloatArray = np.zeros(n)
    col: FloatArray = np.zeros(m)
    row_size = np.bincount(cells.rows, minlength=n) + reg_row
    col_size = np.bincount(cells.indices, minlength=m) + reg_col
    while True:
        col = _ratio(np.bincount(cells.indices, deviation - row[cells.rows], minlength=m), col_size)
        row = _ratio(np.bincount(cells.rows, deviation - col[cells.indices], minlength=n), row_size)
        residual = deviation - row[cells.rows] - col[cells.indices]
        objective = 0.5 * float(residual @ residual + reg_row * (row @ row) + reg_col * (col @ col))
        yield Offsets(mean, row, col, reg_row, reg_col), objective


def row_biases(cells: Observations, offsets: Offsets) -> FloatArray | None:
    """Biases of new rows from their cells, column biases fixed."""
    if offsets.row is None:
        return None
    deviation = cells.values - offsets.mean
    if offsets.col is not None:
        deviation = deviation - offsets.col[cells.indices]
    n = cells.shape[0]
    size = np.bincount(cells.rows, minlength=n) + offsets.reg_row
    return _ratio(np.bincount(cells.rows, deviation, minlength=n), size)


def _ratio(sums: Array, sizes: Array) -> FloatArray:
    """Rows without cells and without a penalty have bias zero."""
    return np.divide(sums, sizes, out=np.zeros(len(sums)), where=sizes > 0)
