"""Alternating conjugate gradients: one array at a time, any fixed maps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen.linalg.balance import balanced
from unseen.linalg.blocked import inner
from unseen.linalg.cg import conjugate_gradients
from unseen.problem import Problem
from unseen.regularisers import Separable
from unseen.solvers.base import Solver, Sweep
from unseen.solvers.rules import why_full_core_too_large
from unseen.state import State
from unseen.typing import Array

__all__ = ["AlternatingCG"]


class AlternatingCG(Solver):
    """Solves for one factor (or full core) at a time by conjugate gradients.

    With the other arrays fixed the objective is a quadratic in each of them; the system is
    never formed. Warm-started steps of conjugate gradients only go down, and so does balancing
    the factors between sweeps, so the objective never rises.

    Parameters
    ----------
    max_iter : int, default=50
        Limit of sweeps over all arrays.
    cg_steps : int, default=20
        Limit of steps for each array.
    cg_tol : float, default=1e-3
        Stop the steps when the residual has fallen to this share of its start.
    """

    def __init__(
        self, max_iter: int = 50, tol: float = 1e-5, cg_steps: int = 20, cg_tol: float = 1e-3
    ) -> None:
        super().__init__(max_iter, tol)
        self.cg_steps = cg_steps
        self.cg_tol = cg_tol

    def refuses(self, problem: Problem) -> str | None:
        if any(term.row_map.learned or term.col_map.learned for term in problem.terms):
            return "a map is to be learned; use GoalDirected or LBFGS"
        return self.why_not_quadratic(problem)

    def why_not_quadratic(self, problem: Problem) -> str | None:
        """Why the coefficients of given designs cannot be solved for here, or None."""
        if not problem.cell_loss.quadratic:
            return "the loss is not quadratic; use LBFGS"
        for rule in problem.rules():
            if rule.spectral:
                return "the nuclear norm of a Full core is not smooth; use ProxGradient, or a LowRank core"
            if not rule.quadratic:
                return "a penalty that is no ridge needs proximal steps; use ProxGradient (or CCD)"
        return why_full_core_too_large(problem)

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        while True:
            state, steps = self.sweep_once(problem, state)
            yield Sweep(state, problem.value(state), {"cg_steps": steps})

    def sweep_once(self, problem: Problem, state: State) -> tuple[State, int]:
        """The state after each factor or core was solved for once, maps as they are; steps taken."""
        curvature, _ = problem.cell_loss.normal_terms()
        # Columns before rows, as in ALS.
        keys = sorted(
            (key for key in problem.blocks(state) if "_map." not in key),
            key=lambda key: (key.split(".")[0], key.endswith("row")),
        )
        state = self._balanced(problem, state)
        steps = 0
        for key in keys:
            state, taken = self._solve_array(problem, state, key, curvature)
            steps += taken
        return state, steps

    def _balanced(self, problem: Problem, state: State) -> State:
        """Factors of each term with the same product and the smallest penalty."""
        out = dict(state)
        for term in problem.terms:
            row, col = term.key("row"), term.key("col")
            if row not in state:
                continue
            rules = [problem.rule(key) for key in (row, col)]
            if all(isinstance(rule, Separable) and rule.ridge for rule in rules):
                scales = [rule.scale for rule in rules if isinstance(rule, Separable)]
                out[row], out[col] = balanced(
                    state[row], state[col], scales=(scales[0], scales[1]), n_threads=problem.n_threads
                )
        return out

    def _solve_array(
        self, problem: Problem, state: State, key: str, curvature: float | Array
    ) -> tuple[State, int]:
        rule = problem.rule(key)
        residual = -problem.grad(state, [key])[key]
        other = problem.other_side(key, state)

        def curved(direction: Array) -> Array:
            product = problem.curvature_product(key, direction, state, curvature, other)
            return product + rule.grad(direction)

        step, taken = conjugate_gradients(
            curved,
            residual,
            goal=self.cg_tol**2 * inner(residual, residual),
            max_iter=self.cg_steps,
            product=inner,
        )
        return {**state, key: state[key] + step}, taken
