"""Losses: what a stored cell and a blank cell mean.

A loss has a pointwise part on the stored cells and, optionally, a background: a weighted
squared distance to one target on all other cells. Missing (no background), unlabelled and
true zero (background) differ here and nowhere else. A loss also says what its scores mean: how they
become values, what may be subtracted from the values before a fit, and how a prediction of held-out
cells is judged. :class:`CellLoss` is a loss bound to the cells of a fit.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError, UnsupportedComposition
from unseen.linalg.blocked import inner
from unseen.linalg.score_gradient import Blank
from unseen.typing import BoolArray, FloatArray
from unseen.validation import check_fraction, check_positive

__all__ = [
    "Background",
    "Biased",
    "CellLoss",
    "Logistic",
    "Loss",
    "Quadratic",
    "Shifted",
    "Squared",
    "blank_of",
    "cells_that_count",
    "root_mean",
    "without",
]

ScalarOrCells: TypeAlias = float | FloatArray
"""One number for all stored cells, or one for each."""
CELLS_AT_A_TIME = 1 << 15
"""Cells of a part: float64 copies of it stay in cache."""


class Background(BaseEstimator):  # type: ignore[misc]
    """``weight/2 r_i c_j (s - target)^2`` on every cell that is not stored.

    Parameters
    ----------
    weight : float, default=1.0
        Weight, zero or larger.
    target : float, default=0.0
        Value that blank cells are pulled to.
    row_weights, col_weights : array-like of float, optional
        r_i and c_j, zero or larger: one number for each row, one for each column; one by default. A popular
        column that a row left blank says more than a rare one.
    """

    def __init__(
        self,
        weight: float = 1.0,
        target: float = 0.0,
        row_weights: Any = None,
        col_weights: Any = None,
    ) -> None:
        self.weight = weight
        self.target = target
        self.row_weights = row_weights
        self.col_weights = col_weights

    def numbers(self) -> Blank:
        """Validated numbers."""
        weight = check_positive("background weight", self.weight, strict=False)
        if not np.isfinite(self.target):
            raise ParameterError(f"background target must be finite, found {self.target!r}")
        sides = [
            None if given is None else _side_weights(f"{side}_weights", given)
            for side, given in (("row", self.row_weights), ("col", self.col_weights))
        ]
        return Blank(weight, float(self.target), *sides)


def _side_weights(name: str, given: Any) -> FloatArray:
    weights = np.asarray(given, dtype=np.float64)
    if weights.ndim != 1 or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ParameterError(f"{name} of a background must be a vector of finite numbers >= 0")
    return weights


class Loss(BaseEstimator):  # type: ignore[misc]
    """Base of all losses.

    A loss of one's own gives :meth:`pointwise` and :meth:`grad`, elementwise: cells arrive in any number
    and order. What differs from cell to cell beside the value are weights, and these belong to the
    observations.
    """

    centred: ClassVar[bool] = False
    """Whether ``l(s + c, a + c) = l(s, a)``: only then may something be subtracted from the values."""

    classes: ClassVar[tuple[float, ...] | None] = None
    """The values that cells can have, where they are classes; :meth:`probabilities` has a column for each."""

    def pointwise(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        """Loss of each stored cell, in float64."""
        raise UnsupportedComposition(
            f"{type(self).__name__} does not tell the loss of single cells, which weights need; "
            "give it a method pointwise(scores, values)"
        )

    def value(self, scores: FloatArray, values: FloatArray) -> float:
        """Sum of the loss over stored cells of weight one, in float64."""
        return float(self.pointwise(scores, values).sum(dtype=np.float64))

    @abstractmethod
    def grad(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        """Derivative with respect to the score of each stored cell."""

    def fitted(self, values: FloatArray, weights: FloatArray | None = None) -> Self:
        """The loss with what it takes from the cells of a fit, such as the levels they have."""
        return self

    def blank(self) -> Blank | tuple[float, float]:
        """Background (``Background(...).numbers()``), or its weight and target; none by default."""
        return Blank()

    def link(self, scores: FloatArray) -> FloatArray:
        """Predictions on the scale of the data, from scores."""
        return scores

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Probability of each class, one column a class, where values are classes."""
        raise UnsupportedComposition(f"{type(self).__name__} knows no classes, so it gives no probabilities")

    def deviance(self, scores: FloatArray, values: FloatArray, weights: FloatArray | None = None) -> float:
        """Mean loss of cells; what early stopping looks at."""
        if weights is None:
            return self.value(scores, values) / max(values.size, 1)
        total = float(np.sum(weights * self.pointwise(scores, values), dtype=np.float64))
        return total / max(float(weights.sum(dtype=np.float64)), np.finfo(float).tiny)

    def why_not_centred(self) -> str | None:
        """Why nothing may be subtracted from the values before a fit, or None."""
        if self.centred:
            return None
        return (
            f"{type(self).__name__} depends on the values themselves, not on their distance to the scores: "
            "nothing can be subtracted from them; use center='none', and for biases terms such as "
            "Term(Identity(), Constant(), Full(), Ridge(5.0))"
        )


