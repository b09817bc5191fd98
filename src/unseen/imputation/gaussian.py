"""Gaps filled by their mean given the rest of the row, under one normal distribution of all rows.

With mean mu and precision P = C^-1, the missing cells m of a row z with observed cells o have the mean
``mu_m - P_mm^-1 P_mo (z_o - mu_o)`` and the covariance ``P_mm^-1``. That is the best linear prediction of
each gap from all observed cells of its row, for all columns at once. Expectation and maximisation in
turn give mu and C; ``shrinkage`` counts as so many more rows with independent columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import linalg

from unseen.linalg.blocked import gram, in_blocks, matmul
from unseen.typing import Array, FloatArray

__all__ = ["Gaussian", "fill_gaps", "learn_gaussian", "pairwise_gaussian"]

BLOCK_ROWS = 256


class Gaussian(NamedTuple):
    """Mean and covariance of the rows."""

    mean: FloatArray
    covariance: FloatArray


def pairwise_gaussian(values: FloatArray, seen: Array, shrinkage: float, *, n_threads: int = 1) -> Gaussian:
    """Each covariance from the rows that have both columns; negative directions are lifted."""
    mean = values.sum(axis=0, where=seen) / np.maximum(seen.sum(axis=0), 1)
    off = np.where(seen, values - mean, 0.0)
    both = gram(seen.astype(off.dtype), n_threads=n_threads)
    covariance = _shrunk(gram(off, n_threads=n_threads) / np.maximum(both, 1.0), len(values), shrinkage)
    size, vectors = linalg.eigh(covariance)
    return Gaussian(mean, (vectors * np.maximum(size, 1e-3 * size[-1])) @ vectors.T)


def learn_gaussian(
    values: FloatArray,
    seen: Array,
    shrinkage: float,
    start: Gaussian,
    *,
    max_iter: int = 30,
    tol: float = 1e-3,
    n_threads: int = 1,
) -> tuple[Gaussian, list[float]]:
    """Expectation and maximisation in turn from a start; also the relative change of each round."""
    found, changes = start, []
    for _ in range(max_iter):
        filled, spread = _expected(values, seen, found, n_threads)
        mean = filled.mean(axis=0)
        off = filled - mean
        covariance = _shrunk((gram(off, n_threads=n_threads) + spread) / len(values), len(values), shrinkage)
        size = float(np.linalg.norm(covariance))
        changes.append(float(np.linalg.norm(covariance - found.covariance)) / max(size, 1e-300))
        found = Gaussian(mean, covariance)
        if changes[-1] <= tol:
            break
    return found, changes


def fill_gaps(values: FloatArray, seen: Array, model: Gaussian, *, n_threads: int = 1) -> FloatArray:
    """The values, with each gap at its mean given the rest of its row."""
    return _expected(values, seen, model, n_threads, with_spread=False)[0]


def _shrunk(covariance: FloatArray, n_rows: int, shrinkage: float) -> FloatArray:
    """As if there were some more rows with independent columns of the same variances."""
    out = covariance * (n_rows / (n_rows + shrinkage))
    np.fill_diagonal(out, np.maximum(np.diag(covariance), 1e-9))
    return out


def _expected(
    values: FloatArray, seen: Array, model: Gaussian, n_threads: int, *, with_spread: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Filled values, and the sum over the rows of the covariance of their gaps."""
    precision = linalg.inv(model.covariance, check_finite=False)
    precision = 0.5 * (precision + precision.T)
    filled = np.where(seen, values, model.mean)
    pull = matmul(filled - model.mean, precision, n_threads=n_threads)
    groups = list(_patterns(seen))
    shape = model.covariance.shape if with_spread else (0, 0)

    def task(part: slice) -> FloatArray:
        spread = np.zeros(shape)
        for gaps, rows in groups[part]:
            place = np.ix_(gaps, gaps)
            factor = linalg.cho_factor(precision[place], lower=True, check_finite=False)
            shift = linalg.cho_solve(factor, pull[np.ix_(rows, gaps)].T, check_finite=False)
            filled[np.ix_(rows, gaps)] -= shift.T
            if with_spread:
                spread[place] += len(rows) * linalg.cho_solve(factor, np.eye(len(gaps)), check_finite=False)
        return spread

    total = np.zeros(shape)
    for part in in_blocks(task, len(groups), n_threads, block_rows=BLOCK_ROWS):
        total += part
    return filled, total


def _patterns(seen: Array) -> Iterator[tuple[Array, Array]]:
    """Gaps, and the rows that have just these, for each pattern with any."""
    packed = np.packbits(seen, axis=1)
    order = np.lexsort(packed.T[::-1])
    changes = np.any(packed[order[1:]] != packed[order[:-1]], axis=1)
    for rows in np.split(order, np.flatnonzero(changes) + 1):
        gaps = np.flatnonzero(~seen[rows[0]])
        if gaps.size:
            yield gaps, rows
