"""Solvers of augmented factorisation: gradients with exact line search, ALS with the same stopping rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from unseen.exceptions import ParameterError
from unseen.linalg.blocked import gram, inner
from unseen.losses import Squared
from unseen.problem import Problem
from unseen.regularisers import Penalty, Separable
from unseen.sensing import ExpectedFit, Fit, SampledFit, Sensing, col_step, objective, residuals, row_step
from unseen.solvers.als import ALS
from unseen.solvers.base import Solver, Sweep
from unseen.solvers.rules import why_not_free_factors
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["AlternatingLineSearch", "AugmentedALS", "Sensing", "product_distance"]

AFRESH = 10
"""Sweeps after which residuals are computed anew, against drift."""


class AlternatingLineSearch(Solver):
    """Gradient steps for one factor at a time, each to the lowest point of its line (AMF, Algorithm 2).

    Minimises ||A(UV') - b||^2 + reg (||U||^2 + ||V||^2) for the measurement of the problem, or
    w_obs sum_observed (s - x)^2 + w_unobs sum_others s^2 in its place where the loss sees the cells. It never
    rises.

    Parameters
    ----------
    tol : float, default=1e-6
        Stop when the squared change of the product is below this share of its square, or when a sweep
        lowers the objective by less than this share.
    eps_abs : float, optional
        Stop when the squared change of the product is below this number: the paper's rule, in place of
        ``tol``.
    """

    judges_start = False
    takes_measurement = True
    former_params = ("sensing",)

    def __init__(self, max_iter: int = 100, tol: float = 1e-6, eps_abs: float | None = None) -> None:
        super().__init__(max_iter, tol)
        self.eps_abs = eps_abs

    def refuses(self, problem: Problem) -> str | None:
        reason = why_not_free_factors(problem)
        blank = problem.blank
        if reason is None and not (isinstance(problem.loss, Squared) and blank.target == 0.0):
            reason = "it needs the squared loss, with blank cells missing or pulled to zero; use ALS"
        if reason is None and (problem.observations.weights is not None or blank.separable):
            reason = "it needs one weight of all stored and one of all blank cells; use ALS"
        if reason is None and not all(_plain_ridge(rule) for rule in problem.rules()):
            reason = "gradient steps need a ridge or nuclear penalty without degree_scaling; use ALS or CCD"
        return reason

    def prepare(self, problem: Problem, state: State, rng: np.random.Generator) -> State:
        if not (state["0.row"].any() and state["0.col"].any()):
            raise ParameterError("factors that are all zero are a saddle point, from which no gradient leads")
        return state

    def fit_of(self, problem: Problem) -> Fit:
        """The misfit that is minimised."""
        assert isinstance(problem.loss, Squared)
        # The core's losses carry 1/2, (L) of the paper does not.
        weight = 0.5 * problem.loss.weight
        if problem.measurement is not None:
            return SampledFit(problem.measured.map, weight, problem.measured.target)
        weights = weight, 0.5 * problem.blank.weight
        return ExpectedFit(problem.observations, weights, n_threads=problem.n_threads)

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        shards, reg = [self.fit_of(problem)], _ridge(problem)
        left, right = state["0.row"], state["0.col"]
        kept = residuals(shards, left, right)
        last = objective(shards, kept, left, right, reg)
        count = 0
        while True:
            rows = row_step(shards, kept, left, right, reg)
            cols = col_step(shards, rows.residuals, rows.factor, right, reg)
            change = product_distance((rows.factor, cols.factor), (left, right), problem.n_threads)
            left, right, kept = rows.factor, cols.factor, cols.residuals
            count += 1
            if count % AFRESH == 0:
                kept = residuals(shards, left, right)
            now = objective(shards, kept, left, right, reg)
            facts = {"change": change, "decrease": rows.decrease + cols.decrease}
            size = product_size(left, right, problem.n_threads)
            settled = _settled(self, change, size, last - now, last)
            yield Sweep({**state, "0.row": left, "0.col": right}, now, facts, settled)
            last = now


class AugmentedALS(ALS):
    """Alternating least squares that can also stop by the change of the product, as AMF does.

    Parameters
    ----------
    tol : float, default=1e-6
        Stop when the squared change of the product is below this share of its square, or when a sweep
        lowers the objective by less than this share.
    eps_abs : float, optional
        Stop when the squared change of the product is below this number, in place of ``tol``.
    """

    def __init__(self, max_iter: int = 100, tol: float = 1e-6, eps_abs: float | None = None) -> None:
        super().__init__(max_iter, tol)
        self.eps_abs = eps_abs

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        before = (np.array(state["0.row"]), np.array(state["0.col"]))
        last = problem.value(state)
        for sweep in super().sweeps(problem, state, rng):
            after = (np.array(sweep.state["0.row"]), np.array(sweep.state["0.col"]))
            change = product_distance(after, before, problem.n_threads)
            size = product_size(*after, problem.n_threads)
            settled = _settled(self, change, size, last - sweep.objective, last)
            yield sweep._replace(facts={**sweep.facts, "change": change}, settled=settled)
            before, last = after, sweep.objective


def _settled(solver: Any, change: float, size: float, gain: float, last: float) -> bool:
    if solver.eps_abs is not None:
        return bool(change < solver.eps_abs)
    return bool(change <= solver.tol * size or gain <= solver.tol * abs(last))


def _ridge(problem: Problem) -> float:
    """eta: the core's penalties carry 1/2, (L) of the paper does not."""
    rule = problem.terms[0].reg.factored()
    assert isinstance(rule, Separable)
    return 0.5 * rule.ridge


def _plain_ridge(rule: Penalty) -> bool:
    return isinstance(rule, Separable) and rule.quadratic and not rule.degree_power


def product_size(left: FloatArray, right: FloatArray, n_threads: int = 1) -> float:
    """``||U V'||_F^2`` by Gram matrices."""
    return max(inner(gram(left, n_threads=n_threads), gram(right, n_threads=n_threads)), 0.0)


def product_distance(
    one: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray], n_threads: int = 1
) -> float:
    """``||U V' - P Q'||_F^2`` by Gram matrices, never below zero."""
    left, right = (gram(a, b, n_threads=n_threads) for a, b in zip(one, other, strict=True))
    total = product_size(*one, n_threads) + product_size(*other, n_threads) - 2.0 * inner(left, right)
    return max(total, 0.0)
