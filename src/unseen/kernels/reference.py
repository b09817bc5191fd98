"""NumPy twins of the native kernels: short, slow and easy to check by eye.

They define what the native kernels compute, serve as oracle in the tests and stand in where the
native module is missing. Arguments arrive already checked and unified by :mod:`unseen.kernels`;
``n_threads`` is accepted and ignored.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from unseen.typing import CSR, Array, FloatArray, IndexArray

_CELLS_AT_ONCE = 1 << 16
LOW = 0xFFFFFFFF


def isa() -> str:
    """Instruction set in use: NumPy decides for itself."""
    return "numpy"


def gram(dense: FloatArray, n_threads: int) -> FloatArray:
    """Gram matrix of the columns, ``dense' dense``."""
    wide = dense.astype(np.float64)
    return (wide.T @ wide).astype(dense.dtype)


def sddmm(
    indptr: IndexArray, indices: IndexArray, left: FloatArray, right: FloatArray, n_threads: int
) -> FloatArray:
    """Scores ``left[i] . right[j]`` on the stored cells."""
    rows = _row_of_each_cell(indptr)
    out = np.empty(len(indices), dtype=left.dtype)
    for start in range(0, len(indices), _CELLS_AT_ONCE):
        cells = slice(start, start + _CELLS_AT_ONCE)
        out[cells] = np.einsum("tk,tk->t", left[rows[cells]], right[indices[cells]], dtype=np.float64)
    return out


def spmm(
    indptr: IndexArray, indices: IndexArray, data: FloatArray, dense: FloatArray, n_threads: int
) -> FloatArray:
    """CSR matrix times a tall dense one."""
    product = _csr(indptr, indices, data, len(dense)) @ dense.astype(np.float64)
    return product.astype(dense.dtype)


def spmm_t(
    indptr: IndexArray, indices: IndexArray, data: FloatArray, dense: FloatArray, n_cols: int, n_threads: int
) -> FloatArray:
    """Transposed CSR matrix times a tall dense one."""
    product = _csr(indptr, indices, data, n_cols).T @ dense.astype(np.float64)
    return product.astype(dense.dtype)


def als_solve(
    indptr: IndexArray,
    indices: IndexArray,
    curvature: FloatArray,
    linear: FloatArray,
    other: FloatArray,
    gram: FloatArray,
    offset: FloatArray | None,
    out: FloatArray,
    ridge: FloatArray | None,
    shift: FloatArray | None,
    row_values: FloatArray | None,
    method: str,
    cg_steps: int,
    n_threads: int,
    gram_scale: FloatArray | None = None,
) -> None:
    """Solve the regularised normal equations of every row, in place on ``out``."""
    n_rows, rank = out.shape
    curvature = np.broadcast_to(curvature, len(indices))
    linear = np.broadcast_to(linear, len(indices))
    cutoff = rank * float(np.finfo(out.dtype).eps)
    for i in range(n_rows):
        cells = slice(indptr[i], indptr[i + 1])
        factors = other[indices[cells]].astype(np.float64)
        base = gram.astype(np.float64) * (1.0 if gram_scale is None else gram_scale[i]) + (
            0.0 if ridge is None else ridge[i]
        ) * np.eye(rank)
        matrix = base + factors.T @ (curvature[cells, None] * factors)
        pull = linear[cells].astype(np.float64)
        if shift is not None:
            pull = pull - curvature[cells] * shift[indices[cells]]
        rhs = factors.T @ pull
        if offset is not None:
            rhs += offset[i if len(offset) > 1 else 0]
        if method == "cg":
            solved = _conjugate_gradient(matrix, rhs, out[i].astype(np.float64), base, cg_steps)
            out[i] = _minimum_norm(matrix, rhs, cutoff) if solved is None else solved
        else:
            out[i] = _minimum_norm(matrix, rhs, cutoff)
        if row_values is not None:
            x = out[i].astype(np.float64)
            scores = factors @ x + (0.0 if shift is None else shift[indices[cells]])
            row_values[i] = 0.5 * x @ base @ x + np.sum(
                (0.5 * curvature[cells] * scores - linear[cells]) * scores
            )
            if offset is not None:
                row_values[i] -= offset[i if len(offset) > 1 else 0] @ x


def als_draw(
    indptr: IndexArray,
    indices: IndexArray,
    curvature: FloatArray,
    linear: FloatArray,
    other: FloatArray,
    precision: FloatArray,
    offset: FloatArray | None,
    shift: FloatArray | None,
    noise: FloatArray,
    out: FloatArray,
    means: FloatArray | None,
    sizes: FloatArray | None,
    n_threads: int,
) -> None:
    """Draw every row from N(A^-1 b, A^-1), in place on ``out``."""
    curvature = np.broadcast_to(curvature, len(indices))
    linear = np.broadcast_to(linear, len(indices))
    for i in range(len(out)):
        cells = slice(indptr[i], indptr[i + 1])
        factors = other[indices[cells]].astype(np.float64)
        matrix = precision.astype(np.float64) + factors.T @ (curvature[cells, None] * factors)
        pull = linear[cells].astype(np.float64)
        if shift is not None:
            pull = pull - curvature[cells] * shift[indices[cells]]
        rhs = factors.T @ pull + (0.0 if offset is None else offset[i if len(offset) > 1 else 0])
        try:
            lower = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            out[i] = np.nan
            continue
        mean = np.linalg.solve(matrix, rhs)
        out[i] = mean + np.linalg.solve(lower.T, noise[i].astype(np.float64))
        if means is not None:
            means[i] = mean
    if sizes is not None:
        rows = np.repeat(np.arange(len(out)), np.diff(indptr))
        known = 0.0 if shift is None else curvature * shift[indices]
        products = out[rows].astype(np.float64) * other[indices]
        sizes[:, :-1] = products.T @ (curvature[:, None] * products)
        sizes[:, -1] = (linear - known) @ products


