"""The door of all completers: what can be asked of a fitted model."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Any, Literal, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unseen import io, kernels
from unseen.data import Observations, Vocabulary
from unseen.data.pattern import Pattern
from unseen.diagnostics.identify import Spread, TrainingData, identifiability, spread_of
from unseen.diagnostics.lists import steady_lists, within_blocks
from unseen.docstrings import share_options
from unseen.exceptions import InvalidDataError, NotInductiveError
from unseen.linalg.blocked import matmul
from unseen.parallel import one_blas_thread
from unseen.typing import Features, FloatArray, IndexArray
from unseen.validation import check_count, check_entries, check_features, check_n_jobs, check_positive, held

__all__ = ["Completer", "refuse_weights"]


def refuse_weights(cells: Observations, model: Any, why: str) -> Observations:
    """The cells, or an error if they have weights, which this model would have to ignore."""
    if cells.weights is not None:
        raise InvalidDataError(f"{type(model).__name__} takes no weights of cells: {why}")
    return cells


class Completer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that complete a matrix.

    Subclasses fit ``row_factors_`` and ``col_factors_`` and say how rows and columns that
    were not there are embedded; all predictions are inner products.
    """

    row_factors_: FloatArray
    col_factors_: FloatArray
    history_: list[dict[str, Any]]
    n_iter_: int
    converged_: bool
    n_features_in_: int
    row_ids_: Vocabulary | None
    col_ids_: Vocabulary | None

    @abstractmethod
    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        row_features: Any = None,
        col_features: Any = None,
    ) -> Self:
        """Learn from the stored cells of ``X``."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        share_options(cls)

    # -- hooks -----------------------------------------------------------------------

    def _read_target(self, X: Any) -> Observations:
        """Turn user input into observations; what a blank means is up to the subclass."""
        return Observations.from_any(X, duplicates="mean")

    def _embed_rows(self, features: Features) -> FloatArray:
        raise NotInductiveError(self._why_not_inductive("row"))

    def _embed_cols(self, features: Features) -> FloatArray:
        raise NotInductiveError(self._why_not_inductive("col"))

    @abstractmethod
    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        """Row factors of validated new rows."""

    def _why_not_inductive(self, side: str) -> str:
        advice = " (use fold_in if some of their cells are known)" if side == "row" else ""
        return (
            f"{type(self).__name__} was fitted without {side}_features, so it has nothing to say about "
            f"{side}s that it has not seen{advice}"
        )

    # -- predictions -----------------------------------------------------------------

    @overload
    def predict_entries(self, rows: Any, cols: Any, *, raw: bool = False) -> FloatArray: ...

    @overload
    def predict_entries(
        self, rows: Any, cols: Any, *, return_std: Literal[True], raw: bool = False
    ) -> tuple[FloatArray, FloatArray]: ...

    @overload
    def predict_entries(
        self, rows: Any, cols: Any, *, return_std: bool, raw: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]: ...

    def predict_entries(
        self, rows: Any, cols: Any, *, return_std: bool = False, raw: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict single cells of the training matrix.

        Parameters
        ----------
        rows, cols : array-like of int, of equal length
            Row and column numbers.
        return_std : bool, default=False
            Also say how far each prediction moves over solutions that fit as well; see
            :func:`unseen.diagnostics.identifiability`. Models with features are fitted again
            several times for it.
        raw : bool, default=False
            Give scores, which is what factors multiply to. They differ from predictions only where the
            loss has a scale of its own, such as log odds.

        Returns
        -------
        prediction : ndarray of shape (len(rows),)
            On the scale of the data; ``row_factors_[i] @ col_factors_[j]`` for each pair where scores and
            values are the same.
        std : ndarray of shape (len(rows),)
            Only with ``return_std``.
        """
        check_is_fitted(self)
        if return_std:
            found = identifiability(self, rows, cols)
            return found.prediction, found.std
        scores = self._predict_entries(rows, cols)
        return scores if raw else self._to_data(scores)

    def _to_data(self, scores: FloatArray) -> FloatArray:
        """Predictions on the scale of the data, from scores."""
        return scores

    def _predict_entries(self, rows: Any, cols: Any) -> FloatArray:
        shape = (self.row_factors_.shape[0], self.col_factors_.shape[0])
        i, j = check_entries(rows, cols, shape)
        out: FloatArray = np.empty(len(i), dtype=self.row_factors_.dtype)
        step = max(1, 4_000_000 // max(self.row_factors_.shape[1], 1))
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            np.einsum("ij,ij->i", self.row_factors_[i[part]], self.col_factors_[j[part]], out=out[part])
        return out

    def predict_new(self, row_features: Any = None, col_features: Any = None) -> FloatArray:
        """Predict a block of cells for rows or columns that were not in the training data.

        Parameters
        ----------
        row_features : array or sparse matrix, optional
            Features of new rows; left out, the training rows are meant.
        col_features : array or sparse matrix, optional
            Features of new columns; left out, the training columns are meant.

        Returns
        -------
        ndarray of shape (n_new_rows or n_rows, n_new_cols or n_cols)
            Dense block of predictions.
        """
        check_is_fitted(self)
        with one_blas_thread():
            left, right = self.row_factors_, self.col_factors_
            if row_features is not None:
                left = self._embed_rows(self._check_new_features(row_features, "row"))
            if col_features is not None:
                right = self._embed_cols(self._check_new_features(col_features, "col"))
            return self._to_data(matmul(left, right.T, n_threads=self._n_threads()))

    def fold_in(self, X_new: Any, *, row_features: Any = None) -> FloatArray:
        """Row factors of new rows from their observed cells, with the columns fixed.

        Parameters
        ----------
        X_new : array with NaN, sparse matrix or Observations, with the training columns
            Cells of the new rows.
        row_features : array or sparse matrix, optional
            Features of the new rows; needed where the model was fitted with row features. Parts of the model
            that go by features take these, parts without features are solved for from the cells.

        Returns
        -------
        ndarray of shape (n_new_rows, n_factors)
            To be multiplied with ``col_factors_.T``. For a training row it is what a refit of
            that row alone would give.
        """
        check_is_fitted(self)
        cells = self._read_target(X_new)
        if cells.shape[1] != self.n_features_in_:
            raise InvalidDataError(
                f"X has {cells.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        features = None
        if row_features is None and getattr(self, "n_row_features_in_", None) is not None:
            raise NotInductiveError(
                f"{type(self).__name__} was fitted with row_features, and cells alone do not say where a row "
                "belongs: pass row_features= of these rows as well"
            )
        if row_features is not None:
            features = self._check_new_features(row_features, "row")
            if features.shape[0] != cells.shape[0]:
                raise InvalidDataError(
                    f"row_features has {features.shape[0]} rows and X_new has {cells.shape[0]}"
                )
        with one_blas_thread():
            return self._fold_in(cells, features)

    def transform(self, X: Any, row_features: Any = None) -> FloatArray:
        """Complete rows: a dense matrix of predictions for every cell of ``X``.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations, with the training columns
            Rows to complete, known ones or new ones.
        row_features : array or sparse matrix, optional
            Features of these rows, for models that were fitted with them.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
            Predictions, observed cells included.
        """
        factors = self.fold_in(X, row_features=row_features)
        with one_blas_thread():
            return self._to_data(matmul(factors, self.col_factors_.T, n_threads=self._n_threads()))

    def fit_transform(
        self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None
    ) -> FloatArray:
        """Fit to ``X`` and complete it.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations
            Target.
        y : None
            Ignored.
        row_features, col_features : array or sparse matrix, optional
            Side features.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
            Dense matrix of predictions.
        """
        self.fit(X, row_features=row_features, col_features=col_features)
        return self.transform(X, row_features=row_features)

    def recommend(
        self,
        rows: Any,
        k: int = 10,
        *,
        exclude: Any = None,
        candidates: Any = None,
        determined_only: bool = False,
        max_std: float | None = None,
    ) -> tuple[IndexArray, FloatArray]:
        """Columns with the highest predictions for each of the given rows.

        Parameters
        ----------
        rows : array-like of int, or one int
            Training rows.
        k : int, default=10
            Length of each list.
        exclude : sparse matrix or Observations of the training shape, optional
            Its stored cells are left out; pass the training matrix to see only new columns.
        candidates : array-like of int, optional
            Columns that may be recommended; all by default.
        determined_only : bool, default=False
            Leave out columns that no chain of training cells connects with the row, because only a
            baseline is known there. Models with features know more, and leave out nothing.
        max_std : float, optional
            Leave out columns whose prediction moves by more than this over solutions that fit as
            well, as ``predict_entries(..., return_std=True)`` says.

        Returns
        -------
        ids : ndarray of int64, shape (len(rows), k)
            Column numbers by decreasing score, ties by smaller number; -1 where a row has
            fewer than ``k`` columns left.
        scores : ndarray of shape (len(rows), k)
            Predictions; NaN where ``ids`` is -1.
        """
        picked = self._check_rows(rows)
        return self._listed(picked, check_count("k", k), exclude, candidates, determined_only, max_std)

    def _listed(
        self,
        picked: IndexArray,
        k: int,
        exclude: Any,
        candidates: Any,
        determined_only: bool,
        max_std: float | None,
    ) -> tuple[IndexArray, FloatArray]:
        """Lists of checked rows, without what the data does not determine if that is asked for."""

        def top(rows: IndexArray, length: int, columns: Any) -> tuple[IndexArray, FloatArray]:
            return self._best_columns(rows, length, exclude, columns)

        def in_blocks(rows: IndexArray, length: int, columns: Any) -> tuple[IndexArray, FloatArray]:
            spread = spread_of(self)
            if not spread.blocks_matter:
                return top(rows, length, columns)
            return within_blocks(top, spread.blocks, rows, length, columns)

        chosen = in_blocks if determined_only else top
        if max_std is None:
            return chosen(picked, k, candidates)
        limit = check_positive("max_std", max_std, strict=False)

        def std(rows: IndexArray, cols: IndexArray) -> FloatArray:
            return identifiability(self, rows, cols).std

        return steady_lists(chosen, std, limit, self.n_features_in_, picked, k, candidates)

    def _best_columns(
        self, picked: IndexArray, k: int, exclude: Any, candidates: Any
    ) -> tuple[IndexArray, FloatArray]:
        return self._top_columns(self.row_factors_[picked], k, self._excluded(exclude, picked), candidates)

    def _top_columns(
        self,
        factors: FloatArray,
        k: int,
        exclude: tuple[IndexArray, IndexArray] | None,
        candidates: Any,
    ) -> tuple[IndexArray, FloatArray]:
        right, ids = self.col_factors_, None
        if candidates is not None:
            asked = np.unique(np.atleast_1d(np.asarray(candidates)))
            ids, _ = check_entries(asked, np.zeros_like(asked), (right.shape[0], 1))
            right = np.ascontiguousarray(right[ids])
        found, scores = kernels.topk(
            factors, right, k, exclude=exclude, col_ids=ids, n_threads=self._n_threads()
        )
        return found, self._to_data(scores)

    def _excluded(self, exclude: Any, picked: IndexArray) -> tuple[IndexArray, IndexArray] | None:
        if exclude is None:
            return None
        cells = Observations.from_any(exclude)
        if cells.shape != (self.row_factors_.shape[0], self.col_factors_.shape[0]):
            raise InvalidDataError(
                f"exclude has shape {cells.shape}; it must have the training shape "
                f"({self.row_factors_.shape[0]}, {self.col_factors_.shape[0]})"
            )
        part = cells.csr[picked]
        return part.indptr, part.indices

    # -- helpers ---------------------------------------------------------------------

    def _n_rows(self) -> int:
        return int(self.row_factors_.shape[0])

    def _check_rows(self, rows: Any) -> IndexArray:
        check_is_fitted(self)
        asked = np.atleast_1d(np.asarray(rows))
        return check_entries(asked, np.zeros_like(asked), (self._n_rows(), 1))[0]

    def _remember(
        self,
        cells: Observations,
        row_features: Features | None = None,
        col_features: Features | None = None,
    ) -> None:
        """Hold on to the training data, for what is asked about the fit later; not saved.

        The arrays are shared with the caller's. What solvers have derived from them is let go.
        """
        pattern = Pattern(cells.indptr, cells.indices, cells.shape)
        own = Observations(pattern, cells.values, weights=cells.weights)
        self._spread = Spread(self, TrainingData(own, row_features, col_features))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_spread"}

    def _n_threads(self) -> int:
        return check_n_jobs(getattr(self, "n_jobs", None))

    def _check_new_features(self, features: Any, side: str) -> Features:
        checked = held(check_features(features, None, f"{side}_features", dtype=self.row_factors_.dtype))
        width = getattr(self, f"n_{side}_features_in_", None)
        if width is None:
            raise NotInductiveError(self._why_not_inductive(side))
        if checked.shape[1] != width:
            raise InvalidDataError(
                f"{side}_features has {checked.shape[1]} columns; the model was fitted with {width}"
            )
        return checked

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a directory, replacing an older one only when complete.

        Parameters
        ----------
        path : str or path-like
            Directory to write; see :func:`unseen.load`.
        """
        check_is_fitted(self)
        io.save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
