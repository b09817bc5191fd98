"""The problem is the whole objective: what a completer reports is what its problem says, and the oracle.

The cases are made from the signatures of the public completers: a parameter that is neither in ``OPTIONS``
nor known not to matter fails, so an option that moves part of an objective elsewhere cannot come in unseen.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import unseen
from unseen import (
    Background,
    Box,
    Completion,
    Constant,
    Fourier,
    Full,
    Identity,
    LowRank,
    MixedLinear,
    Nuclear,
    Nystrom,
    Observations,
    Ridge,
    ShiftIMC,
    ShiftMC,
    Squared,
    Term,
    WithOnes,
    baselines,
    links,
    solvers,
)
from unseen.estimators.base import Completer
from unseen.estimators.composed import ComposedCompleter
from unseen.estimators.pu_base import PositiveCompleter
from unseen.exceptions import UnsupportedComposition
from unseen.losses import Loss
from unseen.problem import Problem
from unseen.regularisers import Regulariser
from unseen.sensing import Sensing
from unseen.solvers import Solver, choose_solver
from unseen.state import State, copy_state
from unseen.totals import ScoreBox, StoredCells
from unseen.validation import check_features, check_rng

pytestmark = pytest.mark.filterwarnings("ignore")

N, M, D = 13, 10, 3


def public(module: Any, kind: type) -> dict[str, Any]:
    """Concrete classes of a kind that a module exports."""
    found = {name: getattr(module, name) for name in module.__all__}
    classes = {name: value for name, value in found.items() if isinstance(value, type)}
    return {
        name: value
        for name, value in classes.items()
        if issubclass(value, kind) and value is not kind and not inspect.isabstract(value)
    }


COMPLETERS = public(unseen, Completer) | public(baselines, Completer) | public(links, Completer)
WITHOUT_OBJECTIVE = {
    "BayesianMF": "a mean over solutions, at which no objective is smallest; its penalties are drawn as well",
    "BlendedLinks": "a sum of ranks",
    "CommonNeighbors": "a count",
    "ItemNeighbors": "a product of the positives with their likeness",
    "Katz": "a series of powers of the graph",
    "Popularity": "a count",
    "SVDKatz": "the same series over leading singular vectors",
    "SpectralFilter": "a filter of the positives by their singular vectors",
    "TruncatedSVDLinks": "leading singular vectors, found at once",
}
"""Completers that minimise nothing by steps, and what they are instead."""
COMPOSED = {
    name: cls
    for name, cls in COMPLETERS.items()
    if issubclass(cls, ComposedCompleter) and name not in WITHOUT_OBJECTIVE
}
BESIDE_THE_CORE = {"BiasModel", "LowDensityNMF", "MMMF", "NMF", "PMF"}
"""Completers with an objective that are no composition: see ``test_objectives_beside_the_core``."""
WITHOUT_FEATURES = {"AugmentedMF", "BiasMC", "MatrixFactorization", "OneBitMC", "ShiftMC", "SoftImpute"}

NEUTRAL = {
    # How far and from where a solver goes, who watches it, and what is done with the answer.
    "max_iter", "tol", "eps_abs", "cg_steps", "patience", "warm_start", "random_state", "n_jobs", "verbose",
    "max_nonzeros", "max_dense_cells", "cross_component", "threshold", "list_length", "clip", "device",
}  # fmt: skip
OPTIONS: dict[str, list[Any]] = {
    "rank": [2],
    "reg": [0.7],
    "reg_features": [0.3],
    "reg_rest": [2.0],
    "reg_g": ["auto", 0.5],
    "reg_e": ["auto", 5.0],
    "rho": [0.3],
    "alpha": ["auto", 0.7],
    "class_prior": [0.6],
    "weights": [False],
    "weight": [0.0, 0.5],
    "c0": [0.4],
    "gamma": [0.1],
    "augmentation": ["expected", "rank_one", "hashed", "explicit"],
    "resample_original": [False],
    "center": ["none", "mean", "biases"],
    "bias_reg": [1.0],
    "constraint": ["hard", "soft"],
    "bound": ["none", "box"],
    "penalize_intercept": [False],
    "intercept": [False],
    "standardize": [False],
    "whiten": [True],
    "max_rank": [2],
    "continuation": [3],
    "start_sweeps": [0],
    "n_restarts": [2],
    "row_map": [Fourier(4), Nystrom(4, learnable=True)],
    "col_map": [Identity()],
    "validation_fraction": [0.2],
    "degree_scaling": [],  # together with a number for reg, below
}
"""Values of a parameter that change the objective, or how a solver reports it."""
OWN_OPTIONS: dict[tuple[str, str], list[Any]] = {
    ("AugmentedMF", "solver"): ["als", "linesearch"],
    ("BiasIMC", "solver"): ["cg", "prox"],
    ("BiasMC", "solver"): ["als", "ccd", "prox"],
    ("BiasMC", "weights"): [True, False],
    ("BiasIMC", "weights"): [True, False],
    ("BiasMC", "init"): ["svd"],
    ("Completion", "terms"): [],  # all losses and penalties, below
    ("Completion", "loss"): [],
    ("Completion", "solver"): [],
    ("GIMC", "loss"): [],  # together with a number for reg, below
    ("GIMC", "solver"): ["lbfgs", "armijo"],
    ("IMC", "solver"): ["cg"],  # the other one averages
    ("MatrixFactorization", "center"): ["none", "mean", "biases", "joint"],
    ("MatrixFactorization", "init"): ["svd"],
    ("MatrixFactorization", "solver"): ["als", "ccd"],
    ("MixedLinear", "init"): ["lasso", "paper"],
    ("MixedLinear", "solver"): ["auto", "admm"],
    ("ShiftIMC", "solver"): ["cg", "prox"],
    ("ShiftMC", "bound"): ["relaxed", "none", "box"],
}
TOGETHER: dict[str, list[dict[str, Any]]] = {
    "AugmentedMF": [
        {"augmentation": kind, "center": center, "resample_original": resample, "solver": "linesearch"}
        for kind in ("expected", "rank_one", "hashed", "explicit")
        for center in ("none", "biases")
        for resample in (True, False)
    ],
    "BiasIMC": [{"solver": "prox", "whiten": True}],
    "BiasMC": [{"reg": 0.7, "degree_scaling": 0.5}],
    "GIMC": [
        {"reg": 0.7, "center": "none", "loss": loss}
        for loss in (unseen.Logistic(), unseen.Biased(0.7), Squared(1.5, Background(0.4, 0.7)))
    ],
    "IMC": [{"reg": 0.7, "degree_scaling": 0.5}],
    "MatrixFactorization": [
        {"reg": 0.7, "degree_scaling": 0.5, "center": center} for center in ("none", "joint")
    ],
    "MixedLinear": [
        {"constraint": "soft", "center": "biases"},
        {"constraint": "soft", "reg_g": "auto", "reg_e": "auto"},
        {"constraint": "soft", "penalize_intercept": False},
        {"solver": "admm", "init": "paper"},
        {"constraint": "soft", "validation_fraction": 0.2},
    ],
    "ShiftIMC": [{"bound": "box", "whiten": True}, {"bound": "none", "solver": "prox"}],
}
"""Options that meet in one objective."""
START: dict[str, dict[str, Any]] = {
    "AugmentedMF": {"rank": 3, "reg": 0.1},
    "BiasIMC": {"rank": 3, "alpha": 0.8},
    "BiasMC": {"rank": 3, "alpha": 0.8},
    "DirtyIMC": {"reg_rest": 1.0},
    "MixedLinear": {"constraint": "hard", "reg_g": 0.3, "reg_e": 2.0, "rho": 5.0},
    "ShiftIMC": {"rank": 3, "rho": 0.5},
    "ShiftMC": {"rank": 3, "rho": 0.5},
    **{name: {"rank": 3} for name in ("GIMC", "IMC", "MatrixFactorization", "OneBitMC")},
}


def settings(name: str) -> Iterator[dict[str, Any]]:
    """The starting options of a completer, then each option of each of its parameters."""
    start = START.get(name, {})
    yield start
    for parameter in inspect.signature(COMPOSED[name]).parameters:
        for value in OWN_OPTIONS.get((name, parameter), OPTIONS.get(parameter, [])):
            given = {**start, parameter: value}
            if parameter in ("rho", "class_prior") and issubclass(COMPOSED[name], PositiveCompleter):
                given = {
                    key: item
                    for key, item in given.items()
                    if key not in ("alpha", "rho") or key == parameter
                }
            yield given
    yield from ({**start, **chosen} for chosen in TOGETHER.get(name, []))


def losses() -> list[Loss]:
    more = [
        Squared(1.5, Background(0.4, 0.7)),
        Squared(1.0, Background(0.4, 0.0, np.linspace(0.5, 2.0, N), np.linspace(0.2, 1.0, M))),
        unseen.Biased(0.7, weighted=True),
    ]
    return [cls() for cls in public(unseen, Loss).values()] + more


def compositions() -> Iterator[dict[str, Any]]:
    penalties = [cls(0.2) for cls in public(unseen, Regulariser).values() if cls is not Box]
    penalties += [Box(-0.4, 0.6, 0.1), Ridge(0.2, degree_scaling=1.0)]
    for loss, reg, core in itertools.product(losses(), penalties, (LowRank(3), Full())):
        if isinstance(core, Full) and getattr(reg, "degree_scaling", 0.0):
            continue  # a full core between identities has no degrees
        yield {"terms": [Term(core=core, reg=reg)], "loss": loss}
        yield {"terms": [Term(WithOnes(), WithOnes(), core, reg)], "loss": loss}
    both = [Term(WithOnes(), Identity(), LowRank(2), Ridge(0.3)), Term(core=LowRank(2), reg=Ridge(0.5))]
    biases = [Term(Identity(), Constant(), Full(), Ridge(0.5)), Term(core=LowRank(2), reg=Ridge(0.5))]
    yield from ({"terms": terms, "loss": loss} for terms in (both, biases) for loss in losses())
    yield {"terms": [Term(core=Full(), reg=Nuclear(0.5))], "solver": solvers.BoxedADMM(lower=-0.5, upper=1.5)}


CASES = [
    *((name, given) for name in COMPOSED if name != "Completion" for given in settings(name)),
    *(("Completion", given) for given in settings("Completion")),
    *(("Completion", given) for given in compositions()),
]
SIDES = ("none", "row", "both")


def data(name: str, given: dict[str, Any]) -> np.ndarray:
    rng = np.random.default_rng(5)
    stored = rng.random((N, M)) < 0.45
    loss = given.get("loss")
    if issubclass(COMPOSED[name], PositiveCompleter):
        counts = rng.integers(1, 4, (N, M)) if given.get("weights") is not None else 1
        return np.where(stored, counts, 0).astype(float)
    values = (
        1.0 + rng.standard_normal((N, 2)) @ rng.standard_normal((2, M)) + 0.3 * rng.standard_normal((N, M))
    )
    if name == "OneBitMC" or isinstance(loss, (unseen.Logistic, unseen.Biased, unseen.Shifted)):
        values = (values > 1.0) + (0.0 if isinstance(loss, unseen.Logistic) or name == "OneBitMC" else 1.0)
    return np.where(stored, values, np.nan)


def features(sides: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(6)
    rows, cols = rng.standard_normal((N, D)), rng.standard_normal((M, D))
    return (
        {}
        if sides == "none"
        else {"row_features": rows} | ({"col_features": cols} if sides == "both" else {})
    )


def fitted(name: str, given: dict[str, Any], sides: str, target: Any = None) -> tuple[Any, Problem, State]:
    """A model, the problem that it solved and the state that it found, from what the model holds."""
    model = COMPOSED[name](**{"max_iter": 7, "tol": 0.0, "random_state": 0, **given})
    target, given_features = data(name, given) if target is None else target, features(sides)
    model.fit(target, **given_features)
    cells = model._read_target(target)
    checked = {
        side: check_features(given_features[key], length, key, dtype=cells.dtype)
        if key in given_features
        else None
        for side, key, length in zip(
            ("row", "col"), ("row_features", "col_features"), cells.shape, strict=True
        )
    }
    problem = model._bind(cells, checked, check_rng(model.random_state)).problem
    return model, problem, model._full_state(problem)


def reported(model: Any) -> float:
    """The objective of the sweep that was kept."""
    if getattr(model, "validation_fraction", None) is None:
        return float(model.history_[-1]["objective"])
    return float(min(model.history_, key=lambda entry: entry["validation"])["objective"])


def scores_of(problem: Problem, state: State) -> np.ndarray:
    pair = problem.stacked(state)
    return pair.left @ pair.right.T


def lesser(problem: Problem, state: State) -> Iterator[tuple[str, Problem]]:
    """The problem without one of the parts that count at this state."""
    for place, term in enumerate(problem.terms):
        part = problem.only([place])
        if abs(part.penalty(state)) > 1e-6 * abs(problem.value(state)):
            without = _copy(problem)
            without.terms = [*problem.terms]
            without.terms[place] = term._replace(reg=Ridge(0.0))
            yield f"penalty of term {place}", without
    for part in problem.total:
        if isinstance(part, Regulariser):
            without = _copy(problem)
            without.total = tuple(other for other in problem.total if other is not part)
            yield "penalty of the total", without
    if not problem.loss_counts:
        without = _copy(problem)
        without.total = tuple(part for part in problem.total if not isinstance(part, StoredCells))
        yield "cells that hold exactly", without
    if problem.measurement is not None:
        without = _copy(problem)
        without.measurement = None
        yield "measurement", without
    cells, off = problem.observations, scores_of(problem, state) - problem.blank.target
    off[cells.rows, cells.indices] = 0.0
    if problem.blank and np.abs(off).max() > 1e-3:
        without = _copy(problem)
        without.loss = _Stored(problem.loss)
        yield "background", without


class _Stored(Loss):
    """A loss without its background."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def pointwise(self, scores: Any, values: Any) -> Any:
        return self.loss.pointwise(scores, values)

    def grad(self, scores: Any, values: Any) -> Any:
        return self.loss.grad(scores, values)


