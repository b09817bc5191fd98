"""Gibbs sampling: draws against closed forms, the chain against its own prior, bits, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

from unseen import (
    BayesianMF,
    Completion,
    Constant,
    Full,
    Identity,
    LowRank,
    MatrixFactorization,
    Observations,
    Tanh,
    Term,
    kernels,
)
from unseen.exceptions import ParameterError, TooLargeError, UnsupportedComposition
from unseen.linalg.designs import CentredDesign, DenseDesign, SparseDesign
from unseen.linalg.normal_draws import RidgeDraws, wishart
from unseen.losses import Background, Logistic, Squared
from unseen.parallel import one_blas_thread
from unseen.regularisers import L1, Ridge
from unseen.solvers import Gibbs
from unseen.solvers.gibbs_chain import Chain
from unseen.solvers.gibbs_noise import VaryingNoise
from unseen.solvers.gibbs_prior import SPREAD, SidePrior
from unseen.solvers.mixing import effective_samples, split_rhat

DRAWS = 20_000


@pytest.fixture(autouse=True)
def _one_blas_thread():
    with one_blas_thread():  # the matrices are tiny
        yield


def worst_z(draws: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> float:
    """Largest distance of the draws' moments from those given, in standard errors."""
    n = len(draws)
    of_mean = (draws.mean(axis=0) - mean) / np.sqrt(np.diag(cov) / n)
    found = np.cov(draws.T, bias=True).reshape(cov.shape)
    variances = np.outer(np.diag(cov), np.diag(cov)) + cov**2
    return float(max(np.abs(of_mean).max(), (np.abs(found - cov) / np.sqrt(variances / n)).max()))


@pytest.mark.parametrize("planted", [1.0, 1.1])
def test_row_draws_have_the_closed_form_moments(planted):
    rng = np.random.default_rng(0)
    k, n_cells = 3, 5
    q, target, weight = rng.normal(size=(n_cells, k)), rng.normal(size=n_cells), rng.uniform(0.5, 2, n_cells)
    precision, mean, shift = wishart(6.0, np.eye(k), rng), rng.normal(size=k), rng.normal(size=n_cells)
    # The same row DRAWS times: rows differ in their numbers only.
    indptr = np.arange(DRAWS + 1) * n_cells
    indices = np.tile(np.arange(n_cells), DRAWS)
    noise = planted * kernels.normals((DRAWS, k), seed=3, sweep=1, block=0)
    draws = kernels.als_draw(
        indptr,
        indices,
        np.tile(weight, DRAWS),
        np.tile(weight * target, DRAWS),
        q,
        precision,
        noise,
        np.empty((DRAWS, k)),
        offset=np.tile(precision @ mean, (DRAWS, 1)),
        shift=shift,
    )
    a = precision + q.T @ (weight[:, None] * q)
    b = precision @ mean + q.T @ (weight * (target - shift))
    z = worst_z(draws, np.linalg.solve(a, b), np.linalg.inv(a))
    assert z < 4.5 if planted == 1.0 else z > 8


@pytest.mark.parametrize("planted", [1.0, 1.1])
@pytest.mark.parametrize("form", ["direct", "dual", "cg", "centred"])
def test_coefficient_draws_have_the_closed_form_moments(form, planted, monkeypatch):
    rng = np.random.default_rng(1)
    n, d = (3, 5) if form == "dual" else (6, 3)
    if form == "cg":
        monkeypatch.setattr("unseen.linalg.normal_draws.DIRECT", 0)
    x = np.where(rng.random((n, d)) < 0.7, rng.normal(size=(n, d)), 0.0)
    design = SparseDesign(sparse.csr_array(x)) if form != "direct" else DenseDesign(x)
    if form == "centred":
        design = CentredDesign(SparseDesign(sparse.csr_array(x)), rng.normal(size=d))
        x = design.toarray()
    ridge = RidgeDraws(design)
    assert ridge.side == {"centred": "direct"}.get(form, form)
    weight, precision, target = 1.7, wishart(4.0, np.eye(2), rng), rng.normal(size=(n, 2))
    lower = np.linalg.cholesky(precision)
    inverse = np.linalg.inv(lower)
    count = 1500
    numbers = planted * rng.standard_normal((count, n + d, 2))
    draws = np.array([(ridge.draw(target @ lower, weight, noise) @ inverse).ravel() for noise in numbers])
    inner = np.linalg.inv(x.T @ x + weight * np.eye(d))
    z = worst_z(draws, (inner @ x.T @ target).ravel(), np.kron(inner, np.linalg.inv(precision)))
    assert z < 4.5 if planted == 1.0 else z > 5


