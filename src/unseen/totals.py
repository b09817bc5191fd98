"""Parts on the total score matrix S, the sum of all terms: constraints here, penalties from the regularisers.

A constraint is no number of the objective: along a run that meets it only in the limit an indicator would be
infinite throughout. :meth:`Problem.violation` says how far outside a state is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from unseen import kernels
from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.linalg.factors import Pair
from unseen.regularisers import Regulariser

__all__ = ["ScoreBox", "ScoreConstraint", "StoredCells", "TotalPart", "total_parts"]

SCORES_AT_A_TIME = 1 << 20
"""Scores of all cells of some rows that are made at a time."""


class ScoreConstraint(BaseEstimator):  # type: ignore[misc]
    """A condition on the scores."""

    replaces_loss: ClassVar[bool] = False
    """Whether it fixes the stored cells, whose loss is then no part of the objective."""

    @abstractmethod
    def violation(self, pair: Pair, cells: Observations, n_threads: int = 1) -> float:
        """Largest distance of a score to where it must be, for scores ``left @ right.T``."""


class ScoreBox(ScoreConstraint):
    """``lower <= s <= upper`` for the score of every cell, stored or blank.

    Parameters
    ----------
    lower, upper : float, default=0.0 and 1.0
        Bounds.
    """

    def __init__(self, lower: float = 0.0, upper: float = 1.0) -> None:
        self.lower = lower
        self.upper = upper

    def bounds(self) -> tuple[float, float]:
        """Validated bounds."""
        if not self.lower <= self.upper:
            raise ParameterError(
                f"ScoreBox needs lower <= upper, found lower={self.lower!r}, upper={self.upper!r}"
            )
        return float(self.lower), float(self.upper)

    def violation(self, pair: Pair, cells: Observations, n_threads: int = 1) -> float:
        """Largest distance of a score to the bounds, by blocks of rows."""
        lower, upper = self.bounds()
        worst, right = 0.0, pair.right.T.astype(np.float64)
        step = max(1, SCORES_AT_A_TIME // max(right.shape[1], 1))
        for first in range(0, pair.left.shape[0] if right.shape[1] else 0, step):
            scores = pair.left[first : first + step].astype(np.float64) @ right
            worst = max(worst, lower - float(scores.min()), float(scores.max()) - upper)
        return worst


class StoredCells(ScoreConstraint):
    """``s = a`` on the stored cells: they hold exactly, and their loss does not count."""

    replaces_loss = True

    def violation(self, pair: Pair, cells: Observations, n_threads: int = 1) -> float:
        """Largest distance of a stored cell to its value."""
        scores = kernels.sddmm(cells.indptr, cells.indices, *pair, n_threads=n_threads)
        return float(np.abs(scores - cells.values).max(initial=0.0))


TotalPart: TypeAlias = Regulariser | ScoreConstraint


def total_parts(given: TotalPart | Sequence[TotalPart] | None) -> tuple[TotalPart, ...]:
    """One part, several or none, as a tuple."""
    if given is None:
        return ()
    return (given,) if isinstance(given, (Regulariser, ScoreConstraint)) else tuple(given)
