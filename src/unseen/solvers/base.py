"""What a solver is, and who watches it."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from tqdm import tqdm

from unseen.data import Observations
from unseen.docstrings import share_options
from unseen.exceptions import ConvergenceWarning, DivergedError, UnsupportedComposition
from unseen.problem import Problem
from unseen.solvers.certificates import Certificate, certify
from unseen.state import State, copy_state
from unseen.typing import FloatArray, IndexArray
from unseen.validation import check_verbose

__all__ = ["CellTerms", "Monitor", "Solver", "Sweep", "blank_constant", "by_column"]

CellTerms: TypeAlias = tuple[IndexArray, IndexArray, float | FloatArray, float | FloatArray]
"""Pattern, curvature and linear part of the stored cells, by rows or by columns."""


class Sweep(NamedTuple):
    """What a solver reports after one sweep.

    ``settled`` is for solvers whose objective may rise on the way: they judge themselves.
    """

    state: State
    objective: float
    facts: dict[str, Any]
    settled: bool | None = None


class Monitor:
    """Progress bar, history, stopping rule and early stopping, apart from every solver.

    Parameters
    ----------
    max_iter : int
        Limit of sweeps.
    tol : float
        Stop when a sweep lowers the objective by less than this share.
    verbose : int
        1 shows a progress bar.
    label : str
        Text before the bar.
    validate : callable, optional
        Error of a state on held-out cells; lower is better. A tuple decides between equal errors.
    patience : int
        Sweeps without a better validation error before stopping.
    warn : bool
        Say so where the limit of sweeps comes first.
    notes_start : bool
        Put the start in the history too, and let it be the best state.

    Attributes
    ----------
    history : list of dict
        Objective, time and facts of each sweep.
    converged : bool
        Whether the sweeps ended for another reason than their limit.
    best_state : dict or None
        State with the lowest validation error.
    best_entry : int
        Its place in the history; the last place without validation.
    """

    def __init__(
        self,
        max_iter: int,
        tol: float,
        *,
        verbose: int = 0,
        label: str = "fit",
        validate: Callable[[State], float | tuple[float, ...]] | None = None,
        patience: int = 5,
        warn: bool = True,
        notes_start: bool = False,
    ) -> None:
        self._warn = warn
        self._notes_start = notes_start
        self.max_iter = max_iter
        self.tol = tol
        self.history: list[dict[str, Any]] = []
        self.converged = False
        self.best_state: State | None = None
        self.best_entry = 0
        self._noted = 0
        self._validate = validate
        self._patience = patience
        self._best_error: tuple[float, ...] = (np.inf,)
        self._since_best = 0
        self._last = np.inf
        self._clock = time.perf_counter()
        self._bar = tqdm(total=max_iter, desc=label, disable=not check_verbose(verbose), leave=False)

    @property
    def validates(self) -> bool:
        """Whether it looks at the states."""
        return self._validate is not None

    def start(self, objective: float, sweep: Sweep | None = None) -> None:
        """Take the objective of the starting point, against which the first sweep is judged.

        ``sweep`` is what a solver has to say about the start, for monitors that note it.
        """
        self._check(objective)
        self._last = objective
        if self._notes_start and sweep is not None:
            self._note(sweep)
            self._noted = 1

    def record(self, sweep: Sweep) -> bool:
        """Note one sweep; True when the solver should stop."""
        objective = float(sweep.objective)
        self._check(objective)
        stop = self._note(sweep)
        self._bar.update(1)
        self._bar.set_postfix_str(f"objective {objective:.6g}", refresh=False)
        settled = sweep.settled
        if settled is None:
            settled = bool(np.isfinite(self._last) and self._last - objective <= self.tol * abs(self._last))
        self.converged = self.converged or settled
        self._last = objective
        return stop or self.converged or len(self.history) - self._noted >= self.max_iter

    def _note(self, sweep: Sweep) -> bool:
        objective = float(sweep.objective)
        entry = {"objective": objective, "time_s": time.perf_counter() - self._clock, **sweep.facts}
        stop = self._early_stop(sweep.state, entry)
        self.history.append(entry)
        return stop

    def _early_stop(self, state: State, entry: dict[str, Any]) -> bool:
        if self._validate is None:
            self.best_entry = len(self.history)
            return False
        error = self._validate(state)
        entry["validation"] = error
        error = error if isinstance(error, tuple) else (error,)
        if error < self._best_error:
            self._best_error, self._since_best = error, 0
            self.best_state, self.best_entry = copy_state(state), len(self.history)
        else:
            self._since_best += 1
        if self._since_best >= self._patience:
            self.converged = True
        return self._since_best >= self._patience

    def _check(self, objective: float) -> None:
        if not np.isfinite(objective):
            self._bar.close()
            raise DivergedError(
                f"the objective became {objective} in sweep {len(self.history) + 1}; "
                "try a larger reg, a smaller rank, or rescale the values and features"
            )

    def stuck(self) -> None:
        """Say that no step leads down although the objective falls steeply: rounding stands in the way."""
        self.converged, self._warn = False, False
        warnings.warn(
            "no step lowers the objective any more although its gradient is steep: its value is lost in "
            "rounding; use features of type float64, or a larger reg",
            ConvergenceWarning,
            stacklevel=2,
        )

    def close(self) -> None:
        """End the progress bar; warn if the limit of sweeps came first."""
        self._bar.close()
        if self._warn and not self.converged and self._validate is None:
            warnings.warn(
                f"stopped at max_iter={self.max_iter} before the objective settled to tol={self.tol:g}; "
                "raise max_iter, or tol if this is accurate enough",
                ConvergenceWarning,
                stacklevel=2,
            )


class Solver(BaseEstimator):  # type: ignore[misc]
    """Minimises a problem, sweep by sweep.

    Parameters
    ----------
    max_iter : int, default=50
        Limit of sweeps.
    tol : float, default=1e-5
        Stop when a sweep lowers the objective by less than this share.
    """

    factored_full: ClassVar[bool] = False
    """Whether a full core between identity maps is kept as a product of factors."""
    judges_start: ClassVar[bool] = True
    """Whether the monitor compares the first sweep with the start: not where a sweep always gains, or where
    the solver says itself whether it has settled."""
    takes_total: ClassVar[tuple[type, ...]] = ()
    """Kinds of parts on the total scores that are heeded; a problem with others is refused."""
    takes_measurement: ClassVar[bool] = False
    """Whether the loss may see a measurement in place of the cells."""
    averages: ClassVar[bool] = False
    """Whether it draws solutions to average over instead of going to the best; it then says itself how many
    sweeps that takes."""
    on_device: ClassVar[bool] = False
    """Whether it computes where the problem's provider keeps its arrays; others run on the CPU alone."""
    former_params: ClassVar[tuple[str, ...]] = ()
    """Parameters that saved models may still name; what they said is in the problem now."""

    def __init__(self, max_iter: int = 50, tol: float = 1e-5) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        share_options(cls, attributes=None)

    @abstractmethod
    def refuses(self, problem: Problem) -> str | None:
        """A sentence that says why this composition cannot be solved here, or None."""

    def why_not(self, problem: Problem) -> str | None:
        """:meth:`refuses`, after a look at the parts of a problem that a solver must declare to take."""
        for part in problem.total:
            if not isinstance(part, self.takes_total):
                heeded = " and ".join(kind.__name__ for kind in self.takes_total) or "none at all"
                return f"{part} is asked of all scores, and of such parts it takes {heeded}"
        if problem.provider.device != "cpu" and not self.on_device:
            return (
                f"it runs on the CPU alone, and the problem is on {problem.provider.device}; use device='cpu'"
            )
        if problem.measurement is not None and not self.takes_measurement:
            return "the loss sees measurements in place of cells; use AlternatingLineSearch"
        return self.refuses(problem)

    def check(self, problem: Problem) -> None:
        """Refuse what this solver cannot solve."""
        reason = self.why_not(problem)
        if reason is not None:
            raise UnsupportedComposition(f"{type(self).__name__} cannot solve this composition: {reason}")

    @abstractmethod
    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        """Yield the state after each sweep, for ever; never changes the given arrays."""

    def prepare(self, problem: Problem, state: State, rng: np.random.Generator) -> State:
        """A better point to start from, for solvers that know one."""
        return state

    def certificate(self, problem: Problem, state: State, rng: np.random.Generator) -> Certificate | None:
        """How far from the optimum a state can be, or None where that is not known."""
        return certify(problem, state, rng)

    def solve(self, problem: Problem, state: State, rng: np.random.Generator, monitor: Monitor) -> State:
        """Run sweeps until the monitor says stop; returns the last (or best validated) state."""
        self.check(problem)
        state = self.prepare(problem, problem.feasible(state), rng)
        if self.judges_start:
            monitor.start(problem.value(state))
        sweeps = self.sweeps(problem, state, rng)
        del state  # the start can be freed as soon as the solver has made a copy
        home = problem.provider.to_host
        for sweep in sweeps:
            if monitor.validates:
                sweep = sweep._replace(state={key: home(value) for key, value in sweep.state.items()})
            state = sweep.state
            if monitor.record(sweep):
                break
        monitor.close()
        state = state if monitor.best_state is None else monitor.best_state
        return {key: home(value) for key, value in state.items()}


