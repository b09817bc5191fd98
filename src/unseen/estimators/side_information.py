"""Convex completion with side features and nuclear norms: Maxide and DirtyIMC."""

from __future__ import annotations

from itertools import islice
from typing import Any, ClassVar

import numpy as np

from unseen.cores import Full
from unseen.data import Observations
from unseen.estimators.auto_reg import (
    AutoReg,
    RegChoice,
    chosen_for,
    is_auto,
    number_or_auto,
    rank_cap,
    warn_of_offsets,
)
from unseen.estimators.clipping import Clip
from unseen.estimators.composed import Composition
from unseen.estimators.explained import Explained
from unseen.estimators.paths import PathMixin
from unseen.estimators.side_maps import orthonormal_map
from unseen.losses import Squared
from unseen.maps import Identity
from unseen.problem import Problem
from unseen.regularisers import Nuclear
from unseen.solvers import BlockProx, LowRankProx, ProxGradient, Solver
from unseen.state import State
from unseen.terms import Term
from unseen.typing import Features
from unseen.validation import check_count

__all__ = ["DirtyIMC", "Maxide"]

STAGE_STEPS = 20
"""Steps at each stage of a continuation."""


class Maxide(Explained, AutoReg, PathMixin):
    """Completion with a low-rank matrix between side features, convex (Maxide).

    min over Z   1/2 sum_observed (a_i' Z b_j - x_ij)^2 + reg ||Z||_*

    a_i and b_j are rows of orthonormal bases of the features of rows and columns; a side without
    features has the identity. Without any features this is :class:`SoftImpute`. Xu, Jin and Zhou
    (2013) state the limit reg -> 0; ``continuation`` approaches a small reg through larger ones.

    Parameters
    ----------
    reg : float or "auto", default="auto"
        Weight of the nuclear norm. "auto" walks down a path of penalties, by factors with the same penalty,
        and keeps the best on a tenth of the cells.
    standardize : bool, default=True
        Centre features and scale them to unit variance; with an intercept the span of the
        features, and so the model, does not depend on it.
    center : {"none", "mean", "biases", "informed"}, default="informed"
        Subtract nothing, the mean, or a :class:`BiasModel` first; "informed" gives new rows and columns the
        biases that their features suggest, by a regression.
    continuation : int, default=0
        Stages of decreasing penalty before ``reg`` itself.
    max_iter : int, default=500
        Limit of steps.
    tol : float, default=1e-6
        Stop when a step lowers the objective by less than this share.
    validation_fraction : float, optional
        Share of the cells held out for early stopping; the best step is kept.
    patience : int, default=5
        Steps without improvement on held-out cells before stopping.
    random_state : int or Generator, optional
        Seed of the spectral estimates of large problems.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of the training rows and columns, offsets as extra coordinates.
    interactions_ : Interactions
        The matrix between features in their own units.
    reg_ : float
        Penalty in use.
    reg_path_ : list of dict
        For reg="auto", the ``reg`` and ``validation`` (mean squared error on the held-out cells) of each
        penalty that was tried, the offsets alone first.
    certificate_ : Certificate
        How far from the optimum the answer can be.
    history_ : list of dict
        ``objective``, ``time_s`` and ``residual`` (length of the step) of each step.
    n_iter_ : int
        Steps done.

    Examples
    --------
    >>> from unseen import Maxide
    >>> from unseen.datasets import make_imc
    >>> data = make_imc(200, 150, 8, 6, rank=3, density=0.1, noise=0.0, random_state=0)
    >>> model = Maxide(reg=0.01, center="none")
    >>> model = model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    >>> bool(model.certificate_.relative_gap < 0.05)
    True
    """

    centers = ("none", "mean", "biases", "informed")

    def __init__(
        self,
        reg: float | str = "auto",
        *,
        intercept: bool = True,
        standardize: bool = True,
        center: str = "informed",
        bias_reg: float = 5.0,
        continuation: int = 0,
        max_iter: int = 500,
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
        self.intercept = intercept
        self.standardize = standardize
        self.center = center
        self.bias_reg = bias_reg
        self.continuation = continuation
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.clip = clip
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        row, col = (
            orthonormal_map(has, self.intercept, self.standardize)
            for has in (has_row_features, has_col_features)
        )
        term = Term(row, col, Full(), Nuclear(number_or_auto("reg", self.reg, strict=True)))
        features = has_row_features or has_col_features
        return Composition([term], Squared(), ProxGradient() if features else LowRankProx())

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        state = super()._start(problem, solver, rng)
        stages = check_count("continuation", self.continuation, minimum=0)
        if stages == 0 or "0.core" not in state or (self.warm_start and hasattr(self, "row_factors_")):
            return state
        slope = problem.data_grad(state)["0.core"]
        penalty, last = problem.terms[0].reg, self.reg_
        for reg in np.geomspace(max(float(np.linalg.norm(slope, 2)), last), last, stages + 2)[1:-1]:
            penalty.set_params(reg=float(reg))
            for sweep in islice(solver.sweeps(problem, state, rng), STAGE_STEPS):
                state = sweep.state
        penalty.set_params(reg=last)
        return state


class DirtyIMC(Explained, PathMixin):
    """Side features for what they explain, a low-rank matrix for the rest, convex (DirtyIMC).

    min over M, N   1/2 sum_observed (a_i' M b_j + n_ij - x_ij)^2 + reg_features ||M||_* + reg_rest ||N||_*

    a_i and b_j are rows of orthonormal bases of the features. A large ``reg_features`` leaves
    :class:`SoftImpute`, a large ``reg_rest`` leaves :class:`Maxide`, where the fit starts. N is kept
    as low rank plus sparse. Predictions for new rows or columns use M alone.

    Parameters
    ----------
    reg_features, reg_rest : float or "auto", default="auto"
        Weights of the nuclear norms of M and N. "auto" walks down a path of penalties of that term alone and
        keeps the best on a tenth of the cells.
    max_rank : int, None or "auto", default="auto"
        Keep at most this many singular values of N. "auto" is 50, with a warning where that binds; None is
        no limit.
    center : {"none", "mean", "biases", "informed"}, default="informed"
        Subtract nothing, the mean, or a :class:`BiasModel` first; "informed" gives new rows and columns the
        biases that their features suggest, by a regression.
    random_state : int or Generator, optional
        Seed of the subspace iteration.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of the training rows and columns, offsets as extra coordinates.
    interactions_ : Interactions
        M in the units of the features.
    reg_features_, reg_rest_ : float
        Penalties in use.
    reg_path_ : list of dict
        For a penalty that is chosen, the ``reg``, its ``name`` and the ``validation`` (mean squared error on
        the held-out cells) of each that was tried, the offsets alone first.
    certificate_ : Certificate
        How far from the optimum the answer can be.
    history_ : list of dict
        ``objective``, ``time_s``, ``rank`` of N and ``residual`` of each sweep.

    Examples
    --------
    >>> from unseen import DirtyIMC
    >>> from unseen.datasets import make_ratings
    >>> data = make_ratings(200, 150, random_state=0)
    >>> model = DirtyIMC(1.0, reg_rest=5.0, center="mean")
    >>> model = model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    >>> parts = model.explain(0, 0)
    >>> bool(abs(parts.prediction - model.predict_entries([0], [0])[0]) < 1e-9)
    True
    """

    path_parameter: ClassVar[str] = "reg_rest"
    centers = ("none", "mean", "biases", "informed")

    def __init__(
        self,
        reg_features: float | str = "auto",
        reg_rest: float | str = "auto",
        *,
        max_rank: int | str | None = "auto",
        intercept: bool = True,
        standardize: bool = True,
        center: str = "informed",
        bias_reg: float = 5.0,
        max_iter: int = 200,
        tol: float = 1e-5,
        validation_fraction: float | None = None,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        clip: Clip = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.reg_features = reg_features
        self.reg_rest = reg_rest
        self.max_rank = max_rank
        self.intercept = intercept
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

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        reg_features = number_or_auto("reg_features", self.reg_features, strict=True)
        reg_rest = number_or_auto("reg_rest", self.reg_rest, strict=True)
        limit = rank_cap(self.max_rank)
        if not (has_row_features or has_col_features):
            # Two nuclear norms on the same matrix: the smaller weight carries everything.
            term = Term(Identity(), Identity(), Full(), Nuclear(min(reg_features, reg_rest)))
            return Composition([term], Squared(), LowRankProx(max_rank=limit))
        row, col = (
            orthonormal_map(has, self.intercept, self.standardize)
            for has in (has_row_features, has_col_features)
        )
        terms = [
            Term(row, col, Full(), Nuclear(reg_features)),
            Term(Identity(), Identity(), Full(), Nuclear(reg_rest)),
        ]
        return Composition(terms, Squared(), BlockProx(max_rank=limit))

    def _choose(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> None:
        """Each penalty as if its term were the only one."""
        self.reg_path_: list[dict[str, Any]] = []
        terms = self._compose(*(features[side] is not None for side in ("row", "col"))).terms
        plain: dict[str, Features | None] = {"row": None, "col": None}
        choices: list[RegChoice] = []
        for name, term, given in (
            ("reg_features", terms[0], features),
            ("reg_rest", Term(core=Full()), plain),
        ):
            value = getattr(self, name)
            if is_auto(value):
                choices.append(chosen_for(self, cells, given, term, rng, name))
                value = choices[-1].reg
                self.reg_path_ += [{"name": name, **entry} for entry in choices[-1].path]
            setattr(self, f"{name}_", float(value))
        if len(choices) == 2 and all(choice.offsets_suffice and choice.path for choice in choices):
            warn_of_offsets(self)

    def _tune(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> None:
        super()._tune(problem, solver, rng)
        if len(problem.terms) == 1:
            problem.terms[0].reg.set_params(reg=min(self.reg_features_, self.reg_rest_))
        else:
            problem.terms[0].reg.set_params(reg=self.reg_features_)
            problem.terms[1].reg.set_params(reg=self.reg_rest_)
