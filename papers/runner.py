"""Run experiments part by part; a run that was ended goes on where it was."""

from __future__ import annotations

import json
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from papers.display import Table
from papers.experiment import Claim, Experiment, Figure, Row
from unseen import __version__, kernels
from unseen.cli.sinks import replacing
from unseen.exceptions import DownloadError

__all__ = ["PACKAGES", "Outcome", "read", "run", "surroundings", "told", "write"]

PACKAGES = ("numpy", "scipy", "scikit-learn")
"""Of which results hold the versions."""


@dataclass(frozen=True)
class Outcome:
    """A finished experiment."""

    experiment: Experiment
    rows: list[Row]
    seconds: float | None
    """None where some part was run without a clock."""
    quick: bool
    missing: str | None = None
    """Why there are no rows."""

    def tables(self) -> dict[str, Table]:
        """Tables by name."""
        return {} if self.missing else self.experiment.tables(self.rows)

    def claims(self) -> list[Claim]:
        """What the run says about the paper's claims."""
        if self.missing:
            return [Claim.untested(self.experiment.shows, self.missing)]
        return self.experiment.claims(self.rows)

    def figures(self) -> list[Figure]:
        """Drawn figures."""
        return [] if self.missing else self.experiment.figures(self.rows)

    def time(self) -> str:
        """How long it took, in words."""
        return told(self.seconds)


def told(seconds: float | None) -> str:
    """A time in words.

    Examples
    --------
    >>> told(12.3), told(300.0), told(None)
    ('12 s', '5 min', 'not recorded')
    """
    if seconds is None:
        return "not recorded"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def surroundings(*packages: str) -> dict[str, Any]:
    """Versions of this library and of packages, and the machine, as far as a reader needs them."""
    return {
        "unseen": __version__,
        **{package: version(package) for package in packages},
        "python": platform.python_version(),
        "kernels": kernels.provider(),
        "isa": kernels.isa(),
    }


def write(path: Path, content: str | dict[str, Any]) -> None:
    """Write text or JSON in one step, so that an interrupted run leaves the last whole file."""
    text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def run(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    fresh: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Outcome:
    """Run what is not there yet and write ``NAME.json`` and a CSV file for each table.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    folder : Path
        Where results are kept; parts that are found there are not run again.
    quick : bool, default=False
        Smaller sizes and fewer repetitions.
    fresh : bool, default=False
        Run everything again.
    progress : callable, optional
        Called with the name of a part, its number and how many there are.

    Returns
    -------
    Outcome
        Rows of all parts.
    """
    path = folder / f"{experiment.name}.json"
    stored = None if fresh or not path.exists() else json.loads(path.read_text(encoding="utf-8"))
    if stored is None or stored["quick"] != quick:
        stored = {"experiment": experiment.name, "quick": quick, "seconds": 0.0, "units": {}}
    units = list(experiment.units(quick))
    for number, unit in enumerate(units):
        if progress is not None:
            progress(unit.key, number, len(units))
        if unit.key in stored["units"]:
            continue
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # settings that are tried may fail to settle
                rows = unit.run(*(stored["units"][key] for key in unit.needs))
        except DownloadError as error:
            return Outcome(experiment, [], 0.0, quick, f"the data are not here: {error}")
        if stored["seconds"] is not None:
            stored["seconds"] += time.perf_counter() - start
        stored["units"][unit.key] = rows
        stored["surroundings"] = surroundings(*PACKAGES)
        write(path, stored)
    outcome = _outcome(experiment, stored)
    for name, table in outcome.tables().items():
        write(folder / f"{experiment.name}-{_plain(name)}.csv", table.csv())
    return outcome


def read(experiment: Experiment, folder: Path) -> Outcome:
    """The outcome of an earlier run."""
    path = folder / f"{experiment.name}.json"
    return _outcome(experiment, json.loads(path.read_text(encoding="utf-8")))


def _outcome(experiment: Experiment, stored: dict[str, Any]) -> Outcome:
    # In the order of the parts, whichever ran first; parts that are no longer known are left out.
    parts = (stored["units"].get(unit.key, []) for unit in experiment.units(stored["quick"]))
    rows = [row for part in parts for row in part]
    return Outcome(experiment, rows, stored["seconds"], stored["quick"])


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-")
