"""How far from the optimum an answer can be, by duality.

For min over Z  f(A(Z)) + Omega(Z) with a quadratic f and a norm Omega, the residual of any point,
scaled until the dual norm of its image is at most one, is feasible for the dual problem. Its
dual value is a lower bound on every objective, so the difference to the objective at hand
bounds the distance to the optimum. With g the gradient of f by the scores S and D = f(S):

    dual(theta) = theta (2 D - <g, S>) - theta^2 D,     0 <= theta <= min over terms reg / ||A_t' g B_t||*

Nothing is assumed about how the point was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen.cores import Full
from unseen.linalg.blocked import inner
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.score_gradient import ScoreGradient
from unseen.linalg.svt import spectral_bounds
from unseen.problem import BoundTerm, Problem
from unseen.regularisers import Separable
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["Certificate", "best_multiple", "certify"]


@dataclass(frozen=True)
class Certificate:
    """A bound on the distance to the optimum that holds whatever the solver did.

    Attributes
    ----------
    objective : float
        Objective of the returned point (for a hard constraint: of the nearest feasible one).
    bound : float
        No point has a smaller objective than this.
    exact : bool
        False where the bound rests on a spectral norm estimated by a random process; it then
        fails with a probability of 1e-9.
    cell_rms : float or None
        Root mean squared difference, over the observed cells, between the scores and those of
        the optimum, at most.
    """

    objective: float
    bound: float
    exact: bool = True
    cell_rms: float | None = None

    @property
    def gap(self) -> float:
        """Objective less bound."""
        return max(self.objective - self.bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """Gap as a share of the objective."""
        return self.gap / max(abs(self.objective), np.finfo(float).tiny)


def certify(problem: Problem, state: State, rng: np.random.Generator) -> Certificate | None:
    """Duality gap of a problem whose penalties are norms of full cores; None for others.

    Parameters
    ----------
    problem : Problem
        With a quadratic loss, on stored cells alone or with a background.
    state : dict of arrays
        Any point.
    rng : numpy.random.Generator
        For the spectral norm of large matrices.
    """
    loss = problem.cell_loss
    if not loss.quadratic or not all(_is_norm(term) for term in problem.terms):
        return None
    if problem.measurement is not None or not problem.loss_counts:
        return None
    # What is asked of the total scores can only raise the minimum: the bound without it still holds.
    weight = loss.stored()[0]
    objective = problem.value(state)
    for term in problem.terms:
        rule = term.reg.on_core()
        if isinstance(rule, Separable) and rule.spare_last:
            if loss.blank or np.ndim(weight):
                return None
            state = _with_best_constant(problem, state, term.key("core"))
    operator = problem.score_gradient(state)
    assert isinstance(operator, ScoreGradient)
    data = problem.data_value(state)
    alignment, limit, exact = 0.0, np.inf, True
    for term in problem.terms:
        size, along, sure = _dual_norm(problem, term, operator, state, rng)
        alignment += along
        limit = min(limit, _reg(term) / size) if size > 0 else limit
        exact = exact and sure
    bound = best_multiple(2.0 * data - alignment, data, limit)
    gap = max(objective - bound, 0.0)
    least = float(np.min(weight))
    rms = np.sqrt(2.0 * gap / (least * max(problem.observations.nnz, 1))) if least > 0 else np.inf
    return Certificate(objective, bound, exact, float(rms))


def best_multiple(linear: float, quadratic: float, limit: float) -> float:
    """Largest ``linear t - quadratic t^2`` over ``0 <= t <= limit``."""
    best = linear / (2.0 * quadratic) if quadratic > 0 else limit
    t = min(max(best, 0.0), limit)
    return linear * t - quadratic * t * t if np.isfinite(t) else 0.0


def _is_norm(term: BoundTerm) -> bool:
    if not isinstance(term.core, Full):
        return False
    rule = term.reg.on_core()
    lasso = isinstance(rule, Separable) and rule.l1 > 0 and rule.ridge == 0 and not rule.bounded
    return rule.spectral or lasso


def _reg(term: BoundTerm) -> float:
    separable = term.reg.separable()
    return float(term.reg.reg) if separable is None else separable.l1


def _with_best_constant(problem: Problem, state: State, key: str) -> State:
    """Move the unpenalised constant to its optimum, where the residuals sum to zero."""
    weight, _ = problem.cell_loss.stored()
    slope = problem.cell_loss.grad(problem.cell_scores(problem.stacked(state)))
    moved = state[key].copy()
    moved[-1, -1] -= float(slope.mean(dtype=np.float64)) / float(np.min(weight))
    return {**state, key: moved}


def _dual_norm(
    problem: Problem, term: BoundTerm, operator: ScoreGradient, state: State, rng: np.random.Generator
) -> tuple[float, float, bool]:
    """Dual norm of the derivative by a term's core, its product with the core, and whether it is exact."""
    if term.key("core") not in state:
        left, right = problem.pair(term, state)
        bounds = spectral_bounds(_in_full_precision(operator), rng)
        return bounds.upper, inner(operator.dot(right), left), bounds.exact
    core = state[term.key("core")]
    pulled = problem.pull(term.key("core"), operator, state).astype(np.float64)
    along = inner(pulled, core.astype(np.float64))
    rule = term.reg.on_core()
    if rule.spectral:
        return float(np.linalg.norm(pulled, 2)), along, True
    if isinstance(rule, Separable) and rule.spare_last:  # held at zero by the best constant, up to rounding
        along -= float(pulled[-1, -1] * core[-1, -1])
        pulled[-1, -1] = 0.0
    return float(np.abs(pulled).max(initial=0.0)), along, True


def _in_full_precision(operator: ScoreGradient) -> LowRankPlusSparse:
    n, m = operator.pattern.shape
    blocks: list[tuple[FloatArray, FloatArray]] = [(np.zeros((n, 0)), np.zeros((m, 0)))]
    blank = operator.blank
    if blank:
        rows = np.full((n, 1), blank.weight)
        rows *= 1.0 if blank.row_weights is None else blank.row_weights[:, None]
        cols = np.ones((m, 1)) if blank.col_weights is None else blank.col_weights[:, None]
        blocks.append((rows * operator.left, cols * operator.right))
        if blank.target:
            blocks.append((-blank.target * rows, cols))
    return LowRankPlusSparse(
        operator.pattern,
        operator.cells.astype(np.float64),
        np.ascontiguousarray(np.hstack([left for left, _ in blocks])),
        np.ascontiguousarray(np.hstack([right for _, right in blocks])),
        operator.n_threads,
    )
