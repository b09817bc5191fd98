"""Agreement of a clustering with known classes or known pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.exceptions import InvalidDataError

__all__ = ["constraint_error", "pair_error"]


def pair_error(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Share of unordered pairs on which two partitions disagree: 1 - Rand index.

    Computed from the contingency table T of classes and clusters without visiting pairs:
    (sum_a T_a.² + sum_b T_.b² - 2 sum_ab T_ab²) / (n (n - 1)).

    Parameters
    ----------
    labels_true, labels_pred : array of shape (n,)
        Class and cluster of each item, n at least 2; names do not matter.

    Returns
    -------
    float
        0 for equal partitions.

    Examples
    --------
    >>> from unseen.metrics import pair_error
    >>> pair_error([0, 0, 1, 1], ["a", "a", "b", "c"])
    0.16666666666666666
    """
    truth, found = np.asarray(labels_true), np.asarray(labels_pred)
    if truth.ndim != 1 or truth.shape != found.shape:
        raise InvalidDataError(
            f"labels_true has shape {truth.shape} and labels_pred {found.shape}; "
            "expected equal one-dimensional arrays"
        )
    if truth.size < 2:
        raise InvalidDataError(f"labels_true has {truth.size} items; a pair needs two")
    classes = np.unique(truth, return_inverse=True)[1]
    clusters = np.unique(found, return_inverse=True)[1]
    # Sparse, because as many clusters as items would make the dense table n x n.
    table = sparse.coo_array((np.ones(truth.size, dtype=np.int64), (classes, clusters))).tocsr()
    together = sum(int(np.sum(np.square(np.bincount(labels)))) for labels in (classes, clusters))
    return (together - 2 * int(np.sum(np.square(table.data)))) / (truth.size * (truth.size - 1))


def constraint_error(labels: npt.ArrayLike, pairs: npt.ArrayLike, same: npt.ArrayLike | None = None) -> float:
    """Share of given pairs that a clustering gets wrong.

    Parameters
    ----------
    labels : array of shape (n,)
        Cluster of each item.
    pairs : array of int, shape (p, 2)
        Items of each pair.
    same : array of bool, shape (p,), optional
        Whether the pair belongs together; None means that all do.

    Returns
    -------
    float
        Between 0 and 1. Used to choose parameters on pairs kept aside.

    Examples
    --------
    >>> from unseen.metrics import constraint_error
    >>> constraint_error([0, 0, 1], [[0, 1], [0, 2]], same=[True, True])
    0.5
    """
    assigned, given = np.asarray(labels), np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2 or len(given) == 0 or given.dtype.kind not in "iu":
        raise InvalidDataError(
            f"pairs have shape {given.shape} and dtype {given.dtype}; "
            "expected integers of shape (p, 2), p at least 1"
        )
    bad = np.argwhere((given < 0) | (given >= len(assigned)))
    if len(bad):
        raise InvalidDataError(
            f"pairs name item {given[tuple(bad[0])]} in pair {bad[0][0]}; there are {len(assigned)} labels"
        )
    together = np.ones(len(given), dtype=np.bool_) if same is None else np.asarray(same, dtype=np.bool_)
    if together.shape != (len(given),):
        raise InvalidDataError(
            f"same has shape {together.shape}; expected one for each of {len(given)} pairs"
        )
    return float(np.mean((assigned[given[:, 0]] == assigned[given[:, 1]]) != together))
