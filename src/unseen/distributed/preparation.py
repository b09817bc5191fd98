"""Before the sweeps: counting cells, and taking what ``center`` names out of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unseen.distributed.blocks import CellBlock
from unseen.distributed.engine import CELLS, SIDES, Engine, Held, Touched, other_side
from unseen.distributed.steps import Settings, bound_loss
from unseen.losses import root_mean
from unseen.parallel import one_blas_thread
from unseen.typing import FloatArray

__all__ = ["Totals", "count", "fit_biases", "prepare"]

BIAS_SWEEPS = 15
"""As many as :func:`unseen.offsets.fit_offsets` does."""


# -- one block ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellSums:
    """A block's share of sums over the cells: numbers (of all, of those that count), weights, values."""

    n_cells: int
    n_merged: int
    n_counting: int
    weight: float
    weighted: float


def count_cells(block: CellBlock, dtype: str) -> CellSums:
    """Sums over the cells of a block, from which the mean follows."""
    values = block.filled(dtype)
    numbers = (block.n_cells, block.n_merged)
    if block.weights is None:
        total = float(np.sum(values, dtype=np.float64))
        return CellSums(*numbers, block.n_cells, float(block.n_cells), total)
    weights = block.weights.astype(np.float64)
    return CellSums(
        *numbers, int(np.count_nonzero(weights)), float(weights.sum()), float(np.dot(weights, values))
    )


def slope_sums(block: CellBlock, settings: Settings) -> tuple[float, float]:
    """Sums over squared slopes of the loss at zero scores, from which the size of the start follows."""
    with one_blas_thread():
        return bound_loss(settings.loss, block, settings.dtype).slopes_at_zero()


def bias_block(
    block: CellBlock, other_bias: FloatArray | None, mean: float, reg: float, dtype: str
) -> tuple[FloatArray, None]:
    """Biases of a block's rows, the other side's fixed (None: zero); a column, as tables have."""
    left: FloatArray = block.filled(dtype).astype(np.float64) - mean
    if other_bias is not None and len(other_bias):
        left = left - other_bias[:, 0][block.indices]
    if block.weights is not None:
        left = left * block.weights
    sums = np.bincount(block.rows, left, minlength=block.stop - block.start)
    sizes = block.degrees + reg
    found: FloatArray = np.divide(sums, sizes, out=np.zeros(len(sums)), where=sizes > 0)
    return found[:, None], None


def prepare_block(
    block: CellBlock,
    mean: float,
    own_bias: FloatArray | None,
    other_bias: FloatArray | None,
    own_blank: FloatArray | None,
    other_blank: FloatArray | None,
    dtype: str,
) -> tuple[CellBlock, None]:
    """The block without the offsets, and with its share of the background's weights."""
    offset: Any = mean
    if own_bias is not None and other_bias is not None and block.n_cells:
        offset = mean + own_bias[:, 0][block.rows] + other_bias[:, 0][block.indices]
    values = block.values
    if np.ndim(offset) or offset != 0.0:
        values = (block.filled(dtype) - offset).astype(dtype, copy=False)
    own = None if own_blank is None else own_blank[block.start : block.stop]
    other = None if other_blank is None else other_blank[block.touched]
    return replace(block, values=values, own_blank=own, other_blank=other), None


# -- all blocks ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Totals:
    """Sums over all cells."""

    n_cells: int
    n_merged: int
    n_counting: int
    weight: float
    weighted: float

    @property
    def mean(self) -> float:
        """Mean of the values, weighted by the weights of the cells."""
        return self.weighted / self.weight if self.weight > 0 else 0.0


def count(engine: Engine, dtype: str) -> Totals:
    """Add up the blocks of rows in their order."""
    parts: list[CellSums] = engine.each("row", count_cells, CELLS, dtype)
    names = ("n_cells", "n_merged", "n_counting", "weight", "weighted")
    return Totals(*(sum(getattr(part, name) for part in parts) for name in names))


def fit_biases(engine: Engine, mean: float, reg: tuple[float, float], dtype: str) -> None:
    """Biases by alternating minimisation, columns first, as a fit in memory finds them."""
    other: Touched | None = None
    for _ in range(BIAS_SWEEPS):
        for side in ("col", "row"):
            own_reg = reg[SIDES.index(side)]
            engine.each(side, bias_block, CELLS, other, mean, own_reg, dtype, keep="bias", wait=False)
            other = Touched("bias")


def prepare(
    engine: Engine,
    mean: float,
    biased: bool,
    blank_weights: tuple[FloatArray | None, FloatArray | None],
    settings: Settings,
) -> float:
    """Take offsets out of the cells; root mean square of the slope of the loss at zero scores."""
    weights = dict(zip(SIDES, blank_weights, strict=True))
    if mean != 0.0 or biased or any(given is not None for given in blank_weights):
        biases = (Held("bias"), Touched("bias")) if biased else (None, None)
        for side in SIDES:
            own, other = weights[side], weights[other_side(side)]
            engine.each(side, prepare_block, CELLS, mean, *biases, own, other, settings.dtype, keep="cells")
    squares, counts = zip(*engine.each("row", slope_sums, CELLS, settings), strict=True)
    return root_mean(sum(squares), sum(counts))
