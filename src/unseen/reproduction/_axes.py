"""Axes as the figures share them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

__all__ = ["log_axis"]

ROOM = 0.1
"""Share of the axis that a label needs."""


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
