"""Models that live: cells, rows and columns that arrive after the fit."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations, Vocabulary
from unseen.data.ids import cells_like
from unseen.data.merging import Merged, TrainingCells, cells_at, merge_cells
from unseen.diagnostics.identify import TrainingData
from unseen.exceptions import DriftWarning, InvalidDataError, NotInductiveError, ParameterError
from unseen.parallel import one_blas_thread
from unseen.typing import Features, FloatArray
from unseen.validation import check_fraction, check_positive

__all__ = ["Updates"]


class Updates:
    """What a fitted model does about new cells."""

    row_factors_: FloatArray
    col_factors_: FloatArray
    drift_: float

    def partial_fit(
        self,
        cells: Any,
        y: None = None,
        *,
        remove: Any = None,
        row_features: Any = None,
        col_features: Any = None,
        decay: float = 1.0,
        drift_limit: float = 0.01,
    ) -> Self:
        """Take in new cells, for known rows and columns or for new ones.

        A cell that was there before gets the new value and weight. Positions of known rows and columns stay,
        new ones come after them. Models of one low-rank term without features that are solved by alternating
        least squares (:class:`MatrixFactorization`, :class:`BiasMC` and their like) solve again for the rows
        and columns whose cells changed, and say in ``drift_`` by which share their objective is estimated to
        lie above that of a fit to all cells. All others are fitted again to all cells, from where they stand
        if they know ``warm_start``. If anything goes wrong the model stays as it was.

        Parameters
        ----------
        cells : array with NaN, sparse matrix, frame or Observations, or None
            New cells, named as those of the fit: by ids, or in a matrix of at least the shape of the training
            matrix. An unfitted model is fitted to them.
        y : None
            Ignored; there for scikit-learn.
        remove : sequence of (row, col), Observations or sparse matrix, optional
            Cells to forget.
        row_features, col_features : array, sparse matrix or frame, optional
            For models with features: those of the new rows (columns) in their order, or of all. Lines of a
            frame are matched with the new ids.
        decay : float, default=1.0
            Factor of the weights of all earlier cells: below one, the past fades.
        drift_limit : float, default=0.01
            Warn above this drift.

        Returns
        -------
        self

        Warns
        -----
        DriftWarning
            If the estimated drift is above ``drift_limit``: fit again to all cells.
        """
        try:
            check_is_fitted(self)
        except NotFittedError:
            if remove is not None:
                raise ParameterError("remove: the model has not been fitted, so it has no cells") from None
            return self.fit(cells, row_features=row_features, col_features=col_features)  # type: ignore[attr-defined,no-any-return]
        decay = check_fraction("decay", decay, include_high=True)
        check_positive("drift_limit", drift_limit, strict=False)
        data = self._training_data()
        new, dropped = self._read_update(cells, data.cells)
        gone = [] if remove is None else [cells_at(data.cells, remove)]
        gone += [] if dropped is None else [dropped]
        removed = None if not gone else tuple(np.concatenate(side) for side in zip(*gone, strict=True))
        merged = merge_cells(data.cells, new, removed, decay=decay)  # type: ignore[arg-type]
        features = {
            side: self._grown_features(side, known, given, length, ids)
            for side, known, given, length, ids in zip(
                ("row", "col"),
                data[1:],
                (row_features, col_features),
                merged.cells.shape,
                (merged.cells.row_ids, merged.cells.col_ids),
                strict=True,
            )
        }
        updated = copy(self)
        with one_blas_thread():
            updated._absorb(merged, features)
        vars(self).update(vars(updated))
        self._remember(merged.cells, features["row"], features["col"])  # type: ignore[attr-defined]
        if self.drift_ > drift_limit:
            warnings.warn(
                f"{type(self).__name__} is estimated to lie {self.drift_:.1%} above a fit to all cells "
                f"(limit {drift_limit:.1%}); fit it again",
                DriftWarning,
                stacklevel=2,
            )
        return self

    def _absorb(self, merged: Merged, features: dict[str, Features | None]) -> None:
        """Learn from all cells, given which of them changed."""
        self.fit(merged.cells, row_features=features["row"], col_features=features["col"])  # type: ignore[attr-defined]
        self.drift_ = 0.0

    def _training_data(self) -> TrainingData:
        """Cells, with ids, and features of the last fit."""
        spread = getattr(self, "_spread", None)
        saved: TrainingCells | None = getattr(self, "training_", None)
        if spread is not None:
            data: TrainingData = spread.data
        elif saved is not None:
            data = TrainingData(saved.cells(), saved.row_features, saved.col_features)
        else:
            raise ParameterError(
                f"this {type(self).__name__} does not hold the cells it was fitted to: save it with "
                "save(path, cells=True) to update it later, or fit it again"
            )
        named = data.cells.with_ids(getattr(self, "row_ids_", None), getattr(self, "col_ids_", None))
        return data._replace(cells=named._changed(origin=getattr(self, "origin_", None)))

    def _read_update(
        self, cells: Any, old: Observations
    ) -> tuple[Observations | None, tuple[Any, Any] | None]:
        """New cells as the model reads them, and known cells that they take back (zeros of positives)."""
        if cells is None:
            return None, None
        if sparse.issparse(cells):
            given = Observations.from_any(cells, accept_nan=False)
        else:
            given = cells_like(cells, old.origin, "cells")
        for axis, (ids, noun) in enumerate(((old.row_ids, "samples"), (old.col_ids, "features"))):
            if ids is None and given.shape[axis] < old.shape[axis]:
                raise InvalidDataError(
                    f"X has {given.shape[axis]} {noun}, but {type(self).__name__} is expecting "
                    f"{old.shape[axis]} {noun} as input: cells without ids are taken by position"
                )
        read: Observations = self._read_target(given)  # type: ignore[attr-defined]
        if read.nnz == given.nnz:
            return read, None
        keys = [one.rows.astype(np.int64) * given.shape[1] + one.indices for one in (given, read)]
        lost = given.select(~np.isin(keys[0], keys[1]))
        places = [
            numbers.astype(np.int64) if ids is None or own is None else ids.find(own[numbers])
            for numbers, ids, own in (
                (lost.rows, old.row_ids, lost.row_ids),
                (lost.indices, old.col_ids, lost.col_ids),
            )
        ]
        known = [(place >= 0) & (place < length) for place, length in zip(places, old.shape, strict=True)]
        both = known[0] & known[1]
        return read, (places[0][both], places[1][both])

    def _grown_features(
        self, side: str, known: Features | None, given: Any, length: int, ids: Vocabulary | None
    ) -> Features | None:
        """Features of all rows or columns after an update."""
        before = 0 if known is None else known.shape[0]
        if known is None:
            if given is not None:
                raise NotInductiveError(
                    f"{side}_features: {type(self).__name__} was fitted without them and has no use for them"
                )
            return None
        if given is None:
            if length > before:
                raise InvalidDataError(
                    f"{length - before} new {side}s need {side}_features: the model was fitted with features"
                )
            return known
        new = None if ids is None or length == before else Vocabulary(ids.values[before:])
        rows: Features = self._check_new_features(given, side, new).matrix  # type: ignore[attr-defined]
        if rows.shape[0] == length:
            return rows
        if rows.shape[0] != length - before:
            raise InvalidDataError(
                f"{side}_features has {rows.shape[0]} rows; {length - before} of {length} {side}s are new"
            )
        if sparse.issparse(known) or sparse.issparse(rows):
            return sparse.csr_array(sparse.vstack([sparse.csr_array(known), sparse.csr_array(rows)]))
        return np.vstack([known, rows])

    # -- columns from their cells ----------------------------------------------------

    def fold_in_cols(self, X_new: Any, *, col_features: Any = None, positions: bool = False) -> FloatArray:
        """Column factors of new columns from their observed cells, with the rows fixed.

        The mirror image of :meth:`fold_in`.

        Parameters
        ----------
        X_new : array with NaN, sparse matrix or Observations, with the training rows
            Cells of the new columns, one column each. Where the model was fitted with ids, rows are matched
            by id.
        col_features : array or sparse matrix, optional
            Features of the new columns; needed where the model was fitted with column features.
        positions : bool, default=False
            Take the rows in the order of the training rows, whatever the ids.

        Returns
        -------
        ndarray of shape (n_new_cols, n_factors)
            To be multiplied with ``row_factors_``. It is the exact minimum with the rows fixed.
        """
        check_is_fitted(self)
        cells: Observations = self._read_target(X_new)  # type: ignore[attr-defined]
        folded: FloatArray = self._mirrored().fold_in(
            cells.transpose(), row_features=col_features, positions=positions
        )
        return self._as_cols(folded)

    def _mirrored(self) -> Any:
        """The same model of the transposed matrix."""
        raise NotInductiveError(f"{type(self).__name__} cannot place columns by their cells; fit it again")

    def _as_cols(self, factors: FloatArray) -> FloatArray:
        """Factors of the rows of the mirrored model as those of columns of this one."""
        return factors
