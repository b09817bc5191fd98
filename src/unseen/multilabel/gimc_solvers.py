"""Two ways to move a map's parameters, each yielding the model after every outer step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from unseen.exceptions import DivergedError
from unseen.linalg.blocked import inner
from unseen.maps.base import MapParams
from unseen.multilabel.gimc_arrays import LabelRows, Weights
from unseen.typing import Array

__all__ = ["Iterate", "armijo", "lbfgs"]

SUFFICIENT = 1e-4
HALVINGS = 40
FIRST_MOVE = 0.1
"""Length of the first step, as a share of the length of the parameters."""


@dataclass
class Iterate:
    """A model after an outer step.

    Attributes
    ----------
    params : dict
        Parameters of the map.
    weights : Weights
        The best ones for these parameters.
    objective : float
        f of both.
    trials : int
        Passes over the rows that the step took.
    """

    params: MapParams
    weights: Weights
    objective: float
    trials: int


def armijo(problem: LabelRows, learned: tuple[str, ...]) -> Iterator[Iterate]:
    """Alternate the ridge step with one gradient step by Armijo's rule (GIMC, algorithm 1).

    The weights rest during the search, so a trial costs one pass over the rows and no product with
    the features. Ends when no step along the gradient lowers the objective.
    """
    rows = problem.rows
    moments = problem.moments()
    weights = problem.best_weights(moments)
    objective = _finite(problem.reduced_value(moments, weights), 0)
    yield Iterate(rows.params, weights, objective, 1)
    step, count = 0.0, 0
    while True:
        count += 1
        gradient = problem.gradient(weights)
        slope = sum((inner(part, part) for part in gradient.values()), 0.0)
        if slope == 0.0:
            return
        length = sum((inner(rows.params[name], rows.params[name]) for name in learned), 0.0) ** 0.5
        step = step or FIRST_MOVE * max(length, 1e-3) / slope**0.5
        rows.aim({name: -part for name, part in gradient.items()})
        before = problem.value(moments, weights)
        trials = 0
        while trials < HALVINGS:
            trials += 1
            moments = problem.moments(step)
            enough = before - SUFFICIENT * step * slope
            if problem.value(moments, weights) <= enough:  # never true for NaN
                break
            step /= 2
        else:
            return
        rows.advance(step)
        if trials == 1:
            step *= 2
        weights = problem.best_weights(moments)
        objective = _finite(problem.reduced_value(moments, weights), count)
        yield Iterate(rows.params, weights, objective, trials)


class _Reduced:
    """The reduced objective of a vector, min over W of f(U, W), and the last model it was asked for."""

    def __init__(self, problem: LabelRows, learned: tuple[str, ...]) -> None:
        self.problem = problem
        params = problem.rows.params
        self.start = {name: params[name] for name in learned}
        self.fixed = {name: value for name, value in params.items() if name not in learned}
        length = float(np.sqrt(sum(inner(part, part) for part in self.start.values())))
        self.unit = FIRST_MOVE * max(length, 1e-3)  # scipy's first step has length one
        self.trials = 0
        self.last: Iterate | None = None
        self._known: tuple[Array, float, Array] | None = None

    def vector(self) -> Array:
        return np.concatenate([part.ravel().astype(np.float64) for part in self.start.values()]) / self.unit

    def __call__(self, vector: Array) -> tuple[float, Array]:
        if self._known is not None and np.array_equal(self._known[0], vector):
            return self._known[1:]
        self.trials += 1
        self.problem.rows.move_to(self._unpack(vector))
        moments = self.problem.moments()
        weights = self.problem.best_weights(moments)
        objective = _finite(self.problem.reduced_value(moments, weights), self.trials)
        self.last = Iterate(self.problem.rows.params, weights, objective, self.trials)
        gradient = self.problem.gradient(weights)
        flat = np.concatenate([gradient[name].ravel().astype(np.float64) for name in self.start])
        self._known = (vector.copy(), objective, flat * self.unit)
        return self._known[1:]

    def _unpack(self, vector: Array) -> MapParams:
        out, place = dict(self.fixed), 0
        for name, part in self.start.items():
            chunk = vector[place : place + part.size] * self.unit
            out[name] = np.ascontiguousarray(chunk.reshape(part.shape), dtype=part.dtype)
            place += part.size
        return out


def lbfgs(
    problem: LabelRows, learned: tuple[str, ...], max_iter: int, judge: Callable[[Iterate], bool]
) -> bool:
    """L-BFGS on the reduced objective, min over W of f(U, W).

    Its gradient is that of f at the best weights. ``judge`` sees the start and every accepted iterate,
    and says whether to go on. Returns whether the search ended by itself.
    """
    reduced = _Reduced(problem, learned)
    start = reduced.vector()
    reduced(start)
    assert reduced.last is not None
    if not judge(reduced.last):
        return False
    reduced.trials = 0
    stopped = False

    def after_step(vector: Array) -> None:
        nonlocal stopped
        assert reduced.last is not None
        reduced.last.trials, reduced.trials = reduced.trials, 0
        if not judge(reduced.last):
            stopped = True
            raise StopIteration

    from scipy.optimize import minimize  # many modules that other methods do without

    search = cast(Any, minimize)  # the stubs do not know of callable objects
    found = search(
        reduced,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=after_step,
        options={"maxiter": max_iter, "maxfun": 4 * max_iter + 20, "ftol": 0.0, "gtol": 1e-12},
    )
    return not stopped and int(found.status) != 1


def _finite(value: float, step: int) -> float:
    if not np.isfinite(value):
        raise DivergedError(f"the objective became {value} in step {step}; are the features scaled?")
    return value
