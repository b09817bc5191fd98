"""Which solver for which composition."""

from __future__ import annotations

from unseen.exceptions import UnsupportedComposition
from unseen.problem import Problem
from unseen.solvers.als import ALS
from unseen.solvers.base import Solver
from unseen.solvers.ccd import CCD
from unseen.solvers.cg import AlternatingCG
from unseen.solvers.lbfgs import LBFGS
from unseen.solvers.lowrank_prox import LowRankProx
from unseen.solvers.prox import ProxGradient

__all__ = ["CANDIDATES", "choose_solver"]

CANDIDATES: tuple[type[Solver], ...] = (ALS, CCD, AlternatingCG, LowRankProx, ProxGradient, LBFGS)
"""In order of preference: the most special first."""


def choose_solver(problem: Problem) -> Solver:
    """The first solver that does not refuse the problem.

    Parameters
    ----------
    problem : Problem
        A composition bound to data.

    Returns
    -------
    Solver
        With its default settings.

    Raises
    ------
    UnsupportedComposition
        If all refuse; the message holds the reason of each.
    """
    reasons = []
    for candidate in CANDIDATES:
        solver = candidate()
        reason = solver.why_not(problem)
        if reason is None:
            return solver
        reasons.append(f"{candidate.__name__}: {reason}")
    raise UnsupportedComposition("no solver takes this composition. " + " | ".join(reasons))
