"""From partitions with ids to blocks with indices, on the workers of a cluster: cells, and side features.

Ids are never brought to the client. Each range of ids has a worker that numbers them; the ranges
come from a small sample, so that the numbers are those of the sorted ids, as in a fit in
memory. Partitions send each range the ids that they hold and get their numbers back. Lines of features are
sent once, to the worker of the block that they belong to; the client sees the first id of each block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.distributed.blocks import (
    CellBlock,
    Indices,
    Merge,
    Triples,
    build_block,
    choose_bounds,
    group_by_block,
    histogram,
)
from unseen.distributed.cluster import Cluster
from unseen.distributed.dask_engine import DaskEngine, IdRanges
from unseen.distributed.engine import IDS, SIDES
from unseen.distributed.features import (
    FeatureColumns,
    FeatureLines,
    FeatureSource,
    assemble,
    place_by_ids,
    place_by_number,
    read_lines,
)
from unseen.distributed.sources import Columns, IdCells, Partition, coded, indexed, read_tables
from unseen.exceptions import InvalidDataError
from unseen.typing import Array, Features

__all__ = ["bounds_of", "cell_counts", "load_features", "load_partitions", "make_blocks", "number_ids"]

SAMPLE = 1 << 16
"""Ids that are brought to the client to choose ranges, whatever their number."""


def _frame_partition(frame: Any, name: str) -> Partition:
    """A frame that a worker holds, as a partition."""
    return Partition(name, frame=frame, n_lines=len(frame))


def _as_partition(cluster: Cluster, partition: Any, number: int, key: str) -> Any:
    """A partition, or a future of one if only a future of its frame is known."""
    if isinstance(partition, Partition):
        return partition
    name = f"partition {number}"
    return cluster.client.submit(_frame_partition, partition, name, key=f"unseen_frame-{key}", pure=False)


def load_coded(partition: Partition, columns: Columns) -> IdCells:
    """Cells of a partition with their ids."""
    import pyarrow as pa

    tables = [table for table, _ in read_tables(partition, columns)]
    if not tables:
        nothing = np.empty(0, np.int64)
        numbers = [None if name is None else np.empty(0) for name in (columns.value, columns.weight)]
        return IdCells(nothing, nothing, nothing, nothing, *numbers)
    return coded(pa.concat_tables(tables, promote_options="permissive"), columns, partition.name)


def load_indexed(partition: Partition, columns: Columns, shape: tuple[int, int]) -> Triples:
    """Cells of a partition whose ids are indices."""
    tables = read_tables(partition, columns)
    return Triples.joined([indexed(table, columns, shape, partition.name, first) for table, first in tables])


def load_partitions(
    cluster: Cluster,
    partitions: list[Any],
    columns: Columns,
    shape: tuple[int, int] | None,
    token: str,
) -> list[Any]:
    """Futures of the cells of all partitions; an error names the partition."""
    loaded = []
    for number, partition in enumerate(partitions):
        partition = _as_partition(cluster, partition, number, f"{token}-{number}")
        function, extra = (load_coded, ()) if shape is None else (load_indexed, (shape,))
        loaded.append(
            cluster.client.submit(
                function, partition, columns, *extra, key=f"unseen_load-{token}-{number}", pure=False
            )
        )
    return loaded


# -- ids ------------------------------------------------------------------------------------


def _sample(cells: IdCells, side: int, count: int) -> Array:
    ids = cells.ids(side)
    return ids[:: max(1, len(ids) // max(count, 1))]


def _range_of(cells: IdCells, side: int, splitters: Array, number: int) -> Array:
    ids = cells.ids(side)
    first = 0 if number == 0 else int(np.searchsorted(ids, splitters[number - 1]))
    last = len(ids) if number == len(splitters) else int(np.searchsorted(ids, splitters[number]))
    return ids[first:last]


def _merge_ids(parts: list[Array]) -> Array:
    filled = [part for part in parts if len(part)]
    return np.unique(np.concatenate(filled)) if filled else parts[0]


def _numbers(ids: Array, known: Array, first: int) -> Indices:
    return np.searchsorted(known, ids).astype(np.int64) + first


def _apply(cells: IdCells, rows: list[Indices], cols: list[Indices]) -> Triples:
    numbered = np.concatenate(rows)[cells.row_codes], np.concatenate(cols)[cells.col_codes]
    return Triples(*numbered, cells.values, cells.weights)


def number_ids(
    cluster: Cluster, loaded: list[Any], n_ranges: int, token: str
) -> tuple[list[Any], dict[str, IdRanges]]:
    """Number the ids of rows and columns in their order; cells with indices, and the ranges of ids."""
    found: dict[str, IdRanges] = {}
    numbers: dict[str, list[list[Any]]] = {}
    for side, name in enumerate(SIDES):
        key = f"{token}-{name}"
        per_part = max(4, SAMPLE // len(loaded))
        count = len(loaded)
        samples = cluster.collect(
            cluster.client.map(
                _sample,
                loaded,
                [side] * count,
                [per_part] * count,
                key=[f"unseen_sample-{key}-{p}" for p in range(count)],
                pure=False,
            )
        )
        filled = [part for part in samples if len(part)]
        if len({part.dtype.kind == "U" for part in filled}) > 1:
            where = [p for p, part in enumerate(samples) if len(part) and part.dtype.kind == "U"]
            raise InvalidDataError(
                f"{name} ids must be all integers or all text; they are text in partition {where[0]} of "
                f"{count} and integers in others"
            )
        drawn = np.unique(np.concatenate(filled)) if filled else np.empty(0, np.int64)
        places = np.linspace(0, len(drawn), n_ranges + 1)[1:-1].astype(np.int64)
        splitters = np.unique(drawn[places]) if len(drawn) else drawn
        n_found = len(splitters) + 1
        cuts = [
            cluster.client.map(
                _range_of,
                [cells] * n_found,
                [side] * n_found,
                [splitters] * n_found,
                list(range(n_found)),
                key=[f"unseen_ids-{key}-{p}-{r}" for r in range(n_found)],
                pure=False,
            )
            for p, cells in enumerate(loaded)
        ]
        ranges = [
            cluster.submit(r, _merge_ids, [cut[r] for cut in cuts], key=f"unseen_range-{key}-{r}")
            for r in range(n_found)
        ]
        lengths = cluster.collect(
            cluster.client.map(len, ranges, key=[f"unseen_length-{key}-{r}" for r in range(n_found)])
        )
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        found[name] = IdRanges(ranges, first)
        numbers[name] = [
            cluster.client.map(
                _numbers,
                cut,
                ranges,
                [int(start) for start in first[:-1]],
                key=[f"unseen_number-{key}-{p}-{r}" for r in range(n_found)],
                pure=False,
            )
            for p, cut in enumerate(cuts)
        ]
    cells = [
        cluster.client.submit(
            _apply, part, numbers["row"][p], numbers["col"][p], key=f"unseen_cells-{token}-{p}", pure=False
        )
        for p, part in enumerate(loaded)
    ]
    return cells, found


# -- blocks ---------------------------------------------------------------------------------


def _count(cells: Triples, side: str, length: int) -> Indices:
    return histogram(cells.side(side).rows, length)


def _add(parts: list[Indices]) -> Indices:
    total: Indices = np.sum(parts, axis=0)
    return total


def _order(cells: Triples, side: str, bounds: Indices) -> tuple[Triples, Indices]:
    return group_by_block(cells.side(side), bounds)


def _slice(ordered: tuple[Any, Indices], number: int) -> Any:
    cells, cuts = ordered
    return cells.chosen(np.arange(cuts[number], cuts[number + 1]))  # a copy, so that the others can go


def _build(parts: list[Triples], first: int, last: int, n_other: int, merge: Merge, dtype: str) -> CellBlock:
    return build_block(Triples.joined(parts), first, last, n_other, merge, dtype)


def cell_counts(cluster: Cluster, cells: list[Any], shape: tuple[int, int], token: str) -> dict[str, Indices]:
    """Cells in equal ranges of rows and columns."""
    counted = {}
    for side, length in zip(SIDES, shape, strict=True):
        count = len(cells)
        parts = cluster.client.map(
            _count,
            cells,
            [side] * count,
            [length] * count,
            key=[f"unseen_count-{token}-{side}-{p}" for p in range(count)],
            pure=False,
        )
        counted[side] = cluster.client.submit(_add, parts, key=f"unseen_counts-{token}-{side}", pure=False)
    rows, cols = cluster.collect([counted["row"], counted["col"]])
    return {"row": rows, "col": cols}


def make_blocks(
    cluster: Cluster,
    cells: list[Any],
    bounds: dict[str, Indices],
    merge: Merge,
    dtype: str,
    token: str,
) -> dict[str, list[Any]]:
    """Deal the cells of all partitions out to blocks of rows and of columns, on their workers."""
    made: dict[str, list[Any]] = {}
    for side in SIDES:
        n_blocks = len(bounds[side]) - 1
        n_other = int(bounds["col" if side == "row" else "row"][-1])
        count = len(cells)
        ordered = cluster.client.map(
            _order,
            cells,
            [side] * count,
            [bounds[side]] * count,
            key=[f"unseen_order-{token}-{side}-{p}" for p in range(count)],
            pure=False,
        )
        slices = [
            cluster.client.map(
                _slice,
                [part] * n_blocks,
                list(range(n_blocks)),
                key=[f"unseen_slice-{token}-{side}-{p}-{b}" for b in range(n_blocks)],
                pure=False,
            )
            for p, part in enumerate(ordered)
        ]
        made[side] = [
            cluster.submit(
                b,
                _build,
                [part[b] for part in slices],
                int(bounds[side][b]),
                int(bounds[side][b + 1]),
                n_other,
                merge,
                dtype,
                key=f"unseen_block-{token}-{side}-{b}",
            )
            for b in range(n_blocks)
        ]
        cluster.wait(made[side])
    return made


def bounds_of(counts: dict[str, Indices], shape: tuple[int, int], n_blocks: int) -> dict[str, Indices]:
    """Bounds of the blocks of both sides."""
    return {
        side: choose_bounds(counts[side], length, n_blocks) for side, length in zip(SIDES, shape, strict=True)
    }


# -- features -------------------------------------------------------------------------------


def _load_lines(partition: Partition, columns: FeatureColumns, dtype: str) -> FeatureLines:
    parts = list(read_lines(partition, columns, dtype))
    if len(parts) == 1:
        return parts[0]
    where = f"{columns.argument}, {partition.name}"
    if not parts:
        empty = np.empty(0, np.int64)
        return FeatureLines(empty, np.empty((0, len(columns.features)), dtype), empty, where)
    ids, values, lines = (np.concatenate([part[place] for part in parts]) for place in range(3))
    return FeatureLines(ids, values, lines, where)


def _order_lines(
    lines: FeatureLines, bounds: Indices, first_ids: Array | None
) -> tuple[FeatureLines, Indices]:
    """Lines ordered by the block that they belong to, and where each block begins among them."""
    if first_ids is None:
        block = np.searchsorted(bounds, place_by_number(lines, int(bounds[-1])).ids, side="right") - 1
    else:
        place_by_ids(lines, first_ids, 0)  # refuses text among integers
        block = np.maximum(np.searchsorted(first_ids, lines.ids, side="right") - 1, 0)
    order = np.argsort(block, kind="stable")
    return lines.chosen(order), np.searchsorted(block[order], np.arange(len(bounds)))


def _first_id(ids: Array) -> Array:
    return ids[:1]


def _features(
    ids: Array, parts: list[FeatureLines], start: int, stop: int, source: FeatureSource, by_number: bool
) -> tuple[Features, None]:
    if not by_number:
        parts = [place_by_ids(part, ids, start) for part in parts]
    filled = [part for part in parts if len(part.ids)]
    return assemble(filled, start, stop, source, None if by_number else ids), None


def _given(features: Features) -> tuple[Features, None]:
    return features, None


def load_features(engine: DaskEngine, source: FeatureSource, dtype: str, token: str) -> None:
    """Let each block of one side hold its features."""
    side, bounds, cluster = source.side, engine.bounds[source.side], engine.cluster
    limits = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    if source.array is not None:
        blocks = [source.array[first:last].astype(dtype) for first, last in limits]
        engine.each(side, _given, blocks, keep="features")
        return
    columns, by_number = source.columns, engine.ids is None
    assert columns is not None
    first_ids = None if by_number else np.concatenate(engine.each(side, _first_id, IDS))
    partitions = list(source.partitions)
    if partitions and not isinstance(partitions[0], Partition):
        partitions = list(cluster.client.compute(partitions))
    slices = []
    for place, partition in enumerate(partitions):
        key = f"{token}-{side}-{place}"
        lines = cluster.client.submit(
            _load_lines,
            _as_partition(cluster, partition, place, key),
            columns,
            dtype,
            key=f"unseen_lines-{key}",
            pure=False,
        )
        ordered = cluster.client.submit(
            _order_lines, lines, bounds, first_ids, key=f"unseen_order_lines-{key}", pure=False
        )
        keys = [f"unseen_some_lines-{key}-{number}" for number in range(len(limits))]
        slices.append(cluster.map(None, _slice, [ordered] * len(limits), list(range(len(limits))), keys=keys))
    # Partitions are named in the lines; those who assemble need the description alone.
    about = FeatureSource(source.argument, source.columns, [None] * len(partitions))
    parts = [[part[number] for part in slices] for number in range(len(limits))]
    starts, stops = ([limit[place] for limit in limits] for place in (0, 1))
    engine.each(side, _features, IDS, parts, starts, stops, about, by_number, keep="features")
