"""What all ranking metrics share: who is relevant, who was listed, and where the two meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data import Observations
from unseen.docstrings import Descriptions
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.typing import CSR, BoolArray, IndexArray, SparseLike
from unseen.validation import check_count

__all__ = ["LISTS", "RankedLists", "checked_ids", "contains", "ranked_lists", "relevant_cells"]

LISTS: Descriptions = {
    "Y_true": ("sparse matrix, Observations or array of shape (n, n_cols)", "Non-zero where relevant."),
    "predictions": (
        "array of shape (n, >= k) or (n, n_cols)",
        "Integer ids, best first, -1 for an empty place; or floating-point scores of all columns.",
    ),
    "k": ("int", "Places that count."),
    "empty_rows": (
        '{"zero", "skip"}',
        "Rows without any relevant column stay in the mean as zero, or are left out.",
    ),
    "sample_weight": (
        "array-like of shape (n,), optional",
        "How much each row counts in the mean; one by default.",
    ),
}
"""What metrics of lists take."""

_SCORES_PER_BLOCK = 1 << 22


@dataclass(frozen=True)
class RankedLists:
    """The first k places of every row, met with the truth.

    Attributes
    ----------
    truth : csr_array
        Relevant cells: the non-zeros of `Y_true`, sorted.
    ids : ndarray of shape (n, k)
        Listed columns, best first, -1 where a list is shorter.
    hits : ndarray of bool, shape (n, k)
        Whether the listed column is relevant.
    n_relevant : ndarray of shape (n,)
        Relevant columns of each row.
    """

    truth: CSR
    ids: IndexArray
    hits: BoolArray
    n_relevant: IndexArray

    @property
    def k(self) -> int:
        """Length of the lists."""
        return int(self.ids.shape[1])


def ranked_lists(Y_true: SparseLike | Observations, predictions: npt.ArrayLike, k: int) -> RankedLists:
    """Validate truth and predictions and find the hits among the first k places."""
    k = check_count("k", k)
    truth = relevant_cells(Y_true)
    given = np.asarray(predictions)
    if given.ndim != 2 or given.shape[0] != truth.shape[0]:
        raise InvalidDataError(
            f"predictions have shape {given.shape}; expected two dimensions and, as Y_true, "
            f"{truth.shape[0]} rows"
        )
    if np.issubdtype(given.dtype, np.integer):
        ids = checked_ids(given, truth.shape[1], k)
    elif np.issubdtype(given.dtype, np.floating):
        ids = _best_columns(given, truth.shape[1], k)
    else:
        raise InvalidDataError(
            f"predictions have dtype {given.dtype}; expected integers (column ids, best first) "
            "or floats (scores)"
        )
    rows = np.repeat(np.arange(ids.shape[0]), k)
    listed = ids.ravel()
    hits = np.zeros(listed.size, dtype=np.bool_)
    real = listed >= 0
    hits[real] = contains(truth, rows[real], listed[real])
    return RankedLists(truth, ids, hits.reshape(ids.shape), np.diff(truth.indptr))


def relevant_cells(Y_true: SparseLike | Observations) -> CSR:
    """Non-zeros of `Y_true` as a canonical CSR array; stored zeros and cells of weight zero do not count."""
    if isinstance(Y_true, Observations):
        weights = Y_true.weights
        truth: CSR = (Y_true if weights is None else Y_true.select(weights > 0)).csr
    elif sparse.issparse(Y_true):
        truth = sparse.csr_array(cast("Any", Y_true))
    else:
        dense = np.asarray(Y_true)
        if dense.ndim != 2:
            raise InvalidDataError(f"Y_true has {dense.ndim} dimensions; expected a matrix of 0 and 1")
        truth = sparse.csr_array(dense)
    if not truth.has_canonical_format or not np.all(truth.data):
        truth = truth.copy()  # the repairs below work in place and the matrix may be the caller's
        truth.sum_duplicates()
        truth.eliminate_zeros()
    bad = np.flatnonzero(~np.isfinite(truth.data))
    if bad.size:
        row = int(np.searchsorted(truth.indptr, bad[0], side="right")) - 1
        raise InvalidDataError(
            f"Y_true has {truth.data[bad[0]]} in row {row}, column {truth.indices[bad[0]]}; "
            "expected 0 (or nothing) and non-zero finite values"
        )
    return truth


def contains(truth: CSR, rows: IndexArray, cols: IndexArray) -> BoolArray:
    """Tell for each (row, col) whether it is a stored cell of a canonical CSR array."""
    if truth.nnz == 0:
        return np.zeros(len(rows), dtype=np.bool_)
    n_cols = np.int64(truth.shape[1])
    # Row-major cell numbers are increasing in a canonical CSR array, so one binary search finds each.
    row_starts = np.arange(truth.shape[0], dtype=np.int64) * n_cols
    stored = np.repeat(row_starts, np.diff(truth.indptr)) + truth.indices
    wanted = np.asarray(rows, dtype=np.int64) * n_cols + cols
    place = np.minimum(np.searchsorted(stored, wanted), stored.size - 1)
    found: BoolArray = stored[place] == wanted
    return found


def refuse_beyond(k: int, n_cols: int) -> None:
    """Refuse lists that are longer than there are columns: their last places would count as misses."""
    if k > n_cols:
        raise ParameterError(f"k={k} but there are only {n_cols} columns; ask for at most that many")


def checked_ids(given: npt.NDArray[Any], n_cols: int, k: int) -> IndexArray:
    """Cut to k places; ids in range, -1 for an empty place, none twice in a row."""
    refuse_beyond(k, n_cols)
    if given.shape[1] < k:
        raise ParameterError(
            f"k={k} but predictions list only {given.shape[1]} ids a row; ask for longer lists or a smaller k"
        )
    ids = given[:, :k].astype(np.int64)
    bad = np.argwhere((ids < -1) | (ids >= n_cols))
    if len(bad):
        row, place = bad[0]
        raise InvalidDataError(
            f"predictions have id {ids[row, place]} in row {row}, place {place}; "
            f"expected 0..{n_cols - 1}, or -1 for an empty place"
        )
    ordered = np.sort(ids, axis=1)
    twice = np.argwhere((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0))
    if len(twice):
        row, place = twice[0]
        raise InvalidDataError(f"predictions list id {ordered[row, place]} more than once in row {row}")
    return ids


def _best_columns(scores: npt.NDArray[Any], n_cols: int, k: int) -> IndexArray:
    """Columns of the k largest scores of each row; ties by smaller column, NaN and -inf never listed."""
    if scores.shape[1] != n_cols:
        raise InvalidDataError(
            f"predictions have {scores.shape[1]} columns of scores but Y_true has {n_cols}"
        )
    refuse_beyond(k, n_cols)
    ids = np.full((scores.shape[0], k), -1, dtype=np.int64)
    width = min(k, n_cols)
    if width == 0:
        return ids
    # Blocks of rows bound the temporaries; scores themselves belong to the caller.
    step = max(1, _SCORES_PER_BLOCK // n_cols)
    for start in range(0, scores.shape[0], step):
        block = scores[start : start + step]
        block = np.where(np.isnan(block), -np.inf, block)
        last = -np.partition(-block, width - 1, axis=1)[:, width - 1 : width]  # the width-th best score
        ties = block == last
        room = width - np.sum(block > last, axis=1, keepdims=True)
        chosen = (block > last) | (ties & (np.cumsum(ties, axis=1) <= room))
        chosen &= block > -np.inf
        rows, cols = np.nonzero(chosen)
        order = np.lexsort((cols, -block[rows, cols], rows))
        first = np.searchsorted(rows, np.arange(len(block)))
        place = np.arange(rows.size) - first[rows]
        ids[start + rows, place] = cols[order]
    return ids
