"""Every map x core x loss x regulariser x solver: refuse with a reason, or be right.

For each composition: fast objective against the naive oracle over all cells at order-one
scale, gradients against finite differences, monotone descent; each with a negative control.
"""

from __future__ import annotations

import itertools
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from unseen import (
    L1,
    Background,
    Biased,
    Box,
    Fourier,
    Full,
    Given,
    Identity,
    Logistic,
    LowRank,
    NonNegative,
    Nuclear,
    Nystrom,
    Observations,
    Ridge,
    Shifted,
    Squared,
    Tanh,
    Term,
    Whitened,
    WithOnes,
)
from unseen.exceptions import UnsupportedComposition
from unseen.problem import Problem
from unseen.regularisers import Separable
from unseen.solvers import (
    ALS,
    CCD,
    LBFGS,
    AlternatingCG,
    GoalDirected,
    LowRankProx,
    Monitor,
    ProxGradient,
    choose_solver,
)
from unseen.state import copy_state

N, M, D = 14, 11, 4

MAPS = {
    "identity": (Identity(), Identity()),
    "given": (Given(), Given(standardize=True)),
    "given-identity": (Given(), Identity()),
    "ones": (WithOnes(standardize=True), WithOnes()),
    "fourier": (Fourier(3), Fourier(2, gamma=0.5)),
    "nystrom": (Nystrom(4), Nystrom(3, whiten=False)),
    "learned-fourier": (Fourier(3, learnable=True), Fourier(2, gamma=0.5, learnable=True)),
    "learned-nystrom": (Nystrom(4, learnable=True), Nystrom(3, learnable=True, whiten=False)),
    "learned-tanh": (Tanh(3), Identity()),
    "whitened": (Whitened(WithOnes(standardize=True)), Whitened()),
}
CORES = {"lowrank": LowRank(3), "full": Full()}
LOSSES = {
    "squared": Squared(),
    "weighted-background": Squared(weight=1.5, background=Background(0.4, 0.7)),
    "biased": Biased(0.8),
    "shifted": Shifted(0.3),
    "logistic": Logistic(),
}
REGULARISERS = {
    "ridge": Ridge(0.3),
    "nuclear": Nuclear(0.3),
    "l1": L1(0.2),
    "box": Box(-0.5, 0.8, reg=0.1),
    "nonnegative": NonNegative(0.1),
}
SOLVERS = {
    "als": ALS(),
    "als-cg": ALS(method="cg", cg_steps=4),
    "ccd": CCD(),
    "cg": AlternatingCG(),
    "lowrank-prox": LowRankProx(),
    "prox": ProxGradient(),
    "lbfgs": LBFGS(),
    "goal": GoalDirected(start_sweeps=2),
}
GRID = list(itertools.product(MAPS, CORES, LOSSES, REGULARISERS))


