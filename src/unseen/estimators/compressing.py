"""The mean over samples with fewer factors: a truncated singular value decomposition that is never formed."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from unseen.linalg.blocked import gram, inner, matmul
from unseen.linalg.svt import thresholded_svd
from unseen.typing import FloatArray

if TYPE_CHECKING:
    from unseen.estimators.averaged import AveragedCompleter

__all__ = ["compress"]

TOL = 1e-4
"""Residual of the singular vectors, relative to the largest value."""


class _Product:
    """``left @ right.T`` through its products."""

    def __init__(self, left: FloatArray, right: FloatArray, n_threads: int) -> None:
        self.left, self.right, self.n_threads = left, right, n_threads
        self.shape = (len(left), len(right))

    def dot(self, vectors: FloatArray) -> FloatArray:
        """Product with a block of vectors."""
        return matmul(self.left, self.right.T @ vectors, n_threads=self.n_threads)

    def tdot(self, vectors: FloatArray) -> FloatArray:
        """Product of the transpose with a block of vectors."""
        return matmul(self.right, self.left.T @ vectors, n_threads=self.n_threads)

    def toarray(self) -> FloatArray:
        """The matrix in full."""
        return matmul(self.left, self.right.T, n_threads=self.n_threads)


def compress(model: AveragedCompleter, rank: int) -> AveragedCompleter:
    """A copy of the model with so many factors, without the samples."""
    total, n_threads = sum(model.widths_), model._n_threads()
    left, right = (
        np.ascontiguousarray(factors[:, :total]) for factors in (model.row_factors_, model.col_factors_)
    )
    product = _Product(left, right, n_threads)
    rng = np.random.default_rng(0)  # where the iteration begins; its end does not depend on it
    found = thresholded_svd(product, 0.0, rng=rng, tol=TOL, max_rank=rank, dense=False)
    roots = np.sqrt(found.s)
    twin = copy(model)
    twin.row_factors_, twin.col_factors_ = (
        np.ascontiguousarray(np.hstack([vectors * roots, factors[:, total:]]), dtype=factors.dtype)
        for vectors, factors in ((found.u, model.row_factors_), (found.v, model.col_factors_))
    )
    twin.widths_ = [len(roots)]
    twin.solver_ = clone(model.solver_)
    twin.solver_.posterior_ = None
    whole = inner(gram(left, n_threads=n_threads), gram(right, n_threads=n_threads))
    lost = max(whole - float(np.sum(found.s.astype(np.float64) ** 2)), 0.0)
    twin.compression_ = {
        "rank": len(roots),
        "rms_change": float(np.sqrt(lost / (len(left) * len(right)))),
        "share_kept": 1.0 - lost / whole if whole > 0 else 1.0,
    }
    return twin