def _copy(problem: Problem) -> Problem:
    out = problem.only(range(len(problem.terms)))
    out.total = problem.total
    return out


def test_no_completer_and_no_parameter_is_left_out() -> None:
    kinds = [set(COMPOSED), BESIDE_THE_CORE, set(WITHOUT_OBJECTIVE)]
    assert set(COMPLETERS) == set().union(*kinds)
    assert sum(map(len, kinds)) == len(COMPLETERS)
    for name, cls in COMPOSED.items():
        for parameter in inspect.signature(cls).parameters:
            listed = parameter in NEUTRAL or parameter in OPTIONS or (name, parameter) in OWN_OPTIONS
            assert listed, f"{name}({parameter}=) is in no list: can it change the objective?"
            assert not (parameter in NEUTRAL and parameter in OPTIONS)


@pytest.mark.parametrize("name", sorted(set(WITHOUT_OBJECTIVE) - {"BayesianMF"}))
def test_what_minimises_nothing_reports_no_objective(name: str) -> None:
    graph = np.triu(np.random.default_rng(0).random((N, N)) < 0.4, 1)
    model = COMPLETERS[name]().fit((graph | graph.T).astype(float))
    assert not any("objective" in entry for entry in model.history_)


@pytest.mark.parametrize(("name", "given"), CASES, ids=lambda value: str(value)[:60].replace("\n", " "))
def test_problem_history_and_oracle_are_one_objective(name: str, given: dict[str, Any]) -> None:
    terms = given.get("terms")
    sides = ["none"] if name in WITHOUT_FEATURES else list(SIDES)
    if name == "Completion":
        sides = ["both" if terms and any(isinstance(term.row_map, WithOnes) for term in terms) else "none"]
    if "row_map" in given:
        sides = ["both"]
    dropped = 0
    for side in sides:
        model, problem, state = fitted(name, given, side)
        value = problem.value(state)
        np.testing.assert_allclose(reported(model), value, rtol=1e-8, err_msg=f"history, features {side}")
        np.testing.assert_allclose(
            problem.oracle(state), value, rtol=1e-8, err_msg=f"oracle, features {side}"
        )
        if model.certificate_ is not None and problem.loss_counts and problem.violation(state) == 0.0:
            assert model.certificate_.bound <= value * (1 + 1e-9)
        parts = list(lesser(problem, state))
        dropped += len(parts)
        for part, without in parts:  # control: an objective that lacks a part is noticed
            assert not np.isclose(without.value(state), reported(model), rtol=1e-8), part
            assert not np.isclose(without.oracle(state), reported(model), rtol=1e-8), part
    assert dropped


