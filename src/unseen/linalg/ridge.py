"""Ridge regression on many targets at once: primal, dual or by conjugate gradients, as the size asks."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import linalg, sparse

from unseen.linalg.blocked import gram
from unseen.linalg.designs import as_design
from unseen.typing import Array, Features, FloatArray

__all__ = ["RidgeSystem", "feature_gram"]

DIRECT_SIZE = 4000
"""Largest side of a matrix that is factorised; 4000 x 4000 is 128 MB and some seconds."""

CELLS_AT_ONCE = 1 << 20
"""Of a dense block: 8 MB."""

Method = Literal["primal", "dual", "cg"]


def feature_gram(X: Features, *, n_threads: int = 1) -> FloatArray:
    """``X' X`` as a dense float64 matrix.

    Sparse rows are multiplied as such where they are short, else in dense blocks of rows.
    """
    if not sparse.issparse(X):
        return gram(np.asarray(X), n_threads=n_threads)
    csr = sparse.csr_array(X)
    counts = np.diff(csr.indptr).astype(np.float64)
    step = max(1, CELLS_AT_ONCE // max(csr.shape[1], 1))
    # A sparse multiply-add costs about as much as forty of a dense product.
    if 40.0 * float(counts @ counts) < float(csr.shape[0]) * float(csr.shape[1]) ** 2:
        wide = csr.astype(np.float64)
        by_feature = wide.T.tocsr()
        product: FloatArray = np.empty((csr.shape[1], csr.shape[1]))
        for start in range(0, csr.shape[1], step):
            product[start : start + step] = (by_feature[start : start + step] @ wide).toarray()
        return product
    total: Array = np.zeros((csr.shape[1], csr.shape[1]))
    for start in range(0, csr.shape[0], step):
        block = csr[start : start + step].toarray().astype(np.float64, copy=False)
        total += block.T @ block
    return total


class RidgeSystem:
    """Solves ``(scale X'X + reg I) V = X'T`` for the same X and many T.

    Parameters
    ----------
    X : array or csr_array of shape (n, d)
        Features.
    reg : float
        Ridge, > 0.
    scale : float, default=1.0
        Weight of ``X'X``.
    method : {"primal", "dual", "cg"}, optional
        A Cholesky factor of the d x d matrix, one of the n x n matrix of inner products of rows, or
        conjugate gradients on all targets together with a diagonal preconditioner. By default the
        smaller factor if it has at most 4000 rows, else conjugate gradients.
    tol : float, default=1e-6
        Conjugate gradients end when the residual of every target is below this share of its start.
    max_iter : int, default=300
        Limit of their steps.
    n_threads : int, default=1
        Threads.

    Attributes
    ----------
    method : str
        The one that is used.
    n_steps : int
        Steps of conjugate gradients in the last solution.

    Examples
    --------
    >>> import numpy as np
    >>> RidgeSystem(np.eye(2), reg=1.0).solve(np.array([[2.0], [4.0]]))
    array([[1.],
           [2.]])
    """

    def __init__(
        self,
        X: Features,
        reg: float,
        *,
        scale: float = 1.0,
        method: Method | None = None,
        tol: float = 1e-6,
        max_iter: int = 300,
        n_threads: int = 1,
    ) -> None:
        n, d = X.shape
        if method is None:
            method = "cg" if min(n, d) > DIRECT_SIZE else "dual" if n < d else "primal"
        self.method: Method = method
        self.reg, self.scale, self.tol, self.max_iter = float(reg), float(scale), tol, max_iter
        self.n_steps = 0
        self._design = as_design(X, n_threads)
        self._dtype = X.dtype
        if method == "cg":
            squares = X.multiply(X) if sparse.issparse(X) else np.square(X)
            norms = np.asarray(squares.sum(axis=0, dtype=np.float64)).ravel()
            self._diagonal = self.scale * norms + self.reg
        else:
            side: Features = X
            if method == "dual":
                side = sparse.csr_array(X.T) if sparse.issparse(X) else X.T
            inner = feature_gram(side, n_threads=n_threads)
            inner *= self.scale
            inner[np.diag_indices_from(inner)] += self.reg
            # Its own mirror image, to the last bit; LAPACK works in place on columns only.
            self._factor = linalg.cholesky(inner.T, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, targets: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Coefficients of shape (d, r) for targets of shape (n, r).

        Parameters
        ----------
        targets : array of shape (n, r)
            T.
        start : array of shape (d, r), optional
            Where conjugate gradients begin; zero by default. Without effect on the direct methods.

        Returns
        -------
        array of shape (d, r)
            In the type of the features.
        """
        targets = np.asarray(targets)
        if self.method == "dual":
            weights = self._cholesky(targets.astype(np.float64))
            return self._design.tdot(weights).astype(self._dtype, copy=False)
        wanted = self._design.tdot(targets)
        if self.method == "primal":
            return self._cholesky(wanted.astype(np.float64)).astype(self._dtype, copy=False)
        return self._conjugate_gradients(wanted, start).astype(self._dtype, copy=False)

    def predict(self, coefficients: FloatArray) -> FloatArray:
        """``X V``."""
        return self._design.dot(coefficients)

    def project(self, values: FloatArray) -> FloatArray:
        """``X' values``."""
        return self._design.tdot(values)

    def _cholesky(self, right: FloatArray) -> FloatArray:
        solution: FloatArray = linalg.cho_solve(
            (self._factor, True), right, overwrite_b=True, check_finite=False
        )
        return solution

    def _conjugate_gradients(self, wanted: FloatArray, start: FloatArray | None) -> FloatArray:
        """All columns in step, each with lengths of its own."""
        inverse = (1.0 / self._diagonal)[:, None].astype(wanted.dtype)
        solution = np.zeros_like(wanted) if start is None else start.astype(wanted.dtype)
        residual = wanted if start is None else wanted - self._apply(solution)
        direction = inverse * residual
        size = _column_inner(residual, direction)
        goal = self.tol**2 * _column_inner(wanted, inverse * wanted)
        self.n_steps = 0
        while self.n_steps < self.max_iter and bool(np.any(size > goal)):
            product = self._apply(direction)
            bend = _column_inner(direction, product)
            active = (bend > 0.0) & (size > goal)
            if not active.any():
                break
            length = np.where(active, size / np.where(bend > 0.0, bend, 1.0), 0.0).astype(wanted.dtype)
            solution = solution + length * direction
            residual = residual - length * product
            step = inverse * residual
            last, size = size, _column_inner(residual, step)
            ratio = np.where(active, size / np.where(last > 0.0, last, 1.0), 0.0).astype(wanted.dtype)
            direction = step + ratio * direction
            self.n_steps += 1
        return solution

    def _apply(self, coefficients: FloatArray) -> FloatArray:
        product = self._design.tdot(self._design.dot(coefficients))
        kind = product.dtype.type
        return kind(self.scale) * product + kind(self.reg) * coefficients


def _column_inner(left: FloatArray, right: FloatArray) -> Array:
    total: Array = np.einsum("ij,ij->j", left, right, dtype=np.float64, casting="same_kind")
    return total
