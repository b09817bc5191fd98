"""The identity that carries the speed: sparse plus Gram.

For scores S = P Q' and a background that pulls every cell to ``target`` with ``weight``,
the stored cells are taken out of the background again:

    background over the blank cells
        = weight/2 ||P Q' - target||_F^2 - weight/2 sum_stored (s - target)^2
    ||P Q' - target||_F^2 = <P'P, Q'Q> - 2 target (P'1).(Q'1) + target^2 n m
    dF/dS = R + weight (P Q' - target 11'),      R sparse on the stored cells

so that value and derivative cost O(cells k + (n + m) k^2) and nothing of size n x m exists.
Plain completion (weight 0), biased positives, implicit ALS and the line search of GIMC are
all this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.linalg.blocked import gram, inner, matmul
from unseen.typing import FloatArray

__all__ = ["ScoreGradient", "background_value", "squares_at", "squares_everywhere"]


def background_value(
    left: FloatArray,
    right: FloatArray,
    scores: FloatArray,
    weight: float,
    target: float,
    n_threads: int = 1,
) -> float:
    """``weight/2 sum over blank cells of (s - target)^2`` for the factors of the scores."""
    if weight == 0.0:
        return 0.0
    total = squares_everywhere(left, right, target, n_threads)
    return 0.5 * weight * (total - squares_at(scores, target))


def squares_everywhere(left: FloatArray, right: FloatArray, target: float, n_threads: int = 1) -> float:
    """``||P Q' - target||_F^2``."""
    total = inner(gram(left, n_threads=n_threads), gram(right, n_threads=n_threads))
    if target != 0.0:
        sums = left.sum(axis=0, dtype=np.float64) @ right.sum(axis=0, dtype=np.float64)
        total += -2.0 * target * float(sums) + target * target * left.shape[0] * right.shape[0]
    return total


def squares_at(scores: FloatArray, target: float) -> float:
    """Sum of ``(s - target)^2`` over the given scores."""
    if target == 0.0:
        return inner(scores, scores)
    off_target = scores.astype(np.float64) - target
    return float(off_target @ off_target)


@dataclass(frozen=True)
class ScoreGradient:
    """A derivative with respect to the scores, ``R + weight (P Q' - target)``, as an operator."""

    pattern: Observations
    cells: FloatArray
    left: FloatArray
    right: FloatArray
    weight: float
    target: float
    n_threads: int = 1

    def dot(self, vectors: FloatArray) -> FloatArray:
        """Times a matrix with one row for each column of the target."""
        pattern = self.pattern
        vectors = np.ascontiguousarray(vectors)
        out = kernels.spmm(pattern.indptr, pattern.indices, self.cells, vectors, n_threads=self.n_threads)
        return self._add_background(out, self.left, self.right, vectors)

    def tdot(self, vectors: FloatArray) -> FloatArray:
        """The transpose times a matrix with one row for each row of the target."""
        csc = self.pattern.csc
        vectors = np.ascontiguousarray(vectors)
        cells = self.cells[csc.order]
        out = kernels.spmm(csc.indptr, csc.indices, cells, vectors, n_threads=self.n_threads)
        return self._add_background(out, self.right, self.left, vectors)

    def _add_background(
        self, out: FloatArray, near: FloatArray, far: FloatArray, vectors: FloatArray
    ) -> FloatArray:
        if self.weight == 0.0:
            return out
        small = self.weight * gram(far, vectors, n_threads=self.n_threads)
        out += matmul(near, small.astype(out.dtype, copy=False), n_threads=self.n_threads)
        if self.target != 0.0:
            sums = vectors.sum(axis=0, dtype=np.float64)
            out -= (self.weight * self.target * sums).astype(out.dtype, copy=False)
        return out
