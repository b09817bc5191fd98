"""Attacks for as long as one likes: ``python -m tests.hostile --minutes 10 [--kinds forged calls ...]``.

Each piece runs in a process of its own, which tells of a signal where it came from. What was found is added
up in a file, seeds go on where the last run ended, and ``python -m benchmarks pages`` shows the sums.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks._store import STORED, store
from tests.hostile.zoo import MODELS

KINDS: dict[str, tuple[str, str, dict[str, Any], int, int]] = {
    "damaged": ("forge", "attack", {"kind": "damaged"}, 10_000, 100_000),
    "forged": ("forge", "attack", {"kind": "forged"}, 4000, 20_000),
    "kernels": ("calls", "attack", {}, 20_000, 100_000),
    "inputs": ("inputs", "attack", {}, 4000, 100_000),
    "readers": ("readers", "attack", {}, 2000, 10_000),
    "lists": ("lists", "attack", {}, 20_000, 100_000),
    "kills in save": ("saving", "kills", {}, 50, 200),
    "kills in update": ("saving", "kills_in_update", {}, 25, 200),
    "kills in checkpoints": ("checkpoints", "kills", {}, 20, 200),
    "damaged checkpoints": ("checkpoints", "attack", {}, 100, 1000),
    "bits": ("bits", "attack", {}, 10, len(MODELS)),
}
"""Module, function, its options, how many trials make a piece, and how many the page of promises wants."""
NAME = "hostile"


def piece(kind: str, place: Path, first: int, count: int) -> tuple[Counter[str], int]:
    """Run trials in a process of their own; what was found, and the first seed that was not tried."""
    module, function, options, _, _ = KINDS[kind]
    call = (
        f"import json, pathlib; from tests.hostile import {module}; "
        f"print(json.dumps({module}.{function}(pathlib.Path({str(place)!r}), "
        f"first={first}, count={count}, **{options!r})))"
    )
    command = [sys.executable, "-X", "faulthandler", "-c", call]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return Counter(json.loads(done.stdout.splitlines()[-1])), first + count
    current = place / "current"
    seed = int(current.read_text().split()[0]) if current.exists() else first + count - 1
    what = "signals" if done.returncode < 0 else "failed processes"
    trials = seed - first + 1
    if trials < 1:
        raise AssertionError(f"{kind} does not start: {done.stderr[-2000:]}")
    words = f"{kind}, seed {seed}: ended with {done.returncode}: {done.stderr[-1500:]}"
    return Counter({what: 1, "lost with it": trials - 1, words: 1}), seed + 1


def add(results: dict[str, Any], kind: str, found: Counter[str], trials: int, seconds: float) -> None:
    """Add a piece to what is known."""
    entry = results.setdefault(kind, {"trials": 0, "next": 0, "seconds": 0.0, "found": {}, "words": []})
    entry["trials"] += trials
    entry["next"] += trials
    entry["seconds"] = round(entry["seconds"] + seconds, 1)
    for key, count in found.items():
        if ": " in key:
            entry["words"].append(key)
        else:
            entry["found"][key] = entry["found"].get(key, 0) + count


def main() -> None:
    """Run pieces in turns until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--first", type=int, help="first seed; by default where the last run ended")
    parser.add_argument("--out", type=Path, default=STORED, help="folder of the file that sums up")
    parser.add_argument("--again", action="store_true", help="forget what was found before")
    given = parser.parse_args()
    path = given.out / f"{NAME}.json"
    results = json.loads(path.read_text())["attacks"] if path.exists() and not given.again else {}
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            # What is furthest behind; all go on in turns once the page has what it wants.
            kind = min(given.kinds, key=lambda kind: results.get(kind, {}).get("trials", 0) / KINDS[kind][4])
            place = Path(folder) / KINDS[kind][0]
            place.mkdir(exist_ok=True)
            first = results.get(kind, {}).get("next", 0)
            if given.first is not None and not results.get(kind):
                first = given.first
            start = time.monotonic()
            found, following = piece(kind, place, first, KINDS[kind][3])
            add(results, kind, found, following - first, time.monotonic() - start)
            results[kind]["next"] = following
            store(NAME, {"attacks": results}, given.out)
            print(kind, first, following, dict(found), flush=True)


if __name__ == "__main__":
    main()
