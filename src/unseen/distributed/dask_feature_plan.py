"""From partitions of features to designs of blocks, on the workers of a Dask cluster.

Lines of features are sent once, to the worker of the block that they belong to. The client sees
the first id of each block, means, scales and extremes.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from unseen.distributed.blocks import Indices
from unseen.distributed.dask_engine import DaskEngine
from unseen.distributed.dask_plan import IdRanges, frame_partition
from unseen.distributed.feature_steps import design_of
from unseen.distributed.features import (
    FeatureColumns,
    FeatureLines,
    FeatureSource,
    assemble,
    extent,
    map_params_of,
    mean_of,
    place_by_ids,
    place_by_number,
    read_lines,
    squares_about,
)
from unseen.distributed.results import ids_between
from unseen.distributed.sources import Partition
from unseen.maps import FeatureMap
from unseen.maps.base import MapParams
from unseen.typing import Array, FloatArray

__all__ = ["load_designs"]

Ordered = tuple[FeatureLines, Indices]


def _same(value: Any) -> Any:
    return value


def _load(partition: Partition, columns: FeatureColumns, dtype: str) -> FeatureLines:
    parts = list(read_lines(partition, columns, dtype))
    if len(parts) == 1:
        return parts[0]
    where = f"{columns.argument}, {partition.name}"
    if not parts:
        empty = np.empty(0, np.int64)
        return FeatureLines(empty, np.empty((0, len(columns.features)), dtype), empty, where)
    ids, values, lines = (np.concatenate([part[place] for part in parts]) for place in range(3))
    return FeatureLines(ids, values, lines, where)


def _order(lines: FeatureLines, bounds: Indices, first_ids: Array | None) -> Ordered:
    """Lines ordered by the block that they belong to, and where each block begins among them."""
    if first_ids is None:
        block = np.searchsorted(bounds, place_by_number(lines, int(bounds[-1])).ids, side="right") - 1
    else:
        place_by_ids(lines, first_ids, 0)  # refuses text among integers
        block = np.maximum(np.searchsorted(first_ids, lines.ids, side="right") - 1, 0)
    order = np.argsort(block, kind="stable")
    return lines.chosen(order), np.searchsorted(block[order], np.arange(len(bounds)))


def _slice(ordered: Ordered, number: int) -> FeatureLines:
    lines, cuts = ordered
    return lines.chosen(slice(int(cuts[number]), int(cuts[number + 1])))


def _ids(ranges: list[Array], first: Indices, start: int, stop: int) -> Array | None:
    return ids_between(ranges, first, start, stop) if ranges else None


def _features(
    parts: list[FeatureLines],
    ranges: list[Array],
    first: Indices,
    start: int,
    stop: int,
    source: FeatureSource,
) -> FloatArray:
    known = _ids(ranges, first, start, stop)
    if known is not None:
        parts = [place_by_ids(part, known, start) for part in parts]
    return assemble([part for part in parts if len(part.ids)], start, stop, source, known)


class _Loader:
    """Features of one side on the workers of its blocks."""

    def __init__(self, engine: DaskEngine, source: FeatureSource, ids: IdRanges | None, token: str) -> None:
        self.engine, self.source, self.ids = engine, source, ids
        self.bounds = engine.bounds[source.side]
        self.token = f"{token}-{source.side}"
        self._count = itertools.count()

    def _key(self, what: str, *place: object) -> str:
        return "-".join([f"unseen_{what}", self.token, *map(str, place)])

    def _held(self, number: int, *, length: int | None = None) -> tuple[list[Any], Indices, int, int]:
        """Ranges with the ids of a block, the first number of each, and the block's limits."""
        start, stop = (int(bound) for bound in self.bounds[number : number + 2])
        stop = stop if length is None else start + length
        if self.ids is None:
            return [], np.empty(0, np.int64), start, stop
        first, last = self.ids.first[:-1], self.ids.first[1:]
        held = np.flatnonzero((first < stop) & (last > start))
        return [self.ids.ranges[place] for place in held], first[held], start, stop

    def blocks(self, dtype: str) -> list[Any]:
        """Futures of the features of each block."""
        cluster, source = self.engine.cluster, self.source
        numbers = range(len(self.bounds) - 1)
        if source.array is not None:
            return [
                cluster.submit(
                    number,
                    _same,
                    source.array[self.bounds[number] : self.bounds[number + 1]].astype(dtype),
                    key=self._key("features", number),
                )
                for number in numbers
            ]
        first_ids = None
        if self.ids is not None:
            firsts = [
                cluster.submit(number, _ids, *self._held(number, length=1), key=self._key("first", number))
                for number in numbers
            ]
            first_ids = np.concatenate(cluster.collect(firsts))
        slices = [
            cluster.map(
                None,
                _slice,
                [ordered] * len(numbers),
                list(numbers),
                keys=[self._key("lines", place, number) for number in numbers],
            )
            for place, ordered in enumerate(self._ordered(dtype, first_ids))
        ]
        # Partitions are named in the lines; those who assemble need the description alone.
        about = FeatureSource(source.argument, source.columns, [None] * len(source.partitions))
        return [
            cluster.submit(
                number,
                _features,
                [part[number] for part in slices],
                *self._held(number),
                about,
                key=self._key("features", number),
            )
            for number in numbers
        ]

    def _ordered(self, dtype: str, first_ids: Array | None) -> list[Any]:
        cluster, columns = self.engine.cluster, self.source.columns
        assert columns is not None
        found = []
        partitions = list(self.source.partitions)
        if partitions and not isinstance(partitions[0], Partition):
            partitions = list(cluster.client.compute(partitions))
        for place, partition in enumerate(partitions):
            if not isinstance(partition, Partition):  # a future of a frame
                partition = cluster.client.submit(
                    frame_partition,
                    partition,
                    f"partition {place}",
                    key=self._key("frame", place),
                    pure=False,
                )
            lines = cluster.client.submit(
                _load, partition, columns, dtype, key=self._key("load", place), pure=False
            )
            found.append(
                cluster.client.submit(
                    _order, lines, self.bounds, first_ids, key=self._key("order", place), pure=False
                )
            )
        return found

    def each(self, what: str, function: Any, blocks: list[Any], *extra: Any) -> list[Any]:
        """A task for each block, where the block is."""
        step = next(self._count)
        return [
            self.engine.cluster.submit(b, function, block, *extra, key=self._key(what, step, b))
            for b, block in enumerate(blocks)
        ]


def load_designs(
    engine: DaskEngine,
    source: FeatureSource,
    a_map: FeatureMap,
    ids: IdRanges | None,
    dtype: str,
    token: str,
) -> tuple[list[Any], MapParams]:
    """Futures of the design of each block of one side, and the map's parameters."""
    loader = _Loader(engine, source, ids, token)
    collect = engine.cluster.collect
    features = loader.blocks(dtype)
    extents = collect(loader.each("extent", extent, features))
    squares = collect(loader.each("squares", squares_about, features, mean_of(extents)))
    params = map_params_of(a_map, extents, squares)
    designs = loader.each("design", design_of, features, a_map, params)
    engine.cluster.wait(designs)
    return designs, params
