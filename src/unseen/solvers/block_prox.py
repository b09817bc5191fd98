"""Full cores over features beside a free nuclear-norm term (DirtyIMC)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unseen.cores import Full
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import Triplets
from unseen.losses import Loss
from unseen.problem import Problem
from unseen.solvers.base import Solver, Sweep
from unseen.solvers.lowrank_prox import accelerated, balanced, shrunk_svd, stacked_columns, triplets_of
from unseen.solvers.prox import ProxGradient
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["BlockProx", "CoreDescent", "CorePoint"]


class BlockProx(Solver):
    """Block proximal gradient for one full core over features plus one free low-rank matrix N.

    A sweep takes some accelerated proximal steps on the core, with N held, then one step of soft
    impute on N: the thresholded SVD of a low-rank plus a sparse matrix. With the core at its best
    for each N this is proximal gradient on a function of N alone, so N may carry momentum; it is
    dropped whenever the objective would rise. The first point is the best core for N = 0.

    Parameters
    ----------
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

        def step(here: CorePoint, last: CorePoint, ahead: float, svd_tol: float) -> tuple[CorePoint, float]:
            return self._step(descent, state, here, last, ahead, svd_tol, rng)

        first = CorePoint(state["0.core"], rest, scores)
        for point, value, residual in accelerated(first, problem.value(state), step, self.svd_tol):
            left, right = balanced(point.low_rank)
            facts = {"rank": int(point.low_rank.s.size), "residual": residual}
            yield Sweep({**state, "0.core": point.core, "1.row": left, "1.col": right}, value, facts)

    def _step(
        self,
        descent: CoreDescent,
        state: State,
        here: CorePoint,
        last: CorePoint,
        ahead: float,
        svd_tol: float,
        rng: np.random.Generator,
    ) -> tuple[CorePoint, float]:
        """Core steps at the extrapolated N, then a step of N."""
        problem, rest = descent.whole, here.low_rank
        dtype = here.cells.dtype
        moved = (here.cells + dtype.type(ahead) * (here.cells - last.cells)).astype(dtype, copy=False)
        state = descent.descend({**state, "0.core": here.core}, moved, self.core_steps)
        total = moved + descent.scores(state)
        loss = problem.cell_loss
        step = 1.0 / float(np.max(loss.stored()[0]))
        cells = (-step * loss.grad(total)).astype(dtype, copy=False)
        left, right = [rest.u * (rest.s * (1.0 + ahead))], [rest.v]
        if ahead:
            left.append(last.low_rank.u * (-ahead * last.low_rank.s))
            right.append(last.low_rank.v)
        n, m = problem.observations.shape
        operator = LowRankPlusSparse(
            problem.observations,
            cells,
            stacked_columns(left, n, dtype),
            stacked_columns(right, m, dtype),
            problem.n_threads,
        )
        threshold = step * problem.terms[1].reg.reg
        found = shrunk_svd(operator, threshold, rest, svd_tol, rng, self.max_rank)
        new_scores = problem.cell_scores(balanced(found))
        value = loss.value(new_scores + descent.scores(state))
        value += descent.penalty(state) + problem.terms[1].reg.reg * float(found.s.sum(dtype=float))
        return CorePoint(state["0.core"], found, new_scores), value


class CorePoint(NamedTuple):
    """The core of a term over features, a low-rank matrix, and that matrix on the observed cells."""

    core: FloatArray
    low_rank: Triplets
    cells: FloatArray


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
