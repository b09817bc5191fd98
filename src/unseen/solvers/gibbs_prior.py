"""What is believed of the rows (or columns) of a chain before their cells are seen, and learned with them.

u_i = d o z_i,    z_i ~ N(m + sum_g B_g' x_gi, L^-1),    d_l ~ N(0, t^2 k),    o entry by entry,
(m, L) ~ Normal-Wishart(0, beta = 2, W = I, nu = k),    B_g | L ~ matrix normal (0, I / l_g, L^-1),
l_g even on a grid of powers of two

The sizes d make the inverse of the covariance of u_i a scaled Wishart matrix (O'Malley and Zaslavsky, 2008):
a standard deviation of a coordinate is about as likely to lie anywhere between zero and t, so that directions
that the cells do not support may vanish, which they could not under a Wishart distribution alone. Given the
z_i, scores are linear in d: one normal draw moves all sizes as far as the cells allow, where given the u_i
they would creep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unseen.kernels.devices import to_host
from unseen.linalg.blocked import gram
from unseen.linalg.designs import Design
from unseen.linalg.normal_draws import RidgeDraws, wishart
from unseen.typing import Array, FloatArray

__all__ = ["FeatureGroup", "SidePrior"]

SPREAD = 1.0
"""Of the prior of a standard deviation, t above, in units of that of the values."""
BETA = 2.0
"""Cells that the mean of the prior is worth."""
WEIGHTS = 2.0 ** np.arange(-8.0, 16.5, 0.5)
"""What the weight of a group may be, all as likely before the data."""


class FeatureGroup:
    """Features whose coefficients share one weight.

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
        self.weight = 16.0
        self.coefficients: FloatArray = np.zeros((design.shape[1], width))
        self.fitted: FloatArray = np.zeros((design.shape[0], width))

    def draw(self, target: FloatArray, precision: Array, noise: FloatArray, rng: np.random.Generator) -> None:
        """Weight and coefficients, given what they are to explain and the precision of the rest.

        The weight is drawn with the coefficients integrated out: given many of them it would hardly move.
        """
        lower = np.linalg.cholesky(precision)
        white = np.ascontiguousarray(target @ lower)
        evidence = self.draws.evidence(white, WEIGHTS)
        if evidence is not None:
            self.weight = _chosen(evidence, rng)
        drawn = self.draws.draw(white, self.weight, noise)
        self.coefficients = np.ascontiguousarray(drawn @ np.linalg.inv(lower))
        self.fitted = self.design.dot(self.coefficients)
        if evidence is None:
            size = float(np.sum(drawn * drawn))
            self.weight = _chosen(0.5 * drawn.size * np.log(WEIGHTS) - 0.5 * size * WEIGHTS, rng)


def _chosen(log_density: Array, rng: np.random.Generator) -> float:
    chances = np.exp(log_density - log_density.max())
    return float(rng.choice(WEIGHTS, p=chances / chances.sum()))


class SidePrior:
    """Mean, precision, coefficients and sizes of one side.

    All but the sizes are in their units: what is drawn, divided by them.

    Parameters
    ----------
    width : int
        Coordinates of a row.
    designs : sequence of Design
        Features by groups; none where there are none.
    diagonal : bool
        Coordinates are independent in the prior.
    centred : bool
        The mean is zero, and not learned.
    """

    def __init__(
        self, width: int, designs: Sequence[Design] = (), *, diagonal: bool = False, centred: bool = False
    ) -> None:
        self.width = width
        self.diagonal = diagonal
        self.centred = centred
        self.mean: Array = np.zeros(width)
        self.precision: Array = np.eye(width) * width
        self.sizes: Array = np.ones(width)
        self.groups = [FeatureGroup(design, width) for design in designs]

    def location(self) -> Array:
        """Mean of each row in the prior, of shape (n, k), or (1, k) where there are no features."""
        total: Array = self.mean[None]
        for group in self.groups:
            total = total + group.fitted
        return total

    def resize(self, seen: Array, rng: np.random.Generator) -> Array:
        """Draw the sizes, given all else, and answer by which factors they changed.

        ``seen`` is what the cells say of such factors: the matrix and the vector of their log density.
        """
        spread = SPREAD * np.sqrt(self.width)
        root = np.linalg.cholesky(seen[:, :-1] + np.diag((self.sizes / spread) ** 2))
        factors = np.linalg.solve(
            root.T, np.linalg.solve(root, seen[:, -1]) + rng.standard_normal(self.width)
        )
        self.sizes = self.sizes * factors
        return np.asarray(factors)

    def moments(self) -> tuple[Array, Array]:
        """Mean and precision of what is drawn."""
        return self.mean * self.sizes, self.precision / np.outer(self.sizes, self.sizes)

    def draw(
        self, factors: FloatArray, noise: Callable[[int, int], FloatArray], rng: np.random.Generator
    ) -> None:
        """All but the sizes, given the factors; ``noise(place, rows)`` gives normal numbers for a group."""
        wide = factors.astype(np.float64, copy=False)
        self._draw_moments(wide - (self.location() - self.mean) if self.groups else wide, rng)
        for place, group in enumerate(self.groups):
            others = self.location() - group.fitted
            numbers = noise(place, sum(group.design.shape))
            group.draw(wide - others, self.precision, numbers, rng)

    def _draw_moments(self, rest: FloatArray, rng: np.random.Generator) -> None:
        """Mean and precision given what the features leave, and the coefficients, whose prior they scale."""
        n, k = rest.shape
        if self.centred:
            squares, centre = np.eye(k) + to_host(gram(rest)), np.zeros(k)
        else:
            there = rest.sum(axis=0) / max(n, 1)
            centre = to_host(there)
            squares = np.eye(k) + to_host(gram(rest - there))
            squares += BETA * n / (BETA + n) * np.outer(centre, centre)
        degrees = float(k + n)
        for group in self.groups:
            squares += group.weight * gram(group.coefficients)
            degrees += len(group.coefficients)
        if self.diagonal:
            self.precision = np.diag(rng.gamma(0.5 * degrees, 2.0 / np.diag(squares)))
        else:
            self.precision = wishart(degrees, 0.5 * (squares + squares.T), rng)
        if self.centred:
            return
        root = np.linalg.inv(np.linalg.cholesky(self.precision))
        self.mean = n * centre / (BETA + n) + rng.standard_normal(k) @ root / np.sqrt(BETA + n)
