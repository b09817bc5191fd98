"""Probabilistic matrix factorisation, by the gradient of mini-batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.baselines._observed import ObservedCompleter, Pair
from unseen.cores import LowRank
from unseen.data import Observations
from unseen.estimators.clipping import Clip
from unseen.linalg.blocked import inner
from unseen.losses import Squared
from unseen.offsets import cell_mean
from unseen.problem import Problem
from unseen.regularisers import Ridge
from unseen.solvers import ALS, Monitor, Sweep
from unseen.solvers.rows import FreeTerm, solve_rows
from unseen.terms import Term
from unseen.typing import Array, FloatArray, IndexArray
from unseen.validation import check_choice, check_count, check_fraction, check_pair, check_positive

__all__ = ["PMF"]

ZERO_SHARE = 1e-12
"""What a penalty of zero counts as, in units of the other one."""


class PMF(ObservedCompleter):
    """Factors of the observed cells less their mean, with a Gaussian prior on each factor.

    min over U, V   sum_observed w_ij (x_ij - mu - u_i . v_j)^2
                    + reg_U sum_i a_i ||u_i||^2 + reg_V sum_j b_j ||v_j||^2

    w is the weight of a cell, one unless cells have some. a_i and b_j are the sums of the weights of row i
    and column j, which is the number of their cells (``per="cell"``), or one (``per="factor"``). Gradient
    steps on mini-batches with momentum, so the objective may rise; ``solver="als"`` minimises the same
    objective by exact row and column solves (:class:`unseen.solvers.ALS` of one term with a ridge), and never
    rises.

    Parameters
    ----------
    reg : float or (float, float), default=0.005
        Weight of the penalties, or one for rows and one for columns.
    per : {"cell", "factor"}, default="cell"
        Whether a factor is penalised once for each of its cells, or once.
    solver : {"sgd", "als"}, default="sgd"
        Mini-batches, or alternating least squares.
    learning_rate : float, default=0.005
        Length of a step along the gradient of a batch (a sum over its cells).
    momentum : float, default=0.8
        Share of the last step that is kept.
    batch_size : int, default=1000
        Cells of a batch.
    cold : {"mean", "biases"}, default="mean"
        Prediction where a row or column has no cell: the mean, or the mean and the bias that is known.
    bias_reg : float or (float, float), default=5.0
        Ridge of these biases.
    max_iter : int, default=50
        Limit of passes over the cells.
    tol : float, default=1e-4
        Stop when a pass changes the objective by less than this share.
    random_state : int or Generator, optional
        Seed of the start and of the batches.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors, the baseline as extra coordinates.
    history_ : list of dict
        ``objective`` and ``time_s`` of each pass.
    n_iter_ : int
        Passes done.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.baselines import PMF
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[2, 2] = np.nan
    >>> model = PMF(2, solver="als", max_iter=1000, random_state=0).fit(X)
    >>> bool(abs(model.predict_entries([1], [1])[0] - 4.0) < 0.5)
    True
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        reg: float | tuple[float, float] = 0.005,
        per: str = "cell",
        solver: str = "sgd",
        learning_rate: float = 0.005,
        momentum: float = 0.8,
        batch_size: int = 1000,
        cold: str = "mean",
        bias_reg: float | tuple[float, float] = 5.0,
        max_iter: int = 50,
        tol: float = 1e-4,
        random_state: Any = None,
        clip: Clip = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.reg = reg
        self.per = per
        self.solver = solver
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.cold = cold
        self.bias_reg = bias_reg
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.clip = clip
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(self, cells: Observations, rng: np.random.Generator, monitor: Monitor) -> Pair:
        rank = check_count("rank", self.rank)
        check_choice("per", self.per, ("cell", "factor"))
        solver = check_choice("solver", self.solver, ("sgd", "als"))
        self.center_ = cell_mean(cells)
        cells = cells.with_values((cells.values - self.center_).astype(cells.dtype))
        pair = Pair(*((0.1 * rng.standard_normal((n, rank))).astype(cells.dtype) for n in cells.shape))
        return (self._by_als if solver == "als" else self._by_batches)(cells, pair, rng, monitor)

    def _regs(self) -> FloatArray:
        regs: FloatArray = np.asarray(check_pair("reg", self.reg))
        # A zero beside a penalty is as good as any tiny number: the factors can shift all size to its side.
        return np.asarray(np.maximum(regs, ZERO_SHARE * regs.max()))

    def _ridge(self, reg: float) -> Ridge:
        """A penalty with this weight beside squares without the factor 1/2."""
        return Ridge(2.0 * reg, degree_scaling=float(self.per == "cell"))

    def _by_als(self, cells: Observations, pair: Pair, rng: np.random.Generator, monitor: Monitor) -> Pair:
        regs = self._regs()
        # Factors s U and V / s have the same product, and one penalty where those of U and V differ.
        stretch = float((regs[0] / regs[1]) ** 0.25) if regs[0] != regs[1] else 1.0
        term = Term(core=LowRank(pair.left.shape[1]), reg=self._ridge(float(np.sqrt(regs[0] * regs[1]))))
        problem = Problem(cells, [term], Squared(2.0), n_threads=self._n_threads())
        kind = cells.dtype.type
        start = {"0.row": pair.left * kind(stretch), "0.col": pair.right / kind(stretch)}
        state = ALS().solve(problem, start, rng, monitor)
        return Pair(state["0.row"] / kind(stretch), state["0.col"] * kind(stretch))

    def _by_batches(
        self, cells: Observations, pair: Pair, rng: np.random.Generator, monitor: Monitor
    ) -> Pair:
        size = check_count("batch_size", self.batch_size)
        rate = check_positive("learning_rate", self.learning_rate)
        momentum = check_fraction("momentum", self.momentum, include_low=True)
        penalties = self._penalties(cells)
        left, right = np.array(pair.left), np.array(pair.right)
        speeds: tuple[Array, Array] = np.zeros_like(left), np.zeros_like(right)
        last = np.inf
        while True:
            order = rng.permutation(cells.nnz)
            for start in range(0, cells.nnz, size):
                picked = order[start : start + size]
                slopes = self._slopes(cells, picked, left, right, penalties)
                for factor, speed, slope in zip((left, right), speeds, slopes, strict=True):
                    speed *= momentum
                    speed += (rate * slope).astype(speed.dtype)
                    factor -= speed
            objective = self._objective(cells, left, right, penalties)
            settled = (
                bool(abs(last - objective) <= float(self.tol) * abs(last)) if np.isfinite(last) else False
            )
            last = objective
            if monitor.record(Sweep({}, objective, {}, settled)):
                return Pair(left, right)

    def _penalties(self, cells: Observations) -> tuple[FloatArray, FloatArray]:
        """Penalty of each row and of each column."""
        regs = check_pair("reg", self.reg)
        if self.per == "factor":
            return np.full(cells.shape[0], regs[0]), np.full(cells.shape[1], regs[1])
        return regs[0] * cells.degrees("row"), regs[1] * cells.degrees("col")

    def _slopes(
        self,
        cells: Observations,
        picked: IndexArray,
        left: FloatArray,
        right: FloatArray,
        penalties: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Gradient of the cells of a batch, with their share of the penalty."""
        i, j = cells.rows[picked], cells.indices[picked]
        weights = None if cells.weights is None else cells.weights[picked]
        rest = np.einsum("ij,ij->i", left[i], right[j]) - cells.values[picked]
        rest = rest if weights is None else weights * rest
        matrix = sparse.csr_array((rest, (i, j)), shape=cells.shape)
        if self.per == "cell":
            regs = check_pair("reg", self.reg)
            shares = (
                regs[0] * np.bincount(i, weights, minlength=left.shape[0]),
                regs[1] * np.bincount(j, weights, minlength=right.shape[0]),
            )
        else:
            shares = (penalties[0] * picked.size / cells.nnz, penalties[1] * picked.size / cells.nnz)
        return (
            2.0 * (matrix @ right + shares[0][:, None] * left),
            2.0 * (matrix.T @ left + shares[1][:, None] * right),
        )

    def _objective(
        self,
        cells: Observations,
        left: FloatArray,
        right: FloatArray,
        penalties: tuple[FloatArray, FloatArray],
    ) -> float:
        scores = kernels.sddmm(cells.indptr, cells.indices, left, right, n_threads=self._n_threads())
        rest = scores - cells.values
        sizes = (np.einsum("ij,ij->i", f, f, dtype=np.float64) for f in (left, right))
        weighted = rest if cells.weights is None else cells.weights * rest
        return inner(weighted, rest) + sum(float(p @ s) for p, s in zip(penalties, sizes, strict=True))

    def _solve_rows(self, cells: Observations, right: FloatArray) -> FloatArray:
        centred = cells.with_values((cells.values - self.center_).astype(right.dtype))
        rule = self._ridge(float(self._regs()[0])).factored()
        terms = [FreeTerm(right, rule)]
        return solve_rows(centred, Squared(2.0), terms, None, n_threads=self._n_threads())
