"""Cyclic coordinate descent by rank-one components (CCD++)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen import kernels
from unseen.linalg.balance import balanced
from unseen.linalg.blocked import gram, in_blocks, inner
from unseen.problem import Pair, Problem
from unseen.regularisers import Separable
from unseen.solvers.base import CellTerms, Solver, Sweep, blank_constant, by_column
from unseen.solvers.rules import why_not_free_factors
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["CCD"]

ROWS_AT_A_TIME = 8192
"""Rows whose coordinates are brought down together: they stay in cache for all components."""


class CCD(Solver):
    """Rank-one sweeps for one term without features; takes L1 penalties and bounds.

    Each coordinate goes to its exact minimiser, so the objective never rises. Under a plain ridge the factors
    are turned before each sweep, without changing their product, until the components of either side are
    orthogonal: moved one by one they are then least in each other's way. Where stored and blank cells
    weigh the same, as in non-negative factorisation of counts, a side needs one product with the stored
    cells for all its components; all components of the columns come before those of the rows then.

    Parameters
    ----------
    inner : int, default=1
        Passes over a component before the next one.
    """

    def __init__(self, max_iter: int = 50, tol: float = 1e-5, inner: int = 1) -> None:
        super().__init__(max_iter, tol)
        self.inner = inner

    def refuses(self, problem: Problem) -> str | None:
        reason = why_not_free_factors(problem)
        if reason is None and not problem.cell_loss.quadratic:
            reason = "the loss is not quadratic; use LBFGS"
        if reason is None and not all(rule.by_entry for rule in problem.rules()):
            reason = (
                "coordinates are moved one by one, and the penalty is no sum over entries; use ProxGradient"
            )
        if reason is None and _rule(problem).degree_power:
            reason = "degree_scaling is not for coordinate descent; use ALS"
        if reason is None and problem.blank.separable:
            reason = "a background with row_weights or col_weights is not for coordinate descent; use ALS"
        return reason

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        cells = problem.observations
        curvature, linear = problem.cell_loss.normal_terms()
        weight, target = problem.blank
        if weight > 0.0 and np.ndim(curvature) == 0 and curvature == 0.0:
            yield from self._even_sweeps(problem, state, linear)
            return
        csc = cells.csc
        rule = _rule(problem)
        rows, cols = (np.array(state[key]) for key in ("0.row", "0.col"))
        free = rule.l1 == 0 and rule.ridge > 0 and (rule.lower, rule.upper) == (-np.inf, np.inf)
        scores = problem.cell_scores(Pair(rows, cols))
        while True:
            if free:  # without changing the scores
                rows, cols = balanced(rows, cols, n_threads=problem.n_threads)
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

    def _even_sweeps(self, problem: Problem, state: State, linear: float | FloatArray) -> Iterator[Sweep]:
        """Sweeps for ``weight/2 ||P Q' - target||^2 - sum_stored d s``; Gram matrices hold all curvature."""
        cells, n_threads = problem.observations, problem.n_threads
        weight, target = problem.blank
        rule = _rule(problem)
        rows, cols = (np.array(state[key]) for key in ("0.row", "0.col"))
        in_rows: CellTerms = (cells.indptr, cells.indices, 0.0, linear)
        in_columns = by_column(cells, 0.0, linear)
        constant = problem.cell_loss.normal_constant() + blank_constant(problem)
        while True:
            for _ in range(self.inner):
                _lower_side(cols, rows, in_columns, rule, (weight, target), n_threads)
                pull, curved = _lower_side(rows, cols, in_rows, rule, (weight, target), n_threads)
            value = constant + 0.5 * inner(gram(rows, n_threads=n_threads), curved) - inner(rows, pull)
            state = {**state, "0.row": rows, "0.col": cols}
            yield Sweep(state, value + problem.penalty(state), {})


def _rule(problem: Problem) -> Separable:
    rule = problem.terms[0].reg.factored()
    assert isinstance(rule, Separable)
    return rule


def _lower_side(
    own: FloatArray,
    other: FloatArray,
    cells: CellTerms,
    rule: Separable,
    blank: tuple[float, float],
    n_threads: int,
) -> tuple[FloatArray, FloatArray]:
    """Bring one coordinate of each row after the other to its minimum, in place.

    With ``A = weight Q'Q`` and ``B = D Q + weight target 1 (Q'1)'`` a row p has
    ``1/2 p'Ap - p . b + penalty(p)``. Gives B and A.
    """
    indptr, indices, _, linear = cells
    weight, target = blank
    pull = kernels.spmm(indptr, indices, linear, other, n_threads=n_threads)
    if target:
        pull += (weight * target * other.sum(axis=0, dtype=np.float64)).astype(pull.dtype)
    curved = weight * gram(other, n_threads=n_threads)
    small = curved.astype(own.dtype)

    def lower(part: slice) -> None:
        # Component by component in memory too: a step reads and writes one of them.
        block, wanted = (np.ascontiguousarray(array[part].T) for array in (own, pull))
        for t, curvature in enumerate(small.diagonal()):
            if curvature > 0:
                best = block[t] + (wanted[t] - small[t] @ block) / curvature
                block[t] = rule.prox(best, 1.0 / float(curvature))
            else:  # the other side has nothing there: only the penalty and the bounds speak
                free = np.zeros_like(block[t]) if rule.ridge or rule.l1 else block[t]
                block[t] = np.clip(free, rule.lower, rule.upper)
        own[part] = block.T

    for _ in in_blocks(lower, len(own), n_threads, block_rows=ROWS_AT_A_TIME):
        pass
    return pull, curved
