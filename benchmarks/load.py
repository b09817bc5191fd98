"""Tests of Dask that depend on time, again and again on a machine that is made busy.

``python -m benchmarks load`` runs each of them in ten processes at once, which are each other's load. What
was run before is added to.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from benchmarks._store import STORED, store, stored

NAME = "load"
AT_ONCE = 10
EACH = 5
FILE = "tests/distributed/test_dask.py"
TESTS = {
    "scheduler": f"{FILE}::test_a_scheduler_that_goes_away_ends_the_fit",
    "worker": f"{FILE}::test_processes_a_killed_worker_and_one_without_the_package",
}
AGAIN = """
import sys, pytest
passed = 0
for _ in range(int(sys.argv[2])):
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "--tb=short", sys.argv[1]])
    passed += code == 0
    print("PASSED" if code == 0 else "FAILED", flush=True)
"""


def runs(test: str) -> tuple[int, list[str], float]:
    """How many runs passed, what the others said, and the load meanwhile."""
    command = [sys.executable, "-W", "ignore", "-c", AGAIN, test, str(EACH)]
    several = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(AT_ONCE)
    ]
    outputs = [process.communicate()[0] for process in several]
    lines = [line for output in outputs for line in output.splitlines()]
    failed = [output[-3000:] for output in outputs if output.count("PASSED\n") < EACH]
    return sum(line.endswith("PASSED") for line in lines), failed, os.getloadavg()[0]


def main() -> None:
    """Run and store."""
    known: dict[str, Any] = stored(NAME)["tests"] if (STORED / f"{NAME}.json").exists() else {}
    for name in [name for name in sys.argv[2:] if name in TESTS] or list(TESTS):
        passed, failed, load = runs(TESTS[name])
        entry = known.setdefault(name, {"passed": 0, "runs": 0, "failed": [], "load": []})
        entry["passed"] += passed
        entry["runs"] += AT_ONCE * EACH
        entry["failed"] += failed
        entry["load"].append(round(load, 1))
        store(NAME, {"tests": known})
        print(name, entry["passed"], "of", entry["runs"], "load", load, *failed, flush=True)


if __name__ == "__main__":
    main()
