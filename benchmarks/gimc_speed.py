"""An outer step of a learned Fourier map against the same step written with PyTorch's autograd.

Ridge step, gradient, and Armijo search with the same constants, float32, the same number of threads, each
in a process and an environment of its own. PyTorch gets dense labels and features, as such scripts have
them. The growth of memory does not count the arrays that come from the file. Also: the fit with a fixed map
against scikit-learn's RBFSampler with Ridge.

    python -m benchmarks gimc_speed [--size small|medium|large]
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._peers import run_child
from benchmarks._store import if_measured, keep
from papers.display import markdown
from unseen.datasets import load_delicious

CHILD = Path(__file__).parent / "_gimc_child.py"
GAMMA, REG = 0.5, 1.0


def delicious() -> dict[str, Any]:
    X, Y, _, _ = load_delicious().split()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).ravel()
    X = sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ X).astype(np.float32)
    return {**_parts("X", X), **_parts("Y", sparse.csr_array(Y).astype(np.float32))}


def dense_rows(n: int, d: int, n_labels: int) -> dict[str, Any]:
    """Rows of unit length and five labels each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    labels = np.sort((n_labels * rng.random((n, 5)) ** 2).astype(np.int64), axis=1)
    Y = sparse.csr_array(
        (np.ones(5 * n, np.float32), labels.ravel(), np.arange(0, 5 * n + 1, 5)), (n, n_labels)
    )
    Y.sum_duplicates()
    Y.data[:] = 1.0
    return {"X": X, **_parts("Y", Y)}


def _parts(name: str, matrix: Any) -> dict[str, Any]:
    return {
        f"{name}_data": matrix.data,
        f"{name}_indices": matrix.indices,
        f"{name}_indptr": matrix.indptr,
        f"{name}_shape": np.array(matrix.shape),
    }


def speed_table(results: dict[str, Any]) -> str:
    rows = []
    for run in results["runs"]:
        ours, theirs = run["unseen"], run["torch"]
        times = [ours["seconds"], theirs["seconds"]]
        growth = [f"{side['growth_mib']:.0f}" for side in (ours, theirs)]
        ratio = f"{times[1] / times[0]:.1f}"
        rows.append([run["data"], run["m"], *(f"{seconds:.3f}" for seconds in times), ratio, *growth])
    head = ["data", "m", "step, s", "autograd, s", "ratio", "memory, MiB", "autograd, MiB"]
    return markdown(head, rows)


def tables() -> dict[str, str]:
    """What docs/papers/gimc.md shows."""
    return {"speed": if_measured("gimc_speed", speed_table)}


def main(size: str = "large") -> None:
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cases: list[tuple[str, Callable[[], dict[str, Any]], int, int]] = [("delicious", delicious, 100, 6)]
    if size == "small":
        cases = [("2,000 x 50, 300 labels", lambda: dense_rows(2000, 50, 300), 20, 3)]
    elif size == "large":
        cases.append(("delicious", delicious, 500, 5))
        cases.append(("100,000 x 500 dense, 5,000 labels", lambda: dense_rows(100_000, 500, 5000), 200, 3))
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make, m, steps in cases:
            path = Path(folder) / "data.npz"
            np.savez(path, **make())
            request = {
                "data": str(path), "m": m, "steps": steps, "gamma": GAMMA, "reg": REG,
                "n_threads": threads, "repeats": 3,
            }  # fmt: skip
            run: dict[str, Any] = {"data": name, "m": m}
            for library in ("unseen", "torch"):
                run[library] = run_child(library, CHILD, {**request, "kind": library}, n_threads=threads)
                print(name, m, library, run[library], flush=True)
            if "dense" not in name:
                run["fixed"] = run_child("unseen", CHILD, {**request, "kind": "fixed"}, n_threads=threads)
                print(name, m, "fixed", run["fixed"], flush=True)
            runs.append(run)
    print(keep("gimc_speed", {"n_threads": threads, "gamma": GAMMA, "reg": REG, "runs": runs}, size))


if __name__ == "__main__":
    main()
