"""One process that works on one block after another, from memory-mapped files."""

from __future__ import annotations

import mmap
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.data import Vocabulary
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
from unseen.distributed.engine import SIDES, TABLES, Held, Touched, WholeBlock, other_side
from unseen.distributed.steps import added
from unseen.typing import Array, FloatArray

__all__ = ["LocalEngine", "fill_blocks"]

Chunks = Callable[[], Iterator[Triples]]
"""Starts from the first cell at each call."""
ALIGNED = 64
"""Arrays in a file begin at multiples of this."""


def write_object(path: Path, thing: Any) -> None:
    """Write an object so that its arrays can be mapped into memory.

    The file replaces another one of that name only when it is complete: what is mapped stays as it was.
    """
    arrays: list[pickle.PickleBuffer] = []
    about = pickle.dumps(thing, protocol=5, buffer_callback=arrays.append)
    parts = [memoryview(about), *(array.raw() for array in arrays)]
    head = np.array([len(parts), *(part.nbytes for part in parts)], dtype=np.int64).tobytes()
    hidden = path.with_name(f".{path.name}")
    with hidden.open("wb") as file:
        for part in (memoryview(head), *parts):
            file.write(part)
            file.write(bytes(-file.tell() % ALIGNED))
    hidden.replace(path)


def read_object(path: Path) -> Any:
    """An object whose arrays are mapped into memory; files come from this process alone."""
    with path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    count = int(np.frombuffer(mapped[:8], np.int64)[0])
    lengths = np.frombuffer(mapped[8 : 8 * (count + 1)], np.int64)
    begin, parts = 8 * (count + 1), []
    for length in map(int, lengths):
        begin += -begin % ALIGNED
        parts.append(mapped[begin : begin + length])
        begin += length
    return pickle.loads(parts[0], buffers=parts[1:])


