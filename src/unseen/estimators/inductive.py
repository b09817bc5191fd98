"""Completion through side features."""

from __future__ import annotations

from typing import Any, Literal

from unseen.cores import LowRank
from unseen.estimators.auto_reg import AutoReg, number_or_auto, scaling_of
from unseen.estimators.clipping import Clip
from unseen.estimators.composed import Composition
from unseen.losses import Squared
from unseen.maps import FeatureMap, Given, Identity, WithOnes
from unseen.regularisers import Ridge
from unseen.solvers import AlternatingCG, Gibbs
from unseen.terms import Term
from unseen.validation import check_choice, check_count

__all__ = ["IMC"]


class IMC(AutoReg):
    """Inductive matrix completion in factored form (GIMC eq. 3).

    min over W, H   1/2 sum_observed (x_i' W H' y_j - a_ij)^2 + reg/2 (||W||_F^2 + ||H||_F^2)

    x_i and y_j are the features of row i and column j; a side without features gets
    coefficients of its own for each row or column. Speaks about rows and columns that it has
    never seen through their features.

    Parameters
    ----------
    rank : int, default=10
        Rank of the interaction matrix Z = W H'.
    reg : float or "auto", default="auto"
        Weight of the penalty on both factors; zero is allowed. "auto" walks down a path of penalties with
        warm starts, keeps the best on a tenth of the cells, then fits to all of them. Where no penalty
        beats the offsets alone it says so, and the factors are next to nothing.
    degree_scaling : float, default=0.0
        nu: the penalty of a row or column is multiplied by the number of its cells (the sum of their weights)
        to this power. 0 treats all alike, 1 is the weighted-lambda penalty; in between often does best.
        For sides without features, and a number for ``reg``.
    intercept : bool, default=True
        Append a constant to the features of each side, so that one-sided effects and a
        constant have a place in the model.
    standardize : bool, default=True
        Centre features and scale them to unit variance; sparse ones stay sparse.
    solver : {"cg", "gibbs"}, default="cg"
        Alternating conjugate gradients; "gibbs" averages over all solutions that fit instead
        (:class:`~unseen.solvers.Gibbs`), learns the penalties along, so that ``reg`` has no influence, and
        has ``predict_interval``. That takes subtracted biases as known; ``center="mean"`` has none.
    center : {"none", "mean", "biases", "informed"}, default="informed"
        Subtract nothing, the mean, or a :class:`BiasModel` first. Biases speak only about
        rows and columns with observed cells; "informed" gives new ones the biases that their features
        suggest, by a regression.
    cg_steps : int, default=20
        Limit of conjugate gradient steps for each factor in a sweep.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of the training rows and columns, offsets as extra coordinates.
    reg_ : float
        Penalty in use.
    reg_path_ : list of dict
        For reg="auto", the ``reg`` and ``validation`` (mean squared error on the held-out cells) of each
        penalty that was tried, the offsets alone first.
    history_ : list of dict
        ``objective``, ``time_s`` and ``cg_steps`` of each sweep.

    Examples
    --------
    >>> from unseen import IMC
    >>> from unseen.datasets import make_imc
    >>> data = make_imc(200, 150, 8, 6, rank=3, density=0.1, noise=0.0, random_state=0)
    >>> model = IMC(rank=3, reg=1e-4, random_state=0, max_iter=100)
    >>> model = model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    >>> model.predict_new(row_features=data.row_features[:2]).shape
    (2, 150)
    """

    centers = ("none", "mean", "biases", "informed")

    def __init__(
        self,
        rank: int = 10,
        *,
        reg: float | str = "auto",
        degree_scaling: float = 0.0,
        intercept: bool = True,
        standardize: bool = True,
        solver: Literal["cg", "gibbs"] = "cg",
        center: str = "informed",
        bias_reg: float = 5.0,
        max_iter: int = 50,
        tol: float = 1e-5,
        cg_steps: int = 20,
        validation_fraction: float | None = None,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        clip: Clip = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.reg = reg
        self.degree_scaling = degree_scaling
        self.intercept = intercept
        self.standardize = standardize
        self.solver = solver
        self.center = center
        self.bias_reg = bias_reg
        self.max_iter = max_iter
        self.tol = tol
        self.cg_steps = cg_steps
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.clip = clip
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        reg = Ridge(number_or_auto("reg", self.reg), scaling_of(self))
        term = Term(
            self._side_map(has_row_features),
            self._side_map(has_col_features),
            LowRank(check_count("rank", self.rank)),
            reg,
        )
        point = AlternatingCG(cg_steps=check_count("cg_steps", self.cg_steps))
        averaged = check_choice("solver", self.solver, ("cg", "gibbs")) == "gibbs"
        return Composition([term], Squared(), Gibbs() if averaged else point)

    def _side_map(self, has_features: bool) -> FeatureMap:
        if not has_features:
            return Identity()
        return WithOnes(self.standardize) if self.intercept else Given(self.standardize)
