"""Single rows under bounds or an L1 penalty, columns held fixed."""

from __future__ import annotations

import numpy as np

from unseen.data import Observations
from unseen.linalg.blocked import gram
from unseen.regularisers import Separable
from unseen.typing import Array, FloatArray

__all__ = ["solve_bounded_rows"]


def solve_bounded_rows(
    cells: Observations,
    curvature: float | FloatArray,
    linear: float | FloatArray,
    other: FloatArray,
    rule: Separable,
    *,
    blank: tuple[float, float],
    extra_offset: FloatArray | None = None,
    tol: float = 1e-10,
    max_sweeps: int = 1000,
) -> FloatArray:
    """Row factors that minimise the objective of each row by coordinate descent.

    The systems are those of :func:`unseen.solvers.als.solve_side`. Every coordinate goes to its exact
    minimiser, for all rows at once; rows do not touch each other, so a row's result does not
    depend on which others are asked for.
    """
    n_rows, k = cells.shape[0], other.shape[1]
    rows, picked = cells.rows, cells.indices
    right: Array = other.astype(np.float64)
    weight, target = blank
    background = weight * gram(right)
    offset = weight * target * right.sum(axis=0) + (0.0 if extra_offset is None else extra_offset)
    offset = np.broadcast_to(offset, (n_rows, k))
    bend = np.empty((n_rows, k))
    for t in range(k):
        sums = np.bincount(rows, curvature * right[picked, t] ** 2, minlength=n_rows)
        bend[:, t] = sums + background[t, t]
    out = np.full((n_rows, k), float(np.clip(0.0, rule.lower, rule.upper)))
    scores = np.einsum("ij,ij->i", out[rows], right[picked]) if out.any() else np.zeros(cells.nnz)
    for _ in range(max_sweeps):
        largest = 0.0
        for t in range(k):
            q = right[picked, t]
            pull = np.bincount(rows, (linear - curvature * scores) * q, minlength=n_rows) + (
                offset[:, t] - out @ background[:, t] + bend[:, t] * out[:, t]
            )
            shrunk = np.sign(pull) * np.maximum(np.abs(pull) - rule.l1, 0.0)
            size = bend[:, t] + rule.ridge
            moved = np.divide(shrunk, size, out=out[:, t].copy(), where=size > 0)
            change = np.clip(moved, rule.lower, rule.upper) - out[:, t]
            out[:, t] += change
            scores += change[rows] * q
            largest = max(largest, float(np.abs(change).max(initial=0.0)))
        if largest <= tol * max(1.0, float(np.abs(out).max(initial=0.0))):
            break
    return out.astype(other.dtype)
