"""What penalties by degree and weights of blank cells bring."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks._list_tools import Spent, judged_split, liked_cells, stored_parts
from benchmarks._store import store
from benchmarks.updates import gowalla as load_gowalla
from unseen import (
    Background,
    BiasMC,
    Completion,
    LowRank,
    MatrixFactorization,
    Observations,
    Ridge,
    Squared,
    Term,
)
from unseen.datasets import load_ciao, load_filmtrust, load_ml100k, load_yelp_3zones
from unseen.model_selection import GridSearch, Split, get_scorer, split_entries
from unseen.solvers import ALS

POWERS = (0.0, 0.5, 1.0)


MODEL = MatrixFactorization(10, center="joint", random_state=0)
RATINGS: dict[str, Callable[[], Any]] = {
    "MovieLens-100K": load_ml100k,
    "FilmTrust": load_filmtrust,
    "Ciao": load_ciao,
    "yelp-3zones": load_yelp_3zones,
}
POSITIVES: dict[str, Callable[[], Observations]] = {
    "MovieLens-100K, liked": liked_cells,
    "FilmTrust, liked": lambda: liked_cells(load_filmtrust),
}


def degrees() -> dict[str, Any]:
    """What penalties by degree bring: power and penalty by held-out training cells, then the test cells.

    Each data set is stored when it is done; a run that was cut off goes on with the next one.
    """
    found: dict[str, Any] = dict(stored_parts().get("degrees", {}))

    def keep(name: str, runs: list[dict[str, Any]]) -> None:
        found[name] = runs
        store("lists", {"results": {**stored_parts(), "degrees": found}})

    if "Gowalla" not in found:
        train, test = load_gowalla()
        factors = BiasMC(32, alpha=0.99, max_iter=6, random_state=0)
        split = judged_split(train, 0)
        keep("Gowalla", [_by_power(factors, (0.3, 1.0, 3.0), Split(train, test), split, "ndcg@20", 0)])
    for name, load in RATINGS.items():
        if name not in found:
            keep(name, _random_splits(load().observations, MODEL, (2.0, 5.0, 12.0, 30.0), "rmse"))
    for name, positives in POSITIVES.items():
        if name not in found:
            short = BiasMC(20, alpha=0.95, max_iter=15, random_state=0)
            keep(name, _random_splits(positives(), short, (0.3, 1.0, 3.0, 10.0), "ndcg@10"))
    return found


def _random_splits(
    cells: Observations, model: Any, regs: tuple[float, ...], scoring: str
) -> list[dict[str, Any]]:
    """Three random fifths of the cells as test cells."""
    runs = []
    for seed in range(3):
        outer = split_entries(cells, test_fraction=0.2, random_state=seed)
        inner = split_entries(outer.train, test_fraction=0.1, random_state=seed)
        runs.append(_by_power(model, regs, outer, inner, scoring, seed))
    return runs


def _by_power(
    model: Any, regs: tuple[float, ...], outer: Split, inner: Split, scoring: str, seed: int
) -> dict[str, Any]:
    """For each power the best penalty on held-out cells, and what it gives on the test cells."""
    degrees = np.diff(inner.train.indptr)
    lines = []
    with Spent() as spent, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for power in POWERS:
            # Of about the same strength in all: a penalty is for the row of middling degree.
            middle = float(np.median(degrees[degrees > 0])) ** power
            grid = {"degree_scaling": [power], "reg": [reg / middle for reg in regs]}
            search = GridSearch(model, grid, cv=inner, scoring=scoring, refit=False).fit(inner.train)
            fitted = clone(model).set_params(**search.best_params_).fit(outer.train)
            lines.append(
                {"power": power, "params": search.best_params_, "validation": search.best_score_,
                 "test": get_scorer(scoring)(fitted, outer)}
            )  # fmt: skip
    print(seed, lines, flush=True)
    return {"seed": seed, "scoring": scoring, "powers": lines, **spent.told()}


def backgrounds() -> dict[str, Any]:
    """What it brings if blanks of popular columns weigh more, or less; chosen like penalties by degree."""
    cells = liked_cells()
    found: dict[str, Any] = {"MovieLens-100K, liked": []}
    for seed in range(3):
        outer = split_entries(cells, test_fraction=0.2, random_state=seed)
        inner = split_entries(outer.train, test_fraction=0.1, random_state=seed)
        run = _by_background(20, 0.9, (1.0, 3.0), outer, inner, "ndcg@10", seed)
        found["MovieLens-100K, liked"].append(run)
    train, test = load_gowalla()
    split = judged_split(train, 0)
    found["Gowalla"] = [_by_background(32, 0.99, (0.3, 1.0), Split(train, test), split, "ndcg@20", 0)]
    return found


def _by_background(
    rank: int, alpha: float, regs: tuple[float, ...], outer: Split, inner: Split, scoring: str, seed: int
) -> dict[str, Any]:
    """For each power the best penalty on held-out cells, and what it gives on the test cells."""
    lines = []
    with Spent() as spent, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for power in (-0.5, *POWERS):

            def model(cells: Observations, reg: float, power: float = power) -> Completion:
                degrees = np.bincount(cells.indices, minlength=cells.shape[1]).astype(np.float64)
                weights = np.maximum(degrees, 1.0) ** power
                loss = Squared(2 * alpha, Background(2 * (1 - alpha), col_weights=weights / weights.mean()))
                solver = ALS(method="cg", cg_steps=3)
                term = Term(core=LowRank(rank), reg=Ridge(reg))
                return Completion([term], loss=loss, solver=solver, max_iter=8, random_state=0).fit(cells)

            score = get_scorer(scoring)
            by_reg = {reg: score(model(inner.train, reg), inner) for reg in regs}
            best = max(by_reg, key=lambda reg: by_reg[reg])
            lines.append(
                {"power": power, "params": {"reg": best}, "validation": by_reg[best],
                 "test": score(model(outer.train, best), outer)}
            )  # fmt: skip
    print(seed, lines, flush=True)
    return {"seed": seed, "scoring": scoring, "powers": lines, **spent.told()}
