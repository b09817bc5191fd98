"""Rows that share the most labels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from unseen.kernels import _arguments as args
from unseen.kernels import _provider, reference_embeddings
from unseen.typing import IndexArray
from unseen.validation import check_choice, check_count

__all__ = ["cooccurrence"]

_kernels = _provider.module(reference_embeddings)


def cooccurrence(
    indptr: IndexArray,
    indices: IndexArray,
    index: tuple[IndexArray, IndexArray],
    k: int,
    *,
    similarity: Literal["cosine", "share"] = "cosine",
    recount: bool = False,
    n_threads: int = 1,
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Find the k rows most like each row, by the labels that they share.

    With M_ij the number of shared labels and n_j the labels of row j, the similarity is
    ``M_ij / sqrt(n_i n_j)`` ("cosine") or ``M_ij / n_j`` ("share"). Ties go to the lower row. A row is
    not its own neighbour, and rows without a shared label are nobody's. The inverted index is walked
    row by row: O(sum over labels of count^2) steps, O(n k) memory.

    Parameters
    ----------
    indptr, indices : arrays
        CSR pattern, the labels of each row.
    index : (indptr, indices)
        Inverted index: the rows of each label. It may leave rows out to save time; then they
        are not found through that label.
    k : int
    similarity : {"cosine", "share"}
    recount : bool
        Count the shared labels of the neighbours again from the rows; for an index that is not complete.
    n_threads : int

    Returns
    -------
    indptr, indices, counts : arrays
        CSR matrix with the neighbours of each row, in increasing order, and the labels shared.

    Examples
    --------
    Rows 0 and 1 share their only label; row 2 has it too, but others beside it.

    >>> import numpy as np
    >>> from unseen.kernels import cooccurrence
    >>> labels = np.array([0, 1, 2, 4]), np.array([0, 0, 0, 1])
    >>> rows = np.array([0, 3, 4]), np.array([0, 1, 2, 2])
    >>> cooccurrence(*labels, rows, 1)[1].tolist()
    [1, 0, 0]
    """
    check_choice("similarity", similarity, ("cosine", "share"))
    check_choice("recount", recount, (True, False))
    k = check_count("k", k, minimum=0)
    index = args.two_arrays("index", index)
    index_indptr = args.indices_of("index[0]", index[0])
    indptr, indices = args.pattern(indptr, indices, None, max(len(index_indptr) - 1, 0))
    index_indptr, index_indices = args.pattern(index_indptr, index[1], None, len(indptr) - 1)
    # Rows are told in as few bytes as they fit: the answer is much longer than the labels.
    fits = max(len(indptr), len(indices), len(index_indptr), len(index_indices)) < 2**31
    width = np.dtype(np.int32 if fits else np.int64)
    postings = np.diff(index_indptr).astype(np.int64)
    work = int(postings @ postings)
    ids, counts, sizes = _kernels.cooccurrence(
        *(np.ascontiguousarray(a, dtype=width) for a in (indptr, indices, index_indptr, index_indices)),
        max(min(k, len(indptr) - 2), 0), similarity, recount, args.threads(n_threads, work),
    )  # fmt: skip
    ends = np.concatenate([[0], np.cumsum(sizes)])
    filled = np.arange(ids.shape[1]) < sizes[:, None]
    ids = ids[filled]  # one after the other: the padded arrays need not live together with both copies
    counts = counts[filled]
    return ends.astype(np.int32 if ends[-1] < 2**31 else np.int64), ids, counts
