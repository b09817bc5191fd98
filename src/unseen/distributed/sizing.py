"""How much memory a plan needs, in bytes, before anything is started."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from unseen.exceptions import ParameterError

__all__ = ["MemoryNeed", "blocks_for", "cluster_memory", "local_memory", "parse_bytes"]

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
BASE = 300 << 20
"""An interpreter with NumPy, SciPy, pyarrow and this package."""
CHUNK_CELLS = 1 << 20
"""Cells that are read at a time."""
FEATURES_READ = 64 << 20
"""Features that are read at a time, in several forms."""
UNEVEN = 1.15
"""Largest block against the mean, for targets without rows that are blocks by themselves."""


def parse_bytes(name: str, size: Any) -> int:
    """Bytes of a text such as ``"4GiB"``, ``"500MB"`` or of a number.

    Examples
    --------
    >>> parse_bytes("memory", "4GiB")
    4294967296
    """
    if isinstance(size, (int, float)) and not isinstance(size, bool) and size > 0:
        return int(size)
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", str(size).lower())
    if found is None or float(found[1]) == 0:
        raise ParameterError(f"{name} must be a number of bytes such as 4GiB or 500MB, got {size!r}")
    unit = found[2] or ""
    return int(float(found[1]) * (UNITS | BINARY)[unit])


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes of the parts of a plan.

    Attributes
    ----------
    building : int
        While cells are sorted into a block.
    sweeping : int
        While a block is solved.
    fixed : int
        Always there: the program, ids, factors.
    """

    building: int
    sweeping: int
    fixed: int

    @property
    def peak(self) -> int:
        """The most that is needed at any time."""
        return self.fixed + max(self.building, self.sweeping)


def local_memory(
    n_cells: int,
    shape: tuple[int, int],
    rank: int,
    n_blocks: int,
    *,
    item: int = 4,
    id_bytes: int = 0,
    n_threads: int = 1,
    n_features: tuple[int, int] = (0, 0),
    weighted: bool = False,
) -> MemoryNeed:
    """Memory of a fit from disk on one machine.

    With c = cells / blocks, l = rows of the longer side and r = bytes of a cell (two 4-byte indices and
    a value)::

        building  c (3 r + 16) + 9 l              sorting a block
        sweeping  c (4 + 3 item) + min(c, l) k item + (l / blocks) k item + l k item
        fixed     300 MiB + 16 (n + m) + ids

    where the last part of "sweeping" is the file of the other side's factors, mapped into memory. With side
    features, of which d = max(n p, m p') numbers are on the larger side::

        building  at least 64 MiB + 4 (d / blocks) item
        sweeping  + 2 (d / blocks) item + 6 (l / blocks) k item

    Parameters
    ----------
    n_cells : int
        Cells of the target.
    shape : (int, int)
        Rows and columns n and m.
    rank : int
        Columns k of the factors.
    n_blocks : int
        Blocks on each side.
    item : int, default=4
        Bytes of a value: 4 for float32, 8 for float64.
    id_bytes : int, default=0
        Bytes of the ids of rows and columns.
    n_threads : int, default=1
        Threads.
    n_features : (int, int), default=(0, 0)
        Features p of a row and p' of a column, the constant counted.
    weighted : bool, default=False
        Cells have weights, which count as a second value.

    Returns
    -------
    MemoryNeed

    Examples
    --------
    >>> from unseen.distributed import local_memory
    >>> need = local_memory(200_000_000, (2_000_000, 1_000_000), 32, n_blocks=12)
    >>> f"{need.peak / 2**30:.1f} GiB"
    '1.3 GiB'
    """
    cells = UNEVEN * n_cells / n_blocks
    longest = max(shape)
    record = 8 + item * (2 if weighted else 1)
    reading = CHUNK_CELLS * 12 * record
    building = cells * (3 * record + 16) + 9 * longest
    width = rank * item
    touched = min(cells, longest)
    sweeping = (
        cells * (4 + (5 if weighted else 3) * item)
        + (touched + UNEVEN * longest / n_blocks + longest) * width
    )
    sweeping += n_threads * 8 * rank * rank
    fixed = BASE + 16 * sum(shape) + id_bytes
    if any(n_features):
        design = UNEVEN * max(_numbers(shape, n_features)) / n_blocks * item
        building = max(building, FEATURES_READ + 4 * design)
        sweeping += 2 * design + 6 * UNEVEN * longest / n_blocks * width
    return MemoryNeed(int(max(building, reading)), int(sweeping), int(fixed))


