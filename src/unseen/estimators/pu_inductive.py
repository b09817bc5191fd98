"""Completion from positives through side features."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.cores import Full, LowRank
from unseen.data import Observations
from unseen.estimators.pu import BiasMC, rank_limit, shift_rates
from unseen.estimators.pu_base import PositiveCompleter
from unseen.estimators.pu_rates import Rates
from unseen.losses import Quadratic, Shifted
from unseen.maps import FeatureMap, Given, Identity, Whitened, WithOnes
from unseen.problem import Problem
from unseen.regularisers import Nuclear, Ridge
from unseen.solvers import AlternatingCG, BoxedADMM, LowRankProx, ProxGradient, Solver
from unseen.solvers.rules import MAX_DENSE_CELLS
from unseen.state import State
from unseen.terms import Term
from unseen.totals import ScoreBox
from unseen.typing import Features
from unseen.validation import check_choice, check_count

__all__ = ["BiasIMC", "ShiftIMC"]


def side_map(intercept: bool, standardize: bool, whiten: bool) -> FeatureMap:
    """Map of a side with features."""
    features = WithOnes(standardize) if intercept else Given(standardize)
    return Whitened(features) if whiten else features


class _Inductive(PositiveCompleter):
    """Features on one or both sides; a side without them has coefficients of its own."""

    rank: int | None
    solver: str
    cg_steps: int | None
    intercept: bool
    standardize: bool
    whiten: bool

    def _terms(self, has_row_features: bool, has_col_features: bool, reg: float) -> list[Term]:
        self._has_features = has_row_features or has_col_features
        maps = self._side_map(has_row_features), self._side_map(has_col_features)
        if self._convex():
            return [Term(*maps, Full(), Nuclear(reg))]
        return [Term(*maps, LowRank(check_count("rank", self.rank)), Ridge(reg))]

    def _convex(self) -> bool:
        return check_choice("solver", self.solver, ("cg", "prox")) == "prox"

    def _side_map(self, has_features: bool) -> FeatureMap:
        return side_map(self.intercept, self.standardize, self.whiten) if has_features else Identity()

    def _solver(self) -> Solver:
        if not self._convex():
            steps = 20 if self.cg_steps is None else check_count("cg_steps", self.cg_steps)
            return AlternatingCG(cg_steps=steps)
        if self._has_features:
            return ProxGradient()
        return LowRankProx(max_rank=rank_limit(self.rank))


class BiasIMC(_Inductive, BiasMC):
    """Completion from positives through side features (PU, section 5).

    min over D   alpha sum_positives (x_i' D y_j - 1)^2 + (1 - alpha) sum_others (x_i' D y_j)^2
                 + reg ||D||_*

    x_i and y_j are the features of row i and column j; a side without features gets coefficients
    of its own for each row or column. With ``solver="cg"`` D = W H' and the penalty is
    reg/2 (||W||_F^2 + ||H||_F^2), which has the same minimum if the rank allows it. The pairs are never
    listed: cost grows with the positives and the features.

    Parameters
    ----------
    rank : int or None, default=50
        Rank of D; without features and with ``solver="prox"`` the largest rank that is kept.
    alpha : float or "auto", default="auto"
        Weight of the positives, as in :class:`BiasMC`.
    rho : float, optional
        Share of the true positives that are hidden, in [0, 1): alpha = (1 + rho)/2.
    class_prior : float, optional
        Share of all cells that are truly positive, seen and hidden.
    reg : float or str, default="0.05max"
        Weight of the penalty, or a share of the smallest one that makes D zero: the spectral norm of
        the gradient at D = 0. The scale of features makes numbers hard to guess.
    whiten : bool, default=False
        Turn the features of each side into orthonormal columns (:class:`Whitened`), as the paper
        assumes. Neither choice is better throughout: try both.
    solver : {"cg", "prox"}, default="cg"
        Alternating conjugate gradients on two factors, or proximal steps on all of D, which is convex
        and needs D to be of moderate size.
    cg_steps : int, optional
        Limit of conjugate gradient steps for each factor in a sweep of "cg"; 20 by default.
    weights : bool, optional
        None: values other than one are refused. True: a value is the weight of its positive.
        False: every non-zero is one positive.
    threshold : {"midpoint", "prior"} or float, default="midpoint"
        Where :meth:`predict_labels` cuts, as in :class:`BiasMC`.
    list_length : int, default=10
        Length of the lists that alpha="auto" judges.
    random_state : int or Generator, optional
        Seed of the start and of the held-out positives.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of the training rows and columns.
    alpha_, rho_, class_prior_, reg_, threshold_ : float
        As in :class:`BiasMC`.
    alpha_path_ : list of dict
        For alpha="auto", what was tried, as in :class:`BiasMC`.

    Examples
    --------
    >>> from unseen import BiasIMC
    >>> from unseen.datasets import make_positives
    >>> data = make_positives(200, 100, n_groups=4, across=0.0, rho=0.8, n_features=6, random_state=0)
    >>> model = BiasIMC(8, rho=0.8, random_state=0)
    >>> model = model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    >>> model.predict_new(row_features=data.row_features[:3]).shape
    (3, 100)
    """

    def __init__(
        self,
        rank: int | None = 50,
        *,
        alpha: float | str = "auto",
        rho: float | None = None,
        class_prior: float | None = None,
        reg: float | str = "0.05max",
        intercept: bool = True,
        standardize: bool = True,
        whiten: bool = False,
        solver: str = "cg",
        cg_steps: int | None = None,
        weights: bool | None = None,
        threshold: float | str = "midpoint",
        list_length: int = 10,
        max_iter: int = 100,
        tol: float = 1e-5,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.rho = rho
        self.class_prior = class_prior
        self.reg = reg
        self.intercept = intercept
        self.standardize = standardize
        self.whiten = whiten
        self.solver = solver
        self.cg_steps = cg_steps
        self.weights = weights
        self.threshold = threshold
        self.list_length = list_length
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        return PositiveCompleter._start(self, problem, solver, rng)


class ShiftIMC(_Inductive):
    """Completion from positives through side features with an unbiased loss (PU, section 5).

    min over D   sum_positives (x_i' D y_j - 1/(1 - rho))^2 + sum_others (x_i' D y_j)^2 + reg ||D||_*

    subject to ``bound``. With ``solver="cg"`` D = W H' as in :class:`BiasIMC`.

    Parameters
    ----------
    rank : int or None, default=50
        Rank of D for ``solver="cg"``; the convex forms need none.
    rho : float, optional
        Share of the true positives that are hidden, in [0, 1).
    class_prior : float, optional
        Share of all cells that are truly positive, instead of ``rho``.
    reg : float or str, default="0.05max"
        Weight of the penalty, or a share of the smallest one that makes D zero.
    bound : {"none", "box"}, default="none"
        "box" keeps every completed value between 0 and 1 (to the tolerance); dense, and ``solver``
        is not used.
    whiten : bool, default=False
        Turn the features of each side into orthonormal columns.
    solver : {"cg", "prox"}, default="cg"
        Alternating conjugate gradients on two factors, or proximal steps on all of D.
    cg_steps : int, optional
        Limit of conjugate gradient steps for each factor in a sweep of "cg"; 20 by default.
    weights : None or False, default=None
        None: values other than one are refused. False: every non-zero is one positive.
    threshold : {"midpoint", "prior"} or float, default="midpoint"
        Where :meth:`predict_labels` cuts, as in :class:`ShiftMC`.
    tol : float, default=1e-5
        Stop when a sweep lowers the objective by less than this share; for "box" the relative residual.
    max_dense_cells : int, default=50_000_000
        For "box": refuse targets with more cells.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of the training rows and columns.
    alpha_, rho_, class_prior_, reg_, threshold_ : float
        As in :class:`ShiftMC`.
    converged_ : bool
        Whether it settled before ``max_iter``.

    Examples
    --------
    >>> from unseen import ShiftIMC
    >>> from unseen.datasets import make_positives
    >>> data = make_positives(200, 100, n_groups=4, across=0.0, rho=0.8, n_features=6, random_state=0)
    >>> model = ShiftIMC(8, rho=0.8, random_state=0)
    >>> model = model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    >>> hidden = data.hidden.tocoo()
    >>> bool(model.predict_labels(*hidden.coords).mean() > 0.9)
    True
    """

    def __init__(
        self,
        rank: int | None = 50,
        *,
        rho: float | None = None,
        class_prior: float | None = None,
        reg: float | str = "0.05max",
        bound: str = "none",
        intercept: bool = True,
        standardize: bool = True,
        whiten: bool = False,
        solver: str = "cg",
        cg_steps: int | None = None,
        weights: bool | None = None,
        threshold: float | str = "midpoint",
        max_iter: int = 200,
        tol: float = 1e-5,
        max_dense_cells: int = MAX_DENSE_CELLS,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.rho = rho
        self.class_prior = class_prior
        self.reg = reg
        self.bound = bound
        self.intercept = intercept
        self.standardize = standardize
        self.whiten = whiten
        self.solver = solver
        self.cg_steps = cg_steps
        self.weights = weights
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol
        self.max_dense_cells = max_dense_cells
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rates(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> Rates:
        return shift_rates(self, cells)

    def _level(self, rates: Rates) -> float:
        return 1.0

    def _loss(self) -> Quadratic:
        return Shifted(self.rho_)

    def _convex(self) -> bool:
        return super()._convex() or self._boxed()

    def _boxed(self) -> bool:
        return check_choice("bound", self.bound, ("none", "box")) == "box"

    def _solver(self) -> Solver:
        if not self._boxed():
            return super()._solver()
        return BoxedADMM(max_dense_cells=check_count("max_dense_cells", self.max_dense_cells))

    def _total(self) -> ScoreBox | None:
        return ScoreBox() if self._boxed() else None
