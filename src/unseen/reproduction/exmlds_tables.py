"""How the tables of the ExMLDS experiments print numbers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, pstdev

__all__ = ["average", "printed", "with_spread"]


def average(values: Sequence[float]) -> str:
    """Mean of some runs.

    Examples
    --------
    >>> average([1.0, 2.0])
    '1.50'
    """
    return f"{mean(values):.2f}"


def with_spread(values: Sequence[float]) -> str:
    """Mean and standard deviation.

    Examples
    --------
    >>> with_spread([1.0, 2.0])
    '1.50 ± 0.50'
    """
    return f"{mean(values):.2f} ± {pstdev(values):.2f}"


def printed(values: Sequence[float] | None) -> str:
    """Numbers of a paper.

    Examples
    --------
    >>> printed((63.38, 38.0)), printed(None)
    ('63.38 / 38.00', '')
    """
    return " / ".join(f"{value:.2f}" for value in values) if values else ""
