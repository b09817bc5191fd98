"""Where results are kept, and what they were measured with."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from papers.runner import surroundings, write

ROOT = Path(__file__).parent.parent
STORED = Path(__file__).parent / "stored"
RESULTS = Path(__file__).parent / "results"
"""Not under version control: runs of smaller sizes, and the page of ``python -m benchmarks bench``."""
SIZES = ("small", "medium", "large")


def store(name: str, results: dict[str, Any], folder: Path = STORED) -> Path:
    """Write results as ``stored/NAME.json``, with what they were measured with."""
    path = folder / f"{name}.json"
    write(path, {"environment": surroundings("numpy", "scipy"), **results})
    return path


def stored(name: str) -> dict[str, Any]:
    """Results of a full run of a suite."""
    results: dict[str, Any] = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    return results


def if_measured(name: str, make: Callable[[dict[str, Any]], str]) -> str:
    """A table of a suite, or a note where its results are not there."""
    if not (STORED / f"{name}.json").exists():
        return f"Not measured yet: `python -m benchmarks {name}`."
    return make(stored(name))


def keep(name: str, results: dict[str, Any], size: str) -> Path:
    """Store a full run for the documentation, and a smaller one only for the page of benchmarks."""
    return store(name, results, STORED if size == "large" else RESULTS / size)


def peak_memory_gib() -> float:
    """Largest resident memory of this process so far.

    From the kernel's table where there is one: the peak of ``getrusage`` survives the start of
    a new program and may be the parent's.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
