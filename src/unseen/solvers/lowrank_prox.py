"""Nuclear-norm completion in "low rank + sparse" form (soft-impute, accelerated)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from unseen.cores import Full
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import Operator, Triplets, thresholded_svd
from unseen.problem import Pair, Problem
from unseen.solvers.base import Solver, Sweep
from unseen.state import State
from unseen.typing import FloatArray

__all__ = [
    "LowRankProx",
    "SvdTolerance",
    "accelerated",
    "balanced",
    "distance",
    "shrunk_svd",
    "stacked_columns",
    "triplets_of",
]


class LowRankProx(Solver):
    """Proximal gradient for a nuclear norm on the whole matrix, never dense.

    With the scores X kept as U diag(s) V', a gradient step of length eta = 1/max(weights) is
    ``(1 - eta w0) X + eta (d - c x) on stored cells (+ eta w0 t0)``: low rank plus sparse. Its
    thresholded SVD is the next X. Momentum keeps this form (the difference of two low-rank
    matrices) and is dropped whenever the objective would rise.

    Parameters
    ----------
    max_iter : int, default=200
        Limit of steps.
    tol : float, default=1e-5
        Stop when a step lowers the objective by less than this share.
    max_rank : int, optional
        Keep at most this many singular values; the problem is no longer convex then.
    svd_tol : float, default=1e-7
        Smallest residual asked of the singular triplets; while steps are still long, less is asked.
    """

    factored_full = True

    def __init__(
        self, max_iter: int = 200, tol: float = 1e-5, max_rank: int | None = None, svd_tol: float = 1e-7
    ) -> None:
        super().__init__(max_iter, tol)
        self.max_rank = max_rank
        self.svd_tol = svd_tol

    def refuses(self, problem: Problem) -> str | None:
        if len(problem.terms) != 1:
            return f"it handles one term and there are {len(problem.terms)}; use BlockProx or ProxGradient"
        term = problem.terms[0]
        if not (isinstance(term.core, Full) and term.reg.spectral):
            return "it needs a Full core with a Nuclear penalty"
        if not term.free:
            return "it needs Identity maps on both sides; use ProxGradient with features"
        if not problem.cell_loss.quadratic:
            return "the loss is not quadratic"
        if problem.blank.separable:
            return "a background with row_weights or col_weights leaves no sparse step; use ALS"
        return None

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        def step(here: Point, last: Point, ahead: float, svd_tol: float) -> tuple[Point, float]:
            found = self._step(problem, here, last, ahead, svd_tol, rng)
            pair = balanced(found)
            cells = problem.cell_scores(pair)
            penalty = problem.terms[0].reg.reg * float(found.s.sum(dtype=np.float64))
            return Point(found, cells), problem.data_value_at(pair, cells) + penalty

        start = triplets_of(state["0.row"], state["0.col"])
        first = Point(start, problem.cell_scores(balanced(start)))
        for point, value, residual in accelerated(first, problem.value(state), step, self.svd_tol):
            left, right = balanced(point.low_rank)
            facts = {"rank": int(point.low_rank.s.size), "residual": residual}
            yield Sweep({**state, "0.row": left, "0.col": right}, value, facts)

    def _step(
        self,
        problem: Problem,
        here: Point,
        last: Point,
        ahead: float,
        svd_tol: float,
        rng: np.random.Generator,
    ) -> Triplets:
        point, scores = here
        loss = problem.cell_loss
        stored_weight, _ = loss.stored()
        curvature, linear = loss.normal_terms()
        weight, target = loss.blank
        step = 1.0 / max(float(np.max(stored_weight)), weight)
        moved = scores + (scores - last.cells) * scores.dtype.type(ahead)
        cells = (step * (linear - curvature * moved)).astype(scores.dtype, copy=False)
        shrink = 1.0 - step * weight
        left = [point.u * (point.s * (shrink * (1.0 + ahead)))] if shrink else []
        right = [point.v] if shrink else []
        if shrink and ahead:
            left.append(last.low_rank.u * (last.low_rank.s * (-shrink * ahead)))
            right.append(last.low_rank.v)
        if weight * target != 0.0:
            n, m = problem.observations.shape
            left.append(np.full((n, 1), step * weight * target))
            right.append(np.ones((m, 1)))
        dtype = scores.dtype
        operator = LowRankPlusSparse(
            problem.observations,
            cells,
            stacked_columns(left, problem.observations.shape[0], dtype),
            stacked_columns(right, problem.observations.shape[1], dtype),
            problem.n_threads,
        )
        threshold = step * problem.terms[0].reg.reg
        return shrunk_svd(operator, threshold, point, svd_tol, rng, self.max_rank)


class Point(NamedTuple):
    """A low-rank part of the scores, and its values on the stored cells."""

    low_rank: Triplets
    cells: FloatArray


class HasLowRank(Protocol):
    """What momentum needs to know of a point."""

    @property
    def low_rank(self) -> Triplets:
        """The part that carries momentum."""


P = TypeVar("P", bound=HasLowRank)


def accelerated(
    point: P, value: float, step: Callable[[P, P, float, float], tuple[P, float]], svd_tol: float
) -> Iterator[tuple[P, float, float]]:
    """Proximal steps with momentum, which is dropped whenever the objective would rise.

    Parameters
    ----------
    point, value
        Start and its objective.
    step : callable
        From the point, the one before, the share of their difference to go on by and the accuracy of singular
        triplets, the next point and its objective.
    svd_tol : float
        Smallest residual asked of the triplets.

    Yields
    ------
    point, objective and relative length of the last step.
    """
    last, momentum = point, 1.0
    accuracy = SvdTolerance(svd_tol)
    while True:
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = (momentum - 1.0) / following
        candidate, reached = step(point, last, ahead, accuracy.now)
        if reached > value and (ahead > 0.0 or accuracy.loose):
            accuracy.tighten()
            candidate, reached = step(point, last, 0.0, accuracy.now)
            following = 1.0
        residual = distance(candidate.low_rank, point.low_rank)
        accuracy.follow(residual)
        last, momentum = point, following
        if reached <= value:  # a truncated SVD may miss by its tolerance: then stay
            point, value = candidate, reached
        yield point, value, residual


def shrunk_svd(
    operator: Operator,
    threshold: float,
    before: Triplets,
    svd_tol: float,
    rng: np.random.Generator,
    max_rank: int | None,
) -> Triplets:
    """Singular values less ``threshold`` where they are above it, searched from those of the point before."""
    start = before.v if before.s.size else None
    return thresholded_svd(operator, threshold, start=start, rng=rng, tol=svd_tol, max_rank=max_rank).shrunk(
        threshold
    )


class SvdTolerance:
    """Residual asked of singular triplets: a small share of the last step, never below a floor."""

    def __init__(self, floor: float, start: float = 1e-4) -> None:
        self._floor = floor
        self.now = max(start, floor)

    @property
    def loose(self) -> bool:
        """Whether more accuracy is to be had."""
        return self.now > self._floor

    def follow(self, residual: float) -> None:
        """Take the length of the last step."""
        self.now = max(min(self.now, 0.01 * residual), self._floor)

    def tighten(self) -> None:
        """Ask for all there is: a step failed that should have succeeded."""
        self.now = self._floor


def balanced(point: Triplets) -> Pair:
    """Factors that both carry the square root of the singular values."""
    root = np.sqrt(point.s)
    return Pair(np.ascontiguousarray(point.u * root), np.ascontiguousarray(point.v * root))


def triplets_of(left: FloatArray, right: FloatArray) -> Triplets:
    """Singular triplets of ``left @ right.T``."""
    q_left, r_left = np.linalg.qr(left)
    q_right, r_right = np.linalg.qr(right)
    u, s, vt = np.linalg.svd(r_left @ r_right.T)
    rank = min(u.shape[1], vt.shape[0])
    return Triplets(q_left @ u[:, :rank], s, q_right @ vt[:rank].T)


def distance(new: Triplets, old: Triplets) -> float:
    """``||new - old||_F / ||new||_F`` from the factors."""
    cross = (new.u.T @ old.u) * (new.v.T @ old.v)
    squares = [float(np.sum(np.square(t.s, dtype=np.float64))) for t in (new, old)]
    apart = sum(squares) - 2.0 * float(new.s.astype(np.float64) @ cross @ old.s)
    return float(np.sqrt(max(apart, 0.0) / max(squares[0], np.finfo(float).tiny))) if squares[0] else 0.0


def stacked_columns(blocks: list[FloatArray], n_rows: int, dtype: np.dtype[Any]) -> FloatArray:
    """Blocks side by side, as one contiguous array."""
    if not blocks:
        return np.zeros((n_rows, 0), dtype=dtype)
    return np.ascontiguousarray(np.hstack(blocks).astype(dtype, copy=False))
