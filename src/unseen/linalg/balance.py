"""The factorisation of a product that a ridge on both factors likes best."""

from __future__ import annotations

import numpy as np

from unseen.exceptions import DivergedError
from unseen.linalg.blocked import gram, matmul
from unseen.typing import FloatArray

__all__ = ["balanced", "balancing"]


def balanced(
    left: FloatArray,
    right: FloatArray,
    *,
    scales: tuple[FloatArray | None, FloatArray | None] = (None, None),
    n_threads: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Factors with the same product and the smallest ``||left||_F^2 + ||right||_F^2``.

    With ``scales``, one number a row, the squared norms are weighted sums over the rows.

    With the singular value decomposition ``left @ right.T = U diag(s) V'`` these are
    ``U diag(s)^(1/2)`` and ``V diag(s)^(1/2)``; the sum of their squared norms is twice the nuclear
    norm. Alternating solvers shrink towards this point slowly; going there at once costs two
    Gram matrices and two products, and never raises an objective with a ridge on both factors.
    """
    weighted = [
        factor if scale is None else factor * scale.astype(factor.dtype, copy=False)
        for factor, scale in zip((left, right), scales, strict=True)
    ]
    grams = [gram(one, two, n_threads=n_threads) for one, two in zip(weighted, (left, right), strict=True)]
    rotations = balancing(*grams)
    return (
        matmul(left, rotations[0].astype(left.dtype, copy=False), n_threads=n_threads),
        matmul(right, rotations[1].astype(right.dtype, copy=False), n_threads=n_threads),
    )


def balancing(gram_left: FloatArray, gram_right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What to multiply two factors with to balance them, from their Gram matrices alone.

    The third array is the diagonal of both Gram matrices afterwards, which are diagonal then:
    the singular values of the product.
    """
    bases, roots = [], []
    for square in (gram_left, gram_right):
        if not np.isfinite(square).all():
            raise DivergedError(
                "the factors became NaN or infinite; try a larger reg, a smaller rank, or rescale the values "
                "and features"
            )
        values, vectors = np.linalg.eigh(square)
        kept = values > 1e-14 * max(float(values[-1]), np.finfo(float).tiny)
        root = np.sqrt(np.where(kept, values, 0.0))
        # factor = Q diag(root) vectors' with orthonormal Q = factor @ bases
        bases.append(vectors * np.divide(1.0, root, out=np.zeros_like(root), where=kept))
        roots.append(root[:, None] * vectors.T)
    u, s, vt = np.linalg.svd(roots[0] @ roots[1].T)
    strength = np.sqrt(s)
    return bases[0] @ (u * strength), bases[1] @ (vt.T * strength), s
