"""The lasso on interactions of side features, the limit of the mixed linear model."""

from __future__ import annotations

from typing import Any

from unseen.cores import Full
from unseen.estimators.auto_reg import AutoReg, number_or_auto
from unseen.estimators.clipping import Clip
from unseen.estimators.composed import Composition
from unseen.estimators.explained import Explained
from unseen.estimators.paths import PathMixin
from unseen.estimators.side_maps import bilinear_maps
from unseen.losses import Squared
from unseen.regularisers import L1
from unseen.solvers import ProxGradient
from unseen.terms import Term

__all__ = ["SparseBilinear"]


class SparseBilinear(Explained, AutoReg, PathMixin):
    """A sparse matrix of interactions between side features, convex (the lasso limit of the mixed model).

    min over G   1/2 sum_observed ([x_i 1] G [y_j 1]' - m_ij)^2 + reg ||G||_1

    G holds interactions of features, effects of row features alone, of column features alone,
    and a constant. A side without features has a coefficient for each row or column instead;
    without any features only the constant is left.

    Parameters
    ----------
    reg : float or "auto", default="auto"
        Weight of the L1 norm. G is zero from ``max |Xa' P(M) Ya|`` on. "auto" walks down a path of penalties
        and keeps the best on a tenth of the cells.
    penalize_intercept : bool, default=True
        Whether the constant is penalised as the other entries of G are.
    standardize : bool, default=True
        Centre features and scale them to unit variance; ``interactions_`` are in the units
        that were given.
    center : {"none", "mean", "biases", "informed"}, default="informed"
        Subtract nothing, the mean, or a :class:`BiasModel` first. Biases take from G the effects of one side
        alone; "informed" gives new rows and columns the biases that their features suggest, by a regression.
    max_iter : int, default=500
        Limit of steps.
    tol : float, default=1e-7
        Stop when a step lowers the objective by less than this share.
    validation_fraction : float, optional
        Share of the cells held out for early stopping; the best step is kept.
    patience : int, default=5
        Steps without improvement on held-out cells before stopping.
    random_state : int or Generator, optional
        Not used by the solver, which is deterministic; draws the held-out cells.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of the training rows and columns, offsets as extra coordinates.
    interactions_ : Interactions
        G in the units of the features.
    reg_ : float
        Penalty in use.
    reg_path_ : list of dict
        For reg="auto", the ``reg`` and ``validation`` (mean squared error on the held-out cells) of each
        penalty that was tried, the offsets alone first.
    certificate_ : Certificate
        How far from the optimum the answer can be.
    history_ : list of dict
        ``objective``, ``time_s`` and ``residual`` of each step.
    n_iter_ : int
        Steps done.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import SparseBilinear
    >>> rng = np.random.default_rng(0)
    >>> age, genre = rng.normal(size=(60, 3)), rng.normal(size=(40, 2))
    >>> X = np.where(rng.random((60, 40)) < 0.2, 2.0 * np.outer(age[:, 1], genre[:, 0]), np.nan)
    >>> model = SparseBilinear(reg=5.0, center="mean").fit(X, row_features=age, col_features=genre)
    >>> [(i.row_feature, i.col_feature) for i in model.interactions_.top(1)]
    [('row1', 'col0')]
    """

    centers = ("none", "mean", "biases", "informed")

    def __init__(
        self,
        reg: float | str = "auto",
        *,
        intercept: bool = True,
        penalize_intercept: bool = True,
        standardize: bool = True,
        center: str = "informed",
        bias_reg: float = 5.0,
        max_iter: int = 500,
        tol: float = 1e-7,
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

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        maps = bilinear_maps((has_row_features, has_col_features), self.intercept, self.standardize)
        spare = self.intercept and not self.penalize_intercept
        reg = L1(number_or_auto("reg", self.reg), spare_last=spare)
        return Composition([Term(*maps, Full(), reg)], Squared(), ProxGradient())
