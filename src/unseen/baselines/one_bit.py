"""1-bit matrix completion by maximum likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.cores import LowRank
from unseen.data import Observations
from unseen.estimators.composed import ComposedCompleter, Composition
from unseen.exceptions import InvalidDataError, ParameterError, TooLargeError
from unseen.losses import Logistic
from unseen.regularisers import Nuclear
from unseen.solvers import LBFGS
from unseen.terms import Term
from unseen.typing import FloatArray
from unseen.validation import check_count

__all__ = ["OneBitMC", "every_cell"]


class OneBitMC(ComposedCompleter):
    """Low-rank log odds by maximum likelihood, every cell taken as seen.

    min over W, H   sum_ij c_ij log(1 + exp(-y_ij w_i . h_j)) + reg/2 (||W||_F^2 + ||H||_F^2)

    with c the weight of a stored cell and one elsewhere, and y = 1 for positives and -1 for all other cells:
    the penalised form of 1-bit completion with a logistic link. It does not know that blanks may be hidden
    positives, which is what it is compared for. All cells enter the sum, so it refuses large matrices.
    Predictions are probabilities; with ``raw=True`` they are log odds.

    Parameters
    ----------
    reg : float, default=1.0
        Weight of the penalty, that of a nuclear norm on the log odds.
    max_dense_cells : int, default=4_000_000
        Largest number of cells, rows times columns, that is accepted.
    max_iter : int, default=200
        Limit of quasi-Newton steps.
    tol : float, default=1e-5
        Stop when a step lowers the objective by less than this share.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of the log odds.
    history_ : list of dict
        ``objective`` and ``time_s`` of each step.
    n_iter_ : int
        Steps done.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.baselines import OneBitMC
    >>> groups = np.repeat([0, 1], 5)
    >>> X = (groups[:, None] == groups[None, :]).astype(float)
    >>> model = OneBitMC(2, reg=0.1, random_state=0).fit(X)
    >>> model.predict_entries([0, 0], [1, 9]).round()
    array([1., 0.])
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        reg: float = 1.0,
        max_dense_cells: int = 4_000_000,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.reg = reg
        self.max_dense_cells = max_dense_cells
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _seen_among(self, cells: Observations) -> Observations:
        return cells.select(cells.values != 0)  # all cells are stored

    def _ranks_cells(self) -> bool:
        return True

    def _read_target(self, X: Any) -> Observations:
        return every_cell(Observations.from_any(X), self.max_dense_cells, type(self).__name__)

    def _refuse_empty(self, cells: Observations) -> None:
        if not (cells.values if cells.weights is None else cells.values * cells.weights).any():
            raise InvalidDataError(
                f"X ({cells.shape[0]} x {cells.shape[1]}) has no observed cell that is positive"
            )

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        if has_row_features or has_col_features:
            raise ParameterError("OneBitMC takes no row_features or col_features")
        return Composition([Term(core=LowRank(self.rank), reg=Nuclear(self.reg))], Logistic(), LBFGS())

    def predict_probability(self, rows: Any, cols: Any, *, positions: bool = False) -> FloatArray:
        """Probability that single cells are positive.

        Parameters
        ----------
        rows, cols : array-like of ids, of equal length
            Rows and columns; positions where the model was fitted without ids.
        positions : bool, default=False
            Take positions, whatever the ids.

        Returns
        -------
        ndarray of shape (len(rows),)
            Logistic function of the predicted log odds.
        """
        probability: FloatArray = self.predict_proba(rows, cols, positions=positions)[:, 1]
        return probability


def every_cell(cells: Observations, limit: Any, name: str) -> Observations:
    """All cells stored: ones where there is a positive, zeros elsewhere; those left blank weigh one."""
    n, m = cells.shape
    if n * m > check_count("max_dense_cells", limit):
        raise TooLargeError(
            f"{name} looks at every cell, and {n} x {m} = {n * m:,} cells are more than "
            f"max_dense_cells={limit:,}; use BiasMC, whose cost grows with the positives only"
        )
    dense = np.zeros((n, m), dtype=cells.dtype)
    dense[cells.rows, cells.indices] = cells.values != 0
    weights = None
    if cells.weights is not None:
        weights = np.ones_like(dense)
        weights[cells.rows, cells.indices] = cells.weights
    every = Observations.from_dense(dense, weights=weights)
    return every._changed(row_ids=cells.row_ids, col_ids=cells.col_ids, origin=cells.origin)
