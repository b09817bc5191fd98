"""What the library promises, the test of each promise, and what the last stored run found."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import checks, memory
from benchmarks._store import ROOT, STORED, store, stored
from papers.display import markdown
from tests.hostile.__main__ import KINDS

NAME = "promises"
NOT_RUN = "no stored run"


@dataclass(frozen=True)
class Promise:
    """A sentence, the test that would notice if it were broken, and where its figure comes from."""

    text: str
    test: str
    figure: Callable[[], str]


def attacks(kind: str, bad: tuple[str, ...], words: str) -> Callable[[], str]:
    """How many of the trials of a kind went wrong, and how many the page wants."""

    def figure() -> str:
        found = _stored("hostile").get("attacks", {}).get(kind)
        if not found:
            return NOT_RUN
        wrong = sum(found["found"].get(name, 0) for name in bad)
        short = "" if found["trials"] >= KINDS[kind][4] else f" ({KINDS[kind][4]:,} are wanted)"
        return f"{wrong:,} of {found['trials']:,} {words}{short}"

    return figure


def under_load(name: str) -> Callable[[], str]:
    """How often a test passed on a busy machine."""

    def figure() -> str:
        found = _stored("load").get("tests", {}).get(name)
        return f"{found['passed']} of {found['runs']} runs passed" if found else NOT_RUN

    return figure


def release(words: str) -> Callable[[], str]:
    """What the last rehearsal of a release said."""
    return lambda: str(_stored("release").get(words, NOT_RUN))


def _stored(name: str) -> dict[str, Any]:
    return stored(name) if (STORED / f"{name}.json").exists() else {}


def _checks() -> str:
    found = _stored(checks.NAME).get("shares")
    if not found:
        return NOT_RUN
    fits = [shares[1] for name, shares in found.items() if "direct" not in name]
    return f"{100 * max(fits):.2f} % of a fit or of lists at the most"


def _memory() -> str:
    found = _stored(memory.NAME).get("models")
    if not found:
        return NOT_RUN
    ratios = [
        ratio
        for name, entry in found.items()
        for key, ratio in memory.off_by(name, entry).items()
        if key.startswith("checks")
    ]
    return f"{min(ratios):.2f} to {max(ratios):.2f} of what was measured, for {len(found)} formulas"


SIGNALS = ("signals", "failed processes")
PROMISES = {
    "Nothing is lost": [
        Promise(
            "Whoever is killed while saving leaves the old model or the new one",
            "tests/hostile/test_saving.py",
            attacks("kills in save", ("lost", "blocked"), "kills lost a model or blocked the next save"),
        ),
        Promise(
            "The same while a model is updated",
            "tests/hostile/test_attacks.py",
            attacks("kills in update", ("lost",), "kills lost a model"),
        ),
        Promise(
            "A fit that was killed goes on from its checkpoint to the same bits",
            "tests/hostile/test_attacks.py",
            attacks("kills in checkpoints", ("lost",), "kills lost a fit"),
        ),
    ],
    "Nobody is let in": [
        Promise(
            "A damaged model is refused",
            "tests/hostile/test_loading.py",
            attacks(
                "damaged", ("answered", "foreign", "refused in other words", *SIGNALS), "were not refused"
            ),
        ),
        Promise(
            "A forged model, with digests made anew, is refused or answers",
            "tests/hostile/test_loading.py",
            attacks("forged", ("foreign", *SIGNALS), "ended in a crash or a foreign error"),
        ),
        Promise(
            "A damaged checkpoint is refused, or the fit ends in the same bits",
            "tests/hostile/test_attacks.py",
            attacks("damaged checkpoints", ("other bits", "foreign", *SIGNALS), "did otherwise"),
        ),
        Promise(
            "Kernels that are called with anything answer or refuse",
            "tests/hostile/test_calls.py",
            attacks("kernels", ("foreign", *SIGNALS), "calls ended in a crash or a foreign error"),
        ),
        Promise(
            "So do fits to input and settings of any kind",
            "tests/hostile/test_inputs.py",
            attacks("inputs", ("foreign", *SIGNALS), "fits ended in a crash, a foreign error or NaN"),
        ),
        Promise(
            "So do readers of files",
            "tests/hostile/test_attacks.py",
            attacks("readers", ("foreign", *SIGNALS), "files ended in a crash or a foreign error"),
        ),
    ],
    "What is computed is right": [
        Promise(
            "Lists are exact, ties included",
            "tests/hostile/test_attacks.py",
            attacks("lists", ("other lists", *SIGNALS), "lists differ from sorted scores"),
        ),
        Promise(
            "The same bits on 1, 2, 4 and 8 threads, and in whichever Python thread",
            "tests/hostile/test_attacks.py, tests/test_threads.py",
            attacks("bits", ("other bits", *SIGNALS), "models differ"),
        ),
        Promise(
            "Estimators pass scikit-learn's checks; exceptions are listed with their reasons",
            "tests/test_sklearn_checks.py",
            lambda: _stored("sklearn_checks").get("words", NOT_RUN),
        ),
        Promise(
            "`memory_estimate` is within 1.2 of what a fit adds",
            "tests/test_memory_estimate.py",
            _memory,
        ),
    ],
    "It works where it is installed": [
        Promise(
            "A wheel and the source distribution install and work alone",
            "release/try_it.py",
            release("wheel"),
        ),
        Promise("The fast tests pass against the installed wheel", "make release", release("tests")),
        Promise("Checks of the kernels' arguments cost less than 1 %", "benchmarks/checks.py", _checks),
        Promise(
            "A scheduler that goes away ends a fit on Dask with an error, on a busy machine too",
            "tests/distributed/test_dask.py",
            under_load("scheduler"),
        ),
        Promise(
            "A worker that is killed does not change the bits of a fit on Dask",
            "tests/distributed/test_dask.py",
            under_load("worker"),
        ),
    ],
}


def main() -> None:
    """Run scikit-learn's checks and store how many there are."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_sklearn_checks.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    words = done.stdout.strip().splitlines()[-1].split(" in ")[0]
    store("sklearn_checks", {"words": words.replace("xfailed", "expected failures").replace(" warnings", "")})
    print(words)


def tables() -> dict[str, str]:
    """A table for each part of the page."""
    return {f"promises/{part}": _table(promises) for part, promises in PROMISES.items()} | checks.tables()


def _table(promises: list[Promise]) -> str:
    lines = [[promise.text, f"`{promise.test}`", promise.figure()] for promise in promises]
    return markdown(["promise", "its test", "last figure"], lines)
