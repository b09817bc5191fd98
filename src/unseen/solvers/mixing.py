"""Whether a chain has run long enough: split R-hat and effective samples of some predictions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from unseen.exceptions import ConvergenceWarning
from unseen.typing import Array

__all__ = ["Trace", "effective_samples", "split_rhat"]

WATCHED = 500
"""Cells whose scores are followed."""
LIMIT = 1.1


def split_rhat(draws: Array) -> float:
    """Potential scale reduction of ``draws`` (sweeps x quantities), the halves of the chain as two chains.

    Variances within and between the halves are means over the quantities: one number, and no largest of
    hundreds of noisy ones.
    """
    half = len(draws) // 2
    if half < 2:
        return float("nan")
    halves = np.stack([draws[:half], draws[len(draws) - half :]])
    within = float(halves.var(axis=1, ddof=1).mean())
    between = half * float(halves.mean(axis=1).var(axis=0, ddof=1).mean())
    return float(np.sqrt((half - 1) / half + between / (half * within))) if within > 0 else 1.0


def effective_samples(draws: Array) -> Array:
    """Independent draws that the mean of each column is worth, by Geyer's initial positive sequence."""
    n = len(draws)
    if n < 4:
        return np.full(draws.shape[1], np.nan)
    away = draws - draws.mean(axis=0)
    spectrum = np.abs(np.fft.rfft(away, 2 * n, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, 2 * n, axis=0)[:n]
    rho = np.divide(covariance, covariance[0], out=np.zeros_like(covariance), where=covariance[0] > 0)
    pairs = rho[: n - n % 2].reshape(n // 2, 2, -1).sum(axis=1)
    positive = np.minimum.accumulate(pairs > 0, axis=0)
    inflation = 2.0 * np.sum(np.where(positive, pairs, 0.0), axis=0) - 1.0
    return np.asarray(n / np.maximum(inflation, 1.0 / n))


class Trace:
    """Scores of some cells, sweep by sweep.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    rng : Generator
        Chooses the cells.
    """

    def __init__(self, shape: tuple[int, int], rng: np.random.Generator) -> None:
        self.rows, self.cols = (rng.integers(length, size=WATCHED) for length in shape)
        self._draws: list[Array] = []

    def add(self, scores: Array) -> None:
        """Take the scores of the cells in one sweep."""
        self._draws.append(scores)

    def facts(self) -> dict[str, Any]:
        """Split R-hat, and the median of the cells' effective samples; warns where the halves differ."""
        draws = np.array(self._draws)
        rhat, worth = split_rhat(draws), float(np.median(effective_samples(draws)))
        if rhat > LIMIT:
            warnings.warn(
                f"the two halves of the chain differ: split R-hat is {rhat:.2f} over {WATCHED} cells, and "
                f"should be below {LIMIT}; raise burn_in and n_samples or thin",
                ConvergenceWarning,
                stacklevel=2,
            )
        return {"rhat": rhat, "effective_samples": worth}
