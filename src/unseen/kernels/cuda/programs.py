"""Sources of the device code and the options they are compiled with.

A program is text put together from the files beside this module, without any include: NVRTC compiles it for
the device at first use. What differs between ranks and types are macros.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

__all__ = [
    "ARCHITECTURES",
    "FIELDS",
    "Program",
    "cell_program",
    "draw_program",
    "frame_program",
    "list_program",
    "programs",
    "row_program",
]

ARCHITECTURES = (75, 80, 86, 90, 100, 120)
"""Compute capabilities, times ten, that the sources are compiled for in the tests."""

FIELDS: dict[str, tuple[str, ...]] = {
    "rows": (
        "indptr", "indices", "table", "x", "curvature", "linear", "shift", "offset", "offset_stride",
        "diagonal", "row_scale", "row_ridge", "values", "n_failed", "failed", "per_curvature", "per_linear",
        "steps", "chunks", "chunk_ptr", "long_rows", "state", "r", "p", "image", "partial", "partial_values",
        "curvature_all:f", "linear_all:f", "unit:f", "tolerance:f",
    ),
    "cells": (
        "items", "indices", "left", "table", "data", "out", "partial", "part_ptr", "part_rows", "data_all:f",
    ),
    "draws": (
        "indptr", "indices", "table", "curvature", "linear", "per_curvature", "per_linear", "shift", "offset",
        "offset_stride", "precision", "noise", "out", "means", "chunks", "chunk_ptr", "partial", "rank",
        "n_rows", "seed", "sweep", "block", "first_row", "curvature_all:f", "linear_all:f", "scale:f",
    ),
    "frame": ("gram", "to", "table", "back", "room", "n_failed", "rank", "in_shared"),
    "lists": (
        "left", "right", "left16", "right16", "rows", "n_rows", "n_cols", "n_splits", "k", "exclude_ptr",
        "exclude_ids", "col_ids", "kept", "bounds", "norms", "ids", "scores", "unsure", "n_unsure",
        "filtered", "unit:f", "margin:f",
    ),
}  # fmt: skip
"""Members of the one argument of all kernels of a file: pointers and integers of 64 bits, ``:f`` a double."""

SHARED_BYTES = 220 * 1024
"""More than any block of the row solves is given."""

TABLES = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 17}


@dataclass(frozen=True)
class Program:
    """A source and its macros; equal programs are compiled once."""

    file: str
    macros: tuple[tuple[str, int], ...]
    kernels: tuple[str, ...] = field(compare=False)

    @property
    def source(self) -> str:
        """The text that NVRTC compiles."""
        return f"{_text('common.cu')}\n{_arguments(self.file)}\n{_text(self.file + '.cu')}"

    @property
    def options(self) -> tuple[str, ...]:
        """Options of NVRTC, the architecture aside."""
        return ("-std=c++17", "--prec-div=false", *(f"-D{name}={value}" for name, value in self.macros))

    @property
    def name(self) -> str:
        """File and macros in one word."""
        return "-".join([self.file, *(f"{name.lower()}{value}" for name, value in self.macros)])


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _arguments(file: str) -> str:
    members = []
    for member in FIELDS[file]:
        name, _, kind = member.partition(":")
        members.append(f"    {'double' if kind == 'f' else 'unsigned long long'} {name};")
    # Counts are signed: they are compared with numbers that may be below zero.
    text = "\n".join(members)
    for name in ("offset_stride", "steps", "n_rows", "n_cols", "n_splits", "k", "rank"):
        text = text.replace(f"unsigned long long {name};", f"long long {name};")
    return f"struct Args {{\n{text}\n}};\n"


def padded(rank: int, to: int = 8) -> int:
    """Columns of a table of this rank: whole pieces of 16 bytes, whatever the type."""
    return -(-rank // to) * to


def _lanes(width: int, table: int) -> int:
    """Lanes of a warp that own a cell: few, as long as their part of a vector stays in registers."""
    entries = {64: 2, 32: 4}.get(table, 8)
    most = 8 if table == 64 else 16
    for lanes in (8, 16, 32):
        if entries * -(-width // (entries * lanes)) <= most:
            return lanes
    return 32


def _base(width: int, table: str, wide: bool) -> tuple[tuple[str, int], ...]:
    code = TABLES[table]
    return (("WIDTH", width), ("TABLE", code), ("WIDE", int(wide)), ("LANES", _lanes(width, code)))


def row_program(
    rank: int, table: str, *, wide: bool = False, cells: bool = False, diagonal: bool = False
) -> Program:
    """Row solves of alternating least squares."""
    width = padded(rank)
    most = _most_warps(width, TABLES[table])
    macros = (
        *_base(width, table, wide),
        ("CELLS", int(cells)),
        ("DIAGONAL", int(diagonal)),
        ("MOST_WARPS", most),
    )
    return Program(
        "rows", macros, ("small", "staged", "chunk_first", "chunk_next", "long_first", "long_next")
    )


def _most_warps(width: int, table: int) -> int:
    """Warps of the largest block that holds a row in shared memory: one for each 64 cells."""
    cells = SHARED_BYTES // (width * {64: 8, 32: 4}.get(table, 2))
    return next(warps for warps in (1, 2, 4, 8) if 64 * warps >= min(cells, 512))


def cell_program(rank: int, *, wide: bool = False) -> Program:
    """Scores of stored cells and sparse products."""
    macros = _base(padded(rank), "float64" if wide else "float32", wide)
    return Program("cells", macros, ("sddmm", "spmm", "add_parts"))


def frame_program(rank: int, *, wide: bool = False) -> Program:
    """Cholesky factor of a shared matrix and its inverse."""
    return Program("frame", _base(padded(rank), "float64" if wide else "float32", wide), ("cholesky_frame",))


def draw_program(rank: int, *, wide: bool = False) -> Program:
    """Normal numbers, and rows drawn from their Gaussian conditionals."""
    macros = _base(padded(rank), "float64" if wide else "float32", wide)
    return Program("draws", macros, ("normals", "draw_chunk", "draw_row"))


KEPT = (32, 64, 128)
"""Lengths of the lists that the filter keeps; half of one can be asked for."""


def list_program(rank: int, keep: int, *, wide: bool = False, filtered: bool = True) -> Program:
    """Best columns of rows, by a filter in halves or without one."""
    macros = (
        *_base(padded(rank), "float64" if wide else "float32", wide),
        ("KEEP", keep),
        ("ROWS", 64 if keep == 32 and not wide else 32),
        ("FILTER", int(filtered)),
        ("HALVES", padded(rank, 16)),
    )
    return Program("lists", macros, ("filter", "exact", "refine") if filtered else ("exact", "refine"))


def programs() -> list[Program]:
    """One program of each kind that the library compiles, at usual ranks: what the compile tests build."""
    found = [row_program(64, table) for table in ("float32", "float16", "bfloat16")]
    found += [row_program(8, "float32"), row_program(100, "float32"), row_program(1024, "float32")]
    found += [row_program(64, "float32", cells=True, diagonal=True)]
    found += [row_program(100, "float64", wide=True, cells=True, diagonal=True)]
    found += [
        cell_program(64),
        cell_program(100, wide=True),
        frame_program(64),
        frame_program(100, wide=True),
        draw_program(20),
        draw_program(100, wide=True),
    ]
    found += [list_program(64, keep) for keep in KEPT]
    found += [list_program(100, 32), list_program(64, 32, wide=True, filtered=False)]
    return found
