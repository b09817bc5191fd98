"""Rows from their cells, with the columns held fixed: what fold-in asks for, for any loss and penalty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unseen import kernels
from unseen.cores import Full
from unseen.data import Observations
from unseen.data.pattern import Pattern
from unseen.linalg.blocked import matmul
from unseen.linalg.designs import DenseDesign, Design
from unseen.linalg.score_gradient import Blank
from unseen.losses import CellLoss, Loss
from unseen.maps import FeatureMap, Identity
from unseen.maps.base import MapParams
from unseen.problem import Pair, Problem
from unseen.regularisers import Penalty, Regulariser, Separable
from unseen.solvers.als import solve_side
from unseen.solvers.base import Monitor
from unseen.solvers.lbfgs import LBFGS
from unseen.solvers.prox import ProxGradient
from unseen.terms import Term
from unseen.typing import Array, Features, FloatArray, IndexArray

__all__ = ["Background", "FreeTerm", "on_used_columns", "solve_bounded_rows", "solve_rows"]

STEPS, TOL = 2000, 1e-14
"""Limits of the general solver; rows are small, and are to be exact."""


class FreeTerm(NamedTuple):
    """Factors of the columns in a term, and the penalty on those of a row."""

    right: FloatArray
    rule: Penalty


class Background(NamedTuple):
    """What blank cells say about rows, whatever their cells: products of the factors of all columns."""

    free: FloatArray
    """Gram matrix of the coordinates that are solved for."""
    crossed: FloatArray
    """Products of all coordinates with those that are solved for."""


def on_used_columns(cells: Observations) -> tuple[Observations, IndexArray | slice]:
    """Cells in the columns that have any, and which these are; all of them unless they are few."""
    if 8 * cells.nnz >= cells.shape[1]:
        return cells, slice(None)
    columns, places = np.unique(cells.indices, return_inverse=True)
    pattern = Pattern(cells.indptr, places.astype(cells.indices.dtype), (cells.shape[0], len(columns)))
    return Observations(pattern, cells.values, weights=cells.weights), columns


def solve_rows(
    cells: Observations,
    loss: Loss,
    terms: list[FreeTerm],
    known: Pair | None,
    *,
    background: Background | None = None,
    n_threads: int = 1,
) -> FloatArray:
    """Factors of rows in all terms, side by side, that minimise the objective with the columns fixed.

    ``known`` is a part of the scores that is given; ``background`` is computed unless it is at hand. A
    quadratic loss with ridges is solved in closed form, one with entrywise penalties by coordinate descent,
    all others by quasi-Newton or proximal steps row by row, so that no row's result depends on which others
    are asked for.
    """
    tables = [term.right for term in terms]
    other: FloatArray = np.ascontiguousarray(tables[0] if len(tables) == 1 else np.hstack(tables))
    rules = [term.rule for term in terms]
    bound = CellLoss(loss, cells)
    entrywise = [rule for rule in rules if isinstance(rule, Separable)]
    powers = {rule.degree_power for rule in entrywise}
    if not bound.quadratic or len(entrywise) < len(rules) or len(powers) > 1:
        return _general(cells, loss, terms, known, n_threads)
    ridges = np.repeat([rule.ridge for rule in entrywise], [term.right.shape[1] for term in terms])
    smooth, power = all(rule.smooth for rule in rules), powers.pop()
    if (power and np.ptp(ridges) and not ridges.all()) or not (
        smooth or all(rule == entrywise[0] for rule in entrywise)
    ):
        return _general(cells, loss, terms, known, n_threads)
    curvature, linear = bound.normal_terms()
    offset = None
    if known is not None:
        scores = kernels.sddmm(cells.indptr, cells.indices, *known, n_threads=n_threads)
        linear = (linear - curvature * scores).astype(scores.dtype, copy=False)
        if bound.blank:
            if background is None:
                columns = bound.blank.col_weights
                crossed: FloatArray = known.right.T @ (other if columns is None else other * columns[:, None])
            else:
                crossed = background.crossed
            offset = (-bound.blank.weight * matmul(known.left, crossed)).astype(other.dtype)
    if not smooth:
        return solve_bounded_rows(
            cells, curvature, linear, other, entrywise[0], blank=bound.blank, extra_offset=offset
        )
    out = np.zeros((cells.shape[0], other.shape[1]), dtype=other.dtype)
    return solve_side(
        (cells.indptr, cells.indices, curvature, linear),
        other,
        out,
        ridge=ridges,
        blank=bound.blank,
        row_scale=cells.degrees("row") ** power if power else None,
        other_gram=None if background is None else background.free,
        extra_offset=offset,
        n_threads=n_threads,
    )


class _Fixed(FeatureMap):
    """A design that is given."""

    needs_features = False

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        return {}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        return DenseDesign(self.matrix, n_threads)


class _OnRows(Regulariser):
    """A penalty on factors, as one on the full core of rows times given columns."""

    def __init__(self, rule: Penalty) -> None:
        self.rule = rule

    def on_core(self) -> Penalty:
        return self.rule


def _general(
    cells: Observations, loss: Loss, terms: list[FreeTerm], known: Pair | None, n_threads: int
) -> FloatArray:
    """One small problem for each row: a full core of one row times the factors of the columns."""
    wide = [Term(Identity(), _Fixed(t.right.astype(np.float64)), Full(), _OnRows(t.rule)) for t in terms]
    out = np.zeros((cells.shape[0], sum(term.right.shape[1] for term in terms)), dtype=terms[0].right.dtype)
    start, values = cells.indptr, cells.values.astype(np.float64)
    for row in range(cells.shape[0]):
        part = slice(int(start[row]), int(start[row + 1]))
        weights = None if cells.weights is None else cells.weights[part].astype(np.float64)
        pattern = Pattern(start[row : row + 2] - start[row], cells.indices[part], (1, cells.shape[1]))
        one = Observations(pattern, values[part], weights=weights)
        given = None if known is None else Pair(known.left[[row]].astype(np.float64), known.right)
        problem = Problem(one, wide, loss, known=given, n_threads=n_threads)
        rng = np.random.default_rng(0)
        solver = LBFGS() if LBFGS().refuses(problem) is None else ProxGradient()
        state = solver.solve(problem, problem.start(rng), rng, Monitor(STEPS, TOL, warn=False))
        out[row] = np.hstack([state[term.key("core")] for term in problem.terms])[0]
    return out


def solve_bounded_rows(
    cells: Observations,
    curvature: float | FloatArray,
    linear: float | FloatArray,
    other: FloatArray,
    rule: Separable,
    *,
    blank: Blank,
    extra_offset: FloatArray | None = None,
    tol: float = 1e-10,
    max_sweeps: int = 1000,
) -> FloatArray:
    """Row factors that minimise the objective of each row by coordinate descent.

    The systems are those of :func:`unseen.solvers.als.solve_side`. Every coordinate goes to its exact
    minimiser, for all rows at once; rows do not touch each other, so a row's result does not
    depend on which others are asked for.
    """
    n_rows, k = cells.shape[0], other.shape[1]
    rows, picked = cells.rows, cells.indices
    right: Array = other.astype(np.float64)
    background = blank.weight * blank.gram("col", right)
    offset = blank.weight * blank.target * blank.sums("col", right) + (
        0.0 if extra_offset is None else extra_offset
    )
    offset = np.broadcast_to(offset, (n_rows, k))
    curved = np.empty((n_rows, k))
    for t in range(k):
        sums = np.bincount(rows, curvature * right[picked, t] ** 2, minlength=n_rows)
        curved[:, t] = sums + background[t, t]
    out = np.full((n_rows, k), float(np.clip(0.0, rule.lower, rule.upper)))
    scores = np.einsum("ij,ij->i", out[rows], right[picked]) if out.any() else np.zeros(cells.nnz)
    for _ in range(max_sweeps):
        largest = 0.0
        for t in range(k):
            q = right[picked, t]
            pull = np.bincount(rows, (linear - curvature * scores) * q, minlength=n_rows) + (
                offset[:, t] - out @ background[:, t] + curved[:, t] * out[:, t]
            )
            shrunk = np.sign(pull) * np.maximum(np.abs(pull) - rule.l1, 0.0)
            size = curved[:, t] + rule.ridge
            moved = np.divide(shrunk, size, out=out[:, t].copy(), where=size > 0)
            change = np.clip(moved, rule.lower, rule.upper) - out[:, t]
            out[:, t] += change
            scores += change[rows] * q
            largest = max(largest, float(np.abs(change).max(initial=0.0)))
        if largest <= tol * max(1.0, float(np.abs(out).max(initial=0.0))):
            break
    return out.astype(other.dtype)
