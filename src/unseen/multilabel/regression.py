"""From features to embeddings: a linear map, without what it does not need."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from unseen.exceptions import ConvergenceWarning
from unseen.linalg.admm import sparse_fit_regression
from unseen.linalg.designs import as_design
from unseen.typing import CSR, Features, FloatArray, IndexArray

__all__ = ["LinearMap", "regress", "used_features"]


@dataclass(frozen=True)
class LinearMap:
    """``x -> V'x`` on some of the features.

    Attributes
    ----------
    features : int64 array of shape (u,)
        Features that occur in training; the others have no weight.
    weights : array or csr_array of shape (u, r)
        V on these features; sparse after pruning.
    """

    features: IndexArray
    weights: FloatArray | CSR

    def apply(self, X: Features, *, n_threads: int = 1) -> FloatArray:
        """Embeddings of rows of X, a row block at a time for dense features."""
        part = X if len(self.features) == X.shape[1] else X[:, self.features]
        if sparse.issparse(self.weights):
            product = part @ self.weights
            dense: FloatArray = product.toarray() if sparse.issparse(product) else np.asarray(product)
            return np.ascontiguousarray(dense, dtype=X.dtype)
        return as_design(part, n_threads).dot(np.asarray(self.weights))

    @property
    def n_stored(self) -> int:
        """Weights that are kept."""
        return int(self.weights.nnz) if sparse.issparse(self.weights) else int(self.weights.size)


def used_features(X: Features) -> IndexArray:
    """Columns with anything in them; all of them for dense features."""
    if not sparse.issparse(X):
        return np.arange(X.shape[1])
    return np.flatnonzero(np.bincount(sparse.csr_array(X).indices, minlength=X.shape[1]))


def regress(
    X: Features, Z: FloatArray, reg: float, *, l1: float = 0.0, prune: float = 0.0, n_threads: int = 1
) -> LinearMap:
    """Linear map of least ``1/2 ||Z - X V||^2 + reg/2 ||V||^2 + l1 ||X V||_1``.

    Parameters
    ----------
    X : array or csr_array of shape (n, d)
        Features.
    Z : array of shape (n, r)
        Embeddings.
    reg, l1 : float
        Weights of the penalties.
    prune : float, default=0.0
        Share of the weights to drop, the smallest first; the rest is stored sparsely.
    n_threads : int, default=1
        Threads.

    Returns
    -------
    LinearMap

    Examples
    --------
    >>> import numpy as np
    >>> found = regress(np.eye(3), np.array([[2.0], [4.0], [0.2]]), reg=1.0, prune=0.4)
    >>> found.weights.toarray().round(3).ravel().tolist()
    [1.0, 2.0, 0.0]
    """
    features = used_features(X)
    part = X if len(features) == X.shape[1] else X[:, features]
    if not len(features):
        return LinearMap(features, np.zeros((0, Z.shape[1]), dtype=X.dtype))
    found = sparse_fit_regression(part, Z.astype(X.dtype, copy=False), reg, l1, n_threads=n_threads)
    if not found.converged:
        warnings.warn(
            f"the regression with l1={l1:g} stopped after {len(found.objectives)} rounds with residuals "
            f"{found.primal[-1]:.1e} and {found.dual[-1]:.1e}",
            ConvergenceWarning,
            stacklevel=4,
        )
    weights = np.ascontiguousarray(found.coefficients)  # as a saved model has them, to the last bit
    return LinearMap(features, _pruned(weights, prune) if prune > 0.0 else weights)


def _pruned(weights: FloatArray, share: float) -> CSR:
    n_dropped = int(share * weights.size)
    flat = weights.ravel().copy()
    # A stable order makes equal weights fall in the order of their place.
    flat[np.argsort(np.abs(flat), kind="stable")[:n_dropped]] = 0.0
    return sparse.csr_array(flat.reshape(weights.shape))
