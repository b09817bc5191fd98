"""Models as they are without a setting, beside the baseline of biases.

    python -m benchmarks defaults

Runs what is not stored yet; delete the file after a change of defaults. ``DATA`` and ``MODELS`` in the
environment name some only, with ``|`` between them. Seconds are those of the processor, summed over the
threads, which other work on the machine hardly changes.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks._store import STORED, if_measured, store
from papers.display import markdown
from unseen import (
    GIMC,
    IMC,
    AugmentedMF,
    BayesianMF,
    BiasModel,
    DirtyIMC,
    MatrixFactorization,
    Maxide,
    MixedLinear,
    Observations,
    SoftImpute,
    SparseBilinear,
)
from unseen.baselines import NMF, PMF
from unseen.datasets import (
    load_ciao,
    load_filmtrust,
    load_ml100k,
    load_yelp_3zones,
    make_low_rank,
    make_ratings,
)
from unseen.metrics import rmse
from unseen.model_selection import split_entries

THREADS = 2
SEEDS = 3
SMALL = 10
WITHOUT: dict[str, Callable[..., Any]] = {
    "MatrixFactorization()": MatrixFactorization,
    "MatrixFactorization(2)": partial(MatrixFactorization, 2),
    "SoftImpute()": SoftImpute,
    "AugmentedMF()": AugmentedMF,
    "BayesianMF()": BayesianMF,
    "PMF()": PMF,
    "NMF()": NMF,
}
"""Models that take no features."""
WITH: dict[str, Callable[..., Any]] = {
    "IMC()": IMC,
    "GIMC()": GIMC,
    "MixedLinear()": MixedLinear,
    "SparseBilinear()": SparseBilinear,
    "Maxide()": Maxide,
    "DirtyIMC()": DirtyIMC,
}
"""Models that do, and are run where there are some."""


class Part(NamedTuple):
    """Training and test cells, and features of both sides."""

    train: Observations
    test: Observations
    features: dict[str, Any]


def movielens() -> Iterator[Part]:
    """The published folds u1 to u5."""
    data = load_ml100k()
    for fold in range(1, 6):
        held = data.cells["fold"] == fold
        yield Part(data.observations.select(~held), data.observations.select(held), _features(data))


def parts(load: Callable[[], Any]) -> Iterator[Part]:
    """A fifth of the cells held out, three times."""
    data = load()
    for seed in range(SEEDS):
        yield Part(*split_entries(data.observations, test_fraction=0.2, random_state=seed), _features(data))


def generated() -> Iterator[Part]:
    for seed in range(SEEDS):
        data = make_ratings(random_state=seed)
        yield Part(*split_entries(data.observations, test_fraction=0.2, random_state=seed), _features(data))


def small(noise: float) -> Iterator[Part]:
    """30 x 20 with half of the cells known, of rank 2."""
    for seed in range(SMALL):
        data = make_low_rank(30, 20, 2, density=0.5, noise=noise, random_state=seed)
        train, test = split_entries(data.observations, test_fraction=0.2, random_state=seed)
        yield Part(train, test, {})


DATA: dict[str, Callable[[], Iterator[Part]]] = {
    "MovieLens-100K": movielens,
    "FilmTrust": partial(parts, load_filmtrust),
    "yelp-3zones": partial(parts, load_yelp_3zones),
    "Ciao": partial(parts, load_ciao),
    "generated ratings": generated,
    "30 x 20, no noise": partial(small, 0.0),
    "30 x 20, noise": partial(small, 1.0),
}


def _features(data: Any) -> dict[str, Any]:
    both = {"row_features": data.row_features, "col_features": data.col_features}
    return {name: value for name, value in both.items() if value is not None}


def fitted(make: Callable[..., Any], part: Part, features: dict[str, Any]) -> dict[str, Any]:
    """Error on the test cells and processor seconds of one fit."""
    model = make()
    known = {"random_state": 0, "n_jobs": THREADS}
    model.set_params(**{name: value for name, value in known.items() if name in model.get_params()})
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(part.train, **features)
    seconds = time.process_time() - begin
    asked = part.test.rows, part.test.indices
    return {
        "rmse": rmse(part.test.values, model.predict_entries(*asked, positions=True)),
        "processor_seconds": seconds,
        "says_baseline": any("use BiasModel()" in str(one.message) for one in said),
    }


def main() -> None:
    """Add the fits that are not stored yet."""
    path = STORED / "defaults.json"
    fits = json.loads(path.read_text())["fits"] if path.exists() else []
    done = {(fit["data"], fit["part"], fit["model"]) for fit in fits}
    wanted = os.environ.get("DATA", "|".join(DATA)).split("|")
    models = os.environ.get("MODELS", "|".join(["BiasModel()", *WITHOUT, *WITH])).split("|")
    for name in wanted:
        for number, part in enumerate(DATA[name]()):
            known = {"BiasModel()": BiasModel, **WITHOUT, **(WITH if part.features else {})}
            for model in models:
                if model not in known or (name, number, model) in done:
                    continue
                if model == "NMF()" and part.train.values.min() < 0:
                    continue
                found = fitted(known[model], part, part.features if model in WITH else {})
                fits.append({"data": name, "part": number, "model": model, **found})
                print(fits[-1], flush=True)
                store("defaults", {"threads": THREADS, "fits": fits})


def defaults_table(results: dict[str, Any]) -> str:
    """A line for each model: its RMSE on each data set, bold where it is above that of the biases.

    "(=)" says that each fit itself named the biases as enough.
    """
    found: dict[tuple[str, str], list[float]] = {}
    said: dict[tuple[str, str], bool] = {}
    fits = results["fits"]
    for fit in fits:
        key = fit["data"], fit["model"]
        found.setdefault(key, []).append(fit["rmse"])
        said[key] = said.get(key, True) and fit["says_baseline"]
    data = [name for name in DATA if any(one == name for one, _ in found)]
    lines = []
    for model in ("BiasModel()", *WITHOUT, *WITH):
        line = [f"`{model}`"]
        for name in data:
            errors = found.get((name, model))
            if errors is None:
                line.append("")
                continue
            error, base = np.mean(errors), np.mean(found[name, "BiasModel()"])
            shown, level = f"{error:.4f}", f"{base:.4f}"
            line.append(f"**{shown}**" if shown > level else shown + " (=)" * said[name, model])
        first = [fit for fit in fits if (fit["data"], fit["part"], fit["model"]) == (data[0], 0, model)]
        line += [f"{fit['processor_seconds']:.1f}" if "processor_seconds" in fit else "" for fit in first]
        lines.append(line)
    return markdown(["", *data, f"processor seconds, first part of {data[0]}"], lines)


def tables() -> dict[str, str]:
    """What docs/guide/choosing_settings.md shows."""
    return {"defaults": if_measured("defaults", defaults_table)}


if __name__ == "__main__":
    main()
