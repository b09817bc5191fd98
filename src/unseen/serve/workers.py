"""Several processes that do the same; one that dies is replaced."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = ["run_workers"]

SECONDS_TO_END = 35.0
SOONEST = 1.0
"""Seconds from the start of a worker to that of the one that replaces it, at the least."""
log = logging.getLogger("unseen.serve")


def run_workers(work: Callable[[], None], count: int) -> None:
    """Keep so many processes at work until a signal ends it; SIGHUP is handed on to each.

    On Linux they are forked, so what the parent has imported is there once. The parent must have started no
    threads.

    Parameters
    ----------
    work : callable
        What each does, until SIGTERM; picklable.
    count : int
        Number of processes.
    """
    context: Any = get_context("fork" if sys.platform == "linux" else "spawn")
    gc.collect()
    gc.freeze()  # a collection would write to all that is shared
    started: dict[BaseProcess, float] = {}
    ended = False

    def start() -> None:
        process = context.Process(target=_begin, args=(work,))
        process.start()
        started[process] = time.monotonic()

    def end(*_: object) -> None:
        nonlocal ended
        ended = True
        for process in started:
            process.terminate()

    def hand_on(number: int, _: object) -> None:
        for process in started:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    if hasattr(signal, "SIGHUP"):
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hand_on)
    try:
        for _ in range(count):
            start()
        while not ended:
            connection.wait([process.sentinel for process in started], timeout=0.5)
            for process in [one for one in started if not one.is_alive()]:
                if ended:
                    break
                log.warning("worker %s ended with code %s; another one starts", process.pid, process.exitcode)
                time.sleep(max(0.0, started.pop(process) + SOONEST - time.monotonic()))
                start()
        stop = time.monotonic() + SECONDS_TO_END
        for process in started:
            process.terminate()  # also one that was being started when the signal came
            process.join(max(0.0, stop - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        gc.unfreeze()


def _begin(work: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    work()
