"""Which known cells of a row pull a prediction up or down."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.data import Observations
from unseen.parallel import one_blas_thread
from unseen.typing import FloatArray, IndexArray

__all__ = ["contributions"]

MOST_CELLS = 100
"""Cells that are looked at one by one; of longer rows the largest."""


def contributions(model: Any, cells: Observations, row: int, col: int) -> tuple[IndexArray, FloatArray]:
    """Columns of the cells of a row, and what each of them adds to the score of ``col``.

    The row is folded in again without each cell in turn. Where features are needed to fold a row in, nothing
    is returned.

    Parameters
    ----------
    model : completer
        Fitted.
    cells : Observations
        Training cells.
    row, col : int
        Position.

    Returns
    -------
    columns : ndarray of int64
    adds : ndarray of float64
        How much the score falls if the cell is left out.
    """
    part = slice(int(cells.indptr[row]), int(cells.indptr[row + 1]))
    columns, values = cells.indices[part].astype(np.int64), cells.values[part]
    count = len(columns)
    if not count or getattr(model, "n_row_features_in_", None):
        return columns[:0], np.zeros(0)
    dropped = np.sort(np.argsort(-np.abs(values), kind="stable")[:MOST_CELLS])
    # Line 0 has all cells, line t + 1 lacks the t-th.
    lines_of = np.concatenate(
        [np.zeros(count, np.int64), np.repeat(np.arange(1, len(dropped) + 1), count - 1)]
    )
    picked = np.concatenate([np.arange(count), *(np.delete(np.arange(count), t) for t in dropped)])
    weights = None if cells.weights is None else cells.weights[part][picked]
    lines = Observations.from_triples(
        lines_of,
        columns[picked],
        values[picked],
        (len(dropped) + 1, cells.shape[1]),
        weights=weights,
    )
    with one_blas_thread():
        scores = model.fold_in(lines, positions=True).astype(np.float64) @ model.col_factors_[col].astype(
            np.float64
        )
    return columns[dropped], scores[0] - scores[1:]
