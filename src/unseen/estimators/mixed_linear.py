"""The mixed linear model: sparse interactions of features, low-rank completed matrix."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from unseen import kernels
from unseen.cores import Full
from unseen.data import Observations
from unseen.estimators.auto_reg import (
    RegChoice,
    chosen_for,
    number_or_auto,
    rank_cap,
    warn_of_cap,
)
from unseen.estimators.clipping import Clip
from unseen.estimators.composed import Bound, Composition
from unseen.estimators.explained import Explained
from unseen.estimators.paths import PathMixin
from unseen.estimators.side_maps import bilinear_maps
from unseen.exceptions import ParameterError
from unseen.linalg.blocked import gram, matmul
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import singular_value, spectral_norm
from unseen.losses import Squared, cells_that_count
from unseen.offsets import Offsets, cell_mean, row_biases
from unseen.problem import Problem
from unseen.regularisers import L1, Nuclear, Ridge
from unseen.solvers import DavisYin, MixedADMM, MixedSoft, Solver
from unseen.solvers.mixed import MixedSolver
from unseen.state import State
from unseen.terms import Term
from unseen.totals import StoredCells
from unseen.typing import Features, FloatArray
from unseen.validation import check_choice, check_positive

__all__ = ["MixedLinear"]

FIRST_RANK = 50
"""Singular values of the cells that an automatic penalty of the soft form lets pass at most."""
NEARLY_HARD = 1e4
"""Weight of a new row's cells where the training cells are kept exactly."""


