"""Gradient steps with exact line search as sums over shards (AMF, equations 19 to 21, as Map-Reduce).

Every function here is pure: it takes shards, the residual that each shard keeps, and the factors that all
shards are sent, and returns new ones. What shards return is added in their order. A half step needs two
reductions, of the gradient and then of one number, the curvature along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from unseen.linalg.blocked import inner
from unseen.sensing.fit import Fit
from unseen.typing import Array, FloatArray

__all__ = ["Step", "col_step", "objective", "residuals", "row_step", "split"]

Mapper = Any
"""``map`` or the like: applies a function to several sequences and keeps their order."""


class Step(NamedTuple):
    """A half step: the factor it leads to, the shards' new residuals, its length and what it gains."""

    factor: FloatArray
    residuals: list[FloatArray]
    length: float
    decrease: float


def split(fit: Fit, n_blocks: int) -> list[Fit]:
    """Cut a fit into shards that add up to it.

    Parameters
    ----------
    fit : Fit
        Misfit of one draw of measurements, or its mean.
    n_blocks : int
        Number of shards.

    Returns
    -------
    list of Fit
        Ranges of measurements; for the mean, ranges of rows.
    """
    return fit.split(n_blocks)


def residuals(
    shards: Sequence[Fit], left: FloatArray, right: FloatArray, *, mapper: Mapper = map
) -> list[FloatArray]:
    """What each shard keeps between steps.

    Parameters
    ----------
    shards : sequence of Fit
        Parts of a fit.
    left, right : array
        Factors U and V, sent to all shards.
    mapper : callable, default=map
        Applies a function to shards and keeps their order.

    Returns
    -------
    list of array
        One for each shard.
    """
    return list(mapper(lambda shard: shard.residual(left, right), shards))


def objective(
    shards: Sequence[Fit],
    kept: Sequence[FloatArray],
    left: FloatArray,
    right: FloatArray,
    reg: float,
    *,
    mapper: Mapper = map,
) -> float:
    """``||A(UV') - b||^2 + reg (||U||^2 + ||V||^2)``.

    Parameters
    ----------
    shards : sequence of Fit
        Parts of a fit.
    kept : sequence of array
        The residual of each shard.
    left, right : array
        Factors U and V, sent to all shards.
    reg : float
        Weight of the penalty.
    mapper : callable, default=map
        Applies a function to shards and keeps their order: ``map``, or that of an executor.

    Returns
    -------
    float
        Its value, in float64.
    """
    misfit = reduce(add, mapper(lambda shard, mine: shard.value(mine, left, right), shards, kept))
    return float(misfit) + reg * (inner(left, left) + inner(right, right))


def row_step(
    shards: Sequence[Fit],
    kept: Sequence[FloatArray],
    left: FloatArray,
    right: FloatArray,
    reg: float,
    *,
    mapper: Mapper = map,
) -> Step:
    """Move U along its gradient to the lowest point of that line.

    Parameters
    ----------
    shards : sequence of Fit
        Parts of a fit.
    kept : sequence of array
        The residual of each shard.
    left, right : array
        Factors U and V, sent to all shards.
    reg : float
        Weight of the penalty.
    mapper : callable, default=map
        Applies a function to shards and keeps their order: ``map``, or that of an executor.

    Returns
    -------
    Step
        The new U, the new residuals, the length of the step and what it gains.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Observations
    >>> from unseen.sensing import ExpectedFit, residuals, row_step, split
    >>> cells = Observations.from_dense([[1.0, np.nan], [np.nan, 2.0], [3.0, 1.0]])
    >>> left, right = np.ones((3, 1)), np.ones((2, 1))
    >>> fit = ExpectedFit(cells, (2.0, 1.0))
    >>> alone = row_step([fit], residuals([fit], left, right), left, right, 0.1)
    >>> shards = split(fit, 3)
    >>> together = row_step(shards, residuals(shards, left, right), left, right, 0.1)
    >>> bool(np.allclose(alone.factor, together.factor))
    True
    """
    pull = reduce(add, mapper(lambda shard, mine: shard.row_pull(mine, left, right), shards, kept))
    gradient = _gradient(pull, left, reg)
    changes = list(mapper(lambda shard: shard.change(gradient, right), shards))
    bends = mapper(lambda shard, change: shard.curvature(change, gradient, right), shards, changes)
    return _moved(left, gradient, reg, float(reduce(add, bends)), kept, changes)


def col_step(
    shards: Sequence[Fit],
    kept: Sequence[FloatArray],
    left: FloatArray,
    right: FloatArray,
    reg: float,
    *,
    mapper: Mapper = map,
) -> Step:
    """Move V along its gradient to the lowest point of that line.

    Parameters
    ----------
    shards : sequence of Fit
        Parts of a fit.
    kept : sequence of array
        The residual of each shard.
    left, right : array
        Factors U and V, sent to all shards.
    reg : float
        Weight of the penalty.
    mapper : callable, default=map
        Applies a function to shards and keeps their order: ``map``, or that of an executor.

    Returns
    -------
    Step
        The new V, the new residuals, the length of the step and what it gains.
    """
    pull = reduce(add, mapper(lambda shard, mine: shard.col_pull(mine, left, right), shards, kept))
    gradient = _gradient(pull, right, reg)
    changes = list(mapper(lambda shard: shard.change(left, gradient), shards))
    bends = mapper(lambda shard, change: shard.curvature(change, left, gradient), shards, changes)
    return _moved(right, gradient, reg, float(reduce(add, bends)), kept, changes)


def _gradient(pull: FloatArray, factor: FloatArray, reg: float) -> FloatArray:
    out: Array = 2.0 * (pull + reg * factor)
    return np.ascontiguousarray(out, dtype=factor.dtype)


def _moved(
    factor: FloatArray,
    gradient: FloatArray,
    reg: float,
    bend: float,
    kept: Sequence[FloatArray],
    changes: Sequence[FloatArray],
) -> Step:
    """Equation 21 with lambda = 1/reg taken out: length ||G||^2 / (2 (reg ||G||^2 + ||A(G V')||^2))."""
    square = inner(gradient, gradient)
    curvature = reg * square + bend
    length = 0.5 * square / curvature if curvature > 0.0 else 0.0
    moved = (factor - length * gradient).astype(factor.dtype, copy=False)
    after = [
        (mine - length * change).astype(mine.dtype, copy=False)
        for mine, change in zip(kept, changes, strict=True)
    ]
    return Step(moved, after, length, 0.5 * length * square)