class LocalEngine:
    """Blocks of cells and factors in a folder; a few of them in memory at any time.

    Parameters
    ----------
    folder : Path
        Where the blocks are.
    bounds : dict
        Where blocks of rows and columns begin and end.
    ids : (Vocabulary, Vocabulary), optional
        Ids of rows and columns; None where they are indices.
    """

    recomputes = False

    def __init__(
        self,
        folder: Path,
        bounds: dict[str, Indices],
        ids: tuple[Vocabulary | None, Vocabulary | None] = (None, None),
    ) -> None:
        self.folder = folder
        self.bounds = bounds
        self.ids = dict(zip(SIDES, ids, strict=True))
        self.bytes_moved = 0
        """Bytes of cells, factors and designs that were read and written so far."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the target."""
        return int(self.bounds["row"][-1]), int(self.bounds["col"][-1])

    def blocks(self, side: str) -> Iterator[tuple[int, slice]]:
        """Number and rows of each block of one side."""
        for number, (first, last) in enumerate(pairwise(self.bounds[side].tolist())):
            yield number, slice(first, last)

    # -- what blocks hold ------------------------------------------------------------

    def _file(self, side: str, number: int, name: str) -> Path:
        return self.folder / f"{side}-{number}.{name}"

    def held(self, side: str, number: int, name: str) -> Any:
        """What a block holds under a name."""
        rows = slice(*(int(bound) for bound in self.bounds[side][number : number + 2]))
        if name in TABLES:
            return np.array(self.table(side, name)[rows])
        if name == "ids":
            known = self.ids[side]
            return np.arange(rows.start, rows.stop) if known is None else known.values[rows]
        return read_object(self._file(side, number, name))

    def keep(self, side: str, number: int, name: str, thing: Any) -> None:
        """Let a block hold something."""
        if name not in TABLES:
            write_object(self._file(side, number, name), thing)
            return
        file, shape = self._table_file(side, name), (int(self.bounds[side][-1]), thing.shape[1])
        mode: Any = "r+" if file.exists() else "w+"
        out = np.lib.format.open_memmap(file, mode=mode, dtype=thing.dtype, shape=shape)
        out[slice(*self.bounds[side][number : number + 2])] = thing
        # Pages that stay mapped would count as memory of this process; the name goes with this call.

    def drop(self, side: str, name: str) -> None:
        """Let go of what the blocks hold under a name."""
        for number, _ in self.blocks(side):
            self._file(side, number, name).unlink(missing_ok=True)

    def _table_file(self, side: str, name: str) -> Path:
        return self.folder / f"{side}.{name}.npy"

    def table(self, side: str, name: str = "factors") -> FloatArray:
        """All lines of a table, mapped into memory."""
        found: FloatArray = np.load(self._table_file(side, name), mmap_mode="r")
        return found

    def all_ids(self, side: str) -> Array | None:
        """Ids of all rows or columns; None if ids are indices."""
        known = self.ids[side]
        return None if known is None else known.values

    # -- work ------------------------------------------------------------------------

    def each(
        self, side: str, function: Callable[..., Any], *args: Any, keep: str | None = None, wait: bool = True
    ) -> list[Any]:
        """Run a function on every block of one side, see :class:`unseen.distributed.engine.Engine`."""
        return list(self._results(side, function, args, keep))

    def total(self, side: str, function: Callable[..., Any], *args: Any) -> FloatArray:
        """Sum over the blocks of one side of what a function gives, in float64."""
        return added(self._results(side, function, args, None))

    def _results(
        self, side: str, function: Callable[..., Any], args: tuple[Any, ...], keep: str | None
    ) -> Iterator[Any]:
        for number, _ in self.blocks(side):
            found = function(*self._arguments(side, number, args))
            if keep is not None:
                kept, found = found
                self.bytes_moved += getattr(kept, "nbytes", 0)
                self.keep(side, number, keep, kept)
                del kept
            yield found

    def _arguments(self, side: str, number: int, args: tuple[Any, ...]) -> Iterator[Any]:
        touched: Indices | None = None
        for arg in args:
            value = arg
            if isinstance(arg, Held):
                value = self.held(side, number, arg.name)
                touched = value.touched if isinstance(value, CellBlock) else touched
            elif isinstance(arg, Touched):
                if touched is None:
                    touched = self.held(side, number, "cells").touched
                value = np.take(self.table(other_side(side), arg.table), touched, axis=0)
            elif isinstance(arg, WholeBlock):
                value = self.held(arg.side, arg.number, arg.table)
            elif isinstance(arg, list):
                value = arg[number]
            if isinstance(arg, (Held, Touched)):
                self.bytes_moved += getattr(value, "nbytes", 0)
            yield value

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
    ids: tuple[Vocabulary | None, Vocabulary | None],
) -> LocalEngine:
    """Cut a target that is read in chunks into blocks in a folder.

    The cells are read twice: once to count, once to deal them out to a file for each block. Then
    one block after another is sorted.
    """
    counts = {side: np.zeros(_n_bins(n), dtype=np.int64) for side, n in zip(SIDES, shape, strict=True)}
    record = record_of(np.int32, Triples.joined([]), dtype)
    for cells in chunks():
        for side, n in zip(SIDES, shape, strict=True):
            counts[side] += histogram(cells.side(side).rows, n)
        record = record_of(np.int32 if max(shape) < 2**31 else np.int64, cells, dtype)
    bounds = {side: choose_bounds(counts[side], n, n_blocks) for side, n in zip(SIDES, shape, strict=True)}
    engine = LocalEngine(folder, bounds, ids)
    with tempfile.TemporaryDirectory(dir=folder, prefix="dealt-") as dealt:
        _deal(chunks, bounds, record, Path(dealt))
        for side, n_other in (("row", shape[1]), ("col", shape[0])):
            for number, rows in engine.blocks(side):
                file = Path(dealt) / f"{side}-{number}"
                lines = np.fromfile(file, dtype=record) if file.exists() else np.empty(0, dtype=record)
                block = build_block(as_cells(lines), rows.start, rows.stop, n_other, merge, dtype)
                engine.keep(side, number, "cells", block)
                file.unlink(missing_ok=True)
    return engine


def record_of(index: npt.DTypeLike, cells: Any, dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A line of a file of cells: two indices, and a value and a weight where cells have them."""
    numbers = [(name, dtype) for name in ("values", "weights") if getattr(cells, name) is not None]
    return np.dtype([("rows", index), ("cols", index), *numbers])


def as_lines(cells: Triples, record: np.dtype[Any]) -> Array:
    """Cells as lines of a file."""
    lines = np.empty(len(cells.rows), dtype=record)
    for name in record.names or ():
        lines[name] = getattr(cells, name)
    return lines


def as_cells(lines: Array) -> Triples:
    """Cells from lines of a file."""
    names = lines.dtype.names or ()
    values, weights = (lines[name] if name in names else None for name in ("values", "weights"))
    return Triples(lines["rows"], lines["cols"], values, weights)


def _n_bins(length: int) -> int:
    return -(-length // -(-length // MAX_BINS))


def _deal(chunks: Chunks, bounds: dict[str, Indices], record: np.dtype[Any], folder: Path) -> None:
    """Append cells to one file for each block."""
    for cells in chunks():
        for side in SIDES:
            ordered, cuts = group_by_block(cells.side(side), bounds[side])
            lines = as_lines(ordered, record)
            for number in np.flatnonzero(np.diff(cuts)):
                with (folder / f"{side}-{number}").open("ab") as file:
                    lines[cuts[number] : cuts[number + 1]].tofile(file)
