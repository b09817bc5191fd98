"""What a chain believes of the cells: values with noise, or levels of scores with noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from unseen.kernels.providers import Cells
from unseen.levels import LevelLoss, Ordinal
from unseen.problem import Problem
from unseen.solvers.base import by_column
from unseen.solvers.gibbs_noise import VaryingNoise
from unseen.typing import Array, FloatArray

__all__ = ["CellModel", "LevelCells", "MeasuredCells", "cells_of", "noise_between", "why_no_cells"]

NOISE_SHAPE, NOISE_RATE = 1.0, 1.0
"""Of the Gamma distribution of the precision of a cell, whose values have variance one."""
THRESHOLD_PRECISION = 1e-4
"""Of the normal prior of a threshold, in units of the noise."""
ROOM = 1e-300


Normals: TypeAlias = Callable[[tuple[int, int]], FloatArray]
"""Normal numbers of a shape, for the cells of this sweep."""


class CellModel(ABC):
    """Targets of the stored cells, with what is drawn beside the factors.

    Attributes
    ----------
    by_row : Cells
        Pattern with targets and weights, at the problem's provider; ``by_row.transposed`` is by columns.
    scale : float
        Unit of the targets.
    alpha : float
        Precision of a target of weight one, in this unit.
    varying : VaryingNoise or None
        What noise of rows and columns is beside ``alpha``.
    thresholds : array or None
        Where levels end.
    """

    by_row: Cells
    varying: VaryingNoise | None = None
    target: FloatArray
    curvature: float | FloatArray
    scale = 1.0
    alpha = 1.0
    thresholds: Array | None = None

    @abstractmethod
    def draw(
        self,
        scores: FloatArray | None,
        normals: Normals,
        rng: np.random.Generator,
    ) -> None:
        """Noise or targets given the scores of the last sweep; None before the first."""

    @abstractmethod
    def objective(self, scores: FloatArray) -> float:
        """Half the weighted squared error in the units of the data, or the loss of levels."""

    def facts(self) -> dict[str, Any]:
        """What a line of the history says of the cells."""
        if self.thresholds is not None:
            return {"thresholds": self.thresholds.tolist()}
        return {"noise_std": self.scale / float(np.sqrt(self.alpha))}

    @abstractmethod
    def of_targets(self, less: FloatArray) -> Cells:
        """The pattern with targets from which the scores of other terms are subtracted."""


def cells_of(problem: Problem, *, varying: bool = True) -> CellModel:
    """The model of the cells of a problem; two levels say too little for noise that varies."""
    if isinstance(problem.loss, LevelLoss):
        return LevelCells(problem, varying=varying and isinstance(problem.loss, Ordinal))
    return MeasuredCells(problem, varying=varying)


def why_no_cells(problem: Problem) -> str | None:
    """A reason where cells cannot be drawn, or None."""
    loss, weights = problem.loss, problem.observations.weights
    if isinstance(loss, LevelLoss):
        if weights is not None and not np.all((weights == 0) | (weights == 1)):
            return "cells with levels count once or not at all; use weights of 0 and 1"
        if loss.width != 1.0:
            return "scores of levels have noise of width 1; leave width as it is"
        if problem.provider.device != "cpu":
            return "levels are drawn on the CPU; use device='cpu'"
        return None
    if not problem.cell_loss.quadratic:
        return "the loss is not quadratic, and neither Ordinal() nor Probit()"
    if problem.blank:
        return "blank cells are pulled to a target, which is no model of how they came about; use ALS"
    return None


class MeasuredCells(CellModel):
    """``a_ij ~ N(s_ij, 1 / (alpha r_i c_j w_ij))``, values in units of their standard deviation."""

    def __init__(self, problem: Problem, *, varying: bool = True) -> None:
        cells, self.place = problem.observations, problem.provider
        self.cells = cells
        weights, linear = problem.cell_loss.normal_terms()
        counts = np.broadcast_to(np.asarray(weights, dtype=np.float64), cells.nnz)
        target = np.divide(linear, counts, out=np.zeros(cells.nnz), where=counts > 0)
        self.count = float(np.count_nonzero(counts))
        mean = np.sum(counts * target) / counts.sum()
        spread = float(np.sqrt(np.sum(counts * (target - mean) ** 2) / counts.sum()))
        self.scale = spread if spread > 0 else 1.0
        even = np.ndim(weights) == 0
        self.target = np.asarray(target / self.scale, dtype=cells.dtype)
        self.curvature = float(weights) if even else np.asarray(weights, dtype=cells.dtype)
        one = even and self.curvature == 1.0
        if varying:
            self.curvature = np.array(counts, dtype=cells.dtype)
        self.by_row = self._pattern(
            self.target if one else (self.curvature * self.target).astype(cells.dtype)
        )
        self.varying = VaryingNoise(cells, counts, self.place) if varying else None
        if self.varying is not None:
            self.targets = self.varying.in_orders(self.target)
        self.target = self.place.asarray(self.target)
        self.weights = float(counts[0]) if even and cells.nnz else self.place.asarray(counts)

    def _pattern(self, linear: FloatArray) -> Cells:
        cells, weights = self.cells, self.curvature
        found: Cells = self.place.pattern(
            cells.indptr,
            cells.indices,
            weights,
            linear,
            n_cols=cells.shape[1],
            by_column=lambda: by_column(cells, weights, linear),
        )
        return found

    def draw(
        self,
        scores: FloatArray | None,
        normals: Normals,
        rng: np.random.Generator,
    ) -> None:
        if scores is None:
            return
        squares = self._squares(scores)
        if self.varying is not None:
            prior = NOISE_SHAPE, NOISE_RATE
            squares = squares.astype(self.cells.dtype)
            self.alpha = self.varying.draw(self.by_row, squares, self.targets, prior, rng)
            self.curvature = self.varying.curvature
            return
        scale = 1.0 / (NOISE_RATE + 0.5 * float(squares.sum()))
        self.alpha = float(rng.gamma(NOISE_SHAPE + 0.5 * self.count, scale))

    def _squares(self, scores: FloatArray) -> FloatArray:
        gap = (self.target - scores).astype(np.float64)
        found: FloatArray = self.weights * gap * gap
        return found

    def objective(self, scores: FloatArray) -> float:
        return 0.5 * float(self._squares(scores).sum()) * self.scale**2

    def of_targets(self, less: FloatArray) -> Cells:
        return self._pattern((self.curvature * (self.target - less)).astype(self.cells.dtype))


class LevelCells(CellModel):
    """A cell has level k where ``z_ij`` falls between two thresholds (Albert and Chib, 1993).

    ``z_ij ~ N(s_ij, 1 / (r_i c_j))``, or with variance one where noise does not vary.

    Thresholds are drawn given the scores alone, without the z (as Cowles, 1996): a Newton step from where
    they are proposes, and a Metropolis rule decides. The z follow.
    """

    def __init__(self, problem: Problem, *, varying: bool = False) -> None:
        cells, loss = problem.observations, problem.loss
        assert isinstance(loss, LevelLoss)
        self.cells, self.loss = cells, loss
        self.thresholds: Array = loss.cuts().thresholds.copy()
        self.moves = isinstance(loss, Ordinal)
        codes, weights = loss.codes(cells.values), cells.weights
        there = np.arange(cells.nnz) if weights is None else np.flatnonzero(weights)
        self.order = there[np.argsort(codes[there], kind="stable")]
        self.bounds = np.searchsorted(codes[self.order], np.arange(len(self.thresholds) + 2))
        self.target = np.zeros(cells.nnz, dtype=cells.dtype)
        self.curvature = 1.0 if weights is None else weights
        self.counts = np.broadcast_to(np.asarray(self.curvature, dtype=np.float64), cells.nnz)
        if varying:
            self.curvature = np.array(self.counts, dtype=cells.dtype)
            self.varying = VaryingNoise(cells, self.counts, problem.provider)
        self.by_row = problem.provider.pattern(
            cells.indptr, cells.indices, self.curvature, self.target, n_cols=cells.shape[1],
            by_column=lambda: by_column(cells, self.curvature, self.target),
        )  # fmt: skip
        self.place = problem.provider
        self.accepted = 0

    def draw(
        self,
        scores: FloatArray | None,
        normals: Normals,
        rng: np.random.Generator,
    ) -> None:
        found = np.zeros(self.cells.nnz) if scores is None else scores.astype(np.float64)
        ordered, roots = found[self.order], self._roots()
        here = _Shares(ordered, self.bounds, self.thresholds, roots)
        if self.moves and scores is not None:
            here = self._moved(here, ordered, rng)
        uniform = ndtr(normals((self.cells.nnz, 1)).ravel()[self.order])
        self.target[self.order] = ordered + here.noise(uniform) / roots
        if self.varying is not None:
            squares = (self.counts * (self.target - found) ** 2).astype(self.cells.dtype)
            targets = self.varying.in_orders(self.target)
            self.varying.draw(self.by_row, squares, targets, None, rng)
            self.curvature = self.varying.curvature
            return
        transposed = self.by_row.transposed
        transposed.linear[...] = by_column(self.cells, 1.0, self.target)[3]

    def _roots(self) -> Array | float:
        """Square roots of the precisions of cells in their order."""
        if self.varying is None:
            return 1.0
        return np.asarray(np.sqrt(self.varying.curvature[self.order].astype(np.float64)))

    def _moved(self, here: _Shares, scores: Array, rng: np.random.Generator) -> _Shares:
        """Thresholds after one Metropolis step, with what belongs to them."""
        there_mean, there_root = here.newton()
        size = len(self.thresholds)
        proposal = there_mean + np.linalg.solve(there_root.T, rng.standard_normal(size))
        chance = rng.random()
        if np.any(np.diff(proposal) <= 0):
            return here
        there = _Shares(scores, self.bounds, proposal, here.roots)
        back_mean, back_root = there.newton()
        ratio = there.log_density - here.log_density
        ratio += _log_normal(self.thresholds, back_mean, back_root) - _log_normal(
            proposal, there_mean, there_root
        )
        if np.log(chance) >= ratio:
            return here
        self.thresholds = proposal
        self.accepted += 1
        return there

    def objective(self, scores: FloatArray) -> float:
        ordered = scores.astype(np.float64)[self.order]
        return -_Shares(ordered, self.bounds, self.thresholds, self._roots()).log_density

    def of_targets(self, less: FloatArray) -> Cells:
        cells, linear = self.cells, (self.curvature * (self.target - less)).astype(self.cells.dtype)
        found: Cells = self.place.pattern(
            cells.indptr, cells.indices, self.curvature, linear, n_cols=cells.shape[1],
            by_column=lambda: by_column(cells, self.curvature, linear),
        )  # fmt: skip
        return found


class _Shares:
    """Probabilities of the levels of cells, and the log density of thresholds given scores.

    ``scores`` are ordered by level, and ``bounds`` says where each level begins; ``roots`` are square roots
    of the precisions of cells.
    """

    def __init__(self, scores: Array, bounds: Array, thresholds: Array, roots: Array | float) -> None:
        ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
        counts = np.diff(bounds)
        self.bounds, self.thresholds, self.roots = bounds, thresholds, roots
        self.low = roots * (np.repeat(ends[:-1], counts) - scores)
        self.high = roots * (np.repeat(ends[1:], counts) - scores)
        self.turned, self.start, self.share = _shares(self.low, self.high)
        prior = 0.5 * THRESHOLD_PRECISION * float(thresholds @ thresholds)
        self.log_density = float(np.log(self.share).sum()) - prior

    def newton(self) -> tuple[Array, Array]:
        """Where a Newton step on the log density leads, and a Cholesky factor of its curvature there."""
        root = 1.0 / np.sqrt(2.0 * np.pi)
        k = len(self.thresholds)
        at_low = root * self.roots * np.exp(-0.5 * self.low**2) / self.share
        at_high = root * self.roots * np.exp(-0.5 * self.high**2) / self.share
        slope = -THRESHOLD_PRECISION * self.thresholds
        curvature = THRESHOLD_PRECISION * np.eye(k)
        for level in range(k + 1):
            own = slice(self.bounds[level], self.bounds[level + 1])
            a, b = at_low[own], at_high[own]
            if level < k:
                slope[level] += b.sum()
                curvature[level, level] += (b * (b + self._away(self.high, own))).sum()
            if level > 0:
                slope[level - 1] -= a.sum()
                curvature[level - 1, level - 1] += (a * (a - self._away(self.low, own))).sum()
            if 0 < level < k:
                cross = (a * b).sum()
                curvature[level, level - 1] -= cross
                curvature[level - 1, level] -= cross
        return self.thresholds + np.linalg.solve(curvature, slope), np.linalg.cholesky(curvature)

    def _away(self, ends: Array, own: slice) -> Array:
        roots = self.roots if isinstance(self.roots, float) else self.roots[own]
        return np.asarray(roots * ends[own])

    def noise(self, uniform: Array) -> Array:
        """Normal numbers between the ends of each cell, from uniform ones."""
        return _between(self.low, self.high, uniform, (self.turned, self.start, self.share))


def noise_between(low: Array, high: Array, uniform: Array) -> Array:
    """Normal numbers between two ends, from uniform ones."""
    return _between(low, high, uniform, _shares(low, high))


def _shares(low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Probabilities between two ends, after those below them; of the mirror image where that is turned.

    In the upper tail differences of probabilities have no digits; the lower tail has them.
    """
    turned = low > 0
    start = ndtr(np.where(turned, -high, low))
    return turned, start, np.maximum(ndtr(np.where(turned, -low, high)) - start, ROOM)


def _between(low: Array, high: Array, uniform: Array, shares: tuple[Array, Array, Array]) -> Array:
    turned, start, share = shares
    found = ndtri(np.clip(start + uniform * share, ROOM, 1.0 - 1e-16))
    return np.asarray(np.clip(np.where(turned, -found, found), low, high))


def _log_normal(x: Array, mean: Array, root: Array) -> float:
    """Log density of a normal distribution whose precision has this Cholesky factor, up to a constant."""
    away = (x - mean) @ root
    return float(-0.5 * away @ away + np.log(np.diag(root)).sum())
