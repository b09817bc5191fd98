"""The imputer: a transformer that fills the gaps of a table and keeps what was observed."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names, _check_feature_names_in, check_is_fitted

from unseen.data.frames import first_other
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.imputation.gaussian import Gaussian, fill_gaps, learn_gaussian, pairwise_gaussian
from unseen.parallel import one_blas_thread
from unseen.settings import check_settings
from unseen.typing import Array, FloatArray
from unseen.validation import as_frame, check_n_jobs, check_rng

__all__ = ["Imputer"]

SHRINKAGES = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Rows with independent columns that an automatic model tries to add."""
SHARE, MOST_CELLS = 0.1, 20_000
"""Of the observed cells, held out to choose; and how many are asked at most."""
SWEEP_COST = 5e9
"""Sum of cubed numbers of gaps up to which rounds are run; above it columns are taken in pairs."""


class Imputer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill the gaps of a table of measurements, and keep what was observed.

    Columns are scaled to unit variance first, so that their units do not matter. By default each gap is the
    best linear prediction from all observed cells of its row, under one normal distribution of the rows whose
    mean and covariance are learned from the incomplete table; how far the covariance is shrunk is chosen on
    a tenth of the cells, with column means among the choices. Any completer can do the work instead.

    Parameters
    ----------
    model : completer, optional
        Model of the scaled table, such as ``MatrixFactorization()``; by default the normal distribution.
    add_indicator : bool, default=False
        Append a column of zeros and ones for each column with gaps at training.
    keep_empty_features : bool, default=False
        Columns without any observed cell at training are left out, with a warning; if True they stay and
        are filled with zero.
    max_iter : int, default=30
        Limit of rounds in which the covariance is learned.
    random_state : int or Generator, optional
        Seed of the held-out cells.
    n_jobs : int, optional
        Threads; None takes all cores. The result does not depend on it.

    Attributes
    ----------
    statistics_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of the observed cells of each column; a column that is constant has scale
        one, so its gaps get its only value. NaN where a column is empty.
    model_ : completer or Gaussian
        What was fitted to the scaled columns.
    shrinkage_ : float
        For the normal distribution, the rows of independent columns that were added; infinity for the
        means alone.
    choices_ : list of dict
        ``shrinkage`` and ``validation`` (mean squared error of held-out cells in units of the columns'
        variances) of each choice.
    n_iter_ : int
        Rounds in which the covariance was learned.
    kept_ : ndarray of int
        Columns that are not left out.
    indicator_ : ndarray of int
        Columns with gaps at training, which ``add_indicator`` marks.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Imputer
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(170, 10, 200)
    >>> X = np.column_stack([height, 0.9 * height - 90 + rng.normal(0, 3, 200)])
    >>> X[0, 1] = np.nan
    >>> filled = Imputer(random_state=0).fit_transform(X)
    >>> bool(abs(filled[0, 1] - (0.9 * height[0] - 90)) < 2)
    True
    """

    def __init__(
        self,
        model: Any = None,
        *,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        max_iter: int = 30,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the observed cells of ``X``.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
            NaN (or None, NA) where a cell is missing; finite numbers elsewhere.
        y : object
            Ignored; there for pipelines.

        Returns
        -------
        self
        """
        check_settings(self)
        values = _read(X)
        _check_feature_names(self, X, reset=True)
        self.n_features_in_ = values.shape[1]
        seen = ~np.isnan(values)
        counts = seen.sum(axis=0)
        if not counts.any():
            raise InvalidDataError(f"X ({values.shape[0]} x {values.shape[1]}) has no observed cell")
        whole = np.where(seen, values, 0.0)
        with np.errstate(invalid="ignore"):
            self.statistics_ = whole.sum(axis=0) / np.where(counts, counts, np.nan)
        off = np.where(seen, values - self.statistics_, 0.0)
        scale = np.sqrt(np.square(off).sum(axis=0) / np.maximum(counts, 1))
        tiny = scale <= 1e-12 * np.maximum(np.abs(np.nan_to_num(self.statistics_)), 1e-300)
        self.scale_ = np.where(counts > 0, np.where(tiny, 1.0, scale), np.nan)
        self._varies = np.flatnonzero((counts > 0) & ~tiny)
        self.kept_ = np.arange(len(counts)) if self.keep_empty_features else np.flatnonzero(counts)
        self.indicator_ = np.flatnonzero(counts < len(values))
        if len(self.kept_) < len(counts):
            empty = np.flatnonzero(counts == 0)
            warnings.warn(
                f"columns {self._names(X)[empty][:5].tolist()} have no observed cell and are left out "
                "(keep_empty_features=True keeps them)",
                UserWarning,
                stacklevel=2,
            )
        self._fit_scaled(*self._scaled(values))
        return self

    def transform(self, X: Any) -> Any:
        """Fill the gaps of rows, known ones or new ones.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
            Rows with the columns of training.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
            Without gaps; observed cells are as they were. A frame where ``set_output`` asks for one.
        """
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        values = _read(X)
        if values.shape[1] != self.n_features_in_:
            raise InvalidDataError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        seen = ~np.isnan(values)
        out = np.where(seen, values, np.nan_to_num(self.statistics_))
        scaled, known = self._scaled(values)
        gaps = ~known
        if gaps.any():
            place = self._varies
            filled = self._filled(scaled, known) * self.scale_[place] + self.statistics_[place]
            out[:, place] = np.where(known, out[:, place], filled)
        out = out[:, self.kept_]
        if self.add_indicator:
            out = np.hstack([out, ~seen[:, self.indicator_]])
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that come out.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of training, if it had none.

        Returns
        -------
        ndarray of str
            Those that are kept, then ``missingindicator_NAME`` for the indicators.
        """
        check_is_fitted(self)
        names = np.asarray(_check_feature_names_in(self, input_features), dtype=object)
        marks = [f"missingindicator_{name}" for name in names[self.indicator_]] if self.add_indicator else []
        return np.concatenate([names[self.kept_], np.asarray(marks, dtype=object)])

    # -- the scaled table ------------------------------------------------------------

    def _scaled(self, values: FloatArray) -> tuple[FloatArray, Array]:
        """Columns that vary, in units of their deviation, zero at gaps; and what is observed."""
        part = (values[:, self._varies] - self.statistics_[self._varies]) / self.scale_[self._varies]
        seen = ~np.isnan(part)
        return np.where(seen, part, 0.0), seen

    def _fit_scaled(self, scaled: FloatArray, seen: Array) -> None:
        self.shrinkage_: float = np.inf
        self.n_iter_ = 1
        self.choices_: list[dict[str, float]] = []
        if self.model is not None:
            if not hasattr(self.model, "fold_in"):
                raise ParameterError(
                    f"model must be a completer such as MatrixFactorization(), or None; found {self.model!r}"
                )
            self.model_: Any = clone(self.model).fit(np.where(seen, scaled, np.nan))
            return
        width = scaled.shape[1]
        self.model_ = Gaussian(np.zeros(width), np.eye(width))
        if width < 2:
            return
        with one_blas_thread():
            self._choose(scaled, seen)
            if np.isfinite(self.shrinkage_):
                self.model_ = self._learned(scaled, seen, self.shrinkage_, None)

    def _choose(self, scaled: FloatArray, seen: Array) -> None:
        """The shrinkage that fills held-out cells best; the means alone are one choice."""
        rng = check_rng(self.random_state)
        rows, cols = np.nonzero(seen)
        held = rng.permutation(len(rows))[: min(round(SHARE * len(rows)), MOST_CELLS)]
        if not held.size:
            return
        rows, cols = rows[held], cols[held]
        known = seen.copy()
        known[rows, cols] = False
        truth, training = scaled[rows, cols], np.where(known, scaled, 0.0)
        asked, place = np.unique(rows, return_inverse=True)
        self.choices_ = [{"shrinkage": np.inf, "validation": float(np.mean(truth**2))}]
        found = None
        for shrinkage in reversed(SHRINKAGES):
            found = self._learned(training, known, shrinkage, found)
            filled = fill_gaps(training[asked], known[asked], found, n_threads=self._n_threads())
            error = float(np.mean((filled[place, cols] - truth) ** 2))
            self.choices_.append({"shrinkage": shrinkage, "validation": error})
        self.shrinkage_ = min(self.choices_, key=lambda choice: choice["validation"])["shrinkage"]

    def _learned(self, scaled: FloatArray, seen: Array, shrinkage: float, start: Gaussian | None) -> Gaussian:
        n_threads = self._n_threads()
        gaps = (~seen).sum(axis=1, dtype=np.float64)
        cheap = float(np.sum(gaps**3)) <= SWEEP_COST
        if start is None or not cheap:
            start = pairwise_gaussian(scaled, seen, shrinkage, n_threads=n_threads)
        if not cheap:
            return start
        found, changes = learn_gaussian(
            scaled, seen, shrinkage, start, max_iter=self.max_iter, n_threads=n_threads
        )
        self.n_iter_ = max(1, len(changes))
        return found

    def _filled(self, scaled: FloatArray, seen: Array) -> FloatArray:
        if isinstance(self.model_, Gaussian):
            with one_blas_thread():
                return fill_gaps(scaled, seen, self.model_, n_threads=self._n_threads())
        out: FloatArray = np.asarray(self.model_.transform(np.where(seen, scaled, np.nan)))
        return out

    def _n_threads(self) -> int:
        return check_n_jobs(self.n_jobs)

    def _names(self, X: Any) -> Array:
        names = getattr(self, "feature_names_in_", None)
        return np.arange(self.n_features_in_) if names is None else np.asarray(names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _read(X: Any) -> FloatArray:
    """A table as floats with NaN at gaps; infinities and text are refused by row and column."""
    if sparse.issparse(X):
        raise InvalidDataError(
            "X is sparse, and in a table of measurements an absent cell is a gap: pass a dense array or a "
            "frame with NaN"
        )
    try:
        values = X.to_numpy(dtype=float, na_value=np.nan) if hasattr(X, "iloc") else np.asarray(X)
        if np.iscomplexobj(values):
            raise InvalidDataError("Complex data not supported: X must hold real numbers")
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidDataError):
            raise
        raise InvalidDataError(
            f"X must hold numbers, with NaN at gaps{_where_text(X)} ({error}); encode text columns first"
        ) from None
    if values.ndim != 2:
        raise InvalidDataError(
            f"X must have two dimensions, and has {values.ndim}. Reshape your data: one row for each sample"
        )
    for count, what in zip(values.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise InvalidDataError(
                f"X has 0 {what}(s) (shape={values.shape}) while a minimum of 1 is required."
            )
    if np.isinf(values).any():
        row, col = np.argwhere(np.isinf(values))[0]
        name = repr(X.columns[col]) if hasattr(X, "columns") else col
        raise InvalidDataError(f"X holds infinity at row {row}, column {name}; only NaN stands for a gap")
    return values


def _where_text(X: Any) -> str:
    """The first column of a frame that holds something else than numbers, as words."""
    frame = as_frame(X, "X")
    if frame is None:
        return ""
    for name in frame.columns:
        found = first_other(frame[name])
        if found is not None:
            return f", and column {name!r} has {found[1]!r:.60} in row {found[0]}"
    return ""
