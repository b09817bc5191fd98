"""The penalty that held-out cells choose: ``reg="auto"``."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from tqdm import tqdm

from unseen import kernels
from unseen.cores import Full, LowRank
from unseen.data import Observations
from unseen.estimators.composed import ComposedCompleter
from unseen.estimators.reg_scale import lambda_max
from unseen.estimators.revived import revived
from unseen.exceptions import DataWarning, DivergedError, ParameterError
from unseen.losses import Loss, Squared, blank_of, without
from unseen.offsets import Offsets, fit_offsets
from unseen.problem import Problem
from unseen.regularisers import L1, Ridge
from unseen.solvers import ALS, AlternatingCG, Monitor, ProxGradient, Solver
from unseen.state import State, copy_state
from unseen.terms import Term
from unseen.typing import Features, FloatArray
from unseen.validation import check_choice, check_count, check_pair, check_positive

__all__ = [
    "AutoReg",
    "MapsHeld",
    "RegChoice",
    "at_first",
    "choose_reg",
    "chosen_for",
    "factored_start",
    "is_auto",
    "number_or_auto",
    "rank_cap",
    "scaling_of",
    "spawned",
    "warn_of_cap",
]

SHARE = 0.1
"""Of the cells, held out to choose."""
ASKED, MOST_PARTS = 1000, 5
"""Held-out cells that are enough; where a part has fewer, up to so many parts are held out in turn."""
FEWEST = 10
"""Held-out cells below which they say nothing, and `BLIND` is taken."""
BLIND = 0.1
"""Share of the largest penalty where too few cells are there to choose by."""
RATIO, SMALLEST = 0.6, 1e-4
"""Steps of the path, and the share of the largest penalty at which it ends at the latest."""
SWEEPS, STEPS, PATIENCE = 5, 30, 2
"""Sweeps over factors and gradient steps at each penalty, and penalties without a lower error to the end."""
CERTAIN, WORTH = 2.0, 1e-3
"""Standard errors, and share of the error, by which factors must beat the offsets alone."""
LIKELY = 1.0
"""Standard errors by which a smaller penalty must beat a larger one."""
SHORTEST = 5
"""Entries of the path before it may end."""
ZERO = 4.0
"""Times the largest penalty: factors shrink to nothing within a few sweeps."""
CAP = 50
"""Rank that ``max_rank="auto"`` allows."""
START_SWEEPS = 15
"""Over factors, before the proximal steps of a nuclear norm."""
RANK = 20
"""Of the factors that stand for a full core."""


@dataclass(frozen=True)
class Probe:
    """A problem on part of the cells, its state at a penalty, and the other cells less the offsets."""

    problem: Problem
    state: State
    held_out: Observations

    def errors(self, state: State) -> FloatArray:
        """Squared errors on the held-out cells."""
        cells, n_threads = self.held_out, self.problem.n_threads
        pair = self.problem.stacked(state)
        scores = kernels.sddmm(cells.indptr, cells.indices, *pair, n_threads=n_threads)
        return np.square(cells.values.astype(np.float64) - scores)

    def error(self, state: State) -> float:
        """Mean of the squared errors by the weights of the cells."""
        return _mean(self.errors(state), self.weights)

    @property
    def weights(self) -> FloatArray:
        """Of the held-out cells, one unless they have some."""
        cells = self.held_out
        return np.ones(cells.nnz) if cells.weights is None else cells.weights.astype(np.float64)


@dataclass(frozen=True)
class Step:
    """A penalty, its squared errors on the held-out cells, and where the first and the last problem stood."""

    reg: float
    errors: FloatArray
    first: State
    last: State


@dataclass(frozen=True)
class RegChoice:
    """What held-out cells say about a penalty.

    Attributes
    ----------
    reg : float
        The chosen weight.
    path : list of dict
        ``reg``, ``validation`` (mean squared error on the held-out cells) and ``time_s`` of each penalty, the
        offsets alone first, with a reg of infinity.
    offsets_suffice : bool
        Whether no penalty was better than the offsets alone by more than chance allows.
    probe : Probe, optional
        Where the path stood at the chosen penalty without the first held-out part.
    start : State, optional
        Where it stood with all cells, or, where there are many, without the only held-out part.
    """

    reg: float
    path: list[dict[str, float]]
    offsets_suffice: bool
    probe: Probe | None = None
    start: State | None = None


def is_auto(reg: Any) -> bool:
    """Whether a penalty is left to the data."""
    return isinstance(reg, str) and reg == "auto"


def number_or_auto(name: str, value: Any, *, strict: bool = False) -> float:
    """A penalty; one that is left to the data stands at 1 until it is known."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
        return 1.0
    return check_positive(name, value, strict=strict)


