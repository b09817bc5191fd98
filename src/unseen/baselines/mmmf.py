"""Fast maximum-margin matrix factorisation: ratings as intervals of a low-rank score."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from unseen import kernels
from unseen.baselines._observed import ObservedCompleter, Pair
from unseen.data import Observations
from unseen.data.ids import Side
from unseen.estimators.ids import Places
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.solvers import Monitor, Sweep
from unseen.typing import Array, BoolArray, Features, FloatArray, IndexArray
from unseen.validation import check_count, check_positive

__all__ = ["MMMF"]


GAP_CELLS = 1 << 18
"""Cells times gaps between levels that are looked at together."""


class MMMF(ObservedCompleter):
    """Ordinal low-rank scores with thresholds for each row (fast MMMF).

    min over U, V, theta   (||U||_F^2 + ||V||_F^2)/2
                           + C sum_observed w_ij sum_t h(T_ij^t (theta_it - u_i . v_j))

    w is the weight of a cell, one unless cells have some. t runs over the gaps between consecutive levels,
    T = 1 if the value is at or below gap t and -1 if it is above, and h is the smooth hinge: 1/2 - z for
    z <= 0, (1 - z)^2/2 up to 1, then 0. The prediction is a level, the one with as many gaps below it as the
    score has thresholds below it. Rows and columns without a cell get the baseline.

    Parameters
    ----------
    C : float, default=1.5
        Weight of the loss.
    max_levels : int, default=100
        Most distinct values that are accepted; there is a threshold between any two, for each row.
    cold : {"mean", "biases"}, default="mean"
        Prediction where a row or column has no cell: the mean, or the mean and the bias that is known.
    bias_reg : float or (float, float), default=5.0
        Ridge of these biases.
    max_iter : int, default=100
        Limit of quasi-Newton steps.
    tol : float, default=1e-5
        Stop when a step lowers the objective by less than this share.

    Attributes
    ----------
    levels_ : ndarray
        Distinct values of the observed cells, rising.
    row_factors_, col_factors_ : ndarray
        Factors of the scores. Their products rank the columns of a row; predictions are levels.
    thresholds_ : ndarray of shape (n_rows, n_levels - 1)
        Thresholds of each row.
    history_ : list of dict
        ``objective`` and ``time_s`` of each step.
    n_iter_ : int
        Steps done.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.baselines import MMMF
    >>> X = np.array([[1, 1, 3, 3], [1, 1, 3, 3], [3, 3, 1, np.nan], [3, 3, 1, 1]])
    >>> model = MMMF(1, C=10.0, random_state=0).fit(X)
    >>> model.predict_entries([2, 2], [0, 3])
    array([3., 1.])
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        C: float = 1.5,
        max_levels: int = 100,
        cold: str = "mean",
        bias_reg: float | tuple[float, float] = 5.0,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.C = C
        self.max_levels = max_levels
        self.cold = cold
        self.bias_reg = bias_reg
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True  # levels: a threshold for each gap between them, and each row
        return tags

    def _check_cells(self, cells: Observations) -> None:
        levels = np.unique(cells.values)
        limit = check_count("max_levels", self.max_levels)
        if levels.size > limit:
            raise InvalidDataError(
                f"X has {levels.size} distinct values; MMMF learns thresholds between them and takes at most "
                f"max_levels={limit} of them"
            )

    def _learn(self, cells: Observations, rng: np.random.Generator, monitor: Monitor) -> Pair:
        rank, weight = check_count("rank", self.rank), check_positive("C", self.C)
        self.center_ = 0.0
        self.levels_ = np.unique(cells.values)
        n, m = cells.shape
        n_gaps = self.levels_.size - 1
        place = np.searchsorted(self.levels_, cells.values)
        start = np.concatenate(
            [
                0.1 * rng.standard_normal((n + m) * rank),
                np.tile(np.arange(n_gaps) - 0.5 * (n_gaps - 1), n),
            ]
        )

        def parts(vector: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            left, right, theta = np.split(vector, [n * rank, (n + m) * rank])
            return left.reshape(n, rank), right.reshape(m, rank), theta.reshape(n, n_gaps)

        def value_and_grad(vector: FloatArray) -> tuple[float, FloatArray]:
            value, grads = mmmf_value(cells, place, *parts(vector), weight, self._n_threads())
            return value, np.concatenate([grad.ravel() for grad in grads])

        def watch(intermediate_result: Any) -> None:
            if monitor.record(Sweep({}, float(intermediate_result.fun), {})):
                raise StopIteration

        found = minimize(
            value_and_grad,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=watch,
            options={"maxiter": self.max_iter, "maxfun": 10 * self.max_iter + 10, "ftol": 0.0, "gtol": 1e-9},
        )
        if not monitor.history:
            monitor.record(Sweep({}, float(found.fun), {}, settled=True))
        left, right, theta = parts(found.x)
        self.thresholds_ = theta.astype(cells.dtype)
        return Pair(left.astype(cells.dtype), right.astype(cells.dtype))

    def _predict_entries(self, i: Places, j: Places) -> FloatArray:
        scores = super()._predict_entries(i, j)
        cold = (self.row_factors_[i, -3] > 0) | (self.col_factors_[j, -2] > 0)
        return np.where(cold, scores, self._level(scores[:, None], self.thresholds_[i])[:, 0])

    def _average(self, side: Side) -> FloatArray:
        raise ParameterError("on_unknown='popular': rows of MMMF have thresholds, which cannot be averaged")

    def _level(self, scores: FloatArray, thresholds: FloatArray) -> FloatArray:
        """Levels of a row of scores for each row of thresholds."""
        above: Array = np.zeros(scores.shape, dtype=np.int64)
        for t in range(thresholds.shape[1]):
            above += scores >= thresholds[:, t, None]
        return self.levels_[above]

    def _block(self, row_features: Features | None, col_features: Features | None) -> FloatArray:
        scores = super()._block(row_features, col_features)
        return self._levels_of(scores, self.row_factors_, self.thresholds_)

    def _complete(self, cells: Observations, factors: FloatArray) -> FloatArray:
        scores = factors @ self.col_factors_.T
        _, thresholds = self._new_rows_of(cells, np.ascontiguousarray(self.col_factors_[:, :-3]))
        return self._levels_of(scores, factors, thresholds)

    def _hidden_scores(self, cells: Observations, hidden: BoolArray, factors: FloatArray) -> FloatArray:
        completed = self._complete(self._read_target(cells.select(~hidden)), factors)
        return completed[cells.rows[hidden], cells.indices[hidden]]

    def _levels_of(self, scores: FloatArray, factors: FloatArray, thresholds: FloatArray) -> FloatArray:
        cold = (factors[:, -3, None] > 0) | (self.col_factors_[None, :, -2] > 0)
        return np.where(cold, scores, self._level(scores, thresholds))

    def _solve_rows(self, cells: Observations, right: FloatArray) -> FloatArray:
        return self._new_rows_of(cells, right)[0]

    def _new_rows_of(self, cells: Observations, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Factors and thresholds of new rows: a convex problem for each of them."""
        fixed = right.astype(np.float64)
        rank, n_gaps = fixed.shape[1], self.levels_.size - 1
        # A new row may have a value between the levels: it counts as the nearest one.
        middle = 0.5 * (self.levels_[1:] + self.levels_[:-1])
        place = np.searchsorted(middle, cells.values)
        out = np.zeros((cells.shape[0], rank + n_gaps))
        neutral = np.concatenate([np.zeros(rank), np.arange(n_gaps) - 0.5 * (n_gaps - 1)])
        for row in range(cells.shape[0]):
            own = slice(int(cells.indptr[row]), int(cells.indptr[row + 1]))
            near, level = fixed[cells.indices[own]], place[own]
            weights = None if cells.weights is None else cells.weights[own]

            def value_and_grad(
                vector: FloatArray,
                near: FloatArray = near,
                level: IndexArray = level,
                weights: FloatArray | None = weights,
            ) -> tuple[float, FloatArray]:
                u, theta = vector[:rank], vector[rank:]
                value, by_score, by_theta = hinge_sums(
                    near @ u, level, np.broadcast_to(theta, (level.size, n_gaps)), weights
                )
                grad = np.concatenate([u + self.C * (by_score @ near), self.C * by_theta.sum(axis=0)])
                return 0.5 * float(u @ u) + self.C * value, grad

            if level.size:
                found = minimize(value_and_grad, neutral, jac=True, method="L-BFGS-B", options={"gtol": 1e-8})
                out[row] = found.x
            else:
                out[row] = neutral
        return out[:, :rank], out[:, rank:].astype(right.dtype)


def hinge_sums(
    scores: FloatArray, level: IndexArray, thresholds: FloatArray, weights: FloatArray | None = None
) -> tuple[float, FloatArray, FloatArray]:
    """Smooth hinge over all gaps, times the weights of the cells.

    Its sum, its derivatives by scores and by the thresholds of each cell.
    """
    total, by_score = 0.0, np.zeros(scores.size)
    by_threshold = np.empty(thresholds.shape)
    n_gaps = thresholds.shape[1]
    step = max(1, GAP_CELLS // max(scores.size, 1))
    for start in range(0, n_gaps, step):
        gaps = np.arange(start, min(start + step, n_gaps))
        sign = np.where(level[:, None] <= gaps, 1.0, -1.0)
        z = sign * (thresholds[:, gaps] - scores[:, None])
        inside = np.clip(z, 0.0, 1.0)
        # 1/2 - z below zero, (1 - z)^2 / 2 up to one, then nothing.
        hinge = 0.5 * (1.0 - inside) ** 2 - np.minimum(z, 0.0)
        slope = sign * (inside - 1.0)
        if weights is not None:
            hinge, slope = weights[:, None] * hinge, weights[:, None] * slope
        total += float(np.sum(hinge))
        by_threshold[:, gaps] = slope
        by_score -= slope.sum(axis=1)
    return total, by_score, by_threshold


def mmmf_value(
    cells: Observations,
    level: IndexArray,
    left: FloatArray,
    right: FloatArray,
    theta: FloatArray,
    weight: float,
    n_threads: int = 1,
) -> tuple[float, tuple[FloatArray, FloatArray, FloatArray]]:
    """Objective of MMMF and its gradients by U, V and theta."""
    scores = kernels.sddmm(cells.indptr, cells.indices, left, right, n_threads=n_threads)
    value, by_score, by_threshold = hinge_sums(scores, level, theta[cells.rows], cells.weights)
    csc = cells.csc
    by_left = left + weight * kernels.spmm(cells.indptr, cells.indices, by_score, right, n_threads=n_threads)
    by_right = right + weight * kernels.spmm(
        csc.indptr, csc.indices, by_score[csc.order], left, n_threads=n_threads
    )
    by_theta = np.empty_like(theta)
    for t in range(theta.shape[1]):
        by_theta[:, t] = weight * np.bincount(cells.rows, by_threshold[:, t], minlength=theta.shape[0])
    size = 0.5 * (float(np.vdot(left, left)) + float(np.vdot(right, right)))
    return size + weight * value, (by_left, by_right, by_theta)