def normals(seed: int, sweep: int, block: int, first_row: int, out: FloatArray, n_threads: int) -> None:
    """Philox 4x32 with ten rounds and Box-Muller: the counter is (row, group of four, sweep, block)."""
    n_rows, n_cols = out.shape
    rows = np.arange(first_row, first_row + n_rows, dtype=np.uint64)[:, None]
    groups = np.arange(-(-n_cols // 4), dtype=np.uint64)[None]
    low = np.uint64(LOW)
    word = [
        np.broadcast_to(part, (n_rows, groups.shape[1]))
        for part in (
            rows & low,
            (rows >> np.uint64(32)) << np.uint64(24) | groups,
            np.uint64(sweep),
            np.uint64(block),
        )
    ]
    word = _philox(word, seed)
    uniform = [(part.astype(np.float64) + 0.5) / 2.0**32 for part in word]
    pairs = [(np.sqrt(-2 * np.log(uniform[t])), 2 * np.pi * uniform[t + 1]) for t in (0, 2)]
    numbers = [length * turned(turn) for length, turn in pairs for turned in (np.cos, np.sin)]
    out[:] = np.stack(numbers, axis=-1).reshape(n_rows, 4 * groups.shape[1])[:, :n_cols]


def _philox(word: list[Array], seed: int) -> list[Array]:
    """Philox 4x32 with ten rounds: the words of counters, held in 64 bits, in place of the counters."""
    low = np.uint64(LOW)
    key = [seed & LOW, seed >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * word[0], np.uint64(0xCD9E8D57) * word[2]
        word = [
            (b >> np.uint64(32)) ^ word[1] ^ np.uint64(key[0]),
            b & low,
            (a >> np.uint64(32)) ^ word[3] ^ np.uint64(key[1]),
            a & low,
        ]
        key = [(key[0] + 0x9E3779B9) & LOW, (key[1] + 0xBB67AE85) & LOW]
    return word


def signs(
    seed: int,
    block: int,
    first_row: int,
    length: int,
    rate: float,
    size: float,
    skip: IndexArray,
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    n_threads: int,
) -> int:
    """Cells and signs of each row, one geometric gap after the other; answers with the fullest row's number.

    The counter is (group of four words, row, block).
    """
    per_log = 1 / np.log1p(-rate) if rate < 1 else -0.0
    rows = []
    for i, own in enumerate(skip):
        row = first_row + i
        groups = np.arange(int(rate * length / 2) + 16, dtype=np.uint64)
        reached = 0
        found: list[Array] = []
        while reached <= length:
            rest = [np.full(groups.size, part, dtype=np.uint64) for part in (row & LOW, row >> 32, block)]
            word = np.stack(_philox([groups, *rest], seed), axis=1).ravel()
            gaps = 1 + (np.log(((word >> np.uint64(1)) + 0.5) / 2.0**31) * per_log).astype(np.int64)
            cells = reached - 1 + np.cumsum(gaps)
            found.append(np.stack([cells, 2 * (word & np.uint64(1)).astype(np.int64) - 1]))
            reached = int(cells[-1]) + 1
            groups = groups + np.uint64(groups.size)
        cells, sign = np.concatenate(found, axis=1)
        kept = (cells < length) & (cells != own)
        rows.append((cells[kept], size * sign[kept]))
    indptr[0] = 0
    np.cumsum([len(cells) for cells, _ in rows], out=indptr[1:])
    most = max((len(cells) for cells, _ in rows), default=0)
    if most * len(rows) <= len(indices):
        for start, (cells, sign) in zip(indptr, rows, strict=False):
            indices[start : start + len(cells)], values[start : start + len(cells)] = cells, sign
    return most


def _minimum_norm(matrix: Array, rhs: Array, cutoff: float) -> Array:
    """Least-squares solution of least norm; the plain solution when the matrix is regular."""
    if not (np.isfinite(matrix).all() and np.isfinite(rhs).all()):
        return np.full_like(rhs, np.nan)
    values, vectors = np.linalg.eigh(matrix)
    keep = np.abs(values) > cutoff * np.abs(values).max(initial=0.0)
    solution: Array = vectors[:, keep] @ ((vectors[:, keep].T @ rhs) / values[keep])
    return solution


def _conjugate_gradient(matrix: Array, rhs: Array, x: Array, base: Array, steps: int) -> Array | None:
    """Conjugate gradient from ``x``, preconditioned by the part of the matrix that all rows share.

    Returns None where the matrix shows itself not to be positive definite.
    """
    values, vectors = np.linalg.eigh(base)
    # Directions without a background keep the scale of the weakest one that has it.
    floor = 1e-6 * values.max(initial=0.0)
    values = np.maximum(values, floor) if floor > 0 else np.ones_like(values)

    def precondition(v: Array) -> Array:
        result: Array = vectors @ ((vectors.T @ v) / values)
        return result

    residual = rhs - matrix @ x
    direction = precondition(residual)
    size = float(residual @ direction)
    for _ in range(steps):
        if size <= np.finfo(np.float32).tiny:
            break
        image = matrix @ direction
        along = float(direction @ image)
        if not along > 0:
            return None
        x = x + (size / along) * direction
        residual = residual - (size / along) * image
        scaled = precondition(residual)
        previous, size = size, float(residual @ scaled)
        direction = scaled + (size / previous) * direction
    return x


def ccd_sweep(
    indptr: IndexArray,
    indices: IndexArray,
    csc_indptr: IndexArray,
    csc_indices: IndexArray,
    csc_order: IndexArray,
    curvature: FloatArray,
    linear: FloatArray,
    scores: FloatArray,
    left: FloatArray,
    right: FloatArray,
    background: float,
    target: float,
    reg: float,
    l1: float,
    lower: float,
    upper: float,
    inner: int,
    n_threads: int,
) -> None:
    """One CCD++ sweep over all components, in place on ``scores``, ``left`` and ``right``."""
    rows = _row_of_each_cell(indptr)
    c = np.broadcast_to(curvature, len(indices)).astype(np.float64)
    d = np.broadcast_to(linear, len(indices)).astype(np.float64)
    s = scores.astype(np.float64)
    wide_left, wide_right = left.astype(np.float64), right.astype(np.float64)

    def update(own: Array, other: Array, t: int, own_of_cell: IndexArray, other_of_cell: IndexArray) -> Array:
        """Exact minimiser over column t of ``own`` given everything else."""
        x, y = own[:, t], other[:, t]
        on_cells = y[other_of_cell]
        curved = np.bincount(own_of_cell, c * on_cells**2, minlength=len(own)).astype(np.float64)
        pull = np.bincount(own_of_cell, (d - c * s) * on_cells, minlength=len(own)) + curved * x
        pull -= background * (own @ (other.T @ y) - x * (y @ y)) - background * target * y.sum()
        curved += background * (y @ y) + reg
        return _minimise_scalar(x, pull, curved, l1, lower, upper)

    for t in range(left.shape[1]):
        for _ in range(inner):
            new = update(wide_left, wide_right, t, rows, indices)
            s += (new - wide_left[:, t])[rows] * wide_right[indices, t]
            wide_left[:, t] = new
            new = update(wide_right, wide_left, t, indices, rows)
            s += (new - wide_right[:, t])[indices] * wide_left[rows, t]
            wide_right[:, t] = new
    left[...], right[...] = wide_left, wide_right
    scores[...] = sddmm(indptr, indices, left, right, n_threads)


def _minimise_scalar(x: Array, pull: Array, curved: Array, l1: float, lower: float, upper: float) -> Array:
    """Minimiser of ``curved/2 v^2 - pull v + l1 |v|`` in the bounds; without curvature ``x`` stays."""
    shrunk = np.sign(pull) * np.maximum(np.abs(pull) - l1, 0.0)
    best = np.where(curved > 0, shrunk / np.where(curved > 0, curved, 1.0), x)
    clipped: Array = np.clip(best, lower, upper)
    return clipped


def topk(
    left: FloatArray,
    right: FloatArray,
    k: int,
    exclude: tuple[IndexArray, IndexArray] | None,
    col_ids: IndexArray,
    n_threads: int,
) -> tuple[IndexArray, FloatArray]:
    """Best k columns of every row of ``left @ right.T``, ties to the smaller id."""
    ids = np.full((len(left), k), -1, dtype=np.int64)
    best = np.full((len(left), k), math.nan, dtype=left.dtype)
    for i, row in enumerate(left):
        row_scores = np.einsum("jk,k->j", right, row)
        allowed = ~np.isnan(row_scores)
        if exclude is not None:
            allowed &= ~np.isin(col_ids, exclude[1][exclude[0][i] : exclude[0][i + 1]])
        candidates = np.flatnonzero(allowed)
        order = candidates[np.lexsort((col_ids[candidates], -row_scores[candidates]))][:k]
        ids[i, : len(order)] = col_ids[order]
        best[i, : len(order)] = row_scores[order]
    return ids, best


def _row_of_each_cell(indptr: IndexArray) -> IndexArray:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _csr(indptr: IndexArray, indices: IndexArray, data: FloatArray, n_cols: int) -> CSR:
    values = np.broadcast_to(data, len(indices)).astype(np.float64)
    return sparse.csr_array((values, indices, indptr), shape=(len(indptr) - 1, n_cols))