def cluster_memory(
    n_cells: int,
    shape: tuple[int, int],
    rank: int,
    n_blocks: int,
    n_workers: int,
    *,
    item: int = 4,
    threads: int = 1,
    n_features: tuple[int, int] = (0, 0),
    weighted: bool = False,
) -> MemoryNeed:
    """Memory of one worker of a cluster.

    With w workers of t threads, c = cells / blocks and l = rows of the longer side::

        fixed     300 MiB + 2 (cells / w) (8 + item) + 2 ((n + m) / w) k item
        sweeping  t (c 3 item + 2 min(c, l) k item + (l / blocks) k item)
        building  t c (3 (8 + item) + 16) + (cells / w) (8 + item)

    Cells are held twice, by rows and by columns; factors twice, this sweep's and the last one's. With side
    features, of which f = n p + m p' numbers are on both sides::

        fixed     + (f / w) item
        building  + 4 (f / w) item
        sweeping  + (blocks / w) min(c, l) k item + 6 ((n + m) / w) k item

    since factors that were sent are held while the coefficients of one side are solved for.

    Parameters
    ----------
    n_cells : int
        Cells of the target.
    shape : (int, int)
        Rows and columns n and m.
    rank : int
        Columns k of the factors.
    n_blocks : int
        Blocks on each side.
    n_workers : int
        Workers.
    item : int, default=4
        Bytes of a value: 4 for float32, 8 for float64.
    threads : int, default=1
        Threads of a worker, each of which works on a block of its own.
    n_features : (int, int), default=(0, 0)
        Features p of a row and p' of a column, the constant counted.
    weighted : bool, default=False
        Cells have weights, which count as a second value.

    Returns
    -------
    MemoryNeed

    Examples
    --------
    >>> from unseen.distributed import cluster_memory
    >>> need = cluster_memory(10**11, (10**9, 10**7), 32, n_blocks=1024, n_workers=128)
    >>> f"{need.peak / 2**30:.0f} GiB"
    '48 GiB'
    """
    cells = UNEVEN * n_cells / n_blocks
    share = n_cells / n_workers
    longest = max(shape)
    width = rank * item
    record = 8 + item * (2 if weighted else 1)
    fixed = BASE + 2 * share * record + 2 * sum(shape) / n_workers * width
    on_cells = cells * (5 if weighted else 3) * item
    sweeping = threads * (on_cells + (2 * min(cells, longest) + UNEVEN * longest / n_blocks) * width)
    building = threads * cells * (3 * record + 16) + share * record
    if any(n_features):
        designs = sum(_numbers(shape, n_features)) / n_workers * item
        fixed += designs
        building += 4 * designs
        sweeping += (n_blocks * min(cells, longest) + 6 * sum(shape)) / n_workers * width
    return MemoryNeed(int(building), int(sweeping), int(fixed))


def _numbers(shape: tuple[int, int], n_features: tuple[int, int]) -> list[int]:
    return [length * count for length, count in zip(shape, n_features, strict=True)]


def blocks_for(
    limit: int, n_cells: int, shape: tuple[int, int], rank: int, **options: Any
) -> tuple[int, MemoryNeed]:
    """Fewest blocks with which a fit from disk stays within a limit."""
    n_blocks = 1
    while True:
        need = local_memory(n_cells, shape, rank, n_blocks, **options)
        if need.peak <= limit or n_blocks >= 4096:
            break
        n_blocks += max(1, n_blocks // 8)
    if need.peak > limit:
        raise ParameterError(
            f"memory={limit / 2**30:.2f} GiB is too little for {shape[0]:,} x {shape[1]:,} at rank {rank}: "
            f"{need.peak / 2**30:.2f} GiB are needed with {n_blocks} blocks, of which "
            f"{need.fixed / 2**30:.2f} GiB do not depend on their number; a smaller rank, float32 "
            "values or more memory would do"
        )
    return n_blocks, need
