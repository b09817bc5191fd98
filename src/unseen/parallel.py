"""Threads of the BLAS, which must not change results or fight with ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = Lock()
_users: list[Any] = []
"""One entry for each block of code that wants one thread; the first holds what to restore."""


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finding the loaded libraries takes milliseconds: do it once


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS calls on one thread each.

    Parallelism comes from our own fixed blocks, which add in the same order for any number
    of threads; a BLAS that splits the work itself would not. The limit is one for the whole
    process, so it stays until the last of several threads that asked for it is done.
    """
    with _lock:
        _users.append(None if _users else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            if len(_users) == 1:
                _users[0].restore_original_limits()
                _users.clear()
            else:
                del _users[-1]  # the first entry is what the last one restores