class Quadratic(Loss):
    """Losses of the form ``weight/2 (s - target)^2`` on stored cells."""

    @abstractmethod
    def stored(self, values: FloatArray) -> tuple[ScalarOrCells, ScalarOrCells]:
        """Weight and target of the stored cells: one number, or one for each value."""

    def pointwise(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        weight, target = self.stored(values)
        distance = np.subtract(scores, target, dtype=np.float64)
        return np.asarray(0.5 * weight * distance * distance)

    def grad(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        weight, target = self.stored(values)
        out: FloatArray = (weight * (scores - target)).astype(scores.dtype, copy=False)
        return out

    def deviance(self, scores: FloatArray, values: FloatArray, weights: FloatArray | None = None) -> float:
        """Root of the weighted mean squared distance to the targets."""
        weight, target = self.stored(values)
        counts = np.broadcast_to(weight if weights is None else weight * weights, scores.shape)
        distance = np.subtract(scores, target, dtype=np.float64)
        total = max(float(counts.sum(dtype=np.float64)), np.finfo(float).tiny)
        return float(np.sqrt(np.sum(counts * distance * distance) / total))


class Squared(Quadratic):
    """``weight/2 (s - a)^2`` on stored cells; blank cells are missing unless a background is given.

    What is subtracted from the values before a fit is subtracted from the background's target too: blank
    cells are pulled to ``target`` above the baseline.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the stored cells.
    background : Background, optional
        What blank cells are pulled to.
    """

    centred = True

    def __init__(self, weight: float = 1.0, background: Background | None = None) -> None:
        self.weight = weight
        self.background = background

    def stored(self, values: FloatArray) -> tuple[ScalarOrCells, ScalarOrCells]:
        return check_positive("weight", self.weight), values

    def blank(self) -> Blank:
        return Blank() if self.background is None else self.background.numbers()


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

    def blank(self) -> Blank:
        return Blank(2.0 * (1.0 - check_fraction("alpha", self.alpha)))


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

    def blank(self) -> Blank:
        return Blank(2.0)


class Logistic(Loss):
    """``log(1 + exp(-y s))`` on stored cells, y = 1 for non-zeros and -1 for stored zeros.

    Scores are log odds, predictions are probabilities of a non-zero. Blank cells are missing.
    """

    classes = (0.0, 1.0)

    def pointwise(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        signed = np.where(values != 0, scores, -scores).astype(np.float64)
        return np.logaddexp(0.0, -signed)

    def grad(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        out: FloatArray = expit(scores) - (values != 0)
        return out.astype(scores.dtype, copy=False)

    def link(self, scores: FloatArray) -> FloatArray:
        chance: FloatArray = expit(scores)
        return chance

    def probabilities(self, scores: FloatArray) -> FloatArray:
        return np.stack([expit(-scores), expit(scores)], axis=-1)


def blank_of(loss: Loss) -> Blank:
    """What a loss pulls blank cells to."""
    found = loss.blank()
    return found if isinstance(found, Blank) else Blank(*found)


def root_mean(squares: float, count: float) -> float:
    """Root of a mean of squares; not zero, at which a start would stay, and one where there is nothing."""
    return (float(np.sqrt(squares / count)) or 1e-3) if count > 0 else 1.0


def without(cells: Observations, held_out: BoolArray, blanks: bool) -> Observations:
    """The other cells; where blanks count, these stay with weight zero: they are not blank."""
    if not blanks:
        return cells.select(~held_out)
    weights = np.ones_like(cells.values) if cells.weights is None else cells.weights
    return cells.with_weights(np.where(held_out, 0, weights))


def cells_that_count(cells: Observations) -> Observations:
    """Cells of weight above zero: where blank cells are missing, the others are as well."""
    if cells.weights is None or cells.weights.all():
        return cells
    return cells.select(cells.weights > 0)


class CellLoss:
    """A loss bound to the stored cells of one fit: sum of weight times loss, and the background.

    Solvers, fold-in and validation ask this object, so weights of cells count in all of them alike. A
    quadratic loss is asked once for all cells; a part of them is cut out of its answer.

    Parameters
    ----------
    loss : Loss
        The meaning of cells.
    cells : Observations
        Values and weights.
    """

    def __init__(self, loss: Loss, cells: Observations) -> None:
        self.loss = loss
        self.cells = cells
        self.blank = blank_of(loss)
        for side, length in zip(("row", "col"), cells.shape, strict=True):
            weights = self.blank.of(side)
            if weights is not None and len(weights) != length:
                raise InvalidDataError(
                    f"the background has {len(weights)} {side}_weights; the target has {length} {side}s"
                )
        self.quadratic = isinstance(loss, Quadratic)
        self._answer: tuple[ScalarOrCells, ScalarOrCells] | None = None
        self._blank_at: ScalarOrCells | None = None

    @property
    def blank_at(self) -> ScalarOrCells:
        """Weight of the background at the stored cells, where it does not count."""
        if self._blank_at is None:
            self._blank_at = self.blank.at(self.cells)
        return self._blank_at

    def stored(self) -> tuple[ScalarOrCells, ScalarOrCells]:
        """Weight (those of the cells included) and target of the stored cells, for quadratic losses."""
        if self._answer is None:
            assert isinstance(self.loss, Quadratic)
            weight, target = self.loss.stored(self.cells.values)
            for name, answer in (("weight", weight), ("target", target)):
                if np.ndim(answer) and np.shape(answer) != self.cells.values.shape:
                    raise InvalidDataError(
                        f"{type(self.loss).__name__} gives {np.shape(answer)} {name}s for {self.cells.nnz} "
                        "cells; weights of cells belong to the observations: Observations.from_...(weights=)"
                    )
            if self.cells.weights is not None:
                weight = np.asarray(weight, dtype=self.cells.dtype) * self.cells.weights
            self._answer = weight, target
        return self._answer

    def value(self, scores: FloatArray, part: slice | None = None) -> float:
        """Loss of stored cells in float64: of all, or of the part that the scores belong to."""
        part = slice(0, self.cells.nnz) if part is None else part
        if self.quadratic:
            return self._squares(scores, part)
        values, weights = self.cells.values[part], self.cells.weights
        if weights is None:
            return self.loss.value(scores, values)
        return float(np.sum(weights[part] * self.loss.pointwise(scores, values), dtype=np.float64))

    def _squares(self, scores: FloatArray, part: slice) -> float:
        weight, target = self.stored()
        total = 0.0
        # In parts: float64 copies of all cells would be twice the size of the data. One buffer for all
        # parts: a new one for each would be fetched from the system and given back every time.
        buffer = np.empty(min(CELLS_AT_A_TIME, scores.size))
        for start in range(0, scores.size, CELLS_AT_A_TIME):
            own = slice(start, start + CELLS_AT_A_TIME)
            squares = buffer[: scores[own].size]
            among = slice(part.start + start, part.start + start + squares.size)
            w, t = (value if np.ndim(value) == 0 else np.asarray(value)[among] for value in (weight, target))
            np.subtract(scores[own], t, out=squares, dtype=np.float64)
            np.square(squares, out=squares)
            if np.ndim(w) or w != 1.0:
                np.multiply(squares, w, out=squares)
            total += float(np.sum(squares))
        return 0.5 * total

    def grad(self, scores: FloatArray, part: slice | None = None) -> FloatArray:
        """Derivative by the score of each stored cell (of the part)."""
        part = slice(0, self.cells.nnz) if part is None else part
        if self.quadratic:
            weight, target = (
                value if np.ndim(value) == 0 else np.asarray(value)[part] for value in self.stored()
            )
            out: FloatArray = (weight * (scores - target)).astype(scores.dtype, copy=False)
            return out
        slope = self.loss.grad(scores, self.cells.values[part])
        return slope if self.cells.weights is None else slope * self.cells.weights[part]

    def residual(self, scores: FloatArray) -> FloatArray:
        """Sparse part of the derivative by the scores: the background's share at the cells is taken out."""
        slope = self.grad(scores)
        if not self.blank:
            return slope
        kind = scores.dtype.type
        away = scores - kind(self.blank.target)
        return (slope - np.asarray(self.blank_at, dtype=scores.dtype) * away).astype(scores.dtype, copy=False)

    def slopes_at_zero(self) -> tuple[float, float]:
        """Sums over the cells of the squared slope at score zero, and of the squared weight."""
        total = 0.0
        for start in range(0, self.cells.nnz, CELLS_AT_A_TIME):
            part = slice(start, min(start + CELLS_AT_A_TIME, self.cells.nnz))
            slopes = self.grad(np.zeros_like(self.cells.values[part]), part)
            total += inner(slopes, slopes)
        weights = self.cells.weights
        return total, float(self.cells.nnz) if weights is None else inner(weights, weights)

    def size_at_zero(self) -> float:
        """Root mean square of the slope at zero scores: the scale of what is to be fitted."""
        return root_mean(*self.slopes_at_zero())

    def normal_terms(self) -> tuple[ScalarOrCells, ScalarOrCells]:
        """``(c, d)`` such that stored cells add ``c/2 s^2 - d s`` to the background on all cells."""
        weight, target = self.stored()
        if not self.blank and np.ndim(weight) == 0 and weight == 1.0:
            return weight, target  # as they are, without a copy
        at = self.blank_at
        return weight - at, weight * target - at * self.blank.target

    def normal_constant(self) -> float:
        """What the stored cells add to the background at score zero, so ``c/2 s^2 - d s`` is complete."""
        values = self.cells.values
        at_zero = self.value(np.broadcast_to(values.dtype.type(0), values.shape))
        at = self.blank_at
        count = float(at) * values.size if np.ndim(at) == 0 else float(np.sum(at, dtype=np.float64))
        return at_zero - 0.5 * self.blank.target**2 * count
