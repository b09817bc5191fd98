"""Kept samples of a chain: all that averaged predictions, their spread and new rows need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.kernels.devices import module_of
from unseen.linalg.designs import Design
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["Coordinates", "Draws", "Posterior", "SideSamples"]


class Coordinates(NamedTuple):
    """What the numbers of rows and columns stand for: ``rank`` factors and perhaps a bias of their own."""

    rank: int
    row_bias: bool
    col_bias: bool

    @property
    def width(self) -> int:
        """Coordinates whose products are a score: factors, and biases against ones of the other side."""
        return self.rank + self.row_bias + self.col_bias

    def own(self, side: str) -> int:
        """Coordinates that are drawn for a row or a column."""
        return self.rank + (self.row_bias if side == "row" else self.col_bias)

    def widened(self, side: str, drawn: FloatArray) -> FloatArray:
        """Coordinates ``[u, b, 1]`` of rows or ``[v, 1, c]`` of columns from what is drawn for them."""
        r, xp = self.rank, module_of(drawn)
        ones = xp.ones((*drawn.shape[:-1], 1), dtype=drawn.dtype)
        own = drawn[..., r:]  # one column, or none
        middle = (own if side == "row" else ones) if self.row_bias else own[..., :0]
        last = (own if side == "col" else ones) if self.col_bias else own[..., :0]
        found: FloatArray = xp.concatenate([drawn[..., :r], middle, last], axis=-1)
        return found

    def against(self, side: str, drawn: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """What the own coordinates of ``side`` are multiplied with, and the part of the scores beside them.

        ``drawn`` are the coordinates of the other side.
        """
        bias = self.row_bias if side == "row" else self.col_bias
        other = self.col_bias if side == "row" else self.row_bias
        table = drawn[:, : self.rank + bias].copy() if bias and other else drawn[:, : self.rank]
        xp = module_of(drawn)
        if bias and not other:
            table = xp.concatenate([table, xp.ones((len(drawn), 1), dtype=drawn.dtype)], axis=1)
        elif bias:
            table[:, -1] = 1.0
        return xp.ascontiguousarray(table), xp.ascontiguousarray(drawn[:, self.rank]) if other else None


class Draws(NamedTuple):
    """Where a chain stands, in its own units: rows, columns, and the precision of a cell."""

    rows: FloatArray
    cols: FloatArray
    alpha: float

    def of(self, side: str, length: int) -> FloatArray:
        """Draws of one side; new rows or columns begin with zeros, which say nothing about the others."""
        drawn = self.rows if side == "row" else self.cols
        return np.pad(drawn, [(0, length - len(drawn)), (0, 0)])


@dataclass
class SideSamples:
    """Prior of a side in each sample: mean (S, k), precision (S, k, k), coefficients (S, d, k) by groups."""

    mean: Array
    precision: Array
    coefficients: list[Array] = field(default_factory=list)

    def location(self, sample: int, designs: Sequence[Design | None]) -> Array:
        """Mean of rows in one sample from designs of their features, by groups; None stands for zeros."""
        total: Array = self.mean[sample][None]
        for design, coefficients in zip(designs, self.coefficients, strict=True):
            if design is not None:
                total = total + design.dot(coefficients[sample].astype(np.float64))
        return total


@dataclass
class Posterior:
    """Samples of a chain, in the units of the data.

    Attributes
    ----------
    coordinates : Coordinates
        ``(rank, row_bias, col_bias)``; :attr:`layout` has them by name.
    noise : ndarray of shape (S,)
        Precision of a cell of weight one.
    row_prior, col_prior : SideSamples
        What was believed of rows and columns.
    deviations : ndarray of float16, shape (n, S, k)
        What is to be added to the rows' means in each sample, which the factors hold, to get draws.
    scale : float
        Unit of the chain: scores are ``scale * u . v``.
    """

    coordinates: Coordinates | tuple[int, bool, bool]
    noise: Array
    row_prior: SideSamples
    col_prior: SideSamples
    deviations: Array
    scale: float = 1.0

    @property
    def n_samples(self) -> int:
        """Kept samples."""
        return len(self.noise)

    @property
    def layout(self) -> Coordinates:
        """The coordinates by their names."""
        return Coordinates(*self.coordinates)

    def stacked(self, side: str, drawn: Array) -> FloatArray:
        """Factors of the mean score, all samples side by side, from draws of shape (S, n, k)."""
        wide = self.layout.widened(side, drawn)
        if side == "row":
            wide = wide * (self.scale / self.n_samples)
        return np.ascontiguousarray(np.swapaxes(wide, 0, 1)).reshape(wide.shape[1], -1)

    def apart(self, factors: FloatArray) -> FloatArray:
        """Stacked factors by samples, of shape (n, S, width)."""
        total = self.n_samples * self.layout.width
        return factors[:, :total].reshape(len(factors), self.n_samples, self.layout.width)

    def last(self, row_factors: FloatArray, col_factors: FloatArray) -> Draws:
        """Where the chain ended, from stacked factors."""
        layout = self.layout
        rows = self.apart(row_factors)[:, -1] * (self.n_samples / self.scale)
        rows = rows[:, : layout.own("row")] + self.deviations[:, -1].astype(np.float64) / self.scale
        cols = _narrowed(layout, self.apart(col_factors)[:, -1])
        alpha = float(self.noise[-1]) * self.scale**2
        return Draws(rows.astype(row_factors.dtype), cols.copy(), alpha)

    def scores(self, left: FloatArray, right: FloatArray, rows: IndexArray | None = None) -> Array:
        """Scores of pairs in each sample, of shape (pairs, S), from stacked factors of both sides.

        Of training rows, whose numbers are given, scores of draws; of others, those of the rows' means.
        """
        columns = self.apart(right)
        found: Array = np.einsum("psk,psk->ps", self.apart(left), columns, dtype=np.float64) * self.n_samples
        if rows is not None:
            found += np.einsum("psk,psk->ps", self.deviations[rows], columns[..., : self.layout.own("row")])
        return found

    def fold_in(
        self,
        cells: Observations,
        col_factors: FloatArray,
        designs: Sequence[Design | None],
        *,
        n_threads: int = 1,
    ) -> FloatArray:
        """Stacked factors of new rows: their mean in each sample, columns as they are in that sample."""
        layout, right = self.layout, self.apart(col_factors)
        n, k = cells.shape[0], layout.own("row")
        weights = 1.0 if cells.weights is None else cells.weights.astype(np.float64)
        values = cells.values.astype(np.float64) / self.scale
        means = np.empty((self.n_samples, n, k))
        still = np.zeros((n, k))
        for s in range(self.n_samples):
            drawn = _narrowed(layout, right[:, s].astype(np.float64))
            table, shift = layout.against("row", drawn)
            alpha = self.noise[s] * self.scale**2
            precision = self.row_prior.precision[s]
            location = np.broadcast_to(self.row_prior.location(s, designs), (n, k))
            kernels.als_draw(
                cells.indptr,
                cells.indices,
                alpha * weights,
                alpha * weights * values,
                table,
                precision,
                still,
                means[s],
                offset=location @ precision,
                shift=shift,
                n_threads=n_threads,
            )
        return self.stacked("row", means)

    def embed(self, side: str, designs: Sequence[Design | None], count: int) -> FloatArray:
        """Stacked factors of rows or columns from their features alone."""
        prior = self.row_prior if side == "row" else self.col_prior
        k = self.layout.own(side)
        drawn = [np.broadcast_to(prior.location(s, designs), (count, k)) for s in range(self.n_samples)]
        return self.stacked(side, np.stack(drawn))


def _narrowed(layout: Coordinates, wide: FloatArray) -> FloatArray:
    """Coordinates of columns as they were drawn, from ``[v, 1, c]``."""
    return np.delete(wide, layout.rank, axis=1) if layout.row_bias else wide
