"""Spectral clustering of items from known pairs alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.cluster import KMeans

from unseen.estimators.pair_clustering import PairClusterer, pair_matrix
from unseen.exceptions import ParameterError
from unseen.typing import BoolArray, Features, FloatArray, IndexArray
from unseen.validation import check_count, check_positive, check_rng

__all__ = ["SpectralPairs"]

DENSE_ITEMS = 500
"""Up to this size LAPACK's full eigenvalues are faster."""


class SpectralPairs(PairClusterer):
    """Spectral clustering on the graph of pairs that belong together; features are not used.

    The leading eigenvectors of ``D^-1/2 (A + e) D^-1/2``, with A the symmetric matrix of known
    pairs and e = eps / n_items on all pairs, rows scaled to length one, are clustered by k-means.
    The small constant keeps items without a pair (degree zero otherwise): they form a group of
    their own. Pairs known not to belong together are left out.

    Parameters
    ----------
    eps : float, default=1e-6
        Weight of all pairs, over the number of items.
    random_state : int or Generator, optional
        Seed of k-means.

    Attributes
    ----------
    labels_ : ndarray of int
        Cluster of each item.
    embedding_ : ndarray of shape (n_items, n_clusters)
        What k-means saw.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.baselines import SpectralPairs
    >>> pairs = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]]
    >>> labels = SpectralPairs(2, random_state=0).fit(np.zeros((6, 1)), pairs=pairs).labels_
    >>> bool(labels[0] == labels[2]), bool(labels[0] == labels[5])
    (True, False)
    """

    embedding_: FloatArray

    def __init__(
        self, n_clusters: int = 8, *, eps: float = 1e-6, n_init: int = 10, random_state: Any = None
    ) -> None:
        self.n_clusters = n_clusters
        self.eps = eps
        self.n_init = n_init
        self.random_state = random_state

    def _fit_pairs(self, features: Features, pairs: IndexArray, same: BoolArray) -> None:
        n, count = features.shape[0], check_count("n_clusters", self.n_clusters)
        if count > n:
            raise ParameterError(f"n_clusters={count} is more than the {n} items (n_samples)")
        together = pairs[same]
        graph = pair_matrix(together, np.ones(len(together), dtype=bool), n).csr
        rest = check_positive("eps", self.eps) / n
        root = 1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel() + rest * n)

        def times(vector: FloatArray) -> FloatArray:
            scaled = root * vector.ravel()
            product: FloatArray = root * (graph @ scaled + rest * scaled.sum())
            return product

        if n <= DENSE_ITEMS or count >= n - 1:
            _, vectors = np.linalg.eigh(root[:, None] * (graph.toarray() + rest) * root)
            leading = vectors[:, ::-1][:, :count]
        else:
            operator: Any = LinearOperator((n, n), matvec=times, dtype=np.float64)
            start: Any = np.random.default_rng(0).standard_normal(n)
            leading = eigsh(operator, k=count, which="LA", v0=start)[1]
        length = np.linalg.norm(leading, axis=1, keepdims=True)
        self.embedding_ = np.divide(leading, length, out=np.zeros_like(leading), where=length > 0)
        seed = int(check_rng(self.random_state).integers(2**31))
        kmeans = KMeans(count, n_init=check_count("n_init", self.n_init), random_state=seed)
        self.labels_ = kmeans.fit_predict(self.embedding_).astype(np.int64)
