"""How many labels rows share, kept for the nearest rows only."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.exceptions import TooLargeError
from unseen.typing import CSR, IndexArray

__all__ = ["MAX_COST", "neighbor_counts", "refuse_all_pairs", "with_diagonal"]

MAX_COST = 20_000_000_000
"""Steps through the inverted index above which the rows of frequent labels are sampled."""
MAX_PAIRS = 150_000_000
"""Pairs of rows with a common label that are stored at most, when all of them are asked for."""
PARTS = 16
"""Parts of the rows in which the two directions of a graph are joined."""


def neighbor_counts(
    Y: CSR,
    n_neighbors: int,
    *,
    rng: np.random.Generator,
    similarity: Literal["cosine", "share"] = "cosine",
    max_cost: float = MAX_COST,
    n_threads: int = 1,
) -> CSR:
    """Shared labels of every row and its nearest others, one direction only.

    Parameters
    ----------
    Y : CSR of shape (n, n_labels)
        The pattern alone counts.
    n_neighbors : int
        Neighbours of a row, by similarity and then by lower row; more than there are means all.
    rng : numpy.random.Generator
        Draws the rows of frequent labels, if that is necessary.
    similarity : {"cosine", "share"}
        ``M_ij / sqrt(n_i n_j)`` or ``M_ij / n_j``, with M_ij shared labels and n_j labels of row j.
    max_cost : float
        Steps through the inverted index. Where the sum of squared label counts is larger, each label
        leads to at most a common number of its rows, drawn at random. Counts stay exact; rows that
        have only such labels in common with a row may be overlooked.
    n_threads : int

    Returns
    -------
    CSR of shape (n, n)
        No diagonal.
    """
    by_label = sparse.csr_array((np.ones(Y.nnz, np.int8), Y.indices, Y.indptr), shape=Y.shape).tocsc()
    index, complete = _affordable(by_label.indptr, by_label.indices, max_cost, rng)
    indptr, indices, counts = kernels.cooccurrence(
        Y.indptr, Y.indices, index, n_neighbors,
        similarity=similarity, recount=not complete, n_threads=n_threads,
    )  # fmt: skip
    return sparse.csr_array((counts, indices, indptr), shape=(Y.shape[0], Y.shape[0]))


def _affordable(
    indptr: IndexArray, indices: IndexArray, max_cost: float, rng: np.random.Generator
) -> tuple[tuple[IndexArray, IndexArray], bool]:
    """The inverted index, with the longest lists sampled down until walking it costs ``max_cost``."""
    sizes = np.diff(indptr).astype(np.int64)
    if float(sizes @ sizes) <= max_cost:
        return (indptr, indices), True
    low, high = 1, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sizes @ np.minimum(sizes, middle) <= max_cost else (low, middle - 1)
    keep = np.ones(len(indices), dtype=bool)
    for label in np.flatnonzero(sizes > low):
        left_out = rng.choice(sizes[label], size=int(sizes[label]) - low, replace=False)
        keep[indptr[label] + left_out] = False
    ends = np.concatenate([[0], np.cumsum(np.minimum(sizes, low))])
    return (ends.astype(indptr.dtype), indices[keep]), False


def with_diagonal(counts: CSR, diagonal: IndexArray) -> CSR:
    """Both directions of a neighbour graph (union), and each row with itself."""
    n = counts.shape[0]
    indptr = np.zeros(n + 1, dtype=np.int64)
    # As long as can be needed; memory is taken only for what is filled.
    limit = 2 * counts.nnz + n
    width = np.int32 if limit < 2**31 else np.int64
    indices, values = np.empty(limit, dtype=width), np.empty(limit, dtype=counts.dtype)
    end = 0
    step = max(-(-n // PARTS), 1)
    # In parts: of the mirror image only a part lives beside the graph and the union.
    for first in range(0, n, step):
        rows = slice(first, min(first + step, n))
        mirror = counts[:, rows].T.tocsr()
        itself = sparse.eye_array(*mirror.shape, k=first, dtype=counts.dtype, format="csr")
        itself.data[:] = diagonal[rows]
        part = counts[rows].maximum(mirror) + itself
        indices[end : end + part.nnz], values[end : end + part.nnz] = part.indices, part.data
        indptr[rows.start + 1 : rows.stop + 1] = end + part.indptr[1:]
        end += part.nnz
    return sparse.csr_array((values[:end], indices[:end], indptr.astype(width)), shape=(n, n))


def refuse_all_pairs(Y: CSR) -> None:
    """Refuse to store every pair of rows with a common label where there may be too many."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)
    pairs = min(int(counts @ counts), Y.shape[0] ** 2)
    if pairs > MAX_PAIRS:
        raise TooLargeError(
            f"n_neighbors=None keeps every pair of rows with a common label, here up to {pairs:,}; "
            f"at most {MAX_PAIRS:,} are stored. Give n_neighbors, for example 250."
        )