WEIGHTED = [
    *(("MatrixFactorization", {"solver": solver, "rank": 3}) for solver in ("als", "ccd")),
    ("MatrixFactorization", {"center": "joint", "rank": 3}),
    *(
        (name, START.get(name, {}))
        for name in ("SoftImpute", "IMC", "GIMC", "Maxide", "DirtyIMC", "SparseBilinear")
    ),
    *(("MixedLinear", {**START["MixedLinear"], "constraint": kind}) for kind in ("hard", "soft")),
    *(("Completion", {"terms": [Term(core=LowRank(2))], "loss": loss}) for loss in losses()),
]


@pytest.mark.parametrize(("name", "given"), WEIGHTED, ids=lambda value: str(value)[:60].replace("\n", " "))
def test_weights_of_cells_are_in_the_objective(name: str, given: dict[str, Any]) -> None:
    dense = data(name, given)
    cells = Observations.from_dense(dense)
    cells = cells.with_weights(np.random.default_rng(0).uniform(0.2, 2.0, cells.nnz))
    side = "none" if name in (*WITHOUT_FEATURES, "Completion") else "both"
    model, problem, state = fitted(name, given, side, cells)
    np.testing.assert_allclose(reported(model), problem.value(state), rtol=1e-8)
    np.testing.assert_allclose(problem.oracle(state), problem.value(state), rtol=1e-8)
    if problem.loss_counts:
        problem.observations = problem.observations.with_weights(None)
        assert not np.isclose(problem.value(state), reported(model), rtol=1e-6)


