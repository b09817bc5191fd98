"""Gibbs sampling beside myFM and smurff: seconds to one error, and effective samples a second.

    python -m benchmarks averaged_peers

Fold u1 of MovieLens-100K, ids alone and with side tables, equal ranks, one thread, processor time; each
library runs one chain, and the best of some burn-ins counts for each. Errors are those of the means that a
library predicts with: of conditional means here, of draws elsewhere; effective samples are those of draws.
The error to reach is the higher of the two after their chains. smurff has no biases.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._peers import run_child
from benchmarks._store import STORED, if_measured, store
from benchmarks.averaged import side_tables
from papers.display import markdown
from unseen.datasets import load_ml100k

THREADS = 1
RANKS = (10, 20)
SWEEPS = 150
SETTLED = 50
"""Sweeps before those whose effective samples are counted."""
BURN_IN = (5, 10, 20, 40, 80)
LIBRARIES = ("unseen", "myfm", "smurff")
SLACK = 0.0005
"""Of the error to reach, so that noise of one chain does not decide."""


def _write(path: Path, *, features: bool) -> None:
    data = load_ml100k()
    held = data.cells["fold"] == 1
    cells = data.observations
    train, test = cells.select(~held), cells.select(held)
    # Indicators alone, which suit all of them: no age and no year as numbers.
    sides = side_tables(data)
    sides["row_features"] = sides["row_features"][:, 1:]
    sides["col_features"] = np.delete(sides["col_features"], data.col_features.shape[1] - 1, axis=1)
    np.savez(
        path,
        rows=train.rows, cols=train.indices, values=train.values, shape=cells.shape,
        test_rows=test.rows, test_cols=test.indices, test_values=test.values,
        **(sides if features else {}),
    )  # fmt: skip


def seconds_to(curves: dict[str, list[list[float]]], error: float) -> float:
    """Seconds after which the mean since one of the burn-ins is this good."""
    there = [seconds for curve in curves.values() for seconds, found in curve if found <= error]
    return min(there, default=float("nan"))


def best(curves: dict[str, list[list[float]]]) -> float:
    """Lowest error at the end of the chain."""
    return min(curve[-1][1] for curve in curves.values())


def main() -> None:
    """Add the runs that are not stored yet."""
    path = STORED / "averaged_peers.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    done = {(run["library"], run["rank"], run["features"]) for run in runs}
    with tempfile.TemporaryDirectory() as folder:
        for features in (False, True):
            cells = Path(folder) / "cells.npz"
            _write(cells, features=features)
            for rank, library in itertools.product(RANKS, LIBRARIES):
                if (library, rank, features) in done:
                    continue
                request = {
                    "library": library, "data": str(cells), "rank": rank, "sweeps": SWEEPS, "seed": 0,
                    "threads": THREADS, "burn_in": BURN_IN, "settled": SETTLED,
                }  # fmt: skip
                script = Path(__file__).parent / "_averaged_child.py"
                found = run_child(library, script, request, n_threads=THREADS)
                runs.append({"library": library, "rank": rank, "features": features, **found})
                print(library, rank, features, best(found["curves"]), found["seconds"], flush=True)
                store("averaged_peers", {"threads": THREADS, "sweeps": SWEEPS, "runs": runs})


def peers_table(results: dict[str, Any]) -> str:
    """A line for each task and library beside ours."""
    lines = []
    for features in (False, True):
        for rank in RANKS:
            runs = [run for run in results["runs"] if (run["rank"], run["features"]) == (rank, features)]
            own = next(run for run in runs if run["library"] == "unseen")
            for run in runs:
                if run is own:
                    continue
                goal = max(best(each["curves"]) for each in (run, own)) + SLACK
                seconds = [seconds_to(each["curves"], goal) for each in (run, own)]
                rates = [each["effective"] / each["seconds_of_them"] for each in (run, own)]
                lines.append(
                    ["with side tables" if features else "ids only", str(rank), run["library"],
                     f"{best(run['curves']):.4f}", f"{best(own['curves']):.4f}", f"{seconds[0]:.2f}",
                     f"{seconds[1]:.2f}", f"**{seconds[0] / seconds[1]:.1f}**", f"{rates[0]:.1f}",
                     f"{rates[1]:.1f}", f"**{rates[1] / rates[0]:.1f}**"]
                )  # fmt: skip
    head = ["task", "rank", "beside", "its RMSE", "ours", "its seconds to the higher", "ours", "times ours"]
    return markdown([*head, "its effective samples a second", "ours", "times its"], lines)


def tables() -> dict[str, str]:
    """What docs/guide/averaging.md shows."""
    return {"averaged-peers": if_measured("averaged_peers", peers_table)}


if __name__ == "__main__":
    main()
