"""How many measurements there are, and what they weigh on average."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["CHUNK", "MOST_DRAWS", "Law", "chunk_generator", "expected_weights", "n_constraints"]

CHUNK = 64
"""Measurements that are drawn together. A draw belongs to a chunk, whoever asks for it."""

MOST_DRAWS = 10**11
"""Random signs of one pass over the measurements that can be waited for: minutes."""


@dataclass(frozen=True)
class Law:
    """The law of a random augmentation.

    Attributes
    ----------
    n_rows : int
        Measurements in all, p; the first ones hold the observed cells.
    weight : float
        tau: the squared size of the random entries is tau times that of the paper.
    gamma : float
        Chance of +s, and of -s; only for sparse measurements.
    resample_original : bool
        Whether the measurements of observed cells get random entries too.
    seed : int
        Key of the generator.
    """

    n_rows: int
    weight: float = 1.0
    gamma: float = 0.01
    resample_original: bool = True
    seed: int = 0

    @property
    def sign_size(self) -> float:
        """S = sqrt(tau / (2 p gamma)), which gives each entry the variance tau / p."""
        return math.sqrt(self.weight / (2.0 * self.n_rows * self.gamma))

    @property
    def dense_size(self) -> float:
        """Size of entries that are never zero, sqrt(tau / p)."""
        return math.sqrt(self.weight / self.n_rows)


def n_constraints(shape: tuple[int, int], n_cells: int, rank: int, c0: float) -> int:
    """P = max(cells, ceil(c0 r (m + n) ln(m n))) of Algorithm 1."""
    m, n = shape
    return max(n_cells, math.ceil(c0 * rank * (m + n) * math.log(m * n)))


def expected_weights(law: Law, n_cells: int) -> tuple[float, float]:
    """Weights of observed and of other cells in the mean over all draws (AMF, equation E).

    With random entries on all rows: w_obs = 1 + tau (1 - 1/p) and w_unobs = tau. With random entries
    on the new rows alone, both lose the share of the rows without.
    """
    p = law.n_rows
    if law.resample_original:
        return 1.0 + law.weight * (1.0 - 1.0 / p), law.weight
    new = law.weight * (p - n_cells) / p
    return 1.0 + new, new


def chunk_generator(seed: int, chunk: int) -> np.random.Generator:
    """The random numbers of one chunk: counter-based, so any chunk can be had without the others."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, chunk], dtype=np.uint64)))
