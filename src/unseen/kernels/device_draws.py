"""Draws on a device: normal numbers by counter, and rows from their Gaussian conditionals."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.exceptions import TooLargeError
from unseen.kernels.cuda import programs as cuda
from unseen.typing import FloatArray

__all__ = ["DrawsOnDevice"]

CHUNK_CELLS = 1024
"""Cells of a row that one block adds up."""
LARGEST_RANK = 128
THREADS = 256
CELLS_AT_A_TIME = 1 << 18


class DrawsOnDevice:
    """The part of a device provider that draws."""

    xp: Any
    asarray: Any
    to_host: Any
    launch: Any
    padded: Any
    device: str
    block_bytes: int
    """Shared memory that one block may take."""

    def normals(self, shape: tuple[int, int], seed: int, sweep: int, block: int, dtype: Any) -> Any:
        """Standard normals by counter."""
        out = self.xp.empty(shape, dtype=dtype)
        n, k = shape
        arguments = {
            "out": out, "n_rows": n, "rank": k, "seed": seed, "sweep": sweep, "block": block, "first_row": 0,
        }  # fmt: skip
        blocks = -(-n * -(-k // 4) // 128)
        if blocks:
            program = cuda.draw_program(k, wide=out.dtype == np.float64)
            self.launch(program, "normals", blocks, 128, arguments)
        return out

    def als_draw(
        self,
        cells: Any,
        other: Any,
        precision: Any,
        noise: Any,
        out: Any,
        *,
        scale: float = 1.0,
        offset: Any = None,
        shift: Any = None,
        means: Any = None,
        sizes: FloatArray | None = None,
    ) -> Any:
        """Rows drawn from their conditional distributions."""
        xp, dtype, (n, k) = self.xp, out.dtype, out.shape
        wide, size = dtype == np.float64, 16 * -(-k // 16)
        program = cuda.draw_program(k, wide=wide)
        shared = (16 * size + 32 + size * (size + 1) + 3 * size) * dtype.itemsize
        if k > LARGEST_RANK or shared > self.block_bytes:
            raise TooLargeError(
                f"rows of {k} coordinates are too wide to be drawn on {self.device}; use the CPU"
            )
        found = cells.plan(CHUNK_CELLS, chunk=CHUNK_CELLS)
        offset = (
            None if offset is None else xp.ascontiguousarray(self.asarray(offset).astype(dtype, copy=False))
        )
        kept = [
            part if part is None or np.ndim(part) == 0 else self.asarray(part).astype(dtype, copy=False)
            for part in (cells.curvature, cells.linear, precision, noise, shift)
        ]
        c, d, prior, numbers, moved = kept
        arguments: dict[str, Any] = {
            "indptr": cells.indptr, "indices": cells.indices, "shift": moved, "offset": offset,
            "table": self.padded(self.asarray(other), dtype, cuda.padded(k)),
            "offset_stride": 0 if offset is None or len(offset) == 1 else k,
            "precision": xp.ascontiguousarray(prior), "noise": xp.ascontiguousarray(numbers), "out": out,
            "means": xp.empty_like(out) if means is None else means, "rank": k, "n_rows": n, "scale": scale,
            "chunks": found.chunks, "chunk_ptr": found.chunk_ptr,
            "partial": xp.empty((len(found.host.chunks), size * (size + 1)), dtype=dtype),
        }  # fmt: skip
        for name, part in (("curvature", c), ("linear", d)):
            if np.ndim(part) == 0:
                arguments |= {name: None, f"{name}_all": float(part)}
            else:
                arguments |= {name: part, f"per_{name}": 1}
        if found.n_long:
            self.launch(program, "draw_chunk", len(found.host.chunks), THREADS, arguments, shared=shared)
            extra = found.long_rows, np.int32(1)
            self.launch(program, "draw_row", found.n_long, THREADS, arguments, *extra, shared=shared)
        for one in found.host.bins:
            self.launch(
                program, "draw_row", len(one), THREADS, arguments, one.rows, np.int32(0), shared=shared
            )
        if sizes is not None:
            self._add_up_sizes(cells, self.asarray(other), out, moved, scale, sizes)
        return out

    def _add_up_sizes(
        self, cells: Any, table: Any, drawn: Any, shift: Any, scale: float, sizes: FloatArray
    ) -> None:
        """What the cells say of the sizes of the columns of ``drawn``, some cells at a time."""
        xp, count, k = self.xp, len(cells.indices), drawn.shape[1]
        total = xp.zeros((k, k + 1), dtype=np.float64)
        for start in range(0, count, CELLS_AT_A_TIME):
            part = slice(start, min(start + CELLS_AT_A_TIME, count))
            rows = xp.searchsorted(cells.indptr, xp.arange(start, part.stop), side="right") - 1
            c, pull = (
                scale * (own if np.ndim(own) == 0 else self.asarray(own)[part])
                for own in (cells.curvature, cells.linear)
            )
            columns = cells.indices[part]
            products = drawn[rows].astype(np.float64) * table[columns]
            pull = pull - (0.0 if shift is None else c * shift[columns])
            total[:, :-1] += products.T @ (products * xp.reshape(c, (-1, 1)))
            total[:, -1] += (products * xp.reshape(pull, (-1, 1))).sum(axis=0)
        sizes[...] = self.to_host(total)