def test_wishart_has_its_mean_and_a_planted_error_is_caught():
    rng = np.random.default_rng(2)
    inverse_scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    draws = np.array([wishart(5.0, inverse_scale, rng) for _ in range(1500)])
    expected = 5.0 * np.linalg.inv(inverse_scale)
    error = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / 5.0 / 1500)
    assert np.all(np.abs(draws.mean(axis=0) - expected) < 4.5 * error)
    assert np.any(np.abs(draws.mean(axis=0) - 1.1 * expected) > 4.5 * error)


def joint_draws(count: int, width: int, seed: int, *, with_features: bool, forget: bool) -> np.ndarray:
    """Geweke's joint chain of a prior and the rows below it, and functions of it with known means."""
    rng = np.random.default_rng(seed)
    n = 4
    designs = [DenseDesign(rng.normal(size=(n, 2)))] if with_features else []
    prior = SidePrior(width, designs)
    found = []
    for _ in range(count):
        root = np.linalg.inv(np.linalg.cholesky(prior.precision))
        rows = prior.location() + rng.standard_normal((n, width)) @ root
        if forget:  # the coefficients' share of what is known of the precision
            weights = [group.weight for group in prior.groups]
            for group in prior.groups:
                group.weight = 1e-12
        prior._draw_moments(rows - (prior.location() - prior.mean), rng)
        for place, group in enumerate(prior.groups):
            if forget:
                group.weight = weights[place]
            others = prior.location() - group.fitted
            group.draw(rows - others, prior.precision, rng.standard_normal((n + 2, width)), rng)
        found.append(
            [np.trace(prior.precision) / width**2, *(np.log2(group.weight) / 4.0 for group in prior.groups)]
        )
    return np.array(found)


@pytest.mark.parametrize("with_features", [False, True])
def test_alternating_data_and_prior_gives_the_prior_back(with_features):
    # E[precision] = width I and E[log2 weight] = 4 under the prior, whatever the data in between.
    draws = joint_draws(1500, 2, 4, with_features=with_features, forget=False)
    error = draws.std(axis=0) / np.sqrt(effective_samples(draws))
    assert np.all(np.abs(draws.mean(axis=0) - 1.0) < 4 * error)


def test_the_joint_test_sees_coefficients_that_are_left_out_of_the_precision():
    draws = joint_draws(1500, 2, 4, with_features=True, forget=True)
    error = draws.std(axis=0) / np.sqrt(effective_samples(draws))
    assert np.any(np.abs(draws.mean(axis=0) - 1.0) > 6 * error)


def test_normals_are_normal_and_rows_keep_theirs():
    found = kernels.normals((4000, 5), seed=7, sweep=2, block=1)
    assert stats.kstest(found.ravel(), "norm").pvalue > 0.01
    assert stats.kstest(1.1 * found.ravel(), "norm").pvalue < 1e-6
    part = kernels.normals((10, 5), seed=7, sweep=2, block=1, first_row=90)
    assert part.tobytes() == found[90:100].tobytes()
    for other in ({"seed": 8}, {"sweep": 3}, {"block": 2}):
        key = {"seed": 7, "sweep": 2, "block": 1} | other
        changed = kernels.normals((4000, 5), **key)
        assert abs(np.corrcoef(found.ravel(), changed.ravel())[0, 1]) < 0.03


def test_mixing_measures_on_chains_that_are_known():
    rng = np.random.default_rng(5)
    free = rng.standard_normal((400, 50))
    slow = np.zeros((400, 50))
    for t in range(1, 400):
        slow[t] = 0.9 * slow[t - 1] + rng.standard_normal(50)
    assert split_rhat(free) < 1.01
    assert split_rhat(free + np.linspace(0, 3, 400)[:, None]) > 1.3
    assert 300 < np.median(effective_samples(free)) < 500
    assert 10 < np.median(effective_samples(slow)) < 50  # 400 * (1 - .9) / (1 + .9) = 21


