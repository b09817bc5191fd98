"""Kinds of values that a learned attribute can have."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from unseen.data import Vocabulary
from unseen.typing import Array

__all__ = [
    "Check",
    "Sizes",
    "all_finite",
    "arrays",
    "bound",
    "children",
    "count",
    "either",
    "flag",
    "ids",
    "is_a",
    "limits",
    "matrix",
    "numbers",
    "part",
    "places",
    "real",
    "records",
    "seen_cells",
    "sides",
    "some",
    "starts",
    "states",
    "text",
]

Sizes: TypeAlias = dict[str, int]
Check: TypeAlias = Callable[[Any, Sizes], bool]


def bound(sizes: Sizes, name: str | int, found: int) -> bool:
    """Whether a length agrees with what is known of it; the first to come says what it is."""
    return found == (name if isinstance(name, int) else sizes.setdefault(name, found))


def numbers(
    *lengths: str | int,
    kinds: str = "f",
    low: float = -math.inf,
    below: str | None = None,
    finite: bool = True,
) -> Check:
    """An array of these lengths."""

    def check(value: Any, sizes: Sizes) -> bool:
        return (
            isinstance(value, np.ndarray)
            and value.dtype.kind in kinds
            and value.ndim == len(lengths)
            and all(bound(sizes, *pair) for pair in zip(lengths, value.shape, strict=True))
            and (not finite or all_finite(value))
            and (low == -math.inf or not value.size or bool(value.min() >= low))
        )

    return check


def all_finite(array: Array) -> bool:
    """Whether no number is NaN or infinite, without a mask in the common case."""
    if array.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum(dtype=np.float64))) or bool(np.isfinite(array).all())


def matrix(rows: str, cols: str) -> Check:
    """A sparse matrix, whose indices were checked when it was made."""

    def check(value: Any, sizes: Sizes) -> bool:
        return bool(
            isinstance(value, sparse.csr_array)
            and bound(sizes, rows, value.shape[0])
            and bound(sizes, cols, value.shape[1])
            and value.dtype.kind in "fiub"
            and all_finite(value.data)
        )

    return check


def count(name: str | None = None, low: int = 0, high: int = 1 << 62) -> Check:
    """A whole number, perhaps one that is a length."""

    def check(value: Any, sizes: Sizes) -> bool:
        return (
            isinstance(value, (int, np.integer))
            and not isinstance(value, bool)
            and low <= int(value) <= high
            and (name is None or bound(sizes, name, int(value)))
        )

    return check


def real(low: float = -math.inf, high: float = math.inf) -> Check:
    """A finite number."""

    def check(value: Any, _: Sizes) -> bool:
        return (
            isinstance(value, (int, float, np.integer, np.floating))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and low <= float(value) <= high
        )

    return check


def ids(name: str) -> Check:
    """Ids of so many rows or columns."""
    return lambda value, sizes: isinstance(value, Vocabulary) and bound(sizes, name, len(value))


def part(name: str) -> Check:
    """An object of a class of this name or derived from one."""
    return lambda value, _: is_a(value, name)


def either(*checks: Check) -> Check:
    """Any of these; None where none is given."""
    return lambda value, sizes: value is None or any(check(value, sizes) for check in checks)


def some(check: Check, name: str | int | None = None) -> Check:
    """A list of values, perhaps of a known length."""
    return lambda value, sizes: (
        isinstance(value, (list, tuple))
        and (name is None or bound(sizes, name, len(value)))
        and all(check(item, sizes) for item in value)
    )


def flag(value: Any, _: Sizes) -> bool:
    """True or False."""
    return isinstance(value, (bool, np.bool_))


def text(value: Any, _: Sizes) -> bool:
    """A text."""
    return type(value) is str


def limits(value: Any, _: Sizes) -> bool:
    """A lower and an upper one, perhaps infinite."""
    return isinstance(value, tuple) and len(value) == 2 and bool(value[0] < value[1])


def records(value: Any, _: Sizes) -> bool:
    """What was noted in each sweep."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def arrays(value: Any, _: Sizes) -> bool:
    """Arrays by name, whose shapes the maps that they belong to know."""
    return isinstance(value, dict) and all(
        isinstance(item, np.ndarray) and item.dtype.kind in "fiu" and item.ndim <= 3 and all_finite(item)
        for item in value.values()
    )


DIMENSIONS = {
    "row": 2, "col": 2, "core": 2, "mean": 1, "scale": 1, "feature_mean": 1, "feature_scale": 1, "offsets": 1,
    "gamma": 0, "whitening": 2, "directions": 2, "projections": 2, "landmarks": 2, "mixing": 2,
}  # fmt: skip
"""Of the arrays of a state, by the last part of their names."""


def states(value: Any, sizes: Sizes) -> bool:
    """Arrays of a state, those of a known name with the dimensions that they must have."""
    return arrays(value, sizes) and all(
        item.ndim == DIMENSIONS.get(name.rpartition(".")[2], item.ndim) for name, item in value.items()
    )


def is_a(value: Any, name: str) -> bool:
    """Whether an object is of a class of this name; by name, since classes of all layers are meant."""
    return any(cls.__name__ == name for cls in type(value).__mro__)


def sides(value: Any, sizes: Sizes) -> bool:
    """Numbers of rows and columns."""
    return some(count(), 2)(value, sizes) and all(map(partial(bound, sizes), "nm", value))


def seen_cells(value: Any, sizes: Sizes) -> bool:
    """Cells of a matrix of the shape of the model; the record itself has looked at its numbers."""
    return is_a(value, "SeenCells") and (
        len(value.indptr) == sizes.get("n", sizes["m"]) + 1 and value.n_cols == sizes["m"]
    )


def places(value: Any, sizes: Sizes) -> bool:
    """Splits, or -1 less the number of a leaf, of a forest; splits below others have larger numbers."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "i" or value.ndim > 2:
        return False
    ends = (value >= -sizes["leaves"]) & (value < sizes["splits"])
    if value.ndim == 1:
        return bool(len(value) and ends.all())
    below = (value < 0) | (value > np.arange(len(value))[:, None])
    return value.shape == (sizes["splits"], 2) and bool((ends & below).all())


def children(value: Any, sizes: Sizes) -> bool:
    """Where children lead, whose parents' `starts` come before: a later node or -1 less a label."""
    return (
        numbers("children", kinds="i", low=-sizes.get("l", 1 << 62))(value, sizes)
        and bool((value < sizes["nodes"]).all())
        and np.array_equal(np.sort(value[value >= 0]), np.arange(1, sizes["nodes"]))
    )


def starts(value: Any, sizes: Sizes) -> bool:
    """Where the children of each node begin, and the end; no node is without."""
    sizes["nodes"] = len(value) - 1 if isinstance(value, np.ndarray) else 0
    return (
        numbers("starts", kinds="i", low=0)(value, sizes)
        and len(value) > 1
        and value[0] == 0
        and bool((np.diff(value) > 0).all())
        and bound(sizes, "children", int(value[-1]))
    )
