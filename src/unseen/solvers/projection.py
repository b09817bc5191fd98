"""Learned maps with the coefficients eliminated (variable projection; GIMC section on labels).

Where every cell weighs the same and columns have coefficients of their own,

    f(U, W) = w/2 ||T - Phi W||_F^2 + reg/2 ||W||_F^2          (GIMC eq. 12)

with the design Phi of the rows and a sparse T. With G = Phi'Phi (p x p), C = w T'Phi (columns x p) and
K = W W' the value at any W is

    w/2 ||T||^2 - <C, W'> + w/2 <G, K> + reg/2 ||W||^2

so one pass over the rows, which makes G and C, serves the exact step for W and every trial of a line search.
The derivative by the design is w Phi K - w T W'. Sums over rows are made in blocks, in float64, and no more
of Phi than ``max_tile_bytes`` exists at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unseen import kernels
from unseen.cores import Full
from unseen.exceptions import DivergedError, UnsupportedComposition
from unseen.linalg.blocked import gram, in_blocks, inner
from unseen.linalg.ridge import spd_solver
from unseen.maps import Identity
from unseen.maps.base import MapParams
from unseen.maps.rows import BLOCK_ROWS, moving_rows
from unseen.problem import Problem
from unseen.solvers.base import Monitor, Solver, Sweep
from unseen.solvers.descent import FIRST_STEP, armijo, first_length, lbfgs, squared_length
from unseen.solvers.rules import ridge_of, why_not_uniform
from unseen.state import State, map_params, pack, unpack
from unseen.typing import Array, FloatArray
from unseen.validation import check_choice, check_count

__all__ = ["Moments", "NormalEquations", "VariableProjection", "Weights"]

STEEP = 0.05
"""Share of the objective that a first step promises, where the end of a search is no minimum."""


@dataclass
class Moments:
    """What the rows say about the coefficients: ``gram`` = G (float64), ``cross`` = C."""

    gram: Array
    cross: FloatArray


@dataclass
class Weights:
    """Coefficients of the columns: ``factors`` = W' (columns x p), ``gram`` = K = W W', both float64."""

    factors: Array
    gram: Array


class NormalEquations:
    """A problem seen through its normal equations, with designs made for some rows at a time.

    Parameters
    ----------
    problem : Problem
        Full cores between maps of the rows, of which the first may move, and Identity columns.
    state : dict
        Where the params of the maps are.
    max_tile_bytes : int
        Part of the design that exists at a time. Where all of it fits, the gradient uses that of the last
        pass.
    """

    def __init__(self, problem: Problem, state: State, max_tile_bytes: int = 2**28) -> None:
        self.problem, self.n_threads = problem, problem.n_threads
        self.term, *others = problem.terms
        features = problem.features["row"]
        assert features is not None
        params = map_params(state, self.term.place, "row")
        self.rows = moving_rows(features, self.term.row_map, params, self.n_threads)
        self._maps = {key: value for key, value in state.items() if "_map." in key}
        self._fixed = [
            problem.designs(term, state)[0].toarray().astype(self.rows.dtype, copy=False) for term in others
        ]
        self.widths = [self.rows.width, *(design.shape[1] for design in self._fixed)]
        self.weight = problem.blank.weight
        self.reg = ridge_of(problem, self.term.key("core"))
        self.constant = problem.cell_loss.normal_constant()
        self._target = _values(problem)
        dtype, n = self.rows.dtype, self.rows.n_rows
        fitting = max_tile_bytes // (sum(self.widths) * dtype.itemsize)
        self.tile_rows = min(max(BLOCK_ROWS, fitting // BLOCK_ROWS * BLOCK_ROWS), n)
        self.keeps_all = self.tile_rows == n
        self._phi: FloatArray = np.empty((self.tile_rows, sum(self.widths)), dtype=dtype)

    # -- passes over the rows ----------------------------------------------------------

    def moments(self, step: float = 0.0) -> Moments:
        """G and C, ``step`` along the direction that the map aims at."""
        width, n_columns = sum(self.widths), self.problem.observations.shape[1]
        total: Array = np.zeros((width, width))
        cross: FloatArray | None = None
        for start, phi in self._tiles():

            def task(part: slice, start: int = start, phi: FloatArray = phi) -> Array:
                block = phi[part]
                self._fill(slice(start + part.start, start + part.start + len(block)), step, block)
                # Wide kernels make features that are almost alike; what tells them apart is lost in float32.
                wide = block.astype(np.float64, copy=False)
                return wide.T @ wide

            for product in in_blocks(task, len(phi), self.n_threads, block_rows=BLOCK_ROWS):
                total += product
            part = kernels.spmm_t(
                *self._cells(start, start + len(phi)), phi, n_columns, n_threads=self.n_threads
            )
            cross = part if cross is None else np.add(cross, part, out=cross)
        assert cross is not None
        return Moments(total, cross)

    def gradient(self, weights: Weights) -> MapParams:
        """Gradient of the map's params at the current point.

        If the whole design fits, that of the last :meth:`moments` is taken as the current one.
        """
        dtype, width = self.rows.dtype, self.rows.width
        factors = weights.factors.astype(dtype, copy=False)[:, :width]
        factors = np.ascontiguousarray(factors)
        small = (self.weight * weights.gram[:, :width]).astype(dtype, copy=False)
        for start, phi in self._tiles():

            def task(part: slice, start: int = start, phi: FloatArray = phi) -> None:
                block = phi[part]
                here = slice(start + part.start, start + part.start + len(block))
                if not self.keeps_all:
                    self._fill(here, 0.0, block)
                slope = block @ small
                slope -= kernels.spmm(*self._cells(here.start, here.stop), factors)
                self.rows.take_slope(here, block[:, :width], slope)

            for _ in in_blocks(task, len(phi), self.n_threads, block_rows=BLOCK_ROWS):
                pass
        return self.rows.pulled()

    def _tiles(self) -> Iterator[tuple[int, FloatArray]]:
        for start in range(0, self.rows.n_rows, self.tile_rows):
            yield start, self._phi[: min(self.tile_rows, self.rows.n_rows - start)]

    def _fill(self, here: slice, step: float, out: FloatArray) -> None:
        end = self.rows.width
        self.rows.fill(here, step, out[:, :end])
        for design, width in zip(self._fixed, self.widths[1:], strict=True):
            out[:, end : end + width] = design[here]
            end += width

    def _cells(self, start: int, stop: int) -> tuple[Array, Array, float | FloatArray]:
        cells = self.problem.observations
        first, last = cells.indptr[start], cells.indptr[stop]
        target = self._target if np.ndim(self._target) == 0 else np.asarray(self._target)[first:last]
        return cells.indptr[start : stop + 1] - first, cells.indices[first:last], target

    # -- coefficients ------------------------------------------------------------------

    def best(self, moments: Moments) -> Weights:
        """The exact step: W = (w G + reg I)^-1 C', in float64."""
        solve = spd_solver(self.weight * moments.gram, self.reg)
        factors: Array = np.empty(moments.cross.shape)

        def task(columns: slice) -> None:
            factors[columns] = solve(moments.cross[columns].T.astype(np.float64)).T

        for _ in in_blocks(task, len(factors), self.n_threads, block_rows=256):
            pass
        factors.setflags(write=False)  # so that whoever keeps a state need not copy them
        return Weights(factors, gram(factors, n_threads=self.n_threads, block_rows=BLOCK_ROWS))

    def value(self, moments: Moments, weights: Weights) -> float:
        """The objective at any coefficients."""
        data = self.constant - inner(moments.cross, weights.factors)
        data += 0.5 * self.weight * inner(moments.gram, weights.gram)
        return data + 0.5 * self.reg * float(np.trace(weights.gram))

    def reduced_value(self, moments: Moments, weights: Weights) -> float:
        """The objective at the best coefficients, which needs less."""
        return self.constant - 0.5 * inner(moments.cross, weights.factors)

    def state(self, weights: Weights) -> State:
        """Params of the map and coefficients as a state of the problem."""
        moved = {self.term.key(f"row_map.{name}"): value for name, value in self.rows.params.items()}
        out = {**self._maps, **moved}
        end = 0
        for term, width in zip(self.problem.terms, self.widths, strict=True):
            out[term.key("core")] = weights.factors[:, end : end + width].T
            end += width
        return out


