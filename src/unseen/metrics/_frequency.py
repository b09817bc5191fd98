"""Ranking quality where frequent and rare columns are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.data import Observations
from unseen.docstrings import described_by
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.metrics._lists import LISTS, ranked_lists
from unseen.metrics._pointwise import check_sample_weight, weighted_mean
from unseen.typing import FloatArray, IndexArray, SparseLike
from unseen.validation import check_positive

__all__ = ["frequency_bins", "stratified_recall_at_k", "thirds"]

_NAMES = ("head", "middle", "tail")


@described_by(LISTS)
def frequency_bins(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    counts: npt.ArrayLike,
    k: int = 5,
    *,
    edges: tuple[float, float] | None = None,
) -> list[dict[str, Any]]:
    """Table of hits among frequent, middling and rare columns.

    Parameters
    ----------
    counts : array of shape (n_cols,)
        How often each column occurs in training.
    edges : (float, float), optional
        Columns with counts of at least the larger edge are the head, below the smaller edge the
        tail. When left out, head, middle and tail each hold about a third of all occurrences.

    Returns
    -------
    list of dict
        For "head", "middle" and "tail" in turn: ``bin``; ``n_columns``, ``lowest_count`` and
        ``highest_count`` of its columns (None without columns); ``n_relevant`` cells of `Y_true`;
        ``n_listed`` places; ``n_hits``; ``recall`` (hits over relevant cells) and ``precision``
        (hits over places), NaN where nothing could be counted.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import frequency_bins
    >>> Y = sparse.csr_array([[1, 1, 0], [1, 0, 1]])
    >>> for row in frequency_bins(Y, [[0, 1], [0, 1]], counts=[90, 20, 2], k=2, edges=(10, 50)):
    ...     print(row["bin"], row["n_hits"], row["recall"])
    head 2 1.0
    middle 1 1.0
    tail 0 0.0
    """
    lists = ranked_lists(Y_true, predictions, k)
    seen = _checked_counts(counts, lists.truth.shape[1])
    bin_of = thirds(seen) if edges is None else _between(seen, edges)
    relevant = np.bincount(bin_of[lists.truth.indices], minlength=3)
    listed = np.bincount(bin_of[lists.ids[lists.ids >= 0]], minlength=3)
    hits = np.bincount(bin_of[lists.ids[lists.hits]], minlength=3)
    table = []
    for number, name in enumerate(_NAMES):
        inside = seen[bin_of == number]
        table.append(
            {
                "bin": name,
                "n_columns": inside.size,
                "lowest_count": float(inside.min()) if inside.size else None,
                "highest_count": float(inside.max()) if inside.size else None,
                "n_relevant": int(relevant[number]),
                "n_listed": int(listed[number]),
                "n_hits": int(hits[number]),
                "recall": hits[number] / relevant[number] if relevant[number] else np.nan,
                "precision": hits[number] / listed[number] if listed[number] else np.nan,
            }
        )
    return table


@described_by(LISTS)
def stratified_recall_at_k(
    Y_true: SparseLike | Observations,
    predictions: npt.ArrayLike,
    counts: npt.ArrayLike,
    k: int = 5,
    *,
    power: float = 0.5,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Popularity-stratified recall: a relevant column counts ``count ** -power``, so that rare ones matter.

    For each row the sum over the hits among the first k places, divided by the sum over all its relevant
    columns; then the mean over the rows that have any. If positives are seen in proportion to
    ``count ** power``, this estimates the recall among all positives, seen or not (Steck, 2011).
    ``power=0`` is plain recall.

    Parameters
    ----------
    counts : array of shape (n_cols,)
        How often each column occurs in training; one that does not counts as if it occurred once.
    power : float, default=0.5
        How much more rare columns count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.metrics import stratified_recall_at_k
    >>> Y = sparse.csr_array([[1, 1, 0], [1, 0, 1]])
    >>> round(stratified_recall_at_k(Y, [[0], [2]], counts=[9, 4, 1], k=1), 3)  # of 0.4 and 0.75
    0.575
    """
    lists = ranked_lists(Y_true, predictions, k)
    gains = np.maximum(_checked_counts(counts, lists.truth.shape[1]), 1.0) ** -check_positive(
        "power", power, strict=False
    )
    weights = check_sample_weight(sample_weight, lists.n_relevant.shape)
    held = lists.n_relevant > 0
    if not held.any() or not (weights is None or weights[held].any()):
        raise InvalidDataError("no row that counts has a relevant cell: stratified recall is undefined")
    reached = np.where(lists.hits, gains[lists.ids], 0.0).sum(axis=1)[held]
    # Rows without relevant columns have no cells, so sums run from one kept row to the next.
    total = np.add.reduceat(gains[lists.truth.indices], lists.truth.indptr[:-1][held])
    return weighted_mean(reached / total, None if weights is None else weights[held])


def _checked_counts(counts: npt.ArrayLike, n_cols: int) -> FloatArray:
    """One finite number, zero or larger, for each column."""
    seen = np.asarray(counts, dtype=np.float64)
    if seen.shape != (n_cols,):
        raise InvalidDataError(f"counts have shape {seen.shape}; expected one for each of {n_cols} columns")
    bad = np.flatnonzero(~((seen >= 0) & np.isfinite(seen)))
    if bad.size:
        raise InvalidDataError(f"counts have {seen[bad[0]]} for column {bad[0]}; expected numbers >= 0")
    return seen


def thirds(counts: FloatArray) -> IndexArray:
    """Bins that share the occurrences about equally; columns of equal count stay together."""
    levels, level_of = np.unique(-counts, return_inverse=True)
    mass = np.cumsum(np.bincount(level_of, weights=counts, minlength=levels.size))
    before = np.concatenate([[0.0], mass[:-1]])
    total = max(float(mass[-1]), 1.0) if mass.size else 1.0
    middle_of_level = (before + mass) / 2 / total
    bins: IndexArray = np.minimum((middle_of_level * 3).astype(np.int64), 2)[level_of]
    return bins


def _between(counts: FloatArray, edges: tuple[float, float]) -> IndexArray:
    low, high = edges
    if not 0 < low <= high:
        raise ParameterError(f"edges={edges}; expected two numbers with 0 < smaller <= larger")
    bins: IndexArray = np.where(counts >= high, 0, np.where(counts >= low, 1, 2))
    return bins
