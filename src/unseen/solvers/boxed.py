"""Nuclear norm with bounds on every completed value (PU, section 3: ShiftMC with the box)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unseen.cores import Full
from unseen.data import Observations
from unseen.exceptions import TooLargeError
from unseen.linalg.designs import Design, IdentityDesign
from unseen.linalg.svt import Triplets, thresholded_svd
from unseen.losses import CellLoss, Loss
from unseen.problem import Problem
from unseen.solvers.base import Solver, Sweep
from unseen.solvers.lowrank_prox import balanced
from unseen.solvers.rules import MAX_DENSE_CELLS
from unseen.state import State
from unseen.totals import ScoreBox
from unseen.typing import FloatArray

__all__ = ["BoxedADMM", "boxed_rows"]

BALANCE, CHANGE = 5.0, 2.0
"""The weight of the split moves by CHANGE when one residual exceeds BALANCE times the other ..."""
EVERY, LAST = 5, 150
"""... which is looked at every few steps, and no more after a while: a fixed weight converges."""


class BoxedADMM(Solver):
    """Alternating directions for ``loss + reg ||D||_*`` with all scores A D B' between two bounds.

    The scores are held twice: once as X, dense, inside the bounds and close to the data, and
    once as A D B' of low rank; multipliers U pull the two together:

        X <- clip of the data fit at (A D B' - U),  D <- a thresholded SVD step towards X + U,
        U <- U + X - A D B'

    Without features, or with orthonormal ones, the step for D is exact. The problem is convex,
    but the objective of the low-rank half may rise on the way: the solver stops when the two
    halves agree and move no more, both relative to ``||X||_F``. Bounds then hold to ``tol``.

    Parameters
    ----------
    max_iter : int, default=500
        Limit of steps.
    tol : float, default=1e-4
        Relative residual at which to stop.
    lower, upper : float, default=0.0 and 1.0
        Bounds on every score, for problems that set none by a :class:`unseen.totals.ScoreBox`.
    max_dense_cells : int, default=50_000_000
        Refuse targets with more cells: several dense copies are needed.
    """

    factored_full = True
    judges_start = False
    takes_total = (ScoreBox,)

    def __init__(
        self,
        max_iter: int = 500,
        tol: float = 1e-4,
        lower: float = 0.0,
        upper: float = 1.0,
        max_dense_cells: int = MAX_DENSE_CELLS,
    ) -> None:
        super().__init__(max_iter, tol)
        self.lower = lower
        self.upper = upper
        self.max_dense_cells = max_dense_cells

    def refuses(self, problem: Problem) -> str | None:
        if len(problem.terms) != 1:
            return f"it handles one term and there are {len(problem.terms)}"
        term = problem.terms[0]
        if not (isinstance(term.core, Full) and term.reg.spectral):
            return "it needs a Full core with a Nuclear penalty"
        if not problem.cell_loss.quadratic:
            return "the loss is not quadratic"
        if term.row_map.learned or term.col_map.learned:
            return "a map is to be learned; use LBFGS"
        return None

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        refuse_too_large(problem.observations.shape, self.max_dense_cells)
        term = problem.terms[0]
        row, col = problem.designs(term, state)
        cells = _DenseLoss.of(problem.cell_loss)
        core, fitted = _start(problem, state)
        bounds = (problem.on_total(ScoreBox) or ScoreBox(self.lower, self.upper)).bounds()
        multipliers = np.zeros_like(fitted)
        right: FloatArray | None = None
        split = cells.largest_weight
        size = 1.0 if term.free else _norm_squared(row) * _norm_squared(col)
        for step in itertools.count(1):
            inside = np.clip(cells.nearest(fitted - multipliers, split), *bounds)
            goal = inside + multipliers
            if term.free:
                target = goal
            else:
                gap = goal - fitted
                target = core + row.tdot(np.ascontiguousarray(col.tdot(gap.T).T)) / core.dtype.type(size)
            threshold = term.reg.reg / (split * size)
            found = thresholded_svd(_Dense(target), threshold, start=right, rng=rng).shrunk(threshold)
            right = found.v
            last, core = fitted, (found.u * found.s) @ found.v.T
            fitted = core if term.free else row.dot(np.ascontiguousarray(col.dot(core.T).T))
            multipliers = goal - fitted
            scale = max(float(np.linalg.norm(inside)), 1e-12)
            primal = float(np.linalg.norm(inside - fitted)) / scale
            dual = float(np.linalg.norm(fitted - last)) / scale
            state = {**state, **_as_state(problem, found, core)}
            facts = {"primal": primal, "dual": dual, "rank": int(found.s.size)}
            yield Sweep(state, problem.value(state), facts, max(primal, dual) <= self.tol)
            if step % EVERY == 0 and step <= LAST:
                # The multipliers set the scale of the dual residual, as the scores that of the primal one.
                pressure = dual * scale / max(float(np.linalg.norm(multipliers)), 1e-12)
                factor = CHANGE if primal > BALANCE * pressure else 1.0
                factor = 1.0 / CHANGE if pressure > BALANCE * primal else factor
                split, multipliers = split * factor, multipliers / fitted.dtype.type(factor)


def boxed_rows(
    cells: Observations,
    loss: Loss,
    other: FloatArray,
    ridge: float,
    *,
    bounds: tuple[float, float],
    max_dense_cells: int = MAX_DENSE_CELLS,
    tol: float = 1e-6,
    max_iter: int = 2000,
) -> FloatArray:
    """Factors of new rows under the same bounds, columns held fixed.

    Every row has ``ridge/2 ||w||^2`` in place of the nuclear norm, as in its factored form.
    """
    refuse_too_large(cells.shape, max_dense_cells)
    dense = _DenseLoss.of(CellLoss(loss, cells))
    split = dense.largest_weight
    gram = other.T.astype(np.float64) @ other
    system = np.linalg.pinv(gram + (ridge / split) * np.eye(other.shape[1]), hermitian=True)
    solve = (other @ system).astype(other.dtype, copy=False)
    rows = np.zeros((cells.shape[0], other.shape[1]), dtype=other.dtype)
    fitted = rows @ other.T
    multipliers = np.zeros_like(fitted)
    for _ in range(max_iter):
        inside = np.clip(dense.nearest(fitted - multipliers, split), *bounds)
        goal = inside + multipliers
        rows = goal @ solve
        last, fitted = fitted, rows @ other.T
        multipliers = goal - fitted
        scale = max(float(np.linalg.norm(inside)), 1e-12)
        moved = max(float(np.linalg.norm(fitted - last)), float(np.linalg.norm(inside - fitted)))
        if moved <= tol * scale:
            break
    return rows


def refuse_too_large(shape: tuple[int, int], limit: int) -> None:
    """Say what a dense copy of the target would need, if that is too much."""
    count = shape[0] * shape[1]
    if count > limit:
        raise TooLargeError(
            f'bound="box" keeps dense copies of {shape[0]} x {shape[1]} = {count:,} numbers '
            f"({5 * 8 * count / 2**30:.1f} GiB in all); the limit is max_dense_cells={limit:,}. "
            'Use bound="relaxed", whose memory grows with the positives'
        )


@dataclass(frozen=True)
class _DenseLoss:
    """``w/2 (x - t)^2`` for every cell: weights and weighted targets as dense matrices."""

    weight: FloatArray
    linear: FloatArray

    @classmethod
    def of(cls, loss: CellLoss) -> _DenseLoss:
        cells, blank = loss.cells, loss.blank
        weight, target = loss.stored()
        dense_weight = np.full(cells.shape, blank.weight, dtype=cells.dtype)
        if blank.row_weights is not None:
            dense_weight *= blank.row_weights.astype(cells.dtype)[:, None]
        if blank.col_weights is not None:
            dense_weight *= blank.col_weights.astype(cells.dtype)
        linear = dense_weight * cells.dtype.type(blank.target)
        dense_weight[cells.rows, cells.indices] = weight
        linear[cells.rows, cells.indices] = weight * target
        return cls(dense_weight, linear)

    @property
    def largest_weight(self) -> float:
        return float(self.weight.max()) or 1.0

    def nearest(self, point: FloatArray, split: float) -> FloatArray:
        """``argmin_x loss(x) + split/2 (x - point)^2`` in each cell."""
        rho = point.dtype.type(split)
        out: FloatArray = (self.linear + rho * point) / (self.weight + rho)
        return out


class _Dense:
    """A dense matrix behind the products that the thresholded SVD asks for."""

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix

    @property
    def shape(self) -> tuple[int, int]:
        return self._matrix.shape[0], self._matrix.shape[1]

    def dot(self, vectors: FloatArray) -> FloatArray:
        out: FloatArray = self._matrix @ vectors
        return out

    def tdot(self, vectors: FloatArray) -> FloatArray:
        out: FloatArray = self._matrix.T @ vectors
        return out

    def toarray(self) -> FloatArray:
        return self._matrix


def _start(problem: Problem, state: State) -> tuple[FloatArray, FloatArray]:
    """Core and scores of a state."""
    term = problem.terms[0]
    pair = problem.stacked(state)
    fitted = pair.left @ pair.right.T
    return (fitted if term.free else state[term.key("core")]), fitted


def _as_state(problem: Problem, found: Triplets, core: FloatArray) -> State:
    term = problem.terms[0]
    if not term.free:
        return {term.key("core"): core}
    factors = balanced(found)
    return {term.key("row"): factors.left, term.key("col"): factors.right}


def _norm_squared(design: Design) -> float:
    """``||A||_2^2`` with a margin against rounding."""
    if isinstance(design, IdentityDesign):
        return 1.0
    gram = design.tdot(design.toarray())
    return float(np.linalg.norm(gram.astype(np.float64), 2)) * (1.0 + 1e-6)
