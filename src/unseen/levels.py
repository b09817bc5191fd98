"""Losses of levels: a score plus normal noise falls between two thresholds, which tells the level."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from unseen.exceptions import InvalidDataError, ParameterError, UnsupportedComposition
from unseen.losses import Loss
from unseen.typing import Array, FloatArray
from unseen.validation import check_positive

__all__ = ["Cuts", "LevelLoss", "Ordinal", "Probit", "chances", "mean_level"]

MOST_LEVELS = 100


class Cuts(NamedTuple):
    """Levels, and the thresholds between them, of which there is one fewer."""

    levels: Array
    thresholds: Array


def mean_level(cuts: Cuts, scores: FloatArray, width: FloatArray | float) -> FloatArray:
    """Mean level of scores whose noise has this deviation."""
    levels, thresholds = cuts
    mean = np.full(np.shape(scores), levels[0])
    for threshold, step in zip(thresholds, np.diff(levels), strict=True):
        mean += step * ndtr((scores - threshold) / width)
    found: FloatArray = mean.astype(scores.dtype, copy=False)
    return found


def chances(cuts: Cuts, scores: FloatArray, width: FloatArray | float) -> Array:
    """Probability of each level, in a last axis of its own."""
    width = np.asarray(width)[..., None]
    below = ndtr((cuts.thresholds - np.asarray(scores, dtype=np.float64)[..., None]) / width)
    return np.diff(below, axis=-1, prepend=0.0, append=1.0)


class LevelLoss(Loss):
    """``-log(Phi((t_k - s) / width) - Phi((t_(k-1) - s) / width))`` on cells of level k."""

    width: float

    @abstractmethod
    def cuts(self) -> Cuts:
        """Levels and thresholds in use."""

    def codes(self, values: FloatArray) -> Array:
        """Number of the level of each value."""
        levels = self.cuts().levels
        found = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
        away = levels[found] != values
        if np.any(away):
            raise InvalidDataError(
                f"{type(self).__name__} has the levels {levels.tolist()}, found a cell of value "
                f"{float(values[np.argmax(away)])!r}"
            )
        return np.asarray(found)

    def _ends(self, scores: FloatArray, values: FloatArray) -> tuple[Array, Array]:
        """Where the noise of each cell lies, in units of its deviation."""
        inner = self.cuts().thresholds
        ends, codes = np.concatenate([[-np.inf], inner, [np.inf]]), self.codes(values)
        scores = scores.astype(np.float64)
        return (ends[codes] - scores) / self.width, (ends[codes + 1] - scores) / self.width

    def pointwise(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        return -_log_share(*self._ends(scores, values))

    def grad(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        low, high = self._ends(scores, values)
        share = _log_share(low, high)
        root = 0.5 * np.log(2.0 * np.pi)
        at_low, at_high = (np.exp(-0.5 * end * end - root - share) for end in (low, high))
        out: FloatArray = ((at_high - at_low) / self.width).astype(scores.dtype, copy=False)
        return out

    def link(self, scores: FloatArray) -> FloatArray:
        """Mean level."""
        return mean_level(self.cuts(), scores, self.width)

    def probabilities(self, scores: FloatArray) -> FloatArray:
        return chances(self.cuts(), scores, self.width)

    @abstractmethod
    def averaged(self, thresholds: Array, width: float) -> LevelLoss:
        """The loss whose scores have this much noise, with what was learned of the thresholds."""


def _log_share(low: Array, high: Array) -> Array:
    """``log(Phi(high) - Phi(low))`` without loss of digits in either tail."""
    turned = low > 0
    low, high = np.where(turned, -high, low), np.where(turned, -low, high)
    upper, lower = log_ndtr(high), log_ndtr(low)
    with np.errstate(divide="ignore"):
        return np.asarray(upper + np.log1p(-np.exp(lower - upper)))


class Ordinal(LevelLoss):
    """Levels whose order counts but not their distances, such as stars.

    A cell has level k where its score plus noise of deviation ``width`` lies between the thresholds t_(k-1)
    and t_k: ``-log(Phi((t_k - s) / width) - Phi((t_(k-1) - s) / width))``. Predictions are mean levels. Under
    :class:`~unseen.solvers.Gibbs` the thresholds are drawn along with the factors; other solvers take them
    as they are.

    Parameters
    ----------
    levels : sequence of float, optional
        Values of cells in ascending order; those found in the data by default.
    thresholds : sequence of float, optional
        One fewer than levels, ascending; by default where a standard normal number falls below with the same
        probability as the cells.
    width : float, default=1.0
        Standard deviation of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Ordinal
    >>> loss = Ordinal(levels=(1.0, 2.0, 3.0), thresholds=(-1.0, 1.0))
    >>> loss.probabilities(np.array([0.0])).round(2).tolist()
    [[0.16, 0.68, 0.16]]
    """

    def __init__(
        self,
        levels: Sequence[float] | None = None,
        thresholds: Sequence[float] | None = None,
        width: float = 1.0,
    ) -> None:
        self.levels = levels
        self.thresholds = thresholds
        self.width = width

    @property
    def classes(self) -> tuple[float, ...] | None:  # type: ignore[override]
        """The levels, once they are known."""
        return None if self.levels is None else tuple(self.cuts().levels.tolist())

    def fitted(self, values: FloatArray, weights: FloatArray | None = None) -> Self:
        """The loss with levels and thresholds of these cells, where it has none of its own."""
        if weights is not None:
            values, weights = values[weights > 0], weights[weights > 0]
            weights = weights * (len(weights) / max(float(weights.sum(dtype=np.float64)), 1e-300))
        levels = np.unique(values) if self.levels is None else _ascending("levels", self.levels)
        if not 2 <= len(levels) <= MOST_LEVELS:
            raise InvalidDataError(
                f"Ordinal is for values on 2 to {MOST_LEVELS} levels, found {len(levels)} different ones"
            )
        thresholds = self.thresholds
        if thresholds is None:
            # Half a cell more on each level, so that levels without cells have room.
            found = np.searchsorted(levels, values)
            counts = np.bincount(found, weights, minlength=len(levels))[: len(levels)] + 0.5
            thresholds = (self.width * ndtri(np.cumsum(counts)[:-1] / counts.sum())).tolist()
        return type(self)(tuple(levels.tolist()), tuple(thresholds), self.width)

    def averaged(self, thresholds: Array, width: float) -> Ordinal:
        return Ordinal(self.levels, tuple(thresholds.tolist()), width)

    def cuts(self) -> Cuts:
        if self.levels is None or self.thresholds is None:
            raise UnsupportedComposition(
                "Ordinal() takes its levels and thresholds from the cells of a fit; give levels= and "
                "thresholds= to use it without one"
            )
        check_positive("width", self.width)
        found = Cuts(_ascending("levels", self.levels), _ascending("thresholds", self.thresholds))
        if len(found.thresholds) != len(found.levels) - 1:
            raise ParameterError(
                f"{len(found.levels)} levels have {len(found.levels) - 1} thresholds between them, found "
                f"{len(found.thresholds)}"
            )
        return found


def _ascending(name: str, given: Sequence[float]) -> Array:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array([[np.nan]])
    if found.ndim != 1 or not (np.isfinite(found).all() and (np.diff(found) > 0).all()):
        raise ParameterError(f"{name} must be ascending finite numbers, found {given!r}")
    return found


class Probit(LevelLoss):
    """``-log Phi(y s / width)`` on stored cells, y = 1 for non-zeros and -1 for stored zeros.

    Likes and dislikes: :class:`Logistic` with a normal distribution in place of the logistic one, which
    :class:`~unseen.solvers.Gibbs` can draw from. Predictions are probabilities of a non-zero.

    Parameters
    ----------
    width : float, default=1.0
        Standard deviation of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Probit
    >>> Probit().link(np.array([-1.0, 0.0, 1.0])).round(2).tolist()
    [0.16, 0.5, 0.84]
    """

    classes = (0.0, 1.0)

    def __init__(self, width: float = 1.0) -> None:
        self.width = width

    def cuts(self) -> Cuts:
        check_positive("width", self.width)
        return Cuts(np.array([0.0, 1.0]), np.zeros(1))

    def codes(self, values: FloatArray) -> Array:
        return np.asarray(values != 0, dtype=np.intp)

    def averaged(self, thresholds: Array, width: float) -> Probit:
        return Probit(width)
