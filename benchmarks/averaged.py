"""BayesianMF on MovieLens-100K: errors, coverage of intervals, and whether deviations tell where errors are.

    python -m benchmarks averaged

The published folds of MovieLens-100K. Rank, precision, sweeps and the use of histories on both sides were
chosen on fold 2 with folds 1 and 2 left out of training. Runs what is not stored yet; ``SEEDS=n`` in the
environment for n seeds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks._store import STORED, if_measured, store
from papers.display import markdown
from unseen import BayesianMF, Observations
from unseen.datasets import load_ml100k

SETTINGS: dict[str, Any] = {
    "rank": 20, "n_samples": 150, "burn_in": 50, "thin": 2, "precision": "diagonal", "clip": (1.0, 5.0),
}  # fmt: skip
VARIANTS: dict[str, tuple[bool, bool, str]] = {
    "ids only": (False, False, "gaussian"),
    "with histories": (True, False, "gaussian"),
    "with histories and side tables": (True, True, "gaussian"),
    "the same, ordinal": (True, True, "ordinal"),
}
"""Histories, side tables, likelihood."""
LEVELS = (0.5, 0.8, 0.9, 0.95)
FOLDS = (1, 2, 3, 4, 5)


def side_tables(data: Any) -> dict[str, Any]:
    """Side features, age by tens and year by fives as indicators beside."""
    sides = {}
    for side, place, step in (("row", 0, 10), ("col", -1, 5)):
        features = getattr(data, f"{side}_features")
        steps = features[:, place] // step
        sides[f"{side}_features"] = np.hstack([features, steps[:, None] == np.unique(steps)])
    return sides


def judged(model: BayesianMF, train: Observations, test: Observations, **features: Any) -> dict[str, Any]:
    """One fit, and what it says of held-out cells."""
    rows, cols, values = test.rows, test.indices, test.values
    start = time.perf_counter(), time.process_time()
    model.fit(train, **features)
    spent = time.perf_counter() - start[0], time.process_time() - start[1]
    prediction, std = model.predict_entries(rows, cols, return_std=True, positions=True)
    away = np.abs(values - prediction)
    cover = {}
    for level in LEVELS:
        low, high = model.predict_interval(rows, cols, level, positions=True).T
        cover[str(level)] = float(np.mean((low <= values) & (values <= high)))
    last = model.history_[-1]
    return {
        "rmse": float(np.sqrt(np.mean(away**2))), "cover": cover, "spearman": float(spearmanr(std, away)[0]),
        "rhat": last["rhat"], "effective_samples": last["effective_samples"],
        "seconds": spent[0], "cpu_seconds": spent[1],
    }  # fmt: skip


Runs = Iterator[tuple[tuple[Any, ...], Callable[[], dict[str, Any]]]]
"""What runs are called (variant, fold, seed), and the runs."""


def complete(name: str, runs: Runs, facts: dict[str, Any]) -> None:
    """Add the runs that are not stored yet."""
    path = STORED / f"{name}.json"
    found = json.loads(path.read_text())["results"] if path.exists() else []
    done = {(entry["variant"], entry["fold"], entry["seed"]) for entry in found}
    for called, run in runs:
        if called in done:
            continue
        found.append(dict(zip(("variant", "fold", "seed"), called, strict=True)) | run())
        print(found[-1], flush=True)
        store(name, {**facts, "results": found})


def movielens() -> Runs:
    """Runs on the published folds, by what they are called."""
    data = load_ml100k()

    def run(variant: str, fold: int, seed: int) -> dict[str, Any]:
        history, tables, likelihood = VARIANTS[variant]
        held_out = data.cells["fold"] == fold
        model = BayesianMF(**SETTINGS, history=history, likelihood=likelihood, random_state=seed, n_jobs=1)
        cells = data.observations
        sides = side_tables(data) if tables else {}
        return judged(model, cells.select(~held_out), cells.select(held_out), **sides)

    for seed in range(int(os.environ.get("SEEDS", "3"))):
        for variant in reversed(VARIANTS):
            for fold in FOLDS:
                yield (
                    (variant, fold, seed),
                    lambda variant=variant, fold=fold, seed=seed: run(variant, fold, seed),
                )


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.4f} ± {np.std(values):.4f}" if len(values) > 1 else f"{values[0]:.4f}"


def of_runs(runs: list[dict[str, Any]]) -> list[str]:
    cover = [f"{100 * np.mean([run['cover'][str(level)] for run in runs]):.1f}" for level in LEVELS]
    rest = [np.mean([run[name] for run in runs]) for name in ("spearman", "rhat", "cpu_seconds")]
    return [" / ".join(cover), f"{rest[0]:.3f}", f"{rest[1]:.2f}", f"{rest[2]:.0f}"]


BESIDE = ["cover of 50 / 80 / 90 / 95 %", "Spearman", "R-hat", "CPU seconds"]


def averaged_table(results: dict[str, Any]) -> str:
    """Errors by fold, and the rest as means over the runs."""
    lines = []
    for variant in VARIANTS:
        runs = [entry for entry in results["results"] if entry["variant"] == variant]
        if not runs:
            continue
        by_fold = [[run["rmse"] for run in runs if run["fold"] == fold] for fold in FOLDS]
        seeds = sorted({run["seed"] for run in runs})
        whole = [
            np.mean([run["rmse"] for run in runs if run["seed"] == seed])
            for seed in seeds
            if sum(run["seed"] == seed for run in runs) == len(FOLDS)
        ]
        first = spread(by_fold[0]) if by_fold[0] else ""
        others = [f"{np.mean(found):.4f}" if found else "" for found in by_fold[1:]]
        lines.append(
            [variant, first, *others, spread(whole) if whole else "", str(len(seeds)), *of_runs(runs)]
        )
    title = ["", *(f"u{fold}" for fold in FOLDS), "mean", "seeds"]
    return markdown([*title, *BESIDE], lines)


def tables() -> dict[str, str]:
    """What docs/guide/averaging.md shows."""
    return {"averaged": if_measured("averaged", averaged_table)}


def main() -> None:
    """Add the runs that are not stored yet."""
    settings = {"settings": {**SETTINGS, "clip": list(SETTINGS["clip"])}}
    complete("averaged", movielens(), settings)


if __name__ == "__main__":
    main()
