"""BayesianMF on the official folds of MovieLens-100K: ratings alone, with histories, with side tables.

Errors, coverage of intervals, and whether deviations tell where errors are. Choices (histories on both sides,
standardised side tables, rank 20) were made on fold 2 with folds 1 and 2 left out of training.

    python -m benchmarks averaged
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks._store import STORED, if_measured, store
from papers.display import markdown
from unseen import BayesianMF
from unseen.datasets import load_ml100k

SETTINGS: dict[str, Any] = {"rank": 20, "n_samples": 100, "burn_in": 50, "thin": 1, "clip": (1.0, 5.0)}
VARIANTS = {
    "ids only": (False, False),
    "with histories": (True, False),
    "with histories and side tables": (True, True),
}
LEVELS = (0.5, 0.8, 0.9, 0.95)
FOLDS = (1, 2, 3, 4, 5)


def _side_tables(data: Any) -> dict[str, Any]:
    """Side features, age by tens and year by fives as indicators beside."""
    sides = {}
    for side, place, step in (("row", 0, 10), ("col", -1, 5)):
        features = getattr(data, f"{side}_features")
        steps = features[:, place] // step
        sides[f"{side}_features"] = np.hstack([features, steps[:, None] == np.unique(steps)])
    return sides


def one(data: Any, variant: str, fold: int, seed: int) -> dict[str, Any]:
    """One fit, and what it says of the ratings of the fold."""
    history, tables = VARIANTS[variant]
    held_out = data.cells["fold"] == fold
    cells = data.observations
    rows, cols, values = cells.rows[held_out], cells.indices[held_out], cells.values[held_out]
    model = BayesianMF(**SETTINGS, history=history, random_state=seed)
    start = time.perf_counter(), time.process_time()
    model.fit(cells.select(~held_out), **(_side_tables(data) if tables else {}))
    spent = time.perf_counter() - start[0], time.process_time() - start[1]
    prediction, std = model.predict_entries(rows, cols, return_std=True, positions=True)
    away = np.abs(values - prediction)
    cover = {}
    for level in LEVELS:
        low, high = model.predict_interval(rows, cols, level, positions=True).T
        cover[str(level)] = float(np.mean((low <= values) & (values <= high)))
    last = model.history_[-1]
    return {
        "variant": variant, "fold": fold, "seed": seed, "rmse": float(np.sqrt(np.mean(away**2))),
        "cover": cover, "spearman": float(spearmanr(std, away)[0]), "rhat": last["rhat"],
        "effective_samples": last["effective_samples"], "seconds": spent[0], "cpu_seconds": spent[1],
    }  # fmt: skip


def averaged_table(results: dict[str, Any]) -> str:
    """Errors by fold, and the rest as means over the runs."""
    lines = []
    for variant in VARIANTS:
        runs = [entry for entry in results["results"] if entry["variant"] == variant]
        by_fold = [[run["rmse"] for run in runs if run["fold"] == fold] for fold in FOLDS]
        if not runs:
            continue
        means = [float(np.mean(found)) if found else float("nan") for found in by_fold]
        cover = [f"{100 * np.mean([run['cover'][str(level)] for run in runs]):.1f}" for level in LEVELS]
        rest = [np.mean([run[name] for run in runs]) for name in ("spearman", "rhat", "cpu_seconds")]
        lines.append(
            [variant, *(f"{mean:.4f}" if np.isfinite(mean) else "" for mean in means),
             f"{np.mean(means):.4f}" if np.all(np.isfinite(means)) else "",
             " / ".join(cover), f"{rest[0]:.3f}", f"{rest[1]:.2f}", f"{rest[2]:.0f}"]
        )  # fmt: skip
    title = ["", *(f"u{fold}" for fold in FOLDS), "mean", "cover of 50 / 80 / 90 / 95 %", "Spearman", "R-hat"]
    return markdown([*title, "CPU seconds"], lines)


def tables() -> dict[str, str]:
    """What docs/guide/averaging.md shows."""
    return {"averaged": if_measured("averaged", averaged_table)}


def main() -> None:
    """Add the runs that are not stored yet; SEEDS=n for n seeds."""
    path = STORED / "averaged.json"
    found = json.loads(path.read_text())["results"] if path.exists() else []
    data = load_ml100k()
    wanted = [
        (variant, fold, seed)
        for seed in range(int(os.environ.get("SEEDS", "1")))
        for variant in reversed(VARIANTS)
        for fold in FOLDS
    ]
    done = {(entry["variant"], entry["fold"], entry["seed"]) for entry in found}
    for variant, fold, seed in wanted:
        if (variant, fold, seed) not in done:
            found.append(one(data, variant, fold, seed))
            print(found[-1], flush=True)
            store("averaged", {"settings": {**SETTINGS, "clip": list(SETTINGS["clip"])}, "results": found})


if __name__ == "__main__":
    main()
