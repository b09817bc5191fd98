"""Connected blocks of a matrix of observed cells."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unseen.data import Observations
from unseen.typing import Array, IndexArray

__all__ = ["connected_blocks"]


def connected_blocks(cells: Observations) -> tuple[IndexArray, IndexArray]:
    """Block of each row and of each column; two are in one block if a chain of observed cells joins them.

    Rows and columns without a cell are blocks of their own.
    """
    n, m = cells.shape
    ends: Array = cells.indices.astype(np.int64) + n
    indptr = np.concatenate([cells.indptr, np.full(m, cells.indptr[-1])])
    graph = sparse.csr_array((np.ones(cells.nnz, dtype=np.int8), ends, indptr), shape=(n + m, n + m))
    _, labels = connected_components(graph, directed=False)
    return labels[:n].astype(np.int64), labels[n:].astype(np.int64)
