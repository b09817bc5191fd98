"""Isometry probe: how evenly the known cells see matrices of low rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.linalg.blocked import gram
from unseen.typing import FloatArray

__all__ = ["Isometry", "probe_isometry"]

CELLS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Isometry:
    """Ratio of seen to true size of random matrices of low rank; 1 is ideal.

    Attributes
    ----------
    mean, std, low, high : float
        Over the draws.
    n_draws : int
        Matrices drawn.
    worst : float
        0 where there are several blocks or a row or column without cells, because a matrix between
        them is not seen at all; otherwise the smallest ratio of the draws.
    """

    mean: float
    std: float
    low: float
    high: float
    n_draws: int
    worst: float


def probe_isometry(
    cells: Observations, rank: int, n_draws: int, split: bool, rng: np.random.Generator, n_threads: int
) -> Isometry:
    """Draw Z = P Q' with Gaussian factors and compare (n m / cells) sum_known z_ij^2 with ||Z||_F^2.

    Parameters
    ----------
    cells : Observations
        The known cells.
    rank : int
        Columns of P and Q.
    n_draws : int
        Matrices to draw, each at O(cells rank).
    split : bool
        Whether there are parts that no cell connects.
    rng : Generator
        Source of the draws.
    n_threads : int
        Threads.

    Returns
    -------
    Isometry
        Statistics of the ratio.
    """
    n, m = cells.shape
    ratios = np.empty(n_draws)
    for draw in range(n_draws):
        left = rng.standard_normal((n, rank), dtype=np.float32)
        right = rng.standard_normal((m, rank), dtype=np.float32)
        seen = kernels.sddmm(cells.indptr, cells.indices, left, right, n_threads=n_threads)
        whole = float(np.sum(gram(left.astype(np.float64)) * gram(right.astype(np.float64))))
        ratios[draw] = (n / cells.nnz) * m * _square(seen) / whole
    low = float(ratios.min())
    return Isometry(
        float(ratios.mean()), float(ratios.std()), low, float(ratios.max()), n_draws, 0.0 if split else low
    )


def _square(values: FloatArray) -> float:
    """Sum of squares in float64, a part at a time."""
    parts = (
        values[start : start + CELLS_AT_A_TIME].astype(np.float64)
        for start in range(0, values.size, CELLS_AT_A_TIME)
    )
    return float(sum(float(part @ part) for part in parts))
