"""Ranking quality by how frequent the columns are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.metrics._lists import ranked_lists
from unseen.typing import FloatArray, IndexArray, SparseLike

__all__ = ["frequency_bins", "thirds"]

_NAMES = ("head", "middle", "tail")


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
    Y_true : sparse matrix, Observations or array of shape (n, n_cols)
        Non-zero where relevant.
    predictions : array of shape (n, >= k) or (n, n_cols)
        Integer ids, best first, -1 for an empty place; or floating-point scores of all columns.
    counts : array of shape (n_cols,)
        How often each column occurs in training.
    k : int, default=5
        Places that count.
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
    seen = np.asarray(counts, dtype=np.float64)
    if seen.shape != (lists.truth.shape[1],):
        raise InvalidDataError(
            f"counts have shape {seen.shape}; expected one for each of {lists.truth.shape[1]} columns"
        )
    bad = np.flatnonzero(~((seen >= 0) & np.isfinite(seen)))
    if bad.size:
        raise InvalidDataError(f"counts have {seen[bad[0]]} for column {bad[0]}; expected numbers >= 0")
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
