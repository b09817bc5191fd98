"""Predicted against true values."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unseen.data import Observations
from unseen.data.ids import by_position
from unseen.metrics import rmse
from unseen.plotting._base import Display, pyplot
from unseen.typing import FloatArray

__all__ = ["PredictionDisplay"]

_MOST_LEVELS = 20


class PredictionDisplay(Display):
    """True against predicted values as a density, with the mean truth at each level of prediction.

    A calibrated model has its line of means on the diagonal.

    Parameters
    ----------
    y_true, y_pred : array of shape (n,)
        True and predicted values of the same cells.

    Attributes
    ----------
    im_ : matplotlib QuadMesh
        The density.
    line_ : matplotlib Line2D
        The means.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.plotting import PredictionDisplay
    >>> truth = np.random.default_rng(0).normal(size=500)
    >>> display = PredictionDisplay(truth, 0.5 * truth).plot()
    >>> display.ax_.get_ylabel()
    'True value'
    """

    def __init__(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> None:
        self.y_true = y_true
        self.y_pred = y_pred

    @classmethod
    def from_predictions(cls, y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, ax: Any = None) -> Self:
        """Draw given predictions.

        Parameters
        ----------
        y_true, y_pred : array of shape (n,)
            True and predicted values of the same cells.

        Returns
        -------
        PredictionDisplay
            Drawn.
        """
        return cls(y_true, y_pred).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Predict the known cells of a matrix, such as the test part of a split, and draw.

        Parameters
        ----------
        estimator : fitted completer
            With ``predict_entries``.
        X : Observations, sparse matrix or dense array with NaN
            Cells with their true values, in the numbering of the training matrix.

        Returns
        -------
        PredictionDisplay
            Drawn.
        """
        cells = Observations.from_any(X)
        predicted = estimator.predict_entries(cells.rows, cells.indices, **by_position(estimator))
        return cls(cells.values, predicted).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Returns
        -------
        PredictionDisplay
            Itself.
        """
        error = rmse(self.y_true, self.y_pred)  # checks both, too
        truth, predicted = np.asarray(self.y_true, dtype=float), np.asarray(self.y_pred, dtype=float)
        ax = self._axes(ax, (5.6, 4.8))
        levels = np.unique(truth)
        edges_y = _edges(levels) if levels.size <= _MOST_LEVELS else np.linspace(*_range(truth), 61)
        low, high = _range(predicted)
        counts, _, _ = np.histogram2d(predicted, truth, bins=(np.linspace(low, high, 61), edges_y))
        self.im_ = ax.pcolormesh(
            np.linspace(low, high, 61),
            edges_y,
            np.ma.masked_equal(counts.T, 0),
            cmap="Blues",
            norm=pyplot().matplotlib.colors.LogNorm(1, max(counts.max(), 10)),
            rasterized=True,
        )
        ends = (max(low, edges_y[0]), min(high, edges_y[-1]))
        ax.plot(ends, ends, color="black", linestyle="--", linewidth=1, label="prediction = truth")
        (self.line_,) = ax.plot(
            *_mean_truth(predicted, truth), color="#D55E00", marker="o", markersize=4, label="mean true value"
        )
        ax.set(xlabel="Predicted value", ylabel="True value", xlim=(low, high))
        ax.set_title(f"{truth.size:,} cells, RMSE {error:.4g}", fontsize=10)
        ax.figure.colorbar(self.im_, ax=ax, label="Cells")
        ax.legend(loc="upper left", fontsize=9, framealpha=0.9)
        return self


def _mean_truth(
    predicted: FloatArray, truth: FloatArray, n_groups: int = 15
) -> tuple[FloatArray, FloatArray]:
    """Mean prediction and mean truth in groups of equal size by prediction."""
    order = np.argsort(predicted, kind="stable")
    groups = np.array_split(order, min(n_groups, order.size))
    return (
        np.array([predicted[group].mean() for group in groups]),
        np.array([truth[group].mean() for group in groups]),
    )


def _range(values: FloatArray) -> tuple[float, float]:
    """Range without the outermost half percent on both sides if these would stretch it; never empty."""
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = np.quantile(values, [0.005, 0.995])
    if high - low > 3 * (inner_high - inner_low) > 0:
        low, high = float(inner_low), float(inner_high)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _edges(levels: FloatArray) -> FloatArray:
    """Borders half-way between discrete levels."""
    if levels.size == 1:
        return np.array([levels[0] - 0.5, levels[0] + 0.5])
    between = (levels[1:] + levels[:-1]) / 2
    return np.concatenate([[2 * levels[0] - between[0]], between, [2 * levels[-1] - between[-1]]])
