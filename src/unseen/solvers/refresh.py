"""Factors after an update of the cells: only rows and columns whose cells changed are solved for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unseen import kernels
from unseen.data.merging import Merged
from unseen.data.pattern import index_dtype
from unseen.exceptions import DivergedError
from unseen.kernels.providers import HostProvider
from unseen.problem import Problem
from unseen.solvers.als import ALS, Side, sides_of, value_by_rows, with_sides
from unseen.solvers.base import CellTerms, by_column
from unseen.solvers.worthwhile import worthwhile
from unseen.state import State
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["Pace", "Refreshed", "refresh"]

SAMPLE, SHARE = 400, 0.01
"""Rows and columns that are solved on trial, to estimate what all of them would bring: at least so many."""
ENOUGH, MAX_SWEEPS = 0.005, 5
"""Sweeps over everything follow while the estimated drift is above this, and so many at most."""
FINE, SHARE_OF_FIT = 0.002, 0.01
"""They follow down to this, too, where they are no more than this share of the last fit's."""
SLOW = 0.75
"""How far an estimate of the drift leans to the pace at which a fit ends."""


class Refreshed(NamedTuple):
    """What an update came to.

    Attributes
    ----------
    state : dict
        The new factors.
    objective : float
        Their objective.
    drift : float
        Estimate of the share of it by which it lies above that of a fit to all cells.
    n_sweeps : int
        Sweeps over all rows and columns that were needed.
    """

    state: State
    objective: float
    drift: float
    n_sweeps: int


class Pace(NamedTuple):
    """What the sweeps of the last fit took from the objective.

    Attributes
    ----------
    reach : float
        What all further sweeps take, in terms of the next one. New cells are a disturbance here and there,
        which goes quickly, as at the start of a fit; what many updates leave behind goes slowly, as at its
        end. This is a geometric mean of the two that leans to the end, so that it is rather too large.
    reach_at_end : float
        The same at the end of a fit, and after sweeps over everything: what goes quickly is gone.
    left : float
        What one more sweep would have taken: a new fit would leave that as well.
    n_sweeps : int
        Sweeps of the fit.
    objective : float
        What it came to.
    """

    reach: float
    reach_at_end: float
    left: float
    n_sweeps: int
    objective: float

    @classmethod
    def of(cls, objectives: Sequence[float]) -> Pace:
        """From the objectives of the sweeps."""
        steps = np.maximum(-np.diff(objectives), 0.0)
        if len(steps) < 2 or steps[0] == 0 or steps[-2] == 0:
            left = float(steps[-1]) if len(steps) else 0.0
            return cls(1.0, 1.0, left, len(objectives), float(objectives[-1]))
        rate = min(float(steps[-1] / steps[-2]), 0.95)
        at_start, at_end = float(steps.sum() / steps[0]), 1.0 / (1.0 - rate)
        reach = at_start ** (1.0 - SLOW) * at_end**SLOW
        return cls(reach, at_end, float(steps[-1]) * rate, len(objectives), float(objectives[-1]))


