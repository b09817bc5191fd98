"""Block proximal gradient with backtracking, for every penalty that has a proximal step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen.cores import Full
from unseen.linalg.blocked import inner
from unseen.problem import Problem
from unseen.solvers.base import Solver, Sweep
from unseen.solvers.rules import why_full_core_too_large
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["ProxGradient"]

MAX_HALVINGS = 60


class ProxGradient(Solver):
    """One proximal gradient step for each array in turn, with a step found by backtracking.

    A single array (one full core) is accelerated by momentum that is dropped whenever the
    objective would rise, so the objective never rises in any case.

    Parameters
    ----------
    max_iter : int, default=500
        Limit of sweeps.
    tol : float, default=1e-6
        Stop when a sweep lowers the objective by less than this share.
    """

    def __init__(self, max_iter: int = 500, tol: float = 1e-6) -> None:
        super().__init__(max_iter, tol)

    def refuses(self, problem: Problem) -> str | None:
        for term in problem.terms:
            if term.row_map.learned or term.col_map.learned:
                return "a map is to be learned; use LBFGS"
            free_nuclear = isinstance(term.core, Full) and term.reg.spectral and term.free
            if free_nuclear and problem.cell_loss.quadratic and not problem.blank.separable:
                return "LowRankProx does the same without a dense core"
        return why_full_core_too_large(problem)

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        keys = problem.blocks(state)
        steps = dict.fromkeys(keys, 1.0)
        value = problem.value(state)
        previous, momentum = state, 1.0
        while True:
            before = state
            if len(keys) == 1:
                (key,) = keys
                following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
                ahead = state[key] + ((momentum - 1.0) / following) * (state[key] - previous[key])
                trial = {**state, key: ahead.astype(state[key].dtype, copy=False)}
                candidate, steps[key] = self.step(problem, trial, key, steps[key])
                reached = problem.value(candidate)
                if reached > value:  # drop the momentum and step from where we are
                    candidate, steps[key] = self.step(problem, state, key, steps[key])
                    reached, following = problem.value(candidate), 1.0
                previous, momentum = state, following
                state, value = (candidate, reached) if reached <= value else (state, value)
            else:
                for key in keys:
                    state, steps[key] = self.step(problem, state, key, steps[key])
                value = problem.value(state)
            residual = max(_change(state[key], before[key]) for key in keys)
            yield Sweep(state, value, {"step": max(steps.values()), "residual": residual})

    def step(self, problem: Problem, state: State, key: str, step: float) -> tuple[State, float]:
        """A step of sufficient decrease; the next one starts from twice its length."""
        rule = problem.rule(key)
        here = state[key]
        slope = problem.data_grad(state, [key])[key]
        smooth = problem.data_value(state)
        # Differences of sums this large carry rounding; without a margin they would reject good steps.
        rounding = 1e-12 * abs(smooth) if here.dtype == np.float64 else 1e-6 * abs(smooth)
        step *= 2.0
        for _ in range(MAX_HALVINGS):
            moved = rule.prox(here - here.dtype.type(step) * slope, step)
            change = moved - here
            bound = smooth + inner(slope, change) + inner(change, change) / (2.0 * step)
            candidate = {**state, key: moved}
            if problem.data_value(candidate) <= bound + rounding:
                return candidate, step
            step *= 0.5
        return state, step


def _change(new: FloatArray, old: FloatArray) -> float:
    """Relative length of a step."""
    moved, size = inner(new - old, new - old), inner(new, new)
    return float(np.sqrt(moved / size)) if size > 0 else 0.0