# -- constraints and measurements by themselves ----------------------------------------


def test_violation_is_the_largest_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    cells = Observations.from_dense(np.where(rng.random((N, M)) < 0.4, 0.5, np.nan))
    problem = Problem(cells, [Term(core=LowRank(2))], Squared(), total=ScoreBox(-0.3, 0.4))
    state = {"0.row": rng.standard_normal((N, 2)), "0.col": rng.standard_normal((M, 2))}
    scores = scores_of(problem, state)
    by_hand = max((scores - 0.4).max(), (-0.3 - scores).max())
    assert by_hand > 0.1
    for size in (1, 25, 1 << 20):
        monkeypatch.setattr("unseen.totals.SCORES_AT_A_TIME", size)
        np.testing.assert_allclose(problem.violation(state), by_hand)
    exact = Problem(cells, problem_terms(problem), Squared(), total=[Nuclear(0.1), StoredCells()])
    np.testing.assert_allclose(exact.violation(state), np.abs(scores[cells.rows, cells.indices] - 0.5).max())
    wide = Problem(cells, problem_terms(problem), Squared(), total=ScoreBox(scores.min(), scores.max()))
    assert wide.violation(state) < 1e-12
    with pytest.raises(unseen.exceptions.ParameterError, match="lower <= upper"):
        Problem(cells, problem_terms(problem), Squared(), total=ScoreBox(1.0, 0.0)).violation(state)


