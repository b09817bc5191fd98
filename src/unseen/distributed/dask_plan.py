"""From partitions of cells with ids to blocks of cells with indices, on the workers of a cluster.

Ids are never brought to the client. Each range of ids has a worker that numbers them; the ranges
come from a small sample, so that the numbers are those of the sorted ids, as in a fit in
memory. Partitions send each range the ids that they hold and get their numbers back.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from unseen.distributed.sources import Columns, IdCells, Partition, coded, indexed, read_tables
from unseen.exceptions import InvalidDataError
from unseen.typing import Array, FloatArray

__all__ = ["IdRanges", "Plan", "frame_partition", "load_partitions", "make_blocks", "number_ids"]

SIDES = ("row", "col")
SAMPLE = 1 << 16
"""Ids that are brought to the client to choose ranges, whatever their number."""
Sorted = tuple[Triples, Indices]


@dataclass
class IdRanges:
    """Ids of one side: futures of sorted ranges, and the number of the first id of each."""

    ranges: list[Any]
    first: Indices

    @property
    def length(self) -> int:
        """Ids in all."""
        return int(self.first[-1])


@dataclass
class Plan:
    """Blocks of cells on workers, and what their indices mean (None: the ids were indices)."""

    cells: dict[str, list[Any]]
    bounds: dict[str, Indices]
    ids: dict[str, IdRanges] | None


def frame_partition(frame: Any, name: str) -> Partition:
    """A frame that a worker holds, as a partition."""
    return Partition(name, frame=frame, n_lines=len(frame))


def load_coded(partition: Partition, columns: Columns) -> IdCells:
    """Cells of a partition with their ids."""
    import pyarrow as pa

    tables = [table for table, _ in read_tables(partition, columns)]
    if not tables:
        return IdCells(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64),
                       np.empty(0, np.int64), None if columns.value is None else np.empty(0))  # fmt: skip
    return coded(pa.concat_tables(tables, promote_options="permissive"), columns, partition.name)


def load_indexed(partition: Partition, columns: Columns, shape: tuple[int, int]) -> Triples:
    """Cells of a partition whose ids are indices."""
    parts = [indexed(table, columns, shape, partition.name, first)
             for table, first in read_tables(partition, columns)]  # fmt: skip
    return _joined(parts)


def _joined(parts: list[Triples]) -> Triples:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Triples(np.empty(0, np.int64), np.empty(0, np.int64), None)
    filled = [part for part in parts if len(part.rows)] or parts[:1]
    values: FloatArray | None = None
    if all(part.values is not None for part in filled):
        values = np.concatenate([part.values for part in filled])
    rows, cols = (np.concatenate([part[side] for part in filled]) for side in (0, 1))
    return Triples(rows, cols, values)


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
        if not isinstance(partition, Partition):  # a future of a frame
            partition = cluster.client.submit(
                frame_partition,
                partition,
                f"partition {number}",
                key=f"unseen_frame-{token}-{number}",
                pure=False,
            )
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
    return Triples(np.concatenate(rows)[cells.row_codes], np.concatenate(cols)[cells.col_codes], cells.values)


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


def _order(cells: Triples, side: str, bounds: Indices) -> Sorted:
    return group_by_block(cells.side(side), bounds)


def _slice(ordered: Sorted, number: int) -> Triples:
    cells, cuts = ordered
    part = slice(int(cuts[number]), int(cuts[number + 1]))
    return Triples(
        cells.rows[part].copy(),
        cells.cols[part].copy(),
        None if cells.values is None else cells.values[part].copy(),
    )


def _build(parts: list[Triples], first: int, last: int, n_other: int, merge: Merge, dtype: str) -> CellBlock:
    return build_block(_joined(parts), first, last, n_other, merge, dtype)


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
