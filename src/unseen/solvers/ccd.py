"""Cyclic coordinate descent by rank-one components (CCD++)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen import kernels
from unseen.losses import Quadratic
from unseen.problem import Pair, Problem
from unseen.solvers.base import Solver, Sweep, quadratic_loss
from unseen.solvers.rules import why_not_free_factors
from unseen.state import State

__all__ = ["CCD"]


class CCD(Solver):
    """Rank-one sweeps for one term without features; takes L1 penalties and bounds.

    Each coordinate goes to its exact minimiser, so the objective never rises.

    Parameters
    ----------
    max_iter : int, default=50
        Limit of sweeps.
    tol : float, default=1e-5
        Stop when a sweep lowers the objective by less than this share.
    inner : int, default=1
        Passes over a component before the next one.
    """

    def __init__(self, max_iter: int = 50, tol: float = 1e-5, inner: int = 1) -> None:
        super().__init__(max_iter, tol)
        self.inner = inner

    def refuses(self, problem: Problem) -> str | None:
        reason = why_not_free_factors(problem)
        if reason is None and not isinstance(problem.loss, Quadratic):
            reason = "the loss is not quadratic; use LBFGS"
        return reason

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        cells = problem.observations
        csc = cells.csc
        curvature, linear = quadratic_loss(problem).normal_terms(cells.values)
        weight, target = problem.loss.blank()
        rule = problem.terms[0].reg.factored()
        rows, cols = (np.array(state[key]) for key in ("0.row", "0.col"))
        scores = problem.cell_scores(Pair(rows, cols))
        while True:
            kernels.ccd_sweep(
                cells.indptr,
                cells.indices,
                csc.indptr,
                csc.indices,
                csc.order,
                curvature,
                linear,
                scores,
                rows,
                cols,
                background=weight,
                target=target,
                reg=rule.ridge,
                l1=rule.l1,
                lower=rule.lower,
                upper=rule.upper,
                inner=self.inner,
                n_threads=problem.n_threads,
            )
            # Scores are kept up to date by differences: computed afresh they show the true objective.
            scores = problem.cell_scores(Pair(rows, cols))
            state = {**state, "0.row": rows, "0.col": cols}
            yield Sweep(state, problem.data_value_at(Pair(rows, cols), scores) + problem.penalty(state), {})
