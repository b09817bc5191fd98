"""Predictions that stay on the scale of the values."""

from __future__ import annotations

import numbers
from typing import Any, Literal, TypeAlias

import numpy as np

from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.typing import FloatArray

__all__ = ["Clip", "clipped", "limits_of"]

Clip: TypeAlias = Literal["observed"] | tuple[float, float] | None
Limits: TypeAlias = tuple[float, float] | None


def limits_of(clip: Any, cells: Observations) -> Limits:
    """Lowest and highest prediction: as given, or those of the values that count; None for no limits."""
    if clip is None:
        return None
    if isinstance(clip, str) and clip == "observed":
        values = cells.values if cells.weights is None else cells.values[cells.weights > 0]
        return (float(values.min()), float(values.max())) if values.size else None
    pair: Any = clip if isinstance(clip, (tuple, list)) and len(clip) == 2 else (None, None)
    numeric = all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in pair)
    if not numeric or not pair[0] < pair[1]:
        raise ParameterError(f"clip must be None, 'observed' or (low, high) with low < high; got {clip!r}.")
    return float(pair[0]), float(pair[1])


def clipped(predictions: FloatArray, limits: Limits) -> FloatArray:
    """Predictions within limits; NaN stays."""
    if limits is None:
        return predictions
    low, high = (predictions.dtype.type(end) for end in limits)
    inside: FloatArray = np.clip(predictions, low, high)
    return inside
