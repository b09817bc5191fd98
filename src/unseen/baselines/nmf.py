"""Non-negative factors of observed cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen import kernels
from unseen.baselines._observed import ObservedCompleter, Pair
from unseen.data import Observations
from unseen.estimators.clipping import Clip
from unseen.exceptions import InvalidDataError
from unseen.linalg.blocked import inner
from unseen.linalg.score_gradient import Blank
from unseen.losses import CellLoss, Squared
from unseen.offsets import cell_mean
from unseen.regularisers import Separable
from unseen.solvers import Monitor, Sweep
from unseen.solvers.rows import solve_bounded_rows
from unseen.typing import FloatArray
from unseen.validation import check_count, check_positive

__all__ = ["NMF"]


class NMF(ObservedCompleter):
    """Non-negative factors of the observed cells by multiplicative updates.

    min over U, V >= 0   sum_observed w_ij (x_ij - u_i . v_j)^2 + reg (||U||_F^2 + ||V||_F^2)

    U <- U * ((W * X) V) / ((W * U V') V + reg U) with W the weights of observed cells (one unless they have
    some) and zero elsewhere, then the same for V. The objective never rises. Rows and columns without a cell
    get the baseline.

    Parameters
    ----------
    reg : float, default=0.06
        Weight of the penalty.
    cold : {"mean", "biases"}, default="mean"
        Prediction where a row or column has no cell: the mean, or the mean and the bias that is known.
    bias_reg : float or (float, float), default=5.0
        Ridge of these biases.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors, the baseline of cold rows and columns as extra coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.baselines import NMF
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[2, 2] = np.nan
    >>> model = NMF(1, reg=1e-6, max_iter=500, random_state=0).fit(X)
    >>> float(model.predict_entries([2], [2])[0].round(1))
    12.0
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        reg: float = 0.06,
        cold: str = "mean",
        bias_reg: float | tuple[float, float] = 5.0,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
        clip: Clip = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.reg = reg
        self.cold = cold
        self.bias_reg = bias_reg
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.clip = clip
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_cells(self, cells: Observations) -> None:
        below = np.flatnonzero(cells.values < 0)
        if below.size:
            at = int(below[0])
            raise InvalidDataError(
                f"Negative values in data: X has {cells.values[at]:g} in {cells.spot(at)}; products of "
                "non-negative factors are zero or larger"
            )

    def _learn(self, cells: Observations, rng: np.random.Generator, monitor: Monitor) -> Pair:
        rank, reg = check_count("rank", self.rank), check_positive("reg", self.reg, strict=False)
        n_threads, csc = self._n_threads(), cells.csc
        self.center_ = 0.0
        scale = np.sqrt(cell_mean(cells) / rank)
        left, right = ((scale * rng.uniform(0.5, 1.5, (n, rank))).astype(cells.dtype) for n in cells.shape)
        tiny = np.finfo(cells.dtype).tiny
        weights = cells.weights
        values = cells.values if weights is None else weights * cells.values
        values_csc = values[csc.order]

        def scores() -> FloatArray:
            return kernels.sddmm(cells.indptr, cells.indices, left, right, n_threads=n_threads)

        def weighted(numbers: FloatArray) -> FloatArray:
            return numbers if weights is None else weights * numbers

        while True:
            above = kernels.spmm(cells.indptr, cells.indices, values, right, n_threads=n_threads)
            below = kernels.spmm(cells.indptr, cells.indices, weighted(scores()), right, n_threads=n_threads)
            left = left * (above / (below + reg * left + tiny)).astype(left.dtype)
            above = kernels.spmm(csc.indptr, csc.indices, values_csc, left, n_threads=n_threads)
            at_cells = weighted(scores())[csc.order]
            below = kernels.spmm(csc.indptr, csc.indices, at_cells, left, n_threads=n_threads)
            right = right * (above / (below + reg * right + tiny)).astype(right.dtype)
            rest = scores() - cells.values
            objective = inner(weighted(rest), rest) + reg * (inner(left, left) + inner(right, right))
            if monitor.record(Sweep({}, objective, {})):
                return Pair(left, right)

    def _solve_rows(self, cells: Observations, right: FloatArray) -> FloatArray:
        rule = Separable(ridge=float(self.reg), lower=0.0)
        curvature, linear = CellLoss(Squared(), cells).normal_terms()
        return solve_bounded_rows(cells, curvature, linear, right, rule, blank=Blank())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
