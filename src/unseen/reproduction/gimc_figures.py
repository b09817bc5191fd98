"""Precision against the number of features, as figure 2 of the GIMC paper draws it."""

from __future__ import annotations

from typing import Any

from unseen.reproduction._axes import log_axis
from unseen.reproduction.experiment import Row
from unseen.reproduction.gimc_maps import KINDS, averages, matching

__all__ = ["draw_against_m"]

COLOURS = {"fourier": "C0", "nystrom": "C1"}


def draw_against_m(rows: list[Row], place: int, label: str) -> Any:
    """One panel for each data set; fixed maps dashed, linear models as level lines.

    Parameters
    ----------
    rows : list of dict
        Results.
    place : int
        Which of the measures.
    label : str
        What it is.

    Returns
    -------
    matplotlib.figure.Figure
        The drawing.
    """
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(3.2 * len(names) + 1.6, 3.2), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        here = matching(rows, data=name)
        sizes = sorted({row["m"] for row in here if row["m"] is not None})
        for kind, methods in KINDS.items():
            for method, style, learned in zip(methods, ("s--", "o-"), (False, True), strict=True):
                wanted = {"solver": "lbfgs", "whiten": True} if learned else {}
                own = {m: matching(here, method=method, m=m, **wanted) for m in sizes}
                own = {m: found for m, found in own.items() if found}
                values = [averages(found)[place] for found in own.values()]
                axes.plot(list(own), values, style, color=COLOURS[kind], label=method)
        for method, colour in (("ridge", "0.4"), ("LEML", "0.7")):
            found = matching(here, method=method)
            if found:
                axes.axhline(averages(found)[place], color=colour, linestyle=":", label=method)
        axes.set(title=name, xlabel="m")
        log_axis(axes, sizes)
        axes.margins(x=0.1)
    panels[0].set_ylabel(label)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure
