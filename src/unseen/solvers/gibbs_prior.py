"""What is believed of the rows (or columns) of a chain before their cells are seen, and learned with them.

u_i ~ N(m + sum_g B_g' x_gi, L^-1),    (m, L) ~ Normal-Wishart(0, beta = 2, W = I, nu = k),
B_g | L ~ matrix normal (0, I / l_g, L^-1),    l_g ~ Gamma
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unseen.linalg.blocked import gram
from unseen.linalg.designs import Design
from unseen.linalg.normal_draws import RidgeDraws, wishart
from unseen.typing import Array, FloatArray

__all__ = ["FeatureGroup", "SidePrior"]

BETA = 2.0
"""Cells that the mean of the prior is worth."""
SHAPE, RATE = 1.0, 1.0
"""Of the Gamma distribution of the weights of coefficients."""


class FeatureGroup:
    """Features that share one weight, and their coefficients.

    Parameters
    ----------
    design : Design
        Features of shape (n, d).
    width : int
        Columns of the coefficients.
    """

    def __init__(self, design: Design, width: int) -> None:
        self.draws = RidgeDraws(design)
        self.design = design
        self.weight = 1.0
        self.coefficients: FloatArray = np.zeros((design.shape[1], width))
        self.fitted: FloatArray = np.zeros((design.shape[0], width))

    def draw(self, target: FloatArray, precision: Array, noise: FloatArray, rng: np.random.Generator) -> None:
        """Coefficients and their weight, given what they are to explain."""
        root = np.linalg.inv(np.linalg.cholesky(precision))
        self.coefficients = self.draws.draw(np.ascontiguousarray(target), self.weight, root, noise)
        self.fitted = self.design.dot(np.ascontiguousarray(self.coefficients))
        size = float(np.sum(precision * gram(self.coefficients)))
        self.weight = float(rng.gamma(SHAPE + 0.5 * self.coefficients.size, 1.0 / (RATE + 0.5 * size)))


class SidePrior:
    """Mean, precision and coefficients of one side.

    Parameters
    ----------
    width : int
        Coordinates of a row.
    designs : sequence of Design
        Features by groups; none where there are none.
    diagonal : bool
        Coordinates are independent in the prior.
    """

    def __init__(self, width: int, designs: Sequence[Design] = (), *, diagonal: bool = False) -> None:
        self.width = width
        self.diagonal = diagonal
        self.mean: Array = np.zeros(width)
        self.precision: Array = np.eye(width) * width
        self.groups = [FeatureGroup(design, width) for design in designs]

    def location(self) -> Array:
        """Mean of each row in the prior, of shape (n, k), or (1, k) where there are no features."""
        total: Array = self.mean[None]
        for group in self.groups:
            total = total + group.fitted
        return total

    def draw(
        self, factors: FloatArray, noise: Callable[[int, int], FloatArray], rng: np.random.Generator
    ) -> None:
        """All of it, given the factors; ``noise(place, rows)`` gives normal numbers for a group."""
        wide = factors.astype(np.float64, copy=False)
        self._draw_moments(wide - (self.location() - self.mean), rng)
        for place, group in enumerate(self.groups):
            others = self.location() - group.fitted
            numbers = noise(place, sum(group.design.shape))
            group.draw(wide - others, self.precision, numbers, rng)

    def _draw_moments(self, rest: FloatArray, rng: np.random.Generator) -> None:
        """Mean and precision given what the features leave, and the coefficients, whose prior they scale."""
        n, k = rest.shape
        centre = rest.sum(axis=0) / max(n, 1)
        rest = np.ascontiguousarray(rest - centre)
        squares = np.eye(k) + gram(rest) + BETA * n / (BETA + n) * np.outer(centre, centre)
        degrees = float(k + n)
        for group in self.groups:
            squares += group.weight * gram(group.coefficients)
            degrees += len(group.coefficients)
        if self.diagonal:
            self.precision = np.diag(rng.gamma(0.5 * degrees, 2.0 / np.diag(squares)))
        else:
            self.precision = wishart(degrees, 0.5 * (squares + squares.T), rng)
        root = np.linalg.inv(np.linalg.cholesky(self.precision))
        self.mean = n * centre / (BETA + n) + rng.standard_normal(k) @ root / np.sqrt(BETA + n)
