"""Training and prediction times: ExMLDS against SLEEC, omikuji and napkinXC, and a large synthetic set.

python -m benchmarks exmlds_speed [--size small|medium|large]
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._peers import run_child
from benchmarks._store import ROOT, if_measured, keep, peak_memory_gib
from papers.catalogue import EXPERIMENTS
from papers.display import markdown
from papers.experiment import grouped
from papers.runner import read
from unseen import ExMLDS
from unseen.data import write_extreme
from unseen.datasets import load_bibtex, load_delicious
from unseen.metrics import precision_at_k

CHILD = Path(__file__).parent / "_exmlds_child.py"
N_THREADS = 2
REPEATS = 3
FEWER = {"n_components": 50}
"""Half of the dimensions: less accurate and quicker, nothing chosen."""


def chosen(data: str, method: str) -> dict[str, Any]:
    """Settings that validation rows chose in the experiment exmlds-labels; defaults where it has not run."""
    rows = read(EXPERIMENTS["exmlds-labels"], ROOT / "docs" / "results").rows
    wanted = {"kind": "test", "data": data, "method": method}
    settings = [row["setting"] for row in rows if wanted.items() <= row.items()]
    if not settings:
        print(f"no settings of {method} for {data} are stored; its defaults are used")
    return settings[0] if settings else {}


def generated() -> tuple[Any, Any, Any, Any]:
    """A small set, so that the script can be tried without data."""
    X, Y = power_law_labels(1500, 800, 60)
    return X[:1000], Y[:1000], X[1000:], Y[1000:]


def data_sets(size: str) -> dict[str, tuple[Any, ...]]:
    if size == "small":
        return {"generated": generated()}
    sets = {"Bibtex": tuple(load_bibtex().split("repository0"))}
    return sets if size == "medium" else {**sets, "Delicious": tuple(load_delicious().split(None))}


def compare(sets: dict[str, tuple[Any, ...]], repeats: int) -> list[dict[str, Any]]:
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (X, Y, X_test, Y_test) in sets.items():
            train, test = Path(folder) / f"{name}-train.txt", Path(folder) / f"{name}-test.txt"
            write_extreme(train, X, Y)
            write_extreme(test, X_test, Y_test)
            known = "Bibtex" if name == "generated" else name
            weighted = chosen(known, "ExMLDS1, weighted votes")
            systems = [
                ("unseen", "ExMLDS", "ExMLDS1", chosen(known, "ExMLDS1")),
                ("unseen", "ExMLDS", "ExMLDS1, weighted votes", weighted),
                ("unseen", "ExMLDS", "ExMLDS1, weighted votes, 50 dimensions", {**weighted, **FEWER}),
                ("omikuji", "", "omikuji", {}),
                ("napkinxc", "", "napkinXC", {}),
            ]
            if name != "Delicious":  # minutes for each fit
                systems.append(("unseen", "SLEEC", "SLEEC", chosen(known, "SLEEC")))
            for system, estimator, label, setting in systems:
                request = {
                    "system": system,
                    "estimator": estimator,
                    "setting": setting,
                    "train": str(train),
                    "test": str(test),
                    "n_features": X.shape[1],
                    "n_threads": N_THREADS,
                }
                for repeat in range(repeats):
                    answer = run_child(system, CHILD, request, n_threads=N_THREADS)
                    runs.append({"data": name, "method": label, "repeat": repeat, **answer})
                    times = f"fit {answer['fit_s']:7.2f} s  predict {answer['predict_s']:6.2f} s"
                    print(f"{name:10s} {label:26s} {times}  P@1 {answer['precision'][0]:.2f}", flush=True)
    return runs


def power_law_labels(n_rows: int, n_features: int, n_labels: int, *, seed: int = 0) -> tuple[Any, Any]:
    """Rows with about five labels of power-law popularity; each label has words that its rows use."""
    rng = np.random.default_rng(seed)
    popularity = np.arange(1, n_labels + 1) ** -0.7
    cut = np.cumsum(popularity / popularity.sum())
    # Labels come in families: the first is drawn by popularity, the others near it.
    first = np.searchsorted(cut, rng.random(n_rows))
    spread = rng.integers(-8, 9, (n_rows, 4))
    labels = np.clip(np.column_stack([first, first[:, None] + spread]), 0, n_labels - 1)
    Y = sparse.csr_array(
        (np.ones(labels.size, np.float32), labels.ravel(), np.arange(0, labels.size + 1, 5)),
        shape=(n_rows, n_labels),
    )
    Y.sum_duplicates()
    Y.data[:] = 1.0
    words = rng.integers(0, n_features, (n_labels, 12))
    used = words[labels, rng.integers(0, 12, (n_rows, 5, 8)).transpose(2, 0, 1)].transpose(1, 0, 2)
    noise = rng.integers(0, n_features, (n_rows, 10))
    columns = np.concatenate([used.reshape(n_rows, -1), noise], axis=1)
    X = sparse.csr_array(
        (np.ones(columns.size, np.float32), columns.ravel(), np.arange(n_rows + 1) * columns.shape[1]),
        shape=(n_rows, n_features),
    )
    X.sum_duplicates()
    return X, Y


def large(n_rows: int, n_features: int, n_labels: int, n_clusters: int) -> dict[str, Any]:
    n_test = n_rows // 20
    X, Y = power_law_labels(n_rows + n_test, n_features, n_labels)
    settings = {
        "n_components": 64,
        "n_neighbors": 50,
        "k": 10,
        "neighbor_power": 4.0,
        "n_clusters": n_clusters,
    }
    start = time.perf_counter()
    model = ExMLDS(random_state=0, n_jobs=N_THREADS, **settings).fit(X[:n_rows], Y[:n_rows])
    middle = time.perf_counter()
    ids, _ = model.predict_topk(X[n_rows:], 5)
    end = time.perf_counter()
    order = np.argsort(-np.bincount(Y[:n_rows].indices, minlength=n_labels), kind="stable")
    frequent = np.tile(order[:5], (n_test, 1))
    return {
        "n_rows": n_rows,
        "n_features": n_features,
        "n_labels": n_labels,
        "n_positives": int(Y[:n_rows].nnz),
        "n_test": n_test,
        "settings": settings,
        "fit_s": middle - start,
        "predict_s": end - middle,
        "peak_gib": peak_memory_gib(),
        "precision": [100 * precision_at_k(Y[n_rows:], ids, k) for k in (1, 3, 5)],
        "precision_of_frequent_labels": [100 * precision_at_k(Y[n_rows:], frequent, k) for k in (1, 3, 5)],
    }


LARGE = {
    "small": (4000, 5000, 1000, 2),
    "medium": (20_000, 20_000, 5000, 10),
    "large": (200_000, 100_000, 50_000, 100),
}
"""Rows, features, labels and clusters of the generated set."""


def speed_table(results: dict[str, Any]) -> str:
    """Times beside those of other libraries."""
    rows = []
    for (name, method), group in grouped(results["runs"], "data", "method").items():
        fit, predict = (median(run[key] for run in group) for key in ("fit_s", "predict_s"))
        peak = median(run["memory_mib"] for run in group)
        times = [f"{fit:.2f}", f"{predict:.2f}", f"{peak:.0f}"]
        rows.append([name, method, *times, f"{group[0]['precision'][0]:.2f}"])
    return markdown(["data", "method", "fit, s", "predict, s", "peak, MiB", "P@1"], rows)


def large_table(results: dict[str, Any]) -> str:
    """The generated set."""
    run = results["large"]
    sizes = [f"{run[key]:,}" for key in ("n_rows", "n_features", "n_labels", "n_positives")]
    times = [f"{run['fit_s']:.0f}", f"{run['predict_s']:.0f}", f"{run['peak_gib']:.1f}"]
    head = ["rows", "features", "labels", "positives", "fit, s", "predict, s", "peak, GiB", "P@1"]
    found = [f"{run[key][0]:.1f}" for key in ("precision", "precision_of_frequent_labels")]
    return markdown([*head, "P@1 of the frequent"], [[*sizes, *times, *found]])


def tables() -> dict[str, str]:
    """What docs/papers/exmlds.md shows."""
    makers = {"speed": speed_table, "large": large_table}
    return {name: if_measured("exmlds_speed", make) for name, make in makers.items()}


def main(size: str = "large") -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scale = large(*LARGE[size])
        print(scale, flush=True)
        runs = compare(data_sets(size), REPEATS if size == "large" else 1)
    print(keep("exmlds_speed", {"n_threads": N_THREADS, "runs": runs, "large": scale}, size))


if __name__ == "__main__":
    main()
