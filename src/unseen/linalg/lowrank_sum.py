"""Low rank plus sparse, as an operator that is never formed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.linalg.blocked import gram, matmul
from unseen.typing import FloatArray

__all__ = ["LowRankPlusSparse"]


@dataclass(frozen=True)
class LowRankPlusSparse:
    """``left @ right.T + P(cells)`` with the pattern of the observations.

    Products with p columns cost O((cells + (n + m) r) p).
    """

    pattern: Observations
    cells: FloatArray
    left: FloatArray
    right: FloatArray
    n_threads: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return self.cells.dtype

    @cached_property
    def _cells_by_column(self) -> FloatArray:
        return np.ascontiguousarray(self.cells[self.pattern.csc.order])

    def dot(self, vectors: FloatArray) -> FloatArray:
        """``B @ vectors``."""
        p = self.pattern
        vectors = np.ascontiguousarray(vectors)
        out = kernels.spmm(p.indptr, p.indices, self.cells, vectors, n_threads=self.n_threads)
        return self._add(out, self.left, self.right, vectors)

    def tdot(self, vectors: FloatArray) -> FloatArray:
        """``B.T @ vectors``."""
        csc = self.pattern.csc
        vectors = np.ascontiguousarray(vectors)
        out = kernels.spmm(csc.indptr, csc.indices, self._cells_by_column, vectors, n_threads=self.n_threads)
        return self._add(out, self.right, self.left, vectors)

    def _add(self, out: FloatArray, near: FloatArray, far: FloatArray, vectors: FloatArray) -> FloatArray:
        if near.shape[1]:
            small = gram(far, vectors, n_threads=self.n_threads).astype(out.dtype, copy=False)
            out += matmul(near, small, n_threads=self.n_threads)
        return out

    def toarray(self) -> FloatArray:
        """The matrix in full, for small problems."""
        dense: FloatArray = self.left @ self.right.T
        dense[self.pattern.rows, self.pattern.indices] += self.cells
        return dense
