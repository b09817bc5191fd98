"""Steps down a gradient: Armijo's rule, and L-BFGS as SciPy has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from unseen.linalg.blocked import inner
from unseen.typing import Array, FloatArray

__all__ = ["armijo", "first_length", "lbfgs", "squared_length"]

SUFFICIENT = 1e-4
"""Share of the decrease that the slope promises which a step must bring."""
HALVINGS = 40
FIRST_STEP = 0.1
"""Length of the first trial as a share of the length of the parameters."""


def squared_length(arrays: Iterable[FloatArray]) -> float:
    """Sum of all squares, in float64."""
    return float(sum(inner(array, array) for array in arrays))


def first_length(params: Iterable[FloatArray], square: float) -> float:
    """Factor of a gradient of squared length ``square`` for the first trial."""
    return FIRST_STEP * float(np.sqrt(max(squared_length(params), 1e-12) / square))


def armijo(
    value: float, square: float, trial: Callable[[float], float], length: float
) -> tuple[float | None, float, int]:
    """Halve a step along the negative gradient until it brings enough.

    Parameters
    ----------
    value : float
        Objective at the start.
    square : float
        Squared length of the gradient.
    trial : callable
        Objective after a step of the given length; NaN is never enough.
    length : float
        First trial.

    Returns
    -------
    float or None
        Length of the step; None if none will do.
    float
        What to try first the next time: twice the length if the first trial was good enough.
    int
        Trials.
    """
    for halvings in range(HALVINGS):
        if trial(length) <= value - SUFFICIENT * length * square:
            return length, 2.0 * length if halvings == 0 else length, halvings + 1
        length *= 0.5
    return None, length, HALVINGS


def lbfgs(
    value_and_grad: Callable[[Array], tuple[float, Array]],
    start: Array,
    max_iter: int,
    *,
    after_step: Callable[[Array, float], bool] | None = None,
    bounds: tuple[FloatArray, FloatArray] | None = None,
    **options: Any,
) -> Any:
    """SciPy's result of L-BFGS, which ends where no step leads down or ``after_step`` says so.

    ``after_step`` gets the point and the objective after each step.
    """
    from scipy.optimize import Bounds, minimize  # many modules that other solvers do without

    def callback(intermediate_result: Any) -> None:
        assert after_step is not None
        if after_step(intermediate_result.x, float(intermediate_result.fun)):
            raise StopIteration

    return cast(Any, minimize)(  # the stubs do not know of callable objects
        value_and_grad,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=None if bounds is None else Bounds(*bounds),
        callback=None if after_step is None else callback,
        options={"maxiter": max_iter, "ftol": 0.0, "gtol": 0.0, **options},
    )
