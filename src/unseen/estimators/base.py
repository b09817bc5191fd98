"""The door of all completers: what can be asked of a fitted model."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unseen import io
from unseen.data import Observations, Origin, Vocabulary
from unseen.data.feature_frames import NamedFeatures, read_features
from unseen.data.ids import SeenCells, Side
from unseen.data.merging import TrainingCells
from unseen.data.pattern import Pattern
from unseen.diagnostics.identify import Spread, TrainingData, identifiability
from unseen.docstrings import share_options
from unseen.estimators.clipping import clipped, limits_of
from unseen.estimators.ids import Places
from unseen.estimators.judging import Judged
from unseen.estimators.recommending import UNKNOWN, Recommender
from unseen.estimators.updating import Updates
from unseen.exceptions import InvalidDataError, NotInductiveError, ParameterError
from unseen.kernels import provider_for
from unseen.kernels.providers import HostProvider, Provider
from unseen.linalg.blocked import matmul
from unseen.parallel import one_blas_thread
from unseen.typing import Array, Features, FloatArray
from unseen.validation import check_n_jobs

__all__ = ["Completer", "refuse_weights"]


def refuse_weights(cells: Observations, model: Any, why: str) -> Observations:
    """The cells, or an error if they have weights, which this model would have to ignore."""
    if cells.weights is not None:
        raise InvalidDataError(f"{type(model).__name__} takes no weights of cells: {why}")
    return cells


class Completer(Recommender, Updates, Judged, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that complete a matrix.

    Subclasses fit ``row_factors_`` and ``col_factors_`` and say how rows and columns that
    were not there are embedded; all predictions are inner products.
    """

    history_: list[dict[str, Any]]
    n_iter_: int
    converged_: bool

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

    def predict_entries(
        self,
        rows: Any,
        cols: Any,
        *,
        return_std: bool = False,
        raw: bool = False,
        on_unknown: Literal["raise", "skip", "popular"] = "raise",
        positions: bool = False,
        as_frame: bool = False,
    ) -> Any:
        """Predict single cells of the training matrix.

        Parameters
        ----------
        rows, cols : array-like of ids, of equal length
            Rows and columns; positions where the model was fitted without ids.
        return_std : bool, default=False
            Also say how far each prediction moves over solutions that fit as well; see
            :func:`unseen.diagnostics.identifiability`. Models with features are fitted again
            several times for it. Of a model that averages it is the standard deviation of a new
            observation of the cell, noise included, from the kept samples.
        raw : bool, default=False
            Give scores, which is what factors multiply to. They differ from predictions only where the
            loss has a scale of its own, such as log odds.
        on_unknown : {"raise", "skip", "popular"}, default="raise"
            What to do about ids that the model does not know: refuse, give NaN (no line of a frame), or
            take them for the average of all rows or columns.
        positions : bool, default=False
            Take positions, whatever the ids.
        as_frame : bool, default=False
            Return a table instead, in the user's library and names of columns.

        Returns
        -------
        prediction : ndarray of shape (len(rows),)
            On the scale of the data; ``row_factors_[i] @ col_factors_[j]`` for each pair where scores and
            values are the same.
        std : ndarray of shape (len(rows),)
            Only with ``return_std``.
        frame : DataFrame or Table
            With ``as_frame`` alone: row, column, ``prediction`` and, if asked for, ``std``.
        """
        check_is_fitted(self)
        i, j = self._pairs(rows, cols, positions, on_unknown, UNKNOWN)
        found: tuple[FloatArray, ...]
        if return_std:
            if raw or not ((i >= 0) & (j >= 0)).all():
                raise ParameterError("return_std=True is for predictions (raw=False) of known ids only")
            found = self._with_std(i, j)
        else:
            scores = self._scores_of(i, j, on_unknown)
            found = (scores if raw else self._predictions_at(i, j, scores),)
        if not as_frame:
            return found if return_std else found[0]
        names = self._side_names("prediction", "std")
        told = (self._asked(rows, i, "row", positions), self._asked(cols, j, "col", positions))
        columns = dict(zip((*names, "prediction", "std"), (*told, *found), strict=False))
        there = np.ones(i.size, dtype=bool) if on_unknown != "skip" else (i >= 0) & (j >= 0)
        return self._as_frame({name: column[there] for name, column in columns.items()})

    def _scores_of(self, i: Places, j: Places, on_unknown: str) -> FloatArray:
        """Scores of pairs; -1 stands for an unknown row or column."""
        known = (i >= 0) & (j >= 0)
        if known.all():
            return self._predict_entries(i, j)
        of_known = self._predict_entries(i[known], j[known])
        scores: FloatArray = np.full(i.size, np.nan, dtype=of_known.dtype)
        scores[known] = of_known
        if on_unknown == "popular":
            sides = []
            for side, places in (("row", i[~known]), ("col", j[~known])):
                factors = self.row_factors_ if side == "row" else self.col_factors_
                average = self._average("row" if side == "row" else "col")
                sides.append(np.where((places >= 0)[:, None], factors[np.maximum(places, 0)], average))
            scores[~known] = np.einsum("ij,ij->i", *sides)
        return scores

    def _with_std(self, rows: Places, cols: Places) -> tuple[FloatArray, FloatArray]:
        """Predictions of cells and how uncertain they are."""
        found = identifiability(self, rows, cols, positions=True)
        return found.prediction, found.std

    def _predictions(self, scores: FloatArray) -> FloatArray:
        """Predictions from scores, within the limits that ``clip`` sets."""
        return clipped(self._to_data(scores), getattr(self, "clip_", None))

    def _predictions_at(self, i: Places, j: Places, scores: FloatArray) -> FloatArray:
        """Predictions of cells whose scores are known; -1 stands for an unknown row or column."""
        return self._predictions(scores)

    def _to_data(self, scores: FloatArray) -> FloatArray:
        """Predictions on the scale of the data, from scores."""
        return scores

    def _predict_entries(self, i: Places, j: Places) -> FloatArray:
        """Scores of cells by position."""
        out: FloatArray = np.empty(len(i), dtype=self.row_factors_.dtype)
        step = max(1, 4_000_000 // max(self.row_factors_.shape[1], 1))
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            np.einsum("ij,ij->i", self.row_factors_[i[part]], self.col_factors_[j[part]], out=out[part])
        return out

    def predict_new(
        self, row_features: Any = None, col_features: Any = None, *, as_frame: bool = False
    ) -> Any:
        """Predict a block of cells for rows or columns that were not in the training data.

        Parameters
        ----------
        row_features : array, sparse matrix or frame, optional
            Features of new rows; left out, the training rows are meant. Columns of a frame are matched by
            name with those of training, and its lines may have ids: in a column named as that of the cells,
            or in the index of pandas.
        col_features : array, sparse matrix or frame, optional
            Features of new columns; left out, the training columns are meant.
        as_frame : bool, default=False
            Return a table instead, a line for each cell: row, column and ``prediction``.

        Returns
        -------
        ndarray of shape (n_new_rows or n_rows, n_new_cols or n_cols)
            Dense block of predictions, in the order of the features or of the training data.
        """
        check_is_fitted(self)
        rows = None if row_features is None else self._check_new_features(row_features, "row")
        cols = None if col_features is None else self._check_new_features(col_features, "col")
        with one_blas_thread():
            block = self._block(None if rows is None else rows.matrix, None if cols is None else cols.matrix)
        if not as_frame:
            return block
        ids = []
        sides: tuple[tuple[Side, NamedFeatures | None], ...] = (("row", rows), ("col", cols))
        for (side, read), length in zip(sides, block.shape, strict=True):
            known = None if read is None else read.ids
            places = np.arange(length)
            ids.append(known if known is not None else places if read else self._named(places, side, False))
        row, col = self._side_names("prediction")
        table = {row: np.repeat(ids[0], block.shape[1]), col: np.tile(ids[1], block.shape[0])}
        return self._as_frame(table | {"prediction": block.ravel()})

    def _block(self, row_features: Features | None, col_features: Features | None) -> FloatArray:
        """Predictions of new or all training rows and columns."""
        left = self.row_factors_ if row_features is None else self._embed_rows(row_features)
        right = self.col_factors_ if col_features is None else self._embed_cols(col_features)
        return self._predictions(matmul(left, right.T, n_threads=self._n_threads()))

    def fold_in(self, X_new: Any, *, row_features: Any = None, positions: bool = False) -> FloatArray:
        """Row factors of new rows from their observed cells, with the columns fixed.

        Parameters
        ----------
        X_new : array with NaN, sparse matrix, frame or Observations, with the training columns
            Cells of the new rows. Where the model was fitted with ids, columns are matched by id.
        row_features : array or sparse matrix, optional
            Features of the new rows; needed where the model was fitted with row features. Parts of the model
            that go by features take these, parts without features are solved for from the cells. Lines of a
            frame are matched with the rows by id, where the cells have ids.
        positions : bool, default=False
            Take the columns in the order of the training columns, whatever the ids.

        Returns
        -------
        ndarray of shape (n_new_rows, n_factors)
            To be multiplied with ``col_factors_.T``; cells of a frame give a line for each row id, in the
            order of the ids. For a training row it is what a refit of that row alone would give.
        """
        check_is_fitted(self)
        cells, features = self._read_new(X_new, row_features, positions)
        with one_blas_thread():
            return self._fold_in(cells, features)

    def _read_new(
        self,
        X_new: Any,
        row_features: Any,
        positions: bool,
        argument: str = "X_new",
        *,
        as_target: bool = True,
        on_unknown: str | None = None,
    ) -> tuple[Observations, Features | None]:
        """Cells of new rows in the order of the training columns, and the features of these rows."""
        if as_target:
            cells = self._read_matched(X_new, argument, positions, new_rows=True, on_unknown=on_unknown)
        else:
            cells = self._matched(self._cells(X_new, argument), argument, positions, new_rows=True)
        if cells.shape[1] != self.n_features_in_:
            raise InvalidDataError(
                f"X has {cells.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        if row_features is None and getattr(self, "n_row_features_in_", None) is not None:
            raise NotInductiveError(
                f"{type(self).__name__} was fitted with row_features, and cells alone do not say where a row "
                "belongs: pass row_features= of these rows as well"
            )
        if row_features is None:
            return cells, None
        entities = None if positions else cells.row_ids
        features = self._check_new_features(row_features, "row", entities).matrix
        if features.shape[0] != cells.shape[0]:
            raise InvalidDataError(
                f"row_features has {features.shape[0]} rows and {argument} has {cells.shape[0]}"
            )
        return cells, features

    def _read_matched(
        self, X: Any, argument: str, positions: bool, *, new_rows: bool, on_unknown: str | None = None
    ) -> Observations:
        """Cells in the order of the training data; what a blank means is seen to after they are matched."""
        if sparse.issparse(X):  # has no ids, and says itself how repeated cells are merged
            return self._matched(self._read_target(X), argument, positions, new_rows=new_rows)
        cells = self._cells(X, argument)
        return self._read_target(
            self._matched(cells, argument, positions, new_rows=new_rows, on_unknown=on_unknown)
        )

    def _new_rows(
        self, cells: Any, row_features: Any, positions: bool, on_unknown: str = "raise"
    ) -> tuple[Observations | None, Features | None, Array]:
        """Cells and features of new rows, whichever is given, and what the rows are called."""
        if cells is None:
            features, _, names = self._check_new_features(row_features, "row")
            return None, features, np.arange(features.shape[0]) if names is None else names
        found, given = self._read_new(cells, row_features, positions, "cells", on_unknown=on_unknown)
        ids = None if positions else found.row_ids
        return found, given, np.arange(found.shape[0]) if ids is None else ids.values

    def transform(self, X: Any, row_features: Any = None, *, positions: bool = False) -> FloatArray:
        """Complete rows: a dense matrix of predictions for every cell of ``X``.

        Parameters
        ----------
        X : array with NaN, sparse matrix, frame or Observations, with the training columns
            Rows to complete, known ones or new ones. Where the model was fitted with ids, columns are matched
            by id, and the result has them in the order of the training data.
        row_features : array or sparse matrix, optional
            Features of these rows, for models that were fitted with them.
        positions : bool, default=False
            Take the columns in the order of the training columns, whatever the ids.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
            Predictions, observed cells included.
        """
        check_is_fitted(self)
        cells, features = self._read_new(X, row_features, positions, "X")
        with one_blas_thread():
            return self._complete(cells, self._fold_in(cells, features))

    def _complete(self, cells: Observations, factors: FloatArray) -> FloatArray:
        """Rows of predictions, from their cells and their factors."""
        return self._predictions(matmul(factors, self.col_factors_.T, n_threads=self._n_threads()))

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

    # -- helpers ---------------------------------------------------------------------

    def _remember(
        self,
        cells: Observations,
        row_features: Features | None = None,
        col_features: Features | None = None,
    ) -> None:
        """Take names, and hold on to the training data for what is asked about the fit later.

        Names and the pattern of the cells are saved, the data is not. The arrays are shared with the
        caller's. What solvers have derived from them is let go.
        """
        self._name(cells)
        self.clip_ = limits_of(getattr(self, "clip", None), cells)
        self._hold(cells, row_features, col_features)

    def _hold(
        self,
        cells: Observations,
        row_features: Features | None = None,
        col_features: Features | None = None,
    ) -> None:
        """Hold on to the training data, given by position."""
        self.seen_ = SeenCells.of(self._seen_among(cells))
        pattern = Pattern(cells.indptr, cells.indices, cells.shape)
        own = Observations(pattern, cells.values, weights=cells.weights)
        self._spread = Spread(self, TrainingData(own, row_features, col_features))

    def _seen_among(self, cells: Observations) -> Observations:
        """Cells that a list of new columns leaves out."""
        return cells

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_spread", "_kept_gram")}

    def _n_threads(self) -> int:
        return check_n_jobs(getattr(self, "n_jobs", None))

    def _provider(self) -> Provider:
        """Who computes: on the device of estimators that have one, else on the CPU."""
        if not hasattr(self, "device"):
            return HostProvider(n_threads=self._n_threads())
        return provider_for(self.device, n_threads=self._n_threads())

    def _check_new_features(
        self, features: Any, side: Side, entities: Vocabulary | None = None
    ) -> NamedFeatures:
        """Features of new rows or columns, with the columns of training."""
        width = getattr(self, f"n_{side}_features_in_", None)
        if width is None:
            raise NotInductiveError(self._why_not_inductive(side))
        origin = getattr(self, "origin_", None) or Origin()
        read = read_features(
            features,
            f"{side}_features",
            entities=entities,
            id_name=origin.row if side == "row" else origin.col,
            known=getattr(self, f"{side}_feature_names_", None),
            dtype=self.row_factors_.dtype,
        )
        if read.matrix.shape[1] != width:
            raise InvalidDataError(
                f"{side}_features has {read.matrix.shape[1]} columns; the model was fitted with {width}"
            )
        return read

    def save(self, path: str | PathLike[str], *, seen: bool = True, cells: bool = False) -> None:
        """Write the fitted model to a directory, replacing an older one only when complete.

        Parameters
        ----------
        path : str or path-like
            Directory to write; see :func:`unseen.load`.
        seen : bool, default=True
            Also write which cells the model was fitted to (not their values), for ``recommend``; without them
            the loaded model asks for ``exclude``.
        cells : bool, default=False
            Also write the cells themselves and the features that the model was fitted to, so that
            :meth:`partial_fit` works on the loaded model.
        """
        check_is_fitted(self)
        model = copy(self)
        model.__dict__.pop("training_", None)
        if not seen:
            model.seen_ = None
        if cells:
            model.training_ = TrainingCells.of(*self._training_data())
        io.save(model, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
