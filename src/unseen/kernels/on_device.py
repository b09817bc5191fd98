"""Kernels on a device: tables, frames, plans.

Everything but the launching itself, so that the twin of the device code in NumPy runs the same way.

Rows of alternating least squares are solved in a frame where what they share is the identity or diagonal:
with G = L L', factors become ``q L^-T`` and rows ``x L``, and plain conjugate gradients there are the ones
preconditioned by G outside. A ridge for each row needs eigenvectors in place of L.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from unseen.exceptions import ParameterError
from unseen.kernels import reference
from unseen.kernels.cuda import programs as cuda
from unseen.kernels.device_draws import DrawsOnDevice
from unseen.kernels.device_lists import ListsOnDevice
from unseen.kernels.plan import BIN_CELLS, Bin, Plan, plan
from unseen.kernels.providers import ByCell, Cells, Provider
from unseen.typing import IndexArray

__all__ = ["DeviceCells", "DeviceProvider", "table_in", "table_scale"]

CELLS_A_WARP = 64
"""Most cells of a row for each warp of its block: what all warps repeat costs more than long turns."""
SMALL_CELLS = 16
"""Rows with so few cells share a warp."""
ITEM_CELLS = 256
"""Cells that one warp takes in products over a pattern."""
CELLS_AT_ONCE = 1 << 24
GRAM_ROWS = {True: 1 << 18, False: 1 << 13}
"""Rows of a block of a Gram matrix, where float64 is quick and where it is not."""
EXACT = {False: 1e-6, True: 1e-13}
"""Share of a row's length below which a step of the exact method ends it, in float32 and float64."""


class DevicePlan(NamedTuple):
    """A plan with its arrays on the device."""

    host: Plan
    n_long: int
    long_rows: Any
    chunks: Any
    chunk_ptr: Any


class Items(NamedTuple):
    """Rows and parts of long rows, one a warp."""

    items: Any
    part_rows: Any
    part_ptr: Any
    n_parts: int
    n_long: int


@dataclass(eq=False)
class DeviceCells(Cells):
    """A pattern on a device, with its plans."""

    provider: DeviceProvider
    indptr: Any
    indices: Any
    curvature: Any
    linear: Any
    shape: tuple[int, int]
    convex: bool
    """Whether no cell has a negative curvature."""
    _plans: dict[tuple[int, ...], DevicePlan] = field(default_factory=dict)
    _other: DeviceCells | None = None

    @property
    def transposed(self) -> DeviceCells:
        """The same cells by columns, sorted on the device."""
        if self._other is None:
            self._other = self.provider.by_columns(self)
            self._other._other = self
        return self._other

    def plan(self, limit: int, **chunk: int) -> DevicePlan:
        """Bins and chunks for rows of up to ``limit`` cells."""
        key = (limit, *chunk.values())
        if key not in self._plans:
            to = self.provider.asarray
            found = plan(self.indptr, limit=limit, xp=self.provider.xp, **chunk)
            long_rows, by_place = found.long_rows, found.chunks.copy()
            by_place[:, 0] = np.searchsorted(long_rows, found.chunks[:, 0])
            self._plans[key] = DevicePlan(
                found, len(long_rows), to(long_rows.astype(np.int32)), to(by_place), to(found.chunk_ptr)
            )
        return self._plans[key]

    @cached_property
    def items(self) -> Items:
        """Work of the products over the pattern."""
        xp, to = self.provider.xp, self.provider.asarray
        lengths = self.indptr[1:] - self.indptr[:-1]
        short = xp.flatnonzero(lengths <= ITEM_CELLS)
        whole = xp.stack([short, self.indptr[short], self.indptr[short + 1], xp.full_like(short, -1)], axis=1)
        found = plan(self.indptr, limit=ITEM_CELLS, chunk=ITEM_CELLS, xp=xp)
        parts = np.column_stack([found.chunks, np.arange(len(found.chunks))])
        items = xp.concatenate([to(parts.reshape(-1, 4)), whole.astype(np.int64)])
        return Items(
            items,
            to(found.long_rows.astype(np.int32)),
            to(found.chunk_ptr),
            len(found.chunks),
            len(found.long_rows),
        )


