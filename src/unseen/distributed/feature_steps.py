"""What is done to one block when coefficients of features are learned: pure functions.

The scores of a block of rows are ``P Q'`` with ``P = A W``: A the block's design, W the coefficients
that all rows share. A side without features has ``P`` itself as coefficients. Derivatives come out as
small sums, ``A' G``, which are added over the blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unseen import kernels
from unseen.distributed.blocks import CellBlock
from unseen.distributed.steps import Part, Settings, bound_loss
from unseen.linalg.blocked import gram, inner, matmul
from unseen.losses import CellLoss
from unseen.maps import FeatureMap
from unseen.maps.base import MapParams
from unseen.parallel import one_blas_thread
from unseen.typing import FloatArray

__all__ = [
    "Conjugate",
    "Surroundings",
    "added",
    "advance",
    "begin",
    "design_of",
    "embed_block",
    "finish",
    "follow",
    "judge_block",
    "product_block",
    "slope_block",
]


@dataclass(frozen=True)
class Surroundings:
    """What stays the same while the coefficients of one side move.

    Attributes
    ----------
    cells : CellBlock
        Cells of the block.
    other : ndarray of shape (len(cells.touched), rank)
        Factors of the touched columns, in their order.
    other_gram : ndarray of shape (rank, rank)
        Gram matrix of all columns.
    settings : Settings
        Loss, penalty and options.
    """

    cells: CellBlock
    other: FloatArray
    other_gram: FloatArray
    settings: Settings

    def scores(self, near: FloatArray) -> FloatArray:
        """Scores of the cells for these factors of the block's rows."""
        return kernels.sddmm(
            self.cells.indptr, self.cells.indices, near, self._other(), n_threads=self.settings.n_threads
        )

    def pulled(self, on_cells: FloatArray, near: FloatArray) -> FloatArray:
        """``(R + weight near Q') Q`` with R sparse on the cells: a derivative by the block's factors."""
        cells, settings = self.cells, self.settings
        out = kernels.spmm(cells.indptr, cells.indices, on_cells, self._other(), n_threads=settings.n_threads)
        weight, _ = settings.loss.blank()
        if weight:
            small = (weight * self.other_gram).astype(out.dtype)
            out += matmul(near, small, n_threads=settings.n_threads)
        return out

    def loss(self) -> CellLoss:
        """The loss of the cells less the mean."""
        values = self.cells.values_less(self.settings.mean, self.settings.dtype)
        return bound_loss(self.settings.loss, values)

    def _other(self) -> FloatArray:
        if len(self.other):
            return self.other
        return np.zeros((1, self.settings.rank), dtype=self.settings.dtype)


def design_of(features: FloatArray, a_map: FeatureMap, params: MapParams) -> FloatArray:
    """Design of a block of features."""
    return a_map.apply(features, len(features), params).toarray()


def embed_block(design: FloatArray, coefficients: FloatArray, settings: Settings) -> tuple[FloatArray, Part]:
    """Factors of a block from its design, and their Gram matrix."""
    with one_blas_thread():
        near = matmul(design, coefficients, n_threads=settings.n_threads)
        return near, Part(gram(near, n_threads=settings.n_threads))


def slope(around: Surroundings, near: FloatArray) -> FloatArray:
    """Derivative of the data part of the objective by the factors of the block."""
    return around.pulled(around.loss().residual(around.scores(near)), near)


def bend(around: Surroundings, near: FloatArray) -> FloatArray:
    """Second derivative of the data part by the factors of the block, times ``near``."""
    curvature, _ = around.loss().normal_terms()
    on_cells = (curvature * around.scores(near)).astype(near.dtype, copy=False)
    return around.pulled(on_cells, near)


def judge_block(around: Surroundings, near: FloatArray) -> tuple[float, float]:
    """The block's part of the objective: its loss, and the sum of squared scores of its cells."""
    with one_blas_thread():
        scores = around.scores(near)
        return around.loss().value(scores), inner(scores, scores)


# -- a side with features: sums for small coefficients --------------------------------------------


def slope_block(around: Surroundings, design: FloatArray, near: FloatArray) -> FloatArray:
    """What a block adds to the derivative by the coefficients, in float64."""
    with one_blas_thread():
        return gram(design, slope(around, near), n_threads=around.settings.n_threads)


def product_block(around: Surroundings, design: FloatArray, direction: FloatArray) -> FloatArray:
    """What a block adds to the second derivative by the coefficients times ``direction``, in float64."""
    threads = around.settings.n_threads
    with one_blas_thread():
        near = matmul(design, direction, n_threads=threads)
        return gram(design, bend(around, near), n_threads=threads)


def added(parts: Iterable[FloatArray]) -> FloatArray:
    """Sum of what blocks add, in their order."""
    total: FloatArray | None = None
    for part in parts:
        total = part.astype(np.float64) if total is None else total + part
    assert total is not None
    return total


# -- a side without: its own rows of all vectors of the conjugate gradients -----------------------


@dataclass(frozen=True)
class Conjugate:
    """Rows of a block in the vectors of conjugate gradients."""

    step: FloatArray
    residual: FloatArray
    direction: FloatArray


def begin(around: Surroundings, near: FloatArray) -> tuple[Conjugate, float]:
    """Vectors at the start, and the block's part of the squared residual."""
    with one_blas_thread():
        near = np.ascontiguousarray(near)
        ridge = near.dtype.type(around.settings.ridge)
        residual = -(slope(around, near) + ridge * near)
        return Conjugate(np.zeros_like(residual), residual, residual), inner(residual, residual)


def follow(
    around: Surroundings, vectors: Conjugate, share: float | None
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """The next direction, what the system makes of it, and the block's part of their product.

    ``share`` of the last direction is kept; None for the first.
    """
    with one_blas_thread():
        direction = vectors.residual
        if share is not None:
            direction = vectors.residual + direction.dtype.type(share) * vectors.direction
        product = bend(around, direction)
        product = product + product.dtype.type(around.settings.ridge) * direction
        return (direction, product), inner(direction, product)


def advance(
    vectors: Conjugate, found: tuple[FloatArray, FloatArray], length: float
) -> tuple[Conjugate, float]:
    """Vectors after a step, and the block's part of the squared residual."""
    with one_blas_thread():
        direction, product = found
        size = direction.dtype.type(length)
        residual = vectors.residual - size * product
        moved = Conjugate(vectors.step + size * direction, residual, direction)
        return moved, inner(residual, residual)


def finish(vectors: Conjugate, near: FloatArray, settings: Settings) -> tuple[FloatArray, Part]:
    """Factors after all steps, and their Gram matrix."""
    with one_blas_thread():
        out = near + vectors.step
        return out, Part(gram(out, n_threads=settings.n_threads))
