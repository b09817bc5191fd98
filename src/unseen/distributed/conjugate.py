"""Conjugate gradients on all coefficients of a side, the other side fixed.

The vectors of a side without features are spread over the blocks like its factors. Coefficients of features
are small: their vectors stay in one place, and every product with the system is a sum over the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from unseen.distributed.blocks import CellBlock
from unseen.distributed.engine import CELLS, DESIGN, FACTORS, Engine, Held, Touched
from unseen.distributed.steps import Around, BlockSums, Settings, part_of
from unseen.linalg.blocked import gram, inner
from unseen.linalg.designs import DenseDesign, Design
from unseen.parallel import one_blas_thread
from unseen.typing import FloatArray

__all__ = [
    "product_block",
    "slope_block",
    "solve_coefficients",
    "solve_factors",
]

VECTORS = Held("vectors")


# -- one block ------------------------------------------------------------------------------------


def _adjoint(design: Design, values: FloatArray, settings: Settings) -> FloatArray:
    """``A' values`` in float64, since blocks are still to be added."""
    if isinstance(design, DenseDesign):
        return gram(design.matrix, values, n_threads=settings.n_threads)
    return design.tdot(values).astype(np.float64)


def slope_block(
    cells: CellBlock,
    other: FloatArray,
    design: Design,
    near: FloatArray,
    other_gram: FloatArray,
    settings: Settings,
) -> FloatArray:
    """What a block adds to the derivative by the coefficients, in float64."""
    with one_blas_thread():
        return _adjoint(design, Around(cells, other, other_gram, settings).slope(near), settings)


def product_block(
    cells: CellBlock,
    other: FloatArray,
    design: Design,
    direction: FloatArray,
    other_gram: FloatArray,
    settings: Settings,
) -> FloatArray:
    """What a block adds to the second derivative by the coefficients times ``direction``, in float64."""
    with one_blas_thread():
        near = design.dot(direction)
        return _adjoint(design, Around(cells, other, other_gram, settings).curved(near), settings)


@dataclass(frozen=True)
class Conjugate:
    """Rows of a block in the vectors of conjugate gradients, for a side without features.

    ``product`` is what the system makes of the direction.
    """

    step: FloatArray
    residual: FloatArray
    direction: FloatArray
    product: FloatArray | None = None


def begin_block(
    cells: CellBlock, other: FloatArray, near: FloatArray, other_gram: FloatArray, settings: Settings
) -> tuple[Conjugate, float]:
    """Vectors at the start, and the block's part of the squared residual."""
    with one_blas_thread():
        near = np.ascontiguousarray(near)
        around = Around(cells, other, other_gram, settings)
        residual = -(around.slope(near) + settings.ridges(cells) * near)
        return Conjugate(np.zeros_like(residual), residual, residual), inner(residual, residual)


def follow_block(
    cells: CellBlock,
    other: FloatArray,
    vectors: Conjugate,
    share: float | None,
    other_gram: FloatArray,
    settings: Settings,
) -> tuple[Conjugate, float]:
    """The next direction, what the system makes of it, and the block's part of their product.

    ``share`` of the last direction is kept; None for the first.
    """
    with one_blas_thread():
        direction = vectors.residual
        if share is not None:
            direction = vectors.residual + direction.dtype.type(share) * vectors.direction
        product = Around(cells, other, other_gram, settings).curved(direction)
        product = product + settings.ridges(cells) * direction
        return replace(vectors, direction=direction, product=product), inner(direction, product)


def advance_block(vectors: Conjugate, length: float) -> tuple[Conjugate, float]:
    """Vectors after a step, and the block's part of the squared residual."""
    with one_blas_thread():
        assert vectors.product is not None
        size = vectors.direction.dtype.type(length)
        residual = vectors.residual - size * vectors.product
        moved = Conjugate(vectors.step + size * vectors.direction, residual, vectors.direction)
        return moved, inner(residual, residual)


def finish_block(
    vectors: Conjugate, near: FloatArray, cells: CellBlock, settings: Settings
) -> tuple[FloatArray, BlockSums]:
    """Factors after all steps, and their Gram matrix."""
    with one_blas_thread():
        out = near + vectors.step
        return out, part_of(out, cells, settings)