class Frame(NamedTuple):
    """What takes factors to the frame and back (None: as they are) and the diagonal that rows share there."""

    to: Any
    table: Any
    back: Any
    diagonal: Any
    """Its entries and the largest one; None for ones."""


class DeviceProvider(ListsOnDevice, DrawsOnDevice, Provider):
    """Kernels of the device code.

    Parameters
    ----------
    table : {"float32", "float16", "bfloat16"}, default="float32"
        What factors are gathered in by the row solves of float32 fits. 16 bits halve what is read; sums and
        solutions stay float32.
    """

    tables: ClassVar[tuple[str, ...]] = ("float32", "float16", "bfloat16")

    def __init__(self, table: str = "float32") -> None:
        if table not in self.tables:
            raise ParameterError(f"table must be one of {self.tables}, got {table!r}")
        self.table = table

    shared_bytes: int
    """Shared memory that a block of the row solves may take."""
    block_bytes: int
    """And one of kernels whose blocks stand alone."""
    fast_float64: bool

    @abstractmethod
    def launch(
        self,
        program: cuda.Program,
        kernel: str,
        grid: int | tuple[int, int],
        threads: int,
        arguments: dict[str, Any],
        *extra: Any,
        shared: int = 0,
    ) -> None:
        """Run one kernel; ``arguments`` are the members of its structure that are not zero."""

    @abstractmethod
    def at_once(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run independent tasks; all that follows waits for them."""

    # -- patterns ----------------------------------------------------------------------

    def pattern(
        self,
        indptr: IndexArray,
        indices: IndexArray,
        curvature: ByCell = 1.0,
        linear: ByCell = 0.0,
        *,
        n_cols: int,
        by_column: Callable[[], tuple[Any, ...]] | None = None,
    ) -> DeviceCells:
        if max(n_cols, len(indptr) - 1) >= 2**31:
            raise ParameterError("a device takes patterns with fewer than 2**31 rows and columns")
        weights = [part for part in (curvature, linear) if np.ndim(part)]
        bytes_needed = 4 * len(indices) + 8 * len(indptr) + sum(np.asarray(w).nbytes for w in weights)
        self.reserve(2 * bytes_needed + 8 * len(indices))  # the other order, and the sort that makes it
        convex = bool(np.min(np.asarray(curvature), initial=0.0) >= 0.0)
        c, d = (part if np.ndim(part) == 0 else self.asarray(part) for part in (curvature, linear))
        pattern = self.asarray(indptr, np.int64), self.asarray(indices, np.int32)
        return DeviceCells(self, *pattern, c, d, (len(indptr) - 1, n_cols), convex)

    def by_columns(self, cells: DeviceCells) -> DeviceCells:
        """The other order of a pattern: one stable sort."""
        xp, n = self.xp, len(cells.indices)
        rows = xp.empty(n, dtype=np.int32)
        for start in range(0, n, CELLS_AT_ONCE):
            own = xp.arange(start, min(start + CELLS_AT_ONCE, n))
            rows[start : start + CELLS_AT_ONCE] = xp.searchsorted(cells.indptr, own, side="right") - 1
        counts = xp.bincount(cells.indices, minlength=cells.shape[1])
        indptr = xp.zeros(cells.shape[1] + 1, dtype=np.int64)
        indptr[1:] = xp.cumsum(counts)
        if any(np.ndim(part) for part in (cells.curvature, cells.linear)):
            order = xp.argsort(cells.indices, kind="stable")
            rows = rows[order]
            c, d = (p if np.ndim(p) == 0 else p[order] for p in (cells.curvature, cells.linear))
        else:
            keys = cells.indices.astype(np.int64) << 32
            keys |= rows
            keys.sort()
            rows = (keys & 0xFFFFFFFF).astype(np.int32)
            c, d = cells.curvature, cells.linear
        return DeviceCells(self, indptr, rows, c, d, (cells.shape[1], cells.shape[0]), cells.convex)

    # -- dense -------------------------------------------------------------------------

    def gram(self, left: Any, right: Any = None) -> Any:
        right = left if right is None else right
        total = self.xp.zeros((left.shape[1], right.shape[1]))
        rows = GRAM_ROWS[self.fast_float64]
        for start in range(0, left.shape[0], rows):
            part = left[start : start + rows]
            other = part if right is left else right[start : start + rows]
            if self.fast_float64:
                wide = part.astype(np.float64)
                total += wide.T @ (wide if other is part else other.astype(np.float64))
            else:
                total += part.T @ other
        return total

    def padded(self, dense: Any, dtype: Any, width: int) -> Any:
        """C-contiguous, with columns of zeros up to ``width``; the array itself where that is all it is."""
        if dense.shape[1] == width:
            return self.xp.ascontiguousarray(dense.astype(dtype, copy=False))
        out = self.xp.zeros((dense.shape[0], width), dtype=dtype)
        out[:, : dense.shape[1]] = dense
        return out

    # -- products over a pattern -------------------------------------------------------

    def sddmm(self, cells: DeviceCells, left: Any, right: Any) -> Any:
        left, right = self.asarray(left), self.asarray(right)
        dtype = np.result_type(left.dtype, right.dtype, np.float32)
        width = cuda.padded(left.shape[1])
        out = self.xp.empty(len(cells.indices), dtype=dtype)
        arguments = {
            "items": cells.items.items,
            "indices": cells.indices,
            "left": self.padded(left, dtype, width),
            "table": self.padded(right, dtype, width),
            "out": out,
        }
        self._over_items("sddmm", cells, dtype, left.shape[1], arguments)
        return out

    def spmm(self, cells: DeviceCells, data: Any, dense: Any) -> Any:
        dense = self.asarray(dense)
        data = data if np.ndim(data) == 0 else self.asarray(data)
        kinds = [dense.dtype] + ([] if np.ndim(data) == 0 else [data.dtype])
        dtype, rank = np.result_type(*kinds, np.float32), dense.shape[1]
        width = cuda.padded(rank)
        out = self.xp.zeros((cells.shape[0], width), dtype=dtype)
        items = cells.items
        partial = self.xp.empty((items.n_parts, width), dtype=dtype)
        arguments = {
            "items": items.items,
            "indices": cells.indices,
            "table": self.padded(dense, dtype, width),
            "out": out,
            "partial": partial,
            "part_ptr": items.part_ptr,
            "part_rows": items.part_rows,
            "data_all": float(data) if np.ndim(data) == 0 else 0.0,
            "data": None if np.ndim(data) == 0 else data.astype(dtype, copy=False),
        }
        program = self._over_items("spmm", cells, dtype, rank, arguments)
        if items.n_long:
            self.launch(program, "add_parts", items.n_long, 128, arguments, np.int64(items.n_long))
        return out if width == rank else self.xp.ascontiguousarray(out[:, :rank])

    def spmm_t(self, cells: DeviceCells, data: Any, dense: Any) -> Any:
        if np.ndim(data):
            # The order of the other pattern is that of a stable sort by column.
            data = self.asarray(data)[self.xp.argsort(cells.indices, kind="stable")]
        return self.spmm(cells.transposed, data, dense)

    def _over_items(
        self, kernel: str, cells: DeviceCells, dtype: Any, rank: int, arguments: dict[str, Any]
    ) -> cuda.Program:
        program = cuda.cell_program(rank, wide=dtype == np.float64)
        count = len(cells.items.items)
        if count:
            self.launch(program, kernel, -(-count // 4), 128, arguments, np.int64(count))
        return program

    # -- rows of alternating least squares ---------------------------------------------

    def als_solve(
        self,
        cells: DeviceCells,
        other: Any,
        gram: Any,
        offset: Any,
        out: Any,
        *,
        ridge: Any = None,
        gram_scale: Any = None,
        shift: Any = None,
        row_values: Any = None,
        method: Literal["cholesky", "cg"] = "cholesky",
        cg_steps: int = 3,
        definite: bool = False,
    ) -> Any:
        if method not in ("cholesky", "cg"):
            raise ParameterError(f"method must be 'cholesky' or 'cg', got {method!r}")
        xp, dtype, rank = self.xp, out.dtype, other.shape[1]
        wide, width, n = dtype == np.float64, cuda.padded(rank), len(out)
        ridge, gram_scale, shift = (
            None if part is None else self.asarray(part).astype(dtype, copy=False)
            for part in (ridge, gram_scale, shift)
        )
        frame = self._frame(gram, ridge is not None or gram_scale is not None, definite, rank, dtype)
        x = self.padded(out, dtype, width) if frame.to is None else out @ frame.to
        table = self.padded(other, dtype, width) if frame.table is None else other @ frame.table
        code = "float64" if wide else self.table
        unit = 1.0 if code in ("float32", "float64") else table_scale(len(other))
        if unit != 1.0:
            table = table_in(xp, table * dtype.type(unit), code)
        if offset is not None:
            offset = xp.atleast_2d(self.asarray(offset)).astype(dtype, copy=False)
            offset = self.padded(offset, dtype, width) if frame.table is None else offset @ frame.table
        by_cell = shift is not None or bool(np.ndim(cells.curvature) or np.ndim(cells.linear))
        program = cuda.row_program(rank, code, wide=wide, cells=by_cell, diagonal=frame.diagonal is not None)
        exact = method == "cholesky"
        n_failed, failed = xp.zeros(1, dtype=np.int32), xp.empty(max(n, 1), dtype=np.int32)
        values = None if row_values is None else xp.zeros(n)
        arguments: dict[str, Any] = {
            "indptr": cells.indptr, "indices": cells.indices, "table": table, "x": x, "shift": shift,
            "offset": offset, "offset_stride": 0 if offset is None or len(offset) == 1 else width,
            "diagonal": frame.diagonal, "row_scale": gram_scale, "row_ridge": ridge, "values": values,
            "n_failed": n_failed, "failed": failed, "steps": rank + 10 if exact else cg_steps,
            "unit": unit, "tolerance": EXACT[wide] if exact else 0.0,
        }  # fmt: skip
        kept = []
        for name, part in (("curvature", cells.curvature), ("linear", cells.linear)):
            if np.ndim(part) == 0:
                arguments |= {name: None, f"{name}_all": float(part)}
            else:
                kept.append(part.astype(dtype, copy=False))
                arguments |= {name: kept[-1], f"per_{name}": 1}
        self._solve_rows(cells, program, width, dtype, arguments, exact)
        if frame.back is None:
            if x is not out:
                out[...] = x[:, :rank]
        else:
            xp.matmul(x, frame.back, out=out)
        if row_values is not None:
            row_values[...] = values
        if exact or not (definite and cells.convex):
            given = {"gram": gram, "offset": arguments["offset"], "ridge": ridge, "gram_scale": gram_scale}
            self._repair(cells, other, shift, given, frame, out, row_values, n_failed, failed)
        return out

    def _frame(self, gram: Any, by_row: bool, definite: bool, rank: int, dtype: Any) -> Frame:
        """Identity frame for a diagonal G on the host, Cholesky for a shared one, else eigenvectors."""
        xp, width = self.xp, cuda.padded(rank)
        if isinstance(gram, np.ndarray) and not np.any(gram - np.diag(np.diag(gram))):
            # A matrix on the host is small and known: nothing is factorised where it is diagonal already.
            return Frame(None, None, None, self._diagonal(self.asarray(np.diag(gram).copy()), width, dtype))
        gram = self.asarray(gram).astype(np.float64, copy=False)
        if by_row or not definite:
            values, vectors = xp.linalg.eigh(gram)
            there = self.padded(vectors, dtype, width)
            back = xp.ascontiguousarray(there.T)
            return Frame(there, there, back, self._diagonal(values, width, dtype))
        wide = dtype == np.float64
        to, table = (xp.empty((rank, width), dtype=dtype) for _ in range(2))
        back = xp.empty((width, rank), dtype=dtype)
        in_shared = 16 * rank * rank <= self.shared_bytes
        room = None if in_shared else xp.empty((2, rank, rank))
        arguments = {
            "gram": xp.ascontiguousarray(gram), "to": to, "table": table, "back": back, "room": room,
            "n_failed": xp.zeros(1, dtype=np.int32), "rank": rank, "in_shared": int(in_shared),
        }  # fmt: skip
        shared = 16 * rank * rank if in_shared else 0
        self.launch(cuda.frame_program(rank, wide=wide), "cholesky_frame", 1, 1024, arguments, shared=shared)
        return Frame(to, table, back, None)

    def _diagonal(self, values: Any, width: int, dtype: Any) -> Any:
        out = self.xp.zeros(width + 1, dtype=dtype)
        out[: len(values)] = values
        out[width] = values.max()
        return out

    def row_limit(self, width: int, code: str, wide: bool) -> int:
        """Most cells of a row whose factors a block holds in shared memory."""
        fitting = [
            most for most in BIN_CELLS if _staged_bytes(most, width, code, wide, True) <= self.shared_bytes
        ]
        return max(fitting, default=BIN_CELLS[0])

    def _solve_rows(
        self,
        cells: DeviceCells,
        program: cuda.Program,
        width: int,
        dtype: Any,
        arguments: dict[str, Any],
        exact: bool,
    ) -> None:
        macros = dict(program.macros)
        wide = bool(macros["WIDE"])
        code = next(name for name, value in cuda.TABLES.items() if value == macros["TABLE"])
        limit = self.row_limit(width, code, wide)
        found = cells.plan(min(limit, CELLS_A_WARP * macros["MOST_WARPS"]))
        tasks: list[Callable[[], None]] = []
        if len(found.host.chunks):
            tasks.append(self._long_rows(found, program, width, dtype, arguments, exact))
        for one in found.host.bins:
            groups = 32 // macros["LANES"]
            if one.most <= SMALL_CELLS and groups > 1:
                tasks.append(self._small_rows(one, program, code, wide, arguments))
                continue
            warps = _warps(one.most)
            shared = _staged_bytes(one.most, width, code, wide, bool(macros["CELLS"]))

            def task(one: Any = one, warps: int = warps, shared: int = shared) -> None:
                self.launch(
                    program,
                    "staged",
                    len(one),
                    32 * warps,
                    arguments,
                    one.rows,
                    np.int32(one.most),
                    shared=shared,
                )

            tasks.append(task)
        self.at_once(tasks)

    def _small_rows(
        self, one: Bin, program: cuda.Program, code: str, wide: bool, arguments: dict[str, Any]
    ) -> Callable[[], None]:
        macros = dict(program.macros)
        slots = 2 * 32 // macros["LANES"]
        a_cell = macros["WIDTH"] * _entry_bytes(code) + (2 * (8 if wide else 4) if macros["CELLS"] else 0)
        shared, blocks = slots * one.most * a_cell, -(-len(one) // slots)
        extra = one.rows, np.int32(len(one)), np.int32(one.most)

        def task() -> None:
            self.launch(program, "small", blocks, 64, arguments, *extra, shared=shared)

        return task

    def _long_rows(
        self,
        found: DevicePlan,
        program: cuda.Program,
        width: int,
        dtype: Any,
        arguments: dict[str, Any],
        exact: bool,
    ) -> Callable[[], None]:
        xp, n_long, n_chunks = self.xp, found.n_long, len(found.host.chunks)
        r, p, image = (xp.empty((n_long, width), dtype=dtype) for _ in range(3))
        own = arguments | {
            "chunks": found.chunks, "chunk_ptr": found.chunk_ptr, "long_rows": found.long_rows,
            "state": xp.zeros((n_long, 4)), "r": r, "p": p, "image": image,
            "partial": xp.empty((n_chunks, width), dtype=dtype), "partial_values": xp.empty(n_chunks),
        }  # fmt: skip

        def task() -> None:
            for step in range(-1, int(arguments["steps"])):
                which = "first" if step < 0 else "next"
                self.launch(program, f"chunk_{which}", n_chunks, 256, own)
                self.launch(program, f"long_{which}", n_long, 256, own, np.int32(step))

        return task

    def _repair(
        self,
        cells: DeviceCells,
        other: Any,
        shift: Any,
        given: dict[str, Any],
        frame: Frame,
        out: Any,
        row_values: Any,
        n_failed: Any,
        failed: Any,
    ) -> None:
        """Solve the few rows that conjugate gradients cannot, by the reference on the host."""
        count = int(n_failed[0])
        if count == 0:
            return
        home = self.to_host
        rows = np.sort(home(failed[:count]))
        starts, ends = (home(cells.indptr[self.asarray(rows + add)]) for add in (0, 1))
        places = np.concatenate(
            [np.arange(a, b) for a, b in zip(starts, ends, strict=True)] or [np.zeros(0, int)]
        )
        at = self.asarray(places.astype(np.int64))
        used, near = np.unique(home(cells.indices[at]), return_inverse=True)
        c, d = (
            np.full(1, part, out.dtype) if np.ndim(part) == 0 else home(part[at])
            for part in (cells.curvature, cells.linear)
        )
        columns, own = self.asarray(used.astype(np.int64)), self.asarray(rows.astype(np.int64))
        offset = None
        if given["offset"] is not None:
            moved = given["offset"] if len(given["offset"]) == 1 else given["offset"][own]
            # Back from the frame: o = L o~, and the table is L^-T.
            offset = home(moved[:, : other.shape[1]] if frame.to is None else moved @ frame.to.T)
        part = home(out[own]).copy()
        values = None if row_values is None else np.empty(count)
        reference.als_solve(
            np.concatenate([[0], np.cumsum(ends - starts)]),
            near,
            c,
            d,
            home(other[columns]),
            home(given["gram"]),
            offset,
            part,
            None if given["ridge"] is None else home(given["ridge"][own]),
            None if shift is None else home(shift[columns]),
            values,
            "cholesky",
            0,
            1,
            None if given["gram_scale"] is None else home(given["gram_scale"][own]),
        )
        out[own] = self.asarray(part)
        if row_values is not None:
            row_values[own] = self.asarray(values)


def _entry_bytes(code: str) -> int:
    return {"float64": 8, "float32": 4}.get(code, 2)


def _warps(most: int) -> int:
    return next(warps for warps in (1, 2, 4, 8) if most <= CELLS_A_WARP * warps)


def _staged_bytes(most: int, width: int, code: str, wide: bool, by_cell: bool) -> int:
    entry, real, warps = _entry_bytes(code), 8 if wide else 4, _warps(most)
    partial = 2 * warps * width * real if warps > 1 else 0
    return most * width * entry + partial + 8 * warps + (2 * most * real if by_cell else 0) + 4 * most


def table_scale(n_rows: int) -> float:
    """Power of two that brings entries of a table, about ``1 / sqrt(n_rows)`` in the frame, to about one."""
    return float(2.0 ** round(0.5 * np.log2(max(n_rows, 1))))


def table_in(xp: Any, table: Any, code: str) -> Any:
    """A float32 table in 16 bits, to the nearest."""
    if code == "float16":
        return table.astype(np.float16)
    bits = xp.ascontiguousarray(table).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
