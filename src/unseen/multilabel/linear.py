"""One linear classifier for each label."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

from unseen.exceptions import ConvergenceWarning, TooLargeError
from unseen.multilabel.base import MultiLabelClassifier
from unseen.multilabel.kinds import WeightedClassifier
from unseen.multilabel.scaling import scaled_rows
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, Array, Features, FloatArray, IndexArray
from unseen.validation import check_count, check_n_jobs, check_positive

__all__ = ["LinearLabels", "LinearOvA", "kept_weights"]


class LinearLabels(MultiLabelClassifier):
    """Base of the classifiers with sparse weights for each label, `coef_` and `intercept_`.

    A label is predicted where its score is above zero.

    Attributes
    ----------
    coef_ : csr_array of shape (n_labels, n_features)
        Weights.
    intercept_ : array of shape (n_labels,)
        Added to the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen.multilabel import LinearLabels
    >>> class Means(LinearLabels):
    ...     normalize = False
    ...     def _fit(self, X, Y):
    ...         self.coef_, self.intercept_ = sparse.csr_array(Y.T @ X), np.zeros(Y.shape[1])
    >>> Means().fit(np.eye(2), np.eye(2)).predict([[0.0, 2.0]]).toarray()
    array([[0, 1]])
    """

    normalize: bool
    coef_: CSR
    intercept_: FloatArray

    def _threshold(self) -> float:
        return 0.0

    def _scores(self, X: Features) -> FloatArray:
        features: Any = scaled_rows(X) if self.normalize else X
        product: Any = features @ self.coef_.T
        scores = product.toarray() if hasattr(product, "toarray") else product
        return np.asarray(scores + self.intercept_)


class LinearOvA(WeightedClassifier, LinearLabels):
    """One linear classifier for each label, with squared hinge loss and small weights dropped.

    For each label with signs t_i = 1 where row i has it and -1 elsewhere, liblinear minimises::

        1/2 (||w||^2 + b^2) + C sum_i max(0, 1 - t_i (w.x_i + b))^2

    on rows of length one; with ``sample_weight`` the losses count as often as that says. Weights with
    ``|w| < prune`` are dropped and the rest is stored sparsely; with `prune` 0.01 this is what DiSMEC does.
    A label that no row has gets the score -1 and one that every row has the score 1, whatever the features.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is a b.
    max_iter : int, default=1000
        Limit of Newton steps for a label.
    tol : float, default=1e-2
        Tolerance of liblinear's primal solver.
    n_jobs : int, optional
        Threads, each on one label at a time. All cores by default.

    Attributes
    ----------
    coef_ : csr_array of shape (n_labels, n_features)
        Weights.
    intercept_ : array of shape (n_labels,)
        b.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen import LinearOvA
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])
    >>> Y = sparse.csr_array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> LinearOvA(C=10.0).fit(X, Y).predict_topk(X, k=1)[0].ravel().tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        prune: float = 0.01,
        fit_intercept: bool = True,
        normalize: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-2,
        calibrate: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.prune = prune
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.max_iter = max_iter
        self.tol = tol
        self.calibrate = calibrate
        self.n_jobs = n_jobs

    def _fit(self, X: Features, Y: CSR, weights: FloatArray | None = None) -> None:
        check_positive("C", self.C)
        check_positive("prune", self.prune, strict=False)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol)
        n_threads = check_n_jobs(self.n_jobs)
        features: Any = scaled_rows(X) if self.normalize else X
        features = _for_liblinear(features)
        by_label = sparse.csc_array(Y)
        n_rows, n_labels = Y.shape

        def one(label: int) -> tuple[IndexArray, FloatArray, float, int]:
            rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            if rows.size in (0, n_rows):
                return np.empty(0, np.int64), np.empty(0), 1.0 if rows.size else -1.0, 0
            signs = np.zeros(n_rows, dtype=np.int64)
            signs[rows] = 1
            with one_blas_thread():
                return self._one_label(features, signs, weights)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # told once below, not for each label
            if n_threads == 1:
                found = [one(label) for label in range(n_labels)]
            else:
                with ThreadPoolExecutor(n_threads) as pool:
                    found = list(pool.map(one, range(n_labels)))
        indptr = np.concatenate([[0], np.cumsum([kept.size for kept, _, _, _ in found])])
        columns = np.concatenate([kept for kept, _, _, _ in found])
        weights = np.concatenate([values for _, values, _, _ in found]).astype(X.dtype)
        self.coef_ = sparse.csr_array((weights, columns, indptr), shape=(n_labels, X.shape[1]))
        self.intercept_ = np.array([bias for _, _, bias, _ in found], dtype=X.dtype)
        steps = [taken for _, _, _, taken in found]
        self.n_iter_ = max(1, *steps)
        capped = sum(taken >= self.max_iter for taken in steps)
        self.converged_ = capped == 0
        self.history_ = []
        if capped:
            warnings.warn(
                f"{capped} of {n_labels} labels reached max_iter={self.max_iter} before tol={self.tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _one_label(
        self, X: Any, signs: Array, row_weights: FloatArray | None
    ) -> tuple[IndexArray, FloatArray, float, int]:
        from sklearn.svm import LinearSVC  # a large module, loaded by those who use it

        # The primal Newton solver draws no random numbers, so threads cannot change what it finds.
        classifier = LinearSVC(
            C=self.C, dual=False, fit_intercept=self.fit_intercept, max_iter=self.max_iter, tol=self.tol
        ).fit(X, signs, row_weights)
        weights = classifier.coef_.ravel()
        kept = np.flatnonzero(np.abs(weights) >= max(self.prune, np.finfo(np.float64).tiny))
        bias = float(classifier.intercept_[0]) if self.fit_intercept else 0.0
        return kept, weights[kept], bias, int(classifier.n_iter_)


def kept_weights(weights: FloatArray, prune: float) -> CSR:
    """Weights whose size is at least `prune` and not zero."""
    kept = np.abs(weights) >= max(prune, np.finfo(weights.dtype).tiny)
    return sparse.csr_array(np.where(kept, weights, weights.dtype.type(0)))


def _for_liblinear(X: Features) -> Any:
    """Float64 rows with the 32-bit indices that liblinear takes, converted once for all labels."""
    csr = sparse.csr_array(X)
    if csr.nnz > np.iinfo(np.int32).max:
        raise TooLargeError(f"X has {csr.nnz:,} stored values; liblinear takes at most 2,147,483,647")
    small = np.int32
    parts = (csr.data.astype(np.float64), csr.indices.astype(small), csr.indptr.astype(small))
    return sparse.csr_matrix(parts, shape=csr.shape)
