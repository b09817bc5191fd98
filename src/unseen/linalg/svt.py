"""Singular values above a threshold, of a low rank plus sparse matrix.

One block serves every nuclear-norm method. It is warm-started with the right vectors of the
last call, grows until the smallest Ritz value falls below the threshold, and checks the
residual of what it keeps.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh_tridiagonal

from unseen.exceptions import DivergedError
from unseen.typing import FloatArray

__all__ = [
    "NormBounds",
    "Operator",
    "Triplets",
    "nuclear_norm_of_product",
    "singular_value",
    "spectral_bounds",
    "spectral_norm",
    "thresholded_svd",
]

DENSE_SIDE = 500
"""Up to this shorter side LAPACK's full SVD is faster and exact."""
DENSE_CELLS = 4_000_000
"""... as long as the whole matrix has no more cells than this."""
OVERSAMPLING = 8
ROUGH = 0.03
"""Relative residual up to which a value below the threshold is believed to be below it."""
MAX_DEGREE = 8
"""Of the polynomial filter between two orthogonalisations."""


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
    small = n * m <= DENSE_CELLS and dense is None
    if dense or (small and min(n, m) <= DENSE_SIDE):
        u, s, vt = np.linalg.svd(operator.toarray(), full_matrices=False)
        found = Triplets(u, s, np.ascontiguousarray(vt.T))
    elif small and (start is None or start.shape[1] * 6 > min(n, m)):
        found = _gram_svd(operator.toarray(), threshold)
    else:
        found = _subspace_svd(operator, threshold, start, rng, tol, max_power, limit)
    count = min(int(np.sum(found.s > threshold)), limit)
    return _fix_signs(Triplets(found.u[:, :count], found.s[:count], found.v[:, :count]))


def _gram_svd(matrix: FloatArray, threshold: float) -> Triplets:
    """By an eigendecomposition on the shorter side, where a block would be nearly as wide as that.

    Squaring loses values below 1e-8 of the largest, which matters only if they would be kept.
    """
    turned = matrix.shape[0] > matrix.shape[1]
    wide = (matrix.T if turned else matrix).astype(np.float64, copy=False)
    squares, vectors = np.linalg.eigh(wide @ wide.T)
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    if threshold <= 1e-6 * values[0]:
        u, s, vt = np.linalg.svd(matrix, full_matrices=False)
        return Triplets(u, s, vt.T)
    count = int(np.sum(values > threshold))
    near = vectors[:, ::-1][:, :count]
    far = (wide.T @ near) / values[:count]
    u, v = (far, near) if turned else (near, far)
    dtype = matrix.dtype
    return Triplets(u.astype(dtype), values[:count].astype(dtype), np.ascontiguousarray(v, dtype=dtype))


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
    image = operator.dot(_widen(guess[:, :widest], width, rng))
    # A random block has hardly met the leading directions yet: what it shows says nothing about them.
    blind = guess.shape[1] == 0
    for _ in range(max_power):
        basis, _ = np.linalg.qr(image)
        # Rayleigh-Ritz on the span of the image: B' basis = v s w'.
        v, s, wt = np.linalg.svd(operator.tdot(basis), full_matrices=False)
        u = basis @ wt.T
        image = operator.dot(v)
        wanted = min(int(np.sum(s > threshold)), limit)
        # One more than wanted: while it is rough, its true value may lie above the threshold.
        judged = min(wanted + 1, s.size)
        residual = np.linalg.norm(image[:, :judged] - u[:, :judged] * s[:judged], axis=0)
        open_ = residual > tol * float(s[0])
        if judged > wanted:
            reach = float(s[wanted]) + float(residual[wanted])
            rough = residual[wanted] > ROUGH * s[wanted]
            open_[wanted] = wanted < limit and rough and (blind or reach > threshold)
        blind = False
        # The block must reach below the threshold, or triplets above it may have been missed.
        if wanted >= s.size and wanted < limit and width < widest:
            width = min(max(int(1.5 * width), width + OVERSAMPLING), widest)
            wider = _widen(v, width, rng)
            image = np.hstack([image, operator.dot(wider[:, v.shape[1] :])])
        elif not open_.any():
            break
        else:
            image = _filtered(operator, v, s, image, int(np.argmax(open_)))
    return Triplets(u, s, v)


def _filtered(
    operator: Operator, v: FloatArray, s: FloatArray, image: FloatArray, first_open: int
) -> FloatArray:
    """``B T_d(2 B'B / s_last^2 - 1) v``: a polynomial that keeps what lies outside the block small.

    Triplets before ``first_open`` have settled and are left as they are. The degree is such that
    the leading directions do not swallow the others in rounding.
    """
    edge = float(s[-1]) ** 2
    top, leading = (2.0 * float(value) ** 2 / max(edge, 1e-300) - 1.0 for value in (s[first_open], s[0]))
    if not 1.0 < top < 1e6:
        return image
    growth, overall = np.arccosh(top), np.arccosh(leading)
    precision = 0.5 if v.dtype == np.float32 else 1.0
    degree = int(min(MAX_DEGREE, precision * 14.0 / growth, precision * 26.0 / overall))
    if degree < 2:
        return image
    before, now = v[:, first_open:], image[:, first_open:]
    scale = v.dtype.type(2.0 / edge)
    after = scale * operator.tdot(now) - before
    for _ in range(degree - 1):
        before, after = after, 2 * (scale * operator.tdot(operator.dot(after)) - after) - before
    settled = v[:, :first_open]
    after = after - settled @ (settled.T @ after)
    return np.hstack([image[:, :first_open], operator.dot(after / np.linalg.norm(after, axis=0))])


