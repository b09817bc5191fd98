"""Drawing cells of a matrix in memory proportional to the cells drawn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unseen.typing import FloatArray, IndexArray

__all__ = ["draw_cells", "scores"]

_CHUNK = 1 << 18


def draw_cells(
    shape: tuple[int, int], count: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows and columns of `count` different cells, in row order, all sets equally likely."""
    total = shape[0] * shape[1]
    if 4 * count > total:
        # So many that marking every cell costs no more than the result.
        chosen = np.sort(rng.permutation(total)[:count])
    else:
        # Collisions are replaced by fresh draws; the surplus is thrown out at random.
        chosen = np.unique(rng.integers(0, total, count))
        while chosen.size < count:
            chosen = np.union1d(chosen, rng.integers(0, total, 2 * (count - chosen.size) + 8))
        if chosen.size > count:
            chosen = np.delete(chosen, rng.choice(chosen.size, chosen.size - count, replace=False))
    rows, cols = np.divmod(chosen, shape[1])
    return rows, cols


def scores(left: FloatArray, right: FloatArray, rows: IndexArray, cols: IndexArray) -> FloatArray:
    """Inner products of rows of two factors, a bounded number of cells at a time."""
    result = np.empty(rows.size, dtype=np.result_type(left, right))
    for start in range(0, rows.size, _CHUNK):
        here = slice(start, start + _CHUNK)
        np.einsum("ij,ij->i", left[rows[here]], right[cols[here]], out=result[here])
    return result