def _values(problem: Problem) -> float | FloatArray:
    """Weight times target of the stored cells; one number for a 0/1 matrix."""
    _, linear = problem.cell_loss.normal_terms()
    if np.ndim(linear) == 0:
        return float(linear)
    values = np.asarray(linear)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    return low if low == high else values.astype(problem.observations.dtype, copy=False)


class VariableProjection(Solver):
    """Moves a learned map of the rows, with coefficients that are exact at every step.

    For full cores between maps of the rows and Identity columns with one ridge, where all cells weigh the
    same: the composition of :class:`~unseen.GIMCClassifier`. The map that moves belongs to the first term;
    further terms, such as one with a :class:`Constant` for an intercept, have fixed maps.

    Parameters
    ----------
    max_iter : int, default=50
        Limit of steps of the map.
    tol : float, default=1e-5
        Stop when a step lowers the objective by less than this share.
    step : {"lbfgs", "armijo", "none"}, default="lbfgs"
        L-BFGS on the objective with the coefficients eliminated; the alternation of GIMC's algorithm 1, whose
        line search holds them still; or the coefficients alone.
    max_tile_bytes : int, default=2**28
        Part of the design that exists at a time; with less than all, it is computed twice a step.
    """

    def __init__(
        self, max_iter: int = 50, tol: float = 1e-5, step: str = "lbfgs", max_tile_bytes: int = 2**28
    ) -> None:
        super().__init__(max_iter, tol)
        self.step = step
        self.max_tile_bytes = max_tile_bytes

    def refuses(self, problem: Problem) -> str | None:
        first, *others = problem.terms
        if any(not isinstance(t.core, Full) or type(t.col_map) is not Identity for t in problem.terms):
            return "it needs Full cores with Identity columns; use GoalDirected"
        if any(term.row_map.learned for term in others):
            return "only the map of the first term can move; use GoalDirected"
        if not first.row_map.needs_features:
            return "the first term has no features; use AlternatingCG"
        reason = why_not_uniform(problem)
        if reason is None and len({ridge_of(problem, term.key("core")) for term in problem.terms}) > 1:
            return "all terms must have the same penalty; use GoalDirected"
        return reason

    def solve(self, problem: Problem, state: State, rng: np.random.Generator, monitor: Monitor) -> State:
        reason = self.refuses(problem)
        if reason is not None:
            raise UnsupportedComposition(f"{type(self).__name__} cannot solve this composition: {reason}")
        step = check_choice("step", self.step, ("lbfgs", "armijo", "none"))
        system = NormalEquations(problem, state, check_count("max_tile_bytes", self.max_tile_bytes))
        moments = system.moments()
        weights = system.best(moments)
        reached = Sweep(system.state(weights), system.reduced_value(moments, weights), {"trials": 1})
        monitor.start(reached.objective, reached)
        if step == "none" or not system.term.row_map.learned:
            monitor.converged = True
        elif step == "armijo":
            steps = _alternated(system, moments, weights)
            del moments, weights  # the next ones take their place
            for reached in steps:
                if monitor.record(reached):
                    break
            else:  # no step along the gradient leads down any more
                monitor.converged = True
        else:
            reduced = _Reduced(system, weights, reached)
            del moments, weights, reached
            reached = reduced.minimised(monitor)
        monitor.close()
        return reached.state if monitor.best_state is None else monitor.best_state

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        raise UnsupportedComposition("VariableProjection runs as a whole; call solve")


