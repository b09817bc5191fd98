"""All that a fitted model can be asked, with arguments that may be put in for the right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from unseen.estimators.pu_base import PositiveCompleter

Questions = list[Callable[[], Any]]
LONG_FITS = (
    "max_iter", "n_samples", "burn_in", "thin", "n_learners", "n_trees", "cg_steps", "inner", "inner_iter",
    "start_sweeps", "n_init", "solver__max_iter", "solver__n_samples", "solver__burn_in", "solver__thin",
)  # fmt: skip
"""Settings that may ask for more work than anybody waits for: what is asked is done."""
MOST = 100
"""Of such a setting, where a model is fitted that others made."""


def arguments(model: Any) -> dict[str, Any]:
    """Right arguments for a model, as far as its learned attributes tell them."""
    if hasattr(model, "predict_entries"):
        m = model.n_features_in_
        cells = sparse.csr_array((np.ones(3), ([0, 1, 1], [0, min(1, m - 1), m - 1])), shape=(2, m))
        widths = (getattr(model, f"n_{side}_features_in_", None) for side in ("row", "col"))
        known = [getattr(model, f"{side}_ids_", None) for side in ("row", "col")]
        names = [[0, 1] if ids is None else ids.values[:2] for ids in known]
        features = [None if width is None else np.full((2, width), 0.5) for width in widths]
        found = {"rows": names[0], "cols": names[1], "row_features": features[0], "col_features": features[1]}
        found |= {"cells": cells, "exclude": "seen", "candidates": names[1]}
    else:
        found = {"features": np.full((2, model.n_features_in_), 0.5)}
    return {**found, "k": 3, "level": 0.9, "metric": "cosine", "on_unknown": "raise", "return_std": True}


def of(model: Any, given: dict[str, Any]) -> Questions:
    """Calls of those methods that a model has."""
    if hasattr(model, "predict_entries"):
        calls = _of_completer(model, given)
    else:
        row = given["features"]
        calls = [(name, (row,), {}) for name in ("predict", "decision_function", "predict_proba")]
        calls.append(("predict_topk", (row, given["k"]), {}))
    return [
        lambda call=call: getattr(model, call[0])(*call[1], **call[2])
        for call in calls
        if hasattr(model, call[0])
    ]


def _of_completer(model: Any, given: dict[str, Any]) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    rows, cols, k, cells = (given[name] for name in ("rows", "cols", "k", "cells"))
    both = {"row_features": given["row_features"], "col_features": given["col_features"]}
    new = {"row_features": given["row_features"], "positions": True}
    metric, unknown = {"metric": given["metric"]}, {"on_unknown": given["on_unknown"]}
    why = (cells, 1, 0) if isinstance(model, PositiveCompleter) else (0, 0)
    one_col = sparse.csr_array(np.ones((min(model._length("row"), 1 << 16), 1)))
    return [
        ("predict_entries", (rows, cols), unknown),
        ("predict_entries", (rows, cols), {"return_std": given["return_std"]}),
        ("predict_interval", (rows, cols, given["level"]), {}),
        ("predict_proba", (rows, cols), {}),
        ("predict_labels", (rows, cols), {}),
        ("recommend", (rows, k), {"exclude": given["exclude"]}),
        ("recommend", (rows, k), {"candidates": given["candidates"], "exclude": None, "as_frame": True}),
        ("recommend", (), {"cells": cells, "k": k, **new}),
        ("similar_rows", (rows, k), metric),
        ("similar_cols", (cols, k), metric),
        ("fold_in", (cells,), new),
        ("fold_in_cols", (one_col,), {"positions": True}),
        ("transform", (cells,), new),
        ("predict_new", (), both),
        ("score", (cells,), new),
        ("explain", why, {"positions": True}),
        ("compressed", (1,), {}),
    ]


def more_cells(model: Any) -> Questions:
    """An update and a list after it, if nobody would have to wait for it; it changes the model."""
    settings = model.get_params()
    long = any(isinstance(settings.get(name), int) and settings[name] > MOST for name in LONG_FITS)
    if long or not hasattr(model, "partial_fit") or model._length("row") > MOST:
        return []
    n, m = model._length("row"), model.n_features_in_
    both = {f"{side}_features": getattr(model, f"n_{side}_features_in_", None) for side in ("row", "col")}
    features = {name: None if width is None else np.full((1, width), 0.5) for name, width in both.items()}
    symmetric = getattr(model, "symmetric_scores", False)
    place = (n - 1, m - 1) if symmetric or features["col_features"] is not None else (n, m - 1)
    if place[0] < n:
        features = {}
    cells = sparse.csr_array(([1.0], ([place[0]], [place[1]])), shape=(max(place[0] + 1, n), m))
    return [lambda: model.partial_fit(cells, **features), lambda: model.recommend([0], 3, positions=True)]
