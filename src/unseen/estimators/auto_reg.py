"""The penalty that held-out cells choose: ``reg="auto"``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from unseen import kernels
from unseen.cores import Full, LowRank
from unseen.data import Observations
from unseen.estimators.composed import ComposedCompleter
from unseen.estimators.reg_scale import lambda_max
from unseen.estimators.revived import revived
from unseen.exceptions import DataWarning, ParameterError
from unseen.losses import Squared
from unseen.offsets import Offsets, fit_offsets
from unseen.problem import Problem
from unseen.regularisers import Ridge
from unseen.solvers import ALS, AlternatingCG, Monitor, Solver
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
FEWEST = 10
"""Held-out cells below which they say nothing, and `BLIND` is taken."""
BLIND = 0.1
"""Share of the largest penalty where too few cells are there to choose by."""
RATIO, SMALLEST = 0.6, 1e-4
"""Steps of the path, and the share of the largest penalty at which it ends at the latest."""
SWEEPS, PATIENCE = 5, 2
"""Sweeps at each penalty, and penalties without a lower error after which the path ends."""
CERTAIN, WORTH = 2.0, 1e-3
"""Standard errors, and share of the error, by which factors must beat the offsets alone."""
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
        Where the path stood at the chosen penalty.
    """

    reg: float
    path: list[dict[str, float]]
    offsets_suffice: bool
    probe: Probe | None = None


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

    Returns
    -------
    RegChoice
    """
    held = np.zeros(cells.nnz, dtype=bool)
    held[rng.permutation(cells.nnz)[: round(SHARE * cells.nnz)]] = True
    enough = int(held.sum()) >= FEWEST
    training = cells.select(~held) if enough else cells
    offsets = fit_offsets(training, center, bias_reg, n_threads=n_threads)
    problem = Problem(
        _less(training, offsets),
        [_factored(term)],
        Squared(),
        row_features=features["row"],
        col_features=features["col"],
        n_threads=n_threads,
    )
    largest = lambda_max(problem, rng)
    if not enough or largest == 0.0:
        return RegChoice(BLIND * largest if largest else 1.0, [], largest == 0.0)
    return _walk(problem, largest, _less(cells.select(held), offsets), rng)


def _walk(problem: Problem, largest: float, held_out: Observations, rng: np.random.Generator) -> RegChoice:
    """Errors along the path, and what follows from them."""
    clock = time.perf_counter()
    probe = Probe(problem, {}, held_out)
    weights = probe.weights
    alone = np.square(held_out.values, dtype=np.float64)
    path = [{"reg": float("inf"), "validation": _mean(alone, weights), "time_s": 0.0}]
    best, best_errors, in_vain = largest, alone, 0
    for reg, state in _states(problem, largest, rng):
        errors = probe.errors(state)
        error = _mean(errors, weights)
        path.append({"reg": reg, "validation": error, "time_s": time.perf_counter() - clock})
        if error < _mean(best_errors, weights):
            best, best_errors, in_vain = reg, errors, 0
            probe = Probe(problem, copy_state(state), held_out)
        else:
            in_vain += 1
        if in_vain >= PATIENCE and len(path) >= SHORTEST:
            break
    gain = alone - best_errors
    mean = _mean(gain, weights)
    spread = np.sqrt(np.sum(np.square(weights * (gain - mean)))) / max(weights.sum(), 1e-300)
    suffices = bool(mean <= max(CERTAIN * spread, WORTH * _mean(alone, weights)))
    return RegChoice(ZERO * largest if suffices else best, path, suffices, None if suffices else probe)


def _states(problem: Problem, largest: float, rng: np.random.Generator) -> Iterator[tuple[float, State]]:
    """States along a path of decreasing penalties."""
    solver = _solver(problem)
    penalty = problem.terms[0].reg
    fresh = state = problem.start(rng)
    reg = RATIO * largest
    while reg >= SMALLEST * largest:
        penalty.set_params(reg=reg)
        monitor = Monitor(SWEEPS, 1e-3, warn=False)
        state = solver.solve(problem, revived(problem, state, fresh), rng, monitor)
        yield reg, state
        reg *= RATIO


def _solver(problem: Problem) -> Solver:
    exact = ALS()
    return exact if exact.why_not(problem) is None else MapsHeld(cg_tol=1e-2)


class MapsHeld(AlternatingCG):
    """Coefficients by conjugate gradients, with learned maps as they are drawn."""

    def refuses(self, problem: Problem) -> str | None:
        return self.why_not_quadratic(problem)


def _factored(term: Term) -> Term:
    """The term with factors and a ridge on them."""
    row_map, col_map, core, _ = term.parts()
    rank = RANK if isinstance(core, Full) else core.rank
    return Term(clone(row_map), clone(col_map), LowRank(rank), Ridge(1.0))


def _less(cells: Observations, offsets: Offsets) -> Observations:
    return cells if offsets.width == 0 else cells.with_values(offsets.removed(cells))


def _mean(values: FloatArray, weights: FloatArray) -> float:
    total = float(weights.sum())
    return float(weights @ values) / total if total else 0.0


class AutoReg(ComposedCompleter):
    """Completers whose ``reg``, the penalty of their first term, can be left to held-out cells."""

    reg: float | str
    reg_: float
    reg_path_: list[dict[str, float]]

    def _choose(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> None:
        self.reg_, self.reg_path_ = number_or_auto("reg", self.reg), []
        if not is_auto(self.reg) or getattr(self, "solver", None) == "gibbs":  # samples penalties itself
            return
        term = self._compose(*(features[side] is not None for side in ("row", "col"))).terms[0]
        center = check_choice("center", self.center, self.centers)
        choice = choose_reg(
            cells,
            features,
            term,
            spawned(rng),
            center=at_first(center),
            bias_reg=check_pair("bias_reg", self.bias_reg),
            n_threads=self._n_threads(),
        )
        self.reg_, self.reg_path_ = choice.reg, choice.path
        self._follow(choice, spawned(rng))
        if choice.offsets_suffice and choice.path:
            warn_of_offsets(self)

    def _follow(self, choice: RegChoice, rng: np.random.Generator) -> None:
        """What else the held-out cells are asked once the penalty stands."""

    def _tune(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> None:
        super()._tune(problem, solver, rng)
        problem.terms[0].reg.set_params(reg=self.reg_)

    def _fit_validated(self, cells: Observations, features: dict[str, Features | None]) -> None:
        super()._fit_validated(cells, features)
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
