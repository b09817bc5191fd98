"""Biases that are learned with the factors: the composition, its solver and what follows for the model."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unseen
from unseen import (
    Background,
    BiasModel,
    Completion,
    Constant,
    Full,
    Identity,
    LowRank,
    MatrixFactorization,
    Nuclear,
    Observations,
    Ridge,
    Squared,
    Term,
)
from unseen.diagnostics import identifiability
from unseen.exceptions import ParameterError, UnsupportedComposition
from unseen.offsets import bias_objective, bias_sweeps, fit_offsets
from unseen.problem import Pair, Problem
from unseen.solvers import ALS, CCD, LBFGS, AlternatingCG, Monitor, Solver, choose_solver
from unseen.solvers.biases import BiasSweeps

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, M, RANK = 30, 22, 2
REG, ROW_REG, COL_REG = 0.6, 1.5, 0.8
LOSSES = {
    "squared": Squared(),
    "weighted": Squared(weight=1.7),
    "background": Squared(background=Background(weight=0.3, target=0.4)),
}


def ratings(seed: int = 0, share: float = 0.5, dtype: Any = np.float64) -> np.ndarray:
    """Strong biases, a low-rank part and noise."""
    rng = np.random.default_rng(seed)
    full = rng.standard_normal((N, RANK)) @ rng.standard_normal((RANK, M)) + 3.0
    full += 2.0 * rng.standard_normal((N, 1)) + 1.5 * rng.standard_normal((1, M))
    full += 0.3 * rng.standard_normal((N, M))
    return np.where(rng.random((N, M)) < share, full, np.nan).astype(dtype)


def bias_terms(row: bool = True, col: bool = True) -> list[Term]:
    terms = [Term(core=LowRank(RANK), reg=Ridge(REG))]
    if row:
        terms.append(Term(Identity(), Constant(), Full(), Ridge(ROW_REG)))
    if col:
        terms.insert(0, Term(Constant(), Identity(), Full(), Ridge(COL_REG)))  # order must not matter
    return terms


def solved(
    problem: Problem, solver: Solver, sweeps: int, seed: int = 0
) -> tuple[dict[str, Any], list[float]]:
    rng = np.random.default_rng(seed)
    monitor = Monitor(sweeps, 0.0)
    state = solver.solve(problem, problem.start(rng), rng, monitor)
    return state, [entry["objective"] for entry in monitor.history]


@pytest.mark.parametrize("method", ["cholesky", "cg"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("row", "col"), [(True, True), (True, False), (False, True)])
def test_sweeps_descend_and_report_the_true_objective(loss: str, row: bool, col: bool, method: Any) -> None:
    problem = Problem(Observations.from_dense(ratings()), bias_terms(row, col), LOSSES[loss])
    state, objectives = solved(problem, ALS(method=method), 12)
    assert all(b <= a + 1e-10 * a for a, b in itertools.pairwise(objectives))
    np.testing.assert_allclose(objectives[-1], problem.oracle(state), rtol=1e-10)
    # Control: the oracle sees a bias that was left out.
    key = "0.core" if col else "1.core"
    assert problem.oracle({**state, key: 0 * state[key]}) > 1.001 * objectives[-1]


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_are_at_their_exact_optimum(loss: str) -> None:
    """After a sweep the gradient by the rows' factors and biases is zero, by finite differences too."""
    problem = Problem(Observations.from_dense(ratings()), bias_terms(), LOSSES[loss])
    state, _ = solved(problem, ALS(), 3)
    gradient = problem.grad(state)
    for key in ("1.row", "2.core"):
        np.testing.assert_allclose(gradient[key], 0.0, atol=1e-9)
    assert np.abs(gradient["1.col"]).max() > 1e-3  # control: columns were solved before the rows moved
    rng = np.random.default_rng(1)
    for key in ("0.core", "1.col"):
        direction = rng.standard_normal(state[key].shape)
        ahead, behind = ({**state, key: state[key] + step * direction} for step in (1e-5, -1e-5))
        slope = (problem.oracle(ahead) - problem.oracle(behind)) / 2e-5
        np.testing.assert_allclose(float(np.sum(gradient[key] * direction)), slope, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_solvers_agree(loss: str) -> None:
    """At full rank the factored problem has no bad optima: general solvers end where ALS does."""
    terms = bias_terms()
    terms[1] = Term(core=LowRank(M), reg=Nuclear(6.0))
    reached = []
    for solver in (ALS(), AlternatingCG(), LBFGS()):
        problem = Problem(Observations.from_dense(ratings()), terms, LOSSES[loss])
        assert solver.refuses(problem) is None
        rng, monitor = np.random.default_rng(2), Monitor(1000, 1e-9)
        solver.solve(problem, problem.start(rng), rng, monitor)
        reached.append(monitor.history[-1]["objective"])
    np.testing.assert_allclose(reached, min(reached), rtol=1e-4)


def test_who_takes_biases() -> None:
    problem = Problem(Observations.from_dense(ratings()), bias_terms(), Squared())
    assert isinstance(choose_solver(problem), ALS)
    assert "one term" in str(CCD().refuses(problem))
    twice = [*bias_terms(), Term(Identity(), Constant(), Full(), Ridge(1.0))]
    assert "one term" in str(ALS().refuses(Problem(problem.observations, twice, Squared())))
    norm = [*bias_terms(row=False), Term(Identity(), Constant(), Full(), Nuclear(1.0))]
    assert ALS().refuses(Problem(problem.observations, norm, Squared())) is not None
    only = Problem(problem.observations, [Term(Identity(), Constant(), Full(), Ridge(1.0))], Squared())
    assert ALS().refuses(only) is not None


def test_model_is_the_composition() -> None:
    X = ratings()
    model = MatrixFactorization(
        RANK, reg=REG, center="joint", bias_reg=(ROW_REG, COL_REG), random_state=0, max_iter=20
    ).fit(X)
    parts = Completion(bias_terms(), center="mean", random_state=0, max_iter=20).fit(X)
    assert abs(model.history_[-1]["objective"] / parts.history_[-1]["objective"] - 1) < 1e-2
    # The objective of the docstring, from the factors alone.
    u, b, v, c = (
        model.row_factors_[:, :RANK], model.row_factors_[:, RANK],
        model.col_factors_[:, :RANK], model.col_factors_[:, RANK + 1],
    )  # fmt: skip
    residual = np.where(np.isnan(X), 0.0, X - np.nanmean(X) - b[:, None] - c - u @ v.T)
    value = 0.5 * np.sum(residual**2) + 0.5 * REG * (np.sum(u**2) + np.sum(v**2))
    value += 0.5 * (ROW_REG * b @ b + COL_REG * c @ c)
    np.testing.assert_allclose(model.history_[-1]["objective"], value, rtol=1e-9)


def test_joint_is_below_biases_first() -> None:
    """Under one objective the joint optimum is not above that of biases first, and here well below."""
    X = ratings(share=0.3)
    common: dict[str, Any] = {"reg": 1.0, "bias_reg": 1.0, "random_state": 0, "max_iter": 300, "tol": 1e-10}
    joint = MatrixFactorization(RANK, center="joint", **common).fit(X)
    first = MatrixFactorization(RANK, center="biases", **common).fit(X)
    offsets = first.offsets_
    assert offsets.row is not None
    assert offsets.col is not None
    extra = 0.5 * float(offsets.row @ offsets.row + offsets.col @ offsets.col)
    assert joint.history_[-1]["objective"] < 0.99 * (first.history_[-1]["objective"] + extra)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_biases_first_are_those_of_plain_sums(dtype: Any) -> None:
    """The sweeps that work on sums, against the same written with all cells at hand."""
    X = ratings(share=0.3, dtype=dtype)
    X[3], X[:, 5] = np.nan, np.nan  # nothing known: bias zero
    known, filled = ~np.isnan(X), np.nan_to_num(X.astype(np.float64))
    cells = Observations.from_dense(X)
    mean = filled.sum() / known.sum()
    row, col = np.zeros(N), np.zeros(M)
    sweeps = bias_sweeps(cells, ROW_REG, COL_REG)
    for _ in range(6):
        found = next(sweeps)
        col = np.where(known, filled - mean - row[:, None], 0.0).sum(0) / (known.sum(0) + COL_REG)
        row = np.where(known, filled - mean - col, 0.0).sum(1) / (known.sum(1) + ROW_REG)
        assert found.row is not None
        assert found.col is not None
        np.testing.assert_allclose(found.row, row, atol=1e-12)
        np.testing.assert_allclose(found.col, col, atol=1e-12)
        left = np.where(known, filled - mean - row[:, None] - col, 0.0)
        value = 0.5 * (np.sum(left**2) + ROW_REG * row @ row + COL_REG * col @ col)
        np.testing.assert_allclose(bias_objective(cells, found), value, rtol=1e-12)
    assert found.row[3] == found.col[5] == 0.0
    next(twice := bias_sweeps(cells, ROW_REG, COL_REG))
    assert not np.allclose(next(twice).row, row, atol=1e-6)  # control: two sweeps are not six
    np.testing.assert_array_equal(
        fit_offsets(cells, "biases", n_threads=3).row, fit_offsets(cells, "biases").row
    )


def test_fold_in_is_a_refit_of_the_row() -> None:
    X = ratings()
    model = MatrixFactorization(RANK, center="joint", random_state=0, reg=1.0).fit(X)
    np.testing.assert_allclose(model.fold_in(X[4:9]), model.row_factors_[4:9], atol=1e-10)
    # A new row: its own ridge regression on [v_j, 1].
    new = np.full((1, M), np.nan)
    new[0, :6] = [5.0, 1.0, 4.0, 2.0, 2.5, 3.0]
    folded = model.fold_in(new)[0]
    design = np.column_stack([model.col_factors_[:6, :RANK], np.ones(6)])
    left = new[0, :6] - model.offsets_.mean - model.col_factors_[:6, RANK + 1]
    expected = np.linalg.solve(design.T @ design + np.diag([1.0] * RANK + [5.0]), design.T @ left)
    np.testing.assert_allclose(folded[: RANK + 1], expected, rtol=1e-9)
    wrong = np.linalg.solve(design.T @ design + np.eye(RANK + 1), design.T @ left)  # one ridge for all
    assert not np.allclose(folded[: RANK + 1], wrong, rtol=1e-3)
    # A row without cells is predicted by mean and column biases.
    empty = model.fold_in(np.full((1, M), np.nan)) @ model.col_factors_.T
    np.testing.assert_allclose(empty[0], model.offsets_.mean + model.col_factors_[:, RANK + 1], rtol=1e-12)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 100))
