"""The blocks of a fit on the workers of a Dask cluster.

Each half sweep sends a worker the factors that its blocks touch, cut out where they are, and
one small Gram matrix. Blocks of cells never move.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from unseen.distributed.blocks import CellBlock, Indices, outgoing
from unseen.distributed.checkpoints import Checkpoints
from unseen.distributed.cluster import Cluster
from unseen.distributed.steps import (
    CellSums,
    Part,
    Settings,
    Start,
    cell_sums,
    draw_block,
    scale_block,
    solve_block,
    turned,
)
from unseen.typing import FloatArray

__all__ = ["DaskEngine"]

Block = tuple[FloatArray, Part]
SIDES = ("row", "col")


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _draw(start: Start, first: int, last: int, dtype: str) -> tuple[FloatArray, float]:
    return draw_block(start, first, last, dtype)


def _scale(drawn: tuple[FloatArray, float], factor: float, cells: CellBlock | None) -> Block:
    return scale_block(drawn[0], factor, cells)


def _turn(block: Block, turn: FloatArray) -> Block:
    return turned(block[0], turn), block[1]


def _wanted_by_all(blocks: list[Indices]) -> list[Indices]:
    return blocks


def _touched_from(block: CellBlock, bounds: Indices, source: int) -> Indices:
    return outgoing(block.touched, bounds, source)


def _lengths(wanted: list[Indices]) -> list[int]:
    return [len(rows) for rows in wanted]


def _cut_out(block: Block, wanted: list[Indices], destination: int) -> tuple[FloatArray]:
    return (block[0][wanted[destination]],)


def _solve(
    cells: CellBlock,
    pieces: list[tuple[FloatArray]],
    own: Block | None,
    other_gram: FloatArray,
    settings: Settings,
    judge: bool,
) -> Block:
    other = pieces[0][0] if len(pieces) == 1 else np.concatenate([piece[0] for piece in pieces])
    return solve_block(cells, other, None if own is None else own[0], other_gram, settings, judge=judge)


def _write(block: Block, checkpoints: Checkpoints, folder: str, name: str) -> bool:
    checkpoints.write(folder, name, block[0])
    return True


def _read(checkpoints: Checkpoints, folder: str, name: str) -> Block:
    return checkpoints.read(folder, name), Part(np.empty((0, 0)))


class DaskEngine:
    """Blocks on workers, by futures.

    Parameters
    ----------
    cluster : Cluster
        Where tasks go.
    token : str
        Distinguishes the keys of this fit from those of others.
    cells : dict
        Futures of the blocks of cells, by side.
    bounds : dict
        Where blocks begin and end, by side.
    """

    def __init__(
        self, cluster: Cluster, token: str, cells: dict[str, list[Any]], bounds: dict[str, Indices]
    ) -> None:
        self.cluster = cluster
        self.cells = cells
        self.bounds = bounds
        self.shape = (int(bounds["row"][-1]), int(bounds["col"][-1]))
        self.blocks: dict[str, list[Any]] = {}
        self._token = token
        self._steps = itertools.count()
        self._wanted = {side: self._out_lists(side) for side in SIDES}
        self.touched = {side: self._touched_counts(side) for side in SIDES}
        """Rows of each block of factors that each block of the other side touches."""

    def n_blocks(self, side: str) -> int:
        """Blocks on one side."""
        return len(self.bounds[side]) - 1

    def _key(self, what: str, *place: object) -> str:
        return "-".join([f"unseen_{what}", self._token, *map(str, place)])

    def _out_lists(self, side: str) -> list[Any]:
        """For each block of factors of this side the rows that each block of the other side touches."""
        other = "col" if side == "row" else "row"
        count = self.n_blocks(side)
        parts = [
            self.cluster.map(
                destination,
                _touched_from,
                [cells] * count,
                [self.bounds[side]] * count,
                list(range(count)),
                keys=[self._key("touched", side, source, destination) for source in range(count)],
            )
            for destination, cells in enumerate(self.cells[other])
        ]
        lists = [
            self.cluster.submit(
                source,
                _wanted_by_all,
                [part[source] for part in parts],
                key=self._key("wanted", side, source),
            )
            for source in range(count)
        ]
        self.cluster.wait(lists)
        return lists

    def _touched_counts(self, side: str) -> Indices:
        keys = [self._key("lengths", side, source) for source in range(self.n_blocks(side))]
        return np.array(self.cluster.collect(self.cluster.map(None, _lengths, self._wanted[side], keys=keys)))

    def bytes_to_send(self, side: str, settings: Settings) -> int:
        """Bytes of factors that go from worker to worker when one side is solved."""
        other = "col" if side == "row" else "row"
        lengths = np.diff(self.bounds[other])
        rows, whole = 0, set()
        for (source, destination), count in np.ndenumerate(self.touched[other]):
            here, there = self.cluster.home(source), self.cluster.home(destination)
            if here == there or (source, there) in whole:
                continue
            if count == lengths[source]:  # the block as it is, which a worker is sent once
                whole.add((source, there))
            rows += int(count)
        return rows * settings.rank * np.dtype(settings.dtype).itemsize

    def sums(self, settings: Settings) -> list[CellSums]:
        """Sums over the cells of each block of rows."""
        step = next(self._steps)
        return self.cluster.collect(
            [
                self.cluster.submit(b, cell_sums, cells, settings, key=self._key("sums", step, b))
                for b, cells in enumerate(self.cells["row"])
            ]
        )

    def draw(self, side: str, start: Start, settings: Settings) -> list[float]:
        """Draw a factor; the sum of squares of each block."""
        bounds = self.bounds[side]
        self.blocks[side] = [
            self.cluster.submit(
                b,
                _draw,
                start,
                int(bounds[b]),
                int(bounds[b + 1]),
                settings.dtype,
                key=self._key("draw", side, b),
            )
            for b in range(self.n_blocks(side))
        ]
        return self._seconds(self.blocks[side])

    def _seconds(self, blocks: list[Any]) -> list[Any]:
        """The small parts of blocks, brought to the client."""
        step = next(self._steps)
        keys = [self._key("small", step, b) for b in range(len(blocks))]
        return self.cluster.collect(self.cluster.map(None, _second, blocks, keys=keys))

    def scale(self, side: str, factor: float, *, only_seen: bool = False) -> list[Part]:
        """Bring a drawn factor to its size; rows without a cell become zero if asked for."""
        cells = self.cells[side] if only_seen else [None] * self.n_blocks(side)
        self.blocks[side] = [
            self.cluster.submit(b, _scale, block, factor, cells[b], key=self._key("start", side, b))
            for b, block in enumerate(self.blocks[side])
        ]
        return self._seconds(self.blocks[side])

    def turn(self, side: str, turn: FloatArray, settings: Settings) -> None:
        """Multiply all blocks of a factor with a small matrix."""
        step = next(self._steps)
        self.blocks[side] = [
            self.cluster.submit(b, _turn, block, turn, key=self._key("turn", side, step, b))
            for b, block in enumerate(self.blocks[side])
        ]

    def solve(
        self, side: str, other_gram: FloatArray, settings: Settings, *, judge: bool = False
    ) -> list[Part]:
        """Solve for one side with the other fixed."""
        self.cluster.settle(max(map(self.n_blocks, SIDES)))
        other = "col" if side == "row" else "row"
        step = next(self._steps)
        count = self.n_blocks(side)
        pieces = [self._pieces(other, source, step) for source in range(self.n_blocks(other))]
        starts = self.blocks.get(side, [None] * count) if settings.method == "cg" else [None] * count
        solved = [
            self.cluster.submit(
                b,
                _solve,
                self.cells[side][b],
                [piece[b] for piece in pieces],
                starts[b],
                other_gram,
                settings,
                judge,
                key=self._key("solve", side, step, b),
            )
            for b in range(count)
        ]
        parts = self._seconds(solved)
        self.blocks[side] = solved
        return parts

    def sent_to(self, side: str) -> list[list[Any]]:
        """For each block of one side the pieces of the other side's factors that it touches, in order."""
        other, step = "col" if side == "row" else "row", next(self._steps)
        pieces = [self._pieces(other, source, step) for source in range(self.n_blocks(other))]
        return [[piece[b] for piece in pieces] for b in range(self.n_blocks(side))]

    def _pieces(self, side: str, source: int, step: int) -> list[Any]:
        """What each block of the other side is sent of a block of factors: the rows that it touches."""
        block = self.blocks[side][source]
        counts = self.touched[side][source]
        # Who touches all rows is sent the block as it is.
        pieces = [block] * len(counts)
        length = int(self.bounds[side][source + 1] - self.bounds[side][source])
        some = [int(place) for place in np.flatnonzero(counts < length)]
        if some:
            cut = self.cluster.map(
                source,
                _cut_out,
                [block] * len(some),
                [self._wanted[side][source]] * len(some),
                some,
                keys=[self._key("piece", side, step, source, destination) for destination in some],
            )
            for destination, piece in zip(some, cut, strict=True):
                pieces[destination] = piece
        return pieces

    def write_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Write all blocks of both factors; later sweeps start from the files, not from what led to them."""
        written = [
            self.cluster.submit(
                b,
                _write,
                block,
                checkpoints,
                folder,
                f"{side}-{b}",
                key=self._key("write", side, next(self._steps), b),
            )
            for side in SIDES
            for b, block in enumerate(self.blocks[side])
        ]
        self.cluster.collect(written)
        self.read_factors(checkpoints, folder)

    def read_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Take all blocks of both factors from a folder of a checkpoint."""
        self.cluster.settle(max(map(self.n_blocks, SIDES)))
        step = next(self._steps)
        for side in SIDES:
            self.blocks[side] = [
                self.cluster.submit(
                    b, _read, checkpoints, folder, f"{side}-{b}", key=self._key("read", side, step, b)
                )
                for b in range(self.n_blocks(side))
            ]
        # The files may be removed when the next checkpoint is there: read them now.
        self.cluster.wait([block for side in SIDES for block in self.blocks[side]])

    def close(self) -> None:
        """Let go of everything on the workers."""
        self.blocks, self.cells, self._wanted = {}, {}, {}
