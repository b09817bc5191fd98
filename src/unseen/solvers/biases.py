"""Biases among the terms of a problem: solvers that know them add them to the systems of single rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unseen.losses import Squared
from unseen.offsets import bias_objective, bias_sweeps
from unseen.problem import Problem
from unseen.regularisers import Separable
from unseen.solvers.base import Solver, Sweep
from unseen.state import State
from unseen.terms import BoundTerm

__all__ = ["BiasSweeps", "Biases", "split_biases"]


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


class BiasSweeps(Solver):
    """A bias of the rows and one of the columns, and nothing else, over a constant that is known.

    The values enter through their sums over rows and columns alone, so a sweep is two sums over the
    pattern: half of what solvers take that know no biases. Columns first, then rows.
    """

    judges_start = False

    def refuses(self, problem: Problem) -> str | None:
        biases = split_biases(problem)
        if biases.row is None or biases.col is None or biases.others:
            return "it is for a bias of the rows and one of the columns; use ALS or AlternatingCG"
        loss, known = problem.loss, problem.known
        if not isinstance(loss, Squared) or loss.weight != 1.0 or problem.blank:
            return "it is for the squared loss of stored cells, of weight one; use AlternatingCG"
        if any(not isinstance(rule, Separable) or rule.scale is not None for rule in problem.rules()):
            return "the ridges of all rows are one; use AlternatingCG"
        if known is not None and (known.left.shape[1] != 1 or np.ptp(known.left) or np.ptp(known.right)):
            return "what is known of the scores is one number; use AlternatingCG"
        return None

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        biases, cells, known = split_biases(problem), problem.observations, problem.known
        assert biases.row is not None
        assert biases.col is not None
        keys = biases.row.key("core"), biases.col.key("core")
        regs = [rule.ridge for rule in map(problem.rule, keys) if isinstance(rule, Separable)]
        mean = 0.0 if known is None else float(known.left[0, 0] * known.right[0, 0])
        for offsets in bias_sweeps(cells, *regs, mean=mean, n_threads=problem.n_threads):
            assert offsets.row is not None
            assert offsets.col is not None
            moved = dict(zip(keys, (offsets.row[:, None], offsets.col[None]), strict=True))
            yield Sweep({**state, **moved}, bias_objective(cells, offsets), {})
