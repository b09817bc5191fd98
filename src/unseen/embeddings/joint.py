"""A regressor of embeddings learned in one go with them, without a target in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from unseen import kernels
from unseen.embeddings.graph import MAX_COST, neighbor_counts
from unseen.embeddings.sgns import Urn
from unseen.exceptions import DivergedError, ParameterError
from unseen.typing import CSR, FloatArray, IndexArray

__all__ = ["joint_regression"]


def joint_regression(
    X: CSR,
    Y: CSR,
    n_components: int = 100,
    *,
    rng: np.random.Generator,
    n_neighbors: int = 10,
    pool: int | None = 250,
    positives: Literal["counts", "once"] = "once",
    n_negatives: int = 10,
    negative: Literal["context", "uniform"] = "uniform",
    kernel: Literal["cosine", "dot"] = "dot",
    gamma: float = 1.0,
    negative_weight: float = 1.0,
    rate: float = 0.1,
    ridge: float = 1.0,
    damping: float = 0.0,
    max_iter: int = 20,
    init: FloatArray | None = None,
    init_scale: float = 0.1,
    monitor: Callable[[int, FloatArray], bool] | None = None,
    hogwild: bool = False,
    max_cost: float = MAX_COST,
    n_threads: int = 1,
) -> FloatArray:
    """Learn V with near z = V'x for instances that share labels (objective 10 of ExMLDS).

    Maximises, with K the cosine or the inner product of z_i and z_j and s the logistic function,

        sum_i [ sum over neighbours j of log s(gamma K_ij)
                + negative_weight sum over random j' of log s(-gamma K_ij') ]  -  ridge/2 ||V||^2

    by AdaGrad steps that touch only the features of the rows involved. Neighbours have the largest sums
    over shared labels of 1 / (labels of j); rows with fewer repeat theirs. With ``pool``, they are drawn at
    every visit from the ``pool`` nearest rows by cosine instead, so that ties do not decide who is a
    neighbour for good. The defaults were chosen on validation rows; the paper has no pool and no ridge, the
    cosine and 50 dimensions. Negatives are drawn at every visit. Rows without neighbours or without features
    are not visited.

    Parameters
    ----------
    X : CSR of shape (n, n_features)
        Rows of length one, or similar.
    Y : CSR of shape (n, n_labels)
        Stored cells are labels.
    n_components : int
    rng : numpy.random.Generator
    n_neighbors, n_negatives : int
        For each visit of a row.
    pool : int, optional
        Nearest rows that neighbours are drawn from.
    positives : {"counts", "once"}
        Whether neighbours are drawn in proportion to the labels that are shared, or all alike; "counts"
        needs a pool, to which those that have the row in theirs are added.
    negative : {"context", "uniform"}
        Negatives in proportion to the sum of a row's shared labels, or all alike.
    kernel : {"cosine", "dot"}
    gamma, negative_weight : float
    rate : float
        AdaGrad's step length.
    ridge : float
        Weight of the penalty, shared out over the steps that touch a feature. Under "cosine" it only
        balances features against each other, since lengths do not matter.
    damping : float
        First value of AdaGrad's sums of squares. The larger, the less features that are seldom seen
        can move.
    max_iter : int
        Passes over the rows.
    init : array of shape (n_features, n_components), optional
        Start, such as the regressor of another embedding.
    init_scale : float
        Standard deviation of a random start.
    monitor : callable, optional
        Called after each pass with its number and V; True stops.
    hogwild : bool
        Let threads write without locks: faster, and never twice the same.
    max_cost : float
        Steps through the inverted index; above, frequent labels are sampled.
    n_threads : int

    Returns
    -------
    array of shape (n_features, n_components)
        V; embeddings are ``X @ V``. float32 for a float32 ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen.embeddings import joint_regression
    >>> Y = sparse.csr_array(np.repeat(np.eye(2), 10, axis=0))
    >>> X = sparse.csr_array(np.eye(20))
    >>> V = joint_regression(X, Y, 2, rng=np.random.default_rng(0))
    >>> V /= np.linalg.norm(V, axis=1, keepdims=True)
    >>> bool((V @ V.T)[:10, :10].mean() > (V @ V.T)[:10, 10:].mean() + 0.5)
    True
    """
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    shape = (X.shape[1], n_components)
    if positives == "counts" and pool is None:
        raise ParameterError('positives="counts" draws from a pool; got pool=None')
    if init is not None and init.shape != shape:
        raise ParameterError(f"init must have shape {shape}, got {init.shape}")
    if init is None:
        V: FloatArray = (init_scale * rng.standard_normal(shape)).astype(dtype)
    else:
        V = np.array(init, dtype=dtype, order="C")
    squares = np.full_like(V, damping)
    near = neighbor_counts(
        Y,
        n_neighbors if pool is None else pool,
        rng=rng,
        similarity="share" if pool is None else "cosine",
        max_cost=max_cost,
        n_threads=n_threads,
    )
    if positives == "counts":
        near = near.maximum(near.T.tocsr())
    visited = np.flatnonzero((np.diff(near.indptr) > 0) & (np.diff(X.indptr) > 0))
    if not visited.size:
        return V
    table = _cyclic(near, visited, n_neighbors)
    heard = np.asarray(near.sum(axis=0), dtype=np.float64) if negative == "context" else np.ones(X.shape[0])
    heard[np.diff(X.indptr) == 0] = 0.0  # nothing is learned from rows without features
    noise = Urn(heard)
    # Steps of a feature in a pass: its rows are visited, and are others' neighbours and negatives.
    seen = np.bincount(X.indices, minlength=X.shape[1]) * (1.0 + n_neighbors + n_negatives)
    pull = ridge / np.maximum(seen, 1.0)
    for number in range(max_iter):
        order = rng.permutation(visited.size)
        if pool is not None:
            table = _drawn(near, visited, n_neighbors, rng, by_counts=positives == "counts")
        negatives = noise.draw((visited.size, n_negatives), rng)
        kernels.joint_sweep(
            X.indptr, X.indices, X.data, V, squares, visited[order].astype(np.int32), table[order],
            negatives, gamma=gamma, negative_weight=negative_weight, rate=rate, reg=pull,
            cosine=kernel == "cosine", n_threads=n_threads if hogwild else 1,
        )  # fmt: skip
        if not np.isfinite(V).all():
            raise DivergedError(
                f"the regressor overflowed in pass {number + 1}; try a smaller rate than {rate}"
            )
        if monitor is not None and monitor(number, V):
            break
    return V


def _drawn(
    near: CSR, rows: IndexArray, width: int, rng: np.random.Generator, *, by_counts: bool
) -> IndexArray:
    """Neighbours of each row as a table, drawn from all of them."""
    first, last = near.indptr[rows][:, None], near.indptr[rows + 1][:, None]
    share = rng.random((rows.size, width))
    if by_counts:
        sums = np.concatenate([[0.0], np.cumsum(near.data, dtype=np.float64)])
        places = np.searchsorted(sums, sums[first] + share * (sums[last] - sums[first]), side="right") - 1
        places = np.clip(places, first, last - 1)  # against rounding
    else:
        places = first + (share * (last - first)).astype(np.int64)
    table: IndexArray = near.indices[places].astype(np.int32)
    return table


def _cyclic(near: CSR, rows: IndexArray, width: int) -> IndexArray:
    """Neighbours of each row as a table, repeated from the front where there are fewer than wanted."""
    count = np.diff(near.indptr)[rows]
    places = near.indptr[rows][:, None] + np.arange(width) % np.maximum(count, 1)[:, None]
    table: IndexArray = near.indices[places].astype(np.int32)
    return table
