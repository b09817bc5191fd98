"""What an operator that measures scores is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod

from unseen.typing import FloatArray

__all__ = ["MeasurementOperator"]


class MeasurementOperator(ABC):
    """Measurements ``start`` to ``stop`` of a linear map from m x n matrices to p numbers.

    Attributes
    ----------
    shape : (int, int)
        m and n.
    start, stop : int
        Measurements that this piece answers for.
    """

    shape: tuple[int, int]
    start: int
    stop: int

    @abstractmethod
    def forward(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """``A(left right')``, in float64."""

    @abstractmethod
    def dot(self, values: FloatArray, right: FloatArray) -> FloatArray:
        """``A*(values) right``: the adjoint times a matrix with n rows, in float64."""

    @abstractmethod
    def tdot(self, values: FloatArray, left: FloatArray) -> FloatArray:
        """``A*(values)' left``: its transpose times a matrix with m rows, in float64."""

    @abstractmethod
    def of_cells(self) -> FloatArray:
        """The map of the zero-filled matrix of observed cells, the right-hand side b."""

    @abstractmethod
    def part(self, start: int, stop: int) -> MeasurementOperator:
        """The same map, some of its measurements; they are the same numbers."""

    @property
    def n_rows(self) -> int:
        """Measurements of this piece."""
        return self.stop - self.start

    def squared_norm(self, left: FloatArray, right: FloatArray) -> float:
        """``||A(left right')||^2`` in float64."""
        values = self.forward(left, right)
        return float(values @ values)
