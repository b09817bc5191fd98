"""What the solvers of the mixed linear model share.

    coupling   1/2 ||A(G) - E||_F^2 over all cells,   A(G) = Xa G Ya'
    penalties  reg_g ||G||_1 + reg_e ||E||_*

The scores are E = A(G) + N: term 0 holds G with its L1 norm, term 1 holds N = E - A(G) with a ridge of
weight one, which is the coupling, and the nuclear norm is a part on the total scores. N is kept as the
factors ``[U sqrt(s), P] [V sqrt(s), -Q]'`` with A(G) = P Q'. So a model of two terms predicts E
for training cells and A(G) for whatever is new.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from unseen.cores import Full
from unseen.exceptions import DivergedError
from unseen.linalg.blocked import gram, inner, matmul
from unseen.linalg.designs import Design, SparseDesign
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import Triplets, spectral_bounds
from unseen.losses import Squared
from unseen.problem import Pair, Problem, core_pair
from unseen.regularisers import Nuclear, Separable
from unseen.solvers.base import Solver
from unseen.solvers.block_prox import CoreDescent, CorePoint
from unseen.solvers.certificates import Certificate, best_multiple
from unseen.solvers.lowrank_prox import balanced, triplets_of
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["Coupling", "MixedSolver", "coupling_value"]

WIDEST_GRAM = 500
"""Columns of a design up to which its Gram matrix is formed."""


class Coupling:
    """The map A(G) = Xa G Ya', its adjoint and A*A, without anything of size n x m."""

    def __init__(self, row: Design, col: Design) -> None:
        self.row, self.col = row, col
        self._grams = _gram_of(row), _gram_of(col)
        self.lipschitz = _squared_norm(row, self._grams[0]) * _squared_norm(col, self._grams[1])

    @property
    def cheap(self) -> bool:
        """Whether a step on G goes through small Gram matrices alone."""
        return all(product is not None for product in self._grams)

    def pair(self, core: FloatArray, dtype: np.dtype[np.generic]) -> Pair:
        """Factors of A(G), as wide as the narrower side."""
        pair = core_pair(self.row, self.col, core.astype(dtype, copy=False))
        return Pair(np.ascontiguousarray(pair.left), np.ascontiguousarray(pair.right))

    def adjoint(self, operator: LowRankPlusSparse) -> FloatArray:
        """``Xa' B Ya``."""
        dtype = operator.dtype
        if self.row.shape[1] <= self.col.shape[1]:
            product = self.col.tdot(operator.tdot(self.row.toarray().astype(dtype, copy=False))).T
        else:
            product = self.row.tdot(operator.dot(self.col.toarray().astype(dtype, copy=False)))
        return product.astype(np.float64)

    def adjoint_of(self, point: Triplets) -> FloatArray:
        """``Xa' U diag(s) V' Ya``."""
        left = self.row.tdot(np.ascontiguousarray(point.u * point.s)).astype(np.float64)
        right = self.col.tdot(np.ascontiguousarray(point.v)).astype(np.float64)
        return left @ right.T

    def normal(self, core: FloatArray) -> FloatArray:
        """``Xa' Xa G Ya' Ya``."""
        half = _apply_gram(self.row, self._grams[0], core)
        return _apply_gram(self.col, self._grams[1], np.ascontiguousarray(half.T)).T


