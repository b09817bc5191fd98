"""Errors of predicted cell values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.data import Observations
from unseen.docstrings import Descriptions, described_by
from unseen.exceptions import InvalidDataError
from unseen.parallel import one_blas_thread

__all__ = ["check_sample_weight", "mae", "relative_error", "rmse", "weighted_mean"]

VALUES: Descriptions = {
    "y_true": (
        "Observations or array-like",
        "True values; of an `Observations`, its stored values in their order.",
    ),
    "y_pred": ("array-like", "Predicted values, of the same shape."),
    "sample_weight": (
        "array-like, optional",
        "How much each value counts, of the same shape; by default the weights of an `Observations`, "
        "else one.",
    ),
}
"""What metrics of values take."""


@described_by(VALUES)
def rmse(
    y_true: Observations | npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Root mean squared error, sqrt(mean((p - t)²)), the mean weighted where there are weights.

    Returns
    -------
    float
        Computed in float64 whatever the inputs.

    Examples
    --------
    >>> from unseen.metrics import rmse
    >>> rmse([1.0, 2.0, 3.0], [1.0, 2.0, 6.0])
    1.7320508075688772
    """
    truth, prediction, weights = _paired_values(y_true, y_pred, sample_weight)
    return float(np.sqrt(weighted_mean(np.square(prediction - truth), weights)))


@described_by(VALUES)
def mae(
    y_true: Observations | npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Mean absolute error, mean(|p - t|), weighted where there are weights.

    Returns
    -------
    float
        Computed in float64 whatever the inputs.

    Examples
    --------
    >>> from unseen.metrics import mae
    >>> mae([1.0, 2.0, 3.0], [1.0, 2.0, 6.0])
    1.0
    """
    truth, prediction, weights = _paired_values(y_true, y_pred, sample_weight)
    return weighted_mean(np.abs(prediction - truth), weights)


@described_by(VALUES)
@one_blas_thread()
def relative_error(
    y_true: Observations | npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Length of the error over the length of the truth, ||p - t|| / ||t||, not squared.

    With weights, ||z||^2 is the sum of w z^2.

    Parameters
    ----------
    y_true : Observations or array-like
        True values, not all zero; of an `Observations`, its stored values in their order.

    Returns
    -------
    float
        0 for a perfect prediction, 1 for predicting zero everywhere.

    Examples
    --------
    >>> from unseen.metrics import relative_error
    >>> relative_error([3.0, 4.0], [0.0, 0.0])
    1.0
    """
    truth, prediction, weights = _paired_values(y_true, y_pred, sample_weight)
    if weights is not None:
        root = np.sqrt(weights)
        truth, prediction = root * truth, root * prediction
    length = float(np.linalg.norm(truth))
    if length == 0.0:
        raise InvalidDataError(
            f"relative_error: all {truth.size} true values are 0, so the ratio is undefined; use rmse or mae"
        )
    return float(np.linalg.norm(prediction - truth)) / length


def weighted_mean(values: npt.NDArray[Any], weights: npt.NDArray[np.float64] | None) -> float:
    """Mean in float64; of weights as `check_sample_weight` gives them."""
    if weights is None:
        return float(np.mean(values, dtype=np.float64))
    return float(np.sum(weights * values) / np.sum(weights))


def check_sample_weight(
    sample_weight: npt.ArrayLike | None, shape: tuple[int, ...]
) -> npt.NDArray[np.float64] | None:
    """Weights as a flat float64 array, none below zero and not all zero; None stays None."""
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    if given.shape != shape:
        raise InvalidDataError(f"sample_weight has shape {given.shape}; expected {shape}")
    weights = _finite("sample_weight", given)
    if (weights < 0).any() or not weights.any():
        raise InvalidDataError(
            f"sample_weight has {'values below 0' if weights.any() else 'nothing but zeros'}; "
            "expected numbers >= 0, at least one of them above 0"
        )
    return weights


def _paired_values(
    y_true: Observations | npt.ArrayLike, y_pred: npt.ArrayLike, sample_weight: npt.ArrayLike | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
    """Both sides as flat float64 arrays of equal, positive length without NaN or infinity; their weights."""
    if isinstance(y_true, Observations):
        sample_weight = y_true.weights if sample_weight is None else sample_weight
        y_true = y_true.values
    truth, prediction = np.asarray(y_true), np.asarray(y_pred)
    if truth.shape != prediction.shape:
        raise InvalidDataError(f"y_true has shape {truth.shape} but y_pred has shape {prediction.shape}")
    if truth.size == 0:
        raise InvalidDataError("y_true and y_pred are empty; at least one value is needed")
    weights = check_sample_weight(sample_weight, truth.shape)
    return _finite("y_true", truth), _finite("y_pred", prediction), weights


def _finite(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    flat = values.astype(np.float64, copy=False).ravel()
    bad = np.flatnonzero(~np.isfinite(flat))
    if bad.size:
        raise InvalidDataError(
            f"{name} has {flat[bad[0]]} at position {bad[0]} ({bad.size} such values); "
            "only finite numbers count"
        )
    return flat
