"""The mixed linear model with a penalty on the noise, by block descent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.problem import Problem
from unseen.solvers.base import Sweep
from unseen.solvers.block_prox import CorePoint
from unseen.solvers.certificates import Certificate
from unseen.solvers.lowrank_prox import accelerated, balanced, shrunk_svd, stacked_columns
from unseen.solvers.mixed import Coupling, MixedSolver
from unseen.state import State

__all__ = ["MixedSoft"]

CORE_STEPS = 100
"""Limit of steps on G in a sweep: through the Gram matrices they cost next to nothing."""


class MixedSoft(MixedSolver):
    """min over G, E  1/2 ||A(G) - E||^2 + rho/2 ||P(E - M)||^2 + reg_g ||G||_1 + reg_e ||E||_*.

    rho is the weight of the problem's loss. A sweep takes some accelerated steps on G, through
    the Gram matrices alone, then one proximal step on E with the majoriser 1 + rho, a thresholded
    SVD of low rank plus sparse. E carries momentum, dropped whenever the objective would rise.

    Parameters are those of :class:`unseen.solvers.mixed.MixedSolver`; ``tol`` is the share by which
    a sweep must lower the objective.
    """

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        coupling = self.coupling(problem, state)

        def step(here: CorePoint, last: CorePoint, ahead: float, svd_tol: float) -> tuple[CorePoint, float]:
            reached = self._step(problem, coupling, here, last, ahead, svd_tol, rng)
            return reached, self.value(problem, coupling, reached)

        first = self.point(problem, state)
        last = self.value(problem, coupling, first)
        for point, value, residual in accelerated(first, last, step, self.svd_tol):
            facts = {
                "rank": int(point.low_rank.s.size),
                "nonzeros": int(np.count_nonzero(point.core)),
                "residual": residual,
            }
            settled = last - value <= self.tol * abs(last)
            yield Sweep(self.state(problem, coupling, state, point), value, facts, settled)
            last = value

    def _step(
        self,
        problem: Problem,
        coupling: Coupling,
        point: CorePoint,
        last: CorePoint,
        ahead: float,
        svd_tol: float,
        rng: np.random.Generator,
    ) -> CorePoint:
        _, share = self._weights(problem)
        here, before = point.low_rank, last.low_rank
        dtype = point.cells.dtype
        target = (1.0 + ahead) * coupling.adjoint_of(here)
        if ahead:
            target -= ahead * coupling.adjoint_of(before)
        core = self.core_steps(problem, coupling, point.core, target, CORE_STEPS)
        pair = coupling.pair(core, dtype)
        cells = point.cells + dtype.type(ahead) * (point.cells - last.cells)
        keep = 1.0 - share
        left = [here.u * (here.s * (keep * (1.0 + ahead))), share * pair.left]
        right = [here.v, pair.right]
        if ahead:
            left.append(before.u * (before.s * (-keep * ahead)))
            right.append(before.v)
        n, m = problem.observations.shape
        operator = LowRankPlusSparse(
            problem.observations,
            (-share * problem.cell_loss.grad(cells)).astype(dtype, copy=False),
            stacked_columns(left, n, dtype),
            stacked_columns(right, m, dtype),
            problem.n_threads,
        )
        found = shrunk_svd(operator, share * self.reg_e(problem), here, svd_tol, rng, self.max_rank)
        return CorePoint(core, found, problem.cell_scores(balanced(found)))

    def _weights(self, problem: Problem) -> tuple[float, float]:
        rho = float(np.max(problem.cell_loss.stored()[0]))
        return rho, 1.0 / (1.0 + rho)

    def certificate(self, problem: Problem, state: State, rng: np.random.Generator) -> Certificate | None:
        if problem.observations.weights is not None:
            return None  # the bound is for one weight of all cells
        coupling = self.coupling(problem, state)
        point = self.polished(problem, coupling, self.point(problem, state))
        rho, _ = self._weights(problem)
        pull = rho * (point.cells.astype(np.float64) - problem.observations.values)
        value = self.value(problem, coupling, point)
        return self.dual_certificate(problem, coupling, point, pull, value, rho, rng)
