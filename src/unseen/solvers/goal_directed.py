"""Alternation between the coefficients of designs and the maps that make them (GIMC algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unseen.linalg.designs import Design
from unseen.maps.base import FeatureMap, moved
from unseen.problem import BoundTerm, Pair, Problem, core_pair
from unseen.solvers.base import Solver, Sweep
from unseen.solvers.cg import AlternatingCG
from unseen.solvers.descent import armijo, first_length, lbfgs, squared_length
from unseen.state import State, map_params, pack, unpack
from unseen.typing import FloatArray
from unseen.validation import check_choice, check_count

__all__ = ["GoalDirected"]


class GoalDirected(Solver):
    """Moves learned maps down the gradient, and solves for the coefficients in between (GIMC algorithm 1).

    The coefficients come from sweeps of conjugate gradients as in :class:`AlternatingCG`, started where
    the last ones ended. Then the parameters of each map take a step, with the coefficients held
    still: down the gradient with a line search, or several steps of L-BFGS. Both only go down, so
    the objective never rises, and it starts at that of the maps as they were drawn.

    Parameters
    ----------
    max_iter : int, default=50
        Limit of sweeps; each moves every learned map and solves for the coefficients once.
    step : {"armijo", "lbfgs"}, default="armijo"
        How maps move: one step along the gradient for each side, as in the paper, or
        ``lbfgs_steps`` quasi-Newton steps of all maps together.
    start_sweeps : int, default=10
        Sweeps over the coefficients before maps begin to move.
    tied : bool, default=False
        Keep the maps of rows and columns the same; both sides must have the same features.
    lbfgs_steps : int, default=5
        Steps of L-BFGS in each sweep.
    cg_steps : int, default=20
        Limit of conjugate gradient steps for each array.
    cg_tol : float, default=1e-3
        Stop these when the residual has fallen to this share of its start.
    """

    def __init__(
        self,
        max_iter: int = 50,
        tol: float = 1e-5,
        step: str = "armijo",
        start_sweeps: int = 10,
        tied: bool = False,
        lbfgs_steps: int = 5,
        cg_steps: int = 20,
        cg_tol: float = 1e-3,
    ) -> None:
        super().__init__(max_iter, tol)
        self.step = step
        self.start_sweeps = start_sweeps
        self.tied = tied
        self.lbfgs_steps = lbfgs_steps
        self.cg_steps = cg_steps
        self.cg_tol = cg_tol

    def refuses(self, problem: Problem) -> str | None:
        if self.tied and not all(_alike(term.row_map, term.col_map) for term in problem.terms):
            return (
                "tied maps must be the same on both sides, and these differ; pass equal maps, or tied=False"
            )
        return self._coefficients().why_not_quadratic(problem)

    def _coefficients(self) -> AlternatingCG:
        return AlternatingCG(cg_steps=self.cg_steps, cg_tol=self.cg_tol)

    def prepare(self, problem: Problem, state: State, rng: np.random.Generator) -> State:
        if self.tied:
            for term in problem.terms:
                for name, value in map_params(state, term.place, "row").items():
                    state = {**state, term.key(f"col_map.{name}"): value}
        solver = self._coefficients()
        for _ in range(check_count("start_sweeps", self.start_sweeps, minimum=0)):
            state, _ = solver.sweep_once(problem, state)
        return state

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        step = check_choice("step", self.step, ("armijo", "lbfgs"))
        solver = self._coefficients()
        movers = self._movers(problem)
        while True:
            trials = 0
            if step == "lbfgs":
                state, trials = self._quasi_newton(problem, state, movers)
            else:
                for mover in movers:
                    state, taken = mover.armijo(problem, state)
                    trials += taken
            state, steps = solver.sweep_once(problem, state)
            facts = {"cg_steps": steps, "map_trials": trials}
            yield Sweep(state, problem.value(state), facts)

    def _movers(self, problem: Problem) -> list[_Mover]:
        out = []
        for term in problem.terms:
            sides = [side for side in ("row", "col") if _map(term, side).learned]
            out += [_Mover(term, sides)] if self.tied and sides else [_Mover(term, [side]) for side in sides]
        return out

    def _quasi_newton(self, problem: Problem, state: State, movers: list[_Mover]) -> tuple[State, int]:
        """A few steps of L-BFGS on all learned parameters together."""
        if not movers:
            return state, 0
        keys = [key for mover in movers for key in mover.keys]

        def value_and_grad(vector: FloatArray) -> tuple[float, FloatArray]:
            trial = unpack(vector, state, keys)
            for mover in movers:
                trial = mover.copied(trial)
            value, by_side = problem.value_and_grad(
                trial, [key for mover in movers for key in mover.all_keys]
            )
            grads: State = {}
            for mover in movers:
                grads |= mover.summed(by_side)
            return value, pack(grads, keys)

        found = lbfgs(value_and_grad, pack(state, keys), check_count("lbfgs_steps", self.lbfgs_steps))
        reached = unpack(found.x, state, keys)
        for mover in movers:
            reached = mover.copied(reached)
        # In float32 a step can round to a worse point.
        better = problem.value(reached) <= problem.value(state)
        return (reached if better else state), int(found.nfev)


@dataclass
class _Mover:
    """The parameters of one map, or of the two maps of a term that are tied."""

    term: BoundTerm
    sides: list[str]
    length: float | None = None

    @property
    def keys(self) -> list[str]:
        """The parameters that are free; those of a second, tied side follow."""
        return self._keys(self.sides[0])

    def _keys(self, side: str) -> list[str]:
        return [self.term.key(f"{side}_map.{name}") for name in _map(self.term, side).learned]

    def copied(self, state: State) -> State:
        """The state with the free parameters on every side that is tied to them."""
        out = dict(state)
        for side in self.sides[1:]:
            out |= dict(zip(self._keys(side), (state[key] for key in self.keys), strict=True))
        return out

    @property
    def all_keys(self) -> list[str]:
        """The parameters of every side."""
        return [key for side in self.sides for key in self._keys(side)]

    def summed(self, grads: State) -> State:
        """Gradient of the free parameters from those of every side."""
        out = {key: grads[key] for key in self.keys}
        for side in self.sides[1:]:
            for key, other in zip(self.keys, self._keys(side), strict=True):
                out[key] = out[key] + grads[other]
        return out

    def armijo(self, problem: Problem, state: State) -> tuple[State, int]:
        """One step down the gradient; the state as it was if no length will do."""
        grads = self.summed(problem.data_grad(state, self.all_keys))
        square = squared_length(grads.values())
        if square == 0.0:
            return state, 0
        if self.length is None:
            self.length = first_length((state[key] for key in self.keys), square)
        value = problem.data_value(state)
        along = _Along(problem, self.term, state, self._directions(grads))
        length, following, trials = armijo(value, square, along.data_value, self.length)
        self.length = None if length is None else following
        return (state if length is None else self._moved(problem, state, grads, length)), trials

    def _directions(self, grads: State) -> dict[str, State]:
        names = _map(self.term, self.sides[0]).learned
        downhill = {name: -grads[key] for name, key in zip(names, self.keys, strict=True)}
        return dict.fromkeys(self.sides, downhill)

    def _moved(self, problem: Problem, state: State, grads: State, length: float) -> State:
        step = moved({key: state[key] for key in grads}, grads, -length)
        return self.copied({**state, **step})


class _Along:
    """The data part of the objective along a direction of map parameters, coefficients held still."""

    def __init__(self, problem: Problem, term: BoundTerm, state: State, directions: dict[str, State]) -> None:
        self.problem, self.term, self.state = problem, term, state
        self.designs = dict(zip(("row", "col"), problem.designs(term, state), strict=True))
        self.rest = [problem.pair(other, state) for other in problem.terms if other.place != term.place]
        self.paths = {}
        for side, direction in directions.items():
            features = problem.features[side]
            assert features is not None  # learned maps need features
            params = map_params(state, term.place, side)
            self.paths[side] = _map(term, side).path(features, params, direction, problem.n_threads)

    def data_value(self, step: float) -> float:
        designs = {**self.designs, **{side: path(step) for side, path in self.paths.items()}}
        own = self._pair(designs["row"], designs["col"])
        left, right = (
            np.ascontiguousarray(np.hstack([own[part], *(pair[part] for pair in self.rest)]))
            for part in (0, 1)
        )
        pair = Pair(left, right)
        value = self.problem.data_value_at(pair, self.problem.cell_scores(pair))
        return value if np.isfinite(value) else np.inf

    def _pair(self, row: Design, col: Design) -> Pair:
        core = self.state.get(self.term.key("core"))
        if core is not None:
            return core_pair(row, col, core)
        return Pair(row.dot(self.state[self.term.key("row")]), col.dot(self.state[self.term.key("col")]))


def _map(term: BoundTerm, side: str) -> FeatureMap:
    return term.row_map if side == "row" else term.col_map


def _alike(one: object, other: object) -> bool:
    """Whether two maps (or settings of maps) are the same, maps inside them included."""
    if not isinstance(one, FeatureMap):
        return bool(one == other)
    if type(one) is not type(other):
        return False
    assert isinstance(other, FeatureMap)
    ours, theirs = one.get_params(deep=False), other.get_params(deep=False)
    return all(_alike(ours[name], theirs[name]) for name in ours)
