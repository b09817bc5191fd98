"""A graph of 2 million nodes and 90 million cells: seconds a sweep, memory, and held-out links found."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks._store import peak_memory_gib, store
from unseen import BiasMC, kernels
from unseen.datasets import make_scale_graph

FULL = {"n_nodes": 2_000_000, "mean_degree": 46.0, "rank": 100, "sweeps": 10}
LIST = 100
N_ROWS = 2000


def measure(n_nodes: int, mean_degree: float, rank: int, sweeps: int, solver: str = "ccd") -> dict[str, Any]:
    """Generate, fit and rank in this process, so that its peak memory is that of the whole job."""
    start = time.perf_counter()
    data = make_scale_graph(n_nodes, mean_degree, random_state=0)
    generated = time.perf_counter()
    facts: dict[str, Any] = {
        "n_nodes": n_nodes,
        "cells": data.observations.nnz,
        "held_out": len(data.held_out),
        "rank": rank,
        "solver": solver,
        "generate_s": generated - start,
        "generate_peak_gib": peak_memory_gib(),
    }
    cg = {"cg_steps": 3} if solver == "als" else {}
    model = BiasMC(rank, alpha=0.99, reg=1.0, solver=solver, max_iter=sweeps, tol=0.0, random_state=0, **cg)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.observations)
    seconds = [entry["time_s"] for entry in model.history_]
    facts |= {
        "fit_s": time.perf_counter() - generated,
        "sweep_s": float(np.mean(np.diff(seconds))) if len(seconds) > 1 else seconds[0],
        "sweeps": len(seconds),
        "objective": [entry["objective"] for entry in model.history_],
        "peak_gib": peak_memory_gib(),
    }
    return facts | hit_rates(model, data.observations, data.held_out)


def hit_rates(model: BiasMC, train: Any, held_out: Any) -> dict[str, Any]:
    """Share of held-out links in lists of 100 for some of their nodes, beside the most popular nodes."""
    rng = np.random.default_rng(1)
    ends = np.vstack([held_out, held_out[:, ::-1]]).astype(np.int64)
    rows = np.sort(rng.choice(np.unique(ends[:, 0]), min(N_ROWS, len(np.unique(ends[:, 0]))), replace=False))
    wanted = ends[np.isin(ends[:, 0], rows)]
    start = time.perf_counter()
    ids, _ = model.recommend(rows, LIST, exclude=train)
    listed_s = time.perf_counter() - start
    degrees = np.diff(train.indptr).astype(np.float32)[:, None]
    part = train.csr[rows]
    popular, _ = kernels.topk(
        np.ones((len(rows), 1), dtype=np.float32), degrees, LIST, exclude=(part.indptr, part.indices)
    )

    def share(lists: Any) -> float:
        place = np.searchsorted(rows, wanted[:, 0])
        return float(np.mean((lists[place] == wanted[:, 1:]).any(axis=1)))

    return {
        "list_length": LIST,
        "hit_rate": share(ids),
        "popularity_hit_rate": share(popular),
        "rows_listed": len(rows),
        "list_s": listed_s,
    }


def run(**arguments: Any) -> dict[str, Any]:
    """The same in a process of its own."""
    code = f"import json; from benchmarks.scale import measure; print(json.dumps(measure(**{arguments!r})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    results = {"als": run(**FULL, solver="als")}
    print(json.dumps(results, indent=1))
    print(store("scale", results))


if __name__ == "__main__":
    main()
