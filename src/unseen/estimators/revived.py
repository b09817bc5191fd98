"""A start from another fit that has room to grow."""

from __future__ import annotations

import numpy as np

from unseen.cores import LowRank
from unseen.problem import Problem
from unseen.state import State

__all__ = ["grown", "revived"]

DEAD = 0.01
"""Components are at nothing below this share of the strength of fresh ones."""


def grown(problem: Problem, previous: State) -> bool:
    """Whether nothing of the previous state has to be replaced, told without drawing fresh factors.

    Draws take as long as a sweep or two. Without maps, the strength that they would have is known.
    """
    shape = problem.observations.shape
    for term in problem.terms:
        row, col = term.key("row"), term.key("col")
        if not (term.free and isinstance(term.core, LowRank) and row in previous and col in previous):
            return False
        sides = [previous[key] for key in (row, col)]
        if [side.shape for side in sides] != [(n, term.core.rank) for n in shape]:
            return False
        lengths = [np.sqrt(np.einsum("ij,ij->j", side, side, dtype=np.float64)) for side in sides]
        usual = problem.size_of_starts() * np.sqrt(np.prod(shape, dtype=np.float64)) / term.core.rank
        if (lengths[0] * lengths[1] < DEAD * usual).any():
            return False
    return True


def revived(problem: Problem, previous: State, fresh: State) -> State:
    """The previous state, with components that had shrunk to nothing replaced by fresh ones.

    Zero factors are a stationary point: a fit with less penalty would never leave them.
    """
    out = {**fresh, **previous}
    for term in problem.terms:
        row, col = term.key("row"), term.key("col")
        if row not in previous or col not in previous:
            continue
        strength, usual = (
            np.linalg.norm(state[row], axis=0) * np.linalg.norm(state[col], axis=0)
            for state in (previous, fresh)
        )
        dead = strength < DEAD * np.median(usual)
        for key in (row, col):
            out[key] = np.where(dead, fresh[key], previous[key])
    return out
