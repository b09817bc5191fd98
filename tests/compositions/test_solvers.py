"""Every solver on every composition: one table says what it takes; what it takes, it solves."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

from tests.compositions.parts import GRID, LEARNED, LOSSES, SOLVERS, Case, M, covering, make_problem
from tests.compositions.table import PAGE, taken, written
from unseen import LowRank, Observations, Ridge, Squared, Term
from unseen.exceptions import UnsupportedComposition
from unseen.problem import Problem
from unseen.solvers import Monitor, choose_solver
from unseen.state import copy_state

RISES = ("boxed",)
"""Their objective may rise on the way."""


def quietly(method: Any, problem: Problem, state: Any, rng: np.random.Generator, monitor: Monitor) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.solve(problem, state, rng, monitor)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_table_says_what_is_refused(solver: str) -> None:
    method = SOLVERS[solver]
    for case in GRID:
        problem = make_problem(*case)
        reason = method.refuses(problem)
        assert (reason is None) == taken(solver, case), (case, reason)
        assert reason is None or len(reason) > 20


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_refusal_is_an_error_with_the_reason(solver: str) -> None:
    case = next(case for case in GRID if not taken(solver, case))
    problem, method = make_problem(*case), SOLVERS[solver]
    rng = np.random.default_rng(0)
    with pytest.raises(UnsupportedComposition, match="cannot solve"):
        method.solve(problem, problem.start(rng), rng, Monitor(1, 0.0))


SOLVED = [
    (solver, case)
    for solver in SOLVERS
    for case in covering([case for case in GRID if taken(solver, case)], seed=1)
]


@pytest.mark.parametrize(("solver", "case"), SOLVED, ids=[f"{s}-{'-'.join(c)}" for s, c in SOLVED])
def test_what_is_taken_is_solved(solver: str, case: Case) -> None:
    problem, method = make_problem(*case), SOLVERS[solver]
    rng = np.random.default_rng(3)
    state = problem.start(rng, factored_full=method.factored_full)
    before = copy_state(state)
    monitor = Monitor(10, 0.0)
    solved = quietly(method, problem, state, rng, monitor)
    for key, value in before.items():  # the starting point is the caller's
        np.testing.assert_array_equal(state[key], value)
    objectives = [entry["objective"] for entry in monitor.history]
    slack = 1e-9 * abs(objectives[0])
    if solver not in RISES:
        assert all(after <= earlier + slack for earlier, after in itertools.pairwise(objectives))
    # The solver reports the true objective of what it returns.
    np.testing.assert_allclose(problem.oracle(solved), objectives[-1], rtol=1e-8)
    assert np.isfinite(objectives[-1])


def test_some_solver_takes_each_composition() -> None:
    for case in GRID:
        maps, core, _, reg, _ = case
        problem = make_problem(*case)
        if maps in LEARNED and (reg in ("l1", "rows") or (reg, core) == ("nuclear", "full")):
            # What is not smooth is solved by proximal steps, which hold maps fixed.
            with pytest.raises(UnsupportedComposition, match="not smooth"):
                choose_solver(problem)
        else:
            assert choose_solver(problem).refuses(problem) is None


@pytest.mark.slow
@pytest.mark.parametrize("cells", ["plain", "weighted"])
@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_of_one_composition_agree(loss: str, cells: str) -> None:
    """Factored, convex and quasi-Newton solvers reach one optimum of the nuclear-norm problem."""
    reached = {}
    for core, name in (
        ("lowrank", "als"),
        ("lowrank", "ccd"),
        ("lowrank", "cg"),
        ("lowrank", "lbfgs"),
        ("full", "lowrank-prox"),
        ("full", "prox"),
    ):
        problem = make_problem("identity", core, loss, "nuclear", cells)
        if core == "lowrank":
            problem.terms = [problem.terms[0]._replace(core=LowRank(M))]
        method = SOLVERS[name]
        if method.refuses(problem) is not None:
            continue
        rng = np.random.default_rng(5)
        monitor = Monitor(20000, 1e-13)
        quietly(method, problem, problem.start(rng, factored_full=method.factored_full), rng, monitor)
        reached[name] = monitor.history[-1]["objective"]
    assert len(reached) >= 2
    values = np.array(list(reached.values()))
    np.testing.assert_allclose(values, values.min(), rtol=3e-7, err_msg=str(reached))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "popular-target", "biased"])
def test_degree_scaling_by_two_solvers(loss: str) -> None:
    reached = []
    for name in ("als", "cg", "lbfgs"):
        problem = make_problem("identity", "lowrank", loss, "degrees", "weighted")
        problem.terms = [problem.terms[0]._replace(core=LowRank(M))]  # no local minima
        rng = np.random.default_rng(5)
        monitor = Monitor(3000, 1e-13)
        quietly(SOLVERS[name], problem, problem.start(rng), rng, monitor)
        reached.append(monitor.history[-1]["objective"])
    np.testing.assert_allclose(reached, min(reached), rtol=1e-5)


def test_weighted_lambda_by_hand() -> None:
    """With nu = 1 each row of a rank-one fit solves (sum q^2 + reg n) p = sum q x."""
    rng = np.random.default_rng(0)
    cells = Observations.from_dense(np.where(rng.random((9, 7)) < 0.6, rng.standard_normal((9, 7)), np.nan))
    problem = Problem(cells, [Term(core=LowRank(1), reg=Ridge(0.7, degree_scaling=1.0))], Squared())
    state = quietly(SOLVERS["als"], problem, problem.start(rng), rng, Monitor(3, 0.0))
    q, dense = state["0.col"][:, 0], cells.csr.toarray()
    for row in range(9):
        own = cells.indices[cells.indptr[row] : cells.indptr[row + 1]]
        wanted = q[own] @ dense[row, own] / (q[own] @ q[own] + 0.7 * own.size)
        np.testing.assert_allclose(state["0.row"][row, 0], wanted, rtol=1e-9)


def test_the_guide_shows_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "python -m tests.compositions.table writes it"
