"""The door of multi-label classifiers: features in, ranked labels out."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from unseen import io
from unseen.docstrings import CLASSIFIERS, share_options
from unseen.exceptions import InvalidDataError, NotFittedError, TooLargeError
from unseen.metrics import precision_at_k
from unseen.metrics._pointwise import check_sample_weight
from unseen.multilabel.calibration import Calibration, chances, fit_chances
from unseen.multilabel.scaling import warn_of_parallel_rows
from unseen.multilabel.selecting import best_of_dense, best_of_sparse
from unseen.multilabel.targets import read_like, read_targets, refuse_misaligned
from unseen.parallel import one_blas_thread
from unseen.settings import check_settings
from unseen.typing import CSR, Array, Features, FloatArray, IndexArray
from unseen.validation import check_features, check_fraction, check_list_length, check_n_jobs, held

__all__ = ["MultiLabelClassifier"]

BLOCK_CELLS = 1 << 22
"""Scores, rows times labels, that exist at a time."""
BLOCK_ROWS = 4096
"""Rows that are scored at a time where no block of scores is made."""
CALIBRATION_SHARE = 0.2
"""Rows that probabilities are calibrated on."""
FEWEST_HELD_OUT = 10
"""Fewer rows say nothing about probabilities."""


def _calibrates(model: MultiLabelClassifier) -> bool:
    if not model._may_calibrate():
        raise AttributeError(model._way_to_chances())
    return True


class MultiLabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that give labels to rows of features.

    A subclass writes ``_fit(X, Y)``, which gets validated features and a 0/1 CSR matrix, and
    ``_scores(X)``, which scores a block of rows: dense, or CSR where a label without a stored score
    cannot be predicted. The rest is here. The labels of each row (``[["a", "b"], ["c"]]``) and a
    one-dimensional target, one class for each row, are learned as their indicator matrix; ``predict``
    then answers with label sets, or with classes.

    A subclass that counts the weights of rows is a :class:`WeightedClassifier`. One with the parameter
    ``calibrate`` has ``predict_proba``.

    Attributes
    ----------
    n_labels_ : int
        Number of labels (columns of ``Y``, or classes).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X was a frame.
    classes_ : ndarray
        What the labels are called: classes, names in label sets, columns of a frame; else their numbers.
    multi_class_ : bool
        Whether the target was one-dimensional.
    label_sets_ : bool
        Whether the target held the labels of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.multilabel import MultiLabelClassifier
    >>> class MostFrequent(MultiLabelClassifier):
    ...     def _fit(self, X, Y):
    ...         self.shares_ = np.asarray(Y.mean(axis=0))
    ...     def _scores(self, X):
    ...         return np.tile(self.shares_, (X.shape[0], 1))
    >>> MostFrequent().fit([[0.0], [1.0]], [[0, 1, 0], [0, 1, 1]]).predict_topk([[2.0]], k=2)
    (array([[1, 2]]), array([[1. , 0.5]]))
    """

    n_labels_: int
    n_features_in_: int
    classes_: Array
    multi_class_: bool
    label_sets_: bool
    calibration_: Calibration | None
    history_: list[dict[str, Any]]

    max_dense_cells: ClassVar[int] = 100_000_000
    """Scores that :meth:`decision_function` returns at most."""

    _why_no_weights: ClassVar[str] = "its objective gives every row the same weight"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        share_options(cls, CLASSIFIERS, None)

    def fit(self, X: Any, y: Any, **refused: Any) -> Self:
        """Learn from rows whose labels are known.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Features; finite numbers.
        y : sparse matrix, frame or array of shape (n, n_labels), n label sets, or n classes
            Non-zero (one) where a row has a label; or the labels of each row, such as
            ``[["a", "b"], ["c"]]``; or, in one dimension, one class for each row.
        **refused : object
            Nothing; ``sample_weight`` is refused with the reason.

        Returns
        -------
        self
        """
        if refused:
            name = next(iter(refused))
            why = f": {self._why_no_weights}" if name == "sample_weight" else ""
            raise TypeError(f"{type(self).__name__}.fit takes no {name}{why}")
        return self._learn(X, y, None)

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> Self:
        check_settings(self)
        if hasattr(self, "threshold"):
            check_fraction("threshold", self.threshold, low=-np.inf, high=np.inf)
        refuse_misaligned(X, y)
        features = self._read_features(X)
        weights = check_sample_weight(sample_weight, features.shape[:1])
        indicator, names, kind = read_targets(y, features.shape[0], features.dtype)
        if weights is not None and not weights.all():  # such rows say nothing, not even that a class exists
            kept = np.flatnonzero(weights)
            features, indicator, weights = features[kept], indicator[kept], weights[kept]
            if kind != "indicator" and names is not None:
                there = np.flatnonzero(np.bincount(indicator.indices, minlength=indicator.shape[1]))
                indicator, names = sparse.csr_array(indicator[:, there]), names[there]
        _check_feature_names(self, X, reset=True)
        self.n_features_in_ = features.shape[1]
        self.n_labels_ = indicator.shape[1]
        self.multi_class_, self.label_sets_ = kind == "classes", kind == "sets"
        self.classes_ = np.arange(self.n_labels_) if names is None else names
        given = () if weights is None or np.all(weights == 1) else (weights,)
        if getattr(self, "normalize", False):
            warn_of_parallel_rows(features)
        with one_blas_thread():
            self.calibration_ = None
            found = self._calibration(features, indicator, given)
            self._fit(features, indicator, *given)
        if found is not None:
            self.calibration_ = found
        return self

    def _calibration(self, X: Features, Y: CSR, given: tuple[FloatArray, ...]) -> Calibration | None:
        """How scores become probabilities, from rows that a first fit leaves out; None where nobody asks."""
        if not getattr(self, "calibrate", False):
            return None
        n = X.shape[0]
        if n < 2 * FEWEST_HELD_OUT:
            raise InvalidDataError(
                f"calibrate=True holds out rows to calibrate on, for which {n} rows are too few; "
                f"{2 * FEWEST_HELD_OUT} are the least"
            )
        order = np.random.default_rng(0).permutation(n)
        held_out = max(FEWEST_HELD_OUT, round(CALIBRATION_SHARE * n))
        out, kept = np.sort(order[:held_out]), np.sort(order[held_out:])
        first = copy.copy(self)
        first._fit(X[kept], Y[kept], *(weights[kept] for weights in given))
        weights = given[0][out] if given else None
        return fit_chances(first._all_scores(X[out]), Y[out], self.multi_class_, weights)

    # -- hooks -----------------------------------------------------------------------

    @abstractmethod
    def _fit(self, X: Features, Y: CSR) -> None:
        """Learn from validated input; ``Y`` is canonical CSR of ones in the dtype of ``X``."""

    def _may_calibrate(self) -> bool:
        """Whether there are probabilities."""
        return bool(getattr(self, "calibrate", False))

    def _way_to_chances(self) -> str:
        """How to get probabilities, for those who asked in vain."""
        name = type(self).__name__
        if not hasattr(self, "calibrate"):
            return f"{name} has scores that are no probabilities, and no parameter to calibrate them"
        return (
            f"scores of {name} are no probabilities; {name}(calibrate=True) calibrates them on held-out rows"
        )

    @abstractmethod
    def _scores(self, X: Features) -> FloatArray | CSR:
        """Scores of all labels for a block of validated rows."""

    def _best(self, X: Features, k: int) -> tuple[IndexArray, FloatArray]:
        """Best ``k`` labels of a block of validated rows; ties as :meth:`_tie_order` says."""
        scores = self._scores(X)
        if sparse.issparse(scores):
            return best_of_sparse(sparse.csr_array(scores), k, self._tie_order())
        return best_of_dense(np.asarray(scores), k, self._tie_order())

    def _tie_order(self) -> IndexArray | None:
        """Labels by decreasing preference among equal scores; None prefers lower numbers."""
        return None

    def _threshold(self) -> float:
        """Score above which :meth:`predict` gives a label."""
        return float(getattr(self, "threshold", 0.5))

    def _block_rows(self) -> int:
        """Rows that :meth:`_scores` and :meth:`_best` get at a time."""
        return int(max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(self.n_labels_, 1))))

    # -- predictions -----------------------------------------------------------------

    def decision_function(self, X: Any) -> Any:
        """Scores of all labels.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n, n_labels), or csr_array
            Scores; sparse for methods that score few labels of each row. With two classes, the
            score of the second less that of the first, of shape (n,).
        """
        features = self._read_new(X)
        parts: list[Any] = []
        for block in self._blocks(features):
            with one_blas_thread():
                scores = self._scores(block)
            if not sparse.issparse(scores):
                self._refuse_large(features.shape[0])
            parts.append(scores)
        if sparse.issparse(parts[0]):
            return sparse.csr_array(sparse.vstack(parts, format="csr"))
        whole: FloatArray = np.concatenate(parts)
        if self.multi_class_ and self.n_labels_ == 2:
            return whole[:, 1] - whole[:, 0]
        return whole

    def predict_topk(self, X: Any, k: int = 5, *, positions: bool = False) -> tuple[Any, FloatArray]:
        """Labels with the highest scores, without a matrix of all scores.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Features.
        k : int, default=5
            Labels for each row; never more than there are.
        positions : bool, default=False
            Whether labels are numbers (columns of ``Y``, places in ``classes_``) also where they have names.

        Returns
        -------
        labels : ndarray of shape (n, k)
            Labels by decreasing score, as ``classes_`` calls them, ties by smaller number; -1 or an empty
            text where fewer than ``k`` labels have a score.
        scores : ndarray of shape (n, k)
            Their scores; NaN where there is no label.
        """
        ids, scores = self._topk(X, k)
        if positions:
            return ids, scores
        labels = self.classes_[np.maximum(ids, 0)]
        missing = ids < 0
        if missing.any():
            labels[missing] = "" if labels.dtype.kind == "U" else -1
        return labels, scores

    def _topk(self, X: Any, k: int) -> tuple[IndexArray, FloatArray]:
        """The same by number."""
        features = self._read_new(X)
        k = check_list_length(k, self.n_labels_)
        with one_blas_thread():
            parts = [self._best(block, k) for block in self._blocks(features)]
        return np.concatenate([ids for ids, _ in parts]), np.concatenate([scores for _, scores in parts])

    def predict(self, X: Any) -> Any:
        """Labels of each row.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Features.

        Returns
        -------
        csr_array of shape (n, n_labels), list of lists, or ndarray of shape (n,)
            Ones for the labels with a score above the threshold; for a model that learned label sets these
            labels themselves; for a model of classes the class with the highest score.
        """
        if self._is_multi_class():
            ids, _ = self._topk(X, 1)
            # A row that no class has a score for gets the first, like any other tie.
            return self.classes_[np.maximum(ids[:, 0], 0)]
        features, threshold = self._read_new(X), self._threshold()
        parts = []
        for block in self._blocks(features):
            with one_blas_thread():
                scores = self._scores(block)
            above = scores > threshold if threshold >= 0 or not sparse.issparse(scores) else None
            if above is None:  # an absent score of a sparse block is no score, not a zero
                kept = sparse.csr_array(scores)
                above = sparse.csr_array((kept.data > threshold, kept.indices, kept.indptr), shape=kept.shape)
                above.eliminate_zeros()
            parts.append(sparse.csr_array(above).astype(np.int64))
        found = sparse.csr_array(sparse.vstack(parts, format="csr"))
        if not self.label_sets_:
            return found
        found.sort_indices()
        return [labels.tolist() for labels in np.split(self.classes_[found.indices], found.indptr[1:-1])]

    @available_if(_calibrates)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities, calibrated on held-out rows; there where the model was told to ``calibrate``.

        A softmax with a temperature for classes, one logistic curve for labels: the order of the scores
        stays.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n, n_labels)
            Of the classes, with rows that sum to one; or of each label by itself. Columns as in
            ``classes_``.
        """
        features = self._read_new(X)
        if self.calibration_ is None:
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without probabilities: fit it again. "
                + self._way_to_chances()
            )
        self._refuse_large(features.shape[0])
        with one_blas_thread():
            return chances(self._all_scores(features), self.calibration_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy for classes, precision of the best label (P@1) for labels.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Features.
        y : sparse matrix, frame or array of shape (n, n_labels), n label sets, or n classes
            True labels; those with names are matched by name, and labels that training did not have are
            missed.
        sample_weight : array of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        float
            Between 0 and 1.
        """
        refuse_misaligned(X, y)
        if self._is_multi_class():
            return float(super().score(X, y, sample_weight))
        ids, _ = self._topk(X, 1)
        return float(
            precision_at_k(read_like(y, len(ids), self.classes_), ids, 1, sample_weight=sample_weight)
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a directory, replacing an older one only when complete.

        Parameters
        ----------
        path : str or path-like
            Directory to write; see :func:`unseen.load`.
        """
        check_is_fitted(self)
        io.save(self, path)

    # -- helpers ---------------------------------------------------------------------

    def _all_scores(self, X: Features) -> FloatArray:
        """Scores of all labels as a dense matrix."""
        blocks = (self._scores(block) for block in self._blocks(X))
        return np.concatenate(
            [sparse.csr_array(found).toarray() if sparse.issparse(found) else found for found in blocks]
        )

    def _is_multi_class(self) -> bool:
        check_is_fitted(self)
        return self.multi_class_

    def _n_threads(self) -> int:
        return check_n_jobs(getattr(self, "n_jobs", None))

    def _read_features(self, X: Any) -> Features:
        features = held(check_features(X, None, "X"))
        for count, what in zip(features.shape, ("sample", "feature"), strict=True):
            if count == 0:
                raise InvalidDataError(
                    f"X has 0 {what}(s) (shape={features.shape}) while a minimum of 1 is required."
                )
        return features

    def _read_new(self, X: Any) -> Features:
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        features = self._read_features(X)
        if features.shape[1] != self.n_features_in_:
            raise InvalidDataError(
                f"X has {features.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return features

    def _refuse_large(self, n_rows: int) -> None:
        cells = n_rows * self.n_labels_
        if cells > self.max_dense_cells:
            raise TooLargeError(
                f"{n_rows} x {self.n_labels_} = {cells:,} scores were asked for, more than "
                f"max_dense_cells={self.max_dense_cells:,}; use predict_topk, which keeps the best "
                "labels only, or fewer rows"
            )

    def _blocks(self, X: Features) -> Iterator[Features]:
        step = self._block_rows()
        for start in range(0, X.shape[0], step):
            yield X[start : start + step]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