def problem_terms(problem: Problem) -> list[Term]:
    return [Term(term.row_map, term.col_map, term.core, term.reg) for term in problem.terms]


def test_fits_meet_their_constraints_and_say_how_well() -> None:
    for cls, side in ((ShiftMC, "none"), (ShiftIMC, "both")):
        given = {**START[cls.__name__], "bound": "box", "reg": 2.0}
        loose, tight = ({**given, "max_iter": count, "tol": 1e-7} for count in (2, 3000))
        off = [fitted(cls.__name__, kind, side)[1:] for kind in (loose, tight)]
        violations = [problem.violation(state) for problem, state in off]
        assert violations[1] < 1e-4 < violations[0]
        free, state = fitted(cls.__name__, {**given, "bound": "none"}, side)[1:]
        assert free.violation(state) == 0.0  # nothing is asked, though scores lie outside
        assert scores_of(free, state).max() > 1.01
    _, problem, state = fitted("MixedLinear", {**START["MixedLinear"], "max_iter": 3000, "tol": 1e-8}, "both")
    assert problem.violation(state) < 1e-4
    _, problem, state = fitted("MixedLinear", {**START["MixedLinear"], "max_iter": 2}, "both")
    assert problem.violation(state) > 1e-2


def problems_with_parts() -> dict[str, Problem]:
    rng = np.random.default_rng(1)
    cells = Observations.from_dense(np.where(rng.random((N, M)) < 0.5, rng.standard_normal((N, M)), np.nan))
    one = [Term(core=LowRank(2), reg=Ridge(0.2))]
    sensing = Sensing("rank_one", n_rows=90, weight=0.8, seed=3)
    mixed = [Term(WithOnes(), WithOnes(), Full(), unseen.L1(0.1)), Term(core=Full(), reg=Ridge(1.0))]
    sides = {"row_features": rng.standard_normal((N, D)), "col_features": rng.standard_normal((M, D))}
    return {
        "nuclear": Problem(cells, one, Squared(), total=Nuclear(0.3)),
        "box": Problem(cells, one, Squared(), total=ScoreBox(0.0, 1.0)),
        "boxed-nuclear": Problem(
            cells, [Term(core=Full(), reg=Nuclear(0.2))], Squared(), total=ScoreBox(0.0, 1.0)
        ),
        "stored": Problem(cells, one, Squared(), total=StoredCells()),
        "measured": Problem(cells, one, Squared(1.3), measurement=sensing),
        "soft": Problem(cells, mixed, Squared(3.0), total=Nuclear(0.3), **sides),
        "hard": Problem(cells, mixed, Squared(), total=[Nuclear(0.3), StoredCells()], **sides),
    }


