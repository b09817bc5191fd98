"""Test parts of a comparison, and the parts of the training cells on which settings are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.model_selection import (
    ForwardTime,
    Split,
    split_both,
    split_cols,
    split_entries,
    split_rows,
    split_time,
)

__all__ = ["SPLITS", "Splitter", "splitter"]

SPLITS = ("entries", "rows", "cols", "both", "time")


class Splitter:
    """Makes outer splits, and inner ones of the same kind that see training cells alone."""

    def __init__(self, outer: Callable[[int], Split], inner: Callable[[Split, int], Split]) -> None:
        self.outer, self.inner = outer, inner

    def repeats(self, count: int) -> Iterator[tuple[Split, Split]]:
        """Pairs of an outer split and the split of its training part."""
        for number in range(count):
            split = self.outer(number)
            yield split, self.inner(split, number)


def splitter(
    kind: str, cells: Observations, *, repeats: int, test_fraction: float, seed: int, symmetric: bool
) -> Splitter:
    """Splits of one kind; for "time" the repeats walk forward, each tested on what comes next."""
    if kind not in SPLITS:
        raise ParameterError(f"split={kind!r}; expected one of {', '.join(SPLITS)}")
    if kind == "time":
        windows = list(ForwardTime(repeats, test_fraction=test_fraction).split(cells))
        return Splitter(
            windows.__getitem__, lambda split, _: split_time(split.train, test_fraction=test_fraction)
        )

    def part(which: Observations, draw: int) -> Split:
        options: dict[str, Any] = {"test_fraction": test_fraction, "random_state": seed + draw}
        if kind == "entries":
            return split_entries(which, symmetric=symmetric, **options)
        return {"rows": split_rows, "cols": split_cols, "both": split_both}[kind](which, **options)

    return Splitter(
        lambda number: part(cells, number), lambda split, number: part(split.train, 1000 + number)
    )
