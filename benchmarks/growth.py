"""Seconds of a sweep against the number of cells: cost grows with the cells, not with rows x columns.

python -m benchmarks growth [--size small|medium|large]
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from typing import Any

import numpy as np

from benchmarks._store import keep, peak_memory_gib
from unseen import BiasMC
from unseen.datasets import make_scale_graph

MILLIONS: dict[str, tuple[float, ...]] = {
    "small": (0.1, 0.3, 1),
    "medium": (1, 3, 10),
    "large": (1, 3, 10, 25, 50),
}
RANK, SWEEPS, DEGREE = 32, 5, 20.0
ROUNDS = 3
"""All sizes are measured so often in turn: a slow minute of the machine is not taken for growth."""


def measure(millions: float) -> dict[str, Any]:
    """Fit a graph with about so many million cells; rows grow with the cells."""
    data = make_scale_graph(int(millions * 1e6 / DEGREE), DEGREE, random_state=0)
    model = BiasMC(RANK, alpha=0.99, reg=1.0, cg_steps=3, max_iter=SWEEPS, tol=0.0, random_state=0, n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.observations)
    sweeps = np.diff([entry["time_s"] for entry in model.history_])
    return {
        "cells": data.observations.nnz,
        "sweep_s": float(min(sweeps)),
        "peak_gib": peak_memory_gib(),
    }


def main(size: str = "large") -> None:
    rounds: list[list[dict[str, Any]]] = []
    for _ in range(ROUNDS):
        rounds.append([])
        for millions in MILLIONS[size]:
            code = (
                f"import json; from benchmarks.growth import measure; print(json.dumps(measure({millions})))"
            )
            done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            rounds[-1].append(row | {"microseconds_a_cell": 1e6 * row["sweep_s"] / row["cells"]})
            print(rounds[-1][-1], flush=True)
    rows = [min(same, key=lambda row: float(row["sweep_s"])) for same in zip(*rounds, strict=True)]
    print(keep("growth", {"rank": RANK, "rounds": ROUNDS, "rows": rows}, size))


if __name__ == "__main__":
    main()
