"""Losses: what a stored cell and a blank cell mean.

A loss has a pointwise part on the stored cells and, optionally, a background: a weighted
squared distance to one target on all other cells. Missing (no background), unlabelled and
true zero (background) differ here and nowhere else.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeAlias

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from unseen.exceptions import ParameterError
from unseen.typing import FloatArray
from unseen.validation import check_fraction, check_positive

__all__ = ["Background", "Biased", "Logistic", "Loss", "Quadratic", "Shifted", "Squared"]

ScalarOrCells: TypeAlias = float | FloatArray
"""One number for all stored cells, or one for each."""
CELLS_AT_A_TIME = 1 << 15
"""Cells of a part: float64 copies of it stay in cache."""


class Background(BaseEstimator):  # type: ignore[misc]
    """``weight/2 (s - target)^2`` on every cell that is not stored.

    Parameters
    ----------
    weight : float, default=1.0
        Weight, zero or larger.
    target : float, default=0.0
        Value that blank cells are pulled to.
    """

    def __init__(self, weight: float = 1.0, target: float = 0.0) -> None:
        self.weight = weight
        self.target = target

    def numbers(self) -> tuple[float, float]:
        """Validated ``(weight, target)``."""
        weight = check_positive("background weight", self.weight, strict=False)
        if not np.isfinite(self.target):
            raise ParameterError(f"background target must be finite, found {self.target!r}")
        return weight, float(self.target)


class Loss(BaseEstimator):  # type: ignore[misc]
    """Base of all losses."""

    @abstractmethod
    def value(self, scores: FloatArray, values: FloatArray) -> float:
        """Sum of the loss over the stored cells, in float64."""

    @abstractmethod
    def grad(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        """Derivative with respect to the scores of the stored cells."""

    def blank(self) -> tuple[float, float]:
        """Weight and target of the background; weight 0 if blank cells are missing."""
        return 0.0, 0.0


class Quadratic(Loss):
    """Losses of the form ``weight/2 (s - target)^2`` on stored cells."""

    @abstractmethod
    def stored(self, values: FloatArray) -> tuple[ScalarOrCells, ScalarOrCells]:
        """Weight and target of the stored cells."""

    def value(self, scores: FloatArray, values: FloatArray) -> float:
        weight, target = self.stored(values)
        total = 0.0
        # In parts: float64 copies of all cells would be twice the size of the data. One buffer for all
        # parts: a new one for each would be fetched from the system and given back every time.
        buffer = np.empty(min(CELLS_AT_A_TIME, scores.size))
        for start in range(0, scores.size, CELLS_AT_A_TIME):
            part = slice(start, start + CELLS_AT_A_TIME)
            w, t = (value if np.ndim(value) == 0 else np.asarray(value)[part] for value in (weight, target))
            squares = buffer[: scores[part].size]
            np.subtract(scores[part], t, out=squares, dtype=np.float64)
            np.square(squares, out=squares)
            if np.ndim(w) or w != 1.0:
                np.multiply(squares, w, out=squares)
            total += float(np.sum(squares))
        return 0.5 * total

    def grad(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        weight, target = self.stored(values)
        out: FloatArray = (weight * (scores - target)).astype(scores.dtype, copy=False)
        return out

    def normal_terms(self, values: FloatArray) -> tuple[ScalarOrCells, ScalarOrCells]:
        """``(c, d)`` such that stored cells add ``c/2 s^2 - d s`` to the background on all cells."""
        weight, target = self.stored(values)
        blank_weight, blank_target = self.blank()
        if blank_weight == 0.0 and np.ndim(weight) == 0 and weight == 1.0:
            return weight, target  # as they are, without a copy
        return weight - blank_weight, weight * target - blank_weight * blank_target

    def normal_constant(self, values: FloatArray) -> float:
        """What the stored cells add to the background at score zero, so ``c/2 s^2 - d s`` is complete."""
        blank_weight, blank_target = self.blank()
        at_zero = self.value(np.broadcast_to(values.dtype.type(0), values.shape), values)
        return at_zero - 0.5 * blank_weight * blank_target**2 * values.size


class Squared(Quadratic):
    """``weight/2 (s - a)^2`` on stored cells; blank cells are missing unless a background is given.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the stored cells.
    background : Background, optional
        What blank cells are pulled to.
    """

    def __init__(self, weight: float = 1.0, background: Background | None = None) -> None:
        self.weight = weight
        self.background = background

    def stored(self, values: FloatArray) -> tuple[ScalarOrCells, ScalarOrCells]:
        return check_positive("weight", self.weight), values

    def blank(self) -> tuple[float, float]:
        return (0.0, 0.0) if self.background is None else self.background.numbers()


class Biased(Quadratic):
    """``alpha (s - 1)^2`` on positives, ``(1 - alpha) s^2`` on all other cells (PU, section 2).

    Parameters
    ----------
    alpha : float, default=0.9
        Weight of the positives, strictly between 0 and 1.
    weighted : bool, default=False
        Multiply the weight of each positive by its value, ``alpha a (s - 1)^2``.
    """

    def __init__(self, alpha: float = 0.9, weighted: bool = False) -> None:
        self.alpha = alpha
        self.weighted = weighted

    def stored(self, values: FloatArray) -> tuple[ScalarOrCells, ScalarOrCells]:
        weight = 2.0 * check_fraction("alpha", self.alpha)
        return (values * values.dtype.type(weight) if self.weighted else weight), 1.0

    def blank(self) -> tuple[float, float]:
        return 2.0 * (1.0 - check_fraction("alpha", self.alpha)), 0.0


class Shifted(Quadratic):
    """``(s - 1/(1 - rho))^2`` on positives, ``s^2`` on all other cells (PU, section 2).

    Parameters
    ----------
    rho : float, default=0.5
        Share of the true positives that are hidden, in [0, 1).
    """

    def __init__(self, rho: float = 0.5) -> None:
        self.rho = rho

    def stored(self, values: FloatArray) -> tuple[ScalarOrCells, ScalarOrCells]:
        return 2.0, 1.0 / (1.0 - check_fraction("rho", self.rho, include_low=True))

    def blank(self) -> tuple[float, float]:
        return 2.0, 0.0


class Logistic(Loss):
    """``log(1 + exp(-y s))`` on stored cells, y = 1 for non-zeros and -1 for stored zeros.

    Scores are log odds. Blank cells are missing.
    """

    def value(self, scores: FloatArray, values: FloatArray) -> float:
        signed = np.where(values != 0, scores, -scores).astype(np.float64)
        return float(np.logaddexp(0.0, -signed).sum())

    def grad(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        out: FloatArray = expit(scores) - (values != 0)
        return out.astype(scores.dtype, copy=False)
