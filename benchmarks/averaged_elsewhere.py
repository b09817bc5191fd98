"""BayesianMF on ratings of other sites and on generated ones: errors, intervals, deviations.

    python -m benchmarks averaged_elsewhere

A fifth of the cells is held out three times (the first three of the ten folds of the experiments on AMF for
yelp-2013), and the composition is chosen on a fifth of each training part. Runs what is not stored yet;
``DATA="Ciao|FilmTrust"`` in the environment for some of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks._store import if_measured
from benchmarks.averaged import BESIDE, Runs, complete, judged, of_runs, spread
from papers.display import markdown
from unseen import BayesianMF, BiasModel, Observations
from unseen.datasets import (
    load_ciao,
    load_filmtrust,
    load_yelp2013,
    load_yelp_3zones,
    make_ratings,
)
from unseen.model_selection import split_entries

SPLITS = 3
GENERATED = "generated ratings"
COMMON: dict[str, Any] = {"precision": "diagonal", "clip": "observed", "burn_in": 50}
ELSEWHERE: dict[str, tuple[Callable[[], Any], dict[str, Any], list[dict[str, Any]]]] = {
    "FilmTrust": (
        load_filmtrust,
        {"rank": 10, "n_samples": 100},
        [
            {"history": history, "likelihood": likelihood}
            for history in (False, True)
            for likelihood in ("gaussian", "ordinal")
        ],
    ),
    "yelp-3zones": (
        load_yelp_3zones,
        {"rank": 5, "n_samples": 50},
        [{"likelihood": likelihood} for likelihood in ("gaussian", "ordinal")],
    ),
    "Ciao": (
        load_ciao,
        {"rank": 5, "n_samples": 50},
        [
            {"features": features, "likelihood": likelihood}
            for features in (False, True)
            for likelihood in ("gaussian", "ordinal")
        ],
    ),
    "yelp-2013": (
        load_yelp2013,
        {"rank": 3, "n_samples": 30, "burn_in": 40},
        [{"features": False}, {"features": True}],
    ),
}
"""Loader, settings, and compositions among which validation chooses."""


def _parts(name: str, cells: Observations) -> Iterator[tuple[Observations, Observations]]:
    if name == "yelp-2013":  # the folds of the experiments on AMF
        order = np.array_split(np.random.default_rng(0).permutation(cells.nnz), 10)
        for number in range(SPLITS):
            held = np.zeros(cells.nnz, dtype=bool)
            held[order[number]] = True
            yield cells.select(~held), cells.select(held)
        return
    for number in range(SPLITS):
        split = split_entries(cells, test_fraction=0.2, random_state=number)
        yield split.train, split.test


def elsewhere() -> Runs:
    """Runs on other ratings, the composition chosen inside each training part."""

    def model(settings: dict[str, Any], choice: dict[str, Any]) -> BayesianMF:
        options = {key: value for key, value in choice.items() if key != "features"}
        return BayesianMF(**COMMON | settings | options, random_state=0, n_jobs=1)

    def error(found: Any, test: Observations) -> float:
        away = found.predict_entries(test.rows, test.indices, positions=True) - test.values
        return float(np.sqrt(np.mean(away**2)))

    def run(name: str, number: int) -> dict[str, Any]:
        load, settings, choices = ELSEWHERE[name]
        data = load()
        cells = data.observations
        cells = cells.with_values(cells.values.astype(np.float32))
        train, test = list(_parts(name, cells))[number]
        inner = split_entries(train, test_fraction=0.2, random_state=1000 + number)
        start = time.process_time()
        tried = []
        for choice in choices:
            sides = {"col_features": data.col_features} if choice.get("features") else {}
            found = model(settings | {"n_samples": settings["n_samples"] // 2}, choice)
            tried.append(error(found.fit(inner.train, **sides), inner.test))
        choice = choices[int(np.argmin(tried))]
        sides = {"col_features": data.col_features} if choice.get("features") else {}
        spent = time.process_time() - start
        found = judged(model(settings, choice), train, test, **sides)
        biases = error(BiasModel().fit(train), test)
        return found | {"choice": choice, "tried": tried, "biases": biases, "search_cpu_seconds": spent}

    for name in ELSEWHERE:
        for number in range(SPLITS):
            yield (name, number, 0), lambda name=name, number=number: run(name, number)


def generated() -> Runs:
    """Runs on values whose truth is known."""

    def run(number: int) -> dict[str, Any]:
        data = make_ratings(random_state=number)
        train, test = split_entries(data.observations, test_fraction=0.2, random_state=number)
        return judged(BayesianMF(10, **COMMON, random_state=0, n_jobs=1), train, test)

    for number in range(SPLITS):
        yield (GENERATED, number, 0), lambda number=number: run(number)


def elsewhere_table(results: dict[str, Any]) -> str:
    """Errors on other data beside those of the biases."""
    lines = []
    for name in (*ELSEWHERE, GENERATED):
        runs = [entry for entry in results["results"] if entry["variant"] == name]
        if not runs:
            continue
        choices = [
            "; ".join(f"{key} {value}" for key, value in run.get("choice", {}).items()) for run in runs
        ]
        biases = [run["biases"] for run in runs if "biases" in run]
        lines.append(
            [name, spread([run["rmse"] for run in runs]), spread(biases) if biases else "",
             ", ".join(dict.fromkeys(choices)), *of_runs(runs)]
        )  # fmt: skip
    return markdown(["", "RMSE", "biases alone", "chosen", *BESIDE], lines)


def tables() -> dict[str, str]:
    """What docs/guide/averaging.md shows."""
    return {"averaged-elsewhere": if_measured("averaged_elsewhere", elsewhere_table)}


def main() -> None:
    """Add the runs that are not stored yet."""
    wanted = os.environ.get("DATA", "|".join([*ELSEWHERE, GENERATED])).split("|")
    runs = (run for found in (elsewhere(), generated()) for run in found if run[0][0] in wanted)
    complete(
        "averaged_elsewhere", runs, {"settings": {k: settings for k, (_, settings, _) in ELSEWHERE.items()}}
    )


if __name__ == "__main__":
    main()