def test_order_of_rows_and_columns_does_not_matter(seed: int) -> None:
    """From a start that goes with the rows, permuted data gives the permuted model."""
    rng = np.random.default_rng(seed)
    X = ratings(seed)
    rows, cols = rng.permutation(N), rng.permutation(M)
    cells, turned = Observations.from_dense(X), Observations.from_dense(X[rows][:, cols])
    problem, other = (Problem(seen, bias_terms(), Squared()) for seen in (cells, turned))
    start = problem.start(rng)
    moved = dict(start)
    moved["1.row"], moved["1.col"] = start["1.row"][rows], start["1.col"][cols]
    ends = []
    for task, begin in ((problem, start), (other, moved)):
        monitor = Monitor(5, 0.0)
        ends.append(ALS().solve(task, begin, rng, monitor))
    np.testing.assert_allclose(ends[1]["2.core"], ends[0]["2.core"][rows], atol=1e-8)
    np.testing.assert_allclose(ends[1]["0.core"], ends[0]["0.core"][:, cols], atol=1e-8)


def test_warm_start_and_file(tmp_path: Any) -> None:
    X = ratings(dtype=np.float32)
    model = MatrixFactorization(
        RANK, center="joint", random_state=0, warm_start=True, max_iter=5, tol=0.0, reg=1.0
    ).fit(X)
    before = model.history_[-1]["objective"]
    model.fit(X)
    assert model.history_[0]["objective"] <= before * (1 + 1e-6)
    assert model.row_factors_.dtype == model.col_factors_.dtype == np.float32
    model.save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.fold_in(X), model.fold_in(X))


