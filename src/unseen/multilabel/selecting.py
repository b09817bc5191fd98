"""The best labels of each row of a block of scores."""

from __future__ import annotations

import numpy as np

from unseen.typing import CSR, Array, FloatArray, IndexArray

__all__ = ["best_of_dense", "best_of_sparse"]


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
    n_rows, n_labels = scores.shape
    preference = np.arange(n_labels)
    if order is not None:
        preference[order] = np.arange(n_labels)
    counts = np.diff(scores.indptr)
    rows = np.repeat(np.arange(n_rows), counts)
    ranked = np.lexsort((preference[scores.indices], -scores.data, rows))
    place = np.arange(len(rows)) - np.repeat(scores.indptr[:-1], counts)
    first = place < k
    ids = np.full((n_rows, k), -1, dtype=np.int64)
    values = np.full((n_rows, k), np.nan, dtype=scores.dtype)
    ids[rows[first], place[first]] = scores.indices[ranked[first]]
    values[rows[first], place[first]] = scores.data[ranked[first]]
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
