"""Lists of Gowalla: settings chosen on training cells, the test file scored once for each part."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._list_tools import (
    HELD_OUT,
    JUDGED,
    Spent,
    chosen,
    each_row_split,
    judged_split,
    measured,
    stored_parts,
)
from benchmarks.updates import gowalla as load_gowalla
from unseen import BiasMC, Blend, Observations, SpectralFilter
from unseen.model_selection import Split

RANK = 384
"""Singular vectors for Gowalla; more bring nothing on held-out cells."""


NEAR: dict[str, list[Any]] = {
    "degree_power": [(0.35, 0.4), (0.5, 0.4), (0.35, 0.5)],
    "list_power": [0.1, 0.2, 0.3],
    "neighbor_power": [1.25, 1.5],
}
LOW = [0.002, 0.005, 0.015, 0.04]
"""What is tried for the low-pass part."""
NEAR_BY_ROW: dict[str, list[Any]] = {
    "degree_power": [(0.35, 0.4), (0.4, 0.5), (0.5, 0.5)],
    "list_power": [0.2, 0.3],
    "neighbor_power": [1.25, 1.5],
}
LOW_BY_ROW = [0.005, 0.01, 0.02]


def gowalla(
    draw: Callable[[Observations, int], Split] = judged_split,
    near: dict[str, list[Any]] = NEAR,
    low: list[float] = LOW,
) -> dict[str, Any]:
    """The filter, its settings chosen on cells held out of train; test scored once."""
    train, test = load_gowalla()
    split = draw(train, 0)
    with Spent() as choice:
        first, tried = chosen(SpectralFilter(low_pass=0.0, random_state=0), near, split)
        second, more = chosen(SpectralFilter(RANK, random_state=0, **first), {"low_pass": low}, split)
    settings = {**first, **second, "rank": RANK}
    model = SpectralFilter(random_state=0, **settings)
    with Spent() as fit:
        model.fit(train)
    with Spent() as lists:
        scores = measured(model, Split(train, test))
    return {
        "scores": scores, "settings": settings, "tried": tried + more, "rows_judged": JUDGED,
        "choice": choice.told(), "fit": fit.told(), "lists": lists.told(),
    }  # fmt: skip


def gowalla_by_row() -> dict[str, Any]:
    """The same, chosen on a fifth of the cells of every row, as published work drew the test cells."""
    return gowalla(each_row_split, NEAR_BY_ROW, LOW_BY_ROW)


def gowalla_blend() -> dict[str, Any]:
    """The filter with the settings of ``gowalla`` and BiasMC, weights by held-out cells; test scored once."""
    train, test = load_gowalla()
    single = stored_parts()["gowalla"]
    filtered = SpectralFilter(random_state=0, **_tuples(single["settings"]))
    split = judged_split(train, 0)
    with Spent() as choice:
        short = BiasMC(64, max_iter=6, random_state=0)
        # A penalty is for a row of ten cells, so that strengths are alike at all powers.
        alphas, regs = [0.95, 0.98, 0.99, 0.995], {0.0: [1.0, 3.0], 0.5: [0.3, 1.0], 1.0: [0.1, 0.3]}
        grid = [{"alpha": alphas, "degree_scaling": [nu], "reg": given} for nu, given in regs.items()]
        found, tried = chosen(short, grid, split)
    factors = BiasMC(192, max_iter=12, random_state=0, **found)
    blend = Blend([filtered, factors], scoring="ndcg@20", validation_fraction=HELD_OUT / 2, random_state=0)
    with Spent() as fit, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        blend.fit(train)
    with Spent() as lists:
        scores = measured(blend, Split(train, test))
        alone = measured(blend.models_[1], Split(train, test))
    return {
        "scores": scores, "alone": alone, "tried": tried,
        "settings": {**found, "rank": 192, "max_iter": 12},
        "weights": blend.weights_.tolist(), "validation": np.asarray(blend.validation_scores_).tolist(),
        "choice": choice.told(), "fit": fit.told(), "lists": lists.told(),
    }  # fmt: skip


def gowalla_blend_by_row() -> dict[str, Any]:
    """The filter with the settings of ``gowalla_by_row``, and ``BiasMC`` with those of ``gowalla_blend``."""
    train, test = load_gowalla()
    parts = stored_parts()
    settings = parts["gowalla_blend"]["settings"]
    models = [
        SpectralFilter(random_state=0, **_tuples(parts["gowalla_by_row"]["settings"])),
        BiasMC(random_state=0, **settings),
    ]
    blend = Blend(models, scoring="ndcg@20", validation_fraction=HELD_OUT / 2, random_state=0)
    with Spent() as fit, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        blend.fit(train)
    with Spent() as lists:
        scores = measured(blend, Split(train, test))
    return {
        "scores": scores, "settings": settings, "weights": blend.weights_.tolist(),
        "validation": np.asarray(blend.validation_scores_).tolist(), "fit": fit.told(), "lists": lists.told(),
    }  # fmt: skip


def gowalla_drift() -> dict[str, Any]:
    """Share of the cells of rare and popular columns that is in the test file; nothing is chosen by it."""
    train, test = load_gowalla()
    before, after = (np.bincount(cells.indices, minlength=cells.shape[1]) for cells in (train, test))
    edges = [1, 8, 20, 100, 400, int(before.max()) + 1]
    shares = []
    for low, high in itertools.pairwise(edges):
        of = (before >= low) & (before < high)
        share = float(after[of].sum() / (after + before)[of].sum())
        shares.append({"from": low, "to": high - 1, "columns": int(of.sum()), "share": share})
    return {"shares": shares}


def _tuples(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