def test_spread_of_predictions() -> None:
    """By curvature; in a model of biases alone it is what the biases' systems say."""
    X = ratings(share=0.4)
    model = MatrixFactorization(1, reg=1e6, center="joint", bias_reg=2.0, random_state=0).fit(X)
    found = identifiability(model, [0, 3], [1, 2])
    assert found.method == "curvature"
    known = ~np.isnan(X)
    expected = 1 / (known.sum(1)[[0, 3]] + 2.0) + 1 / (known.sum(0)[[1, 2]] + 2.0)
    np.testing.assert_allclose(found.std**2 / found.noise**2, expected, rtol=1e-3)


def test_a_model_that_is_not_used_lets_its_data_go() -> None:
    """Without the garbage collector: repeated fits must not pile up training data."""
    gc.disable()
    try:
        cells = Observations.from_dense(ratings())
        model = MatrixFactorization(RANK, center="joint", random_state=0, reg=1.0).fit(cells)
        kept, data = weakref.ref(model), weakref.ref(model._spread.data.cells)
        assert identifiability(model, [0], [1]).std[0] > 0
        del model
        assert kept() is None
        assert data() is None
    finally:
        gc.enable()


def test_validation_cells_see_the_biases() -> None:
    X = ratings(share=0.7)
    model = MatrixFactorization(
        RANK, center="joint", validation_fraction=0.2, random_state=0, max_iter=30, reg=1.0
    ).fit(X)
    errors = [entry["validation"] for entry in model.history_]
    assert min(errors) < 0.6 * np.nanstd(X)


