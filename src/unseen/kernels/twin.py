"""The device code as NumPy: every kernel with the same arguments and the same way of adding things up.

Slow and plain. It shows on any machine that frames, tables in 16 bits, chunks, values without a pass and
filtered lists compute what they should.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from unseen.kernels import reference
from unseen.kernels.cuda.programs import TABLES, Program
from unseen.kernels.on_device import DeviceProvider
from unseen.typing import Array

__all__ = ["TwinProvider", "twin_provider"]


class TwinProvider(DeviceProvider):
    """A device whose memory is that of NumPy."""

    name = "twin"
    device = "twin"
    xp = np
    shared_bytes = 110 * 1024
    block_bytes = 220 * 1024
    fast_float64 = True

    def asarray(self, array: Any, dtype: Any = None) -> Array:
        return np.asarray(array, dtype=dtype)

    def to_host(self, array: Any) -> Array:
        return np.asarray(array)

    def at_once(self, tasks: Sequence[Callable[[], None]]) -> None:
        for task in tasks:
            task()

    def launch(
        self,
        program: Program,
        kernel: str,
        grid: int | tuple[int, int],
        threads: int,
        arguments: dict[str, Any],
        *extra: Any,
        shared: int = 0,
    ) -> None:
        if kernel not in program.kernels:
            raise KeyError(f"{program.name} has no kernel {kernel}")
        a = SimpleNamespace(**{n.lower(): v for n, v in program.macros} | _ABSENT | arguments)
        KERNELS[kernel](a, *extra)


_ABSENT = dict.fromkeys(
    ("curvature", "linear", "shift", "offset", "diagonal", "row_scale", "row_ridge", "values")
)


def twin_provider(table: str = "float32") -> TwinProvider:
    """The device code as NumPy."""
    return TwinProvider(table)


# -- rows of alternating least squares -------------------------------------------------


def _read(table: Array, code: int, real: Any) -> Array:
    if code == TABLES["bfloat16"]:
        return (table.astype(np.uint32) << 16).view(np.float32)
    return table.astype(real)


class _Cells:
    """Some cells of a row: their factors and weights, in units of the table."""

    def __init__(self, a: Any, start: int, stop: int) -> None:
        real = a.x.dtype.type
        columns = a.indices[start:stop]
        self.q = _read(a.table[columns], a.table_code, real)
        c = (
            np.full(stop - start, a.curvature_all)
            if a.curvature is None
            else a.curvature[start:stop].astype(float)
        )
        d = np.full(stop - start, a.linear_all) if a.linear is None else a.linear[start:stop].astype(float)
        self.constant = 0.0
        if a.shift is not None:
            h = a.shift[columns].astype(float)
            self.constant = float(np.sum((0.5 * c * h - d) * h))
            d = d - c * h
        self.c, self.d = (c / a.unit**2).astype(real), (d / a.unit).astype(real)

    def first(self, x: Array) -> tuple[Array, float]:
        """Sums with the right side, and the value of these cells."""
        scores = self.q @ x
        weight = self.c * scores
        value = np.sum((0.5 * weight.astype(float) - self.d) * scores.astype(float))
        return (self.d - weight) @ self.q, float(value) + self.constant

    def next(self, p: Array) -> Array:
        """Their part of the matrix times p."""
        product: Array = (self.c * (self.q @ p)) @ self.q
        return product


class _Search:
    """Conjugate gradients for one row; the cells come as sums."""

    def __init__(self, a: Any, row: int, x: Array, y: Array, value: float) -> None:
        real = x.dtype.type
        self.a, self.row, self.x = a, row, x
        self.base: Array = np.ones_like(x)
        self.inverse: Array = np.ones_like(x)
        if a.diagonal is not None:
            scale = real(1) if a.row_scale is None else a.row_scale[row]
            ridge = real(0) if a.row_ridge is None else a.row_ridge[row]
            self.base = scale * a.diagonal[:-1] + ridge
            floor = real(1e-6) * (scale * a.diagonal[-1] + ridge)
            if floor > 0:
                self.inverse = 1 / np.maximum(self.base, floor)
        if a.offset is not None:
            offset = a.offset[row if a.offset_stride else 0]
            value -= float(offset @ x)
            y = y + offset
        self.r = y - self.base * x
        self.value = value + 0.5 * float(x @ (self.base * x))
        self.p = self.inverse * self.r
        self.size = self.r @ self.p
        self.bad = not self.size < 1e30
        self.done = not self.size > np.finfo(np.float32).tiny

    def step(self, y: Array, number: int) -> None:
        image = self.base * self.p + y
        along = self.p @ image
        if not along > 0:
            self.bad = True
            return
        length = self.size / along
        self.value -= 0.5 * float(length) * float(self.size)
        self.x += length * self.p
        self.r -= length * image
        before, self.size = self.size, self.r @ (self.inverse * self.r)
        self.done = not self.size > np.finfo(np.float32).tiny
        if self.a.tolerance > 0:
            moved, total = length**2 * (self.p @ self.p), self.x @ self.x
            self.done = self.done or bool(moved <= self.a.tolerance**2 * total)
            self.bad = not self.done and number + 1 == self.a.steps and bool(moved > 1e-8 * total)
        self.p = self.inverse * self.r + (self.size / before) * self.p

    def finish(self) -> None:
        if self.a.values is not None:
            self.a.values[self.row] = self.value
        if self.bad:
            self.a.failed[self.a.n_failed[0]] = self.row
            self.a.n_failed[0] += 1


def staged(a: Any, rows: Array, most: int) -> None:
    """Rows whose factors a block holds."""
    a.table_code, a.table = _table_of(a)
    for row in rows:
        start, stop = int(a.indptr[row]), int(a.indptr[row + 1])
        assert stop - start <= most
        cells, x = _Cells(a, start, stop), a.x[row]
        search = _Search(a, int(row), x, *cells.first(x))
        for number in range(a.steps):
            if search.done or search.bad:
                break
            search.step(cells.next(search.p), number)
        search.finish()


def small(a: Any, rows: Array, n_rows: int, most: int) -> None:
    """Rows that share a warp."""
    staged(a, rows[:n_rows], most)


def _table_of(a: Any) -> tuple[int, Array]:
    # The macro TABLE and the member table have one name in lower case: the member is the array.
    return {np.float64: 64, np.float32: 32, np.float16: 16, np.uint16: 17}[a.table.dtype.type], a.table


def chunk_first(a: Any) -> None:
    """Sums of chunks at the start."""
    a.table_code, a.table = _table_of(a)
    for place, (owner, start, stop) in enumerate(a.chunks):
        a.partial[place], a.partial_values[place] = _Cells(a, start, stop).first(a.x[a.long_rows[owner]])


def chunk_next(a: Any) -> None:
    """Sums of chunks along the direction."""
    a.table_code, a.table = _table_of(a)
    for place, (owner, start, stop) in enumerate(a.chunks):
        if not a.state[owner, 2]:
            a.partial[place] = _Cells(a, start, stop).next(a.p[owner])


def _sum_of_chunks(a: Any, owner: int) -> Array:
    total = np.zeros(a.width, a.x.dtype)
    for place in range(a.chunk_ptr[owner], a.chunk_ptr[owner + 1]):
        total += a.partial[place]
    return total


def long_first(a: Any, step: int) -> None:
    """Residual and direction of long rows."""
    for owner, row in enumerate(a.long_rows):
        value = float(np.sum(a.partial_values[a.chunk_ptr[owner] : a.chunk_ptr[owner + 1]]))
        search = _Search(a, int(row), a.x[row], _sum_of_chunks(a, owner), value)
        a.r[owner], a.p[owner] = search.r, search.p
        a.state[owner] = search.size, search.value, search.done or search.bad, 0
        search.finish()


def long_next(a: Any, step: int) -> None:
    """One step of long rows."""
    for owner, row in enumerate(a.long_rows):
        if a.state[owner, 2]:
            continue
        search = _Search(a, int(row), a.x[row], np.zeros(a.width, a.x.dtype), 0.0)
        real = a.x.dtype.type
        search.r, search.p = a.r[owner].copy(), a.p[owner].copy()
        search.size, search.value, search.bad = real(a.state[owner, 0]), float(a.state[owner, 1]), False
        search.step(_sum_of_chunks(a, owner), int(step))
        a.r[owner], a.p[owner] = search.r, search.p
        a.state[owner] = search.size, search.value, search.done or search.bad, 0
        search.finish()


def cholesky_frame(a: Any) -> None:
    """L, L^-T and L^-1."""
    k = a.rank
    lower = np.linalg.cholesky(a.gram)
    inverse = np.linalg.inv(lower)
    for out, made in ((a.to, lower), (a.table, inverse.T), (a.back.T, inverse.T)):
        out[:] = 0
        out[:, :k] = made


# -- draws -----------------------------------------------------------------------------


def normals(a: Any) -> None:
    """Numbers of counters."""
    reference.normals(int(a.seed), int(a.sweep), int(a.block), int(a.first_row), a.out, 1)


def _sums_of_cells(a: Any, start: int, stop: int) -> tuple[Array, Array]:
    real, columns = a.out.dtype.type, a.indices[start:stop]
    q = a.table[columns][:, : a.rank]
    c = real(a.curvature_all) if a.curvature is None else a.curvature[start:stop]
    d = real(a.linear_all) if a.linear is None else a.linear[start:stop]
    if a.shift is not None:
        d = d - c * a.shift[columns]
    c, d = (np.broadcast_to(real(a.scale) * part, stop - start) for part in (c, d))
    return (c[:, None] * q).T @ q, d @ q


def draw_chunk(a: Any) -> None:
    """Sums of parts of long rows."""
    for place, (_, start, stop) in enumerate(a.chunks):
        square, pull = _sums_of_cells(a, start, stop)
        a.partial[place, : a.rank**2], a.partial[place, a.rank**2 : a.rank**2 + a.rank] = square.ravel(), pull


def draw_row(a: Any, rows: Array, is_long: int) -> None:
    """Draws and means of some rows."""
    k = a.rank
    for place, row in enumerate(rows):
        if is_long:
            parts = a.partial[a.chunk_ptr[place] : a.chunk_ptr[place + 1]].sum(axis=0)
            square, pull = parts[: k * k].reshape(k, k), parts[k * k : k * k + k]
        else:
            square, pull = _sums_of_cells(a, int(a.indptr[row]), int(a.indptr[row + 1]))
        if a.offset is not None:
            pull = pull + a.offset[row if a.offset_stride else 0, :k]
        try:
            lower = np.linalg.cholesky(square + a.precision)
        except np.linalg.LinAlgError:
            a.out[row] = a.means[row] = np.nan
            continue
        half = np.linalg.solve(lower, pull)
        a.means[row] = np.linalg.solve(lower.T, half)
        a.out[row] = np.linalg.solve(lower.T, half + a.noise[row])


# -- products over a pattern -----------------------------------------------------------


def sddmm(a: Any, n_items: int) -> None:
    """Scores of the cells of each item."""
    for row, start, stop, _ in a.items:
        a.out[start:stop] = a.table[a.indices[start:stop]] @ a.left[row]


def spmm(a: Any, n_items: int) -> None:
    """Sums of each item, to the row or to its part."""
    for row, start, stop, place in a.items:
        values = a.out.dtype.type(a.data_all) if a.data is None else a.data[start:stop, None]
        total = np.sum(values * a.table[a.indices[start:stop]], axis=0)
        (a.out if place < 0 else a.partial)[row if place < 0 else place] = total


def add_parts(a: Any, n_rows: int) -> None:
    """Parts of long rows, in order."""
    for owner, row in enumerate(a.part_rows):
        a.out[row] = np.sum(a.partial[a.part_ptr[owner] : a.part_ptr[owner + 1]], axis=0)


# -- lists -----------------------------------------------------------------------------


def _exact_scores(row: Array, right: Array) -> Array:
    """Scores added column by column, as the device does."""
    total = np.zeros(len(right), right.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        for k in range(len(row)):
            total = total + row[k] * right[:, k]
    positive: Array = total + total.dtype.type(0)  # no -0
    return positive


def _keep_best(a: Any, scores_of: Callable[[int], Array]) -> None:
    rows = np.arange(a.n_rows) if a.rows is None else a.rows
    a.kept[:] = 0
    a.keys = {}
    for place, row in enumerate(rows):
        scores = scores_of(int(row)).astype(np.float64)
        for split in range(a.n_splits):
            begin, end = a.n_cols * split // a.n_splits, a.n_cols * (split + 1) // a.n_splits
            columns = np.arange(begin, end)
            columns = columns[~np.isnan(scores[begin:end])]
            columns = columns[~np.isin(_ids(a, columns), _excluded(a, int(row)))]
            order = np.lexsort((columns, -scores[columns]))[: a.keep]
            best = columns[order]
            # Places, counted from one; the device keeps scores beside them.
            part = np.zeros(a.keep, np.uint64)
            part[: len(best)] = best + 1
            a.kept[(place * a.n_splits + split) * a.keep : (place * a.n_splits + split + 1) * a.keep, 0] = (
                part
            )
            full = len(best) == a.keep
            a.bounds[place, split] = scores[best[-1]] if full else -np.inf


def _ids(a: Any, columns: Array) -> Array:
    return columns if a.col_ids is None else a.col_ids[columns]


def _excluded(a: Any, row: int) -> Array:
    if a.exclude_ptr is None:
        return np.zeros(0, np.int64)
    found: Array = a.exclude_ids[a.exclude_ptr[row] : a.exclude_ptr[row + 1]]
    return found


def filter_halves(a: Any) -> None:
    """The best of each row by scores of halves."""
    right = a.right16.astype(np.float32)
    _keep_best(a, lambda row: right @ a.left16[row].astype(np.float32))


def exact(a: Any) -> None:
    """The best of each row by exact scores."""
    _keep_best(a, lambda row: _exact_scores(a.left[row], a.right))


def refine(a: Any) -> None:
    """Exact scores of what was kept, sorted; rows that are not sure are noted."""
    rows = np.arange(a.n_rows) if a.rows is None else a.rows
    share = a.n_splits * a.keep
    for place, row in enumerate(rows):
        columns = a.kept[place * share : (place + 1) * share, 0].astype(np.int64)
        columns = columns[columns > 0] - 1
        scores = _exact_scores(a.left[row], a.right[columns])
        columns, scores = columns[~np.isnan(scores)], scores[~np.isnan(scores)]
        order = np.lexsort((columns, -scores))[: a.k]
        a.ids[row, : len(order)], a.scores[row, : len(order)] = _ids(a, columns[order]), scores[order]
        bound = a.bounds[place].max()
        sure = not getattr(a, "filtered", 0) or bound == -np.inf
        if not sure and len(order) == a.k:
            sure = scores[order[-1]] > bound / a.unit + a.margin * float(a.norms[row])
        if not sure:
            a.unsure[a.n_unsure[0]] = row
            a.n_unsure[0] += 1


KERNELS: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (
        small, staged, chunk_first, chunk_next, long_first, long_next, cholesky_frame, sddmm, spmm, add_parts,
        exact, refine, normals, draw_chunk, draw_row,
    )
} | {"filter": filter_halves}  # fmt: skip