# -- all blocks ----------------------------------------------------------------------------------


class _Vectors(Protocol):
    """The vectors of conjugate gradients on the coefficients of a side, wherever they are."""

    def begin(self) -> float:
        """Vectors at the start; the squared residual."""
        ...

    def follow(self, share: float | None) -> float:
        """Take the next direction; its product with what the system makes of it."""
        ...

    def advance(self, length: float) -> float:
        """Go along the direction; the squared residual."""
        ...


class _Spread:
    """Vectors of a side without features, which stay with the blocks."""

    def __init__(self, engine: Engine, side: str, other_gram: FloatArray, settings: Settings) -> None:
        self._engine, self._side, self._system = engine, side, (other_gram, settings)

    def _each(self, function: Any, *args: Any) -> float:
        return float(sum(self._engine.each(self._side, function, *args, keep="vectors")))

    def begin(self) -> float:
        return self._each(begin_block, CELLS, Touched(again=True), FACTORS, *self._system)

    def follow(self, share: float | None) -> float:
        return self._each(follow_block, CELLS, Touched(again=True), VECTORS, share, *self._system)

    def advance(self, length: float) -> float:
        return self._each(advance_block, VECTORS, length)


class _Here:
    """Vectors of the coefficients of features, which are small and stay here."""

    def __init__(
        self, engine: Engine, side: str, start: FloatArray, other_gram: FloatArray, settings: Settings
    ) -> None:
        self._engine, self._side, self._start = engine, side, start
        self._system = (other_gram, settings)
        self._kind = start.dtype.type
        self._ridge = self._kind(settings.ridge)
        self.step = self._direction = self._residual = self._product = np.zeros_like(start)

    def begin(self) -> float:
        data = self._engine.total(
            self._side, slope_block, CELLS, Touched(again=True), DESIGN, FACTORS, *self._system
        )
        with one_blas_thread():
            self._residual = -(data.astype(self._start.dtype) + self._ridge * self._start)
            return inner(self._residual, self._residual)

    def follow(self, share: float | None) -> float:
        with one_blas_thread():
            last = self._residual
            self._direction = last if share is None else last + self._kind(share) * self._direction
        data = self._engine.total(
            self._side,
            product_block,
            CELLS,
            Touched(again=True),
            DESIGN,
            self._direction,
            *self._system,
        )
        with one_blas_thread():
            self._product = data.astype(self._start.dtype) + self._ridge * self._direction
            return inner(self._direction, self._product)

    def advance(self, length: float) -> float:
        with one_blas_thread():
            size = self._kind(length)
            self.step = self.step + size * self._direction
            self._residual = self._residual - size * self._product
            return inner(self._residual, self._residual)


def _descend(vectors: _Vectors, settings: Settings) -> int:
    """Steps taken; they only go down."""
    size = first = vectors.begin()
    taken, share = 0, None
    while taken < settings.cg_steps and size > settings.cg_tol**2 * first and size > 0.0:
        along = vectors.follow(share)
        if along <= 0.0:  # flat to rounding: nothing more to gain
            break
        last, size = size, vectors.advance(size / along)
        share = size / last
        taken += 1
    return taken


def solve_factors(
    engine: Engine, side: str, other_gram: FloatArray, settings: Settings
) -> tuple[list[BlockSums], int]:
    """Move the factors of a side without features; what the blocks add to the sums, and steps taken."""
    taken = _descend(_Spread(engine, side, other_gram, settings), settings)
    parts = engine.each(side, finish_block, VECTORS, FACTORS, CELLS, settings, keep="factors")
    engine.drop(side, "vectors")
    return parts, taken


def solve_coefficients(
    engine: Engine, side: str, start: FloatArray, other_gram: FloatArray, settings: Settings
) -> tuple[FloatArray, int]:
    """Coefficients of a side with features, from where they are, and steps taken."""
    vectors = _Here(engine, side, start, other_gram, settings)
    taken = _descend(vectors, settings)
    return start + vectors.step, taken