def small(weights: bool = False, dtype: type = np.float64) -> Observations:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40)) + 0.3 * rng.normal(size=(60, 40)) + 3
    X[rng.random(X.shape) < 0.6] = np.nan
    cells = Observations.from_dense(X.astype(dtype))
    return cells.with_weights(rng.integers(0, 4, cells.nnz).astype(dtype)) if weights else cells


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("precision", ["full", "diagonal"])
def test_same_bits_for_any_number_of_threads(dtype, precision, monkeypatch):
    monkeypatch.setattr("unseen.kernels._arguments.WORK_A_THREAD", 1)
    options = {"n_samples": 4, "burn_in": 3, "precision": precision, "random_state": 1}
    models = [BayesianMF(4, n_jobs=n, **options).fit(small(True, dtype)) for n in (1, 2, 4)]
    assert models[0].row_factors_.dtype == dtype
    for other in models[1:]:
        assert models[0].row_factors_.tobytes() == other.row_factors_.tobytes()
        assert models[0].col_factors_.tobytes() == other.col_factors_.tobytes()
    another = BayesianMF(4, **(options | {"random_state": 2})).fit(small(True, dtype))
    assert models[0].row_factors_.tobytes() != another.row_factors_.tobytes()


def test_the_three_ways_to_ask_for_it_are_one():
    cells, solver = small(), Gibbs(n_samples=5, burn_in=5)
    terms = [
        Term(core=LowRank(3)),
        Term(Identity(), Constant(), Full()),
        Term(Constant(), Identity(), Full()),
    ]
    one = BayesianMF(3, n_samples=5, burn_in=5, random_state=0).fit(cells)
    two = Completion(terms, solver=solver, center="mean", random_state=0).fit(cells)
    assert one.row_factors_.tobytes() == two.row_factors_.tobytes()
    three = MatrixFactorization(3, solver="gibbs", center="joint", random_state=0, reg=1.0).fit(cells)
    assert three.predict_interval([0], [0]).shape == (1, 2)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"loss": Logistic()}, "not quadratic"),
        ({"loss": Squared(1.0, Background(0.1))}, "blank cells are pulled"),
        ({"terms": [Term(reg=L1(1.0))]}, "prior is a ridge"),
        ({"terms": [Term(reg=Ridge(1.0, degree_scaling=1.0))]}, "without degree_scaling"),
        ({"terms": [Term(core=Full())]}, "a number of its own for each cell"),
        ({"terms": [Term(row_map=Tanh(2)), Term()]}, "a map is to be learned"),
    ],
)
def test_refusals_say_why(given, reason):
    features = {"row_features": np.random.default_rng(0).normal(size=(60, 2))} if "learned" in reason else {}
    with pytest.raises(UnsupportedComposition, match=reason):
        Completion(solver=Gibbs(2, 1), **given).fit(small(), **features)


def test_too_many_samples_are_refused_with_their_size(monkeypatch):
    monkeypatch.setattr("unseen.solvers.gibbs_chain.MAX_SAMPLE_BYTES", 10_000)
    with pytest.raises(TooLargeError, match="GiB; at most"):
        BayesianMF(4).fit(small())


def test_early_stopping_is_refused():
    model = MatrixFactorization(2, solver="gibbs", validation_fraction=0.1, reg=1.0, center="none")
    with pytest.raises(ParameterError, match="averages over all"):
        model.fit(small())


def test_directions_that_nothing_supports_vanish_and_would_not_without_sizes(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 80)) < 0.1, rng.normal(size=(120, 80)), np.nan)  # noise, no structure
    found = []
    for resize in (Chain._resize, lambda *_: None):
        monkeypatch.setattr(Chain, "_resize", resize)
        model = BayesianMF(16, n_samples=20, burn_in=100, thin=1, noise="constant", random_state=0, n_jobs=1)
        found.append(np.std(model.fit(X).predict_new()))
    assert found[0] < 0.7 * found[1]