ACCEPTED = {
    "boxed-nuclear": {"BoxedADMM"},
    "measured": {"AlternatingLineSearch"},
    "soft": {"MixedSoft"},
    "hard": {"DavisYin", "MixedADMM"},
}


@pytest.mark.parametrize("case", problems_with_parts())
def test_solvers_that_do_not_take_a_part_refuse_it(case: str) -> None:
    problem = problems_with_parts()[case]
    accepted = set()
    for name, cls in public(solvers, Solver).items():
        solver = cls()
        reason = solver.why_not(problem)
        if reason is None:
            accepted.add(name)
            continue
        assert len(reason) > 20
        rng = np.random.default_rng(0)
        start = problem.start(rng, factored_full=solver.factored_full)
        monitor = solvers.Monitor(2, 0.0, warn=False)
        with pytest.raises(UnsupportedComposition, match="cannot solve this composition"):
            solver.solve(problem, start, rng, monitor)
    assert accepted == ACCEPTED.get(case, set())
    with pytest.raises(UnsupportedComposition, match="no solver takes"):
        choose_solver(problem)


def test_line_search_weighs_a_measurement_as_the_loss_does() -> None:
    problem, rng = problems_with_parts()["measured"], np.random.default_rng(0)
    monitor = solvers.Monitor(8, 0.0, warn=False)
    state = solvers.AlternatingLineSearch().solve(problem, problem.start(rng), rng, monitor)
    reached = [entry["objective"] for entry in monitor.history]
    assert all(after < before for before, after in itertools.pairwise(reached))
    np.testing.assert_allclose(problem.oracle(state), reached[-1], rtol=1e-10)


