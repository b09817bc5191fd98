"""What is subtracted before a model is fitted: a mean, or a mean and biases.

BiasModel:  min over b, c   1/2 sum_stored (x_ij - mu - b_i - c_j)^2
                            + reg_row/2 ||b||^2 + reg_col/2 ||c||^2,   mu = mean of the stored cells
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.exceptions import InvalidDataError
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["Offsets", "bias_objective", "bias_sweeps", "cell_mean", "fit_offsets", "row_biases"]

CELLS_AT_A_TIME = 1 << 16
"""Cells of a part: float64 copies of it stay in cache."""


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

    def removed(self, cells: Observations) -> FloatArray:
        """Values of the cells without the offsets, in their own type."""
        out = np.empty_like(cells.values)
        rows = cells.rows if self.row is not None else cells.indices  # long, and not made without need
        for start in range(0, cells.nnz, CELLS_AT_A_TIME):
            part = slice(start, start + CELLS_AT_A_TIME)
            out[part] = cells.values[part] - np.asarray(self.at(rows[part], cells.indices[part]))
        return out

    def row_coordinates(self, n_rows: int, row: FloatArray | None) -> FloatArray:
        """Extra coordinates of row factors: ``[mean + b_i, 1]``; new rows without a bias get the mean."""
        first = np.full(n_rows, self.mean) if row is None else self.mean + row
        return np.column_stack([first, np.ones(n_rows)])[:, : self.width]

    def col_coordinates(self, n_cols: int, col: FloatArray | None) -> FloatArray:
        """Extra coordinates of column factors: ``[1, c_j]``."""
        second = np.zeros(n_cols) if col is None else col
        return np.column_stack([np.ones(n_cols), second])[:, : self.width]


def fit_offsets(
    cells: Observations,
    center: str,
    reg: tuple[float, float] = (5.0, 5.0),
    n_sweeps: int = 15,
    *,
    n_threads: int = 1,
) -> Offsets:
    """Offsets for ``center`` in {"none", "mean", "biases"}."""
    if center == "none":
        return Offsets()
    if center == "mean":
        return Offsets(mean=cell_mean(cells))
    sweeps = bias_sweeps(cells, *reg, n_threads=n_threads)
    return [next(sweeps) for _ in range(n_sweeps)][-1]


def cell_mean(cells: Observations) -> float:
    """Mean of the values, weighted by the weights of the cells."""
    with np.errstate(over="ignore", invalid="ignore"):
        if cells.weights is None:
            mean = float(cells.values.mean(dtype=np.float64))
        else:
            total = float(cells.weights.sum(dtype=np.float64))
            weighted = np.dot(cells.weights.astype(np.float64), cells.values)
            mean = float(weighted) / total if total > 0 else 0.0
    if not np.isfinite(mean):
        largest = np.abs(cells.values).max()
        raise InvalidDataError(f"X holds values up to {largest:g}, whose sum is no number; rescale them")
    return mean


def bias_sweeps(
    cells: Observations, reg_row: float, reg_col: float, *, mean: float | None = None, n_threads: int = 1
) -> Iterator[Offsets]:
    """Exact alternating minimisation over row and column biases, above the mean of the cells.

    Rows come last, so a row's bias is what :func:`row_biases` gives for the same cells. The values enter
    through their sums over rows and columns alone; a half sweep adds up the biases of the other side over
    the pattern.
    """
    n, m = cells.shape
    mean = cell_mean(cells) if mean is None else mean
    by_row, csc = (cells.indptr, cells.indices), cells.csc
    row_count, col_count = cells.degrees("row"), cells.degrees("col")
    counts: FloatArray | float = 1.0 if cells.weights is None else cells.weights
    by_col: FloatArray | float = 1.0 if cells.weights is None else cells.weights[csc.order]
    values = cells.values * counts if cells.weights is not None else cells.values
    row_sums = kernels.spmm(*by_row, values, np.ones((m, 1)), n_threads=n_threads)[:, 0]
    row_sums -= mean * row_count
    col_sums = np.bincount(cells.indices, values, minlength=m) - mean * col_count
    row: FloatArray = np.zeros(n)
    while True:
        above = kernels.spmm(csc.indptr, csc.indices, by_col, row[:, None], n_threads=n_threads)[:, 0]
        col = _ratio(col_sums - above, col_count + reg_col)
        above = kernels.spmm(*by_row, counts, col[:, None], n_threads=n_threads)[:, 0]
        row = _ratio(row_sums - above, row_count + reg_row)
        yield Offsets(mean, row, col, reg_row, reg_col)


def bias_objective(cells: Observations, offsets: Offsets) -> float:
    """What the sweeps lower."""
    row, col = offsets.row, offsets.col
    assert row is not None
    assert col is not None
    total = offsets.reg_row * float(row @ row) + offsets.reg_col * float(col @ col)
    rows = cells.rows
    for start in range(0, cells.nnz, CELLS_AT_A_TIME):
        part = slice(start, start + CELLS_AT_A_TIME)
        residual = cells.values[part] - offsets.at(rows[part], cells.indices[part])
        counts = 1.0 if cells.weights is None else cells.weights[part]
        total += float(residual @ (counts * residual))
    return 0.5 * total


def row_biases(cells: Observations, offsets: Offsets) -> FloatArray | None:
    """Biases of new rows from their cells, column biases fixed."""
    if offsets.row is None:
        return None
    deviation = cells.values - offsets.mean
    if offsets.col is not None:
        deviation = deviation - offsets.col[cells.indices]
    if cells.weights is not None:
        deviation = deviation * cells.weights
    sums = np.bincount(cells.rows, deviation, minlength=cells.shape[0])
    return _ratio(sums, cells.degrees("row") + offsets.reg_row)


def _ratio(sums: Array, sizes: Array) -> FloatArray:
    """Rows without cells and without a penalty have bias zero."""
    return np.divide(sums, sizes, out=np.zeros(len(sums)), where=sizes > 0)
