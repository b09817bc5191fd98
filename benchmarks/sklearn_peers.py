"""Against scikit-learn: non-negative factors of a sparse matrix, and one linear classifier for each label.

NMF: both minimise 1/2 ||X - W H'||_F^2 over W, H >= 0, with blanks as zeros; time to the same objective.
One-vs-rest: both minimise 1/2 (||w||^2 + b^2) + C sum max(0, 1 - t (w . x + b))^2 for each label on rows of
length one, with the same C and tolerance; seconds of the fit, and P@1 to see that the classifiers are alike.

    python -m benchmarks sklearn_peers [--size small|medium|large]
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._peers import run_child
from benchmarks._store import keep
from benchmarks.exmlds_speed import power_law_labels
from unseen.datasets import load_bibtex, load_ca_hepph, make_power_law

CHILD = Path(__file__).parent / "_sklearn_child.py"
N_THREADS = 2
SLACKS = (0.02, 0.01, 0.005)


def power_law(n: int, m: int, count: int) -> Any:
    """Cells of a power-law pattern with values between 1 and 2."""
    cells = sparse.csr_array(make_power_law(n, m, count, exponent=0.8, random_state=0).observations.csr)
    cells.data = (1.0 + np.random.default_rng(0).random(cells.nnz)).astype(np.float32)
    return cells


def hepph() -> Any:
    """The collaboration graph ca-HepPh."""
    return sparse.csr_array(load_ca_hepph().observations.csr).astype(np.float32)


def bibtex() -> tuple[Any, ...]:
    """Bibtex, the first split of the repository."""
    return tuple(load_bibtex().split("repository0"))


def generated_labels() -> tuple[Any, ...]:
    """Rows whose labels have words of their own."""
    X, Y = power_law_labels(1500, 800, 40)
    return X[:1000], Y[:1000], X[1000:], Y[1000:]


FACTORS: dict[str, list[tuple[str, Any, int, int]]] = {
    "small": [("1,000 x 800, 20,000 draws", lambda: power_law(1000, 800, 20_000), 8, 20)],
    "medium": [("ca-HepPh", hepph, 20, 60)],
    "large": [
        ("ca-HepPh", hepph, 20, 100),
        ("50,000 x 20,000, 2 million draws", lambda: power_law(50_000, 20_000, 2_000_000), 20, 60),
    ],
}
"""Name, matrix, rank and sweeps."""
LABELS: dict[str, tuple[str, Any]] = {
    "small": ("generated, 40 labels", generated_labels),
    "medium": ("Bibtex", bibtex),
    "large": ("Bibtex", bibtex),
}


def parts(name: str, matrix: Any) -> dict[str, Any]:
    matrix = sparse.csr_array(matrix).astype(np.float32)
    indices, indptr = (array.astype(np.int32) for array in (matrix.indices, matrix.indptr))
    arrays = {"data": matrix.data, "indices": indices, "indptr": indptr}
    return {f"{name}_{key}": array for key, array in arrays.items()} | {
        f"{name}_shape": np.array(matrix.shape)
    }


def run_both(arrays: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **arrays)
        given = {**request, "data": str(path), "n_threads": N_THREADS}
        return {
            system: run_child(system, CHILD, {**given, "system": system}, n_threads=N_THREADS)
            for system in ("unseen", "sklearn")
        }


def factors(matrix: Any, rank: int, sweeps: int) -> dict[str, Any]:
    runs = run_both(parts("X", matrix), {"task": "nmf", "rank": rank, "sweeps": sweeps})
    best = min(min(run["objective"]) for run in runs.values())
    times = {
        f"{slack:.1%}": {name: time_to(run, (1 + slack) * best) for name, run in runs.items()}
        for slack in SLACKS
    }
    ratios = {
        slack: found["sklearn"] / found["unseen"] if found["sklearn"] and found["unseen"] else None
        for slack, found in times.items()
    }
    facts = {"shape": list(matrix.shape), "cells": int(matrix.nnz), "rank": rank}
    return {**facts, "best_objective": best, "time_to": times, "ratio": ratios, "runs": runs}


def time_to(run: dict[str, Any], objective: float) -> float | None:
    reached = [s for s, value in zip(run["seconds"], run["objective"], strict=True) if value <= objective]
    return min(reached, default=None)


def labels(X: Any, Y: Any, X_test: Any, Y_test: Any) -> dict[str, Any]:
    named = {"X": X, "Y": Y, "X_test": X_test, "Y_test": Y_test}
    arrays = {key: array for name, matrix in named.items() for key, array in parts(name, matrix).items()}
    runs = run_both(arrays, {"task": "labels", "C": 1.0, "tol": 1e-2, "repeats": 2})
    ratio = runs["sklearn"]["fit_s"] / runs["unseen"]["fit_s"]
    return {"shape": list(X.shape), "n_labels": Y.shape[1], "ratio": ratio, "runs": runs}


def main(size: str = "large") -> None:
    results: dict[str, Any] = {"n_threads": N_THREADS, "nmf": {}, "labels": {}}
    for label, make, rank, sweeps in FACTORS[size]:
        results["nmf"][label] = factors(make(), rank, sweeps)
        print(label, results["nmf"][label]["time_to"], results["nmf"][label]["ratio"], flush=True)
    label, read = LABELS[size]
    results["labels"][label] = labels(*read())
    print(label, results["labels"][label], flush=True)
    print(keep("sklearn_peers", results, size))


if __name__ == "__main__":
    main()