def _alternated(system: NormalEquations, moments: Moments, weights: Weights) -> Iterator[Sweep]:
    """Exact coefficients and one gradient step by Armijo's rule, in turn (GIMC, algorithm 1).

    The coefficients rest during the search, so a trial costs one pass over the rows and no product with
    the features. Ends when no step along the gradient lowers the objective.
    """
    rows, length = system.rows, None

    def trial(step: float) -> float:
        nonlocal moments
        moments = system.moments(step)
        return system.value(moments, weights)

    while True:
        gradient = system.gradient(weights)
        square = squared_length(gradient.values())
        if square == 0.0:
            return
        if length is None:
            length = first_length((rows.params[name] for name in gradient), square)
        rows.aim({name: -part for name, part in gradient.items()})
        step, length, trials = armijo(system.value(moments, weights), square, trial, length)
        if step is None:
            return
        rows.advance(step)
        weights = system.best(moments)
        yield Sweep(system.state(weights), system.reduced_value(moments, weights), {"trials": trials})


def _is_steep(gradient: Array, value: float) -> bool:
    """Whether steps of `FIRST_STEP` should still bring much, for a gradient in units of such steps."""
    return float(np.linalg.norm(gradient)) > STEEP * abs(value)


class _Reduced:
    """The objective of the map's params alone, min over W of f(U, W).

    Its gradient is that of f at the best W, as the derivative through W vanishes there.

    Parameters
    ----------
    system : NormalEquations
        Where the params begin.
    weights : Weights
        The best ones there.
    start : Sweep
        The state and objective there.
    """

    def __init__(self, system: NormalEquations, weights: Weights, start: Sweep) -> None:
        self.system, self.last = system, start
        params = system.rows.params
        self.names = system.term.row_map.learned
        self.fixed: MapParams = dict(params)
        length = squared_length(params[name] for name in self.names) ** 0.5
        self.unit = FIRST_STEP * max(length, 1e-3)  # SciPy's first step has length one
        self.trials = 0
        self.start = pack(params, self.names) / self.unit
        self._known = (self.start, start.objective, self._gradient(weights))

    def _gradient(self, weights: Weights) -> Array:
        gradient: Array = pack(self.system.gradient(weights), self.names) * self.unit
        return gradient

    def __call__(self, vector: Array) -> tuple[float, Array]:
        if np.array_equal(self._known[0], vector):
            return self._known[1:]
        self.trials += 1
        system = self.system
        system.rows.move_to(unpack(vector * self.unit, self.fixed, self.names))
        moments = system.moments()
        weights = system.best(moments)
        objective = system.reduced_value(moments, weights)
        if not np.isfinite(objective):
            raise DivergedError(f"the objective became {objective} in a trial; are the features scaled?")
        self.last = Sweep(system.state(weights), objective, {})
        self._known = (vector.copy(), objective, self._gradient(weights))
        return self._known[1:]

    def minimised(self, monitor: Monitor) -> Sweep:
        """The last state of L-BFGS, every accepted one shown to the monitor."""
        stopped = False
        accepted: Sweep | None = self.last

        def after_step(vector: Array, objective: float) -> bool:
            nonlocal stopped, accepted
            stopped = monitor.record(self.last._replace(facts={"trials": self.trials}))
            self.trials = 0
            # Where held-out cells choose, the best state is the monitor's, and one less is kept here.
            accepted = self.last if monitor.best_state is None else None
            return stopped

        found = lbfgs(
            self,
            self.start,
            monitor.max_iter,
            after_step=after_step,
            maxfun=4 * monitor.max_iter + 20,
            gtol=1e-12,
        )
        # It also ends by itself where no step leads down any more.
        monitor.converged = monitor.converged or (not stopped and int(found.status) != 1)
        if monitor.converged and not monitor.validates and _is_steep(found.jac, found.fun):
            monitor.stuck()
        return self.last if accepted is None else accepted