def scaling_of(model: Any) -> float:
    """The model's power of degrees in its penalty, which the path of ``reg="auto"`` does not know."""
    nu = check_positive("degree_scaling", model.degree_scaling, strict=False)
    if nu and is_auto(model.reg):
        raise ParameterError(
            f"degree_scaling={nu:g} needs a number for reg, got 'auto'; choose both by a search"
        )
    return nu


def at_first(center: str) -> str:
    """What is subtracted before a path; biases that are learned with the factors stand in for themselves."""
    return "biases" if center in ("joint", "informed") else center


def spawned(rng: np.random.Generator) -> np.random.Generator:
    """A generator for choices, which leaves the numbers of the fit itself as they are."""
    try:
        return rng.spawn(1)[0]
    except TypeError:  # made from a bit generator without a seed sequence
        return np.random.default_rng(0)


def choose_reg(
    cells: Observations,
    features: dict[str, Features | None],
    term: Term,
    rng: np.random.Generator,
    *,
    center: str,
    bias_reg: tuple[float, float],
    n_threads: int,
    loss_of: Callable[[Observations], Loss],
) -> RegChoice:
    """Walk down a path of penalties, each fit started from the last, and judge by held-out cells.

    Parameters
    ----------
    cells : Observations
        All cells of the fit.
    features : dict
        Validated features of both sides.
    term : Term
        Maps and rank. Factors stand for a full core: their ridge is the same penalty as its nuclear norm.
        Maps that could be learned stay as they are drawn.
    rng : Generator
        Source of the held-out cells and of the start.
    center, bias_reg
        What is subtracted first.
    n_threads : int
        Threads.
    loss_of : callable
        The loss, from the cells that it is fitted to.

    Returns
    -------
    RegChoice
    """
    size = round(SHARE * cells.nnz)
    enough = size >= FEWEST
    n_parts = min(MOST_PARTS, -(-ASKED // size)) if enough else 1
    order = rng.permutation(cells.nnz)

    def bound(training: Observations, offsets: Offsets) -> Problem:
        return Problem(
            _less(training, offsets),
            [_walked(term)],
            loss_of(training),
            row_features=features["row"],
            col_features=features["col"],
            n_threads=n_threads,
        )

    parts, problems = [], []
    for part in range(n_parts):
        held = np.zeros(cells.nnz, dtype=bool)
        held[order[part * size : (part + 1) * size]] = enough
        training = without(cells, held, bool(blank_of(loss_of(cells)))) if enough else cells
        offsets = fit_offsets(training, center, bias_reg, n_threads=n_threads)
        problems.append(bound(training, offsets))
        parts.append(Probe(problems[-1], {}, _less(cells.select(held), offsets)))
    if n_parts > 1:
        problems.append(bound(cells, fit_offsets(cells, center, bias_reg, n_threads=n_threads)))
    largest = max(_largest(problem, rng) for problem in problems)
    if not np.isfinite(largest):
        raise DivergedError("reg='auto' has no largest penalty to begin with: slopes are NaN or infinite")
    if not enough or largest == 0.0:
        return RegChoice(BLIND * largest if largest else 1.0, [], largest == 0.0)
    return _walk(parts, problems, largest, rng)


def _walk(parts: list[Probe], problems: list[Problem], largest: float, rng: np.random.Generator) -> RegChoice:
    """Errors along the path, and what follows from them; a problem beyond those of parts walks along."""
    clock = time.perf_counter()
    weights = np.concatenate([probe.weights for probe in parts])
    alone = np.concatenate([np.square(probe.held_out.values, dtype=np.float64) for probe in parts])
    path = [{"reg": float("inf"), "validation": _mean(alone, weights), "time_s": 0.0}]
    near: list[Step] = []
    in_vain = 0
    for reg, states in _states(problems, largest, rng):
        errors = np.concatenate([p.errors(state) for p, state in zip(parts, states, strict=False)])
        error = _mean(errors, weights)
        path.append({"reg": reg, "validation": error, "time_s": time.perf_counter() - clock})
        if not near or error < _mean(near[-1].errors, weights):
            near = [step for step in near if not _lower(errors, step.errors, weights, LIKELY)]
            first = copy_state(states[0])
            near.append(Step(reg, errors, first, copy_state(states[-1]) if len(states) > 1 else first))
            in_vain = 0
        else:
            in_vain += 1
        if in_vain >= PATIENCE and len(path) >= SHORTEST:
            break
    chosen = near[0]  # the largest penalty that the best one does not certainly beat
    suffices = not _lower(chosen.errors, alone, weights, CERTAIN, WORTH)
    if suffices:
        return RegChoice(ZERO * largest, path, True)
    return RegChoice(chosen.reg, path, False, replace(parts[0], state=chosen.first), chosen.last)


def _lower(
    errors: FloatArray, than: FloatArray, weights: FloatArray, certain: float, worth: float = 0.0
) -> bool:
    """Whether errors are lower by so many standard errors of their difference, and so much of their size."""
    gain = than - errors
    mean = _mean(gain, weights)
    spread = float(np.sqrt(np.sum(np.square(weights * (gain - mean))))) / max(float(weights.sum()), 1e-300)
    return mean > max(certain * spread, worth * _mean(than, weights))


def _states(
    problems: list[Problem], largest: float, rng: np.random.Generator
) -> Iterator[tuple[float, list[State]]]:
    """A state of each problem along a path of decreasing penalties."""
    solvers = [_solver(problem) for problem in problems]
    fresh = [problem.start(rng) for problem in problems]
    states = list(fresh)
    reg = RATIO * largest
    while reg >= SMALLEST * largest:
        for place, (problem, solver) in enumerate(zip(problems, solvers, strict=True)):
            problem.terms[0].reg.set_params(reg=reg)
            monitor = Monitor(STEPS if isinstance(solver, ProxGradient) else SWEEPS, 1e-3, warn=False)
            start = revived(problem, states[place], fresh[place])
            states[place] = solver.solve(problem, start, rng, monitor)
        yield reg, states
        reg *= RATIO


def _solver(problem: Problem) -> Solver:
    if isinstance(problem.terms[0].reg, L1):
        return ProxGradient()
    exact = ALS()
    return exact if exact.why_not(problem) is None else MapsHeld(cg_tol=1e-2)


def _largest(problem: Problem, rng: np.random.Generator) -> float:
    """The penalty from which on the core is zero."""
    if isinstance(problem.terms[0].reg, L1):
        slope = problem.data_grad(problem.start(rng))["0.core"]
        return float(np.abs(slope).max(initial=0.0))
    return lambda_max(problem, rng)


class MapsHeld(AlternatingCG):
    """Coefficients by conjugate gradients, with learned maps as they are drawn."""

    def refuses(self, problem: Problem) -> str | None:
        return self.why_not_quadratic(problem)


def _walked(term: Term) -> Term:
    """The term with factors and a ridge on them; one with an L1 norm as it is."""
    row_map, col_map, core, reg = term.parts()
    if isinstance(reg, L1):
        return Term(clone(row_map), clone(col_map), clone(core), clone(reg))
    rank = RANK if isinstance(core, Full) else core.rank
    return Term(clone(row_map), clone(col_map), LowRank(rank), Ridge(1.0))


def _less(cells: Observations, offsets: Offsets) -> Observations:
    return cells if offsets.width == 0 else cells.with_values(offsets.removed(cells))


def _mean(values: FloatArray, weights: FloatArray) -> float:
    total = float(weights.sum())
    return float(weights @ values) / total if total else 0.0


def chosen_for(
    model: ComposedCompleter,
    cells: Observations,
    features: dict[str, Features | None],
    term: Term,
    rng: np.random.Generator,
    name: str = "reg",
) -> RegChoice:
    """The choice for a term of a model, by the settings of the model, which tells it if it is verbose."""
    choice = choose_reg(
        cells,
        features,
        term,
        spawned(rng),
        center=at_first(check_choice("center", model.center, model.centers)),
        bias_reg=check_pair("bias_reg", model.bias_reg),
        n_threads=model._n_threads(),
        loss_of=model._loss_of if isinstance(model, AutoReg) else (lambda _: Squared()),
    )
    if model.verbose:
        tell(model, name, choice)
    return choice


class AutoReg(ComposedCompleter):
    """Completers whose ``reg``, the penalty of their first term, can be left to held-out cells."""

    reg: float | str
    reg_: float
    reg_path_: list[dict[str, float]]
    ridge_per_reg: ClassVar[float] = 1.0
    """Weight of the first term's penalty where ``reg`` is one."""
    _chosen: RegChoice | None = None
    """Only while a fit goes on."""

    def _choose(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> None:
        self.reg_, self.reg_path_, self._chosen = number_or_auto("reg", self.reg), [], None
        if not is_auto(self.reg) or getattr(self, "solver", None) == "gibbs":  # samples penalties itself
            return
        term = self._compose(*(features[side] is not None for side in ("row", "col"))).terms[0]
        choice = chosen_for(self, cells, features, term, rng)
        scale = self.ridge_per_reg
        self.reg_, self._chosen = choice.reg / scale, choice
        self.reg_path_ = [{**entry, "reg": entry["reg"] / scale} for entry in choice.path]
        self._follow(choice, spawned(rng))
        if choice.offsets_suffice and choice.path:
            warn_of_offsets(self)

    def _loss_of(self, cells: Observations) -> Loss:
        """The loss of a fit to these cells, by which penalties are tried."""
        return Squared()

    def _follow(self, choice: RegChoice, rng: np.random.Generator) -> None:
        """What else the held-out cells are asked once the penalty stands."""

    def _tune(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> None:
        super()._tune(problem, solver, rng)
        if not hasattr(self, "reg_"):
            raise ParameterError(f"this {type(self).__name__} has chosen no reg; fit it again")
        problem.terms[0].reg.set_params(reg=self.ridge_per_reg * self.reg_)

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        """Where the path stood: the minimum that was judged is the one that the fit should find."""
        state = super()._start(problem, solver, rng)
        known = None if self._chosen is None else self._chosen.start
        if known is None or solver.factored_full or (self.warm_start and hasattr(self, "row_factors_")):
            return state
        same = all(key in state and state[key].shape == value.shape for key, value in known.items())
        return revived(problem, known, state) if same else state

    def _fit_validated(self, cells: Observations, features: dict[str, Features | None]) -> None:
        super()._fit_validated(cells, features)
        self._chosen = None
        if is_auto(self.reg):
            for entry in self.history_:
                entry["reg"] = self.reg_


def warn_of_offsets(model: Any) -> None:
    """Say that the offsets alone do as well as any penalty."""
    warnings.warn(
        f"{type(model).__name__}: on held-out cells no penalty was better than the offsets alone, so the "
        "factors are next to nothing; use BiasModel(), which says the same, or name reg=",
        DataWarning,
        stacklevel=5,
    )


def tell(model: Any, name: str, choice: RegChoice) -> None:
    """Print a choice, as a progress bar would."""
    lowest = min(choice.path, key=lambda entry: entry["validation"], default=None)
    asked = (
        "too few cells to ask"
        if lowest is None
        else (
            f"{len(choice.path) - 1} penalties, held-out RMSE {np.sqrt(lowest['validation']):.4g}, "
            f"of the offsets alone {np.sqrt(choice.path[0]['validation']):.4g}"
        )
    )
    tqdm.write(f"{type(model).__name__}: {name}={choice.reg:.4g} ({asked})", file=sys.stderr)


def factored_start(problem: Problem, rng: np.random.Generator) -> State:
    """Factors near the minimum of a nuclear norm, by sweeps over factors with the same penalty."""
    (term,) = problem.terms
    twin = Problem(
        problem.observations,
        [Term(term.row_map, term.col_map, LowRank(RANK), Ridge(term.reg.reg))],
        problem.loss,
        n_threads=problem.n_threads,
    )
    state = ALS().solve(twin, twin.start(rng), rng, Monitor(START_SWEEPS, 1e-4, warn=False))
    return {key: state[key] for key in (term.key("row"), term.key("col"))}


def rank_cap(max_rank: Any) -> int | None:
    """Largest rank that is kept."""
    if isinstance(max_rank, str):
        check_choice("max_rank", max_rank, ("auto",))
        return CAP
    return None if max_rank is None else check_count("max_rank", max_rank)


def warn_of_cap(model: Any, rank: int) -> None:
    """Say that the cap of an automatic ``max_rank`` was reached where more would have been possible."""
    possible = min(len(model.row_factors_), len(model.col_factors_))
    if isinstance(model.max_rank, str) and CAP <= rank < possible:
        warnings.warn(
            f"{type(model).__name__}: the rank reached {CAP}, the cap of max_rank='auto'; the penalty alone "
            "would keep more: name max_rank= (None for no limit), or a larger penalty",
            DataWarning,
            stacklevel=3,
        )
