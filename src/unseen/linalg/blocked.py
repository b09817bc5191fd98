"""Dense products over fixed blocks of rows.

A BLAS may add in another order when it gets another number of threads. Cutting the tall
side into blocks of fixed size, multiplying each block on one BLAS thread and adding the
results in order gives the same bits for any ``n_threads``, and the blocks run in parallel.
Arrays that live on a device are multiplied there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import numpy as np

from unseen.exceptions import InvalidDataError
from unseen.kernels.devices import owner
from unseen.parallel import one_blas_thread
from unseen.typing import Array, FloatArray

__all__ = ["gram", "in_blocks", "inner", "matmul", "multiply_in_place"]

BLOCK_ROWS = 8192
"""Rows of a block: large enough for BLAS to run at speed, small enough to stay in cache."""

T = TypeVar("T")


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="unseen")


if hasattr(os, "register_at_fork"):  # a forked process has pools, and none of their threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_blocks(
    task: Callable[[slice], T], n_rows: int, n_threads: int, *, block_rows: int | None = None
) -> Iterable[T]:
    """Run ``task`` on consecutive slices of the rows; results come in order.

    ``block_rows`` is for tasks that do much with a row, so that two blocks are worth two threads.
    """
    step = BLOCK_ROWS if block_rows is None else block_rows
    slices = [slice(start, start + step) for start in range(0, n_rows, step)]

    def alone(rows: slice) -> T:
        with one_blas_thread():  # in the thread of the pool: some BLAS keep a limit for each thread
            return task(rows)

    # Handing a block to another thread takes about as long as multiplying a few of them.
    if n_threads <= 1 or len(slices) < (4 if block_rows is None else 2):
        return map(alone, slices)
    return _pool(n_threads).map(alone, slices)


def gram(
    left: FloatArray, right: FloatArray | None = None, *, n_threads: int = 1, block_rows: int | None = None
) -> FloatArray:
    """``left.T @ right`` (``right`` defaults to ``left``), accumulated in float64."""
    place = owner(left)
    if place is not None:
        product: FloatArray = place.gram(left, right)
        return product
    other = left if right is None else right
    total: Array = np.zeros((left.shape[1], other.shape[1]))

    def task(rows: slice) -> Array:
        return left[rows].T @ other[rows]

    for part in in_blocks(task, left.shape[0], n_threads, block_rows=block_rows):
        total += part
    return total


def matmul(tall: FloatArray, small: FloatArray, *, n_threads: int = 1) -> FloatArray:
    """``tall @ small`` by row blocks."""
    if tall.shape[1] != small.shape[0]:
        raise InvalidDataError(f"{tall.shape[1]} columns cannot be multiplied with {small.shape[0]} rows")
    out: Array = np.empty((tall.shape[0], small.shape[1]), dtype=np.result_type(tall, small))

    def task(rows: slice) -> None:
        np.matmul(tall[rows], small, out=out[rows])

    for _ in in_blocks(task, tall.shape[0], n_threads):
        pass
    return out


def multiply_in_place(tall: FloatArray, small: FloatArray, *, n_threads: int = 1) -> None:
    """``tall @ small`` with a square ``small``, written over ``tall`` without a second copy of it."""
    place = owner(tall)
    if place is not None:
        tall[...] = tall @ place.asarray(small)
        return

    def task(rows: slice) -> None:
        tall[rows] = tall[rows] @ small

    for _ in in_blocks(task, tall.shape[0], n_threads):
        pass


def inner(left: FloatArray, right: FloatArray) -> float:
    """Sum of elementwise products in float64, without a temporary of the full size."""
    if left.dtype == np.float64 and right.dtype == np.float64:
        return float(np.vdot(left, right))
    flat_left, flat_right = left.reshape(-1), right.reshape(-1)
    step = 1 << 15  # copies that stay in cache, in buffers that are not fetched anew for each part
    copies = np.empty((2, min(step, flat_left.size)))
    total = 0.0
    for start in range(0, flat_left.size, step):
        parts = [flat[start : start + step] for flat in (flat_left, flat_right)]
        first, second = copies[:, : parts[0].size]
        first[:], second[:] = parts
        total += float(np.dot(first, second))
    return total
