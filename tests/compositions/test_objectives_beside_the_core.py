"""Completers that are no composition: what ``history_`` reports is their objective, by hand and by a problem.

Together with ``test_whole_objective`` every public completer and every option of its objective is covered.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.special import xlogy

from compositions.test_whole_objective import BESIDE_THE_CORE, COMPLETERS, M, N
from unseen import Box, LowRank, Observations, Ridge, Squared, Term
from unseen.baselines.low_density import guesses
from unseen.problem import Problem

pytestmark = pytest.mark.filterwarnings("ignore")

NEUTRAL = {
    "max_iter", "tol", "random_state", "n_jobs", "verbose", "learning_rate", "momentum", "batch_size",
    "max_levels", "max_dense_cells", "cold", "bias_reg", "n_stages", "clip",
}  # fmt: skip
"""How far and how a model is fitted, what rows without a cell get and what predictions are cut to."""
OPTIONS: dict[str, dict[str, list[Any]]] = {
    "BiasModel": {"reg": [5.0, (0.3, 2.0), 0.1]},
    "LowDensityNMF": {
        "rank": [2],
        "reg": [0.1, 0.0],
        "class_prior": [None, 0.7],
        "temperatures": [(1.0, 0.05), (0.5, 0.5)],
    },
    "MMMF": {"rank": [2], "C": [1.5, 0.4]},
    "NMF": {"rank": [2], "reg": [0.06, 0.7, 0.0]},
    "PMF": {"rank": [2], "reg": [0.3, (0.2, 0.7)], "per": ["cell", "factor"], "solver": ["als", "sgd"]},
}
"""Values of every parameter that belongs to the objective."""


def cells_of(name: str, weighted: bool) -> Observations:
    rng = np.random.default_rng(5)
    values = np.where(rng.random((N, M)) < 0.5, rng.integers(1, 5, (N, M)), np.nan).astype(float)
    if name == "LowDensityNMF":
        return Observations.from_dense(np.where(np.isnan(values), 0.0, 1.0))
    cells = Observations.from_dense(values)
    return cells.with_weights(rng.uniform(0.2, 2.0, cells.nnz)) if weighted else cells


def squares(cells: Observations, scores: np.ndarray) -> float:
    weights = np.ones(cells.nnz) if cells.weights is None else cells.weights
    return float(np.sum(weights * (scores[cells.rows, cells.indices] - cells.values) ** 2))


def bias_model(model: Any, cells: Observations) -> Iterator[float]:
    row, col = model.row_bias_, model.col_bias_
    reg = np.broadcast_to(model.reg, 2)
    scores = model.mean_ + row[:, None] + col
    yield 0.5 * squares(cells, scores) + 0.5 * (reg[0] * row @ row + reg[1] * col @ col)
    problem = model._problem(cells)
    yield problem.value({"0.core": row[:, None], "1.core": col[None, :]})
    yield problem.oracle({"0.core": row[:, None], "1.core": col[None, :]})


def nmf(model: Any, cells: Observations) -> Iterator[float]:
    left, right = model.row_factors_[:, :2], model.col_factors_[:, :2]
    yield squares(cells, left @ right.T) + model.reg * (np.sum(left**2) + np.sum(right**2))
    term = Term(core=LowRank(2), reg=Box(0.0, np.inf, 2.0 * model.reg))
    problem = Problem(cells, [term], Squared(2.0))
    yield problem.value({"0.row": left, "0.col": right})
    yield problem.oracle({"0.row": left, "0.col": right})


def pmf(model: Any, cells: Observations) -> Iterator[float]:
    left, right = model.row_factors_[:, :2], model.col_factors_[:, :2]
    reg = np.broadcast_to(model.reg, 2)
    degrees = [cells.degrees(side) if model.per == "cell" else 1.0 for side in ("row", "col")]
    penalty = sum(
        float(np.sum(weight * size * np.sum(factor**2, axis=1)))
        for weight, size, factor in zip(reg, degrees, (left, right), strict=True)
    )
    yield squares(cells, model.center_ + left @ right.T) + penalty
    if reg[0] == reg[1]:
        ridge = Ridge(2.0 * reg[0], degree_scaling=float(model.per == "cell"))
        centred = cells.with_values(cells.values - model.center_)
        problem = Problem(centred, [Term(core=LowRank(2), reg=ridge)], Squared(2.0))
        yield problem.value({"0.row": left, "0.col": right})
        yield problem.oracle({"0.row": left, "0.col": right})


def mmmf(model: Any, cells: Observations) -> Iterator[float]:
    left, right = model.row_factors_[:, :2], model.col_factors_[:, :2]
    scores = (left @ right.T)[cells.rows, cells.indices]
    weights = np.ones(cells.nnz) if cells.weights is None else cells.weights
    total = 0.5 * (np.sum(left**2) + np.sum(right**2))
    for t, level in enumerate(model.levels_[:-1]):
        z = np.where(cells.values <= level, 1.0, -1.0) * (model.thresholds_[cells.rows, t] - scores)
        hinge = np.where(z <= 0, 0.5 - z, 0.5 * np.maximum(1.0 - z, 0.0) ** 2)
        total += model.C * float(np.sum(weights * hinge))
    yield total


def low_density(model: Any, cells: Observations) -> Iterator[float]:
    """The last sweep's guesses are those before its factors moved; here they are the best for the factors."""
    left, right = model.row_factors_, model.col_factors_
    x, positive = left @ right.T, cells.values.reshape(cells.shape) != 0
    temperature, nu = model.path_[-1]
    q, _ = guesses(x, positive, temperature, model.class_prior_, nu)
    entropy = np.where(positive, 0.0, xlogy(q, q) + xlogy(1 - q, 1 - q))
    size = np.sum(left**2) + np.sum(right**2)
    yield float(np.sum(q * (1 - x) ** 2 + (1 - q) * x**2 + temperature * entropy)) + model.reg * size


