"""Two commits on one machine: ``python -m benchmarks.base_head BASE [HEAD]``.

Each commit is checked out into a folder of its own, built in an environment of its own, and runs the same
fits in turns, so that a machine that slows down slows both. Prints the ratio of every number that both
give, seconds where nothing else is said. ``--store`` keeps the numbers for the documentation.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._store import store

ROOT = Path(__file__).parent.parent
TURNS = 3
PROBE = Path(__file__).parent / "_probe_child.py"


def prepare(commit: str, folder: Path) -> Path:
    """Interpreter of an environment with the library as it was at a commit."""
    source = folder / "source"
    subprocess.run(
        ["git", "-C", str(ROOT), "worktree", "add", "--detach", "--quiet", str(source), commit], check=True
    )
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(source)], check=True)
    return python


def times(python: Path) -> dict[str, float]:
    done = subprocess.run([python, str(PROBE)], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(base: str, head: str, n_turns: int = TURNS) -> Iterator[tuple[str, float, float]]:
    """Median of each number at both commits."""
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / side for side in ("base", "head")]
        try:
            pythons = [prepare(commit, folder) for commit, folder in zip((base, head), folders, strict=True)]
            turns: list[list[dict[str, float]]] = [[], []]
            for _ in range(n_turns):
                for place, python in enumerate(pythons):
                    turns[place].append(times(python))
        finally:
            for folder in folders:
                subprocess.run(
                    ["git", "-C", str(ROOT), "worktree", "remove", "--force", str(folder / "source")],
                    check=False,
                    capture_output=True,
                )
        for job in turns[0][0]:
            before, after = (median(turn[job] for turn in side) for side in turns)
            yield job, before, after


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.base_head", description=__doc__)
    parser.add_argument("base", help="commit to compare with")
    parser.add_argument("head", nargs="?", default="HEAD", help="commit that is judged")
    parser.add_argument("--limit", type=float, default=1.3, help="end with 1 if a job takes that much longer")
    parser.add_argument("--store", action="store_true", help="keep the numbers for the documentation")
    parser.add_argument("--turns", type=int, default=TURNS, help="times that each commit runs the jobs")
    given: Any = parser.parse_args(arguments)
    jobs = list(compare(given.base, given.head, given.turns))
    for job, before, after in jobs:
        print(f"{job:42s} {before:9.3f} {after:9.3f}   ratio {after / before:.2f}", flush=True)
    if given.store:
        print(store("base_head", {"jobs": [list(job) for job in jobs]}))
    sys.exit(int(max(after / before for _, before, after in jobs) > given.limit))


if __name__ == "__main__":
    main()