def _widen(guess: FloatArray, width: int, rng: np.random.Generator) -> FloatArray:
    """Orthonormal block that starts with the span of ``guess`` and is filled up at random."""
    extra = rng.standard_normal((guess.shape[0], max(width - guess.shape[1], 0)))
    block = np.hstack([guess, extra.astype(guess.dtype, copy=False)])
    basis, _ = np.linalg.qr(block)
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
        whole = operator.toarray()
        if not np.isfinite(whole).all():
            raise DivergedError("a matrix whose largest singular value is asked for holds NaN or infinity")
        return float(np.linalg.norm(whole, 2))
    block = _widen(np.zeros((m, 0)), min(OVERSAMPLING, n, m), rng)
    last = 0.0
    for _ in range(100):
        basis, _ = np.linalg.qr(operator.dot(block))
        v, s, _ = np.linalg.svd(operator.tdot(basis), full_matrices=False)
        if s[0] <= (1.0 + tol) * last:
            break
        last, block = float(s[0]), v
    return float(s[0])


def singular_value(operator: Operator, k: int, rng: np.random.Generator, *, n_steps: int = 8) -> float:
    """About the k-th largest singular value, from below; 0 where there are not so many.

    A few steps on a block: among many values of about the same size it comes out a little small.
    """
    n, m = operator.shape
    if min(n, m) < k:
        return 0.0
    if min(n, m) <= DENSE_SIDE and n * m <= DENSE_CELLS:
        return float(np.linalg.svd(operator.toarray(), compute_uv=False)[k - 1])
    block = _widen(np.zeros((m, 0)), min(k + OVERSAMPLING, n, m), rng)
    for _ in range(n_steps):
        basis, _ = np.linalg.qr(operator.dot(block))
        block, s, _ = np.linalg.svd(operator.tdot(basis), full_matrices=False)
    return float(s[k - 1])


class NormBounds(NamedTuple):
    """The largest singular value lies between ``lower`` and ``upper``."""

    lower: float
    upper: float
    exact: bool


def spectral_bounds(
    operator: Operator, rng: np.random.Generator, *, n_steps: int = 100, failure: float = 1e-9
) -> NormBounds:
    """Bounds on the largest singular value that a certificate can rest on.

    Small matrices are decomposed in full. For others the Lanczos process on B'B from a random
    vector gives the lower bound, and the theorem of Kuczynski and Wozniakowski (1992),
    P(value < (1 - eps) largest) <= 1.648 sqrt(m) exp(-sqrt(eps) (2 n_steps - 1)),
    the upper one, which fails with probability ``failure``.

    Parameters
    ----------
    operator : Operator
        The matrix, in float64.
    rng : numpy.random.Generator
        Draws the first vector.
    n_steps : int
        Lanczos steps; the gap between the bounds falls with the square of it.
    failure : float
        Probability that the upper bound is too small.

    Returns
    -------
    NormBounds
        ``exact`` says that no chance was involved.
    """
    n, m = operator.shape
    if min(n, m) <= DENSE_SIDE and n * m <= DENSE_CELLS:
        # Just above, so that dividing by it leaves no value larger than one.
        norm = float(np.linalg.norm(operator.toarray(), 2)) * (1.0 + 1e-12)
        return NormBounds(norm, norm, True)
    steps = min(n_steps, m)
    basis = np.empty((m, steps))
    vector: FloatArray = rng.standard_normal(m)
    diagonal, side = np.zeros(steps), np.zeros(steps)
    used = steps
    for k in range(steps):
        basis[:, k] = vector / np.linalg.norm(vector)
        vector = operator.tdot(operator.dot(basis[:, k : k + 1]))[:, 0]
        diagonal[k] = basis[:, k] @ vector
        for _ in range(2):  # against all earlier ones, twice: rounding would bring back copies
            vector = vector - basis[:, : k + 1] @ (basis[:, : k + 1].T @ vector)
        side[k] = np.linalg.norm(vector)
        if side[k] <= 1e-14 * max(diagonal[k], 1e-300):
            used = k + 1
            break
    largest = eigh_tridiagonal(diagonal[:used], side[: used - 1], eigvals_only=True)[-1]
    lower = float(np.sqrt(max(largest, 0.0)))
    root = np.log(1.648 * np.sqrt(m) / failure) / (2 * steps - 1)
    share = 0.0 if used < steps or steps == m else min(float(root) ** 2, 0.75)
    return NormBounds(lower, lower / float(np.sqrt(1.0 - share)) * (1.0 + 1e-12), False)


def nuclear_norm_of_product(left: FloatArray, right: FloatArray) -> float:
    """``||left @ right.T||_*`` from two thin QR factorisations."""
    if left.shape[1] == 0:
        return 0.0
    _, r_left = np.linalg.qr(left.astype(np.float64, copy=False))
    _, r_right = np.linalg.qr(right.astype(np.float64, copy=False))
    return float(np.linalg.svd(r_left @ r_right.T, compute_uv=False).sum())