class MixedSolver(Solver):
    """Base of the solvers of the mixed linear model.

    Parameters
    ----------
    tol : float, default=1e-4
        Stopping rule of the solver.
    max_rank : int, optional
        Keep at most this many singular values of E.
    svd_tol : float, default=1e-7
        Smallest residual asked of the singular triplets.
    """

    factored_full = True
    judges_start = False
    takes_total: ClassVar[tuple[type, ...]] = (Nuclear,)
    former_params = ("reg_e",)
    start_steps = 1000
    """Limit of steps of the lasso that a fit starts from."""
    start_tol = 1e-6
    """Share by which a step of it must lower its objective.

    What the start lacks, sweeps make up for by a share of observed cells at a time, and the hard
    form stops long before: it is worth to go far.
    """

    def __init__(
        self,
        max_iter: int = 500,
        tol: float = 1e-4,
        max_rank: int | None = None,
        svd_tol: float = 1e-7,
    ) -> None:
        super().__init__(max_iter, tol)
        self.max_rank = max_rank
        self.svd_tol = svd_tol

    def refuses(self, problem: Problem) -> str | None:
        if len(problem.terms) != 2 or not all(isinstance(term.core, Full) for term in problem.terms):
            return "it needs two terms with Full cores: one over features, one without"
        bound, free = problem.terms
        rule = bound.reg.separable()
        if bound.free or not free.free or rule is None or rule.bounded:
            return "the first term needs features and an L1 penalty, the second no features"
        if free.reg.separable() != Separable(ridge=1.0):
            return "the second term is the distance of the scores to the first and needs Ridge(1.0)"
        if not isinstance(problem.loss, Squared) or problem.blank:
            return "the loss must be Squared and blank cells missing"
        if problem.on_total(Nuclear) is None:
            return "it needs a Nuclear penalty on the total scores"
        return None

    # -- between states and points ---------------------------------------------------

    def coupling(self, problem: Problem, state: State) -> Coupling:
        """Products with the designs."""
        return Coupling(*problem.designs(problem.terms[0], state))

    def rule(self, problem: Problem) -> Separable:
        """Penalty on G."""
        rule = problem.terms[0].reg.separable()
        assert rule is not None
        return rule

    def reg_e(self, problem: Problem) -> float:
        """Weight of the nuclear norm of E."""
        penalty = problem.on_total(Nuclear)
        assert penalty is not None
        return float(penalty.reg)

    def prepare(self, problem: Problem, state: State, rng: np.random.Generator) -> State:
        """A fresh state starts at the lasso on the observed cells and E = A(G)."""
        if state["1.row"].shape[1]:
            return state
        coupling = self.coupling(problem, state)
        descent = CoreDescent(problem, Squared())
        core = descent.descend(state, None, self.start_steps, tol=self.start_tol)["0.core"]
        low_rank = triplets_of(*coupling.pair(core, problem.observations.dtype))
        cells = problem.cell_scores(balanced(low_rank))
        return self.state(problem, coupling, state, CorePoint(core.astype(np.float64), low_rank, cells))

    def point(self, problem: Problem, state: State) -> CorePoint:
        """Read a state."""
        core = state["0.core"]
        rank = state["1.row"].shape[1] - min(core.shape)
        low_rank = triplets_of(state["1.row"][:, :rank], state["1.col"][:, :rank])
        return CorePoint(core.astype(np.float64), low_rank, problem.cell_scores(balanced(low_rank)))

    def value(self, problem: Problem, coupling: Coupling, point: CorePoint) -> float:
        """``problem.value``, from what a solver has at hand."""
        loss = problem.cell_loss.value(point.cells) if problem.loss_counts else 0.0
        nuclear = float(point.low_rank.s.sum(dtype=np.float64))
        smooth = coupling_value(coupling, point.core, point.low_rank) + loss
        return smooth + self.rule(problem).value(point.core) + self.reg_e(problem) * nuclear

    def core_steps(
        self, problem: Problem, coupling: Coupling, core: FloatArray, target: FloatArray, n_steps: int
    ) -> FloatArray:
        """FISTA on ``1/2 <G, A*A G> - <G, target> + reg_g ||G||_1``, restarted where it would go uphill."""
        rule = self.rule(problem)
        step = 1.0 / coupling.lipschitz
        ahead, momentum = core, 1.0
        for _ in range(n_steps if coupling.cheap else min(n_steps, 5)):
            moved = rule.prox(ahead - step * (coupling.normal(ahead) - target), step)
            change = moved - core
            if inner(ahead - moved, change) > 0:
                momentum = 1.0
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = moved + ((momentum - 1.0) / following) * change
            core, momentum = moved, following
            if inner(change, change) <= 1e-20 * inner(moved, moved):
                break
        return core

    def polished(self, problem: Problem, coupling: Coupling, point: CorePoint) -> CorePoint:
        """The point with the best G for its E: what a tight bound starts from."""
        target = coupling.adjoint_of(point.low_rank)
        return point._replace(core=self.core_steps(problem, coupling, point.core, target, 5000))

    def state(self, problem: Problem, coupling: Coupling, state: State, point: CorePoint) -> State:
        """The state of a point: scores E, of which A(G) speaks about new rows and columns."""
        dtype = problem.observations.dtype
        pair, entries = coupling.pair(point.core, dtype), balanced(point.low_rank)
        return {
            **state,
            "0.core": point.core.astype(dtype),
            "1.row": np.hstack([entries.left, pair.left]),
            "1.col": np.hstack([entries.right, -pair.right]),
        }

    def dual_certificate(
        self,
        problem: Problem,
        coupling: Coupling,
        point: CorePoint,
        pull: FloatArray,
        value: float,
        rho: float,
        rng: np.random.Generator,
    ) -> Certificate | None:
        """Bound by the dual problem of the mixed linear model.

        max over L, mu   -1/2 ||L||_F^2 - ||mu||^2 / (2 rho) - <mu, M>
        subject to       |Xa' L Ya| <= reg_g,   ||L - P*(mu)||_2 <= reg_e

        with the point L = A(G) - E, mu = ``pull``, scaled until it is feasible. An unpenalised constant
        asks for an entry that is exactly zero: it is first moved to its optimum, which gives that.
        """
        rule = self.rule(problem)
        if rule.l1 <= 0:
            return None
        n, m = problem.observations.shape
        slope = coupling.normal(point.core) - coupling.adjoint_of(point.low_rank)
        if rule.spare_last:
            core = point.core.copy()
            core[-1, -1] -= slope[-1, -1] / (n * m)
            point = point._replace(core=core)
            slope = coupling.normal(core) - coupling.adjoint_of(point.low_rank)
            slope[-1, -1] = 0.0
        entries = balanced(point.low_rank)
        pair = coupling.pair(point.core, point.core.dtype)
        operator = LowRankPlusSparse(
            problem.observations,
            np.ascontiguousarray(-pull),
            np.ascontiguousarray(np.hstack([pair.left, -entries.left]), dtype=np.float64),
            np.ascontiguousarray(np.hstack([pair.right, entries.right]), dtype=np.float64),
            problem.n_threads,
        )
        norms = spectral_bounds(operator, rng)
        limit = min(
            self.reg_e(problem) / max(norms.upper, 1e-300),
            rule.l1 / max(float(np.abs(slope).max(initial=0.0)), 1e-300),
        )
        square = coupling_value(coupling, point.core, point.low_rank)
        square += float(pull @ pull) / (2.0 * rho) if np.isfinite(rho) else 0.0
        bound = best_multiple(-float(pull @ problem.observations.values), square, limit)
        rms = None
        if np.isfinite(rho):
            rms = float(np.sqrt(2.0 * max(value - bound, 0.0) / (rho * problem.observations.nnz)))
        return Certificate(value, bound, norms.exact, rms)


