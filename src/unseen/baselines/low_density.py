"""Non-negative factors with a guess, for each blank cell, of whether it is a positive."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, xlogy

from unseen.baselines.one_bit import every_cell
from unseen.data import Observations
from unseen.estimators.base import Completer, refuse_weights
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.parallel import one_blas_thread
from unseen.settings import check_settings
from unseen.solvers import Monitor, Sweep
from unseen.typing import BoolArray, Features, FloatArray
from unseen.validation import check_count, check_fraction, check_positive, check_rng, check_several

__all__ = ["LowDensityNMF"]


class LowDensityNMF(Completer):
    """Non-negative factors; blank cells carry a probability q of being positive (ldNMF).

    min over W, H >= 0 and q   sum_positives (1 - x)^2
        + sum_blank [ q (1 - x)^2 + (1 - q) x^2 + T (q log q + (1 - q) log(1 - q)) ]
        + reg (||W||_F^2 + ||H||_F^2),      x = w_i . h_j,   mean of q = class_prior

    with q = 1 on the positives. For fixed factors q = sigmoid((2x - 1)/T + nu), nu set so that
    the mean is right; for fixed q the factors are a non-negative factorisation of the matrix of
    ones and q. The two take turns while the temperature T falls, which drives q to zero or one.
    Holds all cells, so it refuses large matrices.

    Parameters
    ----------
    class_prior : float, optional
        Share of all cells that are truly positive, seen and hidden; twice the seen share by default.
    reg : float, default=0.1
        Weight of the penalty.
    temperatures : (float, float), default=(1.0, 0.05)
        First and last T.
    n_stages : int, default=6
        Temperatures in geometric steps.
    max_dense_cells : int, default=25_000_000
        Largest number of cells, rows times columns, that is accepted.
    max_iter : int, default=30
        Limit of sweeps for each temperature.
    tol : float, default=1e-4
        Go on when a sweep lowers the objective by less than this share.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Non-negative factors.
    class_prior_ : float
        Mean of q.
    path_ : ndarray of shape (n_stages, 2)
        T and nu at the end of each stage; new rows take the same path.
    history_ : list of dict
        ``objective``, ``time_s`` and ``temperature`` of each sweep; the objective never rises
        while the temperature stays.
    converged_ : bool
        Whether the objective settled at the last temperature.

    Examples
    --------
    >>> from unseen.baselines import LowDensityNMF
    >>> from unseen.datasets import make_positives
    >>> data = make_positives(60, 60, n_groups=3, inside=1.0, across=0.0, rho=0.5, random_state=0)
    >>> model = LowDensityNMF(3, class_prior=1 / 3, random_state=0).fit(data.observations)
    >>> hidden = data.hidden.tocoo()
    >>> bool(model.predict_entries(*hidden.coords).mean() > 0.7)
    True
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        class_prior: float | None = None,
        reg: float = 0.1,
        temperatures: tuple[float, float] = (1.0, 0.05),
        n_stages: int = 6,
        max_dense_cells: int = 25_000_000,
        max_iter: int = 30,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.class_prior = class_prior
        self.reg = reg
        self.temperatures = temperatures
        self.n_stages = n_stages
        self.max_dense_cells = max_dense_cells
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Learn from the positives of ``X``.

        Parameters
        ----------
        X : sparse matrix, array or Observations of shape (n_rows, n_cols)
            Stored non-zeros are positives, all else is unlabelled.
        y : None
            Ignored; there for scikit-learn.
        row_features, col_features : None
            Not used by this model; refused if given.

        Returns
        -------
        self
        """
        check_settings(self)
        if row_features is not None or col_features is not None:
            raise ParameterError("LowDensityNMF takes no row_features or col_features")
        cells = self._read_target(X)
        positive = cells.values.reshape(cells.shape) != 0
        rank, reg = check_count("rank", self.rank), check_positive("reg", self.reg, strict=False)
        self.class_prior_ = self._prior(float(positive.mean()))
        rng = check_rng(self.random_state)
        scale = np.sqrt(self.class_prior_ / rank)
        left, right = ((scale * rng.uniform(0.5, 1.5, (n, rank))).astype(cells.dtype) for n in cells.shape)
        tol, limit = check_positive("tol", self.tol, strict=False), check_count("max_iter", self.max_iter)
        self.history_, nu = [], 0.0
        stages = self._stages()
        self.path_ = np.empty((len(stages), 2))
        with one_blas_thread():
            for stage, temperature in enumerate(stages):
                last = stage == len(stages) - 1
                monitor = Monitor(limit, tol, verbose=self.verbose, label=f"T = {temperature:.3g}", warn=last)
                while True:
                    scores = left @ right.T
                    guess, nu = guesses(scores, positive, temperature, self.class_prior_, nu)
                    _update(left, guess, right, reg)
                    _update(right, guess.T, left, reg)
                    objective = _objective(left, right, guess, positive, temperature, reg)
                    if monitor.record(Sweep({}, objective, {"temperature": temperature})):
                        break
                monitor.close()
                self.history_ += monitor.history
                self.path_[stage] = temperature, nu
        self.row_factors_, self.col_factors_ = left, right
        self.n_iter_, self.converged_ = len(self.history_), monitor.converged
        self._remember(cells)
        return self

    def _seen_among(self, cells: Observations) -> Observations:
        return cells.select(cells.values != 0)  # all cells are stored

    def _read_target(self, X: Any) -> Observations:
        cells = refuse_weights(
            Observations.from_any(X), self, "every cell counts one in its sum over the whole matrix"
        )
        return every_cell(cells, self.max_dense_cells, type(self).__name__)

    def _prior(self, seen: float) -> float:
        if seen == 0.0:
            raise InvalidDataError("X has no observed cell that is positive; at least one is needed")
        if seen == 1.0:
            return 1.0
        if self.class_prior is None:
            return min(2.0 * seen, 0.5 * (1.0 + seen))
        prior = check_fraction("class_prior", self.class_prior)
        if prior <= seen:
            raise ParameterError(f"class_prior={prior:g} must be above the share of positives seen, {seen:g}")
        return prior

    def _stages(self) -> FloatArray:
        given = check_several("temperatures", self.temperatures, "two numbers")
        if len(given) != 2:
            raise ParameterError(f"temperatures must be two numbers, got {self.temperatures!r}")
        first, last = (check_positive("temperatures", value) for value in given)
        return np.geomspace(first, last, check_count("n_stages", self.n_stages))

    def _ranks_cells(self) -> bool:
        return True

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        positive = cells.values.reshape(cells.shape) != 0
        right = self.col_factors_.astype(np.float64)
        left = np.full((cells.shape[0], right.shape[1]), np.sqrt(self.class_prior_ / right.shape[1]))
        for temperature, nu in self.path_:
            for _ in range(self.max_iter):
                guess = expit((2.0 * (left @ right.T) - 1.0) / temperature + nu)
                guess[positive] = 1.0
                _update(left, guess, right, float(self.reg))
        return np.ascontiguousarray(left, dtype=self.row_factors_.dtype)


def guesses(
    scores: FloatArray, positive: BoolArray, temperature: float, prior: float, start: float
) -> tuple[FloatArray, float]:
    """Probabilities of all cells, one on positives, and the nu that gives them the right mean."""
    if positive.all():
        return np.ones(scores.shape, dtype=scores.dtype), start
    slope = ((2.0 * scores.astype(np.float64) - 1.0) / temperature)[~positive]
    wanted = prior * positive.size - int(positive.sum())
    low, high = -1.0 - float(slope.max()), 1.0 - float(slope.min())
    while expit(slope + low).sum() > wanted:
        low -= 10.0
    while expit(slope + high).sum() < wanted:
        high += 10.0
    nu = min(max(start, low), high)
    for _ in range(100):
        q = expit(slope + nu)
        excess = float(q.sum()) - wanted
        if abs(excess) <= 1e-10 * positive.size:
            break
        low, high = (low, nu) if excess > 0 else (nu, high)
        # Newton, held inside of the bracket.
        step = nu - excess / max(float((q * (1.0 - q)).sum()), 1e-300)
        nu = step if low < step < high else 0.5 * (low + high)
    out: FloatArray = np.ones(scores.shape, dtype=scores.dtype)
    out[~positive] = expit(slope + nu)
    return out, float(nu)


def _update(moved: FloatArray, target: FloatArray, fixed: FloatArray, reg: float) -> None:
    """One pass of exact non-negative coordinate steps on ``||target - moved fixed'||^2``, in place."""
    cross, square = target @ fixed, fixed.T @ fixed
    for t in range(moved.shape[1]):
        rest = cross[:, t] - moved @ square[:, t] + moved[:, t] * square[t, t]
        weight = float(square[t, t]) + reg
        moved[:, t] = np.maximum(rest / weight, 0.0) if weight > 0 else 0.0


def _objective(
    left: FloatArray,
    right: FloatArray,
    guess: FloatArray,
    positive: BoolArray,
    temperature: float,
    reg: float,
) -> float:
    x, q = (left @ right.T).astype(np.float64), guess.astype(np.float64)
    fit = float(np.sum(q * (1.0 - x) ** 2 + (1.0 - q) * x**2))
    blank = q[~positive]
    entropy = float(np.sum(xlogy(blank, blank) + xlogy(1.0 - blank, 1.0 - blank)))
    size = float(np.sum(left.astype(np.float64) ** 2) + np.sum(right.astype(np.float64) ** 2))
    return fit + temperature * entropy + reg * size