def test_start_from_singular_vectors() -> None:
    """Two sweeps from there beat three from random factors, by far, with and without biases."""
    rng = np.random.default_rng(3)
    full = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 200)) + rng.standard_normal((300, 1))
    X = np.where(rng.random(full.shape) < 0.15, full + 0.5 * rng.standard_normal(full.shape), np.nan)
    for center in ("none", "joint"):
        common: dict[str, Any] = {"reg": 1.0, "center": center, "tol": 0.0, "random_state": 0}
        ours = MatrixFactorization(4, init="svd", max_iter=2, **common).fit(X).history_[-1]["objective"]
        random = MatrixFactorization(4, max_iter=3, **common).fit(X).history_[-1]["objective"]
        best = MatrixFactorization(4, max_iter=100, **common).fit(X).history_[-1]["objective"]
        assert ours - best < 0.4 * (random - best)


@pytest.mark.parametrize(
    "X",
    [
        np.full((6, 5), 2.0),
        np.where(np.eye(7, 4) > 0, 1.0, np.nan),
        np.outer([1.0, 2.0, 3.0], [1.0, np.nan, 4.0]),
    ],
)
@pytest.mark.parametrize("center", ["none", "mean", "joint"])
def test_start_where_little_is_known(X: np.ndarray, center: str) -> None:
    """Constant, nearly empty, and of lower rank than the model."""
    model = MatrixFactorization(6, init="svd", center=center, random_state=0, reg=1.0).fit(X)
    assert np.isfinite(model.row_factors_).all()
    assert np.isfinite(model.transform(X)).all()


