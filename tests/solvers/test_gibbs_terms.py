"""Gibbs sampling of sums of terms: draws of each array against closed forms, and what comes of them."""

from __future__ import annotations

import numpy as np
import pytest

import unseen
from unseen import (
    IMC,
    Completion,
    Constant,
    Full,
    Given,
    Identity,
    LowRank,
    Observations,
    Ordinal,
    Ridge,
    Term,
    WithOnes,
)
from unseen.datasets import make_imc
from unseen.exceptions import NotInductiveError, ParameterError, TooLargeError
from unseen.losses import Squared
from unseen.parallel import one_blas_thread
from unseen.problem import Problem
from unseen.solvers import Gibbs, gibbs_terms
from unseen.solvers.gibbs_terms import TermChain

DRAWS = 4000


def worst_z(draws: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> float:
    """Largest distance of the draws' moments from those given, in standard errors."""
    n = len(draws)
    of_mean = (draws.mean(axis=0) - mean) / np.sqrt(np.diag(cov) / n)
    variances = np.outer(np.diag(cov), np.diag(cov)) + cov**2
    of_cov = (np.cov(draws.T, bias=True).reshape(cov.shape) - cov) / np.sqrt(variances / n)
    return float(max(np.abs(of_mean).max(), np.abs(of_cov).max()))


def two_terms() -> Problem:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((9, 7)) < 0.6, rng.normal(size=(9, 7)), np.nan)
    cells = Observations.from_dense(X)
    cells = cells.with_weights(rng.uniform(0.5, 2.0, cells.nnz))
    terms = [
        Term(Given(), Given(), LowRank(1)),
        Term(Identity(), Identity(), LowRank(1)),
        Term(Given(), Constant(), Full()),
        Term(Constant(), Identity(), Full()),
    ]
    features = rng.normal(size=(9, 3)), rng.normal(size=(7, 2))
    return Problem(cells, terms, Squared(), row_features=features[0], col_features=features[1])


