"""Reasons to refuse that several solvers share."""

from __future__ import annotations

from unseen.cores import Full, LowRank
from unseen.problem import Problem

__all__ = ["MAX_DENSE_CELLS", "why_full_core_too_large", "why_not_free_factors"]

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
