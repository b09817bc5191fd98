"""Errors of predicted cell values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.data import Observations
from unseen.exceptions import InvalidDataError
from unseen.parallel import one_blas_thread

__all__ = ["mae", "relative_error", "rmse"]


def rmse(y_true: Observations | npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
    """Root mean squared error, sqrt(mean((p - t)²)).

    Parameters
    ----------
    y_true : Observations or array-like
        True values; of an `Observations`, its stored values in their order.
    y_pred : array-like
        Predicted values, of the same shape.

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
    truth, prediction = _paired_values(y_true, y_pred)
    return float(np.sqrt(np.mean(np.square(prediction - truth))))


def mae(y_true: Observations | npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
    """Mean absolute error, mean(|p - t|).

    Parameters
    ----------
    y_true : Observations or array-like
        True values; of an `Observations`, its stored values in their order.
    y_pred : array-like
        Predicted values, of the same shape.

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
    truth, prediction = _paired_values(y_true, y_pred)
    return float(np.mean(np.abs(prediction - truth)))


@one_blas_thread()
def relative_error(y_true: Observations | npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
    """Length of the error over the length of the truth, ||p - t|| / ||t||, not squared.

    Parameters
    ----------
    y_true : Observations or array-like
        True values, not all zero; of an `Observations`, its stored values in their order.
    y_pred : array-like
        Predicted values, of the same shape.

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
    truth, prediction = _paired_values(y_true, y_pred)
    length = float(np.linalg.norm(truth))
    if length == 0.0:
        raise InvalidDataError(
            f"relative_error: all {truth.size} true values are 0, so the ratio is undefined; use rmse or mae"
        )
    return float(np.linalg.norm(prediction - truth)) / length


def _paired_values(
    y_true: Observations | npt.ArrayLike, y_pred: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Both sides as flat float64 arrays of equal, positive length without NaN or infinity."""
    truth = np.asarray(y_true.values if isinstance(y_true, Observations) else y_true)
    prediction = np.asarray(y_pred)
    if truth.shape != prediction.shape:
        raise InvalidDataError(f"y_true has shape {truth.shape} but y_pred has shape {prediction.shape}")
    if truth.size == 0:
        raise InvalidDataError("y_true and y_pred are empty; at least one value is needed")
    return _finite("y_true", truth), _finite("y_pred", prediction)


def _finite(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    flat = values.astype(np.float64, copy=False).ravel()
    bad = np.flatnonzero(~np.isfinite(flat))
    if bad.size:
        raise InvalidDataError(
            f"{name} has {flat[bad[0]]} at position {bad[0]} ({bad.size} such values); "
            "only finite numbers count"
        )
    return flat
