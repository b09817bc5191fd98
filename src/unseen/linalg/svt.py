"""Singular values above a threshold, of a low rank plus sparse matrix.

One block serves every nuclear-norm method. It is warm-started with the right vectors of the
last call, grows until the smallest Ritz value falls below the threshold, and checks the
residual of what it keeps.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from unseen.typing import FloatArray

__all__ = ["Operator", "Triplets", "nuclear_norm_of_product", "spectral_norm", "thresholded_svd"]

DENSE_SIDE = 500
"""Up to this shorter side LAPACK's full SVD is faster and exact."""
DENSE_CELLS = 4_000_000
"""... as long as the whole matrix has no more cells than this."""
OVERSAMPLING = 8


class Operator(Protocol):
    """A matrix seen through its products."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def dot(self, vectors: FloatArray) -> FloatArray:
        """Product with a block of vectors."""

    def tdot(self, vectors: FloatArray) -> FloatArray:
        """Product of the transpose with a block of vectors."""

    def toarray(self) -> FloatArray:
        """The matrix in full."""


class Triplets(NamedTuple):
    """Singular triplets: ``u @ diag(s) @ v.T``."""

    u: FloatArray
    s: FloatArray
    v: FloatArray

    def shrunk(self, threshold: float) -> Triplets:
        """Soft thresholding of the singular values."""
        kept = self.s > threshold
        return Triplets(self.u[:, kept], self.s[kept] - self.s.dtype.type(threshold), self.v[:, kept])


def thresholded_svd(
    operator: Operator,
    threshold: float,
    *,
    start: FloatArray | None = None,
    rng: np.random.Generator,
    tol: float = 1e-7,
    max_power: int = 60,
    max_rank: int | None = None,
    dense: bool | None = None,
) -> Triplets:
    """Singular triplets of ``operator`` with values above ``threshold``.

    Parameters
    ----------
    operator : Operator
        The matrix.
    threshold : float
        Values at or below it are dropped.
    start : array of shape (n_cols, r), optional
        Guess of the right vectors, such as those of the previous call.
    rng : numpy.random.Generator
        Fills the block where the guess is too narrow.
    tol : float
        Residual ``||B v - s u||`` allowed for each kept triplet, relative to the largest value.
    max_power : int
        Limit of power steps for one block size.
    max_rank : int, optional
        Keep at most this many triplets.
    dense : bool, optional
        Force or forbid the dense SVD; by default it is used for small matrices only.

    Returns
    -------
    Triplets
        Sorted by decreasing value; signs such that the largest entry of each v is positive.
    """
    n, m = operator.shape
    limit = min(n, m) if max_rank is None else min(n, m, max_rank)
    if dense is None:
        dense = min(n, m) <= DENSE_SIDE and n * m <= DENSE_CELLS
    if dense:
        u, s, vt = np.linalg.svd(operator.toarray(), full_matrices=False)
        found = Triplets(u, s, np.ascontiguousarray(vt.T))
    else:
        found = _subspace_svd(operator, threshold, start, rng, tol, max_power, limit)
    count = min(int(np.sum(found.s > threshold)), limit)
    return _fix_signs(Triplets(found.u[:, :count], found.s[:count], found.v[:, :count]))


def _subspace_svd(
    operator: Operator,
    threshold: float,
    start: FloatArray | None,
    rng: np.random.Generator,
    tol: float,
    max_power: int,
    limit: int,
) -> Triplets:
    n, m = operator.shape
    widest = min(n, m, limit + OVERSAMPLING)
    guess = np.zeros((m, 0)) if start is None else start
    width = min(max(guess.shape[1] + OVERSAMPLING, 2 * OVERSAMPLING), widest)
    block = _widen(guess[:, :widest], width, rng)
    image = operator.dot(block)
    for _ in range(max_power):
        basis, _ = np.linalg.qr(image)
        # Rayleigh-Ritz on the span of the image: B' basis = v s w'.
        v, s, wt = np.linalg.svd(operator.tdot(basis), full_matrices=False)
        u = basis @ wt.T
        image = operator.dot(v)
        wanted = min(int(np.sum(s > threshold)), limit)
        residual = np.linalg.norm(image[:, :wanted] - u[:, :wanted] * s[:wanted], axis=0)
        settled = wanted == 0 or float(residual.max()) <= tol * float(s[0])
        # The block must reach below the threshold, or triplets above it may have been missed.
        if wanted >= s.size and wanted < limit and width < widest:
            width = min(max(int(1.5 * width), width + OVERSAMPLING), widest)
            wider = _widen(v, width, rng)
            image = np.hstack([image, operator.dot(wider[:, v.shape[1] :])])
        elif settled:
            break
    return Triplets(u, s, v)


def _widen(guess: FloatArray, width: int, rng: np.random.Generator) -> FloatArray:
    """Orthonormal block that starts with the span of ``guess`` and is filled up at random."""
    extra = rng.standard_normal((guess.shape[0], max(width - guess.shape[1], 0)))
    block = np.hstack([guess, extra.astype(guess.dtype, copy=False)])
    basis, _ = np.linalg.qr(block)
    # Keep the given vectors exactly as they are where they were orthonormal already.
    return np.ascontiguousarray(basis)


def _fix_signs(triplets: Triplets) -> Triplets:
    if triplets.s.size == 0:
        return triplets
    largest = np.argmax(np.abs(triplets.v), axis=0)
    signs = np.sign(triplets.v[largest, np.arange(triplets.s.size)])
    signs[signs == 0] = 1
    return Triplets(triplets.u * signs, triplets.s, triplets.v * signs)


def spectral_norm(operator: Operator, rng: np.random.Generator, *, tol: float = 1e-3) -> float:
    """Largest singular value, from below, to a relative accuracy of about ``tol``."""
    n, m = operator.shape
    if min(n, m) <= DENSE_SIDE and n * m <= DENSE_CELLS:
        return float(np.linalg.norm(operator.toarray(), 2))
    block = _widen(np.zeros((m, 0)), min(OVERSAMPLING, n, m), rng)
    last = 0.0
    for _ in range(100):
        basis, _ = np.linalg.qr(operator.dot(block))
        v, s, _ = np.linalg.svd(operator.tdot(basis), full_matrices=False)
        if s[0] <= (1.0 + tol) * last:
            break
        last, block = float(s[0]), v
    return float(s[0])


def nuclear_norm_of_product(left: FloatArray, right: FloatArray) -> float:
    """``||left @ right.T||_*`` from two thin QR factorisations."""
    if left.shape[1] == 0:
        return 0.0
    _, r_left = np.linalg.qr(left.astype(np.float64, copy=False))
    _, r_right = np.linalg.qr(right.astype(np.float64, copy=False))
    return float(np.linalg.svd(r_left @ r_right.T, compute_uv=False).sum())
