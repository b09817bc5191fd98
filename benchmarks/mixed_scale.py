"""Time and memory of the convex side-information models at 100,000 x 20,000 with 5 million cells.

Each model runs 30 iterations in a process of its own, so that peak memory is its own. On a smaller
target, where a dense matrix still fits, soft impute by dense decompositions runs beside ours.

    python -m benchmarks mixed_scale

ROWS, COLS and CELLS in the environment change the size, for a try; nothing is stored then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks._store import STORED, if_measured, peak_memory_gib, store
from papers.display import markdown
from unseen import DirtyIMC, Maxide, MixedLinear, Observations, SoftImpute
from unseen.exceptions import ConvergenceWarning

SHAPE = (int(os.environ.get("ROWS", "100000")), int(os.environ.get("COLS", "20000")))
CELLS = int(os.environ.get("CELLS", "5000000"))
WIDTH, RANK, STEPS = 50, 3, 30
SMALL = (2000, 1500, 200_000)


def generate(n: int, m: int, n_cells: int) -> tuple[Observations, np.ndarray, np.ndarray]:
    """Interactions of features, a low-rank rest and noise."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, WIDTH)), rng.standard_normal((m, WIDTH))
    G = np.where(rng.random((WIDTH, WIDTH)) < 0.05, 0.1 * rng.standard_normal((WIDTH, WIDTH)), 0.0)
    U, V = rng.standard_normal((n, RANK)), rng.standard_normal((m, RANK)) / np.sqrt(RANK)
    keys = np.unique(rng.integers(0, n * m, int(1.01 * n_cells)))
    rows, cols = np.divmod(keys, m)
    left, right = np.hstack([X @ G, U]), np.hstack([Y, V])
    values = np.empty(keys.size)
    for part in np.array_split(np.arange(keys.size), 50):
        values[part] = np.einsum("ij,ij->i", left[rows[part]], right[cols[part]])
    values += 0.5 * rng.standard_normal(keys.size)
    return Observations.from_triples(rows, cols, values, shape=(n, m)), X, Y


def models(cells: Observations) -> dict[str, Any]:
    """Penalties half above the norm of a sparse matrix of noise, so that the rank stays that of the truth.

    Just above that norm the singular values crowd at the threshold, and each decomposition takes minutes.
    """
    n, m = cells.shape
    density = cells.nnz / (n * m)
    noise = 1.5 * np.sqrt(density) * (np.sqrt(n) + np.sqrt(m)) * float(cells.values.std())
    common = {"max_iter": STEPS, "tol": 0.0, "n_jobs": 2, "random_state": 0, "center": "none"}
    whole = {"max_rank": None, **common}
    return {
        "MixedLinear soft": MixedLinear(100.0, 100.0 * noise, constraint="soft", rho=100.0, **whole),
        "DirtyIMC": DirtyIMC(10.0, noise, **common),
        "Maxide": Maxide(10.0, **common),
        "SoftImpute": SoftImpute(noise, **whole),
    }


def run(name: str) -> dict[str, Any]:
    warnings.simplefilter("ignore", ConvergenceWarning)
    cells, X, Y = generate(*SHAPE, CELLS)
    before = peak_memory_gib()
    model = models(cells)[name]
    given = {} if name == "SoftImpute" else {"row_features": X, "col_features": Y}
    start = time.perf_counter()
    model.fit(cells, **given)
    return {
        "method": name,
        "n_iter": model.n_iter_,
        "seconds": time.perf_counter() - start,
        "rank": model.history_[-1].get("rank"),
        "largest_rank": max((entry["rank"] for entry in model.history_ if "rank" in entry), default=None),
        "relative_gap": model.certificate_.relative_gap,
        "peak_gib": peak_memory_gib(),
        "peak_gib_of_data": before,
    }


def dense_soft_impute(cells: Observations, reg: float, n_steps: int) -> float:
    """The same steps on a dense matrix: fill in, decompose, shrink. Seconds."""
    start = time.perf_counter()
    current = np.zeros(cells.shape)
    stored = (cells.rows, cells.indices)
    for _ in range(n_steps):
        current[stored] = cells.values
        u, s, vt = np.linalg.svd(current, full_matrices=False)
        current = (u * np.maximum(s - reg, 0.0)) @ vt
    return time.perf_counter() - start


def compare() -> dict[str, Any]:
    cells, _, _ = generate(*SMALL)
    model = models(cells)["SoftImpute"]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(cells)
    ours = time.perf_counter() - start
    steps = 3
    dense = dense_soft_impute(cells, model.reg, steps) / steps * model.n_iter_
    return {"shape": list(SMALL[:2]), "cells": cells.nnz, "rank": model.rank_, "n_iter": model.n_iter_,
            "seconds": ours, "seconds_dense": dense}  # fmt: skip


def scale_table(results: dict[str, Any]) -> str:
    lines = [
        [entry["method"], entry["n_iter"], f"{entry['seconds']:.0f}", f"{entry['peak_gib']:.2f}",
         f"{entry['peak_gib_of_data']:.2f}", entry.get("largest_rank") or "", f"{entry['relative_gap']:.1e}"]
        for entry in results["results"]
    ]  # fmt: skip
    head = ["", "steps", "seconds", "peak GiB", "of it data and libraries", "largest rank", "relative gap"]
    return markdown(head, lines)


def dense_table(results: dict[str, Any]) -> str:
    dense = results["dense"]
    n, m = dense["shape"]
    line = [f"{n} x {m}", f"{dense['cells']:,}", dense["n_iter"], f"{dense['seconds']:.1f}",
            f"{dense['seconds_dense']:.0f}", f"{dense['seconds_dense'] / dense['seconds']:.0f}"]  # fmt: skip
    return markdown(["SoftImpute", "cells", "steps", "seconds", "by dense SVD", "times faster"], [line])


def tables() -> dict[str, str]:
    """What docs/papers/mixed.md shows."""
    makers = {"scale": scale_table, "scale_dense": dense_table}
    return {name: if_measured("mixed_scale", make) for name, make in makers.items()}


def main() -> None:
    if "METHOD" in os.environ:
        print(json.dumps(run(os.environ["METHOD"])))
        return
    size = {"shape": list(SHAPE), "cells": CELLS, "features": WIDTH}
    trial = bool({"ROWS", "COLS", "CELLS"} & set(os.environ))
    path = STORED / "mixed_scale.json"
    stored = json.loads(path.read_text()) if path.exists() and not trial else {}
    table = stored.get("results", [])  # a run that was ended goes on where it was
    for name in ("SoftImpute", "Maxide", "DirtyIMC", "MixedLinear soft"):
        if any(entry["method"] == name for entry in table):
            continue
        ended = subprocess.run(
            [sys.executable, "-m", "benchmarks.mixed_scale"],
            env={**os.environ, "METHOD": name},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        table.append(json.loads(ended.stdout.splitlines()[-1]))
        print(table[-1], flush=True)
        if not trial:
            store("mixed_scale", {"size": size, "results": table})
    dense = compare()
    print(dense, flush=True)
    if not trial:
        store("mixed_scale", {"size": size, "results": table, "dense": dense})


if __name__ == "__main__":
    main()
