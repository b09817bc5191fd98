"""Completion from positives only: weighted (BiasMC) and shifted (ShiftMC) losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.cores import Full, LowRank
from unseen.data import Observations
from unseen.estimators.pu_base import PositiveCompleter
from unseen.estimators.pu_rates import Rates, choose_rates, density, given_rates
from unseen.estimators.pu_starts import nonnegative_start, svd_start
from unseen.exceptions import ParameterError, UnsupportedComposition
from unseen.losses import Biased, Quadratic, Shifted
from unseen.maps import Identity
from unseen.problem import Problem
from unseen.regularisers import Box, Nuclear, Ridge
from unseen.solvers import ALS, CCD, BoxedADMM, LowRankProx, Solver
from unseen.solvers.boxed import boxed_rows
from unseen.solvers.rules import MAX_DENSE_CELLS
from unseen.state import State
from unseen.terms import Term
from unseen.totals import ScoreBox
from unseen.typing import Features, FloatArray
from unseen.validation import check_choice, check_count, check_positive

__all__ = ["BiasMC", "ShiftMC"]


class BiasMC(PositiveCompleter):
    """Completion from positives with a heavier weight on them than on unlabelled cells (PU, section 4).

    min over W, H   alpha sum_positives (w_i . h_j - 1)^2 + (1 - alpha) sum_others (w_i . h_j)^2
                    + reg/2 (||W||_F^2 + ||H||_F^2)

    The usual objective of implicit feedback in other units: ``implicit``'s alpha is
    alpha / (1 - alpha) here, its regularization reg / (2 (1 - alpha)). In the parts of this
    library it is ``Biased(alpha)`` with ``Ridge(reg)``. ``solver="prox"`` minimises the convex form
    with ``reg ||X||_*``, whose minimum is the same if the rank allows it.

    Stored non-zeros are positives; zeros, blanks and NaN of a dense array are unlabelled.

    Parameters
    ----------
    rank : int or None, default=50
        Columns of the factors; for ``solver="prox"`` the largest rank that is kept, None for no limit.
    alpha : float or "auto", default="auto"
        Weight of the positives, strictly between 0 and 1. "auto" hides a fifth of the positives and
        takes the weight whose lists of ``list_length`` columns for each row find most of them;
        it fits up to five short models first, from which it also estimates ``rho_`` and
        ``class_prior_``. Ignored if ``rho`` or ``class_prior`` is given.
    rho : float, optional
        Share of the true positives that are hidden, in [0, 1): alpha = (1 + rho)/2.
    class_prior : float, optional
        Share of all cells that are truly positive, seen and hidden: 1 - rho = seen share / class_prior.
    reg : float or str, default=1.0
        Weight of the penalty, or a share of the smallest one that makes everything zero,
        2 alpha ||A||_2, such as ``"0.05max"``.
    degree_scaling : float, default=0.0
        nu: the penalty of a row or column is multiplied by the number of its cells (the sum of their weights)
        to this power. 0 treats all alike, 1 is the weighted-lambda penalty; in between often does best. For
        ``solver="als"``.
    solver : {"als", "ccd", "prox"}, default="als"
        Alternating least squares, coordinate descent, or proximal steps on the convex form.
    cg_steps : int or None, default=3
        Steps of conjugate gradients for each row in "als", from where the last sweep left it. None solves
        exactly, which comes to the same objective and takes about twice as long.
    weights : bool, optional
        None: values other than one are refused. True: a value is the weight of its positive
        (``alpha value (x - 1)^2``), repeated cells add up. False: every non-zero is one positive.
    threshold : {"midpoint", "prior"} or float, default="midpoint"
        Where :meth:`predict_labels` cuts: half of the value that a positive would have without a penalty,
        the quantile that leaves a share ``class_prior_`` above, or a number.
    list_length : int, default=10
        Length of the lists that alpha="auto" judges.
    init : {"random", "svd"}, default="random"
        Start of "als" and "ccd": small random factors or a truncated SVD of the positives.
    random_state : int or Generator, optional
        Seed of the start and of the held-out positives.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors.
    alpha_, rho_, class_prior_ : float
        Weight, hidden share and prior: as given, as they follow from what was given, or for
        alpha="auto" as estimated. The weight that ranks best is not (1 + rho_)/2 in general.
    alpha_path_ : list of dict
        For alpha="auto", each ``alpha`` tried, its ``recall`` of the held-out positives and its
        bound on ``rho``.
    reg_ : float
        Weight of the penalty in numbers.
    threshold_ : float
        Cut of :meth:`predict_labels`.

    Examples
    --------
    >>> from unseen import BiasMC
    >>> from unseen.datasets import make_positives
    >>> data = make_positives(200, 100, n_groups=4, inside=1.0, across=0.0, rho=0.5, random_state=0)
    >>> model = BiasMC(8, rho=0.5, reg="0.1max", random_state=0).fit(data.observations)
    >>> hidden = data.hidden.tocoo()
    >>> bool(model.predict_labels(*hidden.coords).mean() > 0.95)
    True
    """

    alpha_path_: list[dict[str, float]]

    def __init__(
        self,
        rank: int | None = 50,
        *,
        alpha: float | str = "auto",
        rho: float | None = None,
        class_prior: float | None = None,
        reg: float | str = 1.0,
        degree_scaling: float = 0.0,
        solver: str = "als",
        cg_steps: int | None = 3,
        weights: bool | None = None,
        threshold: float | str = "midpoint",
        list_length: int = 10,
        init: str = "random",
        max_iter: int = 50,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.rho = rho
        self.class_prior = class_prior
        self.reg = reg
        self.degree_scaling = degree_scaling
        self.solver = solver
        self.cg_steps = cg_steps
        self.weights = weights
        self.threshold = threshold
        self.list_length = list_length
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def _rates(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> Rates:
        rates = given_rates(self.alpha, self.rho, self.class_prior, density(cells))
        self.alpha_path_ = []
        if rates is None:
            rates, self.alpha_path_ = choose_rates(self, cells, features, self.list_length, rng)
        return rates

    def _loss(self) -> Quadratic:
        return Biased(self.alpha_, weighted=self.weights is True)

    def _terms(self, has_row_features: bool, has_col_features: bool, reg: float) -> list[Term]:
        refuse_features(self, has_row_features, has_col_features, "BiasIMC")
        nu = check_positive("degree_scaling", self.degree_scaling, strict=False)
        if nu and isinstance(self.reg, str):
            raise ParameterError(f"degree_scaling={nu:g} needs a number for reg, got {self.reg!r}")
        if check_choice("solver", self.solver, ("als", "ccd", "prox")) == "prox":
            if nu:
                raise ParameterError(f"degree_scaling={nu:g} is not for solver='prox'; use 'als'")
            return [Term(Identity(), Identity(), Full(), Nuclear(reg))]
        return [Term(Identity(), Identity(), LowRank(check_count("rank", self.rank)), Ridge(reg, nu))]

    def _solver(self) -> Solver:
        if self.solver == "prox":
            return LowRankProx(max_rank=rank_limit(self.rank))
        if self.solver == "ccd":
            return CCD()
        if self.cg_steps is None:
            return ALS()
        return ALS(method="cg", cg_steps=check_count("cg_steps", self.cg_steps))

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        state = super()._start(problem, solver, rng)
        svd = check_choice("init", self.init, ("random", "svd")) == "svd"
        if not svd or solver.factored_full or (self.warm_start and hasattr(self, "row_factors_")):
            return state
        return svd_start(problem, state, rng)


class ShiftMC(PositiveCompleter):
    """Completion from positives with an unbiased loss for hidden ones (PU, section 3).

    min over X   sum_positives (x_ij - 1/(1 - rho))^2 + sum_others x_ij^2 + reg ||X||_*

    subject to ``bound``. On average over what is hidden this is the squared distance to the complete
    0/1 matrix, so predictions are probabilities. In the parts of this library: ``Shifted(rho)``.

    Parameters
    ----------
    rank : int or None, default=50
        Columns of the factors for "relaxed"; the largest rank that is kept for "none", where None is no
        limit. "box" finds its own rank.
    rho : float, optional
        Share of the true positives that are hidden, in [0, 1).
    class_prior : float, optional
        Share of all cells that are truly positive, instead of ``rho``: 1 - rho = seen share / class_prior.
    reg : float or str, default="0.2max"
        Weight of the penalty, or a share of the smallest one that makes everything zero,
        2 ||A||_2 / (1 - rho). For "relaxed" half of it multiplies ``||W||_F^2 + ||H||_F^2``.
    bound : {"relaxed", "box", "none"}, default="relaxed"
        "relaxed": factors between 0 and sqrt(1/rank), by coordinate descent; values then are
        between 0 and 1, but an entry comes near 1 only where all components agree.
        "box": 0 <= x_ij <= 1 for every cell (to the tolerance), convex, by :class:`BoxedADMM`; dense.
        "none": no bound, one thresholded SVD; pairs are ranked as by a soft-thresholded SVD of the positives.
    weights : None or False, default=None
        None: values other than one are refused. False: every non-zero is one positive.
    threshold : {"midpoint", "prior"} or float, default="midpoint"
        Where :meth:`predict_labels` cuts: at 1/2, at the quantile that leaves a share
        ``class_prior_`` above, or at a number.
    tol : float, default=1e-4
        Stop when a sweep lowers the objective by less than this share; for "box" the relative
        residual between the bounded and the low-rank half.
    max_dense_cells : int, default=50_000_000
        For "box": refuse targets with more cells.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors.
    alpha_, rho_, class_prior_ : float
        Hidden share and prior, as given or as they follow; alpha_ = (1 + rho_)/2 for comparison.
    reg_, threshold_ : float
        Penalty and cut in numbers.
    history_ : list of dict
        ``objective`` and ``time_s`` of each sweep; for "box" also the residuals ``primal`` and ``dual``.
    converged_ : bool
        Whether it settled before ``max_iter``.

    Examples
    --------
    >>> from unseen import ShiftMC
    >>> from unseen.datasets import make_positives
    >>> data = make_positives(200, 100, n_groups=4, inside=1.0, across=0.0, rho=0.5, random_state=0)
    >>> model = ShiftMC(rho=0.5, bound="box", threshold="prior").fit(data.observations)
    >>> hidden = data.hidden.tocoo()
    >>> bool(model.predict_labels(*hidden.coords).mean() > 0.95)
    True
    """

    def __init__(
        self,
        rank: int | None = 50,
        *,
        rho: float | None = None,
        class_prior: float | None = None,
        reg: float | str = "0.2max",
        bound: str = "relaxed",
        weights: bool | None = None,
        threshold: float | str = "midpoint",
        max_iter: int = 200,
        tol: float = 1e-4,
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

    def _terms(self, has_row_features: bool, has_col_features: bool, reg: float) -> list[Term]:
        refuse_features(self, has_row_features, has_col_features, "ShiftIMC")
        if check_choice("bound", self.bound, ("relaxed", "box", "none")) != "relaxed":
            return [Term(Identity(), Identity(), Full(), Nuclear(reg))]
        rank = check_count("rank", self.rank)
        return [Term(Identity(), Identity(), LowRank(rank), Box(0.0, float(np.sqrt(1.0 / rank)), reg))]

    def _solver(self) -> Solver:
        if self.bound == "relaxed":
            return CCD()
        if self.bound == "none":
            return LowRankProx(max_rank=rank_limit(self.rank))
        return BoxedADMM(max_dense_cells=check_count("max_dense_cells", self.max_dense_cells))

    def _total(self) -> ScoreBox | None:
        return ScoreBox() if self.bound == "box" else None

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        state = super()._start(problem, solver, rng)
        if solver.factored_full or (self.warm_start and hasattr(self, "row_factors_")):
            return state
        return nonnegative_start(problem, state, rng)

    def _solve_rows(self, cells: Observations, row_features: Features | None) -> FloatArray:
        box = self._total()
        if box is None:
            return super()._solve_rows(cells, row_features)
        return boxed_rows(
            cells,
            self.loss_,
            self.col_factors_,
            self.reg_,
            bounds=box.bounds(),
            max_dense_cells=self.max_dense_cells,
        )

    def _refuse_to_explain(self) -> None:
        super()._refuse_to_explain()
        if self.bound == "box":
            raise UnsupportedComposition(
                "explain needs rows that are linear in their positives; bounds on the values break that"
            )


def shift_rates(model: Any, cells: Observations) -> Rates:
    """Rates of the shifted methods, which need to be told one of the two and know no weights."""
    if model.weights:
        raise ParameterError(
            f"{type(model).__name__} knows no weights: its loss is unbiased only if every positive counts "
            "the same; pass weights=False to take every non-zero as one positive, or use the biased method"
        )
    rates = given_rates("auto", model.rho, model.class_prior, density(cells))
    if rates is None:
        raise ParameterError("pass exactly one of rho (share of hidden positives) and class_prior")
    return rates


def rank_limit(rank: int | None) -> int | None:
    """Largest rank of a convex form; None is no limit."""
    return None if rank is None else check_count("rank", rank)


def refuse_features(model: Any, has_row_features: bool, has_col_features: bool, other: str) -> None:
    """Send users of side information to the inductive method."""
    if has_row_features or has_col_features:
        raise ParameterError(f"{type(model).__name__} takes no row_features or col_features; use {other}")
