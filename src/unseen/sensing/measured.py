"""A measurement bound to the cells of a fit, and the derivative by the scores that goes through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unseen.sensing.base import MeasurementOperator
from unseen.typing import FloatArray

__all__ = ["Measured", "MeasuredGradient"]


class Measured(NamedTuple):
    """M, and M of the observed cells with zeros in between."""

    map: MeasurementOperator
    target: FloatArray

    def matrix(self) -> FloatArray:
        """M as a matrix with one column for each cell, by its values on single cells; for tests."""
        n, m = self.map.shape
        rows, cols = np.eye(n), np.eye(m)
        columns = [self.map.forward(rows[:, [i]], cols[:, [j]]) for i in range(n) for j in range(m)]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class MeasuredGradient:
    """``M*(slopes)`` as an operator."""

    map: MeasurementOperator
    slopes: FloatArray
    dtype: np.dtype[Any]

    def dot(self, vectors: FloatArray) -> FloatArray:
        """Times a matrix with one row for each column of the target."""
        return self.map.dot(self.slopes, vectors).astype(self.dtype, copy=False)

    def tdot(self, vectors: FloatArray) -> FloatArray:
        """The transpose times a matrix with one row for each row of the target."""
        return self.map.tdot(self.slopes, vectors).astype(self.dtype, copy=False)
