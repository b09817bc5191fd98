"""Plain low-rank completion, with and without a nuclear norm on the whole matrix."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from unseen.cores import Full, LowRank
from unseen.estimators.auto_reg import (
    AutoReg,
    factored_start,
    is_auto,
    number_or_auto,
    rank_cap,
    scaling_of,
    warn_of_cap,
)
from unseen.estimators.clipping import Clip
from unseen.estimators.composed import Composition
from unseen.estimators.paths import PathMixin
from unseen.estimators.scaled_start import scaled_svd_start
from unseen.exceptions import ParameterError
from unseen.losses import Squared
from unseen.maps import Constant, Identity
from unseen.problem import Problem
from unseen.regularisers import Nuclear, Ridge
from unseen.solvers import ALS, CCD, Gibbs, LowRankProx, Solver
from unseen.state import State
from unseen.terms import Term
from unseen.validation import check_choice, check_count, check_pair

__all__ = ["MatrixFactorization", "SoftImpute"]


class MatrixFactorization(AutoReg):
    """Low-rank completion of a partly observed matrix (GIMC eq. 2).

    min over W, H   1/2 sum_observed (w_i . h_j - x_ij)^2 + reg/2 (||W||_F^2 + ||H||_F^2)

    where x is the target less the offsets that ``center`` names. With ``center="joint"`` the biases are
    learned together with the factors:

    min over W, H, b, c   1/2 sum_observed (mu + b_i + c_j + w_i . h_j - x_ij)^2
                          + reg/2 (||W||_F^2 + ||H||_F^2) + bias_reg/2 (||b||^2 + ||c||^2)

    with mu the mean of the observed cells.

    Every stored cell is observed, stored zeros included; absent or NaN cells are missing. Rows and columns
    without a cell are predicted by the offsets.

    Parameters
    ----------
    reg : float or "auto", default="auto"
        Weight of the penalty on both factors; zero is allowed. "auto" walks down a path of penalties with
        warm starts, keeps the best on a tenth of the cells, then fits to all of them. Where no penalty
        beats the offsets alone it says so, and the factors are next to nothing.
    degree_scaling : float, default=0.0
        nu: the penalty of a row or column is multiplied by the number of its cells (the sum of their weights)
        to this power. 0 treats all alike, 1 is the weighted-lambda penalty; in between often does best.
        Biases of ``center="joint"`` are scaled alike. Needs ``solver="als"`` and a number for ``reg``.
    solver : {"als", "ccd", "gibbs"}, default="als"
        Alternating least squares or coordinate descent; "gibbs" averages over all solutions that fit instead
        of taking the best, with penalties that are learned: ``reg``, ``bias_reg``, ``init``, ``max_iter`` and
        ``tol`` then have no influence. :class:`BayesianMF` has the options of the average.
    center : {"none", "mean", "biases", "joint"}, default="biases"
        Subtract nothing, the mean, or a :class:`BiasModel` first. "joint" subtracts the mean and
        learns the biases with the factors; ``solver="ccd"`` cannot. It is faster than "biases", and
        most often more accurate.
    bias_reg : float or (float, float), default=5.0
        Ridge of the biases, or one for rows and one for columns.
    init : {"random", "svd"}, default="random"
        Start from small random factors, or from singular vectors of the observed cells, with rows and
        columns weighted by their number of cells. "svd" costs about as much as a sweep or two and
        most often saves more than that.
    warm_start : bool, default=False
        Start from the previous fit, as :class:`unseen.model_selection.GridSearch` does along ``reg``.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors, offsets as extra coordinates.
    reg_ : float
        Penalty in use.
    reg_path_ : list of dict
        For reg="auto", the ``reg`` and ``validation`` (mean squared error on the held-out cells) of each
        penalty that was tried, the offsets alone first.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import MatrixFactorization
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[2, 2] = np.nan
    >>> model = MatrixFactorization(rank=1, reg=1e-4, center="none", random_state=1, max_iter=200).fit(X)
    >>> float(model.predict_entries([2], [2])[0].round(2))
    12.0
    """

    centers = ("none", "mean", "biases", "joint")

    def __init__(
        self,
        rank: int = 10,
        *,
        reg: float | str = "auto",
        degree_scaling: float = 0.0,
        solver: str = "als",
        center: str = "biases",
        bias_reg: float | tuple[float, float] = 5.0,
        init: str = "random",
        max_iter: int = 50,
        tol: float = 1e-5,
        validation_fraction: float | None = None,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        clip: Clip = None,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.reg = reg
        self.degree_scaling = degree_scaling
        self.solver = solver
        self.center = center
        self.bias_reg = bias_reg
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.clip = clip
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        if has_row_features or has_col_features:
            raise ParameterError(
                "MatrixFactorization takes no row_features or col_features; use IMC for side information"
            )
        nu = scaling_of(self)
        reg = Ridge(number_or_auto("reg", self.reg), nu)
        term = Term(Identity(), Identity(), LowRank(check_count("rank", self.rank)), reg)
        solvers: dict[str, Solver] = {"als": ALS(), "ccd": CCD(), "gibbs": Gibbs()}
        solver = check_choice("solver", self.solver, tuple(solvers))
        terms = [term]
        if isinstance(self.center, str) and self.center == "joint":
            if solver == "ccd":
                raise ParameterError("center='joint' needs solver='als' or 'gibbs', got solver='ccd'")
            row, col = (Ridge(reg, nu) for reg in check_pair("bias_reg", self.bias_reg))
            terms += [Term(Identity(), Constant(), Full(), row), Term(Constant(), Identity(), Full(), col)]
        return Composition(terms, Squared(), solvers[solver])

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        state = super()._start(problem, solver, rng)
        svd = check_choice("init", self.init, ("random", "svd")) == "svd"
        if not svd or solver.averages or (self.warm_start and hasattr(self, "row_factors_")):
            return state
        return scaled_svd_start(problem, state, rng)


class SoftImpute(AutoReg, PathMixin):
    """Nuclear-norm completion (GIMC eq. 1), convex, kept as low rank plus sparse.

    min over Z   1/2 sum_observed (z_ij - x_ij)^2 + reg ||Z||_*

    Accelerated proximal gradient; each step is a thresholded singular value decomposition of
    a low-rank plus a sparse matrix, so memory is O(cells + (n + m) rank).

    Parameters
    ----------
    reg : float or "auto", default="auto"
        Weight of the nuclear norm. The solution is zero from the largest singular value of
        the (centred) zero-filled target on. "auto" walks down a path of penalties, by factors with the
        same penalty, keeps the best on a tenth of the cells, then fits to all of them.
    max_rank : int, None or "auto", default="auto"
        Keep at most this many singular values. "auto" is 50, with a warning where that binds; None is no
        limit.
    center : {"none", "mean", "biases"}, default="biases"
        Subtract nothing, the mean, or a :class:`BiasModel` first.
    max_iter : int, default=200
        Limit of steps.
    tol : float, default=1e-6
        Stop when a step lowers the objective by less than this share.
    validation_fraction : float, optional
        Share of the cells held out for early stopping; the best step is kept.
    patience : int, default=5
        Steps without improvement on held-out cells before stopping.
    random_state : int or Generator, optional
        Seed of the subspace iteration.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Left and right singular vectors times the square roots of the singular values, with
        offsets as extra coordinates.
    rank_ : int
        Rank of the solution.
    reg_ : float
        Penalty in use.
    reg_path_ : list of dict
        For reg="auto", the ``reg`` and ``validation`` (mean squared error on the held-out cells) of each
        penalty that was tried, the offsets alone first.
    history_ : list of dict
        ``objective``, ``time_s``, ``rank`` and ``residual`` (length of the step) of each step.
    certificate_ : Certificate
        How far from the optimum the answer can be.
    n_iter_ : int
        Steps done.

    Examples
    --------
    >>> from unseen import SoftImpute
    >>> from unseen.datasets import make_low_rank
    >>> data = make_low_rank(100, 60, rank=3, density=0.5, noise=0.0, random_state=0)
    >>> SoftImpute(reg=1.0, center="none").fit(data.observations).rank_
    3
    """

    def __init__(
        self,
        reg: float | str = "auto",
        *,
        max_rank: int | str | None = "auto",
        center: str = "biases",
        bias_reg: float = 5.0,
        max_iter: int = 200,
        tol: float = 1e-6,
        validation_fraction: float | None = None,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        clip: Clip = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.reg = reg
        self.max_rank = max_rank
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

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Learn from the stored cells of ``X``.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations of shape (n_rows, n_cols)
            Target.
        y : None
            Ignored; there for scikit-learn.
        row_features, col_features : None
            Not used by this model; refused if given.

        Returns
        -------
        self
        """
        super().fit(X, row_features=row_features, col_features=col_features)
        self.rank_ = self.widths_[0]
        warn_of_cap(self, self.rank_)
        return self

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        if has_row_features or has_col_features:
            raise ParameterError(
                "SoftImpute takes no row_features or col_features; use IMC for side information"
            )
        limit = rank_cap(self.max_rank)
        reg = Nuclear(number_or_auto("reg", self.reg, strict=True))
        solver = LowRankProx(max_rank=limit)
        return Composition([Term(Identity(), Identity(), Full(), reg)], Squared(), solver)

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        state = super()._start(problem, solver, rng)
        warm = self.warm_start and hasattr(self, "row_factors_")
        return {**state, **factored_start(problem, rng)} if is_auto(self.reg) and not warm else state