@pytest.mark.parametrize("kind", ["rank_one", "hashed", "explicit"])
def test_derivatives_through_a_measurement(kind: str) -> None:
    problem = problems_with_parts()["measured"]
    problem.measurement = Sensing(kind, n_rows=90, weight=0.8, gamma=0.05, seed=3)
    rng = np.random.default_rng(2)
    state = problem.start(rng)
    np.testing.assert_allclose(problem.value(state), problem.oracle(state), rtol=1e-12)
    value, gradient = problem.value_and_grad(state, ["0.row", "0.col"])
    np.testing.assert_allclose(value, problem.value(state), rtol=1e-12)
    for key in gradient:
        direction, step = rng.standard_normal(state[key].shape), 1e-5
        ahead, behind = copy_state(state), copy_state(state)
        ahead[key], behind[key] = state[key] + step * direction, state[key] - step * direction
        slope = (problem.value(ahead) - problem.value(behind)) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient[key] * direction), slope, rtol=1e-6)
        assert abs(1.01 * np.sum(gradient[key] * direction) / slope - 1) > 1e-3
    problem.observations = problem.observations.with_weights(np.ones(problem.observations.nnz))
    problem._measured = None
    with pytest.raises(UnsupportedComposition, match="sees no cells"):
        problem.value(state)


def test_cells_that_hold_exactly_have_no_loss_and_no_slope() -> None:
    problem, rng = problems_with_parts()["stored"], np.random.default_rng(4)
    state = {"0.row": rng.standard_normal((N, 2)), "0.col": rng.standard_normal((M, 2))}
    assert problem.data_value(state) == 0.0
    assert not problem.data_grad(state)["0.row"].any()
    np.testing.assert_allclose(problem.value(state), problem.oracle(state), rtol=1e-12)
    problem.total = ()
    assert problem.data_grad(state)["0.row"].any()


def test_models_saved_with_parts_in_the_solver_still_load(tmp_path: Any) -> None:
    import json

    model = MixedLinear(0.3, 2.0, max_iter=3, constraint="hard", max_rank=None, center="none").fit(
        data("MixedLinear", {})
    )
    model.save(tmp_path / "model")
    manifest = tmp_path / "model" / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["sha256"]  # such models had none
    content["format_version"] = 1
    content["model"]["fitted"]["solver_"]["params"]["reg_e"] = 2.0
    manifest.write_text(json.dumps(content))
    with pytest.warns(unseen.exceptions.DataWarning, match="digest"):
        again = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.row_factors_, model.row_factors_)
    content["model"]["fitted"]["solver_"]["params"]["reg_x"] = 2.0
    manifest.write_text(json.dumps(content))
    with pytest.raises(unseen.exceptions.ModelFileError):
        unseen.load(tmp_path / "model")


def test_completion_takes_no_part_by_accident() -> None:
    model = Completion([Term(core=Full(), reg=Nuclear(0.2))], max_iter=3)
    target = data("Completion", {})
    assert (
        model._bind(Observations.from_dense(target), {"row": None, "col": None}, check_rng(0)).problem.total
        == ()
    )


@pytest.mark.parametrize("name", COMPOSED)
def test_single_precision_reports_its_objective_too(name: str) -> None:
    side = "none" if name in (*WITHOUT_FEATURES, "Completion") else "both"
    target = data(name, {}).astype(np.float32)
    model, problem, state = fitted(name, START.get(name, {}), side, target)
    assert model.row_factors_.dtype == np.float32
    np.testing.assert_allclose(reported(model), problem.value(state), rtol=1e-5)
    np.testing.assert_allclose(problem.oracle(state), problem.value(state), rtol=1e-5)
