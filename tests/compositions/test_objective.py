"""Fast objective and gradient of every composition against naive ones, each with a negative control."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.compositions.parts import (
    CELLS,
    CORES,
    GRID,
    LOSSES,
    MAPS,
    REGULARISERS,
    covering,
    make_problem,
    random_state,
    undefined,
)
from unseen import Observations, Ridge, Squared, Term
from unseen.exceptions import UnsupportedComposition
from unseen.problem import Problem
from unseen.regularisers import Regulariser, Separable
from unseen.state import copy_state


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("maps", MAPS)
def test_value_against_oracle(maps: str, core: str) -> None:
    for loss in LOSSES:
        for reg in REGULARISERS:
            for cells in CELLS:
                problem = make_problem(maps, core, loss, reg, cells)
                if undefined(maps, core, reg):
                    with pytest.raises(UnsupportedComposition, match="degree_scaling"):
                        problem.value(random_state(problem))
                    continue
                state = random_state(problem)
                naive = problem.oracle(state)
                assert abs(naive) > 0.1
                np.testing.assert_allclose(problem.value(state), naive, rtol=1e-11, err_msg=f"{loss} {reg}")


@pytest.mark.parametrize("case", covering(GRID), ids="-".join)
def test_gradient_against_finite_differences(case: tuple[str, ...]) -> None:
    problem = make_problem(*case)
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
        np.testing.assert_allclose(exact, slope, rtol=2e-6, atol=1e-7)
        # Control: a gradient with one sign flipped does not pass.
        wrong = gradient[key].copy()
        wrong.flat[int(np.argmax(np.abs(wrong * direction)))] *= -1
        assert not np.isclose(float(np.sum(wrong * direction)), slope, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("cells", [1, 7, 1 << 18])
@pytest.mark.parametrize("loss", ["background", "popular-target", "biased", "logistic"])
def test_scores_in_parts_give_the_same_value(loss: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem("identity", "lowrank", loss, "ridge", "weighted")
    state = random_state(problem)
    monkeypatch.setattr("unseen.problem.CELLS_OF_SCORES", cells)
    parts = list(problem._parts())
    assert parts[0][0].start == parts[0][1].start == 0
    assert parts[-1][1].stop == problem.observations.nnz
    assert all(a.stop == b.start for part, after in pairwise(parts) for a, b in zip(part, after, strict=True))
    pair = problem.stacked(state)
    whole = problem.data_value_at(pair, problem.cell_scores(pair))
    np.testing.assert_allclose(problem.data_value(state), whole, rtol=1e-12)


@pytest.mark.parametrize("loss", ["background", "popular", "popular-target", "biased", "shifted"])
def test_oracle_catches_stored_cells_left_in_the_background(loss: str) -> None:
    problem = make_problem("identity", "lowrank", loss, "ridge", "weighted")
    state = random_state(problem)
    scores = problem.cell_scores(problem.stacked(state))
    extra = np.broadcast_to(problem.cell_loss.blank_at, scores.shape) * (scores - problem.blank.target) ** 2
    forgotten = problem.value(state) + 0.5 * float(np.sum(extra))
    assert abs(forgotten - problem.oracle(state)) > 1e-3 * abs(problem.oracle(state))


def test_a_cell_of_weight_zero_says_nothing_not_even_that_it_is_blank() -> None:
    """Its value does not matter; a blank cell in its place does."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((6, 5))
    weights = np.ones((6, 5))
    weights[2, 3] = 0.0
    wild, absent = dense.copy(), dense.copy()
    wild[2, 3], absent[2, 3] = 1e6, np.nan
    values = []
    for given, counts in ((dense, weights), (wild, weights), (absent, None)):
        cells = Observations.from_dense(given, weights=counts)
        problem = Problem(cells, [Term()], LOSSES["background"])
        values.append(problem.value(problem.start(np.random.default_rng(1))))
    assert values[0] == values[1] != values[2]


def test_weights_of_two_are_cells_counted_twice() -> None:
    """Repeated cells of a loss without background add up to one cell with their weights."""
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 8, 40), rng.integers(0, 6, 40)
    values, counts = rng.standard_normal(40), rng.uniform(0.5, 2.0, 40)
    with pytest.warns(match="repeat"):
        merged = Observations.from_triples(rows, cols, values, (8, 6), weights=counts)
    problem = Problem(merged, [Term(reg=Ridge(0.0))], Squared())
    state = problem.start(rng)
    scores = (state["0.row"] @ state["0.col"].T)[rows, cols]
    apart = 0.5 * float(np.sum(counts * (scores - values) ** 2))
    # What merging takes away is the spread of repeated values, the same for all scores.
    spread = 0.5 * float(np.sum(counts * values**2)) - 0.5 * float(merged.weights @ merged.values**2)
    np.testing.assert_allclose(problem.value(state) + spread, apart, rtol=1e-12)


def test_separable_prox_is_the_minimiser(rng: np.random.Generator) -> None:
    scaled = Separable(0.7, degree_power=1.0).scaled(rng.uniform(0.5, 3.0, 50))
    for rule in (
        Separable(0.7, 0.3),
        Separable(0.0, 0.5, -0.2, 0.9),
        Separable(1.3, 0.0, 0.0),
        Separable(),
        scaled,
    ):
        z = rng.standard_normal(50)
        step = 0.6
        best = rule.prox(z, step)
        value = 0.5 * np.sum((best - z) ** 2) + step * rule.value(best)
        for _ in range(200):
            other = np.clip(best + 0.1 * rng.standard_normal(50), rule.lower, rule.upper)
            assert 0.5 * np.sum((other - z) ** 2) + step * rule.value(other) >= value - 1e-12


def test_a_penalty_without_its_methods_says_what_is_missing() -> None:
    class Nothing(Regulariser):
        pass

    cells = make_problem("identity", "lowrank", "squared", "ridge").observations
    problem = Problem(cells, [Term(reg=Nothing())], Squared())
    with pytest.raises(UnsupportedComposition, match=r"Nothing has no value\(z\)"):
        problem.value(problem.start(np.random.default_rng(0)))
