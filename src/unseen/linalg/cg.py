"""Conjugate gradients: one routine for one vector, or for many columns in step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unseen.typing import Array, FloatArray

__all__ = ["column_products", "conjugate_gradients"]


def column_products(left: FloatArray, right: FloatArray) -> Array:
    """Inner product of each column with its fellow, in float64."""
    products: Array = np.einsum("ij,ij->j", left, right, dtype=np.float64, casting="same_kind")
    return products


def conjugate_gradients(
    operator: Callable[[FloatArray], FloatArray],
    residual: FloatArray,
    *,
    start: FloatArray | None = None,
    goal: Any,
    max_iter: int,
    product: Callable[[FloatArray, FloatArray], Any] = column_products,
    preconditioner: FloatArray | None = None,
) -> tuple[FloatArray, int]:
    """Solve ``operator(x) = right`` for a symmetric positive semidefinite operator.

    Parameters
    ----------
    operator : callable
        The matrix, as its product with an array of the shape of ``residual``.
    residual : array
        ``right - operator(start)``.
    start : array, optional
        Where to begin; zero by default.
    goal : float, or one for each column
        A column rests when the squared length of its residual (in the preconditioner's norm) is not above it.
    max_iter : int
        Limit of steps.
    product : callable
        Inner product. By default that of each column: columns then have lengths of their own, and only
        share the products with the operator. ``unseen.linalg.blocked.inner`` takes all as one vector.
    preconditioner : array, optional
        Diagonal of an approximate inverse; it must broadcast with the residual.

    Returns
    -------
    array
        The solution; neither ``residual`` nor ``start`` is written to.
    int
        Steps done.

    Examples
    --------
    >>> import numpy as np
    >>> matrix, right = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[3.0], [4.0]])
    >>> conjugate_gradients(lambda x: matrix @ x, right, goal=1e-20, max_iter=10)[0].round(6).ravel()
    array([1., 1.])
    """
    x = np.zeros_like(residual) if start is None else start
    step = residual if preconditioner is None else preconditioner * residual
    direction = step
    size = product(residual, step)
    for taken in range(max_iter):
        active = size > goal
        if not np.any(active):
            return x, taken
        image = operator(direction)
        curvature = product(direction, image)
        active = active & (curvature > 0.0)
        if not np.any(active):  # flat to rounding: nothing more to gain
            return x, taken
        length = np.where(active, size / np.where(active, curvature, 1.0), 0.0).astype(x.dtype)
        x = x + length * direction
        residual = residual - length * image
        step = residual if preconditioner is None else preconditioner * residual
        last, size = size, product(residual, step)
        ratio = np.where(active, size / np.where(active, last, 1.0), 0.0).astype(x.dtype)
        direction = step + ratio * direction
    return x, max_iter
