"""Reasons to refuse that several solvers share."""

from __future__ import annotations

import numpy as np

from unseen.cores import Full, LowRank
from unseen.problem import Problem
from unseen.regularisers import Separable

__all__ = [
    "MAX_DENSE_CELLS",
    "ridge_of",
    "why_full_core_too_large",
    "why_not_free_factors",
    "why_not_uniform",
]

MAX_DENSE_CELLS = 50_000_000
"""Entries up to which a full core may be held as a dense matrix."""


def why_not_free_factors(problem: Problem) -> str | None:
    """A reason unless there is one low-rank term without features."""
    if len(problem.terms) != 1:
        return f"it handles one term and there are {len(problem.terms)}; use AlternatingCG or LBFGS"
    term = problem.terms[0]
    if not isinstance(term.core, LowRank):
        return "it needs a LowRank core; use LowRankProx or ProxGradient for a Full one"
    if not term.free:
        return (
            "it needs Identity maps on both sides (rows and columns are solved one by one); use AlternatingCG"
        )
    return None


def why_full_core_too_large(problem: Problem, limit: int = MAX_DENSE_CELLS) -> str | None:
    """A reason if a full core would be too large to be held densely."""
    n, m = problem.observations.shape
    for term in problem.terms:
        if isinstance(term.core, Full) and term.free and n * m > limit:
            return (
                f"a Full core between Identity maps would hold {n} x {m} = {n * m:,} numbers, "
                f"the limit is {limit:,}; use a LowRank core, or LowRankProx with a Nuclear penalty"
            )
    return None


def ridge_of(problem: Problem, key: str) -> float:
    """Weight of the ridge on an array of which :func:`why_not_uniform` has seen that it has nothing else."""
    rule = problem.rule(key)
    assert isinstance(rule, Separable)
    return float(rule.ridge)


def why_not_uniform(problem: Problem) -> str | None:
    """A reason unless all cells weigh the same, blank ones are pulled to zero, and penalties are ridges."""
    loss, blank = problem.cell_loss, problem.blank
    if not loss.quadratic:
        return "the loss is not quadratic; use LBFGS"
    curvature, _ = loss.normal_terms()
    if not blank or blank.separable or np.ndim(curvature) or curvature != 0.0:
        return (
            "it needs the same weight on all cells, such as Squared(1.0, Background(1.0)); use AlternatingCG"
        )
    if blank.target != 0.0 or problem.known is not None:
        return "it needs blank cells with the target zero, and no known part; use AlternatingCG"
    if not all(
        isinstance(rule, Separable) and rule.quadratic and rule.scale is None for rule in problem.rules()
    ):
        return "it needs a Ridge, the same for all rows; use AlternatingCG or ProxGradient"
    return None
