"""Ridge regression on many targets at once: primal, dual or by conjugate gradients, as the size asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
from scipy import linalg, sparse

from unseen.linalg.blocked import in_blocks
from unseen.linalg.cg import column_products, conjugate_gradients
from unseen.linalg.designs import as_design
from unseen.typing import CSR, Array, Features, FloatArray

__all__ = ["RidgeSystem", "feature_gram", "ridge", "spd_solver"]

DIRECT_SIZE = 4000
"""Largest side of a matrix that is factorised; 4000 x 4000 is 128 MB and some seconds."""

CELLS_AT_ONCE = 1 << 20
"""Of a dense block: 8 MB."""

TARGET_CELLS = 1 << 23
"""Of a dense block of targets."""

Method = Literal["primal", "dual", "cg"]


def feature_gram(X: Features, *, n_threads: int = 1) -> FloatArray:
    """``X' X`` as a dense float64 matrix.

    Multiplied in float64, too: of features far from zero, float32 keeps little that tells rows apart.
    Sparse rows are multiplied as such where they are short, else in dense blocks of rows.
    """
    if not sparse.issparse(X):
        dense = np.asarray(X)
        step = max(1, CELLS_AT_ONCE // max(dense.shape[1], 1))

        def task(rows: slice) -> Array:
            wide = dense[rows].astype(np.float64, copy=False)
            return wide.T @ wide

        squares: Array = np.zeros((dense.shape[1], dense.shape[1]))
        for part in in_blocks(task, len(dense), n_threads, block_rows=step):
            squares += part
        return squares
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


def spd_solver(matrix: Array, reg: float) -> Callable[[Array], Array]:
    """Solver of ``(matrix + reg I) x = b`` by Cholesky; least norm where that matrix is singular."""
    return _factorised(lambda: matrix + reg * np.eye(len(matrix)))


def _factorised(make: Callable[[], Array]) -> Callable[[Array], Array]:
    """Solver for the matrix that ``make`` makes; it is made again in the rare case that Cholesky fails."""
    try:
        # Its own mirror image, to the last bit; LAPACK works in place on columns only.
        factor = linalg.cholesky(make().T, lower=True, overwrite_a=True, check_finite=False)
        pivots = np.diag(factor)
        if pivots.min() > 1e-7 * pivots.max():
            return lambda b: np.asarray(linalg.cho_solve((factor, True), b, check_finite=False))
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(make(), overwrite_a=True, check_finite=False)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    basis = vectors[:, kept]
    return lambda b: np.asarray(basis @ ((basis.T @ b).T / values[kept]).T)


class RidgeSystem:
    """Solves ``(scale X'X + reg I) V = X'T`` for the same X and many T.

    Parameters
    ----------
    X : array or csr_array of shape (n, d)
        Features.
    reg : float
        Ridge, >= 0; without one the direct methods give the solution of least norm.
    scale : float, default=1.0
        Weight of ``X'X``.
    constant : array of shape (n,), optional
        What is taken out of every column of X, on the fly: a sparse X stays sparse. Ones centre it; the
        roots of weights do where these multiply the rows of X.
    method : {"primal", "dual", "cg"}, optional
        A Cholesky factor of the d x d matrix, one of the n x n matrix of inner products of rows, or
        conjugate gradients on all targets together with a diagonal preconditioner. By default the
        smaller factor if it has at most `limit` rows, else conjugate gradients.
    limit : int, optional
        Largest matrix to factorise, by default 4000. A factor that serves many targets is worth more.
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
    mean : array of shape (d,)
        How much of the constant is subtracted from the columns of X.
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
        constant: FloatArray | None = None,
        method: Method | None = None,
        limit: int | None = None,
        tol: float = 1e-6,
        max_iter: int = 300,
        n_threads: int = 1,
    ) -> None:
        n, d = X.shape
        if method is None:
            too_large = min(n, d) > (DIRECT_SIZE if limit is None else limit)
            method = "cg" if too_large else "dual" if n < d else "primal"
        self.method: Method = method
        self.reg, self.scale, self.tol, self.max_iter = float(reg), float(scale), tol, max_iter
        self.n_steps = 0
        self.constant = constant
        self._design = as_design(X, n_threads)
        self.mean: Array = np.zeros(d)
        if constant is not None:
            self._total = float(constant @ constant)
            self.mean = np.asarray(constant @ X, dtype=np.float64).ravel() / self._total
        self._dtype = X.dtype
        if method == "cg":
            squares = X.multiply(X) if sparse.issparse(X) else np.square(X)
            norms = np.asarray(squares.sum(axis=0, dtype=np.float64)).ravel()
            if constant is not None:
                norms -= self._total * self.mean**2
            diagonal = self.scale * norms + self.reg
            # A feature without variance and without a penalty has nothing to be scaled by.
            self._inverse = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
        else:
            self._direct = _factorised(lambda: self._matrix(X, n_threads))

    def _matrix(self, X: Features, n_threads: int) -> Array:
        """``scale X'X + reg I``, or its dual."""
        if self.method == "primal":
            inner = feature_gram(X, n_threads=n_threads)
            if self.constant is not None:
                inner -= self._total * np.outer(self.mean, self.mean)
        else:
            inner = feature_gram(sparse.csr_array(X.T) if sparse.issparse(X) else X.T, n_threads=n_threads)
            if (r := self.constant) is not None:
                # X - r mean' has the Gram matrix K - r c' - c r' + r r' (mean'mean), with c = X mean.
                cross = inner @ r / self._total
                inner -= np.outer(cross, r)
                inner -= np.outer(r, cross)
                inner += (cross @ r / self._total) * np.outer(r, r)
        inner *= self.scale
        inner[np.diag_indices_from(inner)] += self.reg
        return inner

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
            weights = self._direct(targets.astype(np.float64))
            return self.project(weights).astype(self._dtype, copy=False)
        wanted = self.project(targets)
        if self.method == "primal":
            return self._direct(wanted.astype(np.float64)).astype(self._dtype, copy=False)
        inverse = self._inverse[:, None].astype(wanted.dtype)
        start = None if start is None else start.astype(wanted.dtype, copy=False)
        solution, self.n_steps = conjugate_gradients(
            self._apply,
            wanted if start is None else wanted - self._apply(start),
            start=start,
            goal=self.tol**2 * column_products(wanted, inverse * wanted),
            max_iter=self.max_iter,
            preconditioner=inverse,
        )
        return solution.astype(self._dtype, copy=False)

    def predict(self, coefficients: FloatArray) -> FloatArray:
        """``X V``, X without the constant."""
        product = self._design.dot(coefficients)
        if self.constant is not None:
            product = product - np.outer(self.constant, self.mean @ coefficients).astype(product.dtype)
        return product

    def project(self, values: FloatArray) -> FloatArray:
        """``X' values``, X without the constant."""
        product = self._design.tdot(values)
        if self.constant is not None:
            product = product - np.outer(self.mean, self.constant @ values).astype(product.dtype)
        return product

    def _apply(self, coefficients: FloatArray) -> FloatArray:
        product = self.project(self.predict(coefficients))
        kind = product.dtype.type
        return kind(self.scale) * product + kind(self.reg) * coefficients


