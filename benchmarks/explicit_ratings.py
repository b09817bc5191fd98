"""Ratings, against cmfrec: seconds of a fit with biases until the test error is as good as cmfrec's best."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._peers import run_child
from benchmarks._store import store
from unseen.datasets import load_ml100k

CHILD = Path(__file__).parent / "_explicit_child.py"
N_THREADS = 2
SLACK = 1.001
"""An error within a thousandth counts as equal."""


def movielens() -> dict[str, Any]:
    """MovieLens-100K, a tenth of the ratings for the test, rank 10."""
    cells = load_ml100k().observations
    parts = split(cells.rows, cells.indices, cells.values.astype(np.float32), np.random.default_rng(0))
    settings = [{"rank": 10, "reg": reg, "sweeps": n} for reg in (3.0, 7.0, 12.0) for n in (2, 4, 8, 15)]
    return {"shape": cells.shape, **parts, "settings": settings}


def synthetic() -> dict[str, Any]:
    """60,000 x 20,000, 5 million ratings with biases, rank 10 and noise; a tenth for the test."""
    rng = np.random.default_rng(0)
    n, m, count, rank = 60_000, 20_000, 5_000_000, 10
    rows = rng.integers(0, n, count, dtype=np.int64)
    cols = np.minimum((m * rng.random(count) ** 2).astype(np.int64), m - 1)  # some columns are popular
    keys = np.unique(rows * m + cols)
    rows, cols = keys // m, keys % m
    left, right = (rng.standard_normal((size, rank)).astype(np.float32) for size in (n, m))
    values = 3.5 + 0.4 * rng.standard_normal(n)[rows] + 0.5 * rng.standard_normal(m)[cols]
    for begin in range(0, len(rows), 1 << 20):
        part = slice(begin, begin + (1 << 20))
        values[part] += 0.2 * np.einsum("ij,ij->i", left[rows[part]], right[cols[part]])
    values += 0.7 * rng.standard_normal(len(rows))
    parts = split(rows, cols, values.astype(np.float32), rng)
    settings = [{"rank": 10, "reg": reg, "sweeps": n} for reg in (3.0, 6.0) for n in (2, 4, 8)]
    return {"shape": (n, m), **parts, "settings": settings}


def split(rows: Any, cols: Any, values: Any, rng: np.random.Generator) -> dict[str, Any]:
    test = rng.random(len(rows)) < 0.1
    return {
        f"{part}_{name}": array[mask]
        for part, mask in (("train", ~test), ("test", test))
        for name, array in (("rows", rows), ("cols", cols), ("values", values))
    }


def compare(task: dict[str, Any]) -> dict[str, Any]:
    settings = task.pop("settings")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "cells.npz"
        np.savez(data, **task)
        request = {"data": str(data), "n_threads": N_THREADS, "settings": settings}
        found = {
            system: run_child(system, CHILD, {**request, "system": system}, n_threads=N_THREADS)
            for system in ("unseen", "cmfrec")
        }
    target = SLACK * min(run["rmse"] for run in found["cmfrec"]["runs"])
    seconds = {
        system: min((run["seconds"] for run in answer["runs"] if run["rmse"] <= target), default=None)
        for system, answer in found.items()
    }
    ratio = seconds["cmfrec"] / seconds["unseen"] if seconds["unseen"] else None
    best = {system: min(run["rmse"] for run in answer["runs"]) for system, answer in found.items()}
    facts = {"shape": task["shape"], "cells": len(task["train_rows"]), "target_rmse": target}
    memory = {system: answer["peak_mib"] for system, answer in found.items()}
    runs = {system: answer["runs"] for system, answer in found.items()}
    return {**facts, "seconds": seconds, "ratio": ratio, "best_rmse": best, "peak_mib": memory, "runs": runs}


def main() -> None:
    results = {}
    for task in (movielens, synthetic):
        print(task.__doc__)
        results[task.__name__] = compare(task())
        print({key: value for key, value in results[task.__name__].items() if key != "runs"}, flush=True)
    print(store("explicit_ratings", results))


if __name__ == "__main__":
    main()
