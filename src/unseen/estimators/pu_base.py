"""What all methods for positive and unlabelled cells share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations
from unseen.data.ids import find_ids
from unseen.estimators.composed import ComposedCompleter, Composition
from unseen.estimators.pu_rates import Rates, n_positives
from unseen.estimators.reg_scale import lambda_max, resolve_reg
from unseen.exceptions import (
    DataWarning,
    DivergedError,
    InvalidDataError,
    ParameterError,
    UnsupportedComposition,
)
from unseen.linalg.blocked import gram
from unseen.losses import CellLoss, Quadratic
from unseen.parallel import one_blas_thread
from unseen.problem import Problem
from unseen.solvers import Solver
from unseen.terms import Term
from unseen.totals import ScoreBox
from unseen.typing import Array, BoolArray, Features, FloatArray
from unseen.validation import check_choice, check_fraction, check_rng

__all__ = ["PositiveCompleter", "read_positives"]

THRESHOLD_SAMPLE = 200_000
"""Cells drawn to find a quantile of the scores."""


class PositiveCompleter(ComposedCompleter):
    """Base of the completers for which stored non-zeros are positives and all else is unlabelled."""

    alpha_: float
    rho_: float
    class_prior_: float
    reg_: float
    threshold_: float

    # Defaults for subclasses that do not offer the option.
    reg: float | str = 1.0
    threshold: float | str = "midpoint"
    weights: bool | None = None

    # -- hooks of the methods --------------------------------------------------------

    @abstractmethod
    def _rates(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> Rates:
        """Weight, hidden share and prior, as given or chosen from the data."""

    @abstractmethod
    def _loss(self) -> Quadratic:
        """Loss at ``alpha_`` and ``rho_``."""

    @abstractmethod
    def _terms(self, has_row_features: bool, has_col_features: bool, reg: float) -> list[Term]:
        """The single term of the method, with a penalty of weight ``reg``."""

    @abstractmethod
    def _solver(self) -> Solver:
        """The solver that the hyper-parameters name."""

    def _total(self) -> ScoreBox | None:
        """Bounds on all scores, if any."""
        return None

    def _level(self, rates: Rates) -> float:
        """Value that a positive would have without any penalty."""
        return rates.level

    # -- fitting ---------------------------------------------------------------------

    def _read_target(self, X: Any) -> Observations:
        return read_positives(X, self.weights)

    def _refuse_empty(self, cells: Observations) -> None:
        if n_positives(cells) == 0:
            warnings.warn(
                f"X ({cells.shape[0]} x {cells.shape[1]}) has no positive, so every prediction is zero",
                DataWarning,
                stacklevel=3,
            )

    def _fit_validated(self, cells: Observations, features: dict[str, Features | None]) -> None:
        rng = check_rng(self.random_state)
        rates = self._set_rates(cells, features, rng)
        self.reg_ = resolve_reg(self.reg, lambda: self._largest_reg(cells, features))
        super()._fit_validated(cells, features)
        self.threshold_ = self._choose_threshold(rates, rng)

    def _set_rates(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> Rates:
        """Find the rates and keep them; of ``cells`` given ones need no more than ``nnz`` and ``shape``."""
        rates = self._rates(cells, features, rng)
        self.alpha_, self.rho_, self.class_prior_ = (float(value) for value in rates)
        return rates

    def _largest_reg(self, cells: Observations, features: dict[str, Features | None]) -> float:
        terms = self._terms(features["row"] is not None, features["col"] is not None, 0.0)
        problem = Problem(
            cells,
            terms,
            self._loss(),
            row_features=features["row"],
            col_features=features["col"],
            n_threads=self._n_threads(),
        )
        return lambda_max(problem, np.random.default_rng(0))

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        terms = self._terms(has_row_features, has_col_features, self.reg_)
        return Composition(terms, self._loss(), self._solver(), self._total())

    def _choose_threshold(self, rates: Rates, rng: np.random.Generator) -> float:
        if not isinstance(self.threshold, str):
            return check_fraction("threshold", self.threshold, low=-np.inf, high=np.inf)
        if check_choice("threshold", self.threshold, ("midpoint", "prior")) == "midpoint":
            return 0.5 * self._level(rates)
        n, m = self.row_factors_.shape[0], self.col_factors_.shape[0]
        if n * m <= THRESHOLD_SAMPLE:
            scores: FloatArray = (self.row_factors_ @ self.col_factors_.T).ravel()
        else:
            drawn = rng.integers(n, size=THRESHOLD_SAMPLE), rng.integers(m, size=THRESHOLD_SAMPLE)
            scores = self.predict_entries(*drawn, positions=True)
        return float(np.quantile(scores.astype(np.float64), 1.0 - rates.class_prior))

    # -- what can be asked -----------------------------------------------------------

    def predict_labels(self, rows: Any, cols: Any, *, positions: bool = False) -> BoolArray:
        """Say of single cells whether they are positive: prediction above ``threshold_``.

        Parameters
        ----------
        rows, cols : array-like of ids, of equal length
            Rows and columns; positions where the model was fitted without ids.
        positions : bool, default=False
            Take positions, whatever the ids.

        Returns
        -------
        ndarray of bool, shape (len(rows),)
            True for positive.
        """
        labels: BoolArray = self.predict_entries(rows, cols, positions=positions) > self.threshold_
        return labels

    def explain(self, X: Any, row: Any, col: Any, *, positions: bool = False) -> tuple[Array, FloatArray]:
        """Split a score over the row's own positives.

        With the columns fixed, a row's factors are linear in its positives,
        ``w_i = M_i^-1 sum_j d_ij h_j``, so the score ``w_i . h_c`` is a sum over them.

        Parameters
        ----------
        X : sparse matrix, array or Observations with the training columns
            Matrix that holds the row's positives: the training matrix, or one with new rows.
        row : int or str
            Row of ``X``, by its id if it has ids.
        col : int or str
            Column whose score is explained; its position where the model was fitted without ids.
        positions : bool, default=False
            Take and return positions, whatever the ids.

        Returns
        -------
        cols : ndarray
            The row's positives, by decreasing contribution.
        contributions : ndarray
            Their shares of the score; they add up to what ``fold_in`` of the row predicts, which
            is the prediction itself for a training row of a model fitted by least squares.
        """
        check_is_fitted(self)
        self._refuse_to_explain()
        cells = self._read_matched(X, "X", positions, new_rows=True)
        if cells.shape[1] != self.n_features_in_:
            raise InvalidDataError(f"X has {cells.shape[1]} columns; the model has {self.n_features_in_}")
        own_ids = None if positions else cells.row_ids
        (i,) = find_ids(row, own_ids, cells.shape[0], "row", "row")
        (c,) = self._places(col, "col", "col", positions)
        own = slice(int(cells.indptr[i]), int(cells.indptr[i + 1]))
        ids = cells.indices[own].astype(np.int64)
        only = np.zeros(cells.nnz, dtype=bool)
        only[own] = True
        loss = CellLoss(self._loss(), cells.select(only))
        curvature, linear = loss.normal_terms()
        with one_blas_thread():
            right = self.col_factors_.astype(np.float64, copy=False)
            near = right[ids]
            scaling = np.float64(loss.cells.degrees("row")[i]) ** getattr(self, "degree_scaling", 0.0)
            system = loss.blank.weight * gram(right, n_threads=self._n_threads())
            system += self.reg_ * scaling * np.eye(right.shape[1])
            system += (near.T * curvature) @ near
            if not np.isfinite(system).all():
                raise DivergedError("the equations of the row hold NaN or infinity")
            shares = linear * (near @ (np.linalg.pinv(system, hermitian=True) @ right[c]))
        order = np.argsort(-shares, kind="stable")
        return self._named(ids[order], "col", positions), shares[order].astype(self.col_factors_.dtype)

    def _refuse_to_explain(self) -> None:
        row_map, _, _, reg = self.terms_[0].parts()
        if row_map.inductive:
            raise UnsupportedComposition(
                "explain splits a score over the positives that the row's factors were solved from; "
                "here they come from row_features"
            )
        if not reg.factored().smooth:
            raise UnsupportedComposition(
                "explain needs rows that are linear in their positives; bounds on the factors break that"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def read_positives(X: Any, weights: bool | None) -> Observations:
    """Cells that are positives; ``weights`` says what values other than one mean."""
    if not (weights is None or isinstance(weights, (bool, np.bool_))):
        raise ParameterError(f"weights must be None, True or False, got {weights!r}.")
    # Repeated events add up to a weight; without weights a repeated positive is one positive.
    merge: Any = "sum" if weights else "mean"
    cells = Observations.from_any(X, duplicates=merge, accept_nan=not sparse.issparse(X))
    return _positives(cells, weights)


def _positives(cells: Observations, weights: bool | None) -> Observations:
    """Drop stored zeros; refuse what is neither a positive nor asked for.

    A cell of weight zero says nothing, whatever its value. It stays, as a positive that counts nothing:
    dropped, it would be one of the blank cells, which say something here.
    """
    if cells.weights is not None:
        silent = cells.weights == 0
        cells = cells.with_values(np.where(silent, cells.values.dtype.type(1), cells.values))
        _refuse(
            cells,
            (cells.values == 0) & (cells.weights != 1),
            "a stored zero is a blank cell here, and these weigh what the method gives them: its weight can "
            "be 1, or 0 to say nothing",
        )
    values = cells.values
    _refuse(cells, values < 0, "a positive has a value above zero", "Negative values in data: ")
    _refuse(
        cells,
        (values != 0) & (values != 1) if weights is None else np.zeros(0, dtype=bool),
        "positives are ones; pass weights=True to let values weigh the positives (counts, durations), "
        "or weights=False to take every non-zero as one positive",
    )
    kept = cells if values.all() else cells.select(values != 0)
    return kept.with_values(np.ones_like(kept.values)) if weights is False else kept


def _refuse(cells: Observations, bad: BoolArray, why: str, title: str = "") -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise InvalidDataError(
            f"{title}X has the value {cells.values[first]:g} in {cells.spot(first)} ({int(bad.sum())} such "
            f"cells); {why}"
        )
