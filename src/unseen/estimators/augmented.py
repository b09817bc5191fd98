"""Augmented matrix factorisation: observed cells and a pull of all others to the baseline."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.cores import LowRank
from unseen.data import Observations
from unseen.diagnostics import find_blocks
from unseen.estimators.auto_reg import AutoReg, number_or_auto
from unseen.estimators.blocks import BlockwiseCompleter
from unseen.estimators.clipping import Clip
from unseen.estimators.composed import Composition
from unseen.exceptions import ParameterError
from unseen.linalg.blocked import inner
from unseen.losses import Background, Loss, Squared, cells_that_count
from unseen.maps import Identity
from unseen.offsets import cell_mean
from unseen.problem import Problem
from unseen.regularisers import Ridge
from unseen.sensing import Law, Sensing, expected_weights, n_constraints
from unseen.solvers import AlternatingLineSearch, AugmentedALS, Solver
from unseen.state import State
from unseen.terms import Term
from unseen.validation import check_choice, check_count, check_fraction, check_positive

__all__ = ["AugmentedMF"]

AUGMENTATIONS = ("expected", "rank_one", "hashed", "explicit")


class AugmentedMF(BlockwiseCompleter, AutoReg):
    """Factorisation with random measurements added to the observed cells (AMF).

    min over U, V   ||A(UV') - b||^2 + reg (||U||_F^2 + ||V||_F^2)

    which is (L) of the paper divided by its lambda, reg = 1/lambda. The first measurements of A are the
    observed cells, the others are random, and b is A of the observed cells with zeros in between. The mean
    over all draws (AMF, equation E) is

    w_obs sum_observed (u_i . v_j - x_ij)^2 + w_unobs sum_others (u_i . v_j)^2
        with  w_obs = 1 + weight (1 - 1/p),  w_unobs = weight,  p = max(cells, ceil(c0 rank (n + m) ln(n m)))

    so that augmentation pulls every cell that is not observed to the baseline which ``center`` names.
    ``augmentation="expected"`` minimises this mean itself. In the parts of :class:`Completion` it is
    ``Squared(2 w_obs, Background(2 w_unobs))`` with ``Ridge(2 reg)``.

    Parameters
    ----------
    reg : float or "auto", default="auto"
        eta = 1/lambda, weight of the penalty; the paper has 0.02. "auto" walks down a path of penalties of
        the mean over all draws, keeps the best on a tenth of the cells, then fits to all of them.
    augmentation : {"expected", "rank_one", "hashed", "explicit"}, default="expected"
        The mean over all draws; one draw of products of random signs; one draw of sparse random signs,
        made anew in each pass; the same draw, stored.
    weight : float, default=1.0
        tau: 1 is the paper, 0 is plain factorisation.
    c0 : float, default=1.0
        Number of measurements in units of rank (n + m) ln(n m).
    gamma : float, default=0.01
        Chance of each sign in a sparse measurement, below 1/2. It does not matter for the mean.
    resample_original : bool, default=True
        Add random entries to the measurements of observed cells too, as Algorithm 1 does. If False,
        w_obs = 1 + weight (p - cells)/p and w_unobs = weight (p - cells)/p.
    center : {"none", "mean", "biases"}, default="biases"
        What the pull is to: zero, the mean, or a :class:`BiasModel`. Zero makes no sense for ratings.
    bias_reg : float or (float, float), default=5.0
        Ridge of the biases, or one for rows and one for columns.
    solver : {"auto", "als", "linesearch"}, default="auto"
        Alternating least squares, for "expected" only, or the paper's gradient steps with exact line search.
    cross_component : {"baseline", "model"}, default="baseline"
        Prediction for cells whose row and column no chain of observed cells joins: the offsets alone, or
        what the factors happen to say.
    tol : float, default=1e-6
        Stop when the squared change of the product UV' is below this share of its square, or when a sweep
        lowers the objective by less than this share.
    eps_abs : float, optional
        Stop when the squared change of the product is below this number, the paper's rule, in place of
        ``tol``.
    max_nonzeros : int, default=200_000_000
        Non-zeros that ``augmentation="explicit"`` may store.
    random_state : int or Generator, optional
        Seed of the start and of the measurements.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors, offsets as extra coordinates. Predictions are their inner products, except between blocks
        with ``cross_component="baseline"``.
    reg_ : float
        Penalty in use.
    reg_path_ : list of dict
        For reg="auto", the ``reg`` and ``validation`` (mean squared error on the held-out cells) of each
        penalty that was tried, the offsets alone first.
    n_constraints_ : int
        p.
    weights_ : (float, float)
        w_obs and w_unobs.
    measurement_ : Sensing or None
        Law and seed of the draw; None for "expected".
    row_block_, col_block_ : ndarray of int
        Connected block of each row and column, largest first; -1 for those without a cell.
    history_ : list of dict
        ``objective``, ``time_s`` and ``change`` (squared change of the product) of each sweep.
    converged_ : bool
        Whether a stopping rule was met before ``max_iter``.

    Notes
    -----
    ``fold_in`` solves new rows by the mean over all draws, for every ``augmentation``.

    Examples
    --------
    Two blocks without a common row or column: between them there is nothing but the mean.

    >>> import numpy as np
    >>> from unseen import AugmentedMF
    >>> X = np.full((6, 6), np.nan)
    >>> X[:3, :3], X[3:, 3:] = np.outer([1, 2, 3], [1, 2, 1]), np.outer([2, 1, 2], [1, 3, 2])
    >>> model = AugmentedMF(2, center="mean", random_state=0).fit(X)
    >>> model.predict_entries([0], [5]) == np.nanmean(X)
    array([ True])
    """

    ridge_per_reg = 2.0

    def __init__(
        self,
        rank: int = 10,
        *,
        reg: float | str = "auto",
        augmentation: str = "expected",
        weight: float = 1.0,
        c0: float = 1.0,
        gamma: float = 0.01,
        resample_original: bool = True,
        center: str = "biases",
        bias_reg: float | tuple[float, float] = 5.0,
        solver: str = "auto",
        cross_component: str = "baseline",
        max_iter: int = 100,
        tol: float = 1e-6,
        eps_abs: float | None = None,
        max_nonzeros: int = 200_000_000,
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
        self.augmentation = augmentation
        self.weight = weight
        self.c0 = c0
        self.gamma = gamma
        self.resample_original = resample_original
        self.center = center
        self.bias_reg = bias_reg
        self.solver = solver
        self.cross_component = cross_component
        self.max_iter = max_iter
        self.tol = tol
        self.eps_abs = eps_abs
        self.max_nonzeros = max_nonzeros
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.clip = clip
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        if has_row_features or has_col_features:
            raise ParameterError(
                "AugmentedMF takes no row_features or col_features; use IMC for side information"
            )
        check_choice("cross_component", self.cross_component, ("baseline", "model"))
        reg = Ridge(self.ridge_per_reg * number_or_auto("reg", self.reg))
        term = Term(Identity(), Identity(), LowRank(check_count("rank", self.rank)), reg)
        kind = check_choice("augmentation", self.augmentation, AUGMENTATIONS)
        name = check_choice("solver", self.solver, ("auto", "als", "linesearch"))
        eps = None if self.eps_abs is None else check_positive("eps_abs", self.eps_abs)
        if kind == "expected":
            line_search = name == "linesearch"
            solver = AlternatingLineSearch(eps_abs=eps) if line_search else AugmentedALS(eps_abs=eps)
            return Composition([term], Squared(), solver)
        if name == "als":
            raise ParameterError(
                f"solver='als' needs augmentation='expected', got {kind!r}: rows of one draw are not solved "
                "one by one; use solver='linesearch' or 'auto'"
            )
        sensing = Sensing(kind, max_nonzeros=check_count("max_nonzeros", self.max_nonzeros))
        return Composition([term], Squared(2.0), AlternatingLineSearch(eps_abs=eps), measurement=sensing)

    def _weigh(self, loss: Loss, shape: tuple[int, int], n_cells: int) -> Law:
        """Set the weights of the mean over all draws of measurements; they follow from counts alone."""
        law = Law(
            n_constraints(shape, n_cells, int(self.rank), check_positive("c0", self.c0)),
            check_positive("weight", self.weight, strict=False),
            check_fraction("gamma", self.gamma, high=0.5),
            bool(self.resample_original),
        )
        self.n_constraints_, self.weights_ = law.n_rows, expected_weights(law, n_cells)
        observed, others = self.weights_
        loss.set_params(weight=2.0 * observed, background=Background(2.0 * others))
        return law

    def _loss_of(self, cells: Observations) -> Loss:
        loss = Squared()
        self._weigh(loss, cells.shape, cells_that_count(cells).nnz)
        return loss

    def _counts_blanks(self, loss: Loss) -> bool:
        return self.augmentation == "expected" or super()._counts_blanks(loss)

    def _start_spread(self, mean: float) -> float:
        """Root mean square of the entries of a start; ``mean`` is that of the values."""
        # Centred data starts near the baseline, raw data near its mean.
        return 0.1 if self.center != "none" else max(float(np.sqrt(abs(mean) / int(self.rank))), 0.1)

    def _tune(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> None:
        super()._tune(problem, solver, rng)
        cells = problem.observations
        self.measurement_ = problem.measurement
        mean = problem.loss if self.measurement_ is None else Squared()
        law = self._weigh(mean, cells.shape, cells_that_count(cells).nnz)
        if self.measurement_ is not None:
            self.measurement_.set_params(
                n_rows=law.n_rows,
                weight=law.weight,
                gamma=law.gamma,
                resample_original=law.resample_original,
                seed=int(rng.integers(1 << 62)),
            )
        blocks = find_blocks(cells)
        self.row_block_, self.col_block_ = blocks.row_block, blocks.col_block

    def _keep(self, problem: Problem, state: State) -> None:
        super()._keep(problem, state)
        if problem.measurement is not None:  # new rows are solved by the mean over all draws
            self.loss_ = self._loss_of(problem.observations)

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        state = super()._start(problem, solver, rng)
        if self.warm_start and hasattr(self, "row_factors_"):
            return state
        if self._chosen is not None and self._chosen.start is not None:
            return state
        cells = problem.observations
        scale = self._start_spread(cell_mean(cells))
        known = cells.degrees("row") > 0, cells.degrees("col") > 0
        for key, seen in zip(("0.row", "0.col"), known, strict=True):
            factor = state[key]
            factor *= factor.dtype.type(scale / np.sqrt(inner(factor, factor) / factor.size))
            factor[~seen] = 0.0  # rows without a cell stay at the baseline
        return state