def closed_form(chain: TermChain, block: gibbs_terms._Block) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of one array given all others, from a dense Jacobian."""
    value, problem = chain.state[block.key], chain.problem
    columns = []
    for entry in range(value.size):
        unit = np.zeros(value.size)
        unit[entry] = 1.0
        pair = problem.push(block.key, unit.reshape(value.shape), chain.state)
        columns.append(problem.cell_scores(type(pair)(*map(np.ascontiguousarray, pair))))
    jacobian = np.stack(columns, axis=1)
    # One number for each row where these are drawn, or for each column of a core drawn by columns.
    by_col = block.name == "core" and block.side == "col"
    mean, precision = block.moments(value.shape[0] if by_col else value.shape[1])
    count = value.shape[1] if by_col else value.shape[0]
    prior = np.kron(precision, np.eye(count)) if by_col else np.kron(np.eye(count), precision)
    means = (np.tile(mean[:, None], count) if by_col else np.tile(mean, (count, 1))).ravel()
    weights, alpha = chain.model.curvature, chain.model.alpha
    others = chain.scores - jacobian @ value.ravel()
    a = prior + alpha * jacobian.T @ (weights[:, None] * jacobian)
    b = prior @ means + alpha * jacobian.T @ (weights * (chain.model.target - others))
    return np.linalg.solve(a, b), np.linalg.inv(a)


@pytest.mark.parametrize("planted", [1.0, 1.1])
@pytest.mark.parametrize("place", range(6))
def test_each_array_has_the_closed_form_moments(place, planted, monkeypatch):
    problem = two_terms()
    rng = np.random.default_rng(1)
    normals = TermChain.normals
    if planted != 1.0:
        monkeypatch.setattr(TermChain, "normals", lambda *args: planted * normals(*args))
    with one_blas_thread():
        chain = TermChain(problem, problem.start(rng), rng, diagonal=False)
        chain.sweep()
        chain.model.alpha = 1.7
        block = chain.blocks[place]
        mean, cov = closed_form(chain, block)
        draws = []
        for _ in range(DRAWS):
            chain.number += 1
            if block.side is None:
                found = chain._solved(block, 64)
            else:
                others = chain.scores - chain.parts[block.term.place]
                found = chain._by_row(block, others, 64)
            draws.append(found.ravel())
    z = worst_z(np.array(draws), mean, cov)
    assert z < 4.7 if planted == 1.0 else z > 5


def test_stopping_early_makes_draws_that_are_not_exact(monkeypatch):
    problem = two_terms()
    rng = np.random.default_rng(1)
    chain = TermChain(problem, problem.start(rng), rng, diagonal=False)
    chain.sweep()
    block = next(block for block in chain.blocks if block.side is None)
    exact = chain._solved(block, 64)
    monkeypatch.setattr(gibbs_terms, "CG_TOL", 1e-10)
    np.testing.assert_allclose(chain._solved(block, 64), exact, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(gibbs_terms, "CG_STEPS", 1)
    assert np.abs(chain._solved(block, 64) - exact).max() > 1e-3


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    n, m = 150, 90
    x, y = rng.normal(size=(n, 4)), rng.normal(size=(m, 3))
    scores = x @ rng.normal(size=(4, 2)) @ rng.normal(size=(2, 3)) @ y.T * 0.5
    scores += rng.normal(size=(n, 1)) @ rng.normal(size=(1, m)) + rng.normal(size=m)
    values = scores + 0.5 * rng.normal(size=(n, m))
    return x, y, scores, np.where(rng.random((n, m)) < 0.25, values, np.nan)


TERMS = (
    Term(Given(True), Given(True), LowRank(3), Ridge(1.0)),
    Term(Identity(), Identity(), LowRank(3), Ridge(1.0)),
    Term(Constant(), Identity(), Full(), Ridge(1.0)),
)
OPTIONS = {"random_state": 0, "n_jobs": 1, "center": "mean"}


@pytest.fixture(scope="module")
def model(data):
    x, y, _, X = data
    solver = Gibbs(n_samples=30, burn_in=40)
    return Completion(TERMS, solver=solver, **OPTIONS).fit(X[:130], row_features=x[:130], col_features=y)


def rmse(one, other):
    return float(np.sqrt(np.mean((one - other) ** 2)))


def test_the_average_beats_the_best_point_solution(data, model):
    x, y, scores, X = data
    points = []
    for reg in (0.5, 2.0, 5.0):
        terms = [Term(*term.parts()[:3], Ridge(reg)) for term in TERMS]
        point = Completion(terms, max_iter=200, **OPTIONS)
        points.append(
            rmse(point.fit(X[:130], row_features=x[:130], col_features=y).predict_new(), scores[:130])
        )
    found = model.predict_new()
    assert rmse(found, scores[:130]) < min(points)
    product = model.row_factors_ @ model.col_factors_.T
    np.testing.assert_allclose(found, product)
    assert model.history_[-1]["rhat"] < 1.1


def test_intervals_hold_new_observations(data, model):
    _, _, scores, X = data
    rng = np.random.default_rng(9)
    rows, cols = np.nonzero(np.isnan(X[:130]))
    values = scores[rows, cols] + 0.5 * rng.normal(size=rows.size)
    low, high = model.predict_interval(rows, cols, 0.9).T
    assert abs(np.mean((low <= values) & (values <= high)) - 0.9) < 0.02
    middle, half = (low + high) / 2, (high - low) / 2.3
    assert abs(np.mean(np.abs(values - middle) <= half) - 0.9) > 0.02


def test_new_rows_by_features_and_by_cells(data, model, tmp_path):
    x, _, scores, X = data
    by_features = model.predict_new(row_features=x[130:])
    by_both = model.transform(X[130:], row_features=x[130:])
    assert rmse(by_both, scores[130:]) < rmse(by_features, scores[130:]) < scores.std()
    old = model.transform(X[:20], row_features=x[:20])
    assert rmse(old, model.predict_new()[:20]) < 0.15
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_new(row_features=x[130:]), by_features)
    np.testing.assert_array_equal(loaded.transform(X[130:], row_features=x[130:]), by_both)
    np.testing.assert_array_equal(
        loaded.predict_interval([0, 1], [2, 3]), model.predict_interval([0, 1], [2, 3])
    )


def test_levels_of_sums_of_terms(data):
    x, y, scores, X = data
    levels = np.where(np.isnan(X), np.nan, np.digitize(np.nan_to_num(X), [-1.0, 0.5, 2.0]))
    solver = Gibbs(n_samples=15, burn_in=20)
    model = Completion(TERMS, loss=Ordinal(), solver=solver, random_state=0, n_jobs=1)
    model.fit(levels, row_features=x, col_features=y)
    assert np.corrcoef(model.predict_new().ravel(), scores.ravel())[0, 1] > 0.8
    chances = model.predict_proba([0, 1], [2, 3])
    np.testing.assert_allclose(chances @ model.levels_, model.predict_entries([0, 1], [2, 3]))


def test_purely_by_features():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=(40, 2))
    core = rng.normal(size=(3, 2))
    X = x @ core @ y.T + 0.1 * rng.normal(size=(60, 40))
    terms = [Term(Given(), Given(), Full())]
    model = Completion(terms, solver=Gibbs(20, 10), random_state=0).fit(
        X[:50], row_features=x[:50], col_features=y
    )
    np.testing.assert_allclose(model.predict_new(row_features=x[50:]), x[50:] @ core @ y.T, atol=0.1)
    np.testing.assert_allclose(model.transform(X[50:], row_features=x[50:]), x[50:] @ core @ y.T, atol=0.1)
    with pytest.raises(NotInductiveError):
        model.fold_in(X[50:])


def test_same_bits_for_any_number_of_threads_and_memory_is_refused(data, monkeypatch):
    monkeypatch.setattr("unseen.kernels._arguments.WORK_A_THREAD", 1)
    x, y, _, X = data
    found = [
        Completion(TERMS, solver=Gibbs(3, 2), **(OPTIONS | {"n_jobs": n}))
        .fit(X, row_features=x, col_features=y)
        .row_factors_.tobytes()
        for n in (1, 2, 4)
    ]
    assert found[0] == found[1] == found[2]
    monkeypatch.setattr("unseen.solvers.gibbs_chain.MAX_SAMPLE_BYTES", 10_000)
    with pytest.raises(TooLargeError, match="GiB; at most"):
        Completion(TERMS, solver=Gibbs(3, 2), **OPTIONS).fit(X, row_features=x, col_features=y)


def test_the_recipe_with_features_averages():
    data = make_imc(150, 100, 6, 5, rank=2, density=0.06, noise=0.5, random_state=0)
    cells, held = data.observations, np.arange(data.observations.nnz) % 5 == 0
    sides = {"row_features": data.row_features, "col_features": data.col_features}
    train, test = cells.select(~held), cells.select(held)
    model = IMC(4, solver="gibbs", center="mean", random_state=0).fit(train, **sides)
    point = IMC(4, center="mean", reg=1e-3, random_state=0).fit(train, **sides)
    errors = [rmse(each.predict_entries(test.rows, test.indices), test.values) for each in (model, point)]
    assert errors[0] < errors[1]
    low, high = model.predict_interval(test.rows, test.indices, 0.8).T
    assert abs(np.mean((low <= test.values) & (test.values <= high)) - 0.8) < 0.08
    terms = [Term(WithOnes(True), WithOnes(True), LowRank(4), Ridge(1.0))]
    composed = Completion(terms, solver=Gibbs(), center="mean", random_state=0).fit(train, **sides)
    assert composed.row_factors_.tobytes() == model.row_factors_.tobytes()
    with pytest.raises(ParameterError, match="solver must be"):
        IMC(2, solver="als").fit(train, **sides)
