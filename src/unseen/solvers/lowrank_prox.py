"""Nuclear-norm completion in "low rank + sparse" form (soft-impute, accelerated)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from unseen.cores import Full
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import Triplets, thresholded_svd
from unseen.losses import Quadratic
from unseen.problem import Pair, Problem
from unseen.regularisers import Nuclear
from unseen.solvers.base import Solver, Sweep, quadratic_loss
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["LowRankProx"]


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
        Residual allowed in the singular triplets.
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
            return f"it handles one term and there are {len(problem.terms)}; use ProxGradient"
        term = problem.terms[0]
        if not (isinstance(term.core, Full) and isinstance(term.reg, Nuclear)):
            return "it needs a Full core with a Nuclear penalty"
        if not term.free:
            return "it needs Identity maps on both sides; use ProxGradient with features"
        if not isinstance(problem.loss, Quadratic):
            return "the loss is not quadratic"
        return None

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        point = _triplets_of(state["0.row"], state["0.col"])
        scores = problem.cell_scores(_pair(point))
        value = problem.value(state)
        last, last_scores, momentum = point, scores, 1.0
        while True:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = (momentum - 1.0) / following
            candidate = self._step(problem, point, scores, last, last_scores, ahead, rng)
            reached, candidate_scores, candidate_state = self._value(problem, state, candidate)
            if reached > value and ahead > 0.0:
                candidate = self._step(problem, point, scores, last, last_scores, 0.0, rng)
                reached, candidate_scores, candidate_state = self._value(problem, state, candidate)
                following = 1.0
            last, last_scores, momentum = point, scores, following
            if reached <= value:  # a truncated SVD may miss by its tolerance: then stay
                point, scores, state, value = candidate, candidate_scores, candidate_state, reached
            yield Sweep(state, value, {"rank": int(point.s.size)})

    def _step(
        self,
        problem: Problem,
        point: Triplets,
        scores: FloatArray,
        last: Triplets,
        last_scores: FloatArray,
        ahead: float,
        rng: np.random.Generator,
    ) -> Triplets:
        loss = quadratic_loss(problem)
        values = problem.observations.values
        stored_weight, _ = loss.stored(values)
        curvature, linear = loss.normal_terms(values)
        weight, target = loss.blank()
        step = 1.0 / max(float(np.max(stored_weight)), weight)
        here = scores + (scores - last_scores) * scores.dtype.type(ahead)
        cells = (step * (linear - curvature * here)).astype(scores.dtype, copy=False)
        shrink = 1.0 - step * weight
        left = [point.u * (point.s * (shrink * (1.0 + ahead)))] if shrink else []
        right = [point.v] if shrink else []
        if shrink and ahead:
            left.append(last.u * (last.s * (-shrink * ahead)))
            right.append(last.v)
        if weight * target != 0.0:
            n, m = problem.observations.shape
            left.append(np.full((n, 1), step * weight * target))
            right.append(np.ones((m, 1)))
        dtype = scores.dtype
        operator = LowRankPlusSparse(
            problem.observations,
            cells,
            _stack(left, problem.observations.shape[0], dtype),
            _stack(right, problem.observations.shape[1], dtype),
            problem.n_threads,
        )
        reg = problem.terms[0].reg
        assert isinstance(reg, Nuclear)
        threshold = step * reg.reg
        found = thresholded_svd(
            operator, threshold, start=point.v, rng=rng, tol=self.svd_tol, max_rank=self.max_rank
        )
        return found.shrunk(threshold)

    def _value(self, problem: Problem, state: State, point: Triplets) -> tuple[float, FloatArray, State]:
        pair = _pair(point)
        scores = problem.cell_scores(pair)
        reg = problem.terms[0].reg
        assert isinstance(reg, Nuclear)
        value = problem.data_value_at(pair, scores) + reg.reg * float(point.s.sum(dtype=np.float64))
        return value, scores, {**state, "0.row": pair.left, "0.col": pair.right}


def _pair(point: Triplets) -> Pair:
    """Balanced factors: both carry the square root of the singular values."""
    root = np.sqrt(point.s)
    return Pair(np.ascontiguousarray(point.u * root), np.ascontiguousarray(point.v * root))


def _triplets_of(left: FloatArray, right: FloatArray) -> Triplets:
    q_left, r_left = np.linalg.qr(left)
    q_right, r_right = np.linalg.qr(right)
    u, s, vt = np.linalg.svd(r_left @ r_right.T)
    return Triplets(q_left @ u, s, q_right @ vt.T)


def _stack(blocks: list[FloatArray], n_rows: int, dtype: np.dtype[Any]) -> FloatArray:
    if not blocks:
        return np.zeros((n_rows, 0), dtype=dtype)
    return np.ascontiguousarray(np.hstack(blocks).astype(dtype, copy=False))
