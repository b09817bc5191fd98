"""Blends of completers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from unseen.blends.base import Blend, candidates_of
from unseen.blends.weights import Lists, Measure, chosen_weights, simplex_weights, standardised
from unseen.data import Observations
from unseen.estimators.row_scores import RowParts, RowScores
from unseen.exceptions import InvalidDataError
from unseen.linalg.blocked import matmul
from unseen.model_selection import Split, split_entries
from unseen.model_selection._splits import is_mirrored
from unseen.parallel import one_blas_thread
from unseen.settings import check_settings
from unseen.typing import CSR, Features, FloatArray, IndexArray
from unseen.validation import check_rng

__all__ = ["CellBlend"]

MAX_ROWS = 4000
"""Rows whose lists decide about weights."""


class CellBlend(Blend, RowScores):
    """Blend of completers; see :class:`Blend`, which makes it.

    Scores of a row are the weighted sum of the models' scores (of their predictions, where values are
    blended), computed when they are asked for; lists are exact. Side features go to all models.

    Parameters
    ----------
    models : sequence of completers
        Models to blend.
    weights, scoring, validation_fraction, random_state, n_jobs
        See :class:`Blend`.

    Attributes
    ----------
    models_ : list of completers
        Fitted to all cells.
    weights_ : ndarray
        Weights.
    as_lists_ : bool
        Whether scores are brought to one scale, or are values as they are.
    validation_scores_ : ndarray or None
        Measure of each model alone and, last, of the blend, on the held-out cells.
    shape_ : tuple of int
        Rows and columns of the training matrix.
    history_ : list of dict
        Empty; each model of ``models_`` has its own.
    n_iter_ : int
        1.
    converged_ : bool
        True.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import BiasModel, Blend, MatrixFactorization
    >>> X = np.add.outer(np.arange(12.0), np.arange(9.0)) % 5
    >>> blend = Blend([BiasModel(), MatrixFactorization(3, reg=0.1, random_state=0)], random_state=0).fit(X)
    >>> float(blend.weights_.sum().round(9))
    1.0
    """

    _door = "predict_entries"

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Choose weights on held-out cells, then fit all models to all cells.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations of shape (n_rows, n_cols)
            Target; what a blank cell means is up to the models.
        y : None
            Ignored; there for scikit-learn.
        row_features, col_features : array or sparse matrix, optional
            Side features, for every model.

        Returns
        -------
        self
        """
        check_settings(self)
        models, weights = self._copies(), self._given_weights()
        cells = self._read_target(X)
        if cells.nnz == 0:
            raise InvalidDataError(f"X ({cells.shape[0]} x {cells.shape[1]}) has no observed cell")
        given = {"row_features": row_features, "col_features": col_features}
        features = {name: value for name, value in given.items() if value is not None}
        self.as_lists_ = self._blends_lists(cells)
        self.shape_ = cells.shape
        self.n_features_in_ = cells.shape[1]
        self.validation_scores_ = None
        if weights is None:
            weights = self._choose(models, cells, features)
        self.weights_ = weights
        self.models_ = [model.fit(cells, **features) for model in self._copies()]
        self.history_: list[dict[str, Any]] = []
        self.n_iter_, self.converged_ = 1, True
        self._remember(cells)
        return self

    def _blends_lists(self, cells: Observations) -> bool:
        if self.scoring == "auto":
            positive = any(
                hasattr(model, "__sklearn_tags__") and model.__sklearn_tags__().input_tags.positive_only
                for model in self.models
            )
            values = cells.values[cells.values != 0]
            return bool(positive or values.size == 0 or np.ptp(values) == 0)
        if self.scoring != "rmse":
            self._list_measure("")  # a name that is no measure is refused before anything is fitted
        return self.scoring != "rmse"

    def _choose(self, models: list[Any], cells: Observations, features: dict[str, Any]) -> FloatArray:
        rng = check_rng(self.random_state)
        split = split_entries(
            cells,
            test_fraction=self.validation_fraction,
            random_state=rng,
            symmetric=is_mirrored(cells),
        )
        for model in models:
            model.fit(split.train, **features)
        if not self.as_lists_:
            return self._for_values(models, split)
        return self._for_lists(models, split, self._list_measure("ndcg@10"), rng)

    def _for_values(self, models: list[Any], split: Split) -> FloatArray:
        test = split.test
        predictions = np.column_stack(
            [model.predict_entries(test.rows, test.indices, positions=True) for model in models]
        )
        weights = simplex_weights(predictions, test.values, test.weights)
        columns = np.column_stack([predictions, predictions @ weights]) - test.values[:, None]
        self.validation_scores_ = np.sqrt(np.average(columns**2, axis=0, weights=test.weights))
        return weights

    def _for_lists(
        self, models: list[Any], split: Split, measure: Measure, rng: np.random.Generator
    ) -> FloatArray:
        truth: CSR = split.test.csr
        relevant = truth.copy()
        relevant.data = relevant.data * (1 if split.test.weights is None else split.test.weights > 0)
        relevant.eliminate_zeros()
        rows = np.flatnonzero(np.diff(relevant.indptr))
        if not rows.size:
            raise InvalidDataError(
                "no held-out cell is a positive, so weights cannot be chosen; pass weights= or a larger "
                "validation_fraction"
            )
        if rows.size > MAX_ROWS:
            rows = np.sort(rng.choice(rows, MAX_ROWS, replace=False))
        lists = Lists(measure)
        seen = split.train.csr
        step = self._rows_at_a_time()
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            barred = np.zeros((part.size, self.n_features_in_), dtype=bool)
            own = seen[part]
            barred[np.repeat(np.arange(part.size), np.diff(own.indptr)), own.indices] = True
            scores = [self._scaled(self._of_rows(model, part)) for model in models]
            lists.add(scores, barred, relevant[part], candidates_of(measure))
        weights, self.validation_scores_ = chosen_weights(lists.close(), len(models))
        return weights

    # -- scores ----------------------------------------------------------------------

    def _scaled(self, scores: FloatArray) -> FloatArray:
        """Scores of whole rows on the scale that they are added on."""
        return standardised(scores) if self.as_lists_ else scores

    def _of_rows(self, model: Any, rows: IndexArray) -> FloatArray:
        """Scores (predictions, where values are blended) of training rows."""
        if hasattr(model, "score_rows"):
            scores: FloatArray = model.score_rows(rows, positions=True)
        else:
            with one_blas_thread():
                scores = matmul(model.row_factors_[rows], model.col_factors_.T, n_threads=self._n_threads())
        return scores if self.as_lists_ else np.asarray(model._to_data(scores))

    def _parts(self, rows: IndexArray) -> RowParts:
        return RowParts(
            np.ascontiguousarray(self._sum([self._of_rows(model, rows) for model in self.models_]).T)
        )

    def _scores_from(self, cells: CSR) -> FloatArray:
        raise AssertionError("models read cells each in their own way")

    def _ranks_cells(self) -> bool:
        return bool(self.as_lists_)

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        given = {} if row_features is None else {"row_features": row_features}
        parts = []
        for model in self.models_:
            factors = model.fold_in(cells, positions=True, **given)
            scores = factors if hasattr(model, "score_rows") else factors @ model.col_factors_.T
            parts.append(scores if self.as_lists_ else model._to_data(scores))
        return self._sum(parts)

    def _sum(self, parts: list[FloatArray]) -> FloatArray:
        total: FloatArray = np.zeros(parts[0].shape, dtype=self._dtype())
        for weight, part in zip(self.weights_, parts, strict=True):
            if weight:
                total += total.dtype.type(weight) * self._scaled(part)
        return total

    def _n_rows(self) -> int:
        return int(self.shape_[0])

    def _dtype(self) -> np.dtype[Any]:
        first = self.models_[0]
        kind: np.dtype[Any] = first._dtype() if hasattr(first, "_dtype") else first.row_factors_.dtype
        return kind

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [model.__sklearn_tags__() for model in self.models if hasattr(model, "__sklearn_tags__")]
        tags.input_tags.positive_only = any(tag.input_tags.positive_only for tag in inner)
        tags.input_tags.pairwise = any(tag.input_tags.pairwise for tag in inner)
        tags.non_deterministic = any(tag.non_deterministic for tag in inner)
        return tags
