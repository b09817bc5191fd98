"""Metrics of one ranking over all candidates: area under the curve, false positives and negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.metrics._lists import contains, relevant_cells
from unseen.metrics._pointwise import check_sample_weight
from unseen.typing import BoolArray, FloatArray, IndexArray, SparseLike
from unseen.validation import check_count, check_index_pairs

__all__ = ["FprFnrCurve", "auc", "fpr_fnr_curve", "ranked_hits"]


def auc(
    y_true: npt.ArrayLike, y_score: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Chance that a positive scores above a negative, ties counted one half.

    With weights both are drawn in proportion to these.

    Parameters
    ----------
    y_true : array of shape (n,)
        Non-zero for positives; both kinds must occur.
    y_score : array of shape (n,)
        Scores without NaN.
    sample_weight : array-like of shape (n,), optional
        How much each pair of truth and score counts; one by default.

    Returns
    -------
    float
        The area under the ROC curve; 0.5 for scores that say nothing.

    Examples
    --------
    >>> from unseen.metrics import auc
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    positive = np.asarray(y_true) != 0
    scores = np.asarray(y_score)
    if positive.ndim != 1 or scores.shape != positive.shape:
        raise InvalidDataError(
            f"y_true has shape {positive.shape} and y_score {scores.shape}; "
            "expected equal one-dimensional arrays"
        )
    bad = np.flatnonzero(np.isnan(scores))
    if bad.size:
        raise InvalidDataError(f"y_score has NaN at position {bad[0]} ({bad.size} in all)")
    weights = check_sample_weight(sample_weight, positive.shape)
    if weights is not None:
        counted = weights > 0
        positive, scores, weights = positive[counted], scores[counted], weights[counted]
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    if n_positive == 0 or n_negative == 0:
        raise InvalidDataError(
            f"y_true has {n_positive} positives and {n_negative} negatives; auc needs at least one of each"
        )
    if weights is not None:
        return _weighted_auc(positive, scores, weights)
    from scipy.stats import rankdata  # many modules that other metrics do without

    rank_sum = float(np.sum(rankdata(scores)[positive], dtype=np.float64))
    return float((rank_sum - n_positive * (n_positive + 1) / 2) / n_positive / n_negative)


def _weighted_auc(positive: BoolArray, scores: npt.NDArray[Any], weights: FloatArray) -> float:
    levels, level_of = np.unique(scores, return_inverse=True)
    above, below = (
        np.bincount(level_of[kind], weights[kind], minlength=levels.size) for kind in (positive, ~positive)
    )
    lower = np.cumsum(below) - 0.5 * below  # a tie counts one half
    return float(above @ lower / (above.sum() * below.sum()))


@dataclass(frozen=True)
class FprFnrCurve:
    """False positive and false negative rate after each place of a ranked list.

    Attributes
    ----------
    fpr : ndarray of shape (n_listed,)
        Listed negatives over all negatives.
    fnr : ndarray of shape (n_listed,)
        Positives that are not listed yet, over all positives.
    n_hits : ndarray of shape (n_listed,)
        Positives listed so far.
    """

    fpr: FloatArray
    fnr: FloatArray
    n_hits: IndexArray

    @property
    def precision(self) -> FloatArray:
        """Share of positives among the places so far."""
        return np.asarray(self.n_hits / np.arange(1, self.n_hits.size + 1))


def fpr_fnr_curve(
    hits: npt.ArrayLike, *, n_positive: int | None = None, n_candidates: int | None = None
) -> FprFnrCurve:
    """False positive and false negative rate along a ranked list.

    FPR(k) = |first k, not positive| / (candidates - positives) and
    FNR(k) = 1 - |first k, positive| / positives.

    Parameters
    ----------
    hits : array of bool, shape (n_listed,)
        Whether the candidate at each place, best first, is a positive. For labels and scores:
        ``labels[np.argsort(-scores, kind="stable")]``; for listed pairs: `ranked_hits`.
    n_positive : int, optional
        Positives among all candidates; when left out, those in the list are all.
    n_candidates : int, optional
        Candidates that could have been listed; when left out, the list is complete.

    Returns
    -------
    FprFnrCurve
        With attributes ``fpr``, ``fnr``, ``n_hits`` and ``precision``.

    Examples
    --------
    >>> from unseen.metrics import fpr_fnr_curve
    >>> curve = fpr_fnr_curve([True, False, True], n_positive=4, n_candidates=104)
    >>> curve.fpr
    array([0.  , 0.01, 0.01])
    >>> curve.fnr
    array([0.75, 0.75, 0.5 ])
    """
    found = np.asarray(hits)
    if found.ndim != 1 or found.size == 0:
        raise InvalidDataError(f"hits have shape {found.shape}; expected a non-empty one-dimensional array")
    if found.dtype != np.bool_ and not np.all((found == 0) | (found == 1)):
        raise InvalidDataError("hits have values other than 0 and 1; expected booleans in order of rank")
    n_hits = np.cumsum(found.astype(np.int64))
    positives = int(n_hits[-1]) if n_positive is None else check_count("n_positive", n_positive)
    candidates = found.size if n_candidates is None else check_count("n_candidates", n_candidates)
    misses = np.arange(1, found.size + 1) - n_hits
    negatives = candidates - positives
    if positives < max(n_hits[-1], 1):
        raise ParameterError(f"n_positive={positives} but the list has {n_hits[-1]} hits; one is needed")
    if negatives < max(misses[-1], 1):
        raise ParameterError(
            f"n_candidates={candidates} leaves {negatives} negatives but the list has {misses[-1]}; "
            "expected all candidates, positives included, and at least one negative"
        )
    return FprFnrCurve(fpr=misses / negatives, fnr=1.0 - n_hits / positives, n_hits=n_hits)


def ranked_hits(Y_true: SparseLike | Observations, pairs: npt.ArrayLike) -> BoolArray:
    """Tell for each listed pair whether it is relevant.

    Parameters
    ----------
    Y_true : sparse matrix or Observations
        Non-zero where relevant. For undirected links, store both (i, j) and (j, i), list each pair
        once, and count half the stored cells as positives.
    pairs : array of shape (n_listed, 2)
        Row and column of each candidate, best first, none twice.

    Returns
    -------
    ndarray of bool, shape (n_listed,)
        The input of `fpr_fnr_curve`.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import ranked_hits
    >>> ranked_hits(sparse.csr_array([[0, 1], [1, 0]]), [[0, 1], [0, 0]])
    array([ True, False])
    """
    truth = relevant_cells(Y_true)
    rows, cols = check_index_pairs("pairs", pairs, truth.shape).T
    cells = np.sort(rows * np.int64(truth.shape[1]) + cols)
    twice = np.flatnonzero(cells[1:] == cells[:-1])
    if twice.size:
        row, col = divmod(int(cells[twice[0]]), int(truth.shape[1]))
        raise InvalidDataError(f"pairs list ({row}, {col}) more than once; each candidate has one place")
    return contains(truth, rows, cols)
