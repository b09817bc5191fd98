"""``unseen fit --tune``: settings chosen on held-out cells within a given time."""

from __future__ import annotations

import re
from typing import Any

from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["seconds_of", "tuned"]

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
SPACE: dict[str, Any] = {
    "rank": (2, 128),
    "reg": (0.1, 100.0),
    "alpha": [0.8, 0.9, 0.95, 0.98, 0.99],
    "low_pass": (0.01, 1.0),
    "degree_power": [(0.35, 0.4), (0.5, 0.5), (0.2, 0.4), (0.35, 0.5)],
}
"""Settings that are searched, where a method has them and they were not given."""
SHARES = ["0.01max", "0.03max", "0.1max", "0.2max", "0.4max"]
"""Penalties of methods whose own is a share of the largest one."""


def seconds_of(text: str) -> float:
    """Seconds of ``90``, ``90s``, ``2m`` or ``1h``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if found is None or float(found[1]) == 0:
        raise UsageError(f"--tune {text}: expected a time such as 90s, 2m or 1h")
    return float(found[1]) * UNITS[found[2]]


def tuned(
    out: Output, model: Any, cells: Any, features: dict[str, Any], task: str, seconds: float, given: set[str]
) -> dict[str, Any]:
    """Choose settings on a tenth of the cells, put them into the model, and tell what was found."""
    from unseen.model_selection import OptunaSearch, split_entries

    if task not in ("explicit", "positive"):
        raise UsageError(
            f"--tune: settings are chosen for ratings and for positives, not for the task {task}"
        )
    known = model.get_params(deep=False)
    space = {name: values for name, values in SPACE.items() if name in known and name not in given}
    if "reg" in space and str(known["reg"]).endswith("max"):
        space["reg"] = SHARES
    if not space:
        raise UsageError("--tune: every setting that is searched is given, or the method has none")
    scoring = "rmse" if task == "explicit" else "ndcg@10"
    search = OptunaSearch(
        model,
        space,
        timeout=seconds,
        cv=split_entries(cells, test_fraction=0.1, random_state=0),
        scoring=scoring,
        refit=False,
    ).fit(cells, **features)
    model.set_params(**search.best_params_)
    out.note(
        f"tuned in {len(search.results_)} trials, {search.n_sweeps_} sweeps: {search.best_params_}, "
        f"{scoring} {search.best_score_:.4g} on held-out cells"
    )
    return {
        "params": search.best_params_,
        "scoring": scoring,
        "score": search.best_score_,
        "n_trials": len(search.results_),
    }
