"""The best pairs of a whole graph, without ever holding all pairs."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations
from unseen.data.ids import cells_like, find_ids, named
from unseen.exceptions import InvalidDataError
from unseen.linalg.blocked import in_blocks
from unseen.links.graph import check_square, upper_pairs
from unseen.metrics import FprFnrCurve, fpr_fnr_curve
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, Array, FloatArray
from unseen.validation import check_choice, check_list_length, check_n_jobs

__all__ = ["TopLinks", "link_curve", "top_links"]

BLOCK_CELLS = 1 << 24
MAX_BLOCK_NODES = 1024
"""A block of rows has at most this many nodes, and about ``BLOCK_CELLS`` scores."""

Keys = npt.NDArray[np.int64]


class TopLinks(NamedTuple):
    """The best pairs of nodes, best first.

    Attributes
    ----------
    pairs : ndarray of shape (n_listed, 2)
        Nodes i < j, in the order of the graph; ids where the model was fitted with ids.
    scores : ndarray of shape (n_listed,)
        Their scores, never rising.
    """

    pairs: Array
    scores: FloatArray


class PairScores(Protocol):
    """Symmetric scores of a range of nodes with all nodes."""

    def block(self, start: int, stop: int) -> FloatArray | CSR:
        """Scores of nodes ``start..stop-1`` with nodes ``start..``; blanks of a CSR are zeros."""


class FactorScores:
    """``(l_i . r_j + l_j . r_i) / 2`` for the factors of a model."""

    def __init__(self, left: FloatArray, right: FloatArray, symmetric: bool, n_threads: int) -> None:
        if symmetric:
            self._near, self._far = left, right
        else:
            half = left * left.dtype.type(0.5)
            other = right * left.dtype.type(0.5)
            self._near, self._far = np.hstack([half, other]), np.hstack([right, left])
        self._n_threads = n_threads

    def block(self, start: int, stop: int) -> FloatArray:
        near, far = self._near[start:stop], self._far[start:]
        out: FloatArray = np.empty((stop - start, len(far)), dtype=near.dtype)

        def task(cols: slice) -> None:
            np.matmul(near, far[cols].T, out=out[:, cols])

        for _ in in_blocks(task, len(far), self._n_threads):
            pass
        return out


class RowScores:
    """Scores of models that compute whole rows: dense ones, or sparse ones where they have them."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def block(self, start: int, stop: int) -> FloatArray | CSR:
        if hasattr(self._model, "sparse_scores"):
            sparse_block: CSR = self._model.sparse_scores(start, stop)[:, start:]
            return sparse_block
        rows: FloatArray = self._model.score_rows(np.arange(start, stop), positions=True)
        return rows[:, start:]


