"""Coordinate descent where stored and blank cells weigh the same."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unseen import L1, Background, Box, Completion, LowRank, NonNegative, Observations, Ridge, Squared, Term
from unseen.problem import Problem
from unseen.solvers import CCD
from unseen.solvers.base import Monitor

REGS = [Ridge(0.3), L1(0.2), NonNegative(0.0), NonNegative(0.5), Box(-0.6, 1.2)]


def make(reg: Any, target: float, weight: float = 1.0, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    cells = Observations.from_sparse(sparse.random_array((9, 7), density=0.4, rng=rng, format="csr"))
    loss = Squared(weight, background=Background(1.0, target))
    return Problem(cells, [Term(core=LowRank(3), reg=reg)], loss)


def naive_side(own: Any, other: Any, dense: Any, penalty: Any, bounds: tuple[float, float]) -> Any:
    """One coordinate of one row after the other, each at the best of many values."""
    out = own.copy()
    for i, place in itertools.product(range(own.shape[0]), range(own.shape[1])):

        def objective(value: float, i: int = i, place: int = place) -> float:
            row = out[i].copy()
            row[place] = value
            return 0.5 * float(np.sum((row @ other.T - dense[i]) ** 2)) + penalty(np.array([[value]]))

        if not other[:, place].any() and objective(0.1) == objective(0.2):  # all values are as good
            out[i, place] = np.clip(out[i, place], *bounds)
            continue
        low, high = -6.0, 6.0
        for _ in range(5):  # a convex function of one number: look closer around the best
            tried = np.linspace(low, high, 401)
            best = tried[int(np.argmin([objective(value) for value in tried]))]
            low, high = best - (high - low) / 200, best + (high - low) / 200
        out[i, place] = best
    return out


@pytest.mark.parametrize("target", [0.0, 0.3])
@pytest.mark.parametrize("reg", REGS, ids=repr)
def test_every_coordinate_goes_to_its_minimum(reg: Any, target: float) -> None:
    problem = make(reg, target)
    rng = np.random.default_rng(1)
    start = problem.start(rng)
    dense = np.full(problem.observations.shape, target)
    cells = problem.observations
    dense[cells.rows, cells.indices] = cells.values
    rule = reg.factored()
    given = (rule.value, (rule.lower, rule.upper))
    cols = naive_side(start["0.col"], start["0.row"], dense.T, *given)
    rows = naive_side(start["0.row"], cols, dense, *given)
    found = next(CCD().sweeps(problem, start, rng)).state
    np.testing.assert_allclose(found["0.col"], cols, atol=1e-6)
    np.testing.assert_allclose(found["0.row"], rows, atol=1e-6)
    # Control: with another target the coordinates go elsewhere.
    other = next(CCD().sweeps(make(reg, target + 0.5), start, rng)).state
    assert not np.allclose(other["0.row"], rows, atol=1e-3)


@pytest.mark.parametrize("target", [0.0, 0.3])
@pytest.mark.parametrize("reg", REGS, ids=repr)
def test_the_objective_is_true_and_never_rises(reg: Any, target: float) -> None:
    problem = make(reg, target)
    rng = np.random.default_rng(2)
    monitor = Monitor(30, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thirty sweeps, however far they get
        solved = CCD().solve(problem, problem.start(rng), rng, monitor)
    objectives = [entry["objective"] for entry in monitor.history]
    assert all(b <= a + 1e-12 * abs(a) for a, b in itertools.pairwise(objectives))
    np.testing.assert_allclose(objectives[-1], problem.oracle(solved), rtol=1e-10)


def test_it_is_the_limit_of_unequal_weights() -> None:
    """The general sweep, with weights that nearly agree, ends at the same objective."""
    ends = []
    for weight in (1.0, 1.0 + 1e-9):
        problem = make(NonNegative(0.1), 0.0, weight)
        rng = np.random.default_rng(3)
        monitor = Monitor(3000, 1e-13)
        CCD().solve(problem, problem.start(rng), rng, monitor)
        ends.append(monitor.history[-1]["objective"])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
def test_the_same_bits_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(4)
    X = sparse.random_array((6000, 50), density=0.05, rng=rng, format="csr")
    fits = [
        Completion(
            [Term(core=LowRank(4), reg=NonNegative(0.0))],
            loss=Squared(background=Background(1.0, 0.0)),
            solver=CCD(),
            max_iter=3,
            tol=0.0,
            random_state=0,
            n_jobs=n_jobs,
        ).fit(X)
        for n_jobs in (1, 2, 3)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.row_factors_, fits[0].row_factors_)
