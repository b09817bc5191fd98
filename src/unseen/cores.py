"""The matrix between two feature maps."""

from __future__ import annotations

from sklearn.base import BaseEstimator

__all__ = ["Core", "Full", "LowRank"]


class Core(BaseEstimator):  # type: ignore[misc]
    """Base of the two kinds of core."""


class LowRank(Core):
    """Z = W H' with ``rank`` columns in both factors.

    Parameters
    ----------
    rank : int, default=10
        Number of columns; larger than either side is allowed and only wasteful.
    """

    def __init__(self, rank: int = 10) -> None:
        self.rank = rank


class Full(Core):
    """An unrestricted matrix Z.

    Between two identity maps it would be as large as the target; the low-rank proximal
    solver then keeps it as a product of factors, all other solvers refuse above a size.
    """