class MixedLinear(Explained, PathMixin):
    """Mixed linear model with side information (Song and Yang 2019, program 4), convex.

    min over G, E   1/2 ||Xa G Ya' - E||_F^2 + reg_g ||G||_1 + reg_e ||E||_*

    with Xa = [X 1], Ya = [Y 1] and, for ``constraint="hard"``, E = M on the observed cells (H); for
    ``constraint="soft"`` the penalty ``rho/2 sum_observed (e_ij - m_ij)^2`` instead (S), which suits
    noisy ratings. The first norm runs over all cells; nothing of that size is formed. G holds
    interactions of features, effects of either side alone and a constant; E, the completed matrix,
    follows it as far as a low rank and the observed cells allow.

    Training cells are predicted by E, new rows and columns by ``[x 1] G [y 1]'``: E has no value
    for them. With features on one side only, the other has a coefficient for each of its
    entities; without any, only the constant is left of G. Without an answer for G (``reg_g`` large)
    the model is the one that the SVT algorithm of Cai, Candes and Shen solves.

    Parameters
    ----------
    reg_g : float or "auto", default="auto"
        Weight of the L1 norm of G; "auto" is 0.005 max |Xa' P(M - mean) Ya|.
    reg_e : float, "auto" or "spectral", default="auto"
        Weight of the nuclear norm of E. "auto" walks down a path of penalties, without the features, and
        keeps the best on a tenth of the cells (soft); for the hard form it is "spectral": s1 (hard) or
        rho max(0.11 s1, s50) (soft), with s1 and s50 the largest and the 50th singular value of
        P(M - mean). The second keeps the rank small where cells are so few that noise has many values
        above 0.11 s1.
    constraint : {"soft", "hard"}, default="soft"
        Whether E equals the observed cells, as in the paper. Noisy values need a large rank of E then;
        prefer "soft", or an early stop by ``validation_fraction``.
    rho : float, default=100.0
        Weight of the observed cells with ``constraint="soft"``.
    solver : {"auto", "admm"}, default="auto"
        Three-operator splitting (hard) or block descent (soft), both low rank plus sparse. "admm"
        is the two-block reference for the hard form; it holds dense n x m arrays and refuses above
        50 million cells.
    init : {"lasso", "paper"}, default="lasso"
        Start of the hard form: the sparse bilinear fit of the observed cells, or zero with random
        multipliers as in the paper, which is slower.
    max_rank : int, None or "auto", default="auto"
        Keep at most this many singular values of E; the problem is no longer convex where this binds.
        "auto" is 50, with a warning where it binds; None is no limit.
    penalize_intercept : bool, default=True
        Whether the constant is penalised as the other entries of G are.
    standardize : bool, default=True
        Centre features and scale them to unit variance; ``interactions_`` are in the units
        that were given.
    center : {"none", "mean", "biases", "informed"}, default="informed"
        Subtract nothing (as in the paper), the mean, or a :class:`BiasModel` first. Biases suit
        ratings, but take from G what features say about new rows and columns; "informed" gives these the
        biases that their features suggest, by a regression.
    tol : float, default=1e-4
        Stop when the constraint, G and E on the observed cells change by less (hard), or when a
        sweep lowers the objective by less than this share (soft).
    random_state : int or Generator, optional
        Seed of the subspace iteration.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Their products are E, offsets included.
    interactions_ : Interactions
        G in the units of the features.
    reg_g_, reg_e_ : float
        Penalties in use.
    reg_path_ : list of dict
        For reg_e="auto" and the soft form, the ``reg`` (reg_e / rho) and ``validation`` (mean squared error
        on the held-out cells) of each penalty.
    rank_ : int
        Rank of E.
    certificate_ : Certificate
        How far from the optimum the answer can be.
    history_ : list of dict
        ``objective``, ``time_s``, ``rank``, ``residual`` and, for the hard form, ``feasibility`` of each
        sweep.
    converged_ : bool
        Whether the stopping rule was met before ``max_iter``.

    Examples
    --------
    >>> from unseen import MixedLinear
    >>> from unseen.datasets import make_ratings
    >>> data = make_ratings(200, 150, random_state=0)
    >>> model = MixedLinear(constraint="soft", rho=10.0)
    >>> model = model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    >>> model.predict_new(row_features=data.row_features[:2]).shape
    (2, 150)
    """

    path_parameter: ClassVar[str] = "reg_e"
    _chosen: RegChoice | None = None

    centers = ("none", "mean", "biases", "informed")

    def __init__(
        self,
        reg_g: float | str = "auto",
        reg_e: float | str = "auto",
        *,
        constraint: str = "soft",
        rho: float = 100.0,
        solver: str = "auto",
        init: str = "lasso",
        max_rank: int | str | None = "auto",
        intercept: bool = True,
        penalize_intercept: bool = True,
        standardize: bool = True,
        center: str = "informed",
        bias_reg: float = 5.0,
        max_iter: int = 500,
        tol: float = 1e-4,
        validation_fraction: float | None = None,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        clip: Clip = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.reg_g = reg_g
        self.reg_e = reg_e
        self.constraint = constraint
        self.rho = rho
        self.solver = solver
        self.init = init
        self.max_rank = max_rank
        self.intercept = intercept
        self.penalize_intercept = penalize_intercept
        self.standardize = standardize
        self.center = center
        self.bias_reg = bias_reg
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.clip = clip
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- fitting ---------------------------------------------------------------------

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        constraint = check_choice("constraint", self.constraint, ("hard", "soft"))
        chosen = check_choice("solver", self.solver, ("auto", "admm"))
        init = check_choice("init", self.init, ("lasso", "paper"))
        limit = rank_cap(self.max_rank)
        rho = check_positive("rho", self.rho)
        solver: MixedSolver
        if constraint == "soft":
            if chosen == "admm":
                raise ParameterError("solver='admm' solves constraint='hard' only; use solver='auto'")
            solver = MixedSoft(max_rank=limit)
        else:
            solver = MixedADMM(init=init) if chosen == "admm" else DavisYin(max_rank=limit, init=init)
        maps = bilinear_maps((has_row_features, has_col_features), self.intercept, self.standardize)
        spare = self.intercept and not self.penalize_intercept
        terms = [
            Term(*maps, Full(), L1(number_or_auto("reg_g", self.reg_g, strict=True), spare_last=spare)),
            Term(core=Full(), reg=Ridge(1.0)),
        ]
        penalty = Nuclear(
            1.0 if self.reg_e == "spectral" else number_or_auto("reg_e", self.reg_e, strict=True)
        )
        if constraint == "soft":
            return Composition(terms, Squared(rho), solver, penalty)
        return Composition(terms, Squared(), solver, (penalty, StoredCells()))

    def _choose(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> None:
        """Without its features and in units of rho the model is a nuclear norm on the cells."""
        self.reg_path_: list[dict[str, float]] = []
        self._chosen = None
        if self.reg_e != "auto" or self.constraint != "soft":
            return
        plain: dict[str, Features | None] = {"row": None, "col": None}
        self._chosen = chosen_for(self, cells, plain, Term(core=Full()), rng, "reg_e / rho")
        self.reg_path_ = self._chosen.path

    def _bind(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> Bound:
        return super()._bind(_that_count(cells) if self.constraint == "hard" else cells, features, rng)

    def _tune(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> None:
        assert isinstance(solver, MixedSolver)
        cells = problem.observations
        # A mean would only add its own size: the grand total, or the norm of a constant matrix.
        values = cells.values - cells.dtype.type(cell_mean(cells))
        cells = cells.with_values(values if cells.weights is None else values * cells.weights)
        if self.reg_g == "auto":
            state = problem.start(np.random.default_rng(0), factored_full=True)
            coupling = solver.coupling(problem, state)
            slope = np.abs(coupling.adjoint(_sparse(cells, problem.n_threads))).max(initial=0.0)
            problem.terms[0].reg.set_params(reg=0.005 * float(slope))
        self.reg_g_ = solver.rule(problem).l1
        penalty = problem.on_total(Nuclear)
        assert penalty is not None
        if self._chosen is not None:
            penalty.set_params(reg=check_positive("rho", self.rho) * self._chosen.reg)
        elif isinstance(self.reg_e, str):
            operator = _sparse(cells, problem.n_threads)
            scale = spectral_norm(operator, rng)
            if self.constraint == "soft":
                crowded = singular_value(operator, FIRST_RANK, rng)
                scale = check_positive("rho", self.rho) * max(0.11 * scale, crowded)
            penalty.set_params(reg=max(scale, np.finfo(float).tiny))
        self.reg_e_ = float(penalty.reg)

    def _keep(self, problem: Problem, state: State) -> None:
        super()._keep(problem, {key: value for key, value in state.items() if key != "1.multiplier"})
        self.rank_ = self.widths_[1] - self.widths_[0]
        warn_of_cap(self, self.rank_)

    # -- completing ------------------------------------------------------------------

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        """A new row of E with the right singular vectors held.

        min over q   1/2 ||A - R q||^2 + rho/2 ||P(R q - m)||^2 + reg_e/2 ||q||^2,   R = V sqrt(s)

        Where the rows have no features but the columns do, a new row has no coefficients of its own, and
        only what all rows share speaks for it.
        """
        dtype, count = self.row_factors_.dtype, cells.shape[0]
        offsets = self.offsets_
        biases = row_biases(cells, offsets)
        values = cells.values - np.asarray(
            Offsets(offsets.mean, biases, offsets.col).at(cells.rows, cells.indices)
        )
        width, rank = self.widths_[0], self.rank_
        if self.terms_[0].parts()[0].inductive:
            linear = self._term_embeddings("row", row_features, count)[0]
        else:
            linear = np.repeat(self._origin("row")[None].astype(dtype), count, axis=0)
        right = np.ascontiguousarray(self.col_factors_[:, width : width + rank])
        features = np.ascontiguousarray(self.col_factors_[:, :width])
        rho = float(self.rho) if self.constraint == "soft" else NEARLY_HARD
        weight: FloatArray | float = rho if cells.weights is None else rho * cells.weights
        out = np.zeros((count, rank), dtype=dtype)
        if rank:
            product = gram(right).astype(dtype)
            product[np.diag_indices(rank)] += dtype.type(self.reg_e_)
            offset = matmul(linear, gram(features, right).astype(dtype))
            kernels.als_solve(
                cells.indptr,
                cells.indices,
                weight,
                (weight * values).astype(dtype),
                right,
                product,
                np.ascontiguousarray(offset),
                out,
                n_threads=self._n_threads(),
            )
        extra = offsets.row_coordinates(count, biases)
        return np.ascontiguousarray(np.hstack([linear, out, linear, extra]), dtype=dtype)

    def _complete(self, cells: Observations, factors: FloatArray) -> FloatArray:
        completed = super()._complete(cells, factors)
        if self.constraint == "hard":  # observed cells keep their values
            known = _that_count(cells)
            completed[known.rows, known.indices] = known.values
        return completed


def _that_count(cells: Observations) -> Observations:
    """Cells of weight zero say nothing; the weight of others does not matter to an equality."""
    return cells_that_count(cells).with_weights(None)


def _sparse(cells: Observations, n_threads: int) -> LowRankPlusSparse:
    """The observed cells as an operator."""
    n, m = cells.shape
    empty = np.zeros((n, 0), dtype=cells.dtype), np.zeros((m, 0), dtype=cells.dtype)
    return LowRankPlusSparse(cells, cells.values, *empty, n_threads)
