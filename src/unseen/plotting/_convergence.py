"""How the objective fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np

from unseen.exceptions import InvalidDataError
from unseen.plotting._base import Display, line_styles, named, pyplot, thinned
from unseen.typing import FloatArray
from unseen.validation import check_choice

__all__ = ["ConvergenceDisplay"]

History = Sequence[Mapping[str, Any]]
XAxis = Literal["sweep", "seconds"]


class ConvergenceDisplay(Display):
    """Objective, or another recorded quantity, against sweeps or seconds.

    Parameters
    ----------
    histories : dict of str to list of dict
        ``history_`` of each model, by the name for the legend.
    quantity : str, default="objective"
        Which entry of the histories to draw.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One for each model.

    Examples
    --------
    >>> from unseen.plotting import ConvergenceDisplay
    >>> history = [{"objective": 9.0 / (i + 1), "time_s": 0.1 * (i + 1)} for i in range(5)]
    >>> display = ConvergenceDisplay({"ALS": history}).plot(x="seconds")
    >>> display.ax_.get_xlabel()
    'Time (s)'
    """

    def __init__(self, histories: Mapping[str, History], *, quantity: str = "objective") -> None:
        self.histories = histories
        self.quantity = quantity

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        quantity: str = "objective",
        x: XAxis = "sweep",
        gap: bool = False,
        ax: Any = None,
    ) -> Self:
        """Draw the history of one fitted model, or of a dict of models by name.

        Parameters
        ----------
        estimator : fitted estimator or dict of str to fitted estimator
            With ``history_``.
        quantity : str, default="objective"
            Which entry of the history to draw.
        x : {"sweep", "seconds"}, default="sweep"
            Horizontal axis.
        gap : bool, default=False
            Draw the distance to the best value found, on a logarithmic scale.

        Returns
        -------
        ConvergenceDisplay
            Drawn.
        """
        histories = {name: model.history_ for name, model in named(estimator, "estimators").items()}
        return cls(histories, quantity=quantity).plot(ax, x=x, gap=gap)

    def plot(self, ax: Any = None, *, x: XAxis = "sweep", gap: bool = False) -> Self:
        """Draw.

        Parameters
        ----------
        x : {"sweep", "seconds"}, default="sweep"
            Horizontal axis.
        gap : bool, default=False
            Draw the distance to the best value found by any of the models, on a logarithmic scale.

        Returns
        -------
        ConvergenceDisplay
            Itself.
        """
        check_choice("x", x, ("sweep", "seconds"))
        curves = {name: self._curve(name, history, x) for name, history in self.histories.items()}
        ax = self._axes(ax)
        best = min(float(np.min(y)) for _, y in curves.values())
        self.lines_ = []
        for (name, (places, y)), style in zip(curves.items(), line_styles(len(curves)), strict=True):
            drawn = thinned(places)
            height = y - best if gap else y
            if gap:
                height = np.where(height > 0, height, np.nan)  # the best value itself has no logarithm
            marks = max(1, drawn.size // 12)
            self.lines_ += ax.plot(
                places[drawn], height[drawn], label=name or None, markevery=marks, markersize=4, **style
            )
        label = self.quantity.replace("_", " ").capitalize()
        ax.set(xlabel="Sweep" if x == "sweep" else "Time (s)", ylabel=label)
        if gap:
            ax.set_yscale("log")
            ax.set_ylabel(f"{label} above best")
        elif best > 0 and max(float(np.max(y)) for _, y in curves.values()) > 30 * best:
            ax.set_yscale("log")
        if x == "sweep":
            ax.xaxis.set_major_locator(pyplot().MaxNLocator(integer=True))
        ax.grid(alpha=0.3)
        if any(curves):
            ax.legend()
        return self

    def _curve(self, name: str, history: History, x: XAxis) -> tuple[FloatArray, FloatArray]:
        who = f"of {name!r} " if name else ""
        if len(history) == 0:
            raise InvalidDataError(f"the history {who}is empty; was the model fitted by a closed form?")
        if self.quantity not in history[0]:
            raise InvalidDataError(f"the history {who}has {sorted(history[0])}, not {self.quantity!r}")
        y = np.array([float(entry[self.quantity]) for entry in history])
        if x == "seconds":
            return np.array([float(entry["time_s"]) for entry in history]), y
        return np.arange(1.0, len(history) + 1), y
