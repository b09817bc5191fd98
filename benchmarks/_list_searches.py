"""HalvingSearch beside GridSearch."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks._list_tools import Spent, judged_split, stored_parts
from benchmarks._store import store
from benchmarks.updates import gowalla as load_gowalla
from unseen import BiasMC, MatrixFactorization
from unseen.datasets import load_ml100k
from unseen.model_selection import GridSearch, HalvingSearch, Split, split_entries

SEEDS = range(3)
"""Of the held-out cells."""
MODELS: dict[str, tuple[Any, dict[str, list[Any]], str]] = {
    "MovieLens-100K": (
        MatrixFactorization(center="joint", max_iter=27, random_state=0, n_jobs=1),
        {"rank": [5, 10, 20], "reg": [1.0, 3.0, 6.0, 10.0, 15.0, 25.0]},
        "rmse",
    ),
    "Gowalla": (
        BiasMC(32, max_iter=18, random_state=0, n_jobs=1),
        {"alpha": [0.95, 0.98, 0.995], "reg": [0.3, 1.0, 3.0], "degree_scaling": [0.0, 0.5, 1.0]},
        "ndcg@20",
    ),
}


def _split(name: str, seed: int) -> Split:
    if name == "Gowalla":
        return judged_split(load_gowalla()[0], seed)
    ratings = load_ml100k()
    fold = ratings.cells["fold"] == 1
    return split_entries(ratings.observations.select(~fold), test_fraction=0.1, random_state=seed)


def searches() -> dict[str, Any]:
    """Validation score and processor seconds of both, in turns; each draw is stored when it is done."""
    before = stored_parts().get("searches", {})
    found: dict[str, Any] = {name: list(before.get(name, [])) for name in MODELS}
    for name, (model, grid, scoring) in MODELS.items():
        done = {run["seed"] for run in found[name]}
        for seed in SEEDS:
            if seed in done:
                continue
            split = _split(name, seed)
            for kind in (GridSearch, HalvingSearch):
                with Spent() as spent, warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    search = kind(model, grid, cv=split, scoring=scoring, refit=False).fit(split.train)
                found[name].append(
                    {"search": kind.__name__, "seed": seed, "candidates": len(search.results_),
                     "score": search.best_score_, "params": search.best_params_, **spent.told()}
                )  # fmt: skip
                print(name, found[name][-1], flush=True)
            store("lists", {"results": {**stored_parts(), "searches": found}})
    return found
