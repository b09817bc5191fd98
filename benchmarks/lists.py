"""Lists and labels on real data, settings chosen inside the training part, the test part scored once.

    python -m benchmarks lists                    what is not stored yet
    PARTS=gowalla,liked python -m benchmarks lists    these parts, again

Each part runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._store import ROOT, STORED, peak_memory_gib, store
from benchmarks.updates import gowalla as load_gowalla
from unseen import BiasMC, Blend, Observations, SpectralFilter
from unseen.datasets import load_ml100k
from unseen.model_selection import GridSearch, Split, get_scorer

JUDGED = 2000
"""Rows of Gowalla by whose held-out cells settings are chosen."""
HELD_OUT = 0.2
MEASURES = ("recall@20", "ndcg@20", "stratified_recall@20")


class Spent:
    """Seconds and processor seconds of a block."""

    def __enter__(self) -> Spent:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start[0]
        self.cpu_seconds = time.process_time() - self._start[1]

    def told(self) -> dict[str, float]:
        """Both, rounded."""
        return {"seconds": round(self.seconds, 2), "cpu_seconds": round(self.cpu_seconds, 2)}


# -- Gowalla --------------------------------------------------------------------------


def judged_split(train: Observations, seed: int) -> Split:
    """A fifth of the cells of some rows, held out of the training cells."""
    rng = np.random.default_rng(seed)
    degrees = np.diff(train.indptr)
    rows = rng.choice(np.flatnonzero(degrees >= 5), JUDGED, replace=False)
    held = np.zeros(train.nnz, dtype=bool)
    for row in rows:
        cells = np.arange(train.indptr[row], train.indptr[row + 1])
        held[rng.choice(cells, round(HELD_OUT * cells.size), replace=False)] = True
    return Split(train.select(~held), train.select(held))


def better(model: Any, split: Split) -> float:
    """What settings are chosen by: the mean of recall and NDCG."""
    return float(np.mean([get_scorer(name)(model, split) for name in MEASURES[:2]]))


def chosen(model: Any, grid: Any, split: Split) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Settings by the held-out cells, and what was found for each."""
    search = GridSearch(model, grid, cv=split, scoring=better, refit=False)
    search.fit(split.train)
    tried = [{"params": row["params"], "score": row["score"]} for row in search.results_]
    return dict(search.best_params_), tried


def gowalla() -> dict[str, Any]:
    """The filter, its settings chosen on cells held out of train; test scored once."""
    train, test = load_gowalla()
    split = judged_split(train, 0)
    with Spent() as choice:
        powers = {"degree_power": [(a, b) for a in (0.35, 0.4, 0.45) for b in (0.35, 0.4, 0.45)]}
        first, tried = chosen(SpectralFilter(low_pass=0.0, random_state=0), powers, split)
        second, more = chosen(
            SpectralFilter(256, random_state=0, **first), {"low_pass": [0.0, 0.05, 0.15]}, split
        )
    settings = {**first, **second, "rank": 256}
    model = SpectralFilter(random_state=0, **settings)
    with Spent() as fit:
        model.fit(train)
    with Spent() as lists:
        scores = {name: get_scorer(name)(model, Split(train, test)) for name in MEASURES}
    return {
        "scores": scores, "settings": settings, "tried": tried + more, "rows_judged": JUDGED,
        "choice": choice.told(), "fit": fit.told(), "lists": lists.told(),
    }  # fmt: skip


def gowalla_blend() -> dict[str, Any]:
    """The filter with the settings of ``gowalla`` and BiasMC, weights by held-out cells; test scored once."""
    train, test = load_gowalla()
    single = stored_parts()["gowalla"]
    filtered = SpectralFilter(random_state=0, **_tuples(single["settings"]))
    split = judged_split(train, 0)
    with Spent() as choice:
        lowest = BiasMC(64, max_iter=8, random_state=0)
        found, tried = chosen(lowest, {"alpha": [0.98, 0.995], "reg": [0.3, 1.0]}, split)
    factors = BiasMC(128, max_iter=12, random_state=0, **found)
    blend = Blend([filtered, factors], scoring="ndcg@20", validation_fraction=HELD_OUT / 2, random_state=0)
    with Spent() as fit, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        blend.fit(train)
    with Spent() as lists:
        scores = {name: get_scorer(name)(blend, Split(train, test)) for name in MEASURES}
        alone = {
            type(model).__name__: {name: get_scorer(name)(model, Split(train, test)) for name in MEASURES}
            for model in blend.models_[1:]
        }
    return {
        "scores": scores, "alone": alone, "settings": {**found, "rank": 128, "max_iter": 12}, "tried": tried,
        "weights": blend.weights_.tolist(), "validation": np.asarray(blend.validation_scores_).tolist(),
        "choice": choice.told(), "fit": fit.told(), "lists": lists.told(),
    }  # fmt: skip


def _tuples(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


# -- MovieLens, liked -----------------------------------------------------------------


def liked() -> dict[str, Any]:
    """Ratings of 4 and 5 as positives: ``compare`` chooses settings inside each of three training parts."""
    from unseen.comparison import compare

    cells = load_ml100k().observations
    cells = cells.select(cells.values >= 4)
    cells = cells.with_values(np.ones(cells.nnz))
    with Spent() as spent:
        found = compare(
            cells,
            task="positive",
            methods=["spectral-filter", "item-neighbors", "bias-mc"],
            repeats=3,
            random_state=0,
        )
    entries = {
        entry.method: {"scores": entry.scores, "settings": entry.settings, "error": entry.error,
                       "fit_s": entry.fit_s, "search_s": entry.search_s}
        for entry in found.entries
    }  # fmt: skip
    return {"entries": entries, "all": spent.told()}


# -- running --------------------------------------------------------------------------

PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "gowalla": gowalla,
    "gowalla_blend": gowalla_blend,
    "liked": liked,
}


def stored_parts() -> dict[str, Any]:
    """Parts that are stored."""
    path = STORED / "lists.json"
    return dict(json.loads(path.read_text())["results"]) if path.exists() else {}


def run_part(name: str) -> None:
    """Run one part in this process and add it to what is stored."""
    with Spent() as spent:
        found = PARTS[name]()
    found = {**found, "part": spent.told(), "peak_gib": round(peak_memory_gib(), 2)}
    store("lists", {"results": {**stored_parts(), name: found}})
    print(name, json.dumps(found)[:2000], flush=True)


def main() -> None:
    """Run what is not stored yet, or the parts named by PARTS."""
    asked = [name for name in os.environ.get("PARTS", "").split(",") if name]
    for name in asked or [name for name in PARTS if name not in stored_parts()]:
        command = [sys.executable, "-c", f"from benchmarks.lists import run_part; run_part({name!r})"]
        subprocess.run(command, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
