"""What the baselines on observed cells share: cold rows and columns, and the door of completers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from unseen.data import Observations
from unseen.data.ids import Side
from unseen.estimators.base import Completer
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.linalg.factors import Pair
from unseen.losses import cells_that_count
from unseen.offsets import Offsets, fit_offsets, row_biases
from unseen.parallel import one_blas_thread
from unseen.settings import check_settings
from unseen.solvers import Monitor
from unseen.typing import BoolArray, Features, FloatArray
from unseen.validation import check_choice, check_count, check_pair, check_positive, check_rng

__all__ = ["ObservedCompleter", "Pair"]


class ObservedCompleter(Completer):
    """Factors of observed cells alone; a row or column without a cell gets the baseline.

    Two extra coordinates carry the baseline mu + b_i + c_j to the cells of cold rows and columns, and nothing
    to the others. A third adds ``center_`` to the cells of warm ones.
    """

    rank: int
    cold: str
    bias_reg: float | tuple[float, float]
    max_iter: int
    tol: float
    random_state: Any
    n_jobs: int | None
    verbose: int
    offsets_: Offsets
    center_: float

    @abstractmethod
    def _learn(self, cells: Observations, rng: np.random.Generator, monitor: Monitor) -> Pair:
        """Factors, sweep by sweep; ``center_`` is set."""

    @abstractmethod
    def _solve_rows(self, cells: Observations, right: FloatArray) -> FloatArray:
        """Factors of new rows with the columns fixed."""

    def _read_target(self, X: Any) -> Observations:
        return cells_that_count(super()._read_target(X))

    def _check_cells(self, cells: Observations) -> None:
        """Refuse values that the model cannot take."""

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Learn from the stored cells of ``X``.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations of shape (n_rows, n_cols)
            Target.
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
            raise ParameterError(f"{type(self).__name__} takes no row_features or col_features")
        cells = self._read_target(X)
        if cells.nnz == 0:
            raise InvalidDataError(f"X ({cells.shape[0]} x {cells.shape[1]}) has no observed cell")
        self._check_cells(cells)
        cold = check_choice("cold", self.cold, ("mean", "biases"))
        self.offsets_ = fit_offsets(cells, cold, check_pair("bias_reg", self.bias_reg))
        monitor = Monitor(
            check_count("max_iter", self.max_iter),
            check_positive("tol", self.tol, strict=False),
            verbose=self.verbose,
            label=type(self).__name__,
        )
        with one_blas_thread():
            pair = self._learn(cells, check_rng(self.random_state), monitor)
        monitor.close()
        self.row_factors_ = self._with_baseline("row", pair.left, np.diff(cells.indptr) == 0, self.offsets_)
        cold_cols = np.diff(cells.csc.indptr) == 0
        self.col_factors_ = self._with_baseline("col", pair.right, cold_cols, self.offsets_)
        self.history_, self.n_iter_ = monitor.history, len(monitor.history)
        self.converged_ = monitor.converged
        self._remember(cells)
        return self

    def _with_baseline(self, side: str, factors: FloatArray, cold: BoolArray, offsets: Offsets) -> FloatArray:
        """Factors with the coordinates of the baseline; those of cold rows or columns are zero.

        A row has (cold, (1 - cold)(mu + b_i), (1 - cold) center), a column (mu + c_j, cold, 1 - cold).
        """
        bias = getattr(offsets, side)
        level = offsets.mean + (np.zeros(cold.size) if bias is None else bias)
        warm = 1.0 - cold
        mine = [cold, warm * level, warm * self.center_] if side == "row" else [level, cold, warm]
        out = np.hstack([np.where(cold[:, None], 0.0, factors), np.column_stack(mine)])
        return np.ascontiguousarray(out, dtype=factors.dtype)

    def _directions(self, side: Side) -> FloatArray:
        return super()._directions(side)[:, :-3]

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        right = np.ascontiguousarray(self.col_factors_[:, :-3])
        factors = self._solve_rows(cells, right).astype(right.dtype, copy=False)
        biases = row_biases(cells, self.offsets_)
        offsets = Offsets(self.offsets_.mean, biases, self.offsets_.col)
        return self._with_baseline("row", factors, np.diff(cells.indptr) == 0, offsets)