@pytest.mark.parametrize("planted", [1.0, 1.1])
def test_sizes_have_the_closed_form_moments(planted):
    rng = np.random.default_rng(3)
    k, alpha = 3, 1.7
    left, right = rng.normal(size=(4, k)), rng.normal(size=(5, k))
    target, weight = rng.normal(size=20), rng.uniform(0.5, 2.0, 20)
    seen, out = np.empty((k, k + 1)), np.empty((4, k))
    # A prior so narrow that the rows are drawn as they are.
    kernels.als_draw(
        np.arange(0, 21, 5), np.tile(np.arange(5), 4), alpha * weight, alpha * weight * target, right,
        1e14 * np.eye(k), np.zeros((4, k)), out, offset=1e14 * left, sizes=seen,
    )  # fmt: skip
    products = (left[:, None] * right).reshape(20, k)  # scores are products @ sizes
    draws = np.empty((DRAWS, k))
    for draw in draws:
        prior = SidePrior(k)
        draw[:] = prior.resize(seen * planted, rng)
        np.testing.assert_array_equal(draw, prior.sizes)
    a = np.eye(k) / (SPREAD**2 * k) + alpha * products.T @ (weight[:, None] * products)
    z = worst_z(draws, np.linalg.solve(a, alpha * products.T @ (weight * target)), np.linalg.inv(a))
    assert z < 4.5 if planted == 1.0 else z > 6


@pytest.mark.parametrize("planted", [False, True])
def test_alternating_errors_and_their_precisions_gives_the_prior_back(planted):
    rng = np.random.default_rng(8)
    shape = 6, 5
    cells = Observations.from_dense(np.ones(shape))
    place = kernels.get_provider("native")
    noise, targets = VaryingNoise(cells, np.ones(30), place), (np.zeros(30), np.zeros(30))
    by_row = place.pattern(cells.indptr, cells.indices, np.ones(30), np.zeros(30), n_cols=5)
    if planted:
        noise.sides[0].counts = noise.sides[0].counts + 1.0
    alpha, found = 1.0, []
    for _ in range(6000):
        rows, cols = noise.sides
        precision = alpha * np.outer(rows.values, cols.values).ravel()
        squares = rng.standard_normal(30) ** 2 / precision
        alpha = noise.draw(by_row, squares, targets, (4.0, 4.0), rng)
        np.testing.assert_allclose(noise.curvature, np.outer(rows.values, cols.values).ravel())
        # Means of one under the prior: nu is even on 17 powers of two, precisions have mean one.
        found.append([(rows.place + 1) / 9, (cols.place + 1) / 9, alpha, rows.values[0], cols.values[0]])
    draws = np.array(found)
    z = np.abs(draws.mean(axis=0) - 1.0) / (draws.std(axis=0) / np.sqrt(effective_samples(draws)))
    assert (z.max() < 4) is not planted


def test_rows_that_vary_more_are_told_from_the_rest():
    rng = np.random.default_rng(9)
    std = np.where(np.arange(80) < 40, 0.3, 1.2)
    X = rng.normal(size=(80, 1)) + rng.normal(size=40) + std[:, None] * rng.normal(size=(80, 40))
    X[rng.random(X.shape) < 0.3] = np.nan
    model = BayesianMF(3, n_samples=30, burn_in=40, thin=1, random_state=0).fit(X)
    rows, cols = np.arange(80), np.zeros(80, dtype=int)
    _, found = model.predict_entries(rows, cols, return_std=True)
    assert np.median(found[:40]) < 0.6 < 0.9 < np.median(found[40:])
    low, high = model.predict_interval(rows, cols).T
    assert np.median((high - low)[40:]) > 2 * np.median((high - low)[:40])
    constant = BayesianMF(3, n_samples=5, burn_in=10, noise="constant", random_state=0).fit(X)
    _, even = constant.predict_entries(rows, cols, return_std=True)
    assert np.median(even[40:]) < 1.3 * np.median(even[:40])
    with pytest.raises(ParameterError, match="noise must be"):
        BayesianMF(2, noise="loud").fit(X)
