"""NumPy twins of the kernels behind label embeddings; see :mod:`unseen.kernels.reference`."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import expit

from unseen.typing import FloatArray, IndexArray


def cooccurrence(
    indptr: IndexArray,
    indices: IndexArray,
    index_indptr: IndexArray,
    index_indices: IndexArray,
    k: int,
    similarity: str,
    recount: bool,
    n_threads: int,
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Rows most like each row by shared labels, ids increasing; padded to k."""
    n, n_labels = len(indptr) - 1, len(index_indptr) - 1
    rows = sparse.csr_array((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=(n, n_labels))
    ones = np.ones(len(index_indices), dtype=np.int64)
    index = sparse.csr_array((ones, index_indices, index_indptr), shape=(n_labels, n))
    labels = np.diff(indptr).astype(np.int64)
    ids = np.zeros((n, k), dtype=indices.dtype)
    counts = np.zeros((n, k), dtype=np.int32)
    sizes = np.zeros(n, dtype=np.int64)
    for i in range(n):
        shared = (rows[[i]] @ index).toarray()[0]
        candidates = np.flatnonzero(shared)
        candidates = candidates[candidates != i]
        found = shared[candidates]
        key = (found**2 if similarity == "cosine" else found) / labels[candidates]
        best = np.sort(candidates[np.lexsort((candidates, -key))[:k]])
        sizes[i] = len(best)
        ids[i, : len(best)] = best
        exact = (rows[best] @ rows[[i]].T).toarray()[:, 0] if recount else shared[best]
        counts[i, : len(best)] = exact
    return ids, counts, sizes


def sgns(
    words: FloatArray,
    contexts: FloatArray,
    centers: IndexArray,
    positives: IndexArray,
    negatives: IndexArray,
    first_rate: float,
    last_rate: float,
    n_threads: int,
) -> None:
    """Skip-gram steps in the order of the pairs."""
    shared = np.shares_memory(words, contexts)
    for t, rate in enumerate(np.linspace(first_rate, last_rate, len(centers))):
        center = words[centers[t]]
        pull = np.zeros_like(center)
        for number, target in enumerate([positives[t], *negatives[t]]):
            if shared and target == centers[t]:
                continue
            score = float(center @ contexts[target])
            step = words.dtype.type(rate * (expit(-score) if number == 0 else -expit(score)))
            pull += step * contexts[target]
            contexts[target] += step * center
        center += pull


def joint(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    regressor: FloatArray,
    squares: FloatArray,
    visits: IndexArray,
    positives: IndexArray,
    negatives: IndexArray,
    reg: FloatArray,
    gamma: float,
    negative_weight: float,
    rate: float,
    cosine: bool,
    n_threads: int,
) -> None:
    """AdaGrad steps on a regressor from pairs of rows."""

    def cells(row: int) -> slice:
        return slice(indptr[row], indptr[row + 1])

    def step(row: int, pull: FloatArray) -> None:
        for t in range(indptr[row], indptr[row + 1]):
            slope = values[t] * pull - reg[indices[t]] * regressor[indices[t]]
            squares[indices[t]] += slope**2
            regressor[indices[t]] += rate * slope / np.sqrt(squares[indices[t]] + 1e-10)

    for visit, i in enumerate(visits):
        others = [*positives[visit], *negatives[visit]]
        z, *rest = (values[cells(row)] @ regressor[indices[cells(row)]] for row in (i, *others))
        pull_z, pulls = np.zeros_like(z), []
        for number, w in enumerate(rest):
            kernel, toward_z, toward_w = _kernel_and_slopes(z, w, cosine)
            positive = number < positives.shape[1]
            weight = (
                gamma * expit(-gamma * kernel)
                if positive
                else -negative_weight * gamma * expit(gamma * kernel)
            )
            pull_z += weight * toward_z
            pulls.append(weight * toward_w)
        step(i, pull_z)
        for other, pull in zip(others, pulls, strict=True):
            step(other, pull)


def _kernel_and_slopes(z: FloatArray, w: FloatArray, cosine: bool) -> tuple[float, FloatArray, FloatArray]:
    """K(z, w) and its gradients in z and w."""
    if not cosine:
        return float(z @ w), w, z
    sizes = float(np.linalg.norm(z)), float(np.linalg.norm(w))
    if 0.0 in sizes:
        return 0.0, np.zeros_like(z), np.zeros_like(w)
    across = 1.0 / (sizes[0] * sizes[1])
    kernel = float(z @ w) * across
    return kernel, across * w - kernel / sizes[0] ** 2 * z, across * z - kernel / sizes[1] ** 2 * w
