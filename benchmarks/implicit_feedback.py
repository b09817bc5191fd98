"""Positives only, against implicit, irspack and cmfrec: time to the same objective, memory, ranking.

python -m benchmarks implicit_feedback [--size small|medium|large]
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._peers import run_child
from benchmarks._store import keep
from unseen.datasets import load_ca_hepph, make_power_law

CHILD = Path(__file__).parent / "_implicit_child.py"
SYSTEMS = [
    ("unseen", "cg"),
    ("unseen", "cg 2 steps"),
    ("unseen", "cholesky"),
    ("implicit", "cg"),
    ("implicit", "cholesky"),
    ("irspack", "cg"),
    ("irspack", "cholesky"),
    ("irspack", "ials++"),
    ("cmfrec", "cg"),
]
N_THREADS = 2


def power_law() -> dict[str, Any]:
    """200,000 x 50,000, 5 million draws, rank 64."""
    cells = make_power_law(200_000, 50_000, 5_000_000, exponent=0.8, random_state=0).observations.csr
    return {"matrix": cells, "rank": 64, "alpha": 0.95, "lam": 1.0, "n_sweeps": 12, "n_ranked": 20_000}


def hepph() -> dict[str, Any]:
    """ca-HepPh, rank 50."""
    cells = sparse.csr_array(load_ca_hepph().observations.csr)
    n_ranked = cells.shape[0]
    return {"matrix": cells, "rank": 50, "alpha": 0.95, "lam": 1.0, "n_sweeps": 15, "n_ranked": n_ranked}


def few() -> dict[str, Any]:
    """3,000 x 2,000, 60,000 draws, rank 16."""
    cells = make_power_law(3000, 2000, 60_000, exponent=0.8, random_state=0).observations.csr
    return {"matrix": cells, "rank": 16, "alpha": 0.95, "lam": 1.0, "n_sweeps": 6, "n_ranked": 500}


TASKS = {"small": [few], "medium": [hepph], "large": [hepph, power_law]}


def compare(task: dict[str, Any]) -> dict[str, Any]:
    """Run all systems on one matrix, one after the other, on the same threads."""
    matrix = task.pop("matrix")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "cells.npz"
        np.savez(data, indptr=matrix.indptr, indices=matrix.indices, shape=np.array(matrix.shape))
        runs = {}
        for system, variant in SYSTEMS:
            request = {
                **task,
                "system": system,
                "variant": variant,
                "data": str(data),
                "n_threads": N_THREADS,
            }
            if system == "cmfrec" or (system != "unseen" and variant != "cg"):
                request["n_sweeps"] = min(task["n_sweeps"], 5)  # slower by far: a few sweeps show it
            runs[f"{system} {variant}"] = run_child(system, CHILD, request, n_threads=N_THREADS)
            print(f"  {system} {variant}: {runs[f'{system} {variant}']['seconds'][-1]:.2f} s", flush=True)
    return {"shape": matrix.shape, "cells": int(matrix.nnz), **task, **summary(runs), "runs": runs}


def summary(runs: dict[str, Any]) -> dict[str, Any]:
    """Seconds until within a share of the best objective that anyone reached, and ratios."""
    best = min(min(run["objective"]) for run in runs.values())
    out: dict[str, Any] = {"best_objective": best, "time_to": {}, "ratio": {}}
    for slack in (0.02, 0.01, 0.005, 0.002):
        times = {name: time_to(run, best * (1 + slack)) for name, run in runs.items()}
        ours = min((t for name, t in times.items() if name.startswith("unseen") and t), default=None)
        peers = [t for name, t in times.items() if not name.startswith("unseen") and t]
        out["time_to"][f"{slack:.1%}"] = times
        out["ratio"][f"{slack:.1%}"] = min(peers) / ours if ours and peers else None
    out["peak_mib"] = {name: run["peak_mib"] for name, run in runs.items()}
    out["rank_seconds"] = {n: run["rank_seconds"] for n, run in runs.items() if "rank_seconds" in run}
    ranked = out["rank_seconds"]
    out["rank_ratio"] = min(v for n, v in ranked.items() if n.startswith("implicit")) / min(
        v for n, v in ranked.items() if n.startswith("unseen")
    )
    return out


def time_to(run: dict[str, Any], objective: float) -> float | None:
    """Seconds of the first sweep at or below an objective."""
    for seconds, value in zip(run["seconds"], run["objective"], strict=True):
        if value <= objective:
            return float(seconds)
    return None


def main(size: str = "large") -> None:
    results = {}
    for task in TASKS[size]:
        print(task.__doc__)
        results[task.__name__] = compare(task())
        for key in ("time_to", "ratio", "peak_mib", "rank_seconds", "rank_ratio"):
            print(f"  {key}: {results[task.__name__][key]}")
    print(keep("implicit_feedback", results, size))


if __name__ == "__main__":
    main()
