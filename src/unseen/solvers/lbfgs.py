"""L-BFGS on all arrays together: the solver for whatever is smooth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen.exceptions import UnsupportedComposition
from unseen.problem import Problem
from unseen.regularisers import Separable
from unseen.solvers.base import Monitor, Solver, Sweep
from unseen.solvers.descent import lbfgs
from unseen.solvers.rules import why_full_core_too_large
from unseen.state import State, pack, unpack
from unseen.typing import FloatArray

__all__ = ["LBFGS"]


class LBFGS(Solver):
    """Limited-memory quasi-Newton steps on all arrays, learned maps included.

    Any pointwise loss, any number of terms, bounds on the entries. Arrays are held in
    float64 while it runs.

    Parameters
    ----------
    max_iter : int, default=200
        Limit of steps.
    tol : float, default=1e-6
        Stop when a step lowers the objective by less than this share.
    """

    def __init__(self, max_iter: int = 200, tol: float = 1e-6) -> None:
        super().__init__(max_iter, tol)

    def refuses(self, problem: Problem) -> str | None:
        for rule in problem.rules():
            if rule.spectral:
                return "the nuclear norm of a Full core is not smooth; use ProxGradient, or a LowRank core"
            if not (rule.smooth or (isinstance(rule, Separable) and not rule.l1)):
                return "a penalty is not smooth; use ProxGradient (or CCD for L1 without features)"
        return why_full_core_too_large(problem)

    def solve(self, problem: Problem, state: State, rng: np.random.Generator, monitor: Monitor) -> State:
        self.check(problem)
        keys = problem.blocks(state)
        limits = self._bounds(problem, state, keys)
        state = problem.feasible(state)
        start = pack(state, keys)

        def value_and_grad(vector: FloatArray) -> tuple[float, FloatArray]:
            trial = unpack(vector, state, keys)
            value, grads = problem.value_and_grad(trial, keys)
            return value, pack(grads, keys)

        def after_step(vector: FloatArray, objective: float) -> bool:
            return monitor.record(Sweep(unpack(vector, state, keys), objective, {}))

        monitor.start(problem.value(unpack(start, state, keys)))
        result = lbfgs(
            value_and_grad,
            start,
            monitor.max_iter,
            after_step=after_step,
            bounds=limits,
            maxfun=20 * monitor.max_iter,
        )
        # Stopping because no step leads down any more is convergence too.
        monitor.converged = monitor.converged or len(monitor.history) < monitor.max_iter
        monitor.close()
        return unpack(result.x, state, keys) if monitor.best_state is None else monitor.best_state

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        raise UnsupportedComposition("LBFGS runs as a whole; call solve")

    def _bounds(
        self, problem: Problem, state: State, keys: list[str]
    ) -> tuple[FloatArray, FloatArray] | None:
        lower, upper = [], []
        for key in keys:
            rule = problem.rule(key)
            bounds = (rule.lower, rule.upper) if isinstance(rule, Separable) else (-np.inf, np.inf)
            lower.append(np.full(state[key].size, bounds[0]))
            upper.append(np.full(state[key].size, bounds[1]))
        low, high = np.concatenate(lower), np.concatenate(upper)
        return None if np.isinf(low).all() and np.isinf(high).all() else (low, high)
