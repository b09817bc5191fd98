"""Links of one graph, from whatever pairs a file holds."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from unseen.data import Observations, Vocabulary
from unseen.exceptions import DataWarning, InvalidDataError
from unseen.typing import CSR

__all__ = ["as_graph"]


def as_graph(cells: Observations, path: Path) -> Observations:
    """Square symmetric matrix of ones with one vocabulary for both sides and without loops.

    Parameters
    ----------
    cells : Observations
        Pairs with ids; with the same ids on both sides they are taken as symmetric already.
    path : Path
        Where they come from, for messages.
    """
    if cells.row_ids is not cells.col_ids:
        cells = _both_directions(cells)
    is_loop = cells.rows == cells.indices
    if is_loop.all():
        raise InvalidDataError(f"{path}: no line links two different nodes.")
    if is_loop.any():
        warnings.warn(
            f"{path}: {np.count_nonzero(is_loop)} links of a node with itself are left out",
            DataWarning,
            stacklevel=3,
        )
        cells = cells.select(~is_loop)
    return cells


def _both_directions(cells: Observations) -> Observations:
    assert cells.row_ids is not None
    assert cells.col_ids is not None
    left, right = cells.row_ids.values, cells.col_ids.values
    if left.dtype.kind != right.dtype.kind:  # numbers on one side, names on the other
        left, right = left.astype(np.str_), right.astype(np.str_)
    nodes, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    i, j = place[cells.rows], place[len(left) + cells.indices]
    both = np.concatenate([i, j]), np.concatenate([j, i])
    graph: CSR = sparse.csr_array((np.ones(len(both[0])), both), shape=(len(nodes), len(nodes)))
    graph.sum_duplicates()
    graph.data[:] = 1
    names = Vocabulary(nodes)
    return Observations.from_sparse(graph).with_ids(names, names)
