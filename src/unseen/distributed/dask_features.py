"""Sweeps over coefficients of features on the workers of a Dask cluster.

Designs lie beside the blocks of cells. Factors that are touched move once in a half sweep; after that only
sums as small as the coefficients do.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from unseen.distributed import feature_steps as steps
from unseen.distributed.blocks import CellBlock
from unseen.distributed.checkpoints import Checkpoints
from unseen.distributed.dask_engine import DaskEngine
from unseen.distributed.steps import Part, Settings, Start
from unseen.typing import FloatArray

__all__ = ["DaskFeatures"]

Block = tuple[FloatArray, Part]
SEND_ONCE = 1 << 16
"""Bytes above which an array for all blocks is sent to the scheduler once, not with each task."""


def _same(value: Any) -> Any:
    return value


def _joined(pieces: list[tuple[FloatArray]]) -> FloatArray:
    return pieces[0][0] if len(pieces) == 1 else np.concatenate([piece[0] for piece in pieces])


def _embed(design: FloatArray, coefficients: FloatArray, settings: Settings) -> Block:
    return steps.embed_block(design, coefficients, settings)


def _slope(
    cells: CellBlock,
    other: FloatArray,
    design: FloatArray,
    near: Block,
    gram: FloatArray,
    settings: Settings,
) -> FloatArray:
    return steps.slope_block(steps.Surroundings(cells, other, gram, settings), design, near[0])


def _product(
    cells: CellBlock,
    other: FloatArray,
    design: FloatArray,
    direction: FloatArray,
    gram: FloatArray,
    settings: Settings,
) -> FloatArray:
    return steps.product_block(steps.Surroundings(cells, other, gram, settings), design, direction)


def _begin(
    cells: CellBlock, other: FloatArray, near: Block, gram: FloatArray, settings: Settings
) -> tuple[steps.Conjugate, float]:
    return steps.begin(steps.Surroundings(cells, other, gram, settings), near[0])


def _follow(
    cells: CellBlock,
    other: FloatArray,
    vectors: tuple[steps.Conjugate, float],
    share: float | None,
    gram: FloatArray,
    settings: Settings,
) -> tuple[tuple[FloatArray, FloatArray], float]:
    return steps.follow(steps.Surroundings(cells, other, gram, settings), vectors[0], share)


def _advance(
    vectors: tuple[steps.Conjugate, float],
    found: tuple[tuple[FloatArray, FloatArray], float],
    length: float,
) -> tuple[steps.Conjugate, float]:
    return steps.advance(vectors[0], found[0], length)


def _finish(vectors: tuple[steps.Conjugate, float], near: Block, settings: Settings) -> Block:
    return steps.finish(vectors[0], near[0], settings)


def _judge(cells: CellBlock, other: FloatArray, near: Block, settings: Settings) -> tuple[float, float]:
    return steps.judge_block(steps.Surroundings(cells, other, np.zeros((0, 0)), settings), near[0])


def _small(pair: tuple[Any, Any]) -> Any:
    return pair[1]


class DaskFeatures:
    """Blocks of cells, designs and factors on workers, by futures.

    Parameters
    ----------
    engine : DaskEngine
        Blocks of cells and factors.
    designs : dict
        Futures of the designs of each block, for the sides with features.
    widths : dict
        Columns of the design of each side; None for a side without features.
    token : str
        Distinguishes the keys of this fit from those of others.
    """

    def __init__(
        self, engine: DaskEngine, designs: dict[str, list[Any]], widths: dict[str, int | None], token: str
    ) -> None:
        self.engine = engine
        self.designs = designs
        self.shape = engine.shape
        self.widths = widths
        self._token = token
        self._steps = itertools.count()
        self._others: dict[str, list[Any]] = {}
        """Factors of the other side that each block touches, held while they stay the same."""
        self._vectors: dict[str, list[Any]] = {}
        self._found: dict[str, list[Any]] = {}

    # -- what the engine does --------------------------------------------------------

    def draw(self, side: str, start: Start, settings: Settings) -> list[float]:
        """Draw a factor of a side without features; the sum of squares of each block."""
        return self.engine.draw(side, start, settings)

    def scale(self, side: str, factor: float) -> list[Part]:
        """Bring a drawn factor to its size."""
        self._moved(side)
        return self.engine.scale(side, factor)

    def turn(self, side: str, turn: FloatArray, settings: Settings) -> None:
        """Multiply all blocks of a factor with a small matrix."""
        self._moved(side)
        self.engine.turn(side, turn, settings)

    def write_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Write all blocks of both factors into a folder of a checkpoint."""
        self._others.clear()
        self.engine.write_factors(checkpoints, folder)

    def read_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Take all blocks of both factors from a folder of a checkpoint."""
        self._others.clear()
        self.engine.read_factors(checkpoints, folder)

    # -- tasks -----------------------------------------------------------------------

    def _moved(self, side: str) -> None:
        """Forget what was sent of the factors of one side."""
        self._others.pop("col" if side == "row" else "row", None)

    def _each(self, what: str, side: str, function: Any, *args: Any) -> list[Any]:
        """A task for each block at its home; lists are taken apart, one element for each block."""
        step = next(self._steps)
        count = self.engine.n_blocks(side)
        args = tuple(self._shared(arg, step, place) for place, arg in enumerate(args))
        return [
            self.engine.cluster.submit(
                b,
                function,
                *(arg[b] if isinstance(arg, list) else arg for arg in args),
                key=f"unseen_{what}-{self._token}-{side}-{step}-{b}",
            )
            for b in range(count)
        ]

    def _shared(self, arg: Any, step: int, place: int) -> Any:
        """Large arrays go to the scheduler once; as results of a task they survive the loss of a worker."""
        if not isinstance(arg, np.ndarray) or arg.nbytes <= SEND_ONCE:
            return arg
        key = f"unseen_shared-{self._token}-{step}-{place}"
        return self.engine.cluster.client.submit(_same, arg, key=key, pure=False)

    def _sum(self, what: str, side: str, parts: list[Any]) -> FloatArray:
        """Sum over blocks, in their order, made on a worker."""
        key = f"unseen_{what}_sum-{self._token}-{side}-{next(self._steps)}"
        (total,) = self.engine.cluster.collect([self.engine.cluster.submit(0, steps.added, parts, key=key)])
        found: FloatArray = total
        return found

    def _smalls(self, side: str, blocks: list[Any]) -> list[Any]:
        """The small second part of each block."""
        return self.engine.cluster.collect(self._each("small", side, _small, blocks))

    def _other(self, side: str) -> list[Any]:
        if side not in self._others:
            engine = self.engine
            engine.cluster.settle(max(map(engine.n_blocks, ("row", "col"))))
            self._others[side] = self._each("others", side, _joined, engine.sent_to(side))
        return self._others[side]

    # -- sides with features ---------------------------------------------------------

    def embed(self, side: str, coefficients: FloatArray, settings: Settings) -> list[Part]:
        """Factors of a side with features from new coefficients."""
        self._moved(side)
        made = self._each("embed", side, _embed, self.designs[side], coefficients, settings)
        self.engine.blocks[side] = made
        return self._smalls(side, made)

    def slope(self, side: str, other_gram: FloatArray, settings: Settings) -> FloatArray:
        """Derivative of the data part by the coefficients of a side."""
        cells, designs, near = self.engine.cells[side], self.designs[side], self.engine.blocks[side]
        parts = self._each(
            "slope", side, _slope, cells, self._other(side), designs, near, other_gram, settings
        )
        return self._sum("slope", side, parts)

    def product(
        self, side: str, direction: FloatArray, other_gram: FloatArray, settings: Settings
    ) -> FloatArray:
        """Second derivative of the data part by the coefficients of a side, times a direction."""
        cells, designs = self.engine.cells[side], self.designs[side]
        parts = self._each(
            "product", side, _product, cells, self._other(side), designs, direction, other_gram, settings
        )
        return self._sum("product", side, parts)

    # -- sides without ---------------------------------------------------------------

    def begin(self, side: str, other_gram: FloatArray, settings: Settings) -> float:
        """Start conjugate gradients on a side without features; the squared residual."""
        cells, near = self.engine.cells[side], self.engine.blocks[side]
        self._vectors[side] = self._each(
            "begin", side, _begin, cells, self._other(side), near, other_gram, settings
        )
        return float(sum(self._smalls(side, self._vectors[side])))

    def follow(self, side: str, share: float | None, other_gram: FloatArray, settings: Settings) -> float:
        """Take the next direction; its product with what the system makes of it."""
        cells, vectors = self.engine.cells[side], self._vectors[side]
        self._found[side] = self._each(
            "follow", side, _follow, cells, self._other(side), vectors, share, other_gram, settings
        )
        return float(sum(self._smalls(side, self._found[side])))

    def advance(self, side: str, length: float) -> float:
        """Go along the direction; the squared residual."""
        vectors, found = self._vectors[side], self._found.pop(side)
        self._vectors[side] = self._each("advance", side, _advance, vectors, found, length)
        return float(sum(self._smalls(side, self._vectors[side])))

    def finish(self, side: str, settings: Settings) -> list[Part]:
        """Take over the steps into the factors."""
        vectors, near = self._vectors.pop(side), self.engine.blocks[side]
        self._moved(side)
        self.engine.blocks[side] = self._each("finish", side, _finish, vectors, near, settings)
        return self._smalls(side, self.engine.blocks[side])

    # -- objective -------------------------------------------------------------------

    def judge(self, settings: Settings) -> tuple[float, float]:
        """Loss of all cells, and the sum of their squared scores."""
        cells, near = self.engine.cells["row"], self.engine.blocks["row"]
        parts = self.engine.cluster.collect(
            self._each("judge", "row", _judge, cells, self._other("row"), near, settings)
        )
        return float(sum(part[0] for part in parts)), float(sum(part[1] for part in parts))
