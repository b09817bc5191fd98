"""How results are shown: tables, numbers in them, and axes of figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from statistics import mean, pstdev, stdev
from typing import Any

__all__ = ["Table", "canvas", "log_axis", "markdown", "printed", "three", "with_sd", "with_spread"]

ROOM = 0.1
"""Share of an axis that a label needs."""


def markdown(head: Sequence[Any], lines: Iterable[Sequence[Any]]) -> str:
    """A table for a page of the documentation.

    Examples
    --------
    >>> print(markdown(["n", "error"], [[10, 0.5]]))
    | n | error |
    | --- | --- |
    | 10 | 0.5 |
    """
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


@dataclass(frozen=True)
class Table:
    """Head and lines of text."""

    head: list[str]
    lines: list[list[str]]
    note: str = ""

    @classmethod
    def of(cls, head: Sequence[Any], lines: Iterable[Sequence[Any]], note: str = "") -> Table:
        """Make one of anything that can be printed."""
        return cls([str(cell) for cell in head], [[str(cell) for cell in line] for line in lines], note)

    def markdown(self) -> str:
        """The table for a page of the documentation."""
        return markdown(self.head, self.lines)

    def csv(self) -> str:
        """The table for a file."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.head, *self.lines])
        return out.getvalue()


def three(value: float) -> str:
    """Three digits after the point, the zero before it left out.

    Examples
    --------
    >>> three(0.12345), three(1.5)
    ('.123', '1.500')
    """
    return f"{value:.3f}".removeprefix("0")


def with_spread(values: Iterable[float], *, digits: int = 4, full: int = 0) -> str:
    """Mean and spread of these values; how many there are where some are missing.

    Examples
    --------
    >>> with_spread([1.0, 2.0], full=3), with_spread([1.0], digits=2), with_spread([])
    ('1.5000 ± 0.5000 (2)', '1.00', '')
    """
    found = list(values)
    if not found:
        return ""
    spread = f" ± {pstdev(found):.{digits}f}" if len(found) > 1 else ""
    return f"{mean(found):.{digits}f}{spread}" + (f" ({len(found)})" if len(found) < full else "")


def with_sd(values: Iterable[float]) -> str:
    """Mean and standard deviation of what the values are a sample of.

    Examples
    --------
    >>> with_sd([1.0, 2.0])
    '1.5000 ± 0.7071'
    """
    found = list(values)
    spread = f" ± {stdev(found):.4f}" if len(found) > 1 else ""
    return f"{mean(found):.4f}{spread}"


def printed(values: Sequence[float] | None) -> str:
    """Numbers of a paper.

    Examples
    --------
    >>> printed((63.38, 38.0)), printed(None)
    ('63.38 / 38.00', '')
    """
    return " / ".join(f"{value:.2f}" for value in values) if values else ""


def canvas(size: tuple[float, float], n_panels: int = 1, **options: Any) -> tuple[Any, Any]:
    """A figure of some inches, and its panels from left to right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(1, n_panels, squeeze=False, **options)[0]


def log_axis(axes: Any, values: Sequence[float]) -> None:
    """A logarithmic x axis with a tick at each value, and names where they do not touch."""
    axes.set_xscale("log")
    reach = log(max(values) / min(values)) or 1.0
    names, last = [], -1.0
    for value in values:
        place = log(value / min(values)) / reach
        free = last < 0.0 or place - last >= ROOM
        names.append(f"{value:g}" if free else "")
        last = place if free else last
    axes.set_xticks(values, names)
    axes.minorticks_off()
