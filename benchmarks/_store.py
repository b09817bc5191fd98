"""Where results are kept, and what they were measured with."""

from __future__ import annotations

import json
import platform
import resource
from importlib.metadata import version
from pathlib import Path
from typing import Any

from unseen import kernels

STORED = Path(__file__).parent / "stored"
RESULTS = Path(__file__).parent / "results"
"""Not under version control: runs of smaller sizes, and the page of ``python -m benchmarks bench``."""
SIZES = ("small", "medium", "large")


def environment() -> dict[str, Any]:
    """Versions and machine, as far as a reader needs them to judge a figure."""
    return {
        "unseen": version("unseen"),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "python": platform.python_version(),
        "kernels": kernels.provider(),
        "isa": kernels.isa(),
    }


def store(name: str, results: dict[str, Any], folder: Path = STORED) -> Path:
    """Write results as ``stored/NAME.json``."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"environment": environment(), **results}, indent=1) + "\n")
    return path


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
