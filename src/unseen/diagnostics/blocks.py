"""Connected blocks: groups of rows and columns that share no cell with any other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unseen.data import Observations
from unseen.losses import cells_that_count
from unseen.typing import BoolArray, IndexArray

__all__ = ["Blocks", "find_blocks"]


@dataclass(frozen=True)
class Blocks:
    """Which block each row and column belongs to; the block with most cells has number 0.

    Attributes
    ----------
    row_block, col_block : ndarray of int64
        Number of the block; -1 for rows and columns without a cell.
    n_rows, n_cols, n_cells : ndarray of int64, shape (n_blocks,)
        Size of each block.
    """

    row_block: IndexArray
    col_block: IndexArray
    n_rows: IndexArray
    n_cols: IndexArray
    n_cells: IndexArray

    def __len__(self) -> int:
        """Count the blocks."""
        return len(self.n_cells)

    def connected(self, rows: IndexArray, cols: IndexArray) -> BoolArray:
        """Say which cells lie inside a block.

        Parameters
        ----------
        rows, cols : array of int
            Row and column numbers.

        Returns
        -------
        ndarray of bool
            False where row and column share no chain of known cells.
        """
        block = self.row_block[rows]
        inside: BoolArray = (block >= 0) & (block == self.col_block[cols])
        return inside


def find_blocks(cells: Observations) -> Blocks:
    """Find the connected blocks of the known cells.

    Two cells are connected when they share a row or a column. Cells of weight zero say nothing and connect
    nothing. Time and memory are O(cells).

    Parameters
    ----------
    cells : Observations
        The known cells.

    Returns
    -------
    Blocks
        Blocks by decreasing number of cells.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Observations
    >>> from unseen.diagnostics import find_blocks
    >>> blocks = find_blocks(Observations.from_dense([[1.0, 2.0, np.nan], [np.nan, np.nan, 3.0]]))
    >>> blocks.row_block, blocks.col_block
    (array([0, 1]), array([0, 0, 1]))
    """
    cells = cells_that_count(cells)
    n, m = cells.shape
    # The graph with rows and columns as nodes, written as CSR at once: columns have no links of their own.
    indptr = np.concatenate([cells.indptr, np.full(m, cells.nnz, dtype=cells.indptr.dtype)])
    indices = cells.indices + cells.indices.dtype.type(n)
    graph = sparse.csr_array((np.ones(cells.nnz, dtype=np.int8), indices, indptr), shape=(n + m, n + m))
    count, part = connected_components(graph, directed=False)
    size = np.bincount(part[:n], weights=np.diff(cells.indptr), minlength=count).astype(np.int64)
    place = np.empty(count, dtype=np.int64)
    place[np.argsort(-size, kind="stable")] = np.arange(count)
    n_blocks = int(np.count_nonzero(size))
    place[place >= n_blocks] = -1
    row_block, col_block = place[part[:n]], place[part[n:]]
    n_rows, n_cols = (
        np.bincount(block[block >= 0], minlength=n_blocks).astype(np.int64)
        for block in (row_block, col_block)
    )
    return Blocks(row_block, col_block, n_rows, n_cols, np.sort(size)[::-1][:n_blocks].copy())