def by_column(cells: Observations, curvature: float | FloatArray, linear: float | FloatArray) -> CellTerms:
    """Cells column by column; one number serves both orders."""
    if np.ndim(curvature) == 0:
        # What is carried along where there is nothing to carry takes one byte a cell.
        carried = np.asarray(linear) if np.ndim(linear) else np.ones(cells.nnz, dtype=np.bool_)
        indptr, indices, moved = cells.to_columns(carried)
        return indptr, indices, curvature, moved if np.ndim(linear) else linear
    csc = cells.csc
    moved_curvature = np.asarray(curvature)[csc.order]
    return (
        csc.indptr,
        csc.indices,
        moved_curvature,
        linear if np.ndim(linear) == 0 else np.asarray(linear)[csc.order],
    )


def blank_constant(problem: Problem, col_bias: FloatArray | None = None) -> float:
    """Background of all cells at zero factors of the rows, the biases of the columns aside."""
    blank = problem.blank
    n, m = problem.observations.shape
    if not blank:
        return 0.0
    off_target = np.full(m, -blank.target) if col_bias is None else col_bias.astype(np.float64) - blank.target
    squares = off_target * off_target
    total = float(squares.sum() if blank.col_weights is None else blank.col_weights @ squares)
    return 0.5 * blank.weight * blank.total("row", n) * total
