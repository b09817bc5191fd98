"""The mixed linear model with observed cells kept exactly, by three-operator splitting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import DENSE_CELLS, DENSE_SIDE
from unseen.problem import Problem
from unseen.regularisers import Nuclear
from unseen.solvers.base import Sweep
from unseen.solvers.block_prox import CorePoint
from unseen.solvers.certificates import Certificate
from unseen.solvers.lowrank_prox import SvdTolerance, balanced, distance, shrunk_svd
from unseen.solvers.mixed import Coupling, MixedSolver, coupling_value
from unseen.state import State
from unseen.totals import StoredCells
from unseen.typing import FloatArray

__all__ = ["DavisYin"]


class DavisYin(MixedSolver):
    """min over G, E  1/2 ||A(G) - E||^2 + reg_g ||G||_1 + reg_e ||E||_*  subject to  P(E) = P(M).

    Davis-Yin splitting with unit step in E and 0.99/L in G:

        E+ = SVT(A(G) + P(M - w), reg_e)
        G+ = soft(G - step (A*A G - A*(E + P(M) - P(E))), step reg_g)
        w+ = w + P(E+) - P(M)

    E is feasible only in the limit; the objective on the way is that of an infeasible point and
    may rise. The solver stops when the constraint, G and E on the observed cells all move by
    less than ``tol``.

    Parameters
    ----------
    max_iter, tol, max_rank, svd_tol
        As in :class:`unseen.solvers.mixed.MixedSolver`.
    init : {"lasso", "paper"}, default="lasso"
        Start at the sparse bilinear fit of the observed cells, or at zero with random multipliers.
    """

    takes_total = (Nuclear, StoredCells)

    def __init__(
        self,
        max_iter: int = 500,
        tol: float = 1e-4,
        max_rank: int | None = None,
        svd_tol: float = 1e-7,
        init: str = "lasso",
    ) -> None:
        super().__init__(max_iter, tol, max_rank, svd_tol)
        self.init = init

    def refuses(self, problem: Problem) -> str | None:
        if problem.on_total(StoredCells) is None:
            return "it keeps observed cells exactly, which the problem must ask for by StoredCells()"
        return super().refuses(problem)

    @property
    def start_steps(self) -> int:  # type: ignore[override]
        """The paper's start has G = 0."""
        return 0 if self.init == "paper" else MixedSolver.start_steps

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        coupling, reg_e = self.coupling(problem, state), self.reg_e(problem)
        values = problem.observations.values
        size = max(float(np.linalg.norm(values)), np.finfo(float).tiny)
        point = self.point(problem, state)
        multiplier: FloatArray = problem.cell_scores(coupling.pair(point.core, values.dtype))
        if self.init == "paper":
            multiplier = rng.standard_normal(values.size).astype(values.dtype)
        accuracy = SvdTolerance(self.svd_tol)
        while True:
            pair = coupling.pair(point.core, values.dtype)
            operator = LowRankPlusSparse(problem.observations, values - multiplier, *pair, problem.n_threads)
            found = shrunk_svd(operator, reg_e, point.low_rank, accuracy.now, rng, self.max_rank)
            core = self._core_step(problem, coupling, point)
            cells = problem.cell_scores(balanced(found))
            off = cells - values
            multiplier = multiplier + off
            feasibility = float(np.linalg.norm(off)) / size
            moved = (
                distance(found, point.low_rank),
                float(np.linalg.norm(core - point.core)) / max(float(np.linalg.norm(core)), 1e-300),
                float(np.linalg.norm(cells - point.cells)) / size,
            )
            accuracy.follow(min(moved[0], feasibility))
            point = CorePoint(core, found, cells)
            facts = {
                "rank": int(found.s.size),
                "nonzeros": int(np.count_nonzero(core)),
                "feasibility": feasibility,
                "residual": max(moved),
            }
            settled = max(feasibility, moved[1], moved[2]) < self.tol
            new_state = {
                **self.state(problem, coupling, state, point),
                # Not a block of the problem: the dual variable, which the certificate needs.
                "1.multiplier": multiplier,
            }
            yield Sweep(new_state, self.value(problem, coupling, point), facts, settled)

    def _core_step(self, problem: Problem, coupling: Coupling, point: CorePoint) -> FloatArray:
        off = problem.observations.values - point.cells
        entries = balanced(point.low_rank)
        filled = LowRankPlusSparse(problem.observations, off, *entries, problem.n_threads)
        slope = coupling.normal(point.core) - coupling.adjoint(filled)
        step = 0.99 / coupling.lipschitz
        return self.rule(problem).prox(point.core - step * slope, step)

    def certificate(self, problem: Problem, state: State, rng: np.random.Generator) -> Certificate | None:
        if "1.multiplier" not in state:
            return None
        coupling = self.coupling(problem, state)
        point = self.polished(problem, coupling, self.point(problem, state))
        values = problem.observations.values.astype(np.float64)
        pull = state["1.multiplier"].astype(np.float64) - values
        value = self._feasible_value(problem, coupling, point)
        return self.dual_certificate(problem, coupling, point, pull, value, np.inf, rng)

    def _feasible_value(self, problem: Problem, coupling: Coupling, point: CorePoint) -> float:
        """Objective, or a bound on it from above, of E with the observed cells put in their place."""
        values = problem.observations.values.astype(np.float64)
        off = values - point.cells
        on_cells = problem.cell_scores(coupling.pair(point.core, point.cells.dtype))
        change = float((on_cells - values) @ (on_cells - values))
        change -= float((on_cells - point.cells) @ (on_cells - point.cells))
        smooth = coupling_value(coupling, point.core, point.low_rank) + 0.5 * change
        n, m = problem.observations.shape
        entries = balanced(point.low_rank)
        if min(n, m) <= DENSE_SIDE and n * m <= DENSE_CELLS:
            operator = LowRankPlusSparse(problem.observations, off, *entries, problem.n_threads)
            nuclear = float(np.linalg.svd(operator.toarray(), compute_uv=False).sum())
        else:
            nuclear = float(point.low_rank.s.sum(dtype=np.float64)) + _nuclear_bound(problem, off)
        return smooth + self.rule(problem).value(point.core) + self.reg_e(problem) * nuclear


def _nuclear_bound(problem: Problem, cells: FloatArray) -> float:
    """Upper bound on the nuclear norm of a sparse matrix: sums of row or column norms."""
    squares = cells * cells
    pattern = problem.observations
    by_row = np.sqrt(np.bincount(pattern.rows, squares, minlength=pattern.shape[0]))
    by_col = np.sqrt(np.bincount(pattern.indices, squares, minlength=pattern.shape[1]))
    whole = np.sqrt(min(pattern.shape)) * np.sqrt(squares.sum())
    return float(min(by_row.sum(), by_col.sum(), whole))