OBJECTIVES: dict[str, Callable[[Any, Observations], Iterator[float]]] = {
    "BiasModel": bias_model,
    "LowDensityNMF": low_density,
    "MMMF": mmmf,
    "NMF": nmf,
    "PMF": pmf,
}
CASES = [
    (name, dict(zip(OPTIONS[name], values, strict=True)), weighted)
    for name in OBJECTIVES
    for values in itertools.product(*OPTIONS[name].values())
    for weighted in ((False,) if name == "LowDensityNMF" else (False, True))
]


def test_no_completer_and_no_parameter_is_left_out() -> None:
    assert set(OPTIONS) == BESIDE_THE_CORE == set(OBJECTIVES)
    for name, options in OPTIONS.items():
        parameters = set(inspect.signature(COMPLETERS[name]).parameters)
        assert parameters <= NEUTRAL | set(options), f"{name} has an option that is in no list"
        assert not NEUTRAL & set(options)


@pytest.mark.parametrize(("name", "given", "weighted"), CASES, ids=str)
def test_history_reports_the_objective(name: str, given: dict[str, Any], weighted: bool) -> None:
    cells = cells_of(name, weighted)
    model = COMPLETERS[name](**given)
    settled = name == "LowDensityNMF"  # then the guesses belong to the factors
    model.set_params(**{"max_iter": 4000 if settled else 7, "tol": 1e-14 if settled else 0.0})
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    model.fit(cells)
    reported = model.history_[-1]["objective"]
    for value in OBJECTIVES[name](model, cells):
        np.testing.assert_allclose(reported, value, rtol=1e-6 if settled else 1e-10)
    model.set_params(**{"C" if name == "MMMF" else "reg": 0.9})  # control: another penalty is noticed
    assert not np.isclose(reported, next(OBJECTIVES[name](model, cells)), rtol=1e-6)
