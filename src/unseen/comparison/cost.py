"""What a piece of work costs: seconds, and memory on top of what was there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cost", "measured"]

STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


@dataclass
class Cost:
    """Filled in when the work is done; memory is None where the system does not tell."""

    seconds: float = float("nan")
    mib: float | None = None


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what runs inside.

    Examples
    --------
    >>> with measured() as cost:
    ...     _ = sum(range(1000))
    >>> cost.seconds > 0
    True
    """
    cost = Cost()
    before = _restart_peak()
    start = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - start
        if before is not None:
            cost.mib = max(0.0, _read("VmHWM") - before)


def _restart_peak() -> float | None:
    """Let the peak begin at the present use; None where that cannot be done."""
    try:
        RESET.write_text("5")
        return _read("VmRSS")
    except OSError:
        return None


def _read(name: str) -> float:
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
