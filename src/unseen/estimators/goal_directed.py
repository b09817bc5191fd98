"""Completion through features that are learned for the goal."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import clone

from unseen.cores import LowRank
from unseen.data import Observations
from unseen.estimators.auto_reg import AutoReg, MapsHeld, RegChoice, is_auto, number_or_auto
from unseen.estimators.clipping import Clip
from unseen.estimators.composed import Bound, Composition
from unseen.exceptions import ParameterError
from unseen.losses import Loss, Quadratic, Squared
from unseen.maps import FeatureMap, Fourier, Identity, Standardized
from unseen.regularisers import Ridge
from unseen.solvers import LBFGS, GoalDirected, Solver
from unseen.terms import Term
from unseen.typing import Features
from unseen.validation import check_choice, check_count, check_rng

__all__ = ["GIMC"]

WORTH = 1e-3
"""Share by which a sweep must lower the error on held-out cells."""
MAP_PATIENCE = 3
"""Sweeps that move maps in vain."""


class GIMC(AutoReg):
    """Goal-directed inductive matrix completion on observed cells (GIMC eq. 9 with Z = W H').

    min over W, H, U, V   1/2 sum_observed (phi_U(x_i)' W H' phi_V(y_j) - a_ij)^2
                          + reg/2 (||W||_F^2 + ||H||_F^2)

    phi_U and phi_V are nonlinear maps of the features of rows and columns whose parameters U and V are
    learned with the model, so that features which do not explain the matrix linearly can come to do
    so. A side without features gets coefficients of its own for each row or column. With maps that are
    not learned it is IMC on random Fourier or Nystrom features (GIMC eq. 5). Speaks about rows and
    columns that it has never seen through their features.

    The paper allows any loss: `loss` stands in place of the squares. The alternation solves for W and H
    exactly enough because they are a quadratic problem; where the loss is not one, such as ``Logistic()``,
    L-BFGS moves coefficients and maps together.

    Parameters
    ----------
    rank : int, default=10
        Rank of the interaction matrix Z = W H'.
    row_map, col_map : FeatureMap, optional
        Maps of the two sides, such as ``Fourier(100, learnable=True)``, which is the default on a side
        with features.
    reg : float or "auto", default="auto"
        Weight of the penalty on both factors; zero is allowed. "auto", for squares only, walks down a path
        of penalties with the maps as they are drawn and keeps the best on a tenth of the cells; then it
        moves the maps for as many sweeps as these cells gain from.
    loss : Loss, optional
        ``Squared()`` unless given. A loss with a background speaks about blank cells as well.
    standardize : bool, default=True
        Centre features and scale them to unit variance before they are mapped.
    solver : {"lbfgs", "armijo"}, default="lbfgs"
        How maps move between sweeps over W and H: a few quasi-Newton steps, or one step along the
        gradient with a line search, as in the paper. The first needs fewer sweeps.
    start_sweeps : int, default=10
        Sweeps over W and H before maps begin to move.
    n_restarts : int, default=1
        Fits from different starts; the one with the lowest objective is kept (with the lowest error on
        held-out cells, if there are any). Learned maps have local minima.
    center : {"none", "mean", "biases", "informed"}, default="informed"
        Subtract nothing, the mean, or a :class:`BiasModel` first. Biases speak only about
        rows and columns with observed cells; "informed" gives new ones the biases that their features
        suggest, by a regression. Losses whose values mean something by themselves, such as classes, need
        "none".
    max_iter : int, default=50
        Limit of sweeps in which maps move; of steps, where the loss is not quadratic.
    cg_steps : int, default=20
        Limit of conjugate gradient steps for each factor in a sweep.
    warm_start : bool, default=False
        Start from the previous fit, learned maps included.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of the training rows and columns, offsets as extra coordinates.
    state_ : dict of ndarray
        Among others the learned maps, such as ``"0.row_map.projections"``.
    reg_ : float
        Penalty in use.
    reg_path_ : list of dict
        For reg="auto", the ``reg`` and ``validation`` (mean squared error on the held-out cells) of each
        penalty, and of each sweep that moved maps with the best one.
    map_sweeps_ : int or None
        For reg="auto" and learned maps, sweeps that moved them; zero where that did not help.
    history_ : list of dict
        ``objective``, ``time_s``, ``cg_steps`` and ``map_trials`` of each sweep.

    Examples
    --------
    >>> from unseen import GIMC, IMC, Fourier
    >>> from unseen.datasets import make_fourier
    >>> from unseen.metrics import rmse
    >>> data = make_fourier(120, 120, 4, n_waves=2, rank=3, density=0.2, random_state=0)
    >>> sides = {"row_features": data.row_features, "col_features": data.col_features}
    >>> cells = [0, 1, 2, 3], [5, 6, 7, 8]
    >>> a_map = Fourier(10, gamma=0.2, learnable=True)
    >>> model = GIMC(3, row_map=a_map, col_map=a_map, reg=0.01, random_state=0, tol=1e-3)
    >>> model = model.fit(data.observations, **sides)
    >>> rmse(data.truth(*cells), model.predict_entries(*cells)) < 0.2
    True
    >>> model.predict_new(row_features=data.row_features[:2]).shape
    (2, 120)
    """

    centers = ("none", "mean", "biases", "informed")

    def __init__(
        self,
        rank: int = 10,
        *,
        row_map: FeatureMap | None = None,
        col_map: FeatureMap | None = None,
        reg: float | str = "auto",
        loss: Loss | None = None,
        standardize: bool = True,
        solver: str = "lbfgs",
        start_sweeps: int = 10,
        n_restarts: int = 1,
        center: str = "informed",
        bias_reg: float = 5.0,
        max_iter: int = 50,
        tol: float = 1e-4,
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
        self.row_map = row_map
        self.col_map = col_map
        self.reg = reg
        self.loss = loss
        self.standardize = standardize
        self.solver = solver
        self.start_sweeps = start_sweeps
        self.n_restarts = n_restarts
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
        term = Term(
            self._side_map("row_map", has_row_features),
            self._side_map("col_map", has_col_features),
            LowRank(check_count("rank", self.rank)),
            Ridge(number_or_auto("reg", self.reg)),
        )
        loss = self._loss()
        return Composition([term], loss, self._solver() if isinstance(loss, Quadratic) else self._together())

    def _loss(self) -> Loss:
        loss = Squared() if self.loss is None else self.loss
        if not isinstance(loss, Loss):
            raise ParameterError(f"loss must be a Loss such as Logistic(), found {self.loss!r}")
        if is_auto(self.reg) and not (isinstance(loss, Squared) and loss.background is None):
            raise ParameterError(f"reg='auto' judges penalties by squares; name a number with loss={loss!r}")
        return loss

    def _together(self) -> Solver:
        if check_choice("solver", self.solver, ("lbfgs", "armijo")) == "armijo":
            raise ParameterError(
                "solver='armijo' steps between exact solutions for W and H, which need a quadratic loss; "
                f"use solver='lbfgs' with loss={self.loss!r}"
            )
        return LBFGS()

    def _solver(self) -> GoalDirected:
        return GoalDirected(
            step=check_choice("solver", self.solver, ("lbfgs", "armijo")),
            start_sweeps=check_count("start_sweeps", self.start_sweeps, minimum=0),
            cg_steps=check_count("cg_steps", self.cg_steps),
        )

    def _side_map(self, name: str, has_features: bool) -> FeatureMap:
        given = getattr(self, name)
        if given is None:
            given = Fourier(learnable=True) if has_features else Identity()
        if not isinstance(given, FeatureMap):
            raise ParameterError(
                f"{name} must be a feature map such as Fourier(100, learnable=True), got {given!r}"
            )
        return Standardized(given) if self.standardize and given.needs_features else given

    def _fit_validated(self, cells: Observations, features: dict[str, Features | None]) -> None:
        count = check_count("n_restarts", self.n_restarts)
        if count == 1:
            super()._fit_validated(cells, features)
            return
        rng = check_rng(self.random_state)
        best: GIMC | None = None
        for place in range(count):
            trial = clone(self).set_params(n_restarts=1, random_state=int(rng.integers(2**31)))
            if place == 0 and self.warm_start:
                _take_over(trial, self)
            trial._fit_validated(cells, features)
            if best is None or trial._reached() < best._reached():
                best = trial
        assert best is not None
        _take_over(self, best)

    def _choose(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> None:
        self.map_sweeps_: int | None = None
        super()._choose(cells, features, rng)
        self._sweeps_chosen = bool(self.map_sweeps_)

    def _follow(self, choice: RegChoice, rng: np.random.Generator) -> None:
        """Count the sweeps that move maps and still help on held-out cells; a learned map overfits soon."""
        probe = choice.probe
        if probe is None or not any(m.learned for t in probe.problem.terms for m in (t.row_map, t.col_map)):
            return
        problem, limit = probe.problem, check_count("max_iter", self.max_iter)
        problem.terms[0].reg.set_params(reg=choice.reg)
        solver = self._solver()
        best, lowest = 0, probe.error(probe.state)
        for count, sweep in enumerate(islice(solver.sweeps(problem, probe.state, rng), limit), 1):
            error = probe.error(sweep.state)
            self.reg_path_.append({"reg": choice.reg, "validation": error, "map_sweeps": count})
            if error < (1.0 - WORTH) * lowest:
                best, lowest = count, error
            elif count - best >= MAP_PATIENCE:
                break
        self.map_sweeps_ = best

    def _bind(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> Bound:
        bound = super()._bind(cells, features, rng)
        if self.map_sweeps_ == 0:
            held = MapsHeld(bound.solver.max_iter, bound.solver.tol, check_count("cg_steps", self.cg_steps))
            return bound._replace(solver=held)
        if self.map_sweeps_:
            bound.solver.set_params(max_iter=self.map_sweeps_, tol=0.0)
        return bound

    def _reached(self) -> float:
        """What restarts are compared by."""
        key = "objective" if self.validation_fraction is None else "validation"
        return float(np.min([entry[key] for entry in self.history_]))


def _take_over(model: GIMC, other: GIMC) -> None:
    """Give a model what another has learned."""
    for name, value in vars(other).items():
        if name.endswith("_"):
            setattr(model, name, value)
