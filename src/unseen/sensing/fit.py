"""The squared misfit ``||A(UV') - b||^2``: of one draw of the measurements, or of all on average."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.data.pattern import Pattern
from unseen.linalg.blocked import inner
from unseen.linalg.score_gradient import Blank, ScoreGradient
from unseen.sensing.base import MeasurementOperator
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
    """The misfit of one draw, given by its linear map.

    Parameters
    ----------
    linear_map : MeasurementOperator
        A.
    weight : float, default=1.0
        Factor of the misfit.
    target : array, optional
        b, where it is at hand.
    """

    def __init__(
        self, linear_map: MeasurementOperator, weight: float = 1.0, target: FloatArray | None = None
    ) -> None:
        self.map = linear_map
        self.weight = weight
        self.target = linear_map.of_cells() if target is None else target

    def residual(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.map.forward(left, right) - self.target

    def change(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.map.forward(left, right)

    def value(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> float:
        return self.weight * float(residual @ residual)

    def curvature(self, change: FloatArray, left: FloatArray, right: FloatArray) -> float:
        return self.weight * float(change @ change)

    def row_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.map.dot(self.weight * residual, right)

    def col_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.map.tdot(self.weight * residual, left)

    def split(self, n_blocks: int) -> list[Fit]:
        a_map = self.map
        limits = np.linspace(a_map.start, a_map.stop, n_blocks + 1).astype(np.int64)
        return [
            SampledFit(a_map.part(int(low), int(high)), self.weight)
            for low, high in itertools.pairwise(limits)
        ]


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
        self.observed, self.other = weights
        self.blank = Blank(self.other)
        self.rows = slice(0, cells.shape[0]) if rows is None else rows
        self.whole = cells
        self.cells = cells if rows is None else _some_rows(cells, rows)
        self.n_threads = n_threads

    def residual(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.change(left, right) - self.cells.values

    def change(self, left: FloatArray, right: FloatArray) -> FloatArray:
        pattern = self.cells
        return kernels.sddmm(
            pattern.indptr, pattern.indices, left[self.rows], right, n_threads=self.n_threads
        )

    def value(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> float:
        scores = residual.astype(np.float64) + self.cells.values
        others = self._everywhere(left, right) - float(scores @ scores)
        return self.observed * inner(residual, residual) + self.other * max(others, 0.0)

    def curvature(self, change: FloatArray, left: FloatArray, right: FloatArray) -> float:
        extra = (self.observed - self.other) * inner(change, change)
        return extra + self.other * self._everywhere(left, right)

    def _everywhere(self, left: FloatArray, right: FloatArray) -> float:
        return self.blank.everywhere(left[self.rows], right, self.n_threads) if self.blank else 0.0

    def row_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        mine = self._gradient(residual, left, right).dot(right)
        out: Array = np.zeros(left.shape, dtype=mine.dtype)
        out[self.rows] = mine
        return out

    def col_pull(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return self._gradient(residual, left, right).tdot(left[self.rows])

    def _gradient(self, residual: FloatArray, left: FloatArray, right: FloatArray) -> ScoreGradient:
        """Half of the derivative by the scores of these rows."""
        # (w_obs - w_unobs) e - w_unobs x: what the observed cells add to w_unobs U V' on all cells.
        values = self.cells.values
        part = ((self.observed - self.other) * residual - self.other * values).astype(
            values.dtype, copy=False
        )
        return ScoreGradient(self.cells, part, left[self.rows], right, self.blank, self.n_threads)

    def split(self, n_blocks: int) -> list[Fit]:
        limits = np.linspace(self.rows.start, self.rows.stop, n_blocks + 1).astype(np.int64)
        return [
            ExpectedFit(self.whole, (self.observed, self.other), slice(int(low), int(high)), self.n_threads)
            for low, high in itertools.pairwise(limits)
        ]


def _some_rows(cells: Observations, rows: slice) -> Observations:
    low, high = int(cells.indptr[rows.start]), int(cells.indptr[rows.stop])
    indptr = cells.indptr[rows.start : rows.stop + 1] - cells.indptr[rows.start]
    pattern = Pattern(indptr, cells.indices[low:high], (rows.stop - rows.start, cells.shape[1]))
    return Observations(pattern, cells.values[low:high])