def make_problem(maps: str, core: str, loss: str, reg: str, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    stored = rng.random((N, M)) < 0.4
    values = np.where(stored, rng.standard_normal((N, M)) + 0.5, np.nan)
    if loss in ("biased", "shifted"):
        values = np.where(stored, 1.0, np.nan)
    if loss == "logistic":
        values = np.where(stored, values > 0.5, np.nan)
    row_features = rng.standard_normal((N, D))
    col_features = sparse.csr_array(rng.standard_normal((M, D)) * (rng.random((M, D)) < 0.7))
    term = Term(*MAPS[maps], CORES[core], REGULARISERS[reg])
    return Problem(
        Observations.from_dense(values),
        [term],
        LOSSES[loss],
        row_features=row_features,
        col_features=col_features,
    )


def random_state(problem: Problem, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    state = problem.start(rng)
    for key in problem.blocks(state):
        # Inside every bound of the list, at order-one scale.
        state[key] = rng.uniform(0.05, 0.75, state[key].shape)
    return state


@pytest.mark.parametrize(("maps", "core", "loss", "reg"), GRID)
def test_value_against_oracle(maps: str, core: str, loss: str, reg: str) -> None:
    problem = make_problem(maps, core, loss, reg)
    state = random_state(problem)
    naive = problem.oracle(state)
    assert abs(naive) > 0.1
    np.testing.assert_allclose(problem.value(state), naive, rtol=1e-12)


@pytest.mark.parametrize("cells", [1, 7, 1 << 18])
@pytest.mark.parametrize("loss", ["weighted-background", "biased", "shifted"])
def test_scores_in_parts_give_the_same_value(loss: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem("identity", "lowrank", loss, "ridge")
    state = random_state(problem)
    monkeypatch.setattr("unseen.problem.CELLS_OF_SCORES", cells)
    parts = list(problem._parts())
    assert parts[0][0].start == parts[0][1].start == 0
    assert parts[-1][1].stop == problem.observations.nnz
    assert all(a.stop == b.start for part, after in pairwise(parts) for a, b in zip(part, after, strict=True))
    pair = problem.stacked(state)
    whole = problem.data_value_at(pair, problem.cell_scores(pair))
    np.testing.assert_allclose(problem.data_value(state), whole, rtol=1e-12)


@pytest.mark.parametrize("loss", ["weighted-background", "biased", "shifted"])
def test_oracle_catches_stored_cells_left_in_the_background(loss: str) -> None:
    problem = make_problem("identity", "lowrank", loss, "ridge")
    state = random_state(problem)
    weight, target = problem.loss.blank()
    scores = problem.cell_scores(problem.stacked(state))
    forgotten = problem.value(state) + 0.5 * weight * float(np.sum((scores - target) ** 2))
    assert abs(forgotten - problem.oracle(state)) > 1e-3 * abs(problem.oracle(state))


@pytest.mark.parametrize(("maps", "core", "loss", "reg"), GRID)
def test_gradient_against_finite_differences(maps: str, core: str, loss: str, reg: str) -> None:
    problem = make_problem(maps, core, loss, reg)
    state = random_state(problem)
    rng = np.random.default_rng(2)
    gradient = problem.data_grad(state)
    for key in problem.blocks(state):
        direction = rng.standard_normal(state[key].shape)
        step = 1e-5
        ahead, behind = copy_state(state), copy_state(state)
        ahead[key] = state[key] + step * direction
        behind[key] = state[key] - step * direction
        slope = (problem.data_value(ahead) - problem.data_value(behind)) / (2 * step)
        exact = float(np.sum(gradient[key] * direction))
        np.testing.assert_allclose(exact, slope, rtol=1e-6, atol=1e-7)
        # Control: a gradient with one sign flipped does not pass.
        wrong = gradient[key].copy()
        wrong.flat[int(np.argmax(np.abs(wrong * direction)))] *= -1
        assert not np.isclose(float(np.sum(wrong * direction)), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("maps", "core", "loss", "reg"), GRID)
@pytest.mark.parametrize("solver", SOLVERS)
def test_solver_refuses_or_descends(maps: str, core: str, loss: str, reg: str, solver: str) -> None:
    problem = make_problem(maps, core, loss, reg)
    method = SOLVERS[solver]
    rng = np.random.default_rng(3)
    state = problem.start(rng, factored_full=method.factored_full)
    reason = method.refuses(problem)
    monitor = Monitor(12, 0.0)
    if reason is not None:
        assert len(reason) > 20
        with pytest.raises(UnsupportedComposition, match="cannot solve"):
            method.solve(problem, state, rng, monitor)
        return
    before = copy_state(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solved = method.solve(problem, state, rng, monitor)
    for key, value in before.items():  # the starting point is the caller's
        np.testing.assert_array_equal(state[key], value)
    objectives = [entry["objective"] for entry in monitor.history]
    slack = 1e-10 * abs(objectives[0])
    assert all(after <= earlier + slack for earlier, after in itertools.pairwise(objectives))
    # The solver reports the true objective of what it returns.
    np.testing.assert_allclose(problem.oracle(solved), objectives[-1], rtol=1e-9)
    assert np.isfinite(objectives[-1])


@pytest.mark.parametrize(("maps", "core", "loss", "reg"), GRID)
def test_some_solver_takes_each_composition(maps: str, core: str, loss: str, reg: str) -> None:
    problem = make_problem(maps, core, loss, reg)
    if maps.startswith("learned") and (reg == "l1" or (reg, core) == ("nuclear", "full")):
        # What is not smooth is solved by proximal steps, which hold maps fixed.
        with pytest.raises(UnsupportedComposition, match="not smooth"):
            choose_solver(problem)
        return
    assert choose_solver(problem).refuses(problem) is None


@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_of_one_composition_agree(loss: str) -> None:
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
        problem = make_problem("identity", core, loss, "nuclear")
        if core == "lowrank":
            problem.terms = [problem.terms[0]._replace(core=LowRank(M))]
        method = SOLVERS[name]
        if method.refuses(problem) is not None:
            continue
        rng = np.random.default_rng(5)
        monitor = Monitor(20000, 1e-13)
        state = problem.start(rng, factored_full=method.factored_full)
        method.solve(problem, state, rng, monitor)
        reached[name] = monitor.history[-1]["objective"]
    assert len(reached) >= 2
    values = np.array(list(reached.values()))
    np.testing.assert_allclose(values, values.min(), rtol=2e-7, err_msg=str(reached))


def test_separable_prox_is_the_minimiser(rng: np.random.Generator) -> None:
    for rule in (Separable(0.7, 0.3), Separable(0.0, 0.5, -0.2, 0.9), Separable(1.3, 0.0, 0.0), Separable()):
        z = rng.standard_normal(50)
        step = 0.6
        best = rule.prox(z, step)
        value = 0.5 * np.sum((best - z) ** 2) + step * rule.value(best)
        for _ in range(200):
            other = np.clip(best + 0.1 * rng.standard_normal(50), rule.lower, rule.upper)
            assert 0.5 * np.sum((other - z) ** 2) + step * rule.value(other) >= value - 1e-12