def test_start_takes_memory_for_cells_alone() -> None:
    """A hundred columns' width of rows x columns would show at once."""
    rng = np.random.default_rng(0)
    n, m, count = 30_000, 20_000, 100_000
    cells = Observations.from_triples(
        rng.integers(0, n, count),
        rng.integers(0, m, count),
        rng.standard_normal(count).astype(np.float32),
        (n, m),
    )
    model = MatrixFactorization(8, init="svd", center="joint", max_iter=1, random_state=0, n_jobs=1, reg=1.0)
    tracemalloc.start()
    model.fit(cells)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6 < n * m  # a matrix of bytes would be 600 MB


def test_what_is_refused() -> None:
    X = ratings()
    with pytest.raises(ParameterError, match=r"center='joint' needs .* or 'gibbs', got solver='ccd'"):
        MatrixFactorization(2, center="joint", solver="ccd", reg=1.0).fit(X)
    with pytest.raises(ParameterError, match=r"center must be .*'joint'.* got 'both'"):
        MatrixFactorization(2, center="both", reg=1.0).fit(X)
    with pytest.raises(ParameterError, match="center"):
        unseen.SoftImpute(center="joint", reg=1.0, max_rank=None).fit(X)
    with pytest.raises(ParameterError, match="init must be"):
        MatrixFactorization(2, init="ones", reg=1.0, center="none").fit(X)
    with pytest.raises(ParameterError, match="bias_reg"):
        MatrixFactorization(2, center="joint", bias_reg=-1.0, reg=1.0).fit(X)
    with pytest.raises(UnsupportedComposition, match="cannot solve"):
        Completion(bias_terms(), solver=CCD()).fit(X)


# -- biases alone ----------------------------------------------------------------------------------------

ROW_BIAS = Term(Identity(), Constant(), Full(), Ridge(ROW_REG))
COL_BIAS = Term(Constant(), Identity(), Full(), Ridge(COL_REG))


@pytest.mark.parametrize("weighted", [False, True])
def test_bias_model_is_a_composition_of_two_biases(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((N, M)) < 0.4, rng.integers(1, 6, (N, M)), np.nan)
    weights = rng.choice([0.0, 0.5, 2.0], (N, M)) if weighted else None
    cells = Observations.from_dense(dense, weights=weights)
    model = BiasModel((ROW_REG, COL_REG), max_iter=1000, tol=1e-14).fit(cells)
    problem = model._problem(cells)
    state = {"0.core": model.offsets_.row[:, None], "1.core": model.offsets_.col[None]}
    assert model.history_[-1]["objective"] == pytest.approx(problem.value(state), rel=1e-12)
    assert problem.value(state) == pytest.approx(problem.oracle(state), rel=1e-12)
    assert all(np.abs(slope).max() < 1e-4 for slope in problem.grad(state).values())
    same = Completion([ROW_BIAS, COL_BIAS], center="mean", max_iter=1000, tol=1e-14, random_state=0).fit(
        cells
    )
    np.testing.assert_allclose(same.predict_new(), model.predict_new(), atol=1e-5)


@pytest.mark.parametrize(
    ("terms", "loss", "known"),
    [
        ([ROW_BIAS], Squared(), None),
        ([ROW_BIAS, COL_BIAS, Term(core=LowRank(1))], Squared(), None),
        ([ROW_BIAS, COL_BIAS], Squared(2.0), None),
        ([ROW_BIAS, COL_BIAS], Squared(background=Background()), None),
        ([ROW_BIAS, Term(Constant(), Identity(), Full(), Ridge(1.0, degree_scaling=1.0))], Squared(), None),
        ([ROW_BIAS, COL_BIAS], Squared(), Pair(np.arange(3.0)[:, None], np.ones((2, 1)))),
    ],
)
def test_sweeps_of_biases_are_for_biases_alone(terms: Any, loss: Any, known: Any) -> None:
    cells = Observations.from_dense(np.arange(6.0).reshape(3, 2))
    assert BiasSweeps().refuses(Problem(cells, terms, loss, known=known)) is not None
    assert BiasSweeps().refuses(Problem(cells, [ROW_BIAS, COL_BIAS], Squared())) is None
