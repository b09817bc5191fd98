"""What all displays share: axes, colours, and the one place that imports matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.docstrings import Descriptions, described_by, share_options
from unseen.exceptions import InvalidDataError
from unseen.typing import IndexArray

__all__ = ["Display", "line_styles", "named", "pyplot", "thinned"]

# Seven colours that stay apart for all common kinds of colour blindness, darkest first.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_MOST_POINTS = 2000
_AXES: Descriptions = {"ax": ("matplotlib Axes, optional", "Where to draw; by default a new figure.")}
_DRAWN: Descriptions = {
    "ax_": ("matplotlib Axes", "Where it was drawn."),
    "figure_": ("matplotlib Figure", "Its figure."),
}


class Display:
    """Base of the displays: `plot` leaves the axes in ``ax_`` and the figure in ``figure_``."""

    ax_: Any
    figure_: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        share_options(cls, {}, _DRAWN)
        for member in vars(cls).values():
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and function.__doc__:
                described_by(_AXES)(function)

    def _axes(self, ax: Any, size: tuple[float, float] = (6.0, 4.2)) -> Any:
        """Use the given axes, or make a figure with one."""
        if ax is None:
            _, ax = pyplot().subplots(figsize=size, layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax


def pyplot() -> Any:
    """Import matplotlib at the moment it is needed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "unseen.plotting needs matplotlib, which is not installed; pip install 'unseen[plot]' brings it"
        ) from error
    return plt


def line_styles(n: int) -> list[dict[str, Any]]:
    """Colour, dash and marker for n lines; they differ in all three, for print and for weak eyes."""
    cycles = zip(cycle(_COLOURS), cycle(_DASHES), cycle(_MARKERS), strict=False)
    return [
        {"color": colour, "linestyle": dash, "marker": marker}
        for _, (colour, dash, marker) in zip(range(n), cycles, strict=False)
    ]


def named(things: Any, kind: str) -> dict[str, Any]:
    """A dict as it is; a single thing under an empty name."""
    if isinstance(things, Mapping):
        if not things:
            raise InvalidDataError(f"{kind} are empty; there is nothing to draw")
        return {str(name): thing for name, thing in things.items()}
    return {"": things}


def thinned(x: npt.NDArray[Any], *, log: bool = False) -> IndexArray:
    """Positions to draw of a long curve, so that a file stays small and looks the same."""
    if x.size <= _MOST_POINTS:
        return np.arange(x.size)
    even = np.geomspace(1, x.size, _MOST_POINTS) if log else np.linspace(1, x.size, _MOST_POINTS)
    return np.unique(even.round().astype(np.int64)) - 1
