"""The blocks of a fit on the workers of a Dask cluster.

Each half sweep sends a worker the factors that its blocks touch, cut out where they are, and small matrices.
Blocks of cells and designs never move.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from unseen.distributed.blocks import CellBlock, Indices, outgoing
from unseen.distributed.cluster import Cluster
from unseen.distributed.engine import SIDES, TABLES, Held, Touched, WholeBlock, other_side
from unseen.distributed.steps import Settings, added
from unseen.typing import Array, FloatArray

__all__ = ["DaskEngine", "IdRanges", "Kept"]

SEND_ONCE = 1 << 16
"""Bytes above which an array for all blocks is sent to the scheduler once, not with each task."""


class Kept(NamedTuple):
    """What a block holds, and the small thing that came with it."""

    thing: Any
    small: Any = None


class IdRanges(NamedTuple):
    """Ids of one side: futures of sorted ranges, and the number of the first id of each."""

    ranges: list[Any]
    first: Indices

    @property
    def length(self) -> int:
        """Ids in all."""
        return int(self.first[-1])

    def between(self, start: int, stop: int) -> tuple[list[Any], Indices]:
        """Ranges that hold the ids of some numbers, and the number of the first id of each."""
        first, last = self.first[:-1], self.first[1:]
        held = np.flatnonzero((first < stop) & (last > start))
        return [self.ranges[place] for place in held], first[held]


def _call(function: Callable[..., Any], keeps: bool, joined: tuple[int, ...], *args: Any) -> Any:
    """Run a step on what its arguments stand for; ``joined`` are the places of tables that come in pieces."""
    plain = [_joined(arg) if place in joined else _thing(arg) for place, arg in enumerate(args)]
    found = function(*plain)
    return Kept(*found) if keeps else found


def _thing(arg: Any) -> Any:
    return arg.thing if isinstance(arg, Kept) else arg


def _joined(pieces: list[Kept]) -> Any:
    return pieces[0].thing if len(pieces) == 1 else np.concatenate([piece.thing for piece in pieces])


def _join(pieces: list[Kept]) -> Kept:
    return Kept(_joined(pieces))


def _small(kept: Kept) -> Any:
    return kept.small


def _same(value: Any) -> Any:
    return value


def _touched_from(block: CellBlock, bounds: Indices, source: int) -> Indices:
    return outgoing(block.touched, bounds, source)


def _lengths(wanted: list[Indices]) -> list[int]:
    return [len(rows) for rows in wanted]


def _cut_out(block: Kept, wanted: list[Indices], destination: int) -> Kept:
    return Kept(block.thing[wanted[destination]])


def _ids(ranges: list[Array], first: Indices, start: int, stop: int) -> Array:
    if not ranges:
        return np.arange(start, stop)
    return np.concatenate(
        [ids[max(start - low, 0) : stop - low] for ids, low in zip(ranges, first, strict=True)]
    )


def _all(ranges: list[Array]) -> Array:
    return np.concatenate([ids for ids in ranges if len(ids)])


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
    ids : dict, optional
        Ids of rows and columns; None where they are indices.
    """

    recomputes = True

    def __init__(
        self,
        cluster: Cluster,
        token: str,
        cells: dict[str, list[Any]],
        bounds: dict[str, Indices],
        ids: dict[str, IdRanges] | None = None,
    ) -> None:
        self.cluster = cluster
        self.bounds = bounds
        self.ids = ids
        self._token = token
        self._steps = itertools.count()
        self.held: dict[tuple[str, str], list[Any]] = {(side, "cells"): cells[side] for side in SIDES}
        """Futures of what the blocks of a side hold under a name."""
        self._sent: dict[tuple[str, str], list[Any]] = {}
        """Lines of a table that the blocks of a side touch, for as long as they stay the same."""
        self._wanted = {side: self._out_lists(side) for side in SIDES}
        self.touched = {side: self._touched_counts(side) for side in SIDES}
        """Rows of each block of factors that each block of the other side touches."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the target."""
        return int(self.bounds["row"][-1]), int(self.bounds["col"][-1])

    def n_blocks(self, side: str) -> int:
        """Blocks on one side."""
        return len(self.bounds[side]) - 1

    def _key(self, what: str, *place: object) -> str:
        return "-".join([f"unseen_{what}", self._token, *map(str, place)])

    # -- who is sent what ------------------------------------------------------------

    def _out_lists(self, side: str) -> list[Any]:
        """For each block of a table of this side the rows that each block of the other side touches."""
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
            for destination, cells in enumerate(self.held[other_side(side), "cells"])
        ]
        lists = [
            self.cluster.submit(
                source, _same, [part[source] for part in parts], key=self._key("wanted", side, source)
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
        other = other_side(side)
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

    def _sent_to(self, side: str, table: str) -> list[list[Any]]:
        """For each block of one side the pieces of the other side's table that it touches, in order."""
        self._settle()
        step, other = next(self._steps), other_side(side)
        pieces = [self._pieces(other, table, source, step) for source in range(self.n_blocks(other))]
        return [[piece[b] for piece in pieces] for b in range(self.n_blocks(side))]

    def _pieces(self, side: str, table: str, source: int, step: int) -> list[Any]:
        """What each block of the other side is sent of a block of a table: the rows that it touches."""
        block = self.held[side, table][source]
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

    def _settle(self) -> None:
        self.cluster.settle(max(map(self.n_blocks, SIDES)))

    # -- work ------------------------------------------------------------------------

    def each(
        self, side: str, function: Callable[..., Any], *args: Any, keep: str | None = None, wait: bool = True
    ) -> list[Any]:
        """Run a function on every block of one side, see :class:`unseen.distributed.engine.Engine`."""
        found = self._submit(side, function, args, keep is not None)
        if keep is None:
            return self.cluster.collect(found)
        smalls = self._smalls(found) if wait else []
        self.held[side, keep] = found
        if keep in TABLES:
            self._sent.pop((other_side(side), keep), None)
        return smalls

    def total(self, side: str, function: Callable[..., Any], *args: Any) -> FloatArray:
        """Sum over the blocks of one side of what a function gives, in float64, made on a worker."""
        parts = self._submit(side, function, args, False)
        key = self._key(f"{function.__name__}_sum", side, next(self._steps))
        (total,) = self.cluster.collect([self.cluster.submit(0, added, parts, key=key)])
        found: FloatArray = total
        return found

    def _submit(
        self, side: str, function: Callable[..., Any], args: tuple[Any, ...], keeps: bool
    ) -> list[Any]:
        if not any(isinstance(arg, Held) for arg in args):
            self._settle()
        step = next(self._steps)
        joined = tuple(place for place, arg in enumerate(args) if isinstance(arg, Touched) and not arg.again)
        given = [self._argument(side, arg, step, place) for place, arg in enumerate(args)]
        return [
            self.cluster.submit(
                b,
                _call,
                function,
                keeps,
                joined,
                *(arg[b] if isinstance(arg, list) else arg for arg in given),
                key=self._key(function.__name__, side, step, b),
            )
            for b in range(self.n_blocks(side))
        ]

    def _argument(self, side: str, arg: Any, step: int, place: int) -> Any:
        """What an argument stands for: a future, a list with one element for each block, or itself."""
        if isinstance(arg, Held):
            return self._block_ids(side) if arg.name == "ids" else self.held[side, arg.name]
        if isinstance(arg, WholeBlock):
            return self.held[arg.side, arg.table][arg.number]
        if isinstance(arg, Touched):
            if not arg.again:
                return self._sent_to(side, arg.table)
            if (side, arg.table) not in self._sent:
                self._sent[side, arg.table] = [
                    self.cluster.submit(b, _join, pieces, key=self._key("others", side, step, b))
                    for b, pieces in enumerate(self._sent_to(side, arg.table))
                ]
            return self._sent[side, arg.table]
        if isinstance(arg, np.ndarray) and arg.nbytes > SEND_ONCE:
            # As the result of a task it survives the loss of a worker.
            key = self._key("shared", step, place)
            return self.cluster.submit(None, _same, arg, key=key)
        return arg

    def _smalls(self, blocks: list[Any]) -> list[Any]:
        """The small parts of what blocks keep, brought to the client."""
        step = next(self._steps)
        keys = [self._key("small", step, b) for b in range(len(blocks))]
        return self.cluster.collect(self.cluster.map(None, _small, blocks, keys=keys))

    def drop(self, side: str, name: str) -> None:
        """Let go of what the blocks hold under a name."""
        self.held.pop((side, name), None)

    def table(self, side: str, name: str = "factors") -> FloatArray:
        """All lines of a table, brought here block by block."""
        out: FloatArray | None = None
        for number, block in enumerate(self.held[side, name]):
            (kept,) = self.cluster.collect([block])
            if out is None:
                out = np.empty((int(self.bounds[side][-1]), kept.thing.shape[1]), dtype=kept.thing.dtype)
            out[self.bounds[side][number] : self.bounds[side][number + 1]] = kept.thing
        assert out is not None
        return out

    # -- ids -------------------------------------------------------------------------

    def _block_ids(self, side: str) -> list[Any]:
        if (side, "ids") not in self.held:
            bounds = self.bounds[side].tolist()
            known = None if self.ids is None else self.ids[side]
            self.held[side, "ids"] = [
                self.cluster.submit(
                    b,
                    _ids,
                    *(([], np.empty(0, np.int64)) if known is None else known.between(first, last)),
                    first,
                    last,
                    key=self._key("ids", side, next(self._steps), b),
                )
                for b, (first, last) in enumerate(itertools.pairwise(bounds))
            ]
        return self.held[side, "ids"]

    def all_ids(self, side: str) -> Any:
        """A future of the ids of all rows or columns; None if ids are indices."""
        if self.ids is None:
            return None
        key = self._key("all_ids", side, next(self._steps))
        return self.cluster.submit(None, _all, self.ids[side].ranges, key=key)

    def close(self) -> None:
        """Let go of everything on the workers."""
        self.held, self._sent, self._wanted, self.ids = {}, {}, {}, None
