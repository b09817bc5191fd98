"""Numbers as tables show them."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean, pstdev, stdev

__all__ = ["with_sd", "with_spread"]


def with_spread(values: Iterable[float], full: int = 0) -> str:
    """Mean and spread of these values; how many there are where some are missing.

    Examples
    --------
    >>> with_spread([1.0, 2.0], full=3), with_spread([1.0]), with_spread([])
    ('1.5000 ± 0.5000 (2)', '1.0000', '')
    """
    found = list(values)
    if not found:
        return ""
    spread = f" ± {pstdev(found):.4f}" if len(found) > 1 else ""
    return f"{mean(found):.4f}{spread}" + (f" ({len(found)})" if len(found) < full else "")


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
