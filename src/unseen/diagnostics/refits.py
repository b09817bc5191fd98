"""The slow way: fit again, from other starts or to parts of the cells, and see what moves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from unseen.data import Observations
from unseen.typing import BoolArray, FloatArray, IndexArray

__all__ = ["refit_predictions"]


def refit_predictions(
    model: Any,
    data: Any,
    asked: tuple[IndexArray, IndexArray],
    prediction: FloatArray,
    n_refits: int,
    share: float | None,
    rng: np.random.Generator,
) -> FloatArray:
    """Standard deviation of predictions over refits.

    Parameters
    ----------
    model : completer
        Fitted; it is copied, not changed.
    data : TrainingData
        What it was fitted to.
    asked : (array, array)
        Rows and columns.
    prediction : ndarray
        Of the model itself.
    n_refits : int
        Number of fits.
    share : float or None
        Share of the cells in each fit; None takes all and changes the start only.
    rng : Generator
        Source of starts and parts.

    Returns
    -------
    ndarray of float64
        Standard deviation, for all cells of ``data``.
    """
    total = np.zeros(len(prediction))
    squares = np.zeros(len(prediction))
    base = np.asarray(prediction, dtype=np.float64)  # against cancellation
    for _ in range(n_refits):
        copy = clone(model)
        known = copy.get_params()
        changed = {"random_state": int(rng.integers(2**31)), "warm_start": False, "verbose": 0}
        copy.set_params(**{name: value for name, value in changed.items() if name in known})
        cells = data.cells
        if share is not None:
            cells = cells.select(_part(model, cells, share, rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copy.fit(cells, **_features(data))
        moved = np.asarray(copy.predict_entries(*asked, positions=True), dtype=np.float64) - base
        total += moved
        squares += moved * moved
    if share is None:
        count = n_refits + 1  # the model itself is one more start
        return np.sqrt(np.maximum(squares - total * total / count, 0.0) / (count - 1))
    variance = np.maximum(squares - total * total / n_refits, 0.0) / (n_refits - 1)
    return np.sqrt(variance * share / (1.0 - share))


def _features(data: Any) -> dict[str, Any]:
    both = {"row_features": data.row_features, "col_features": data.col_features}
    return {name: value for name, value in both.items() if value is not None}


def _part(model: Any, cells: Observations, share: float, rng: np.random.Generator) -> BoolArray:
    """Random cells, at least one; of a graph both directions of a link."""
    if getattr(model, "symmetric_scores", False):
        low, high = np.minimum(cells.rows, cells.indices), np.maximum(cells.rows, cells.indices)
        _, pair = np.unique(low.astype(np.int64) * cells.shape[1] + high, return_inverse=True)
        draw = rng.random(int(pair.max(initial=-1)) + 1)[pair]
    else:
        draw = rng.random(cells.nnz)
    return np.asarray(draw <= max(share, float(draw.min(initial=1.0))))
