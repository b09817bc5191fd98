"""The array operations of goal-directed classification; nothing here has rows x labels cells.

    f(U, W) = 1/2 ||A - Phi W||_F^2 + reg/2 ||W||_F^2          (GIMC eq. 12)

With G = Phi'Phi (p x p), C = A'Phi (labels x p) and K = W W' the value at any W is

    1/2 (||A||^2 - 2 <C, W'> + <G, K>) + reg/2 ||W||^2

so one pass over the rows, which makes G and C, serves the ridge step for W and every trial of a line
search. The derivative by the features is Phi K - A W'. Sums over rows are made in blocks, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen import kernels
from unseen.linalg.blocked import gram, in_blocks, inner
from unseen.linalg.ridge import spd_solver
from unseen.maps.base import MapParams
from unseen.multilabel.gimc_rows import BLOCK_ROWS, MappedRows
from unseen.typing import CSR, Array, FloatArray

__all__ = ["LabelRows", "Moments", "Weights"]


@dataclass
class Moments:
    """What the rows say about the weights: ``gram`` = Phi'Phi (float64), ``cross`` = A'Phi."""

    gram: Array
    cross: FloatArray


@dataclass
class Weights:
    """Weights of the labels: ``label_factors`` = W' (labels x p), ``gram`` = K = W W', both float64."""

    label_factors: Array
    gram: Array


class LabelRows:
    """Rows with known labels, seen through a map.

    Parameters
    ----------
    rows : MappedRows
        Features and map.
    A : csr_array
        Labels of the same rows, all stored values one.
    reg : float
        Weight of the penalty.
    intercept : bool
        Append a constant column to the mapped features; it is penalised like the others.
    max_tile_bytes : int
        Mapped features that exist at a time. Where all fit, the gradient uses those of the last pass.
    n_threads : int
        Threads.
    """

    def __init__(
        self, rows: MappedRows, A: CSR, reg: float, intercept: bool, max_tile_bytes: int, n_threads: int
    ) -> None:
        self.rows, self.A, self.reg, self.n_threads = rows, A, reg, n_threads
        self.intercept = intercept
        self.width = rows.width + int(intercept)
        self.total = float(A.nnz)  # ||A||^2 of a 0/1 matrix
        fitting = max_tile_bytes // (self.width * rows.dtype.itemsize)
        self.tile_rows = min(max(BLOCK_ROWS, fitting // BLOCK_ROWS * BLOCK_ROWS), rows.n_rows)
        self.phi: FloatArray = np.empty((self.tile_rows, self.width), dtype=rows.dtype)
        self.keeps_all = self.tile_rows == rows.n_rows

    # -- passes over the rows ----------------------------------------------------------

    def moments(self, step: float = 0.0) -> Moments:
        """G and C, ``step`` along the direction that the map aims at."""
        total: Array = np.zeros((self.width, self.width))
        cross: FloatArray | None = None
        for start in range(0, self.rows.n_rows, self.tile_rows):
            phi = self._tile(start)

            def task(part: slice, start: int = start, phi: FloatArray = phi) -> Array:
                block = phi[part]
                self._fill(slice(start + part.start, start + part.start + len(block)), step, block)
                return block.T @ block

            for product in in_blocks(task, len(phi), self.n_threads, block_rows=BLOCK_ROWS):
                total += product
            indptr, indices = self._labels(start, start + len(phi))
            part = kernels.spmm_t(indptr, indices, 1.0, phi, self.A.shape[1], n_threads=self.n_threads)
            cross = part if cross is None else np.add(cross, part, out=cross)
        assert cross is not None
        return Moments(total, cross)

    def gradient(self, weights: Weights) -> MapParams:
        """Gradient of the map's parameters at the current point.

        If all mapped features fit, those of the last :meth:`moments` are taken as the current ones.
        """
        dtype = self.rows.dtype
        factors = weights.label_factors.astype(dtype, copy=False)
        small = weights.gram.astype(dtype, copy=False)
        for start in range(0, self.rows.n_rows, self.tile_rows):
            phi = self._tile(start)

            def task(part: slice, start: int = start, phi: FloatArray = phi) -> None:
                block = phi[part]
                here = slice(start + part.start, start + part.start + len(block))
                if not self.keeps_all:
                    self._fill(here, 0.0, block)
                slope = block @ small
                slope -= kernels.spmm(*self._labels(here.start, here.stop), 1.0, factors)
                self.rows.take_slope(here, block, slope)

            for _ in in_blocks(task, len(phi), self.n_threads, block_rows=BLOCK_ROWS):
                pass
        return self.rows.pulled()

    def _tile(self, start: int) -> FloatArray:
        return self.phi[: min(self.tile_rows, self.rows.n_rows - start)]

    def _fill(self, here: slice, step: float, out: FloatArray) -> None:
        self.rows.fill(here, step, out)
        if self.intercept:
            out[:, -1] = 1.0

    def _labels(self, start: int, stop: int) -> tuple[Array, Array]:
        first, last = self.A.indptr[start], self.A.indptr[stop]
        return self.A.indptr[start : stop + 1] - first, self.A.indices[first:last]

    # -- weights -----------------------------------------------------------------------

    def best_weights(self, moments: Moments) -> Weights:
        """The exact ridge step: W = (G + reg I)^-1 C'."""
        return best_weights(moments, self.reg, self.n_threads)

    def value(self, moments: Moments, weights: Weights) -> float:
        """F at any weights."""
        factors = weights.label_factors
        data = self.total - 2.0 * inner(moments.cross, factors) + inner(moments.gram, weights.gram)
        return 0.5 * (data + self.reg * float(np.trace(weights.gram)))

    def reduced_value(self, moments: Moments, weights: Weights) -> float:
        """F at the best weights, which needs less: 1/2 (||A||^2 - <C, W'>)."""
        return 0.5 * (self.total - inner(moments.cross, weights.label_factors))


def best_weights(moments: Moments, reg: float, n_threads: int) -> Weights:
    """Ridge solution from the moments, in float64."""
    solve = spd_solver(moments.gram, reg)
    factors: Array = np.empty(moments.cross.shape)

    def task(labels: slice) -> None:
        factors[labels] = solve(moments.cross[labels].T.astype(np.float64)).T

    for _ in in_blocks(task, len(factors), n_threads, block_rows=256):
        pass
    return Weights(factors, gram(factors, n_threads=n_threads, block_rows=BLOCK_ROWS))
