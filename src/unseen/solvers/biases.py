"""Biases among the terms of a problem: solvers that know them add them to the systems of single rows."""

from __future__ import annotations

from typing import NamedTuple

from unseen.problem import Problem
from unseen.terms import BoundTerm

__all__ = ["Biases", "split_biases"]


class Biases(NamedTuple):
    """The terms that are biases, None where there is none; ``others`` are the places of all other terms."""

    row: BoundTerm | None
    col: BoundTerm | None
    others: list[int]


def split_biases(problem: Problem) -> Biases:
    """Tell biases from other terms; a second bias of the same side counts as another term."""
    found: dict[str, BoundTerm] = {}
    others = []
    for index, term in enumerate(problem.terms):
        side = term.bias_side
        if side is None or side in found:
            others.append(index)
        else:
            found[side] = term
    return Biases(found.get("row"), found.get("col"), others)
