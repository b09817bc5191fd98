"""Embeddings, and the largest eigenvalues of a symmetric matrix that is seen through products only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from unseen import kernels
from unseen.exceptions import DivergedError
from unseen.learned.kinds import all_finite
from unseen.linalg.blocked import gram, matmul
from unseen.typing import CSR, FloatArray

__all__ = [
    "Eigenpairs",
    "Embedding",
    "Solver",
    "Symmetric",
    "choose_solver",
    "lanczos_dtype",
    "positive_eigenpairs",
    "scaled_vectors",
]

DENSE_SIDE = 400
"""Up to this size LAPACK's full decomposition is faster and exact."""
BLOCK_ROWS = 100_000
"""Above this size a block of vectors is refined together instead of one Krylov space."""
OVERSAMPLING = 10
MAX_DEGREE = 10
SINGLE_TOL = 1e-4
"""From this tolerance on the Lanczos method computes in float32: half the memory to read, half the time."""
NEGLIGIBLE = 1e-8
"""Eigenvalues below this share of the largest are no dimension at all."""

Solver = Literal["auto", "dense", "lanczos", "block"]


class Eigenpairs(NamedTuple):
    """Decreasing eigenvalues, vectors as columns, the products that they took, and whether they settled."""

    values: FloatArray
    vectors: FloatArray
    n_products: int
    converged: bool = True


@dataclass(frozen=True)
class Embedding:
    """Vectors of instances and, where they were asked for, of labels.

    Attributes
    ----------
    instances : array of shape (n, n_components)
    labels : array of shape (n_labels, n_components) or None
    eigenvalues : array of shape (n_components,)
        Of the matrix that was factorised, decreasing; all zero for methods that factorise nothing.
    n_iter : int
        Products with that matrix, or sweeps.
    history : list of dict
        What was noted in each sweep.
    converged : bool or None
        Whether sweeps came to rest; None where that is not asked.
    """

    instances: FloatArray
    labels: FloatArray | None
    eigenvalues: FloatArray
    n_iter: int
    history: Sequence[dict[str, float]] = ()
    converged: bool | None = None


@dataclass(frozen=True)
class Symmetric:
    """``scale S + low low'`` with a sparse symmetric S, as an operator."""

    cells: CSR
    scale: float = 1.0
    low: FloatArray | None = None
    n_threads: int = 1

    def dot(self, block: FloatArray) -> FloatArray:
        """Product with a block of vectors."""
        block = np.ascontiguousarray(block)
        s = self.cells
        out = kernels.spmm(s.indptr, s.indices, s.data, block, n_threads=self.n_threads)
        if self.scale != 1.0:
            out *= out.dtype.type(self.scale)
        if self.low is not None and self.low.shape[1]:
            small = gram(self.low, block, n_threads=self.n_threads).astype(out.dtype, copy=False)
            out += matmul(self.low, small, n_threads=self.n_threads)
        return out

    def compact(self, dtype: npt.DTypeLike) -> Symmetric:
        """The same in another precision, with short indices where they do."""
        s = self.cells
        index = np.int32 if max(s.nnz, s.shape[1]) < 2**31 else np.int64
        parts = tuple(
            a.astype(d, copy=False) for a, d in ((s.data, dtype), (s.indices, index), (s.indptr, index))
        )
        cells: CSR = sparse.csr_array(parts, shape=s.shape)
        low = None if self.low is None else self.low.astype(dtype, copy=False)
        return replace(self, cells=cells, low=low)


def choose_solver(n: int, n_components: int, solver: Solver = "auto", *, guessed: bool = False) -> Solver:
    """What "auto" means for a matrix of n rows; other solvers stay what they are."""
    if solver != "auto":
        return solver
    if n <= DENSE_SIDE or 3 * min(n_components, n) > n:
        return "dense"
    return "block" if n > BLOCK_ROWS or guessed else "lanczos"


