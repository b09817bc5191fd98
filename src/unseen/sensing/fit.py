"""The squared misfit ``||A(UV') - b||^2``: of one draw of the measurements, or of all on average."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.linalg.blocked import gram, inner, matmul
from unseen.sensing.base import LinearMap
from unseen.typing import Array, FloatArray

__all__ = ["ExpectedFit", "Fit", "SampledFit"]


class Fit(ABC):
    """A sum of squares that is quadratic in each factor, or one part of such a sum.

    ``residual`` is whatever the fit needs to remember of ``A(UV') - b``. It is linear in the product: after a
    step from U to U + t D it is ``residual + t change(D, V)``. All results add up over parts.
    """

    @abstractmethod
    def residual(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """What is left over at the product of the factors."""

    @abstractmethod
    def change(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """What the product adds to the residual."""

    @abstractmethod
    def value(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> float:
        """``||A(UV') - b||^2``."""

    @abstractmethod
    def curvature(self, change: FloatArray, left: FloatArray, right: FloatArray) -> float:
        """``||A(PQ')||^2`` for factors P, Q with the given ``change``."""

    @abstractmethod
    def row_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """``A*(A(UV') - b) V``, half of the gradient by U."""

    @abstractmethod
    def col_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """``A*(A(UV') - b)' U``, half of the gradient by V."""

    @abstractmethod
    def split(self, n_blocks: int) -> list[Fit]:
        """Parts that add up to this fit."""


class SampledFit(Fit):
    """The misfit of one draw, given by its linear map."""

    def __init__(self, linear_map: LinearMap) -> None:
        self.map = linear_map
        self.target = linear_map.of_cells()

    def residual(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.map.forward(left, right) - self.target

    def change(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.map.forward(left, right)

    def value(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> float:
        return float(residual @ residual)

    def curvature(self, change: FloatArray, left: FloatArray, right: FloatArray) -> float:
        return float(change @ change)

    def row_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.map.dot(residual, right)

    def col_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.map.tdot(residual, left)

    def split(self, n_blocks: int) -> list[Fit]:
        a_map = self.map
        limits = np.linspace(a_map.start, a_map.stop, n_blocks + 1).astype(np.int64)
        return [SampledFit(a_map.part(int(low), int(high))) for low, high in itertools.pairwise(limits)]


class ExpectedFit(Fit):
    """The mean over all draws, in closed form (AMF, equation E).

    w_obs sum_observed (u_i . v_j - x_ij)^2 + w_unobs sum_others (u_i . v_j)^2

    at the cost of the observed cells and two small Gram matrices.

    Parameters
    ----------
    cells : Observations
        Observed cells.
    weights : (float, float)
        w_obs and w_unobs.
    rows : slice, optional
        Rows of the matrix that this part answers for; all by default.
    n_threads : int
    """

    def __init__(
        self,
        cells: Observations,
        weights: tuple[float, float],
        rows: slice | None = None,
        n_threads: int = 1,
    ) -> None:
        self.rows = slice(0, cells.shape[0]) if rows is None else rows
        self.observed, self.other = weights
        low, high = cells.indptr[self.rows.start], cells.indptr[self.rows.stop]
        self.cells, self._stored = cells, slice(int(low), int(high))
        self.indptr = cells.indptr[self.rows.start : self.rows.stop + 1] - low
        self.indices, self.values = cells.indices[self._stored], cells.values[self._stored]
        self.n_threads = n_threads

    def residual(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.change(left, right) - self.values

    def change(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return kernels.sddmm(self.indptr, self.indices, left[self.rows], right, n_threads=self.n_threads)

    def value(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> float:
        scores = residual.astype(np.float64) + self.values
        others = self._everywhere(left, right) - float(scores @ scores)
        return self.observed * inner(residual, residual) + self.other * max(others, 0.0)

    def curvature(self, change: FloatArray, left: FloatArray, right: FloatArray) -> float:
        extra = (self.observed - self.other) * inner(change, change)
        return extra + self.other * self._everywhere(left, right)

    def _everywhere(self, left: FloatArray, right: FloatArray) -> float:
        if self.other == 0.0:
            return 0.0
        return inner(gram(left[self.rows], n_threads=self.n_threads), gram(right, n_threads=self.n_threads))

    def row_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        mine = kernels.spmm(
            self.indptr, self.indices, self._sparse_part(residual), right, n_threads=self.n_threads
        )
        if self.other:
            square = (self.other * gram(right, n_threads=self.n_threads)).astype(mine.dtype)
            mine += matmul(left[self.rows], square, n_threads=self.n_threads)
        out: Array = np.zeros(left.shape, dtype=mine.dtype)
        out[self.rows] = mine
        return out

    def col_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        sparse_part = self._sparse_part(residual)
        if self.indices.size == self.cells.nnz:
            csc = self.cells.csc
            out = kernels.spmm(
                csc.indptr, csc.indices, sparse_part[csc.order], left, n_threads=self.n_threads
            )
        else:
            out = kernels.spmm_t(
                self.indptr,
                self.indices,
                sparse_part,
                left[self.rows],
                self.cells.shape[1],
                n_threads=self.n_threads,
            )
        if self.other:
            square = (self.other * gram(left[self.rows], n_threads=self.n_threads)).astype(out.dtype)
            out += matmul(right, square, n_threads=self.n_threads)
        return out

    def _sparse_part(self, residual: FloatArray) -> FloatArray:
        # (w_obs - w_unobs) e - w_unobs x: what the observed cells add to w_unobs U V' on all cells.
        part = (self.observed - self.other) * residual - self.other * self.values
        return np.ascontiguousarray(part, dtype=self.values.dtype)

    def split(self, n_blocks: int) -> list[Fit]:
        limits = np.linspace(self.rows.start, self.rows.stop, n_blocks + 1).astype(np.int64)
        return [
            ExpectedFit(self.cells, (self.observed, self.other), slice(int(low), int(high)), self.n_threads)
            for low, high in itertools.pairwise(limits)
        ]