def refresh(
    problem: Problem,
    state: State,
    solver: ALS,
    merged: Merged,
    *,
    pace: Pace,
) -> Refreshed:
    """Alternate between the picked columns and the picked rows, all others fixed.

    Each half sweep is exact for what it solves, so the objective never rises. What the rows and columns that
    were left alone would bring is estimated from a sample of them: a quadratic lies by d'Ad/2 above its
    minimum, with d the distance to it and A its second derivative. At the pace of the fit's own sweeps that
    gives the drift; while it is large, sweeps over everything follow.

    Columns come before rows, as in :class:`ALS`. A row of zeros, as new ones are, says nothing about columns,
    so such rows come before all. Where a few steps of conjugate gradients stand for each solution, a sweep is
    quick: columns are solved for as far as it is :func:`worthwhile`, then all rows, which takes no longer
    than the objective alone and tells it too. Where half a sweep is exact and is nothing beside a fit, all
    columns come once more at the end: that takes no longer than to estimate what they would bring.

    Parameters
    ----------
    problem : Problem
        One term without features, and biases, as :class:`ALS` takes it.
    state : dict
        Start.
    solver : ALS
        How single systems are solved.
    merged : Merged
        The cells, and which of them changed.
    pace : Pace
        How the last fit ended.

    Returns
    -------
    Refreshed
    """
    cells = problem.observations
    curvature, linear = problem.cell_loss.normal_terms()
    by_row: CellTerms = (cells.indptr, cells.indices, curvature, linear)
    in_columns = by_column(cells, curvature, linear)
    row_side, col_side = sides_of(problem, state, HostProvider(n_threads=problem.n_threads))
    options: dict[str, Any] = {
        "method": solver.method, "cg_steps": solver.cg_steps, "n_threads": problem.n_threads
    }  # fmt: skip
    everything = np.arange(cells.shape[1]), np.arange(cells.shape[0])
    quick = solver.method == "cg"
    col_kept, row_kept = _Kept(col_side, problem.n_threads), _Kept(row_side, problem.n_threads)
    empty = np.flatnonzero(merged.rows & ~row_side.factors.any(axis=1))
    if empty.size:
        row_kept.solve(col_kept, _some(by_row, empty), empty, options)
    picked: list[IndexArray] = [np.flatnonzero(some) for some in (merged.cols, merged.rows)]
    if quick:
        picked[1] = everything[1]
        if row_kept.gram is not None:
            counts = np.diff(in_columns[0])
            picked[0] = worthwhile(problem, row_side, col_side, row_kept.gram, counts, merged, pace.objective)
    parts = [_some(terms, some) for terms, some in zip((in_columns, by_row), picked, strict=True)]
    row_values = np.empty(cells.shape[0])
    for count in range(1 + MAX_SWEEPS):
        if count == 1:
            parts, picked = [in_columns, by_row], list(everything)
        col_kept.solve(row_kept, parts[0], picked[0], options)
        if quick:
            row_kept.solve(col_kept, by_row, everything[1], {**options, "row_values": row_values})
            penalty = col_side.penalty_gram(col_kept.background(), problem.n_threads)
            constant = problem.cell_loss.normal_constant()
            objective = value_by_rows(problem, row_values, col_side, penalty, constant)
            open_sides: tuple[int, ...] = (1,)
        else:
            row_kept.solve(col_kept, parts[1], picked[1], options)
            last = count == 0 and SHARE_OF_FIT * pace.n_sweeps >= 0.5
            if last:
                col_kept.solve(row_kept, in_columns, everything[0], options)
            open_sides = (0,) if last else (1, 0)
            objective = _value(problem, row_kept, col_kept)
        if not np.isfinite(objective):
            raise DivergedError(f"the objective became {objective} when the new cells were taken in")
        kept = (row_kept, col_kept), (by_row, in_columns)
        excess = _total_excess(*kept, options, open_sides) - pace.left
        reach = pace.reach_at_end if count else pace.reach
        drift = max(excess, 0.0) * reach / max(abs(objective), np.finfo(float).tiny)
        if drift <= (FINE if count + 1 <= SHARE_OF_FIT * pace.n_sweeps else ENOUGH):
            break
    return Refreshed(with_sides(problem, state, row_side, col_side), objective, drift, count)


class _Kept:
    """A side and the Gram matrix that the background needs of it, which follows what is solved."""

    def __init__(self, side: Side, n_threads: int) -> None:
        self.side = side
        self._n_threads = n_threads
        self._gram: FloatArray | None = None

    @property
    def gram(self) -> FloatArray | None:
        """Of the factors alone; None where there is no background, or a bias beside the factors."""
        if not self.side.blank or self.side.bias is not None:
            return None
        if self._gram is None:
            self._gram = self.side.gram(self._n_threads)
        return self._gram

    def background(self) -> FloatArray:
        """The Gram matrix of the factors, whether or not there is a background."""
        return self.side.gram(self._n_threads) if self.gram is None else self.gram

    def solve(self, other: _Kept, cells: CellTerms, picked: IndexArray, options: dict[str, Any]) -> None:
        """Bring some rows to their optimum."""
        side, options = self.side, {**options, "other_gram": other.gram}
        if picked.size == len(side.factors):
            side.solve(other.side, cells, **options)
            self._gram = None
        elif picked.size:
            part = side.part(picked)
            old = self._gram
            rest = None if old is None else old - part.gram(self._n_threads)
            part.solve(other.side, cells, **options)
            side.put(picked, part)
            self._gram = None if rest is None else rest + part.gram(self._n_threads)


