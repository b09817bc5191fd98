"""Full cores over features beside a free nuclear-norm term (DirtyIMC)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unseen.cores import Full
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import Triplets, thresholded_svd
from unseen.losses import Loss
from unseen.problem import Problem
from unseen.solvers.base import Solver, Sweep
from unseen.solvers.lowrank_prox import SvdTolerance, balanced, distance, stacked_columns, triplets_of
from unseen.solvers.prox import ProxGradient
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["BlockProx", "CoreDescent"]


class BlockProx(Solver):
    """Block proximal gradient for one full core over features plus one free low-rank matrix N.

    A sweep takes some accelerated proximal steps on the core, with N held, then one step of soft
    impute on N: the thresholded SVD of a low-rank plus a sparse matrix. With the core at its best
    for each N this is proximal gradient on a function of N alone, so N may carry momentum; it is
    dropped whenever the objective would rise. The first point is the best core for N = 0.

    Parameters
    ----------
    max_iter : int, default=200
        Limit of sweeps.
    tol : float, default=1e-6
        Stop when a sweep lowers the objective by less than this share.
    core_steps : int, default=5
        Steps on the core in a sweep.
    start_steps : int, default=100
        Steps on the core before the first sweep of a fresh start.
    max_rank : int, optional
        Keep at most this many singular values of N.
    svd_tol : float, default=1e-7
        Smallest residual asked of the singular triplets.
    """

    factored_full = True

    def __init__(
        self,
        max_iter: int = 200,
        tol: float = 1e-6,
        core_steps: int = 5,
        start_steps: int = 100,
        max_rank: int | None = None,
        svd_tol: float = 1e-7,
    ) -> None:
        super().__init__(max_iter, tol)
        self.core_steps = core_steps
        self.start_steps = start_steps
        self.max_rank = max_rank
        self.svd_tol = svd_tol

    def refuses(self, problem: Problem) -> str | None:
        if len(problem.terms) != 2:
            return f"it needs two terms and there are {len(problem.terms)}; use LowRankProx or ProxGradient"
        bound, free = problem.terms
        if not (isinstance(bound.core, Full) and isinstance(free.core, Full)):
            return "both cores must be Full"
        if bound.free or not free.free or not free.reg.spectral:
            return "the first term needs features, the second none and a Nuclear penalty"
        if bound.row_map.learned or bound.col_map.learned:
            return "a map is to be learned; use LBFGS"
        if not problem.cell_loss.quadratic or problem.blank:
            return "the loss must be quadratic and blank cells missing"
        return None

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        descent = CoreDescent(problem)
        rest = triplets_of(state["1.row"], state["1.col"])
        scores = problem.cell_scores(balanced(rest))
        if rest.s.size == 0:
            state = descent.descend(state, scores, self.start_steps)
        value = problem.value(state)
        last, last_scores, momentum = rest, scores, 1.0
        accuracy = SvdTolerance(self.svd_tol)
        while True:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = (momentum - 1.0) / following
            trial = self._try(descent, state, (rest, scores), (last, last_scores), ahead, accuracy, rng)
            if trial[2] > value and (ahead > 0.0 or accuracy.loose):
                accuracy.tighten()
                trial = self._try(descent, state, (rest, scores), (last, last_scores), 0.0, accuracy, rng)
                following = 1.0
            candidate, candidate_scores, reached, candidate_state = trial
            residual = distance(candidate, rest)
            accuracy.follow(residual)
            last, last_scores, momentum = rest, scores, following
            if reached <= value:
                rest, scores, value, state = candidate, candidate_scores, reached, candidate_state
            yield Sweep(state, value, {"rank": int(rest.s.size), "residual": residual})

    def _try(
        self,
        descent: CoreDescent,
        state: State,
        point: tuple[Triplets, FloatArray],
        last: tuple[Triplets, FloatArray],
        ahead: float,
        accuracy: SvdTolerance,
        rng: np.random.Generator,
    ) -> tuple[Triplets, FloatArray, float, State]:
        """Core steps at the extrapolated N, then a step of N."""
        problem = descent.whole
        (rest, scores), (last_rest, last_scores) = point, last
        dtype = scores.dtype
        here = (scores + dtype.type(ahead) * (scores - last_scores)).astype(dtype, copy=False)
        state = descent.descend(state, here, self.core_steps)
        total = here + descent.scores(state)
        loss = problem.cell_loss
        step = 1.0 / float(np.max(loss.stored()[0]))
        cells = (-step * loss.grad(total)).astype(dtype, copy=False)
        left, right = [rest.u * (rest.s * (1.0 + ahead))], [rest.v]
        if ahead:
            left.append(last_rest.u * (-ahead * last_rest.s))
            right.append(last_rest.v)
        n, m = problem.observations.shape
        operator = LowRankPlusSparse(
            problem.observations,
            cells,
            stacked_columns(left, n, dtype),
            stacked_columns(right, m, dtype),
            problem.n_threads,
        )
        threshold = step * problem.terms[1].reg.reg
        start = rest.v if rest.s.size else None
        found = thresholded_svd(
            operator, threshold, start=start, rng=rng, tol=accuracy.now, max_rank=self.max_rank
        ).shrunk(threshold)
        pair = balanced(found)
        state = {**state, "1.row": pair.left, "1.col": pair.right}
        new_scores = problem.cell_scores(pair)
        value = loss.value(new_scores + descent.scores(state))
        value += descent.penalty(state) + problem.terms[1].reg.reg * float(found.s.sum(dtype=float))
        return found, new_scores, value, state


class CoreDescent:
    """Accelerated proximal steps on the core of the first term, against what the rest leaves over.

    Parameters
    ----------
    whole : Problem
        Its first term has a full core.
    loss : Loss, optional
        In place of the problem's own.
    """

    def __init__(self, whole: Problem, loss: Loss | None = None) -> None:
        self.whole = whole
        self._part = whole.only([0])
        if loss is not None:
            self._part.loss = loss
        self._solver = ProxGradient()
        self._step = 1.0

    def scores(self, state: State) -> FloatArray:
        """Scores of the first term on the observed cells."""
        return self.whole.cell_scores(self._part.stacked(state))

    def penalty(self, state: State) -> float:
        """Penalty on the core."""
        return self._part.penalty(state)

    def descend(self, state: State, rest: FloatArray | None, n_steps: int, *, tol: float = 1e-13) -> State:
        """Take some steps with the scores of the rest held, restarted here, never uphill.

        They end early where one lowers the value by a smaller share than ``tol``.
        """
        part, key = self._part, "0.core"
        cells = self.whole.observations
        part.observations = cells if rest is None else cells.with_values(cells.values - rest)
        value, previous, momentum = part.value(state), state, 1.0
        for _ in range(n_steps):
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = state[key] + ((momentum - 1.0) / following) * (state[key] - previous[key])
            trial = {**state, key: ahead.astype(state[key].dtype, copy=False)}
            candidate, self._step = self._solver.step(part, trial, key, self._step)
            reached = part.value(candidate)
            if reached > value:
                candidate, self._step = self._solver.step(part, state, key, self._step)
                reached, following = part.value(candidate), 1.0
            settled = reached >= value * (1.0 - tol)
            if reached < value:
                previous, momentum, state, value = state, following, candidate, reached
            if settled:
                break
        return state
