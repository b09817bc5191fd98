"""Threads of the BLAS, which must not change results or fight with ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from threading import Lock
from typing import Any

__all__ = ["one_blas_thread"]


@dataclass(frozen=True)
class _Blas:
    """How to ask one loaded library for its number of threads, and how to change it."""

    count: Callable[[], int]
    limit: Callable[[int], Any]


@dataclass
class _State:
    """What all Python threads share."""

    lock: Any
    users: int
    before: list[int]
    """For each library, the number of threads that was last asked for by others."""


_state = _State(Lock(), 0, [])


@lru_cache(maxsize=1)
def _libraries() -> tuple[list[_Blas], list[_Blas]]:
    """Libraries with one limit for the process, and those with one for each thread."""
    # NumPy and SciPy may bring a BLAS each. One that is loaded after this search would never be limited.
    import scipy.linalg.blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    shared, own = [], []
    for found in ThreadpoolController().select(user_api="blas").lib_controllers:
        if found.internal_api != "openblas":
            shared.append(_Blas(found.get_num_threads, found.set_num_threads))
        elif found.threading_layer == "openmp":
            # OpenMP keeps a number for each thread, and the BLAS goes by that of the thread that calls it.
            own.append(_Blas(found.dynlib.omp_get_max_threads, found.dynlib.omp_set_num_threads))
        else:
            # Not by threadpoolctl: from version 3.8 on, it lets one thread of the process change the limit
            # and does nothing, without a word, when another thread asks.
            shared.append(_Blas(*(_symbol(found.dynlib, f"openblas_{verb}_num_threads") for verb in VERBS)))
    return shared, own


VERBS = ("get", "set")


def _symbol(library: Any, name: str) -> Any:
    """A function of OpenBLAS, whose builds put different affixes to its names."""
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
        if hasattr(library, f"{prefix}{name}{suffix}"):
            return getattr(library, f"{prefix}{name}{suffix}")
    raise AttributeError(f"{library} has no {name}")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS calls on one thread each.

    Parallelism comes from our own fixed blocks, which add in the same order for any number of threads; a BLAS
    that splits the work itself would not. Some libraries keep one limit for the process: it stays until the
    last of several Python threads that asked for it is done. Others keep one for each thread: whoever hands
    work to another thread lets it ask again there.

    Where other code lifts a limit meanwhile, in another thread, the next call of this function sets it again.
    """
    shared, own = _libraries()
    found = [library.count() for library in own]
    for library, count in zip(own, found, strict=True):
        if count != 1:
            library.limit(1)
    with _state.lock:
        if not _state.users:
            _state.before = [1] * len(shared)
        _state.users += 1
        for place, library in enumerate(shared):
            if (count := library.count()) != 1:
                _state.before[place] = count
                library.limit(1)
    try:
        yield
    finally:
        with _state.lock:
            _state.users -= 1
            if not _state.users:
                for library, count in zip(shared, _state.before, strict=True):
                    if count != 1 and library.count() == 1:
                        library.limit(count)
        for library, count in zip(own, found, strict=True):
            if count != 1:
                library.limit(count)


def _new_lock() -> None:
    _state.lock = Lock()


if hasattr(os, "register_at_fork"):  # a forked process has no thread that would open a lock that was shut
    os.register_at_fork(after_in_child=_new_lock)
