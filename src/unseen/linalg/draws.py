"""Random starts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unseen.linalg.blocked import BLOCK_ROWS, in_blocks
from unseen.typing import FloatArray

__all__ = ["standard_normal"]

ONE_STREAM_ROWS = 1 << 16
"""Rows up to which one stream of random numbers is quick enough."""


def standard_normal(
    shape: tuple[int, int], dtype: npt.DTypeLike, rng: np.random.Generator, *, n_threads: int = 1
) -> FloatArray:
    """Normal numbers, the same ones for float32 and float64, without a float64 copy of all.

    A long factor is drawn in parts, each from a stream of its own, so that threads share the work.
    """
    out: FloatArray = np.empty(shape, dtype=dtype)
    if shape[0] <= ONE_STREAM_ROWS:
        out[:] = rng.standard_normal(shape)
        return out
    seeds = rng.integers(2**63, size=-(-shape[0] // BLOCK_ROWS))

    def draw(rows: slice) -> None:
        stream = np.random.default_rng(seeds[rows.start // BLOCK_ROWS])
        out[rows] = stream.standard_normal(out[rows].shape)

    for _ in in_blocks(draw, shape[0], n_threads):
        pass
    return out
