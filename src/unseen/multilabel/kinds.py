"""Classifiers by what they share: weights of rows, scores that are products."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from unseen import kernels
from unseen.linalg.blocked import matmul
from unseen.multilabel.base import MultiLabelClassifier
from unseen.typing import CSR, Features, FloatArray, IndexArray

__all__ = ["FactoredClassifier", "WeightedClassifier"]


class WeightedClassifier(MultiLabelClassifier):
    """Base of the classifiers that count the weights of rows: ``_fit(X, Y, weights)``, None for no weights.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.multilabel import WeightedClassifier
    >>> class MostFrequent(WeightedClassifier):
    ...     def _fit(self, X, Y, weights=None):
    ...         self.shares_ = np.average(Y.toarray(), axis=0, weights=weights)
    ...     def _scores(self, X):
    ...         return np.tile(self.shares_, (X.shape[0], 1))
    >>> model = MostFrequent().fit([[0.0], [1.0]], [[0, 1, 0], [0, 0, 1]], sample_weight=[1.0, 3.0])
    >>> model.predict_topk([[2.0]], k=2)
    (array([[2, 1]]), array([[0.75, 0.25]]))
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Learn from rows whose labels are known.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Features; finite numbers.
        y : sparse matrix, frame or array of shape (n, n_labels), n label sets, or n classes
            Non-zero (one) where a row has a label; or the labels of each row, such as
            ``[["a", "b"], ["c"]]``; or, in one dimension, one class for each row.
        sample_weight : array of shape (n,), optional
            How much the loss of each row counts; a row of weight 2 is like two rows, one of weight 0 is
            not there.

        Returns
        -------
        self
        """
        return self._learn(X, y, sample_weight)

    @abstractmethod
    def _fit(self, X: Features, Y: CSR, weights: FloatArray | None = None) -> None:
        """Learn from validated input; ``Y`` is canonical CSR of ones in the dtype of ``X``."""


class FactoredClassifier(MultiLabelClassifier):
    """Base of the classifiers whose scores are products, ``_embed(x) @ label_factors_[j]``.

    Attributes
    ----------
    label_factors_ : ndarray of shape (n_labels, width)
        One row for each label.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.multilabel import FactoredClassifier
    >>> class Centroids(FactoredClassifier):
    ...     def _fit(self, X, Y):
    ...         self.label_factors_ = np.asarray(Y.T @ X)
    ...     def _embed(self, X):
    ...         return X
    >>> Centroids().fit(np.eye(3), np.eye(3)).predict_topk([[0.0, 2.0, 1.0]], k=2)
    (array([[1, 2]]), array([[2., 1.]]))
    """

    label_factors_: FloatArray

    @abstractmethod
    def _embed(self, X: Features) -> FloatArray:
        """Left factors of a block of validated rows."""

    def _scores(self, X: Features) -> FloatArray:
        return matmul(self._embed(X), self.label_factors_.T, n_threads=self._n_threads())

    def _best(self, X: Features, k: int) -> tuple[IndexArray, FloatArray]:
        left = np.ascontiguousarray(self._embed(X), dtype=self.label_factors_.dtype)
        return kernels.topk(left, self.label_factors_, k, n_threads=self._n_threads())
