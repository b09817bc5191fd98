"""``unseen fit --tune``: settings chosen on held-out cells within a given time."""

from __future__ import annotations

import re
import time
import warnings
from itertools import product
from typing import Any

from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["seconds_of", "tuned"]

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
LADDERS: dict[str, list[Any]] = {
    "rank": [2, 4, 8, 16, 32, 64, 128],
    "reg": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
    "alpha": [0.8, 0.9, 0.95, 0.98, 0.99, 0.995],
    "low_pass": [0.0, 0.03, 0.1, 0.3],
    "degree_power": [(0.2, 0.4), (0.35, 0.4), (0.35, 0.5), (0.5, 0.5)],
    "neighbor_power": [1.0, 1.5, 2.0],
    "n_neighbors": [20, 50, 100, 200],
}
"""Settings that are searched, where a method has them and they were not given; neighbours are alike."""
SHARES = ["0.01max", "0.03max", "0.1max", "0.2max", "0.4max"]
"""Penalties of methods whose own is a share of the largest one."""
EVERY = 3
"""Of a ladder, the steps that are tried first."""

Places = tuple[int, ...]


def seconds_of(text: str) -> float:
    """Seconds of ``90``, ``90s``, ``2m`` or ``1h``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if found is None or float(found[1]) == 0:
        raise UsageError(f"--tune {text}: expected a time such as 90s, 2m or 1h")
    return float(found[1]) * UNITS[found[2]]


def tuned(
    out: Output, model: Any, cells: Any, features: dict[str, Any], task: str, seconds: float, given: set[str]
) -> dict[str, Any]:
    """Choose settings on a tenth of the cells, put them into the model, and tell what was found.

    A coarse grid is halved first, then what is one step away from the best, as long as that gets better and
    there is time.
    """
    from unseen.model_selection import HalvingSearch, split_entries

    if task not in ("explicit", "positive"):
        raise UsageError(
            f"--tune: settings are chosen for ratings and for positives, not for the task {task}"
        )
    ladders = _ladders(model, given)
    scoring = "rmse" if task == "explicit" else "ndcg@10"
    sign = 1.0 if task == "explicit" else -1.0
    split = split_entries(cells, test_fraction=0.1, random_state=0)
    end = time.monotonic() + seconds
    tried: set[Places] = set()
    ask = list(product(*(range(min(1, len(steps) - 1), len(steps), EVERY) for steps in ladders.values())))
    best: tuple[float, Places] | None = None
    n_sweeps = 0
    while ask:
        tried.update(ask)
        grid = [
            {name: [ladders[name][at]] for name, at in zip(ladders, places, strict=True)} for places in ask
        ]
        search = HalvingSearch(
            model, grid, cv=split, scoring=scoring, refit=False, timeout=max(end - time.monotonic(), 1e-3)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what fails is not chosen
            search.fit(cells, **features)
        n_sweeps += search.n_sweeps_
        found = sign * search.best_score_, ask[search.best_index_]
        ask = []
        if best is None or found[0] < best[0]:
            best = found
            if time.monotonic() < end:
                ask = [near for near in _beside(best[1], ladders) if near not in tried]
    assert best is not None
    params = {name: ladders[name][at] for name, at in zip(ladders, best[1], strict=True)}
    model.set_params(**params)
    score = sign * best[0]
    out.note(
        f"tuned in {len(tried)} trials, {n_sweeps} sweeps: {params}, {scoring} {score:.4g} on held-out cells"
    )
    return {
        "params": params,
        "scoring": scoring,
        "score": score,
        "n_trials": len(tried),
        "n_sweeps": n_sweeps,
    }


def _ladders(model: Any, given: set[str]) -> dict[str, list[Any]]:
    """Values of each setting that is searched, in order."""
    known = model.get_params(deep=False)
    ladders = {name: steps for name, steps in LADDERS.items() if name in known and name not in given}
    if "reg" in ladders and str(known["reg"]).endswith("max"):
        ladders["reg"] = SHARES
    if not ladders:
        raise UsageError("--tune: every setting that is searched is given, or the method has none")
    return ladders


def _beside(places: Places, ladders: dict[str, list[Any]]) -> list[Places]:
    """One step up or down each ladder."""
    steps = list(ladders.values())
    return [
        (*places[:at], places[at] + way, *places[at + 1 :])
        for at in range(len(places))
        for way in (-1, 1)
        if 0 <= places[at] + way < len(steps[at])
    ]