def coupling_value(coupling: Coupling, core: FloatArray, low_rank: Triplets) -> float:
    """``1/2 ||A(G) - E||_F^2`` in float64."""
    squares = float(np.sum(np.square(low_rank.s, dtype=np.float64)))
    total = inner(core, coupling.normal(core)) - 2.0 * inner(core, coupling.adjoint_of(low_rank)) + squares
    return 0.5 * max(total, 0.0)


def _gram_of(design: Design) -> FloatArray | None:
    """Gram matrix in float64, or None where the design is too wide for one."""
    if design.shape[1] > WIDEST_GRAM:
        return None
    if isinstance(design, SparseDesign):
        matrix = design.matrix.astype(np.float64)
        dense: FloatArray = (matrix.T @ matrix).toarray()
        return dense
    return gram(design.toarray().astype(np.float64))


def _apply_gram(design: Design, product: FloatArray | None, vectors: FloatArray) -> FloatArray:
    if product is not None:
        return matmul(product, vectors)
    return design.tdot(design.dot(np.ascontiguousarray(vectors)))


def _squared_norm(design: Design, product: FloatArray | None) -> float:
    """Squared spectral norm of a design, from above."""
    if product is not None:
        if not np.isfinite(product).all():
            raise DivergedError("products of features overflow; rescale the features")
        return float(np.linalg.eigvalsh(product)[-1]) * (1.0 + 1e-10) if product.size else 1.0
    vector: FloatArray = np.ones((design.shape[1], 1))
    size = 1.0
    for _ in range(100):
        vector = design.tdot(design.dot(vector / np.linalg.norm(vector)))
        size = float(np.linalg.norm(vector))
    return 1.01 * size
