"""Nearest rows of a table of points, exact or approximate, and the votes of their labels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.exceptions import ParameterError
from unseen.typing import CSR, FloatArray, IndexArray

__all__ = ["Metric", "NeighbourIndex", "Search", "comparable", "unit_rows", "votes"]

Metric = Literal["cosine", "l2", "dot"]
Search = Literal["exact", "usearch"]


def unit_rows(points: FloatArray) -> FloatArray:
    """Rows of length one; a row of zeros stays one, so that its cosine with anything is 0."""
    norms = np.sqrt(np.einsum("ij,ij->i", points, points, dtype=np.float64, casting="same_kind"))
    safe = np.where(norms > 0.0, norms, 1.0).astype(points.dtype)
    return points / safe[:, None]


def comparable(points: FloatArray, metric: Metric, *, query: bool) -> FloatArray:
    """Points whose inner products rank as the metric does.

    For the Euclidean distance that is ``q.p - ||p||^2 / 2``, half of what is missing to
    ``-||q - p||^2`` but for a constant of the query.
    """
    if metric == "cosine":
        return unit_rows(points)
    if metric == "dot":
        return points
    if query:
        last = np.ones(len(points), dtype=points.dtype)
    else:
        squares = np.einsum("ij,ij->i", points, points, dtype=np.float64, casting="same_kind")
        last = (-0.5 * squares).astype(points.dtype)
    return np.column_stack([points, last])


class NeighbourIndex:
    """Finds the nearest points of queries, nearest first, ties to the lower row.

    Parameters
    ----------
    points : array of shape (n, r)
        Where to look.
    metric : {"cosine", "l2", "dot"}, default="cosine"
        Nearest by the largest cosine, the least Euclidean distance or the largest inner product. The
        cosine with a row of zeros is 0.
    search : {"exact", "usearch"}, default="exact"
        Compare with all points, or walk an approximate index of the package usearch, which may miss
        some and may find others when it runs on more threads.
    n_threads : int, default=1
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> index = NeighbourIndex(np.array([[0.0, 1.0], [2.0, 0.0], [3.0, 3.0]]))
    >>> ids, cosines = index.search(np.array([[1.0, 0.0]]), 2)
    >>> ids, cosines.round(3)
    (array([[1, 2]]), array([[1.   , 0.707]]))
    """

    def __init__(
        self, points: FloatArray, metric: Metric = "cosine", *, search: Search = "exact", n_threads: int = 1
    ) -> None:
        self.metric, self.n_threads, self.n_points = metric, n_threads, len(points)
        self._units = unit_rows(points)
        self._points = self._units if metric == "cosine" else comparable(points, metric, query=False)
        self._approximate = _approximate_index(points, metric, n_threads) if search == "usearch" else None

    def search(self, queries: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """The nearest points of every query.

        Parameters
        ----------
        queries : array of shape (q, r)
            Points in the same space.
        k : int
            Neighbours wanted; all points where there are fewer.

        Returns
        -------
        ids : int64 array of shape (q, min(k, n))
            Rows of the points; -1 where an approximate search found no more.
        cosines : array of shape (q, min(k, n))
            Cosine with each; 0 where there is none.
        """
        k = min(k, self.n_points)
        if self._approximate is not None:
            ids = self._walk(queries, k)
        else:
            left = comparable(queries, self.metric, query=True)
            ids, scores = kernels.topk(left, self._points, k, n_threads=self.n_threads)
            if self.metric == "cosine":
                return ids, scores
        return ids, self._cosines(queries, ids)

    def _cosines(self, queries: FloatArray, ids: IndexArray) -> FloatArray:
        found = np.maximum(ids, 0)
        indptr = np.arange(len(queries) + 1, dtype=np.int64) * found.shape[1]
        values = kernels.sddmm(
            indptr, found.ravel(), unit_rows(queries), self._units, n_threads=self.n_threads
        )
        values[ids.ravel() < 0] = 0.0
        return values.reshape(found.shape)

    def _walk(self, queries: FloatArray, k: int) -> IndexArray:
        assert self._approximate is not None
        matches = self._approximate.search(np.asarray(queries, dtype=np.float32), k, threads=self.n_threads)
        ids = np.asarray(matches.keys).reshape(len(queries), -1).astype(np.int64)
        counts = np.broadcast_to(np.asarray(getattr(matches, "counts", ids.shape[1])), len(queries))
        ids[np.arange(ids.shape[1])[None, :] >= counts[:, None]] = -1
        return ids


def _approximate_index(points: FloatArray, metric: Metric, n_threads: int) -> Any:
    try:
        from usearch.index import Index
    except ImportError as error:
        raise ParameterError(
            "search='usearch' needs the package usearch: pip install 'unseen[ann]'; "
            "search='exact' needs nothing"
        ) from error
    name = {"cosine": "cos", "l2": "l2sq", "dot": "ip"}[metric]
    index = Index(ndim=points.shape[1], metric=name, dtype="f32")
    index.add(np.arange(len(points)), np.asarray(points, dtype=np.float32), threads=n_threads)
    return index


def votes(
    ids: IndexArray, cosines: FloatArray, labels: CSR, *, power: float = 0.0, n_neighbors: int | None = None
) -> CSR:
    """Average label vector of the neighbours of each query.

    Parameters
    ----------
    ids : array of shape (q, k)
        Rows of `labels` that vote, -1 for none.
    cosines : array of shape (q, k)
        Cosine of the query with each.
    labels : csr_array of shape (n, n_labels)
        Ones for the labels of each row.
    power : float, default=0.0
        A vote weighs ``max(cosine, 0) ** power``; 0 gives each the weight 1.
    n_neighbors : int, optional
        Divisor, by default k.

    Returns
    -------
    csr_array of shape (q, n_labels)
        Without stored zeros, indices sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> votes(np.array([[0, 1]]), np.ones((1, 2)), sparse.csr_array([[1.0, 0.0], [1.0, 1.0]])).toarray()
    array([[1. , 0.5]])
    """
    n_queries, k = ids.shape
    weights = np.ones(ids.shape, dtype=cosines.dtype)
    if power:
        weights = np.maximum(cosines, cosines.dtype.type(0.0)) ** cosines.dtype.type(power)
    weights = np.where(ids >= 0, weights, cosines.dtype.type(0.0))
    # Counts are whole numbers and added exactly; dividing afterwards keeps equal counts equal.
    chosen: CSR = sparse.csr_array(
        (
            weights.ravel(),
            np.maximum(ids, 0).ravel(),
            np.arange(0, n_queries * k + 1, max(k, 1))[: n_queries + 1],
        ),
        shape=(n_queries, labels.shape[0]),
    )
    total = sparse.csr_array(chosen @ labels.astype(cosines.dtype, copy=False))
    total.data /= cosines.dtype.type(max(k if n_neighbors is None else n_neighbors, 1))
    total.eliminate_zeros()
    total.sort_indices()
    return total