class AveragedRows:
    """Rows of models whose scores have a direction, averaged over both.

    The other direction of a block is one of columns, for which all later rows are scored: as many passes over
    the rows as there are blocks, half of them on average.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def block(self, start: int, stop: int) -> FloatArray:
        n = int(self._model.n_features_in_)
        forward = self._model.score_rows(np.arange(start, stop), positions=True)[:, start:]
        out: FloatArray = forward * forward.dtype.type(0.5)
        for first in range(start, n, MAX_BLOCK_NODES):
            rows = np.arange(first, min(first + MAX_BLOCK_NODES, n))
            back = self._model.score_rows(rows, positions=True)[:, start:stop]
            out[:, rows - start] += back.T * out.dtype.type(0.5)
        return out


class Best:
    """The k best pairs seen so far.

    Pairs must come in blocks of increasing keys. A pair that only equals the k-th best then
    loses to it, because of its larger key, so a strict threshold is enough to pass it over.
    """

    def __init__(self, k: int, dtype: np.dtype[Any]) -> None:
        self.threshold = -np.inf
        self._k = k
        self._scores: list[FloatArray] = [np.empty(0, dtype=dtype)]
        self._keys: list[Keys] = [np.empty(0, dtype=np.int64)]
        self._size = 0

    def add(self, scores: FloatArray, keys: Keys) -> None:
        """Take pairs above the threshold, in order of their keys."""
        self._scores.append(scores)
        self._keys.append(keys)
        self._size += len(keys)
        if self._size > self._k and (self._size >= 2 * self._k or self.threshold == -np.inf):
            self._prune()

    def _prune(self) -> None:
        scores, keys = np.concatenate(self._scores), np.concatenate(self._keys)
        if len(scores) > self._k:
            last = np.partition(scores, len(scores) - self._k)[len(scores) - self._k]
            keep = scores > last
            ties = np.flatnonzero(scores == last)
            keep[ties[: self._k - int(keep.sum())]] = True
            scores, keys = scores[keep], keys[keep]
            self.threshold = float(last)
        self._scores, self._keys, self._size = [scores], [keys], len(keys)

    def listed(self) -> tuple[FloatArray, Keys]:
        """Scores and keys, best first, ties by smaller key."""
        self._prune()
        order = np.argsort(-self._scores[0], kind="stable")
        return self._scores[0][order], self._keys[0][order]


def top_links(
    model: Any, k: int, *, exclude: Any = None, n_jobs: int | None = None, positions: bool = False
) -> TopLinks:
    """The k pairs of nodes with the highest scores among all pairs i < j.

    Rows are scored in blocks and compared with the k-th best pair so far; memory grows with k
    and the number of nodes, never with its square. Scores of a model that is not symmetric are
    averaged over both directions.

    Parameters
    ----------
    model : fitted completer of a square matrix
        Any model with factors, or one of this module.
    k : int
        Number of pairs.
    exclude : "seen", sparse matrix, frame or Observations of the training shape, optional
        Stored cells (i, j) or (j, i) leave out the pair: "seen" are those of the training graph. Ids are
        matched.
    n_jobs : int, optional
        Threads; None takes all cores. The result does not depend on it.
    positions : bool, default=False
        Take and return positions, whatever the ids.

    Returns
    -------
    TopLinks
        ``pairs`` and ``scores``, best first, ties by smaller pair. Fewer than k if there are not
        as many. Pairs are ids where the model was fitted with ids.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.links import CommonNeighbors, top_links
    >>> graph = sparse.csr_array([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    >>> top_links(CommonNeighbors().fit(graph), 2, exclude=graph).pairs
    array([[0, 3],
           [1, 2]])
    """
    check_is_fitted(model)
    n, dtype, scores = _pair_scores(model, check_n_jobs(n_jobs))
    k = check_list_length(k, n * (n - 1) // 2)
    barred = _barred(model, exclude, n, positions)
    best = Best(k, dtype)
    step = min(MAX_BLOCK_NODES, max(16, BLOCK_CELLS // n))
    blanks = False
    with one_blas_thread():
        for start in range(0, n, step):
            stop = min(start + step, n)
            block = scores.block(start, stop)
            blanks = blanks or sparse.issparse(block)
            best.add(*_above(block, start, n, barred, best.threshold, k))
    found, keys = best.listed()
    if blanks and len(keys) < k:
        found, keys = _fill_with_zeros(found, keys, k, n, barred)
    ids = None if positions else getattr(model, "row_ids_", None)
    return TopLinks(np.column_stack([named(side, ids) for side in np.divmod(keys, n)]), found)


def _barred(model: Any, exclude: Any, n: int, positions: bool) -> CSR:
    """Pairs that must not be listed, above the diagonal."""
    if exclude is None:
        nothing: Any = sparse.csr_array((n, n), dtype=np.int8)
        return cast("CSR", nothing)
    if isinstance(exclude, str):
        check_choice("exclude", exclude, ("seen",))
        seen = model._seen()
        ones = np.ones(seen.indices.size)
        pattern: Any = sparse.csr_array((ones, seen.indices, seen.indptr), shape=(n, n))
        return upper_pairs(Observations.from_sparse(pattern))
    cells = model._cells(exclude, "exclude", values=False)
    cells = model._matched(cells, "exclude", positions, new_rows=False) if not positions else cells
    if check_square(cells, "exclude") != n:
        raise InvalidDataError(f"exclude has shape {cells.shape}; the model has {n} nodes")
    return upper_pairs(cells)


def _pair_scores(model: Any, n_threads: int) -> tuple[int, np.dtype[Any], PairScores]:
    if hasattr(model, "score_rows"):
        scores = model.score_rows([0], positions=True)
        rows = RowScores if getattr(model, "symmetric_scores", False) else AveragedRows
        return int(model.n_features_in_), np.dtype(scores.dtype), rows(model)
    left, right = model.row_factors_, model.col_factors_
    if left.shape[0] != right.shape[0]:
        raise InvalidDataError(
            f"the model has {left.shape[0]} rows and {right.shape[0]} columns; links need a model of a "
            "square matrix whose rows and columns are the same nodes"
        )
    symmetric = getattr(model, "symmetric_scores", False)
    return left.shape[0], left.dtype, FactorScores(left, right, symmetric, n_threads)


def _above(
    block: FloatArray | CSR, start: int, n: int, barred: CSR, threshold: float, k: int
) -> tuple[FloatArray, Keys]:
    """Scores above the threshold of pairs i < j that are not barred, in order of keys ``i n + j``."""
    if sparse.issparse(block):
        # Blanks are zeros: they come in at the end, if there is room.
        limit = max(threshold, 0.0)
        rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        hit = np.flatnonzero((block.data > limit) & (block.indices > rows))
        keys = (rows[hit] + start) * np.int64(n) + block.indices[hit] + start
        order = np.argsort(keys, kind="stable")
        hit, keys = hit[order], keys[order]
        free = ~_contains(_keys_of(barred, start, start + block.shape[0]), keys)
        return block.data[hit[free]], keys[free]
    height, width = block.shape
    block[:, :height][np.tril_indices(height)] = -np.inf
    rows, cols = np.divmod(_keys_of(barred, start, start + height), n)
    block[rows - start, cols - start] = -np.inf
    flat = block.reshape(-1)
    above = flat > threshold  # NaN is above nothing
    scores = flat[above]
    if scores.size > 2 * k:
        # Early blocks have far more than can be listed: their own k-th best, ties kept, is enough.
        last = np.partition(scores, scores.size - k)[scores.size - k]
        above = flat >= last
        scores = flat[above]
    rows, cols = np.divmod(np.flatnonzero(above), width)
    return scores, (rows + start) * np.int64(n) + cols + start


def _keys_of(pattern: CSR, start: int, stop: int) -> Keys:
    """Sorted keys of the stored cells of a range of rows."""
    bounds = pattern.indptr[start : stop + 1]
    rows = np.repeat(np.arange(start, stop, dtype=np.int64), np.diff(bounds))
    return rows * pattern.shape[1] + pattern.indices[bounds[0] : bounds[-1]]


def _contains(ordered: Keys, keys: Keys) -> npt.NDArray[np.bool_]:
    if ordered.size == 0:
        return np.zeros(keys.size, dtype=np.bool_)
    place = np.minimum(np.searchsorted(ordered, keys), ordered.size - 1)
    found: npt.NDArray[np.bool_] = ordered[place] == keys
    return found


def _fill_with_zeros(found: FloatArray, keys: Keys, k: int, n: int, barred: CSR) -> tuple[FloatArray, Keys]:
    """Fill a list with pairs of score zero, by smaller pair."""
    listed = np.sort(keys)
    parts, missing = [keys], k - len(keys)
    for row in range(n - 1):
        candidates = row * np.int64(n) + np.arange(row + 1, n)
        fresh = candidates[
            ~_contains(listed, candidates) & ~_contains(_keys_of(barred, row, row + 1), candidates)
        ]
        parts.append(fresh[:missing])
        missing -= len(parts[-1])
        if missing == 0:
            break
    filled = np.concatenate(parts)
    return np.concatenate([found, np.zeros(len(filled) - len(found), dtype=found.dtype)]), filled


def link_curve(
    model: Any,
    test: npt.ArrayLike,
    *,
    train: Any,
    k: int | None = None,
    n_jobs: int | None = None,
    positions: bool = False,
) -> FprFnrCurve:
    """False positive and false negative rate along the list of the best pairs.

    Candidates are all pairs i < j that are not linked in `train`.

    Parameters
    ----------
    model : fitted completer of a square matrix
        Any model that `top_links` takes.
    test : array of shape (n_test, 2)
        Held-out links, each pair once, in either order; ids where the model was fitted with ids.
    train : sparse matrix or Observations
        Graph that the model was fitted to; its links are no candidates.
    k : int, optional
        Length of the list; the number of test links by default.
    n_jobs : int, optional
        Threads; all cores by default.
    positions : bool, default=False
        Take positions, whatever the ids.

    Returns
    -------
    FprFnrCurve
        One point for each place of the list.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.links import CommonNeighbors, link_curve
    >>> graph = sparse.csr_array([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]])
    >>> link_curve(CommonNeighbors().fit(graph), [[1, 2]], train=graph, k=2).fnr
    array([1., 0.])
    """
    listed = np.asarray(test)
    if listed.ndim != 2 or listed.shape[1] != 2 or len(listed) == 0:
        raise InvalidDataError(f"test has shape {listed.shape}; expected (n_test, 2) with at least one link")
    cells = cells_like(train, getattr(model, "origin_", None), "train", values=False)
    ids = None if positions else getattr(model, "row_ids_", None)
    if ids is not None:
        cells = model._matched(cells, "train", False, new_rows=False)
    n = check_square(cells, "train")
    rows, cols = (find_ids(side, ids, n, "test", "row") for side in listed.T)
    keys = np.sort(np.minimum(rows, cols) * np.int64(n) + np.maximum(rows, cols))
    seen = upper_pairs(cells)
    known = _contains(_keys_of(seen, 0, n), keys)
    for what, wrong in (
        ("a link of a node with itself", keys // n == keys % n),
        ("a link that is also in train", known),
        ("a link that is listed twice", np.concatenate([[False], keys[1:] == keys[:-1]])),
    ):
        if wrong.any():
            i, j = divmod(int(keys[np.argmax(wrong)]), n)
            raise InvalidDataError(f"test has {what}: ({i}, {j})")
    listing = top_links(model, len(keys) if k is None else k, exclude=cells, n_jobs=n_jobs, positions=True)
    pairs: Any = listing.pairs
    hits = _contains(keys, pairs[:, 0] * np.int64(n) + pairs[:, 1])
    n_candidates = n * (n - 1) // 2 - seen.nnz
    return fpr_fnr_curve(hits, n_positive=len(keys), n_candidates=n_candidates)
