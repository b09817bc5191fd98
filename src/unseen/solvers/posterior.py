"""Kept samples of a chain: all that averaged predictions, their spread and new rows need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from unseen import kernels
from unseen.data import Observations
from unseen.kernels.devices import module_of
from unseen.linalg.blocked import matmul
from unseen.linalg.designs import Design
from unseen.solvers.gibbs_cells import noise_between
from unseen.solvers.gibbs_noise import NoiseSamples
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["Coordinates", "Draws", "Posterior", "SideSamples", "drawn_rows"]

TURNS = 8
"""Draws of targets and of a new row whose cells have levels, in each sample."""


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
    """Where a chain stands, in its own units: rows, columns, precision of a cell, ends of levels."""

    rows: FloatArray
    cols: FloatArray
    alpha: float
    thresholds: Array | None = None

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
    thresholds : ndarray of shape (S, levels - 1), optional
        Where levels end, where cells have levels.
    varying : NoiseSamples, optional
        What rows and columns have of their own, where noise varies.
    """

    coordinates: Coordinates | tuple[int, bool, bool]
    noise: Array
    row_prior: SideSamples
    col_prior: SideSamples
    deviations: Array
    scale: float = 1.0
    thresholds: Array | None = None
    varying: NoiseSamples | None = None

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
        thresholds = None if self.thresholds is None else self.thresholds[-1]
        return Draws(rows.astype(row_factors.dtype), cols.copy(), alpha, thresholds)

    def noise_at(self, rows: IndexArray, cols: IndexArray) -> Array:
        """Precisions of cells of weight one in each sample, of shape (cells or 1, S)."""
        return self.noise[None] if self.varying is None else self.noise * self.varying.at(rows, cols)

    def scores(self, left: FloatArray, right: FloatArray, rows: IndexArray | None = None) -> Array:
        """Scores of pairs in each sample, of shape (pairs, S), from stacked factors of both sides.

        Of training rows, whose numbers are given, scores of draws; of others, those of the rows' means.
        """
        columns = self.apart(right)
        found: Array = np.einsum("psk,psk->ps", self.apart(left), columns, dtype=np.float64) * self.n_samples
        if rows is not None:
            found += np.einsum("psk,psk->ps", self.deviations[rows], columns[..., : self.layout.own("row")])
        return found

    def spread(self, left: FloatArray, right: FloatArray, *, of_training: bool, n_threads: int = 1) -> Array:
        """Variance of the scores of a block over the samples, from stacked factors of both sides."""
        rows, columns, layout = self.apart(left), self.apart(right), self.layout
        mean, squares = (np.zeros((len(left), len(right))) for _ in range(2))
        for s in range(self.n_samples):
            drawn = rows[:, s] * self.n_samples
            if of_training:
                drawn[:, : layout.own("row")] += self.deviations[:, s]
            scores = matmul(drawn, np.ascontiguousarray(columns[:, s].T), n_threads=n_threads)
            away = scores - mean
            mean += away / (s + 1)
            squares += away * (scores - mean)
        return squares / self.n_samples

    def fold_in(
        self,
        cells: Observations,
        col_factors: FloatArray,
        designs: Sequence[Design | None],
        *,
        codes: Array | None = None,
        n_threads: int = 1,
    ) -> FloatArray:
        """Stacked factors of new rows: their mean in each sample, columns as they are in that sample.

        Where cells have levels, ``codes`` are their numbers; targets and rows are drawn in turns, and the
        mean is that of the last turn.
        """
        layout, right = self.layout, self.apart(col_factors)
        n, k = cells.shape[0], layout.own("row")
        values = cells.values.astype(np.float64) / self.scale
        means = np.empty((self.n_samples, n, k))
        for s in range(self.n_samples):
            table, shift = layout.against("row", _narrowed(layout, right[:, s].astype(np.float64)))
            means[s] = drawn_rows(
                cells,
                table,
                values,
                alpha=float(self.noise[s] * self.scale**2),
                prior=(self.row_prior.location(s, designs), self.row_prior.precision[s]),
                beside=None if shift is None else shift[cells.indices],
                levels=None if self.thresholds is None or codes is None else (self.thresholds[s], codes),
                varying=None if self.varying is None else self.varying.of(s, cells.indices),
                sample=s,
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


def drawn_rows(
    cells: Observations,
    table: FloatArray,
    values: Array,
    *,
    alpha: float,
    prior: tuple[Array, Array],
    beside: Array | None,
    levels: tuple[Array, Array] | None,
    varying: tuple[Array, float] | None = None,
    sample: int,
    n_threads: int = 1,
) -> FloatArray:
    """Means of new rows whose cells are known, in one sample.

    Parameters
    ----------
    cells : Observations
        Pattern and weights.
    table : array of shape (m, k)
        What rows are multiplied with.
    values : array of shape (nnz,)
        Targets, in the unit of the chain.
    alpha : float
        Precision of a cell of weight one.
    prior : (mean, precision)
        Mean of shape (n or 1, k), precision of shape (k, k).
    beside : array of shape (nnz,), optional
        Part of the scores that is known.
    levels : (thresholds, codes), optional
        Where cells have levels: targets and rows are drawn in turns, and the means are those of the last.
    varying : (precisions, degrees), optional
        Where noise varies: precision of the column of each cell, and nu of the rows. Rows are drawn in turns
        with what is expected of their precisions then.
    sample : int
        Number of the sample, for its random numbers.
    n_threads : int
    """
    n, k = cells.shape[0], table.shape[1]
    location, precision = np.broadcast_to(prior[0], (n, k)), prior[1]
    options: dict[str, Any] = {"offset": location @ precision, "n_threads": n_threads}
    weights: Array = np.ones(cells.nnz) if cells.weights is None else cells.weights.astype(np.float64)
    if varying is not None:
        weights = weights * varying[0]
    steady = np.ones(n)
    known = np.zeros(cells.nnz) if beside is None else beside

    def drawn(targets: Array, noise: Array) -> FloatArray:
        curvature = alpha * weights * steady[cells.rows]
        pattern = cells.indptr, cells.indices, curvature, curvature * (targets - known)
        return kernels.als_draw(*pattern, table, precision, noise, np.empty((n, k)), **options)

    def scores_of(rows: FloatArray) -> Array:
        return np.asarray(
            kernels.sddmm(cells.indptr, cells.indices, rows, table, n_threads=n_threads) + known
        )

    def learned(rows: FloatArray, targets: Array) -> Array:
        """What is expected of the precisions of the rows."""
        squares = alpha * weights * (targets - scores_of(rows)) ** 2
        return np.asarray((degrees + counts) / (degrees + np.bincount(cells.rows, squares, minlength=n)))

    counts, degrees = np.bincount(cells.rows, minlength=n), 0.0 if varying is None else varying[1]
    if levels is not None:
        thresholds, codes = levels
        ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
        rows = np.array(location, order="C")
        for turn in range(TURNS):
            scores, root = scores_of(rows), np.sqrt(weights * steady[cells.rows])
            uniform = ndtr(kernels.normals((cells.nnz, 1), sample, turn, 0).ravel())
            low, high = (root * (ends[codes + up] - scores) for up in (0, 1))
            values = scores + noise_between(low, high, uniform) / root
            if varying is not None:
                steady = learned(rows, values)
            if turn < TURNS - 1:
                rows = drawn(values, kernels.normals((n, k), sample, turn, 1))
    elif varying is not None:
        for turn in range(TURNS):
            # The same numbers for all rows: none depends on what others are asked for.
            rows = drawn(values, np.repeat(kernels.normals((1, k), sample, turn, 1), n, axis=0))
            steady = learned(rows, values)
    return drawn(values, np.zeros((n, k)))
