"""Skip-gram training with negative samples, instances in the place of words."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from unseen import kernels
from unseen.embeddings.graph import MAX_COST, neighbor_counts
from unseen.embeddings.spectral import Embedding
from unseen.exceptions import DivergedError, ParameterError
from unseen.typing import CSR, FloatArray, IndexArray

__all__ = ["Urn", "sgns", "sgns_of_graph"]

JUDGED = 2000
"""Pairs whose loss is noted along the way."""
PAIRS_AT_ONCE = 1 << 19
"""Pairs whose samples are drawn together; bounds memory."""


def sgns(
    Y: CSR,
    n_components: int = 100,
    *,
    rng: np.random.Generator,
    n_neighbors: int = 250,
    n_negatives: int = 5,
    n_epochs: int = 35,
    negative: Literal["context", "uniform", "power"] = "context",
    positives: Literal["counts", "once"] = "counts",
    shared: bool = False,
    rate: float = 0.1,
    last_rate: float = 1e-4,
    init: FloatArray | None = None,
    hogwild: bool = False,
    max_cost: float = MAX_COST,
    n_threads: int = 1,
) -> Embedding:
    """Embed instances by ExMLDS2: pairs of near rows against random pairs (eq. 3).

    Maximises over vectors z of instances (and v of contexts, which are z again if ``shared``)

        sum over pairs (i, j) [ log s(z_i . v_j) + sum of n_negatives draws j' of log s(-z_i . v_j') ]

    with s the logistic function, by stochastic gradients with a linearly falling rate. Pairs come from the
    graph of ``n_neighbors``, both directions, without a row and itself. With the defaults for ``positives``
    and ``negative``, the optimum is ``PMI - log n_negatives``; the paper prints pairs taken once and uniform
    negatives, whose optimum is the plain graph.

    Parameters
    ----------
    Y : CSR of shape (n, n_labels)
        Stored cells are labels.
    n_components : int
    rng : numpy.random.Generator
    n_neighbors : int
    n_negatives : int
    n_epochs : int
        An epoch draws as many pairs as the graph has.
    negative : {"context", "uniform", "power"}
        Negatives in proportion to the sum of a row's shared labels, all alike, or in proportion to
        that sum to the power 3/4.
    positives : {"counts", "once"}
        Pairs in proportion to the labels that they share, or all alike.
    shared : bool
        One table for instances and contexts; else two, of which the first is returned.
    rate, last_rate : float
        First and last step length. Words are usually trained with 0.025, which is slow here.
    init : array of shape (n, n_components), optional
        Start of the instances; uniform in (-1/2, 1/2) / n_components by default. Contexts start at zero.
    hogwild : bool
        Let threads write without locks: faster, and never twice the same. Otherwise one thread works,
        and a seed gives the same bits.
    max_cost : float
        Steps through the inverted index; above, frequent labels are sampled.
    n_threads : int

    Returns
    -------
    Embedding
        float32 for a float32 ``Y``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen.embeddings import sgns
    >>> Y = sparse.csr_array(np.repeat(np.eye(2), 10, axis=0))
    >>> Z = sgns(Y, 2, rng=np.random.default_rng(0), rate=0.5).instances
    >>> bool((Z @ Z.T)[:10, :10].mean() > (Z @ Z.T)[:10, 10:].mean() + 1)
    True
    """
    near = neighbor_counts(Y, n_neighbors, rng=rng, max_cost=max_cost, n_threads=n_threads)
    history: list[dict[str, float]] = []
    words = sgns_of_graph(
        near.maximum(near.T.tocsr()), n_components, rng=rng, n_negatives=n_negatives, n_epochs=n_epochs,
        negative=negative, positives=positives, shared=shared, rate=rate, last_rate=last_rate, init=init,
        hogwild=hogwild, dtype=np.dtype(np.float32 if Y.dtype == np.float32 else np.float64),
        n_threads=n_threads, history=history,
    )  # fmt: skip
    return Embedding(words, None, np.zeros(n_components), n_epochs if near.nnz else 0, history)


def sgns_of_graph(
    graph: CSR,
    n_components: int,
    *,
    rng: np.random.Generator,
    n_negatives: int = 5,
    n_epochs: int = 35,
    negative: Literal["context", "uniform", "power"] = "context",
    positives: Literal["counts", "once"] = "counts",
    shared: bool = False,
    rate: float = 0.1,
    last_rate: float = 1e-4,
    init: FloatArray | None = None,
    hogwild: bool = False,
    dtype: Any = np.float64,
    n_threads: int = 1,
    history: list[dict[str, float]] | None = None,
) -> FloatArray:
    """The same from the pairs themselves, a symmetric matrix of counts; settings as in :func:`sgns`.

    `history` is given the ``passes`` made and the ``loss`` of some fixed pairs after each stretch.
    """
    n = graph.shape[0]
    words, contexts = _start(n, n_components, shared, init, dtype, rng)
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(graph.indptr))
    if graph.nnz == 0 or n_epochs == 0:
        return words
    pairs = Urn(graph.data if positives == "counts" else np.ones(graph.nnz))
    noise = Urn(_noise(graph, negative, positives))
    total, done = n_epochs * graph.nnz, 0
    while done < total:
        count = min(PAIRS_AT_ONCE, total - done)
        drawn = pairs.draw(count, rng)
        slope = (last_rate - rate) / total
        kernels.sgns_sweep(
            words,
            contexts,
            rows[drawn],
            graph.indices[drawn].astype(np.int32, copy=False),
            noise.draw((count, n_negatives), rng),
            first_rate=rate + slope * done,
            last_rate=rate + slope * (done + count),
            n_threads=n_threads if hogwild else 1,
        )
        done += count
        if history is not None:
            loss = _loss(words, contexts, rows, graph.indices, n_negatives)
            history.append({"passes": done / graph.nnz, "loss": loss})
    if not np.isfinite(words).all():
        raise DivergedError(f"skip-gram training overflowed; rate={rate} is too large, try {rate / 10:g}")
    return words


def _loss(
    words: FloatArray, contexts: FloatArray, rows: IndexArray, cols: IndexArray, n_negatives: int
) -> float:
    """Mean loss of evenly spaced pairs, with the partners of the others as negatives: nothing is drawn."""
    places = np.linspace(0, len(rows) - 1, min(JUDGED, len(rows))).astype(np.int64)
    left, partners = words[rows[places]].astype(np.float64), contexts[cols[places]].astype(np.float64)
    total = np.logaddexp(0.0, -np.einsum("ij,ij->i", left, partners))
    for shift in range(1, n_negatives + 1):
        others = np.roll(partners, 7 * shift, axis=0)
        total += np.logaddexp(0.0, np.einsum("ij,ij->i", left, others))
    return float(total.mean())


def _start(
    n: int, r: int, shared: bool, init: FloatArray | None, dtype: Any, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    if init is None:
        words: FloatArray = ((rng.random((n, r)) - 0.5) / r).astype(dtype)
    elif init.shape != (n, r):
        raise ParameterError(f"init must have shape {(n, r)}, got {init.shape}")
    elif shared and not init.any():
        raise ParameterError("init must not be zero with shared=True: no gradient leads away from it")
    else:
        words = np.array(init, dtype=dtype, order="C")
    return words, words if shared else np.zeros((n, r), dtype=dtype)


def _noise(graph: CSR, negative: str, positives: str) -> FloatArray:
    frequency: FloatArray = (
        np.asarray(graph.sum(axis=0), dtype=np.float64)
        if positives == "counts"
        else np.diff(graph.indptr).astype(np.float64)
    )
    if negative == "uniform":
        return np.ones_like(frequency)
    return frequency**0.75 if negative == "power" else frequency


class Urn:
    """Numbers 0 .. len(weights) - 1, drawn in proportion to their weights (Walker's alias method)."""

    def __init__(self, weights: FloatArray) -> None:
        share = np.asarray(weights, dtype=np.float64)
        n = share.size
        share = share * (n / share.sum())
        self.keep = np.ones(n)
        self.alias: IndexArray = np.arange(n)
        # Each number below its fair share is filled up by one above it. Plain lists: the loop is serial.
        small = np.flatnonzero(share < 1.0).tolist()
        large = np.flatnonzero(share >= 1.0).tolist()
        left = share.tolist()
        while small and large:
            poor, rich = small.pop(), large[-1]
            self.keep[poor], self.alias[poor] = left[poor], rich
            left[rich] -= 1.0 - left[poor]
            if left[rich] < 1.0:
                small.append(large.pop())

    def draw(self, size: int | tuple[int, ...], rng: np.random.Generator) -> IndexArray:
        """Independent draws."""
        first = rng.integers(0, self.keep.size, size=size, dtype=np.int64)
        stay = rng.random(size, dtype=np.float32) < self.keep[first]
        drawn: IndexArray = np.where(stay, first, self.alias[first]).astype(np.int32)
        return drawn
