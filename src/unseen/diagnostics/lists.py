"""Lists of recommendations without what the data does not determine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unseen.diagnostics.blocks import Blocks
from unseen.typing import FloatArray, IndexArray

__all__ = ["steady_lists", "within_blocks"]

Lists = tuple[IndexArray, FloatArray]
Top = Callable[[IndexArray, int, Any], Lists]


def within_blocks(top: Top, blocks: Blocks, rows: IndexArray, k: int, candidates: Any) -> Lists:
    """Best columns of each row among those that known cells connect with it.

    Parameters
    ----------
    top : callable (rows, k, candidates) -> (ids, scores)
        Lists without this condition.
    blocks : Blocks
        Of the training cells.
    rows : array of int
        Rows.
    k : int
        Length of the lists.
    candidates : array-like of int or None
        Columns that may be taken.

    Returns
    -------
    ids, scores : ndarray
        As of ``recommend``.
    """
    found: Lists | None = None
    wanted = None if candidates is None else np.unique(np.atleast_1d(np.asarray(candidates)))
    own = blocks.row_block[rows]
    for block in np.unique(own):
        columns = np.flatnonzero(blocks.col_block == block) if block >= 0 else np.empty(0, dtype=np.int64)
        if wanted is not None:
            columns = np.intersect1d(columns, wanted)
        place = np.flatnonzero(own == block)
        if not columns.size:
            continue
        part = top(rows[place], k, columns)
        if found is None:
            found = _empty(len(rows), k, part[1].dtype)
        found[0][place], found[1][place] = part
    return _empty(len(rows), k, np.dtype(np.float64)) if found is None else found


def steady_lists(
    top: Top,
    std: Callable[[IndexArray, IndexArray], FloatArray],
    max_std: float,
    n_cols: int,
    rows: IndexArray,
    k: int,
    candidates: Any,
) -> Lists:
    """Best columns of each row among those whose prediction moves by at most ``max_std``.

    Longer and longer lists are asked for until enough of each are left.

    Parameters
    ----------
    top : callable (rows, k, candidates) -> (ids, scores)
        Lists without this condition.
    std : callable (rows, cols) -> ndarray
        Spread of predictions.
    max_std : float
        Limit.
    n_cols : int
        Columns of the matrix.
    rows : array of int
        Rows.
    k : int
        Length of the lists.
    candidates : array-like of int or None
        Columns that may be taken.

    Returns
    -------
    ids, scores : ndarray
        As of ``recommend``.
    """
    open_rows = np.arange(len(rows))
    length = min(4 * k, max(n_cols, k))
    found: Lists | None = None
    while True:
        ids, scores = top(rows[open_rows], length, candidates)
        if found is None:
            found = _empty(len(rows), k, scores.dtype)
        listed = ids >= 0
        good = np.zeros(ids.shape, dtype=bool)
        near = np.repeat(rows[open_rows], listed.sum(axis=1))
        good[listed] = std(near, ids[listed]) <= max_std
        # The good ones first, in their order, then the rest, which is blanked.
        order = np.argsort(~good, axis=1, kind="stable")[:, :k]
        kept = np.take_along_axis(good, order, axis=1)
        width = order.shape[1]
        found[0][open_rows, :width] = np.where(kept, np.take_along_axis(ids, order, axis=1), -1)
        found[1][open_rows, :width] = np.where(kept, np.take_along_axis(scores, order, axis=1), np.nan)
        more = (good.sum(axis=1) < k) & listed.all(axis=1)
        if length >= n_cols or not more.any():
            return found
        open_rows = open_rows[more]
        length = min(4 * length, n_cols)


def _empty(n_rows: int, k: int, dtype: np.dtype[Any]) -> Lists:
    return np.full((n_rows, k), -1, dtype=np.int64), np.full((n_rows, k), np.nan, dtype=dtype)
