"""Clusters from known pairs: mushroom, segment and covtype, by learned, random and linear features.

c n distinct pairs are drawn uniformly (n items, c in COUNTS) and answered from the classes. In draw 0 a
second, disjoint set of pairs (a tenth as many, at least n/2) chooses the penalty of each method for that
number of pairs; it serves for all draws, and nothing else is chosen. The error is the share of all pairs of
items that the clusters get wrong (1 - Rand index). IMC-RFF is GIMC with maps held as drawn; both have the
same start and the same number of alternations over W and H. Draws 0..4.

    python -m benchmarks gimc_clustering      writes benchmarks/stored/gimc_clustering.json

The file is written after each draw. A run goes on where the last one with the same settings ended.
"""

from __future__ import annotations

import itertools
import json
import time
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks._store import STORED, store
from unseen import MCCC, GIMCClustering
from unseen.datasets import load_covtype, load_mushroom, load_segment
from unseen.metrics import pair_error

NAME = "gimc_clustering"
COUNTS = (1, 2, 5, 10)
DRAWS = (0, 1, 2, 3, 4)
START, MOVING = 10, 10
SETTINGS: dict[str, Any] = {
    "n_components": 100,
    "start_sweeps": START,
    "max_iter": MOVING,
    "tol": 0.0,
    "n_jobs": 1,
}
REGS = {
    "MCCC": [0.1, 1.0, 10.0, 100.0, 1000.0],
    "IMC-RFF": [0.001, 0.01, 0.1, 1.0, 10.0],
    "GIMC": [0.001, 0.01, 0.1, 1.0, 10.0],
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Items and classes: all of segment, 2,000 random rows of mushroom, 300 of each class of covtype."""
    data = {"mushroom": load_mushroom, "segment": load_segment, "covtype": load_covtype}[name]()
    rng = np.random.default_rng(0)
    if name == "mushroom":
        rows = rng.choice(len(data.y), 2000, replace=False)
    elif name == "covtype":
        rows = np.concatenate([rng.choice(np.flatnonzero(data.y == k), 300, replace=False) for k in range(7)])
    else:
        rows = np.arange(len(data.y))
    rows = np.sort(rows)
    X = data.X[rows]
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64), data.y[rows]


def draw_pairs(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Distinct unordered pairs of different items, uniformly, in random order."""
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < count:
        i, j = rng.integers(0, n, (2, 2 * count))
        fresh = (np.minimum(i, j) * n + np.maximum(i, j))[i != j]
        keys = np.unique(np.r_[keys, fresh])
    keys = rng.permutation(keys)[:count]
    return np.column_stack(np.divmod(keys, n))


def build(method: str, k: int, reg: float, seed: int) -> Any:
    if method == "MCCC":
        return MCCC(k, reg=reg, max_iter=START + MOVING, tol=0.0, random_state=seed, n_jobs=1)
    return GIMCClustering(k, reg=reg, learn_map=method == "GIMC", random_state=seed, **SETTINGS)


def one_draw(
    name: str, X: np.ndarray, y: np.ndarray, count: int, draw: int, chosen: dict[str, float]
) -> list[dict[str, Any]]:
    """Every method on one draw of pairs, with the penalties of draw 0 where they are known."""
    n, k = len(y), int(y.max()) + 1
    n_train, n_valid = count * n, max(count * n // 10, n // 2)
    drawn = draw_pairs(n, n_train + n_valid, np.random.default_rng(100 * draw + count))
    pairs, held = drawn[:n_train], drawn[n_train:]
    same, truth = y[pairs[:, 0]] == y[pairs[:, 1]], y[held[:, 0]] == y[held[:, 1]]
    out = []
    for method, regs in REGS.items():
        tried, began = [], time.perf_counter()
        for reg in [chosen[method]] if method in chosen else regs:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = build(method, k, reg, draw).fit(X, pairs=pairs, same=same)
            wrong = float(np.mean((model.labels_[held[:, 0]] == model.labels_[held[:, 1]]) != truth))
            tried.append((wrong, -reg, pair_error(y, model.labels_), model.history_[-1]["objective"]))
        validation, reg, error, objective = min(tried)
        facts = {"data": name, "n": n, "count": count, "draw": draw, "method": method, "reg": -reg}
        measured = {"error": error, "validation": validation, "objective": objective}
        out.append({**facts, **measured, "time_s": time.perf_counter() - began})
        print(out[-1], flush=True)
    return out


def main() -> None:
    path = STORED / f"{NAME}.json"
    settings = {**SETTINGS, "regs": REGS, "gamma": "median", "standardize": True}
    before = json.loads(path.read_text()) if path.exists() else {}
    runs: list[dict[str, Any]] = before["runs"] if before.get("settings") == settings else []
    done = {(run["data"], run["count"], run["draw"]) for run in runs if run["count"]}
    data = {name: load(name) for name in ("segment", "covtype", "mushroom")}
    for name, (X, y) in data.items():
        if not any(run["data"] == name and run["method"] == "k-means" for run in runs):
            scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
            for draw in DRAWS:
                labels = KMeans(int(y.max()) + 1, n_init=10, random_state=draw).fit_predict(scaled)
                facts = {"data": name, "n": len(y), "count": 0, "draw": draw, "method": "k-means"}
                runs.append({**facts, "error": pair_error(y, labels)})
    for draw, (name, (X, y)), count in itertools.product(DRAWS, data.items(), COUNTS):
        if (name, count, draw) in done:
            continue
        first = [run for run in runs if (run["data"], run["count"], run["draw"]) == (name, count, 0)]
        runs += one_draw(name, X, y, count, draw, {run["method"]: run["reg"] for run in first})
        store(NAME, {"settings": settings, "runs": runs})


if __name__ == "__main__":
    main()
