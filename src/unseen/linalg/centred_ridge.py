"""Ridge regression on sparse targets, with an intercept for each of them.

    min over W, b   1/2 ||Y - X W - 1 b'||_F^2 + reg/2 ||W||_F^2

Three ways by size: normal equations (d x d), their dual (n x n) when there are fewer rows than
features, conjugate gradients when both are large. Targets are read in blocks of columns, so
nothing of size rows x targets exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from scipy import linalg, sparse

from unseen.linalg.designs import as_design
from unseen.linalg.ridge import feature_gram
from unseen.typing import CSR, Array, Features, FloatArray

__all__ = ["Route", "choose_route", "column_cg", "ridge", "spd_solver"]

Route: TypeAlias = Literal["primal", "dual", "cg"]
FACTOR_LIMIT = 6000
"""Largest matrix that is factorised; above it conjugate gradients are quicker."""
BLOCK_CELLS = 1 << 23
"""Cells of the dense blocks of targets."""


def choose_route(n_rows: int, n_features: int) -> Route:
    """The cheapest way for a problem of this size."""
    if n_features <= min(n_rows, FACTOR_LIMIT):
        return "primal"
    if n_rows <= FACTOR_LIMIT:
        return "dual"
    return "cg"


def ridge(
    X: Features,
    Y: FloatArray | CSR,
    reg: float,
    *,
    intercept: bool = False,
    route: Route | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
    n_threads: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients of shape (n_features, n_targets) and intercepts of shape (n_targets,).

    ``tol`` and ``max_iter`` belong to the route "cg": relative residual and steps. Without
    ``intercept`` the intercepts are zero. Rows are centred on the fly, so a sparse ``X`` stays sparse.
    """
    n, d = X.shape
    n_targets = Y.shape[1]
    row_mean = np.zeros(d)
    target_mean = np.zeros(n_targets)
    if intercept:
        row_mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        target_mean = np.asarray(Y.mean(axis=0, dtype=np.float64)).ravel()
    route = choose_route(n, d) if route is None else route
    width = max(1, BLOCK_CELLS // max(n, d))
    solve = _solver(X, row_mean, float(reg), route, tol, max_iter, n_threads)
    columns = sparse.csc_array(Y) if sparse.issparse(Y) else np.asarray(Y)
    out: FloatArray = np.empty((d, n_targets), dtype=X.dtype)
    for start in range(0, n_targets, width):
        part = slice(start, start + width)
        block = cast(Any, columns[:, part])
        dense = np.asarray(block.toarray() if sparse.issparse(columns) else block, dtype=np.float64)
        out[:, part] = solve(dense - target_mean[part])
    offsets = target_mean - row_mean @ out
    return out, offsets.astype(X.dtype, copy=False)


def _solver(
    X: Features, mean: Array, reg: float, route: Route, tol: float, max_iter: int, n_threads: int
) -> Callable[[Array], Array]:
    """A function from a centred dense block of targets to its coefficients."""
    n = X.shape[0]
    design = as_design(X, n_threads)

    def forward(block: Array) -> Array:
        product: Array = design.dot(block) - mean @ block
        return product

    def backward(block: Array) -> Array:
        product: Array = design.tdot(block) - np.outer(mean, block.sum(axis=0))
        return product

    if route == "primal":
        matrix = feature_gram(X, n_threads=n_threads) - n * np.outer(mean, mean)
        solve = spd_solver(matrix, reg)
        return lambda block: solve(backward(block))
    if route == "dual":
        matrix = feature_gram(sparse.csr_array(X.T) if sparse.issparse(X) else X.T, n_threads=n_threads)
        cross = matrix.mean(axis=0) if mean.any() else np.zeros(n)
        # X - 1 mean' has the Gram matrix K less row means, less column means, plus the overall mean.
        matrix = matrix - cross[:, None] - cross[None, :] + cross.mean()
        solve = spd_solver(matrix, reg)
        return lambda block: backward(solve(block))

    def by_cg(block: Array) -> Array:
        right = backward(block)
        return column_cg(
            lambda p: backward(forward(p)), right, np.full(right.shape[1], reg), np.zeros_like(right),
            tol=tol, max_iter=max_iter,
        )[0]  # fmt: skip

    return by_cg


def spd_solver(matrix: Array, reg: float) -> Callable[[Array], Array]:
    """Solver of ``(matrix + reg I) x = b`` by Cholesky; least norm where that matrix is singular."""
    shifted = matrix + reg * np.eye(len(matrix))
    try:
        factor = linalg.cho_factor(shifted, lower=True, check_finite=False)
        pivots = np.abs(np.diag(factor[0]))
        if pivots.min() > 1e-7 * pivots.max():
            return lambda b: np.asarray(linalg.cho_solve(factor, b, check_finite=False))
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(shifted, check_finite=False)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    basis = vectors[:, kept]
    return lambda b: np.asarray(basis @ ((basis.T @ b).T / values[kept]).T)


def column_cg(
    operator: Callable[[Array], Array],
    right: Array,
    shifts: Array,
    start: Array,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Array, int]:
    """Solve ``operator(x_j) + shifts[j] x_j = right_j`` for all columns j at once.

    Every column has steps of its own and rests when its residual is below ``tol`` of its right
    side; the products are shared. Returns the solution and the steps done.
    """
    x = start.copy()
    residual = right - operator(x) - x * shifts
    direction = residual.copy()
    size = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
    goal = tol**2 * np.maximum(np.einsum("ij,ij->j", right, right, dtype=np.float64), 1e-300)
    steps = 0
    for steps in range(1, max_iter + 1):
        active = size > goal
        if not active.any():
            return x, steps - 1
        image = operator(direction) + direction * shifts
        curvature = np.einsum("ij,ij->j", direction, image, dtype=np.float64)
        length = np.where(active & (curvature > 0), size / np.where(curvature > 0, curvature, 1.0), 0.0)
        length = length.astype(x.dtype)
        x += direction * length
        residual -= image * length
        new = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
        turn = np.where(active, new / np.maximum(size, 1e-300), 0.0).astype(x.dtype)
        direction = residual + direction * turn
        size = np.where(active, new, size)
    return x, steps
