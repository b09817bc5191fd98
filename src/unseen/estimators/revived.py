"""A start from another fit that has room to grow."""

from __future__ import annotations

import numpy as np

from unseen.problem import Problem
from unseen.state import State

__all__ = ["revived"]


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
        dead = strength < 0.01 * np.median(usual)
        for key in (row, col):
            out[key] = np.where(dead, fresh[key], previous[key])
    return out
