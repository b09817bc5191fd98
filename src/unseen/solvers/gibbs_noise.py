"""Noise that differs by rows and columns: some raters are steadier than others, some things divide them.

a_ij ~ N(s_ij, 1 / (alpha r_i c_j w_ij)),    r_i ~ Gamma(nu / 2, nu / 2),    c_j likewise,
nu of rows and nu of columns even on a grid of powers of two (Lakshminarayanan, Bouchard and Archambeau, 2011)

With one noise for all, factors grow to explain that the values of some rows are spread more than those of
others, which says nothing about any single cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from unseen.data import Observations
from unseen.kernels.providers import Cells, Provider
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["NoiseKept", "NoiseSamples", "VaryingNoise"]

DEGREES = 2.0 ** np.arange(4.0, 9.5, 0.5)
"""What nu may be, all as likely before the data. With less, a column of one or two cells has a noise of its
own, and scores go to the commonest value, not to the mean: too high where most people give five stars."""
START = 8
"""Of nu on the grid: 256, nearly one noise for all, until the factors are found."""


@dataclass
class NoiseSamples:
    """Precisions of rows and columns beside the common one, in each sample.

    Attributes
    ----------
    rows, cols : ndarray of float32, shapes (S, n) and (S, m)
        r and c.
    degrees : ndarray of shape (S,)
        nu of the rows, which says what to expect of new ones.
    """

    rows: Array
    cols: Array
    degrees: Array

    def at(self, rows: IndexArray, cols: IndexArray) -> Array:
        """Precision of cells of weight one, beside the common one, of shape (cells, S)."""
        return np.asarray(self.rows[:, rows].T.astype(np.float64) * self.cols[:, cols].T)

    def variances(self, *, rows: bool, cols: bool) -> Array:
        """Mean over the samples of the variance of all cells, beside the common one.

        Of new rows, and of new columns, a precision of one is taken.
        """
        found = 1.0 / self.rows.astype(np.float64) if rows else np.ones((len(self.rows), 1))
        beside = 1.0 / self.cols.astype(np.float64) if cols else np.ones((len(self.cols), 1))
        return np.asarray(found.T @ beside / len(found))

    def of(self, sample: int, cols: IndexArray) -> tuple[Array, float]:
        """In one sample, the precision of the column of each cell, and nu of the rows."""
        return self.cols[sample, cols].astype(np.float64), float(self.degrees[sample])


class _SideNoise:
    """Precisions of one side."""

    def __init__(self, counts: Array) -> None:
        self.counts = counts
        self.values: Array = np.ones(len(counts))
        self.place = START
        halves = 0.5 * DEGREES
        each, times = np.unique(counts, return_counts=True)
        self.constants = (times * gammaln(halves[:, None] + 0.5 * each)).sum(axis=1)
        self.constants += len(counts) * (halves * np.log(halves) - gammaln(halves))

    @property
    def degrees(self) -> float:
        return float(DEGREES[self.place])

    def draw(self, squares: Array, rng: np.random.Generator) -> None:
        """Draw nu by a Metropolis step with the precisions integrated out, then these."""
        step, chance = int(rng.choice((-1, 1))), rng.random()
        there = self.place + step
        if 0 <= there < len(DEGREES):
            ratio = self._log_density(there, squares) - self._log_density(self.place, squares)
            if np.log(chance) < ratio:
                self.place = there
        self.values = rng.gamma(0.5 * (self.degrees + self.counts), 2.0 / (self.degrees + squares))

    def _log_density(self, place: int, squares: Array) -> float:
        half = 0.5 * float(DEGREES[place])
        return float(self.constants[place] - (half + 0.5 * self.counts) @ np.log(half + 0.5 * squares))


class VaryingNoise:
    """Precisions of rows and columns, and what they make of the cells.

    Parameters
    ----------
    cells : Observations
        The pattern.
    weights : array of shape (nnz,)
        Of the cells, in float64.
    place : Provider
        Where the cells are kept.
    """

    def __init__(self, cells: Observations, weights: Array, place: Provider) -> None:
        self.place, self.dtype = place, cells.dtype
        self.by_column = cells.csc.order
        counted, csc = weights > 0, cells.csc
        rows, cols = cells.rows, cells.indices
        self.sides = tuple(
            _SideNoise(np.bincount(index, weights=counted, minlength=length))
            for index, length in zip((rows, cols), cells.shape, strict=True)
        )
        own = np.repeat(np.arange(cells.shape[1], dtype=csc.indices.dtype), np.diff(csc.indptr))
        weights = weights.astype(cells.dtype)
        self.orders: tuple[tuple[Any, ...], ...] = tuple(
            tuple(place.asarray(part) for part in order)
            for order in (
                (rows, cols, weights),
                (csc.indices, own, weights[csc.order]),
            )
        )
        self.curvature: Any = self.orders[0][2]
        """Weights times precisions, by row."""

    def in_orders(self, target: FloatArray) -> tuple[Any, Any]:
        """What scores are to be, by row and by column."""
        return self.place.asarray(target), self.place.asarray(target[self.by_column])

    def draw(
        self,
        by_row: Cells,
        squares: Any,
        targets: tuple[Any, Any],
        prior: tuple[float, float] | None,
        rng: np.random.Generator,
    ) -> float:
        """Draw all precisions given weighted squared errors, and weigh the cells anew.

        The answer is the common precision, which is one where it has no prior.
        """
        rows, cols = self.sides
        sums, alpha = self._sums("row", by_row, squares), 1.0
        if prior is not None:
            rate = prior[1] + 0.5 * float(rows.values @ sums)
            alpha = float(rng.gamma(prior[0] + 0.5 * float(rows.counts.sum()), 1.0 / rate))
        rows.draw(alpha * sums, rng)
        cols.draw(alpha * self._sums("col", by_row, squares), rng)
        self._apply(by_row, targets)
        return alpha

    def _sums(self, side: str, by_row: Cells, squares: Any) -> Array:
        """Squared errors of each row or column, cells weighed by the precision of the other side."""
        rows, cols = self.sides
        if side == "row":
            other = self.place.asarray(cols.values[:, None], self.dtype)
            found = self.place.spmm(by_row, squares, other)
        else:
            other = self.place.asarray(rows.values[:, None], self.dtype)
            found = self.place.spmm_t(by_row, squares, other)
        return np.asarray(self.place.to_host(found), dtype=np.float64).ravel()

    def _apply(self, by_row: Cells, targets: tuple[Any, Any]) -> None:
        """Curvature and linear part of the cells, in both orders."""
        of_rows, of_cols = (self.place.asarray(side.values, self.dtype) for side in self.sides)
        for cells, (rows, cols, weights), target in zip(
            (by_row, by_row.transposed), self.orders, targets, strict=True
        ):
            cells.curvature = weights * of_rows[rows] * of_cols[cols]
            cells.linear = cells.curvature * target
        self.curvature = by_row.curvature


class NoiseKept:
    """Samples of precisions on the way; none where noise does not vary."""

    def __init__(self, noise: VaryingNoise | None) -> None:
        self.noise = noise
        self._found: list[tuple[Array, Array, float]] = []

    def add(self) -> None:
        """Keep where the chain is."""
        if self.noise is not None:
            rows, cols = self.noise.sides
            of_rows, of_cols = rows.values.astype(np.float32), cols.values.astype(np.float32)
            self._found.append((of_rows, of_cols, rows.degrees))

    def samples(self) -> NoiseSamples | None:
        """All of them."""
        if self.noise is None:
            return None
        rows, cols, degrees = zip(*self._found, strict=True)
        return NoiseSamples(np.stack(rows), np.stack(cols), np.array(degrees))
