"""Labels by the votes of neighbours, and lists of labels with a stated order of ties."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from unseen.typing import CSR, FloatArray, IndexArray

__all__ = ["label_order", "ranked", "votes"]


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


def label_order(frequency: IndexArray) -> IndexArray:
    """Place of each label among equals: the more frequent in training first, then the lower index."""
    order = np.lexsort((np.arange(len(frequency)), -frequency))
    place = np.empty(len(frequency), dtype=np.int64)
    place[order] = np.arange(len(frequency))
    return place


def ranked(scores: CSR, k: int, place: IndexArray, *, fill: bool = True) -> tuple[IndexArray, FloatArray]:
    """The k best labels of each row of sparse scores.

    Parameters
    ----------
    scores : csr_array of shape (q, n_labels)
        What is not stored has the score 0.
    k : int
        Labels wanted.
    place : array of shape (n_labels,)
        Order of labels with the same score, from :func:`label_order`.
    fill : bool, default=True
        Whether labels without a stored score may come up. False for scores that are given for the
        candidates alone.

    Returns
    -------
    ids : int64 array of shape (q, k)
        Best first; -1 where there are fewer than k labels.
    values : array of shape (q, k)
        Their scores; NaN where there is no label.

    Examples
    --------
    Labels 1 and 2 have the same score; label 2 was seen more often.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> ranked(sparse.csr_array([[0.0, 0.5, 0.5]]), 2, label_order(np.array([9, 1, 4])))
    (array([[2, 1]]), array([[0.5, 0.5]]))
    """
    n_rows, n_labels = scores.shape
    ids = np.full((n_rows, k), -1, dtype=np.int64)
    values = np.full((n_rows, k), np.nan, dtype=scores.dtype)
    counts = np.diff(scores.indptr)
    rows = np.repeat(np.arange(n_rows), counts)
    cols, data = scores.indices.astype(np.int64), scores.data
    # Rows where an unstored zero may come up get the labels that come first among equals, with score 0.
    above = np.bincount(rows, weights=data > 0, minlength=n_rows)
    short = np.flatnonzero(above < min(k, n_labels)) if fill else np.empty(0, dtype=np.int64)
    if short.size:
        in_order = np.argsort(place)
        most = int(counts[short].max(initial=0))
        filler = in_order[: min(k + most, n_labels)]
        extra_rows, extra_cols = np.repeat(short, len(filler)), np.tile(filler, len(short))
        taken = np.isin(extra_rows * n_labels + extra_cols, rows * n_labels + cols)
        rows = np.concatenate([rows, extra_rows[~taken]])
        cols = np.concatenate([cols, extra_cols[~taken]])
        data = np.concatenate([data, np.zeros(int((~taken).sum()), dtype=data.dtype)])
    order = np.lexsort((place[cols], -data, rows))
    rows, cols, data = rows[order], cols[order], data[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = rank < k
    ids[rows[kept], rank[kept]] = cols[kept]
    values[rows[kept], rank[kept]] = data[kept]
    return ids, values
