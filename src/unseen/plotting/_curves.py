"""Curves of ranked lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unseen.exceptions import InvalidDataError
from unseen.metrics import FprFnrCurve, fpr_fnr_curve, precision_at_k
from unseen.plotting._base import Display, line_styles, named, thinned
from unseen.typing import FloatArray, SparseLike

__all__ = ["FprFnrDisplay", "PrecisionCurveDisplay"]


class FprFnrDisplay(Display):
    """False negative rate against false positive rate of ranked lists; lower left is better.

    Parameters
    ----------
    curves : dict of str to FprFnrCurve, or one FprFnrCurve
        Results of `unseen.metrics.fpr_fnr_curve`, by the name for the legend.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One for each curve.

    Examples
    --------
    >>> from unseen.metrics import fpr_fnr_curve
    >>> from unseen.plotting import FprFnrDisplay
    >>> curve = fpr_fnr_curve([True, True, False, True], n_positive=5, n_candidates=1000)
    >>> display = FprFnrDisplay({"Katz": curve}).plot()
    >>> display.ax_.get_xscale()
    'log'
    """

    def __init__(self, curves: Mapping[str, FprFnrCurve] | FprFnrCurve) -> None:
        self.curves = curves

    @classmethod
    def from_predictions(
        cls, y_true: npt.ArrayLike, y_score: npt.ArrayLike | Mapping[str, npt.ArrayLike], *, ax: Any = None
    ) -> Self:
        """Rank all candidates by score and draw.

        Parameters
        ----------
        y_true : array of shape (n,)
            Non-zero for positives.
        y_score : array of shape (n,), or dict of str to such arrays
            Scores; ties by position.

        Returns
        -------
        FprFnrDisplay
            Drawn.
        """
        positive = np.asarray(y_true) != 0
        curves = {
            name: fpr_fnr_curve(positive[np.argsort(-np.asarray(scores), kind="stable")])
            for name, scores in named(y_score, "y_score").items()
        }
        return cls(curves).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Returns
        -------
        FprFnrDisplay
            Itself.
        """
        curves = named(self.curves, "curves")
        ax = self._axes(ax)
        self.lines_ = []
        for (name, curve), style in zip(curves.items(), line_styles(len(curves)), strict=True):
            drawn = thinned(curve.fpr, log=True)
            drawn = drawn[curve.fpr[drawn] > 0]  # places before the first miss have no logarithm
            marks = max(1, drawn.size // 8)
            self.lines_ += ax.plot(
                curve.fpr[drawn], curve.fnr[drawn], label=name or None, markevery=marks, markersize=4, **style
            )
        ax.set_xscale("log")
        ax.set(xlabel="False positive rate", ylabel="False negative rate")
        ax.set_ylim(top=1.02)
        ax.grid(alpha=0.3)
        if any(curves):
            ax.legend()
        return self


class PrecisionCurveDisplay(Display):
    """Precision, or another score, against the length of the list or the size of the model.

    Parameters
    ----------
    x : array of shape (n_points,)
        List lengths k, numbers of features m, ranks, ...
    scores : dict of str to array of shape (n_points,) or (n_repeats, n_points)
        Scores by the name for the legend; repeats are drawn as mean and a band of one standard
        deviation.
    xlabel, ylabel : str
        Labels of the axes.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One for each name.

    Examples
    --------
    >>> from unseen.plotting import PrecisionCurveDisplay
    >>> scores = {"learned": [0.5, 0.6, 0.62], "fixed": [0.4, 0.5, 0.58]}
    >>> display = PrecisionCurveDisplay([50, 100, 200], scores, xlabel="Features m").plot()
    >>> len(display.lines_)
    2
    """

    def __init__(
        self,
        x: npt.ArrayLike,
        scores: Mapping[str, npt.ArrayLike],
        *,
        xlabel: str = "List length k",
        ylabel: str = "Precision",
    ) -> None:
        self.x = x
        self.scores = scores
        self.xlabel = xlabel
        self.ylabel = ylabel

    @classmethod
    def from_predictions(
        cls,
        Y_true: SparseLike,
        predictions: npt.ArrayLike | Mapping[str, npt.ArrayLike],
        *,
        ks: Sequence[int] = (1, 2, 3, 4, 5),
        ax: Any = None,
    ) -> Self:
        """Compute precision at each list length and draw.

        Parameters
        ----------
        Y_true : sparse matrix or Observations
            Non-zero where relevant.
        predictions : array, or dict of str to arrays
            Ids, best first, or scores; see `unseen.metrics.precision_at_k`.
        ks : sequence of int, default=(1, 2, 3, 4, 5)
            List lengths.

        Returns
        -------
        PrecisionCurveDisplay
            Drawn.
        """
        scores = {
            name: [precision_at_k(Y_true, lists, k) for k in ks]
            for name, lists in named(predictions, "predictions").items()
        }
        return cls(ks, scores, ylabel="Precision at k").plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Returns
        -------
        PrecisionCurveDisplay
            Itself.
        """
        places = np.asarray(self.x, dtype=np.float64)
        curves = {name: self._repeats(name, values, places) for name, values in self.scores.items()}
        ax = self._axes(ax)
        self.lines_ = []
        for (name, repeats), style in zip(curves.items(), line_styles(len(curves)), strict=True):
            mean = repeats.mean(axis=0)
            self.lines_ += ax.plot(places, mean, label=name or None, markersize=5, **style)
            if len(repeats) > 1:
                spread = repeats.std(axis=0, ddof=1)
                ax.fill_between(places, mean - spread, mean + spread, color=style["color"], alpha=0.18, lw=0)
        if places.size and places.min() > 0 and places.max() > 12 * places.min():
            ax.set_xscale("log")
        if places.size <= 10:
            ax.set_xticks(places, [f"{place:g}" for place in places])
            ax.minorticks_off()
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        ax.grid(alpha=0.3)
        if any(curves):
            ax.legend()
        return self

    def _repeats(self, name: str, values: npt.ArrayLike, places: FloatArray) -> FloatArray:
        repeats = np.atleast_2d(np.asarray(values, dtype=np.float64))
        if repeats.ndim != 2 or repeats.shape[1] != places.size:
            raise InvalidDataError(
                f"scores of {name!r} have shape {np.shape(values)}; expected {places.size} points as in x, "
                "with or without repeats in front"
            )
        return repeats