def _value(problem: Problem, rows: _Kept, cols: _Kept) -> float:
    """The objective, by a pass over the cells."""
    grams = rows.gram, cols.gram
    known = None if grams[0] is None or grams[1] is None else (grams[0], grams[1])
    return problem.value(with_sides(problem, {}, rows.side, cols.side), grams=known)


def _total_excess(
    sides: tuple[_Kept, _Kept],
    cells: tuple[CellTerms, CellTerms],
    options: dict[str, Any],
    open_sides: tuple[int, ...],
) -> float:
    """What exact solutions of the open sides would bring; the others are at their minimum."""
    rng = np.random.default_rng(0)
    exact = {**options, "method": "cholesky"}
    return sum(_excess(sides[at], sides[1 - at], cells[at], exact, rng) for at in open_sides)


def _some(cells: CellTerms, picked: IndexArray) -> CellTerms:
    """Pattern and normal terms of some rows."""
    indptr, indices, curvature, linear = cells
    if picked.size == indptr.size - 1:
        return cells
    counts = np.diff(indptr)[picked]
    ends = np.zeros(picked.size + 1, dtype=np.int64)
    np.cumsum(counts, out=ends[1:])
    place = np.arange(ends[-1]) + np.repeat(indptr[picked] - ends[:-1], counts)
    kind = index_dtype((1, 1), int(indptr[-1]))
    of_cells = [part if np.ndim(part) == 0 else np.asarray(part)[place] for part in (curvature, linear)]
    return ends.astype(kind), indices[place], of_cells[0], of_cells[1]


def _excess(
    own: _Kept, fixed: _Kept, cells: CellTerms, options: dict[str, Any], rng: np.random.Generator
) -> float:
    """How far the objective lies above its minimum over this side, estimated from a sample of its rows."""
    side, other = own.side, fixed.side
    n = len(side.factors)
    count = min(n, max(SAMPLE, int(SHARE * n)))
    if count == 0:
        return 0.0
    picked = np.arange(n) if count == n else np.sort(rng.choice(n, count, replace=False))
    part, some = side.part(picked), _some(cells, picked)
    before = side.part(picked)
    part.solve(other, some, other_gram=fixed.gram, **options)
    table: Array = other.factors
    step: Array = before.factors - part.factors
    if part.bias is not None and before.bias is not None:
        table = np.column_stack([table, np.ones(len(table), dtype=table.dtype)])
        step = np.column_stack([step, before.bias - part.bias])
    return n / count * _quadratic(step, table, some, part, fixed.gram, options["n_threads"])


def _quadratic(
    step: FloatArray,
    table: FloatArray,
    cells: CellTerms,
    side: Side,
    gram: FloatArray | None,
    n_threads: int,
) -> float:
    """``sum_i d_i' A_i d_i / 2`` with A_i the second derivative of row i."""
    indptr, indices, curvature, _ = cells
    indices = np.ascontiguousarray(indices)
    moved = kernels.sddmm(
        indptr, indices, np.ascontiguousarray(step), np.ascontiguousarray(table), n_threads=n_threads
    )
    total = float(np.sum(curvature * moved.astype(np.float64) ** 2))
    wide = step.astype(np.float64)
    if side.blank:
        gram = side.blank.gram("col", table, n_threads) if gram is None else gram
        square = np.einsum("ij,ij->i", wide @ gram, wide)
        weights = side.blank.row_weights
        total += side.blank.weight * float(np.sum(square if weights is None else square * weights))
    ridge = np.full(step.shape[1], side.rule.ridge)
    if side.bias_rule is not None:
        ridge[-1] = side.bias_rule.ridge
    square = (wide**2) @ ridge
    scale = side.row_scale
    total += float(np.sum(square if scale is None else square * scale))
    return 0.5 * total
