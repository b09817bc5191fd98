"""Ranking metrics that make up for labels which are missing because they are rare.

A relevant label is recorded with a propensity p that grows with its frequency; weighting a hit by
1/p makes the metric on the recorded labels an unbiased estimate of the one on all labels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data import Observations
from unseen.docstrings import described_by
from unseen.exceptions import InvalidDataError
from unseen.metrics._lists import LISTS, RankedLists, ranked_lists
from unseen.metrics._pointwise import check_sample_weight
from unseen.metrics._ranking import rank_discounts
from unseen.parallel import one_blas_thread
from unseen.typing import FloatArray, SparseLike
from unseen.validation import check_count, check_positive

__all__ = ["label_propensities", "propensity_scored_ndcg_at_k", "propensity_scored_precision_at_k"]


def label_propensities(
    counts: npt.ArrayLike, n_rows: int, *, a: float = 0.55, b: float = 1.5
) -> npt.NDArray[np.float64]:
    """Chance that a true label is recorded, from how often it was seen in training.

    p = 1 / (1 + C (N + b)^(-a)) with C = (log n - 1) (b + 1)^a, N the count of the label and n the
    number of training rows. Usual constants: a = 0.55, b = 1.5; 0.5 and 0.4 for Wikipedia, 0.6 and
    2.6 for Amazon.

    Parameters
    ----------
    counts : array of shape (n_labels,)
        Training rows that carry each label.
    n_rows : int
        Training rows in all. With fewer than three C would be negative; it is then 0 and p = 1.
    a, b : float
        Constants of the curve, both positive.

    Returns
    -------
    ndarray of shape (n_labels,)
        In (0, 1], larger for frequent labels.

    Examples
    --------
    >>> from unseen.metrics import label_propensities
    >>> label_propensities([0, 10, 1000], n_rows=10_000).round(3)
    array([0.084, 0.22 , 0.767])
    """
    seen = np.asarray(counts, dtype=np.float64)
    n_rows = check_count("n_rows", n_rows)
    a = check_positive("a", a)
    b = check_positive("b", b)
    if seen.ndim != 1:
        raise InvalidDataError(f"counts have {seen.ndim} dimensions; expected one count per label")
    bad = np.flatnonzero(~(seen >= 0) | np.isinf(seen))
    if bad.size:
        raise InvalidDataError(f"counts have {seen[bad[0]]} for label {bad[0]}; expected finite numbers >= 0")
    scale = max(np.log(n_rows) - 1.0, 0.0) * (b + 1.0) ** a
    return np.asarray(1.0 / (1.0 + scale * (seen + b) ** -a))


@described_by(LISTS)
def propensity_scored_precision_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    propensities: npt.ArrayLike,
    k: int = 5,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Sum of 1/p over the hits among the first k places, over the largest sum attainable.

    Parameters
    ----------
    propensities : array of shape (n_cols,)
        Propensity of each column, in (0, 1]; see `label_propensities`.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in both sums; one by default.

    Returns
    -------
    float
        Between 0 and 1. The sums run over all rows before the one division, so rows without
        relevant columns change nothing.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import propensity_scored_precision_at_k
    >>> Y = sparse.csr_array([[1, 0, 1], [0, 1, 0]])
    >>> propensity_scored_precision_at_k(Y, [[0], [1]], [1.0, 1.0, 0.5], k=1)
    0.6666666666666666
    """
    lists, weights = _weighted_lists(Y_true, predictions, propensities, k)
    return _ratio(_hit_weights(lists, weights), _best_weights(lists, weights), sample_weight)


@described_by(LISTS)
@one_blas_thread()
def propensity_scored_ndcg_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    propensities: npt.ArrayLike,
    k: int = 5,
    *,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Discounted gain with hits weighted by 1/p, over the largest attainable.

    A hit at place i (from 1) gains 1 / (p log2(i + 1)). Each row's sum is divided by the unweighted
    gain of a perfect list of min(k, number of relevant columns) hits; the total over rows is divided
    by the same total for the lists that put the rarest relevant columns first.

    Parameters
    ----------
    propensities : array of shape (n_cols,)
        Propensity of each column, in (0, 1]; see `label_propensities`.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in both sums; one by default.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import propensity_scored_ndcg_at_k
    >>> Y = sparse.csr_array([[1, 0, 1], [0, 1, 0]])
    >>> round(propensity_scored_ndcg_at_k(Y, [[0, 2], [1, 2]], [1.0, 1.0, 0.5], k=2), 3)
    0.913
    """
    lists, weights = _weighted_lists(Y_true, predictions, propensities, k)
    discounts = rank_discounts(lists.k)
    perfect = np.concatenate([[1.0], np.cumsum(discounts)])[np.minimum(lists.n_relevant, lists.k)]
    reached, best = (part(lists, weights) @ discounts / perfect for part in (_hit_weights, _best_weights))
    return _ratio(reached, best, sample_weight)


def _ratio(reached: FloatArray, best: FloatArray, sample_weight: npt.ArrayLike | None) -> float:
    """Sum over the rows of what was reached, over that of the best."""
    rows = check_sample_weight(sample_weight, reached.shape[:1])
    if rows is not None:
        reached, best = (rows * part.T for part in (reached, best))
    total = float(np.sum(best))
    if total == 0.0:
        raise InvalidDataError(
            "no row that counts has a relevant cell: a propensity-scored metric is undefined"
        )
    return float(np.sum(reached)) / total


def _weighted_lists(
    Y_true: SparseLike | Observations, predictions: npt.ArrayLike, propensities: npt.ArrayLike, k: int
) -> tuple[RankedLists, FloatArray]:
    lists = ranked_lists(Y_true, predictions, k)
    chances = np.asarray(propensities, dtype=np.float64)
    if chances.shape != (lists.truth.shape[1],):
        raise InvalidDataError(
            f"propensities have shape {chances.shape}; expected one for each of "
            f"{lists.truth.shape[1]} columns"
        )
    bad = np.flatnonzero(~((chances > 0) & (chances <= 1)))
    if bad.size:
        raise InvalidDataError(
            f"propensities have {chances[bad[0]]} for column {bad[0]}; expected values above 0 and at most 1"
        )
    if lists.truth.nnz == 0:
        raise InvalidDataError("Y_true has no relevant cell, so a propensity-scored metric is undefined")
    return lists, 1.0 / chances


def _hit_weights(lists: RankedLists, weights: FloatArray) -> FloatArray:
    return np.where(lists.hits, weights[lists.ids], 0.0)


def _best_weights(lists: RankedLists, weights: FloatArray) -> FloatArray:
    """Weights of the k rarest relevant columns of each row, largest first, 0 where there are fewer."""
    truth = sparse.csr_array(lists.truth)
    rows = np.repeat(np.arange(truth.shape[0]), lists.n_relevant)
    gains = weights[truth.indices]
    order = np.lexsort((-gains, rows))
    place = np.arange(truth.nnz) - truth.indptr[rows]
    best = np.zeros(lists.ids.shape)
    kept = place < lists.k
    best[rows[kept], place[kept]] = gains[order][kept]
    return best
