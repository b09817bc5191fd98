"""Vectors of the nodes of a graph by random walks (DeepWalk)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from unseen.embeddings.sgns import sgns_of_graph
from unseen.typing import CSR, FloatArray

__all__ = ["deepwalk", "walk_counts"]

STEPS_AT_ONCE = 1 << 22
"""Steps of walks that are held at a time."""


def walk_counts(
    graph: CSR, *, rng: np.random.Generator, n_walks: int = 10, length: int = 40, window: int = 5
) -> CSR:
    """How often two nodes are at most `window` steps apart on random walks, in both directions.

    A walk goes from a node to one of its neighbours in proportion to the weights of its edges. `n_walks`
    walks of `length` nodes start at each node that has neighbours.

    Parameters
    ----------
    graph : CSR of shape (n, n)
        Weights of edges, symmetric and not negative.
    rng : numpy.random.Generator
    n_walks, length, window : int

    Returns
    -------
    CSR of shape (n, n)
        Symmetric counts, without a diagonal.
    """
    n = graph.shape[0]
    total = sparse.csr_array((n, n), dtype=np.float64)
    sums = np.concatenate([[0.0], np.cumsum(graph.data, dtype=np.float64)])
    starts = np.tile(np.flatnonzero(np.diff(graph.indptr)), n_walks)
    step = max(1, STEPS_AT_ONCE // length)
    for first in range(0, len(starts), step):
        walks = np.empty((length, len(starts[first : first + step])), dtype=np.int64)
        walks[0] = starts[first : first + step]
        for at in range(1, length):
            low, high = graph.indptr[walks[at - 1]], graph.indptr[walks[at - 1] + 1]
            where = sums[low] + rng.random(walks.shape[1]) * (sums[high] - sums[low])
            places = np.clip(np.searchsorted(sums, where, side="right") - 1, low, high - 1)
            walks[at] = graph.indices[places]
        for apart in range(1, window + 1):
            pairs = (walks[:-apart].ravel(), walks[apart:].ravel())
            total = total + sparse.coo_array((np.ones(len(pairs[0])), pairs), shape=(n, n)).tocsr()
    total = sparse.csr_array(total + total.T)
    total.setdiag(0.0)
    total.eliminate_zeros()
    total.sort_indices()
    return total


def deepwalk(
    graph: CSR,
    n_components: int,
    *,
    rng: np.random.Generator,
    n_walks: int = 10,
    length: int = 40,
    window: int = 5,
    n_negatives: int = 5,
) -> FloatArray:
    """Embed nodes by skip-gram training on the pairs of random walks, each once on average.

    Parameters
    ----------
    graph : CSR of shape (n, n)
        Weights of edges, symmetric and not negative.
    n_components : int
    rng : numpy.random.Generator
    n_walks, length, window : int
        See :func:`unseen.embeddings.walks.walk_counts`.
    n_negatives : int
        Random nodes against each pair.

    Returns
    -------
    array of shape (n, n_components)
        Nodes without edges keep their random start.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen.embeddings import deepwalk
    >>> graph = sparse.csr_array(np.kron(np.eye(2), 1 - np.eye(5)))
    >>> Z = deepwalk(graph, 2, rng=np.random.default_rng(0))
    >>> bool((Z @ Z.T)[:5, :5].mean() > (Z @ Z.T)[:5, 5:].mean() + 0.5)
    True
    """
    counts = walk_counts(graph, rng=rng, n_walks=n_walks, length=length, window=window)
    # An epoch draws as many pairs as are stored; as many as there were on the walks are wanted.
    n_epochs = int(np.ceil(counts.sum() / max(counts.nnz, 1)))
    return sgns_of_graph(counts, n_components, rng=rng, n_negatives=n_negatives, n_epochs=n_epochs)
