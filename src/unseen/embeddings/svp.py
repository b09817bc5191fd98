"""Similarities of nearest rows by a low-rank matrix: the embedding of SLEEC."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.embeddings.graph import MAX_COST, neighbor_counts, with_diagonal
from unseen.embeddings.spectral import Embedding, Symmetric, positive_eigenpairs, scaled_vectors
from unseen.exceptions import DataWarning
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, FloatArray

__all__ = ["cosine_graph", "svp"]

SMALLEST_STEP = 1e-4
"""Relative to the first step; shorter ones bring nothing."""


def svp(
    Y: CSR,
    n_components: int = 100,
    n_neighbors: int = 250,
    *,
    rng: np.random.Generator,
    max_iter: int = 200,
    tol: float = 1e-3,
    step: float | None = None,
    max_cost: float = MAX_COST,
    n_threads: int = 1,
) -> Embedding:
    """Embed instances so that ``z_i . z_j`` is the cosine of their label vectors, for nearest rows only.

    Singular value projection: with G the cosines on the pairs Omega (each row with itself and its
    nearest rows),

        Z Z' <- the positive part of rank ``n_components`` of  Z Z' + step P_Omega(G - Z Z')

    The step is halved whenever the error on Omega would rise, so it never does.

    Parameters
    ----------
    Y : CSR of shape (n, n_labels)
        Stored cells are labels.
    n_components : int
    n_neighbors : int
    rng : numpy.random.Generator
    max_iter : int
    tol : float
        Stop when the root mean squared error on Omega falls by a smaller share than this.
    step : float, optional
        First step; n^2 / (2 |Omega|), at least 1, by default.
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
    >>> from unseen.embeddings import svp
    >>> Y = sparse.csr_array([[1, 1], [1, 0], [0, 1]])
    >>> Z = svp(Y, 2, 2, rng=np.random.default_rng(0), tol=1e-9).instances
    >>> (Z @ Z.T).round(2)
    array([[1.  , 0.71, 0.71],
           [0.71, 1.  , 0.  ],
           [0.71, 0.  , 1.  ]])
    """
    target = cosine_graph(Y, n_neighbors, rng=rng, max_cost=max_cost, n_threads=n_threads)
    n, pairs = Y.shape[0], max(target.nnz, 1)
    eta = first = max(n * n / (2.0 * pairs), 1.0) if step is None else step
    Z: FloatArray = np.zeros((n, 0))
    rest, error, n_iter = target.data, _rms(target.data), 0
    values: FloatArray = np.zeros(n_components)
    start: FloatArray | None = None
    history: list[dict[str, float]] = []
    settled = True
    with one_blas_thread():
        while n_iter < max_iter and eta >= SMALLEST_STEP * first and error > 0:
            n_iter += 1
            cells: CSR = sparse.csr_array((rest, target.indices, target.indptr), shape=target.shape)
            operator = Symmetric(cells, scale=eta, low=Z, n_threads=n_threads)
            found = positive_eigenpairs(operator, n_components, rng=rng, start=start, tol=1e-3)
            new, new_values = scaled_vectors(found, n_components)
            fitted = kernels.sddmm(target.indptr, target.indices, new, new, n_threads=n_threads)
            new_error = _rms(target.data - fitted)
            history.append({"error": min(new_error, error), "step": eta})
            if new_error >= error:
                eta /= 2.0
                continue
            gain = (error - new_error) / error
            Z, values, start, rest, error = new, new_values, found.vectors, target.data - fitted, new_error
            if gain < tol:
                break
        else:
            settled = eta < SMALLEST_STEP * first or error == 0
    if (missing := int(np.sum(values == 0))) and Z.shape[1]:
        warnings.warn(
            f"{missing} of n_components={n_components} dimensions are zero: fewer are enough.",
            DataWarning,
            stacklevel=2,
        )
    out = np.zeros((n, n_components), dtype=np.float32 if Y.dtype == np.float32 else np.float64)
    out[:, : Z.shape[1]] = Z
    return Embedding(out, None, values, n_iter, history, settled)


def cosine_graph(
    Y: CSR, n_neighbors: int, *, rng: np.random.Generator, max_cost: float = MAX_COST, n_threads: int = 1
) -> CSR:
    """Cosines of the label vectors of each row, itself and its nearest rows."""
    near = neighbor_counts(Y, n_neighbors, rng=rng, max_cost=max_cost, n_threads=n_threads)
    size = np.diff(Y.indptr)
    shared = with_diagonal(near, size)
    shared.eliminate_zeros()
    root = np.sqrt(np.maximum(size, 1).astype(np.float64))
    cosines = shared.data / (np.repeat(root, np.diff(shared.indptr)) * root[shared.indices])
    graph: CSR = sparse.csr_array((cosines, shared.indices, shared.indptr), shape=shared.shape)
    return graph


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
