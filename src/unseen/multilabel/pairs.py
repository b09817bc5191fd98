"""Parts of rows that keep pairs of neighbours together, by hyperplanes with few weights."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from unseen.typing import CSR, FloatArray, IndexArray

__all__ = ["FollowedLeader", "pair_partition"]

ROWS_AT_A_TIME = 256
"""Rows whose gradients are added before a step."""


class FollowedLeader:
    """Weights that follow the sum of all gradients, with an L1 penalty (FTRL-proximal).

    With G the sum of squared gradients so far, a weight is the maximum of the linearised objective less
    ``l1 |w|`` less quadratics around earlier weights, ``w = rate (z - l1 sign(z)) / sqrt(G)`` where
    ``|z| > l1`` and zero elsewhere.

    Parameters
    ----------
    start : array
        Weights to start from; their sums of squares start at one.
    rate, l1 : float
    """

    def __init__(self, start: FloatArray, *, rate: float, l1: float) -> None:
        self.rate, self.l1 = rate, l1
        self.weights = np.array(start)
        self.squares = np.ones_like(start)
        self.pulls = self.weights / rate + l1 * np.sign(self.weights)

    def step(self, part: IndexArray, gradient: FloatArray) -> None:
        """Ascend along gradients of some rows of the weights."""
        before = np.sqrt(self.squares[part])
        self.squares[part] += gradient**2
        after = np.sqrt(self.squares[part])
        self.pulls[part] += gradient + (after - before) / self.rate * self.weights[part]
        pulls = self.pulls[part]
        self.weights[part] = self.rate * (pulls - np.clip(pulls, -self.l1, self.l1)) / after


def pair_partition(
    X: CSR,
    near: CSR,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    l1: float = 4.0,
    rate: float = 0.1,
    max_iter: int = 10,
) -> tuple[FloatArray, IndexArray]:
    """Hyperplanes whose largest score puts rows and their neighbours into the same part.

    Starts from rows as hyperplanes. A pass visits all rows in random order, a block at a time; with c the
    part of the largest w_c.x_i, each row ascends::

        sum over neighbours j of log s(w_c.x_j) + as many random j' of log s(-w_c.x_j')

    by steps of :class:`FollowedLeader`.

    Parameters
    ----------
    X : CSR of shape (n, d)
        Rows of length one, or zero.
    near : CSR of shape (n, n)
        Stored cells are the neighbours of a row.
    n_clusters : int
        At most n.
    rng : Generator
    l1, rate : float
    max_iter : int

    Returns
    -------
    hyperplanes : array of shape (n_clusters, d)
    parts : array of shape (n,)
        Part of each row, the first of equal ones.
    """
    n = X.shape[0]
    leader = FollowedLeader(X[rng.choice(n, n_clusters, replace=False)].toarray(), rate=rate, l1=l1)
    counts = np.diff(near.indptr)
    visited = np.flatnonzero(counts)
    most = int(counts.max(initial=0))
    for _ in range(max_iter):
        for rows in np.array_split(rng.permutation(visited), -(-len(visited) // ROWS_AT_A_TIME) or 1):
            best = np.argmax(X[rows] @ leader.weights.T, axis=1)
            places = near.indptr[rows][:, None] + np.arange(most) % counts[rows][:, None]
            good, bad = near.indices[places], rng.integers(0, n, (len(rows), most))
            for part in np.unique(best):
                own = best == part
                others = np.concatenate([good[own].ravel(), bad[own].ravel()])
                signs = np.repeat([1.0, -1.0], own.sum() * most)
                taken, where = np.unique(others, return_inverse=True)
                scores = X[taken] @ leader.weights[part]
                pulls = np.bincount(
                    where, weights=signs * expit(-signs * scores[where]), minlength=len(taken)
                )
                leader.step(np.array([part]), (X[taken].T @ pulls.astype(X.dtype))[None])
    return leader.weights, np.argmax(X @ leader.weights.T, axis=1)