def ridge(
    X: Features,
    Y: FloatArray | CSR,
    reg: float,
    *,
    intercept: bool = False,
    weights: FloatArray | None = None,
    **settings: Any,
) -> tuple[FloatArray, FloatArray]:
    """Least ``1/2 ||S (Y - X W - 1 b')||_F^2 + reg/2 ||W||_F^2`` for sparse targets.

    S has the roots of the weights of the rows, ones by default. Targets are read in blocks of columns, so
    nothing of size rows x targets exists. ``settings`` are those of :class:`RidgeSystem`.

    Returns
    -------
    W : array of shape (n_features, n_targets)
        Coefficients.
    b : array of shape (n_targets,)
        Intercepts, not penalised; zero without ``intercept``.
    """
    n, d = X.shape
    n_targets = Y.shape[1]
    roots: Array = np.ones(n) if weights is None else np.sqrt(weights, dtype=np.float64)
    if weights is not None:
        by_row = roots[:, None].astype(X.dtype)
        X = sparse.csr_array(X.multiply(by_row)) if sparse.issparse(X) else X * by_row
    system = RidgeSystem(X, reg, constant=roots if intercept else None, **settings)
    target_mean: Array = np.zeros(n_targets)
    if intercept:
        target_mean = np.asarray(np.square(roots) @ Y, dtype=np.float64).ravel() / float(roots @ roots)
    columns = sparse.csc_array(Y) if sparse.issparse(Y) else np.asarray(Y)
    out: FloatArray = np.empty((d, n_targets), dtype=X.dtype)
    width = max(1, TARGET_CELLS // max(n, d))
    for start in range(0, n_targets, width):
        part = slice(start, start + width)
        block = cast(Any, columns[:, part])
        dense = np.asarray(block.toarray() if sparse.issparse(columns) else block, dtype=np.float64)
        out[:, part] = system.solve(roots[:, None] * (dense - target_mean[part]))
    offsets: FloatArray = target_mean - system.mean @ out
    return out, offsets.astype(X.dtype, copy=False)
