"""Random starts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unseen.linalg.blocked import BLOCK_ROWS, in_blocks, inner
from unseen.linalg.designs import Design, IdentityDesign
from unseen.typing import FloatArray

__all__ = ["positive", "random_factor", "standard_normal"]

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


def random_factor(
    design: Design,
    rank: int,
    size: float,
    dtype: npt.DTypeLike,
    rng: np.random.Generator,
    *,
    n_threads: int = 1,
) -> FloatArray:
    """A factor whose rows, behind the design, have length sqrt(size), so scores of two have that size."""
    factor = standard_normal((design.shape[1], rank), dtype, rng, n_threads=n_threads)
    product = factor if isinstance(design, IdentityDesign) else design.dot(factor)
    length = np.sqrt(inner(product, product) / product.size * rank) if product.size else 1.0
    factor *= factor.dtype.type(np.sqrt(size) / max(length, 1e-12))
    return factor


def positive(factor: FloatArray, mean: float) -> FloatArray:
    """The factor made positive in place, such that scores of two of them have this mean.

    Numbers cut off at zero, or too large, would leave components at zero for good.
    """
    np.abs(factor, out=factor)
    usual = float(factor.mean(dtype=np.float64)) if factor.size else 0.0
    if mean > 0.0 and usual > 0.0:
        factor *= factor.dtype.type(np.sqrt(mean / factor.shape[1]) / usual)
    return factor
