"""Reference solver of the mixed linear model: two-block proximal ADMM on dense arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen.linalg.svt import Triplets
from unseen.problem import Problem
from unseen.solvers.base import Sweep
from unseen.solvers.block_prox import CorePoint
from unseen.solvers.davis_yin import DavisYin
from unseen.solvers.rules import why_full_core_too_large
from unseen.state import State

__all__ = ["MixedADMM"]


class MixedADMM(DavisYin):
    """The problem of :class:`DavisYin`, split as E = Z with Z on the constraint; holds n x m arrays.

        E <- SVT(Z - U, reg_e / beta);  T = E + U
        Z(G) = M where observed, (A(G) + beta T) / (1 + beta) elsewhere
        G <- soft(G - A*(A(G) - Z(G)) / L, reg_g / L)
        Z <- Z(G);  U <- U + E - Z

    The step on G is an exact minimisation with a proximal term, so this is a genuine two-block
    method and converges for every beta > 0. For small problems and for checking other solvers.

    Parameters
    ----------
    max_iter, tol, max_rank, svd_tol, init
        As in :class:`DavisYin`; ``max_rank`` and ``svd_tol`` are not used.
    beta : float, default=0.5
        Weight of the splitting constraint.
    """

    def __init__(
        self,
        max_iter: int = 500,
        tol: float = 1e-4,
        max_rank: int | None = None,
        svd_tol: float = 1e-7,
        init: str = "lasso",
        beta: float = 0.5,
    ) -> None:
        super().__init__(max_iter, tol, max_rank, svd_tol, init)
        self.beta = beta

    def refuses(self, problem: Problem) -> str | None:
        return super().refuses(problem) or why_full_core_too_large(problem)

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        coupling, rule = self.coupling(problem, state), self.rule(problem)
        cells, beta = problem.observations, self.beta
        stored = (cells.rows, cells.indices)
        row, col = (design.toarray().astype(np.float64) for design in (coupling.row, coupling.col))
        core = self.point(problem, state).core
        size = max(float(np.linalg.norm(cells.values)), np.finfo(float).tiny)
        copy = row @ core @ col.T
        copy[stored] = cells.values
        dual = np.zeros_like(copy)
        while True:
            u, s, vt = np.linalg.svd(copy - dual, full_matrices=False)
            found = Triplets(u, s, vt.T).shrunk(self.reg_e(problem) / beta)
            low_rank = (found.u * found.s) @ found.v.T
            filled = _fill(row @ core @ col.T, low_rank + dual, beta, stored, cells.values)
            slope = row.T @ (row @ core @ col.T - filled) @ col
            before, core = core, rule.prox(core - slope / coupling.lipschitz, 1.0 / coupling.lipschitz)
            last, copy = copy, _fill(row @ core @ col.T, low_rank + dual, beta, stored, cells.values)
            dual = dual + low_rank - copy
            primal, movement = np.linalg.norm(low_rank - copy), beta * np.linalg.norm(copy - last)
            moved = float(np.linalg.norm(core - before)) / max(float(np.linalg.norm(core)), 1e-300)
            point = CorePoint(core, _in(found, cells.dtype), low_rank[stored].astype(cells.dtype))
            residual = float(max(primal, movement)) / size
            feasibility = float(np.linalg.norm(point.cells - cells.values)) / size
            facts = {"rank": int(found.s.size), "feasibility": feasibility, "residual": residual}
            # Stationarity of E at the limit: A(G) - E - P(mu) = -beta U.
            pull = (row @ core @ col.T - low_rank + beta * dual)[stored]
            new_state = {
                **self.state(problem, coupling, state, point),
                "1.multiplier": (cells.values + pull).astype(cells.dtype),
            }
            value = self.value(problem, coupling, point)
            yield Sweep(new_state, value, facts, bool(max(residual, moved) < self.tol))


def _fill(
    linear: np.ndarray,
    pulled: np.ndarray,
    beta: float,
    stored: tuple[np.ndarray, np.ndarray],
    values: np.ndarray,
) -> np.ndarray:
    filled: np.ndarray = (linear + beta * pulled) / (1.0 + beta)
    filled[stored] = values
    return filled


def _in(found: Triplets, dtype: np.dtype[np.generic]) -> Triplets:
    return Triplets(*(part.astype(dtype) for part in found))
