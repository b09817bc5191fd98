"""The most similar columns of each column of a sparse matrix."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from unseen.typing import CSR, BoolArray, IndexArray

__all__ = ["nearest_columns"]

BLOCK_COLUMNS = 512
"""Columns whose similarities with all others are there at the same time."""


def nearest_columns(
    matrix: CSR, k: int, *, counts: CSR | None = None, shrinkage: float = 0.0, power: float = 1.0
) -> CSR:
    """Keep of ``(matrix' matrix)_ij``, for each j, the k largest that are above zero and not on the diagonal.

    Ties are broken by the smaller i. Products are sparse, a few columns at a time.

    Parameters
    ----------
    matrix : csr_array of shape (n, m)
        Non-negative.
    k : int
        Kept of each column.
    counts : csr_array of shape (n, m), optional
        With the cells of `matrix`: similarities are divided by ``1 + shrinkage / (counts' counts)_ij``.
    shrinkage : float, default=0.0
        See `counts`.
    power : float, default=1.0
        Exponent of the similarities that are kept.

    Returns
    -------
    csr_array of shape (m, m)
        The similarities kept of column j in column j.
    """
    m = matrix.shape[1]
    across: CSR = sparse.csr_array(matrix.T)
    across_counts = None if counts is None else sparse.csr_array(counts.T)
    blocks = []
    for start in range(0, m, BLOCK_COLUMNS):
        stop = min(start + BLOCK_COLUMNS, m)
        block: CSR = sparse.csr_array(across[start:stop] @ matrix)
        if across_counts is not None and counts is not None:
            shared: CSR = sparse.csr_array(across_counts[start:stop] @ counts)
            block.sort_indices()
            shared.sort_indices()  # the same cells in the same order
            block.data /= 1.0 + shrinkage / shared.data
        rows = np.repeat(np.arange(stop - start), np.diff(block.indptr))
        blocks.append(_largest(_where(block, rows, (block.indices != rows + start) & (block.data > 0)), k))
    found: CSR = sparse.csr_array(sparse.vstack(blocks, format="csr").T)
    found.sort_indices()
    found.data **= power
    return found


def _where(block: CSR, rows: IndexArray, kept: BoolArray) -> CSR:
    """Some cells of a block, whose rows are given."""
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=block.shape[0]))])
    return sparse.csr_array((block.data[kept], block.indices[kept], indptr), shape=block.shape)


def _largest(block: CSR, k: int) -> CSR:
    """The k largest cells of each row; ties by the smaller column."""
    lengths = np.diff(block.indptr)
    if not (lengths > k).any():
        block.sort_indices()
        return block
    last = np.full(block.shape[0], -np.inf)  # the smallest value that is kept
    for row in np.flatnonzero(lengths > k):
        own = block.data[block.indptr[row] : block.indptr[row + 1]]
        last[row] = np.partition(own, own.size - k)[own.size - k]
    rows = np.repeat(np.arange(block.shape[0]), lengths)
    block = _where(block, rows, block.data >= last[rows])
    block.sort_indices()
    lengths = np.diff(block.indptr)
    rows = np.repeat(np.arange(block.shape[0]), lengths)
    tied = block.data == last[rows]
    room = k - np.bincount(rows[~tied], minlength=block.shape[0])
    before = np.cumsum(tied) - tied
    before -= np.repeat(before[np.minimum(block.indptr[:-1], before.size - 1)], lengths)
    return _where(block, rows, ~tied | (before < room[rows]))
