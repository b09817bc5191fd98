"""The best labels of each row of a block of scores, with a stated order of ties."""

from __future__ import annotations

import numpy as np

from unseen.typing import CSR, Array, FloatArray, IndexArray

__all__ = ["best_of_dense", "best_of_sparse", "label_order", "ranked"]


def best_of_dense(
    scores: FloatArray, k: int, order: IndexArray | None = None
) -> tuple[IndexArray, FloatArray]:
    """Highest scores of each row.

    Parameters
    ----------
    scores : array of shape (b, n_labels)
    k : int
        Labels wanted; places beyond n_labels get id -1 and score NaN.
    order : array of shape (n_labels,), optional
        All labels by decreasing preference among equal scores; by increasing number if None.

    Returns
    -------
    ids : int64 array of shape (b, k)
    scores : array of shape (b, k)
    """
    if order is not None:
        scores = scores[:, order]
    kept = min(k, scores.shape[1])
    if kept < scores.shape[1]:
        # All above the k-th best, then as many equal to it as there is room for, from the left.
        last = np.partition(scores, scores.shape[1] - kept, axis=1)[:, scores.shape[1] - kept, None]
        chosen = scores > last
        equal = scores == last
        room = kept - chosen.sum(axis=1, keepdims=True)
        chosen |= equal & (np.cumsum(equal, axis=1) <= room)
        places = np.nonzero(chosen)[1].reshape(len(scores), kept)
    else:
        places = np.broadcast_to(np.arange(kept), (len(scores), kept))
    values = np.take_along_axis(scores, places, axis=1)
    rank = np.argsort(-values, axis=1, kind="stable")
    places, values = np.take_along_axis(places, rank, axis=1), np.take_along_axis(values, rank, axis=1)
    return _padded(places if order is None else order[places], values, k)


def best_of_sparse(scores: CSR, k: int, order: IndexArray | None = None) -> tuple[IndexArray, FloatArray]:
    """Highest stored scores of each row; labels without a stored score are never among them."""
    place = np.arange(scores.shape[1])
    if order is not None:
        place[order] = np.arange(scores.shape[1])
    return ranked(scores, k, place, fill=False)


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


def _padded(ids: Array, values: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
    missing = k - ids.shape[1]
    ids = ids.astype(np.int64, copy=False)
    if missing <= 0:
        return ids, values
    return (
        np.pad(ids, ((0, 0), (0, missing)), constant_values=-1),
        np.pad(values, ((0, 0), (0, missing)), constant_values=np.nan),
    )
