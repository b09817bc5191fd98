"""Ratings with biases, against cmfrec: time until the test error is as good as cmfrec's best.

Both minimise  1/2 sum (x - mu - b_i - c_j - u_i . v_j)^2 + reg/2 (||U||^2 + ||V||^2 + ||b||^2 + ||c||^2).
Each library's reg is chosen on validation cells taken from the training part, from the same values; then it
is fitted to the whole training part with 1, 2, 3, ... sweeps.

    python -m benchmarks explicit_ratings [--size small|medium|large]
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._peers import run_child
from benchmarks._store import keep
from unseen.datasets import load_ml100k

CHILD = Path(__file__).parent / "_explicit_child.py"
N_THREADS = 2
SYSTEMS = [("unseen", "svd start"), ("unseen", "random start"), ("cmfrec", "cg"), ("cmfrec", "cholesky")]
SLACK = 1.001
"""An error within a thousandth counts as equal."""
RANK, CHOOSE_SWEEPS = 10, 10
REGS = (4.0, 6.0, 9.0, 13.0, 18.0, 25.0)
SWEEPS = (1, 2, 3, 4, 6, 8, 11, 15)


def movielens() -> dict[str, Any]:
    """MovieLens-100K."""
    cells = load_ml100k().observations
    return split(cells.shape, cells.rows, cells.indices, cells.values.astype(np.float32))


def synthetic(n: int, m: int, count: int, rank: int = RANK) -> dict[str, Any]:
    """Ratings with biases, low rank and noise; some columns are popular."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, n, count, dtype=np.int64)
    cols = np.minimum((m * rng.random(count) ** 2).astype(np.int64), m - 1)
    keys = np.unique(rows * m + cols)
    rows, cols = keys // m, keys % m
    left, right = (rng.standard_normal((size, rank)).astype(np.float32) for size in (n, m))
    values = 3.5 + 0.4 * rng.standard_normal(n)[rows] + 0.5 * rng.standard_normal(m)[cols]
    for begin in range(0, len(rows), 1 << 20):
        part = slice(begin, begin + (1 << 20))
        values[part] += 0.2 * np.einsum("ij,ij->i", left[rows[part]], right[cols[part]])
    values += 0.7 * rng.standard_normal(len(rows))
    return split((n, m), rows, cols, values.astype(np.float32))


def split(shape: tuple[int, int], rows: Any, cols: Any, values: Any) -> dict[str, Any]:
    """A tenth of the cells for the test; a tenth of the others for the choice of reg."""
    rng = np.random.default_rng(1)
    kind = np.where(rng.random(len(rows)) < 0.1, 2, np.where(rng.random(len(rows)) < 0.1, 1, 0))
    order = np.argsort(kind, kind="stable")
    names = {"rows": rows, "cols": cols, "values": values}
    return {
        "shape": np.array(shape),
        "ends": np.cumsum(np.bincount(kind, minlength=3)),
        **{name: array[order] for name, array in names.items()},
    }


TASKS: dict[str, list[tuple[str, str, Any, int]]] = {
    "small": [("synthetic 50k", "1,000 x 500, 50,000 ratings", lambda: synthetic(1000, 500, 50_000), 1)],
    "medium": [
        ("movielens", "MovieLens-100K", movielens, 3),
        ("synthetic 1m", "20,000 x 5,000, 1 million ratings", lambda: synthetic(20_000, 5000, 1_000_000), 1),
    ],
    "large": [
        ("movielens", "MovieLens-100K", movielens, 5),
        ("synthetic 1m", "20,000 x 5,000, 1 million ratings", lambda: synthetic(20_000, 5000, 1_000_000), 3),
        (
            "synthetic 5m",
            "60,000 x 20,000, 5 million ratings",
            lambda: synthetic(60_000, 20_000, 5_000_000),
            2,
        ),
    ],
}
"""Key, what the data is, how it is made, and how many times each fit is timed (the quickest counts)."""


def compare(task: dict[str, Any], repeats: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "cells.npz"
        np.savez(data, **task)
        for system, variant in SYSTEMS:
            request = {"data": str(data), "n_threads": N_THREADS, "rank": RANK, "variant": variant}
            request |= {"system": system, "regs": REGS, "sweeps": [CHOOSE_SWEEPS], "repeats": 1}
            choices = run_child(system, CHILD, {**request, "test": False}, n_threads=N_THREADS)["runs"]
            reg = min(choices, key=lambda run: run["rmse"])["reg"]
            request |= {"regs": [reg], "sweeps": SWEEPS, "repeats": repeats, "test": True}
            answer = run_child(system, CHILD, request, n_threads=N_THREADS)
            found[f"{system} {variant}"] = {"reg": reg, "choices": choices, **answer}
    _, n_train, n_all = (int(end) for end in task["ends"])
    sizes = {"shape": task["shape"].tolist(), "cells": n_train, "test": n_all - n_train}
    return {**sizes, "rank": RANK, **summary(found), "systems": found}


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Time of each system to the best error of any other library, and ratios of time and memory."""
    peers = [name for name in found if not name.startswith("unseen")]
    target = SLACK * min(run["rmse"] for name in peers for run in found[name]["runs"])
    seconds = {
        name: min((run["seconds"] for run in answer["runs"] if run["rmse"] <= target), default=None)
        for name, answer in found.items()
    }
    own = [name for name in found if name not in peers]
    ours, theirs = ([s for name in names if (s := seconds[name]) is not None] for names in (own, peers))

    def least(field: str, names: list[str]) -> float:
        return float(min(found[name][field] for name in names))

    memory = {field: least(field, own) / least(field, peers) for field in ("peak_mib", "grown_mib")}
    return {
        "target_rmse": target,
        "seconds": seconds,
        "ratio": min(theirs) / min(ours) if ours else None,
        "memory_ratio": memory["peak_mib"],
        "grown_ratio": memory["grown_mib"],
    }


def main(size: str = "large") -> None:
    results: dict[str, Any] = {"n_threads": N_THREADS, "regs": REGS, "sweeps": SWEEPS, "tasks": {}}
    for key, label, make, repeats in TASKS[size]:
        print(label, flush=True)
        results["tasks"][key] = {"label": label, **compare(make(), repeats)}
        shown = ("target_rmse", "seconds", "ratio", "memory_ratio", "grown_ratio")
        print({name: results["tasks"][key][name] for name in shown}, flush=True)
    print(keep("explicit_ratings", results, size))


if __name__ == "__main__":
    main()
