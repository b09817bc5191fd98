"""The baseline that everything must beat."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from unseen.cores import Full
from unseen.data import Observations
from unseen.data.ids import Side
from unseen.estimators.base import Completer
from unseen.estimators.clipping import Clip
from unseen.exceptions import InvalidDataError, ParameterError, UnsupportedComposition
from unseen.losses import Squared, cells_that_count
from unseen.maps import Constant, Identity
from unseen.offsets import Offsets, cell_mean, row_biases
from unseen.parallel import one_blas_thread
from unseen.problem import Pair, Problem
from unseen.regularisers import Ridge
from unseen.settings import check_settings
from unseen.solvers import Monitor
from unseen.solvers.biases import BiasSweeps
from unseen.terms import Term
from unseen.typing import Features, FloatArray
from unseen.validation import check_count, check_pair, check_positive

__all__ = ["BiasModel"]


class BiasModel(Completer):
    """A mean, a bias for each row and a bias for each column.

    min over b, c   1/2 sum_observed w_ij (x_ij - mu - b_i - c_j)^2 + reg_row/2 ||b||^2 + reg_col/2 ||c||^2

    w is the weight of a cell, one unless cells have some, and mu the mean of the observed cells by these
    weights. Rows or columns without a cell have bias zero. In the parts of :class:`Completion` the biases
    are ``Term(Identity(), Constant(), Full(), Ridge(reg_row))`` and its mirror image.

    Parameters
    ----------
    reg : float or (float, float), default=5.0
        Weight of the penalty on the biases of rows and columns, or one for each.

    Attributes
    ----------
    mean_ : float
        Mean of the observed cells.
    row_bias_, col_bias_ : ndarray
        Biases.
    row_factors_, col_factors_ : ndarray
        The same as factors with two coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import BiasModel
    >>> X = np.array([[1.0, 2.0, np.nan], [2.0, 3.0, 4.0]])
    >>> float(BiasModel(reg=1e-6).fit(X).predict_entries([0], [2])[0].round(2))
    3.0
    """

    def __init__(
        self,
        reg: float | tuple[float, float] = 5.0,
        *,
        max_iter: int = 200,
        tol: float = 1e-6,
        clip: Clip = None,
        verbose: int = 0,
    ) -> None:
        self.reg = reg
        self.max_iter = max_iter
        self.tol = tol
        self.clip = clip
        self.verbose = verbose

    @one_blas_thread()
    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Learn mean and biases from the stored cells of ``X``.

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
            raise ParameterError(
                "BiasModel takes no row_features or col_features; use IMC for side information"
            )
        cells = self._read_target(X)
        if cells.nnz == 0:
            raise InvalidDataError(f"X ({cells.shape[0]} x {cells.shape[1]}) has no observed cell")
        problem = self._problem(cells)
        monitor = Monitor(
            check_count("max_iter", self.max_iter),
            check_positive("tol", self.tol, strict=False),
            verbose=self.verbose,
            label=type(self).__name__,
        )
        state = BiasSweeps().solve(problem, {}, np.random.default_rng(0), monitor)
        row, col = state["0.core"][:, 0], state["1.core"][0]
        self.mean_ = cell_mean(cells)
        # Kept as offsets, as those that other models subtract first.
        self.offsets_ = offsets = Offsets(self.mean_, row, col, *check_pair("reg", self.reg))
        self.row_bias_, self.col_bias_ = row.astype(cells.dtype), col.astype(cells.dtype)
        self.row_factors_ = offsets.row_coordinates(cells.shape[0], row).astype(cells.dtype)
        self.col_factors_ = offsets.col_coordinates(cells.shape[1], col).astype(cells.dtype)
        self.history_, self.n_iter_ = monitor.history, len(monitor.history)
        self.converged_ = monitor.converged
        self._remember(cells)
        return self

    def _read_target(self, X: Any) -> Observations:
        return cells_that_count(super()._read_target(X))

    def _problem(self, cells: Observations) -> Problem:
        """Two biases over the mean."""
        reg_row, reg_col = check_pair("reg", self.reg)
        terms = [
            Term(Identity(), Constant(), Full(), Ridge(reg_row)),
            Term(Constant(), Identity(), Full(), Ridge(reg_col)),
        ]
        level = Pair(np.full((cells.shape[0], 1), cell_mean(cells)), np.ones((cells.shape[1], 1)))
        return Problem(cells, terms, Squared(), known=level)

    def _directions(self, side: Side) -> FloatArray:
        raise UnsupportedComposition(f"{type(self).__name__} has no factors that could be similar")

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        offsets: Offsets = self.offsets_
        factors = offsets.row_coordinates(cells.shape[0], row_biases(cells, offsets))
        return np.ascontiguousarray(factors, dtype=self.row_factors_.dtype)
