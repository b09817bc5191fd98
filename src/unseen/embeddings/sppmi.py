"""Instances and labels from a factorisation of shifted positive mutual information."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.embeddings.graph import MAX_COST, neighbor_counts, refuse_all_pairs, with_diagonal
from unseen.embeddings.pmi import row_sums, shifted_pmi, sums
from unseen.embeddings.spectral import (
    Embedding,
    Solver,
    Symmetric,
    choose_solver,
    lanczos_dtype,
    positive_eigenpairs,
    scaled_vectors,
)
from unseen.exceptions import DataWarning
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, FloatArray

__all__ = ["DEFAULT_MU", "sppmi", "sppmi_matrix"]

DEFAULT_MU = {"counts": (1.0, 1.0, 10.0), "blocks": (10.0, 1.0, 10.0)}
ROWS_AT_ONCE = 2048


def sppmi(
    Y: CSR,
    n_components: int = 100,
    *,
    rng: np.random.Generator,
    shift: float = 1.0,
    n_neighbors: int | None = 250,
    counts: Literal["graph", "full"] = "graph",
    label_correlations: CSR | None = None,
    weighting: Literal["counts", "blocks"] = "counts",
    mu: tuple[float, float, float] | None = None,
    solver: Solver = "auto",
    tol: float = 1e-8,
    max_cost: float = MAX_COST,
    n_threads: int = 1,
) -> Embedding:
    """Embed instances, and with ``label_correlations`` labels, by ExMLDS1 and ExMLDS3.

    ``U S^(1/2)`` from the largest positive eigenvalues of the matrix of :func:`sppmi_matrix`.

    Parameters
    ----------
    Y : CSR of shape (n, n_labels)
        Stored cells are labels. Rows without labels get zeros.
    n_components : int
    rng : numpy.random.Generator
    shift, n_neighbors, counts, label_correlations, weighting, mu
        See :class:`SPPMIEmbedding`.
    solver : {"auto", "dense", "lanczos", "block"}
        Eigen-solver.
    tol : float
        Its residual, relative to the largest eigenvalue; from 1e-4 on it may compute in float32.
    max_cost : float
        Steps through the inverted index; above, frequent labels are sampled.
    n_threads : int

    Returns
    -------
    Embedding
        float32 for a float32 ``Y``. ``labels`` is None without ``label_correlations``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen.embeddings import sppmi
    >>> Y = sparse.csr_array([[1, 0], [1, 0], [0, 1]])
    >>> Z = sppmi(Y, 2, rng=np.random.default_rng(0)).instances
    >>> (Z @ Z.T).round(3)
    array([[0.223, 0.223, 0.   ],
           [0.223, 0.223, 0.   ],
           [0.   , 0.   , 1.609]])
    """
    side = Y.shape[0] + (0 if label_correlations is None else Y.shape[1])
    solver = choose_solver(side, n_components, solver)
    with one_blas_thread():
        matrix = sppmi_matrix(
            Y, rng=rng, shift=shift, n_neighbors=n_neighbors, counts=counts, weighting=weighting, mu=mu,
            label_correlations=label_correlations, max_cost=max_cost,
            dtype=lanczos_dtype(tol) if solver == "lanczos" else np.float64, n_threads=n_threads,
        )  # fmt: skip
        operator = Symmetric(matrix, n_threads=n_threads)
        pairs = positive_eigenpairs(operator, n_components, rng=rng, solver=solver, tol=tol)
    if pairs.values.size < n_components:
        warnings.warn(
            f"the matrix of mutual information has only {pairs.values.size} positive eigenvalues; the other "
            f"{n_components - pairs.values.size} of n_components={n_components} dimensions are zero.",
            DataWarning,
            stacklevel=2,
        )
    vectors, values = scaled_vectors(pairs, n_components)
    if Y.dtype == np.float32:
        vectors = vectors.astype(np.float32)
    n = Y.shape[0]
    labels = None if label_correlations is None else np.ascontiguousarray(vectors[n:])
    history = [{"products": float(pairs.n_products)}]
    rows = np.ascontiguousarray(vectors[:n])
    return Embedding(rows, labels, values, pairs.n_products, history, pairs.converged)


def sppmi_matrix(
    Y: CSR,
    *,
    rng: np.random.Generator,
    shift: float = 1.0,
    n_neighbors: int | None = 250,
    counts: Literal["graph", "full"] = "graph",
    label_correlations: CSR | None = None,
    weighting: Literal["counts", "blocks"] = "counts",
    mu: tuple[float, float, float] | None = None,
    max_cost: float = MAX_COST,
    dtype: npt.DTypeLike = np.float64,
    n_threads: int = 1,
) -> CSR:
    """The sparse symmetric matrix that is factorised: n x n, or (n + n_labels) squared with labels.

    ``max(PMI - log shift, 0)`` of the shared labels M = YY' (ExMLDS eq. 4), or of the joint matrix

        [ mu2 M   mu3 Y ]
        [ mu3 Y'  mu1 C ]

    with C the label correlations. "blocks" takes the mutual information of each block by itself and
    multiplies the blocks by mu afterwards. `dtype` is for the matrix without labels.
    """
    ones = np.ones(Y.nnz)
    pattern: CSR = sparse.csr_array((ones, Y.indices, Y.indptr), shape=Y.shape)
    full_sums = pattern @ np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)
    if n_neighbors is None:
        refuse_all_pairs(Y)
    if n_neighbors is None and (label_correlations is None or weighting == "blocks"):
        instances = _all_pairs(pattern, full_sums, shift)
        shared: CSR | None = None
    else:
        if n_neighbors is None:
            shared = sparse.csr_array(pattern @ pattern.T)
        else:
            near = neighbor_counts(Y, n_neighbors, rng=rng, max_cost=max_cost, n_threads=n_threads)
            shared = with_diagonal(near, np.diff(Y.indptr))
            del near
        own_sums = full_sums if counts == "full" else row_sums(shared)
        if label_correlations is None or weighting == "blocks":
            total = float(own_sums.sum())
            kind = dtype if label_correlations is None else np.float64
            instances = shifted_pmi(shared, own_sums, own_sums, total, shift, dtype=kind, overwrite=True)
    if label_correlations is None:
        return instances
    mu1, mu2, mu3 = DEFAULT_MU[weighting] if mu is None else mu
    if weighting == "blocks":
        label_sums = row_sums(label_correlations)
        labels = shifted_pmi(label_correlations, label_sums, label_sums, float(label_sums.sum()), shift)
        cross = shifted_pmi(pattern, *sums(pattern), float(pattern.nnz), shift)
        return _joined(mu1 * labels, mu2 * instances, mu3 * cross)
    assert shared is not None
    joint = _joined(mu1 * label_correlations, mu2 * shared, mu3 * pattern)
    joint.eliminate_zeros()
    all_sums = row_sums(joint)
    if counts == "full":
        all_sums[: Y.shape[0]] = mu2 * full_sums + mu3 * np.diff(Y.indptr)
    return shifted_pmi(joint, all_sums, all_sums, float(all_sums.sum()), shift)


def _joined(labels: CSR, instances: CSR, cross: CSR) -> CSR:
    joined: CSR = sparse.csr_array(sparse.block_array([[instances, cross], [cross.T, labels]], format="csr"))
    return joined


def _all_pairs(pattern: CSR, row_sums: FloatArray, shift: float) -> CSR:
    """Mutual information of all pairs, a few rows at a time: what is not positive is never kept."""
    total = float(row_sums.sum())
    by_label = sparse.csr_array(pattern.T)
    parts = []
    for first in range(0, pattern.shape[0], ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        shared = sparse.csr_array(pattern[rows] @ by_label)
        shared.sort_indices()
        parts.append(shifted_pmi(shared, row_sums[rows], row_sums, total, shift))
    stacked: CSR = sparse.csr_array(sparse.vstack(parts, format="csr"))
    return stacked
