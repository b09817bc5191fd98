"""One process that works on one block after another, from memory-mapped files."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.distributed.blocks import (
    MAX_BINS,
    CellBlock,
    Indices,
    Merge,
    Triples,
    build_block,
    choose_bounds,
    group_by_block,
    histogram,
)
from unseen.distributed.checkpoints import Checkpoints
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

__all__ = ["LocalEngine", "fill_blocks"]

ARRAYS = ("indptr", "indices", "values", "touched")
SIDES = ("row", "col")
Chunks = Callable[[], Iterator[Triples]]
"""Starts from the first cell at each call."""


class LocalEngine:
    """Blocks of cells and factors in a folder; a few of them in memory at any time.

    Parameters
    ----------
    folder : Path
        Where the blocks are.
    bounds : dict
        Where blocks of rows and columns begin and end.
    """

    def __init__(self, folder: Path, bounds: dict[str, Indices]) -> None:
        self.folder = folder
        self.bounds = bounds
        self.shape = (int(bounds["row"][-1]), int(bounds["col"][-1]))
        self.bytes_moved = 0
        """Bytes of cells and factors that were read and written so far."""

    # -- cells -----------------------------------------------------------------------

    def n_blocks(self, side: str) -> int:
        """Blocks on one side."""
        return len(self.bounds[side]) - 1

    def block(self, side: str, number: int) -> CellBlock:
        """A block, mapped into memory."""
        place = self.folder / f"{side}-{number}"
        facts = json.loads(place.with_suffix(".json").read_text())
        mode: Any = "r" if facts["n_cells"] else None  # an empty array cannot be mapped
        arrays = {
            name: np.load(place.with_suffix(f".{name}.npy"), mmap_mode=mode) if facts["has"][name] else None
            for name in ARRAYS
        }
        return CellBlock(
            int(self.bounds[side][number]),
            int(self.bounds[side][number + 1]),
            n_merged=facts["n_merged"],
            **arrays,  # type: ignore[arg-type]
        )

    def keep(self, side: str, number: int, block: CellBlock) -> None:
        """Write a block."""
        place = self.folder / f"{side}-{number}"
        has = {}
        for name in ARRAYS:
            array = getattr(block, name)
            has[name] = array is not None
            if array is not None:
                np.save(place.with_suffix(f".{name}.npy"), array, allow_pickle=False)
        facts = {"n_cells": block.n_cells, "n_merged": block.n_merged, "has": has}
        place.with_suffix(".json").write_text(json.dumps(facts))

    def sums(self, settings: Settings) -> list[CellSums]:
        """Sums over the cells of each block of rows."""
        return [cell_sums(self.block("row", b), settings) for b in range(self.n_blocks("row"))]

    # -- factors ---------------------------------------------------------------------

    def factors(self, side: str, mode: Any = "r") -> FloatArray:
        """All factors of one side, mapped into memory."""
        factors: FloatArray = np.load(self._factor_file(side), mmap_mode=mode)
        return factors

    def _factor_file(self, side: str) -> Path:
        return self.folder / f"{side}-factors.npy"

    def _new_factors(self, side: str, settings: Settings) -> FloatArray:
        n_rows = self.shape[SIDES.index(side)]
        shape = (n_rows, settings.rank)
        made: FloatArray = np.lib.format.open_memmap(
            self._factor_file(side), mode="w+", dtype=settings.dtype, shape=shape
        )
        return made

    def need_factors(self, side: str, settings: Settings) -> None:
        """Make room for the factors of one side where there is none."""
        if not self._factor_file(side).exists():
            self._new_factors(side, settings)

    def each(self, side: str) -> Iterator[tuple[int, slice]]:
        """Number and rows of each block of one side."""
        for number, (first, last) in enumerate(
            zip(self.bounds[side][:-1], self.bounds[side][1:], strict=True)
        ):
            yield number, slice(int(first), int(last))

    def draw(self, side: str, start: Start, settings: Settings) -> list[float]:
        """Draw a factor; the sum of squares of each block."""
        out, squares = self._new_factors(side, settings), []
        for _, rows in self.each(side):
            out[rows], total = draw_block(start, rows.start, rows.stop, settings.dtype)
            squares.append(total)
        return squares

    def scale(self, side: str, factor: float, *, only_seen: bool = False) -> list[Part]:
        """Bring a drawn factor to its size; rows without a cell become zero if asked for."""
        out, parts = self.factors(side, "r+"), []
        for number, rows in self.each(side):
            cells = self.block(side, number) if only_seen else None
            out[rows], part = scale_block(np.array(out[rows]), factor, cells)
            parts.append(part)
        return parts

    def turn(self, side: str, turn: FloatArray, settings: Settings) -> None:
        """Multiply all blocks of a factor with a small matrix."""
        for _, rows in self.each(side):
            out = self.factors(side, "r+")
            out[rows] = turned(out[rows], turn, settings.n_threads)
            del out  # pages that stay mapped would count as memory of this process

    def solve(
        self, side: str, other_gram: FloatArray, settings: Settings, *, judge: bool = False
    ) -> list[Part]:
        """Solve for one side with the other fixed."""
        self.need_factors(side, settings)
        return [self._solve_one(side, b, rows, other_gram, settings, judge) for b, rows in self.each(side)]

    def _solve_one(
        self, side: str, number: int, rows: slice, other_gram: FloatArray, settings: Settings, judge: bool
    ) -> Part:
        block = self.block(side, number)
        other = np.take(self.factors("col" if side == "row" else "row"), block.touched, axis=0)
        own = np.array(self.factors(side)[rows]) if settings.method == "cg" else None
        solved, part = solve_block(block, other, own, other_gram, settings, judge=judge)
        out = self.factors(side, "r+")
        out[rows] = solved
        self.bytes_moved += block.nbytes + other.nbytes + solved.nbytes
        return part

    # -- checkpoints -----------------------------------------------------------------

    def write_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Write all blocks of both factors into a folder of a checkpoint."""
        for side in SIDES:
            for number, rows in self.each(side):
                checkpoints.write(folder, f"{side}-{number}", np.array(self.factors(side)[rows]))

    def read_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Take all blocks of both factors from a folder of a checkpoint."""
        for side in SIDES:
            out: Any = None
            for number, rows in self.each(side):
                block = checkpoints.read(folder, f"{side}-{number}")
                if out is None:
                    shape = (self.shape[SIDES.index(side)], block.shape[1])
                    out = np.lib.format.open_memmap(
                        self._factor_file(side), mode="w+", dtype=block.dtype, shape=shape
                    )
                out[rows] = block
            del out

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def fill_blocks(
    chunks: Chunks,
    shape: tuple[int, int],
    n_blocks: int,
    merge: Merge,
    dtype: npt.DTypeLike,
    folder: Path,
) -> LocalEngine:
    """Cut a target that is read in chunks into blocks in a folder.

    The cells are read twice: once to count, once to deal them out to a file for each block. Then
    one block after another is sorted.
    """
    counts = {side: np.zeros(_n_bins(n), dtype=np.int64) for side, n in zip(SIDES, shape, strict=True)}
    has_values = True
    for cells in chunks():
        for side, n in zip(SIDES, shape, strict=True):
            counts[side] += histogram(cells.side(side).rows, n)
        has_values = cells.values is not None
    bounds = {side: choose_bounds(counts[side], n, n_blocks) for side, n in zip(SIDES, shape, strict=True)}
    engine = LocalEngine(folder, bounds)
    index = np.int32 if max(shape) < 2**31 else np.int64
    fields: list[Any] = [("own", index), ("other", index)]
    record = np.dtype([*fields, ("value", dtype)] if has_values else fields)
    with tempfile.TemporaryDirectory(dir=folder, prefix="dealt-") as dealt:
        _deal(chunks, bounds, record, Path(dealt))
        for side, n_other in (("row", shape[1]), ("col", shape[0])):
            for number in range(engine.n_blocks(side)):
                file = Path(dealt) / f"{side}-{number}"
                lines = np.fromfile(file, dtype=record) if file.exists() else np.empty(0, dtype=record)
                cells = Triples(lines["own"], lines["other"], lines["value"] if has_values else None)
                first, last = (int(bound) for bound in bounds[side][number : number + 2])
                engine.keep(side, number, build_block(cells, first, last, n_other, merge, dtype))
                file.unlink(missing_ok=True)
    return engine


def _n_bins(length: int) -> int:
    return -(-length // -(-length // MAX_BINS))


def _deal(chunks: Chunks, bounds: dict[str, Indices], record: np.dtype[Any], folder: Path) -> None:
    """Append cells to one file for each block."""
    for cells in chunks():
        for side in SIDES:
            ordered, cuts = group_by_block(cells.side(side), bounds[side])
            lines = np.empty(len(ordered.rows), dtype=record)
            lines["own"], lines["other"] = ordered.rows, ordered.cols
            if ordered.values is not None:
                lines["value"] = ordered.values
            for number in np.flatnonzero(np.diff(cuts)):
                with (folder / f"{side}-{number}").open("ab") as file:
                    lines[cuts[number] : cuts[number + 1]].tofile(file)
