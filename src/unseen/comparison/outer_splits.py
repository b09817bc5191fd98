"""Test parts of a comparison, and the parts of the training cells on which settings are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.model_selection import Split, split_cols, split_entries, split_rows
from unseen.typing import Array, BoolArray

__all__ = ["SPLITS", "Splitter", "splitter"]

SPLITS = ("entries", "rows", "cols", "time")

Part = Callable[[Observations, int], Split]


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
    kind: str,
    cells: Observations,
    *,
    repeats: int,
    test_fraction: float,
    seed: int,
    symmetric: bool,
    times: Any = None,
) -> Splitter:
    """Splits of one kind; for "time" the repeats walk forward, each tested on what comes next."""
    if kind == "time":
        return _forward(cells, times, repeats, test_fraction)
    if times is not None:
        raise ParameterError(f"times are given, but split={kind!r}; pass split='time'")

    def part(which: Observations, draw: int) -> Split:
        if kind == "entries":
            return split_entries(
                which, test_fraction=test_fraction, random_state=seed + draw, symmetric=symmetric
            )
        if kind not in SPLITS:
            raise ParameterError(f"split={kind!r}; expected one of {', '.join(SPLITS)}")
        by_side = {"rows": split_rows, "cols": split_cols}[kind]
        return by_side(which, test_fraction=test_fraction, random_state=seed + draw)

    return Splitter(
        lambda number: part(cells, number), lambda split, number: part(split.train, 1000 + number)
    )


def _forward(cells: Observations, times: Any, repeats: int, test_fraction: float) -> Splitter:
    if times is None:
        raise ParameterError("split='time' needs times: one number for each cell, in the order of X.values")
    moments: Array = np.asarray(times, dtype=np.float64)
    if moments.shape != (cells.nnz,) or not np.isfinite(moments).all():
        raise InvalidDataError(
            f"times have shape {moments.shape}; one finite number for each of {cells.nnz} cells is needed"
        )
    # The latest cells are cut into windows; each is predicted from all that was before it.
    shares = 1 - test_fraction * np.arange(repeats, -1, -1) / repeats
    cuts = np.quantile(moments, shares, method="higher")

    def between(low: float, middle: float, high: float, last: bool) -> Split:
        early: BoolArray = (moments >= low) & (moments < middle)
        late: BoolArray = (moments >= middle) & ((moments <= high) if last else (moments < high))
        if not early.any() or not late.any():
            raise InvalidDataError(
                f"no cells before or after the time {middle:g}: too few different moments for "
                f"{repeats} repeats; ask for fewer"
            )
        return Split(cells.select(early), cells.select(late))

    def outer(number: int) -> Split:
        return between(-np.inf, cuts[number], cuts[number + 1], number == repeats - 1)

    def inner(split: Split, number: int) -> Split:
        known = moments[moments < cuts[number]]
        middle = float(np.quantile(known, 1 - test_fraction, method="higher"))
        return between(-np.inf, middle, cuts[number], False)

    return Splitter(outer, inner)
