"""Metrics of ranked lists.

All take the truth as a sparse matrix (non-zero = relevant; it is never made dense) and the
predictions either as integer ids, best first with -1 for an empty place, as ``recommend`` and
``predict_topk`` return them, or as a dense floating-point matrix of scores. Among equal scores
the smaller column comes first; NaN and -inf are never listed. Of an `Observations` with weights, cells of
weight zero are not relevant; how much the others weigh does not matter to a list, rows are weighted instead.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unseen.data import Observations
from unseen.docstrings import described_by
from unseen.exceptions import InvalidDataError
from unseen.metrics._lists import LISTS, RankedLists, ranked_lists
from unseen.metrics._pointwise import check_sample_weight, weighted_mean
from unseen.parallel import one_blas_thread
from unseen.typing import SparseLike
from unseen.validation import check_choice

__all__ = [
    "hit_rate_at_k",
    "map_at_k",
    "mrr_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "rank_discounts",
    "recall_at_k",
]

EmptyRows = Literal["zero", "skip"]


@described_by(LISTS)
def precision_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    k: int = 5,
    *,
    empty_rows: EmptyRows = "zero",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Share of the first k places that are relevant, averaged over rows.

    The divisor is always k, also where a row has fewer relevant columns or a shorter list.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import precision_at_k
    >>> Y = sparse.csr_array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> precision_at_k(Y, [[2, 0], [3, 1]], k=2)
    0.75
    """
    lists = ranked_lists(Y_true, predictions, k)
    return _mean_over_rows(lists.hits.sum(axis=1) / lists.k, lists, empty_rows, sample_weight)


@described_by(LISTS)
def recall_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    k: int = 5,
    *,
    empty_rows: EmptyRows = "zero",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Share of the relevant columns that are among the first k places, averaged over rows.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import recall_at_k
    >>> Y = sparse.csr_array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> recall_at_k(Y, [[2, 1], [3, 1]], k=2)
    0.75
    """
    lists = ranked_lists(Y_true, predictions, k)
    return _mean_over_rows(
        lists.hits.sum(axis=1) / np.maximum(lists.n_relevant, 1), lists, empty_rows, sample_weight
    )


@described_by(LISTS)
@one_blas_thread()
def ndcg_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    k: int = 5,
    *,
    empty_rows: EmptyRows = "zero",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Normalised discounted cumulative gain of the first k places, averaged over rows.

    A hit at place i (from 1) gains 1 / log2(i + 1); a row's sum is divided by the sum of the best
    possible list, which has min(k, number of relevant columns) hits in front.

    Parameters
    ----------
    Y_true : sparse matrix, Observations or array of shape (n, n_cols)
        Non-zero where relevant; all relevant columns gain the same.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import ndcg_at_k
    >>> Y = sparse.csr_array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> round(ndcg_at_k(Y, [[2, 0], [3, 1]], k=2), 4)
    0.8155
    """
    lists = ranked_lists(Y_true, predictions, k)
    discounts = rank_discounts(lists.k)
    best = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(lists.n_relevant, lists.k)]
    gains = lists.hits @ discounts
    shares = np.divide(gains, best, out=np.zeros_like(gains), where=best > 0)
    return _mean_over_rows(shares, lists, empty_rows, sample_weight)


@described_by(LISTS)
def map_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    k: int = 5,
    *,
    empty_rows: EmptyRows = "zero",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Mean average precision of the first k places.

    The precision of the list up to each hit, summed over the hits and divided by min(k, number of relevant
    columns), averaged over rows.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import map_at_k
    >>> Y = sparse.csr_array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> map_at_k(Y, [[2, 1, 0], [3, 1, 0]], k=3)  # (1 + 2/3) / 2 and 1/2
    0.6666666666666666
    """
    lists = ranked_lists(Y_true, predictions, k)
    places = np.arange(1, lists.k + 1)
    precisions = np.cumsum(lists.hits, axis=1) / places
    best = np.maximum(np.minimum(lists.n_relevant, lists.k), 1)
    average = np.asarray((precisions * lists.hits).sum(axis=1) / best)
    return _mean_over_rows(average, lists, empty_rows, sample_weight)


@described_by(LISTS)
def mrr_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    k: int = 5,
    *,
    empty_rows: EmptyRows = "zero",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Mean reciprocal rank: one over the place of the first hit, zero without one among the first k.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import mrr_at_k
    >>> Y = sparse.csr_array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> mrr_at_k(Y, [[2, 1], [3, 1]], k=2)
    0.75
    """
    lists = ranked_lists(Y_true, predictions, k)
    first = np.asarray(lists.hits.any(axis=1) / (lists.hits.argmax(axis=1) + 1))
    return _mean_over_rows(first, lists, empty_rows, sample_weight)


@described_by(LISTS)
def hit_rate_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    k: int = 5,
    *,
    empty_rows: EmptyRows = "zero",
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Share of the rows with at least one relevant column among the first k places.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import hit_rate_at_k
    >>> Y = sparse.csr_array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> hit_rate_at_k(Y, [[2, 1], [3, 0]], k=2)
    0.5
    """
    lists = ranked_lists(Y_true, predictions, k)
    found = np.asarray(lists.hits.any(axis=1), dtype=np.float64)
    return _mean_over_rows(found, lists, empty_rows, sample_weight)


def rank_discounts(k: int) -> npt.NDArray[np.float64]:
    """Gain of a hit at each of the first k places, 1 / log2(place + 1)."""
    return 1.0 / np.log2(np.arange(2, k + 2, dtype=np.float64))


def _mean_over_rows(
    values: npt.NDArray[Any],
    lists: RankedLists,
    empty_rows: EmptyRows,
    sample_weight: npt.ArrayLike | None,
) -> float:
    check_choice("empty_rows", empty_rows, ("zero", "skip"))
    weights = check_sample_weight(sample_weight, values.shape)
    if empty_rows == "skip":
        counted = lists.n_relevant > 0
        values, weights = values[counted], None if weights is None else weights[counted]
    if values.size == 0 or not (weights is None or weights.any()):
        raise InvalidDataError(f"Y_true of shape {lists.truth.shape} has no row to average over")
    return weighted_mean(values, weights)
