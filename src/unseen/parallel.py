"""Threads of the BLAS, which must not change results or fight with ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the loaded libraries takes milliseconds: do it once


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS calls on one thread each.

    Parallelism comes from our own fixed blocks, which add in the same order for any number
    of threads; a BLAS that splits the work itself would not.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield
