"""The identity that carries the speed: sparse plus Gram.

For scores S = P Q' and a background that pulls every cell to ``target`` with weight w r_i c_j
(all r and c are one unless said otherwise), the stored cells are taken out of the background again:

    background over the blank cells
        = w/2 sum_ij r_i c_j (s_ij - target)^2 - w/2 sum_stored r_i c_j (s_ij - target)^2
    sum_ij r_i c_j (s_ij - target)^2 = <P'RP, Q'CQ> - 2 target (P'r).(Q'c) + target^2 (1'r)(1'c)
    dF/dS = G + w R (P Q' - target 11') C,      G sparse on the stored cells

so that value and derivative cost O(cells k + (n + m) k^2) and nothing of size n x m exists.
Plain completion (weight 0), biased positives, implicit ALS, popularity weights and the line search
of GIMC are all this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.linalg.blocked import gram, inner, matmul
from unseen.typing import FloatArray

__all__ = ["Blank", "ScoreGradient"]


@dataclass(frozen=True)
class Blank:
    """``weight/2 r_i c_j (s - target)^2`` on blank cells; None stands for weights of one.

    It unpacks to ``weight, target``.
    """

    weight: float = 0.0
    target: float = 0.0
    row_weights: FloatArray | None = None
    col_weights: FloatArray | None = None

    def __iter__(self) -> Iterator[float]:
        yield self.weight
        yield self.target

    def __bool__(self) -> bool:
        """Whether blank cells count at all."""
        return self.weight != 0.0

    @property
    def separable(self) -> bool:
        """Whether rows or columns have weights of their own."""
        return self.row_weights is not None or self.col_weights is not None

    @property
    def transposed(self) -> Blank:
        """The same with rows and columns exchanged."""
        return replace(self, row_weights=self.col_weights, col_weights=self.row_weights)

    def of(self, side: str) -> FloatArray | None:
        """Weights of the rows or the columns."""
        return self.row_weights if side == "row" else self.col_weights

    def at(self, cells: Observations) -> float | FloatArray:
        """Weight of the background at the stored cells: one number, or one for each."""
        if not (self and self.separable):
            return self.weight
        out: FloatArray = np.full(cells.nnz, self.weight, dtype=cells.dtype)
        for weights, picked in ((self.row_weights, "rows"), (self.col_weights, "indices")):
            if weights is not None:
                out *= weights[getattr(cells, picked)].astype(cells.dtype, copy=False)
        return out

    def gram(self, side: str, factors: FloatArray, n_threads: int = 1) -> FloatArray:
        """``P' diag(r) P`` of the factors of one side, without the weight w."""
        return gram(_scaled(factors, self.of(side)), factors, n_threads=n_threads)

    def sums(self, side: str, factors: FloatArray) -> FloatArray:
        """``P' r`` of the factors of one side."""
        weights = self.of(side)
        if weights is None:
            plain: FloatArray = factors.sum(axis=0, dtype=np.float64)
            return plain
        total: FloatArray = weights.astype(np.float64) @ factors
        return total

    def total(self, side: str, length: int) -> float:
        """``1' r``."""
        weights = self.of(side)
        return float(length) if weights is None else float(weights.sum(dtype=np.float64))

    def everywhere(
        self,
        left: FloatArray,
        right: FloatArray,
        n_threads: int = 1,
        grams: tuple[FloatArray, FloatArray] | None = None,
    ) -> float:
        """``sum_ij r_i c_j (s_ij - target)^2`` over all cells, without the weight w."""
        if grams is None:
            grams = self.gram("row", left, n_threads), self.gram("col", right, n_threads)
        total = inner(*grams)
        if self.target != 0.0:
            sums = float(self.sums("row", left) @ self.sums("col", right))
            cells = self.total("row", left.shape[0]) * self.total("col", right.shape[0])
            total += -2.0 * self.target * sums + self.target**2 * cells
        return total

    def at_scores(self, scores: FloatArray, weight_at: float | FloatArray) -> float:
        """``sum_stored b (s - target)^2`` with b the weight of the background at each cell."""
        if np.ndim(weight_at) == 0 and self.target == 0.0:
            return float(weight_at) * inner(scores, scores)
        off_target = scores.astype(np.float64) - self.target
        if np.ndim(weight_at) == 0:
            return float(weight_at) * float(off_target @ off_target)
        return float(np.asarray(weight_at, dtype=np.float64) @ (off_target * off_target))

    def value(
        self,
        left: FloatArray,
        right: FloatArray,
        scores: FloatArray,
        weight_at: float | FloatArray,
        n_threads: int = 1,
    ) -> float:
        """Background over the blank cells, given the scores of the stored ones."""
        if not self:
            return 0.0
        everywhere = self.weight * self.everywhere(left, right, n_threads)
        return 0.5 * (everywhere - self.at_scores(scores, weight_at))


def _scaled(factors: FloatArray, weights: FloatArray | None) -> FloatArray:
    return factors if weights is None else factors * weights.astype(factors.dtype, copy=False)[:, None]


@dataclass(frozen=True)
class ScoreGradient:
    """A derivative with respect to the scores, ``G + w R (P Q' - target) C``, as an operator."""

    pattern: Observations
    cells: FloatArray
    left: FloatArray
    right: FloatArray
    blank: Blank
    n_threads: int = 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return self.cells.dtype

    def dot(self, vectors: FloatArray) -> FloatArray:
        """Times a matrix with one row for each column of the target."""
        pattern = self.pattern
        vectors = np.ascontiguousarray(vectors)
        out = kernels.spmm(pattern.indptr, pattern.indices, self.cells, vectors, n_threads=self.n_threads)
        return self._add_background(out, self.blank, self.left, self.right, vectors)

    def tdot(self, vectors: FloatArray) -> FloatArray:
        """The transpose times a matrix with one row for each row of the target."""
        csc = self.pattern.csc
        vectors = np.ascontiguousarray(vectors)
        cells = self.cells[csc.order]
        out = kernels.spmm(csc.indptr, csc.indices, cells, vectors, n_threads=self.n_threads)
        return self._add_background(out, self.blank.transposed, self.right, self.left, vectors)

    def _add_background(
        self, out: FloatArray, blank: Blank, near: FloatArray, far: FloatArray, vectors: FloatArray
    ) -> FloatArray:
        if not blank:
            return out
        weighted = _scaled(vectors, blank.col_weights)
        small = blank.weight * gram(far, weighted, n_threads=self.n_threads)
        pull = matmul(near, small.astype(out.dtype, copy=False), n_threads=self.n_threads)
        if blank.target != 0.0:
            sums = weighted.sum(axis=0, dtype=np.float64)
            pull -= (blank.weight * blank.target * sums).astype(out.dtype, copy=False)
        out += _scaled(pull, blank.row_weights)
        return out