def lanczos_dtype(tol: float) -> np.dtype[Any]:
    """The precision in which "lanczos" computes, and needs the matrix."""
    return np.dtype(np.float32 if tol >= SINGLE_TOL else np.float64)


def positive_eigenpairs(
    matrix: Symmetric,
    n_components: int,
    *,
    rng: np.random.Generator,
    solver: Solver = "auto",
    start: FloatArray | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> Eigenpairs:
    """The largest positive eigenvalues and their vectors.

    Parameters
    ----------
    matrix : Symmetric
    n_components : int
        Pairs wanted; fewer come back where fewer eigenvalues are positive.
    rng : numpy.random.Generator
        Draws the start.
    solver : {"auto", "dense", "lanczos", "block"}
        "lanczos" is the implicitly restarted Lanczos method. "block" draws a random block and
        refines it by polynomial filters, and can start from a guess. "auto" decides by size.
    start : array of shape (n, p), optional
        Guess of the leading vectors, for "block".
    tol : float
        Residual relative to the largest eigenvalue.
    max_iter : int
        Filters of "block".

    Returns
    -------
    Eigenpairs
        Signs such that the largest entry of each vector is positive.
    """
    n = matrix.cells.shape[0]
    wanted = min(n_components, n)
    solver = choose_solver(n, wanted, solver, guessed=start is not None)
    if matrix.cells.nnz == 0 and (matrix.low is None or not np.any(matrix.low)):
        return Eigenpairs(np.zeros(0), np.zeros((n, 0)), 0)
    if not all_finite(matrix.cells.data) or (matrix.low is not None and not all_finite(matrix.low)):
        raise DivergedError("the matrix to factorise holds NaN or infinity; is `shift` extreme?")
    if solver == "dense" or wanted >= n - 1:
        found = _dense(matrix)
    elif solver == "lanczos":
        found = _lanczos(matrix, wanted, rng, tol)
    else:
        found = _block(matrix, wanted, rng, start, tol, max_iter)
    count = int(np.sum(found.values[:wanted] > NEGLIGIBLE * max(float(found.values[0]), 0.0)))
    vectors = found.vectors[:, :count]
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.where(vectors[largest, np.arange(count)] < 0, -1.0, 1.0)
    return Eigenpairs(found.values[:count], vectors * signs, found.n_products, found.converged)


def scaled_vectors(pairs: Eigenpairs, n_components: int) -> tuple[FloatArray, FloatArray]:
    """``U S^(1/2)`` and S, filled up with exact zeros to ``n_components``."""
    count = min(pairs.values.size, n_components)
    out = np.zeros((pairs.vectors.shape[0], n_components))
    out[:, :count] = pairs.vectors[:, :count] * np.sqrt(pairs.values[:count])
    values = np.zeros(n_components)
    values[:count] = pairs.values[:count]
    return out, values


def _dense(matrix: Symmetric) -> Eigenpairs:
    full: FloatArray = matrix.scale * matrix.cells.toarray().astype(np.float64)
    if matrix.low is not None:
        full = full + matrix.low @ matrix.low.T
    values, vectors = np.linalg.eigh(full)
    return Eigenpairs(values[::-1], vectors[:, ::-1], 1)


def _lanczos(matrix: Symmetric, wanted: int, rng: np.random.Generator, tol: float) -> Eigenpairs:
    n = matrix.cells.shape[0]
    n_products = 0
    dtype = lanczos_dtype(tol)
    compact = matrix.compact(dtype)

    def product(vector: FloatArray) -> FloatArray:
        nonlocal n_products
        n_products += 1
        return compact.dot(vector.reshape(n, 1))[:, 0]

    operator: Any = LinearOperator((n, n), matvec=product, dtype=dtype)
    width = min(n, max(wanted + 20, 2 * wanted))
    first: Any = rng.standard_normal(n).astype(dtype)
    try:
        values, vectors = eigsh(operator, wanted, which="LA", v0=first, ncv=width, tol=tol)
    except ArpackNoConvergence:
        # Eigenvalues in a tight cluster, as duplicate rows make them: a block resolves them together.
        return _block(matrix.compact(np.float64), wanted, rng, None, tol, 100)
    order = np.argsort(-values, kind="stable")
    return Eigenpairs(values[order].astype(np.float64), vectors[:, order].astype(np.float64), n_products)


def _block(
    matrix: Symmetric,
    wanted: int,
    rng: np.random.Generator,
    start: FloatArray | None,
    tol: float,
    max_iter: int,
) -> Eigenpairs:
    """Rayleigh-Ritz on a random block, refined by Chebyshev filters that damp all below it."""
    n = matrix.cells.shape[0]
    width = min(n, wanted + OVERSAMPLING)
    block: FloatArray = np.zeros((n, 0)) if start is None else start[:, :width].astype(np.float64)
    block = np.hstack([block, rng.standard_normal((n, width - block.shape[1]))])
    bottom = _lower_bound(matrix, rng)
    n_products, converged = 0, False
    for _ in range(max_iter):
        basis, _ = np.linalg.qr(block)
        image = matrix.dot(basis)
        n_products += 1
        values, turn = np.linalg.eigh(gram(basis, image, n_threads=matrix.n_threads))
        values, turn = values[::-1], np.ascontiguousarray(turn[:, ::-1])
        vectors = matmul(basis, turn, n_threads=matrix.n_threads)
        image = matmul(image, turn, n_threads=matrix.n_threads)
        residual = np.linalg.norm(image - vectors * values, axis=0)
        # What is not positive is not kept, so it need not be accurate either.
        judged = residual[:wanted][values[:wanted] > NEGLIGIBLE * values[0]]
        converged = not (judged > tol * max(float(values[0]), 1e-300)).any()
        if converged:
            break
        block, used = _filtered(matrix, vectors, image, values, bottom)
        n_products += used
    return Eigenpairs(values, vectors, n_products, converged)


def _filtered(
    matrix: Symmetric, vectors: FloatArray, image: FloatArray, values: FloatArray, bottom: float
) -> tuple[FloatArray, int]:
    """Chebyshev polynomial of the matrix times the vectors; small on [bottom, last Ritz value]."""
    edge = float(values[-1])
    centre, half = (edge + bottom) / 2, max((edge - bottom) / 2, 1e-12 * max(float(values[0]), 1e-300))
    growth = np.arccosh(max((float(values[0]) - centre) / half, 1.0 + 1e-9))
    # Beyond this the leading directions swallow the others in rounding.
    degree = int(np.clip(25.0 / growth, 1, MAX_DEGREE))
    before, now = vectors, (image - centre * vectors) / half
    for _ in range(degree - 1):
        before, now = now, (2.0 / half) * (matrix.dot(now) - centre * now) - before
    return now / np.linalg.norm(now, axis=0), degree - 1


def _lower_bound(matrix: Symmetric, rng: np.random.Generator, n_steps: int = 12) -> float:
    """Below all eigenvalues: the smallest Ritz value of a few Lanczos steps, less its residual."""
    n = matrix.cells.shape[0]
    steps = min(n_steps, n)
    basis = np.zeros((n, steps))
    vector: FloatArray = rng.standard_normal(n)
    small = np.zeros((steps, steps))
    rest = 0.0
    for k in range(steps):
        size = float(np.linalg.norm(vector))
        if k and size <= 1e-12 * abs(small[0, 0]):
            small, rest = small[:k, :k], 0.0
            break
        basis[:, k] = vector / size
        vector = matrix.dot(basis[:, k : k + 1])[:, 0]
        small[: k + 1, k] = basis[:, : k + 1].T @ vector
        small[k, : k + 1] = small[: k + 1, k]
        for _ in range(2):
            vector = vector - basis[:, : k + 1] @ (basis[:, : k + 1].T @ vector)
        rest = float(np.linalg.norm(vector))
    return float(np.linalg.eigvalsh(small)[0]) - rest
