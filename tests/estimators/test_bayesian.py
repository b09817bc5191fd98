"""BayesianMF: accuracy, intervals, weights, clipping, new rows, and what is left of it after saving."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import unseen
from unseen import BayesianMF, MatrixFactorization, Observations
from unseen.diagnostics import identifiability
from unseen.exceptions import ConvergenceWarning, NotInductiveError, ParameterError
from unseen.solvers.gibbs_chain import Chain

NOISE = 0.5


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    n, m, rank = 250, 180, 3
    scores = 3 + rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)) * 0.6
    scores += 0.5 * rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(1, m))
    values = scores + NOISE * rng.normal(size=(n, m))
    seen = rng.random((n, m)) < 0.12
    return scores, values, seen


@pytest.fixture(scope="module")
def model(truth):
    _, values, seen = truth
    return BayesianMF(6, n_samples=40, burn_in=60, random_state=0).fit(np.where(seen, values, np.nan))


def rmse(one, other):
    return float(np.sqrt(np.mean((one - other) ** 2)))


def test_it_beats_the_best_point_solution(truth, model):
    scores, values, seen = truth
    rows, cols = np.nonzero(~seen)
    X = np.where(seen, values, np.nan)
    points = [
        MatrixFactorization(rank, reg=reg, center="joint", max_iter=200, random_state=0).fit(X)
        for rank in (3, 6)
        for reg in (0.5, 1.0, 2.0)
    ]
    best = min(rmse(point.predict_entries(rows, cols), scores[rows, cols]) for point in points)
    assert rmse(model.predict_entries(rows, cols), scores[rows, cols]) < 0.97 * best
    assert model.history_[-1]["rhat"] < 1.05
    assert abs(model.history_[-1]["noise_std"] / NOISE - 1) < 0.1


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_intervals_cover_new_observations(truth, model, level):
    _, values, seen = truth
    rows, cols = (place[::4] for place in np.nonzero(~seen))

    def covered(interval):
        return float(np.mean((interval[:, 0] <= values[rows, cols]) & (values[rows, cols] <= interval[:, 1])))

    interval = model.predict_interval(rows, cols, level)
    assert abs(covered(interval) - level) < 0.02
    narrow = interval.mean(axis=1, keepdims=True) + (interval - interval.mean(axis=1, keepdims=True)) / 1.15
    assert abs(covered(narrow) - level) > 0.02


def test_deviations_say_where_errors_are_large(truth, model):
    _, values, seen = truth
    rows, cols = np.nonzero(~seen)
    prediction, std = model.predict_entries(rows, cols, return_std=True)
    z = (values[rows, cols] - prediction) / std
    assert abs(z.std() - 1) < 0.05
    np.testing.assert_allclose(prediction, model.predict_entries(rows, cols))
    assert np.corrcoef(std, np.abs(values[rows, cols] - prediction))[0, 1] > 0.1


def test_factors_are_the_mean_score(model):
    product = model.row_factors_ @ model.col_factors_.T
    np.testing.assert_allclose(model.predict_entries([3, 8], [5, 9], raw=True), product[[3, 8], [5, 9]])
    ids, scores = model.recommend([2], k=4)
    order = np.argsort(-product[2])[:4]
    np.testing.assert_array_equal(ids[0], order)
    np.testing.assert_allclose(scores[0], product[2, order])


def test_training_rows_folded_in_are_what_they_were(truth, model):
    _, values, seen = truth
    X = np.where(seen, values, np.nan)
    # Noise of new rows is drawn anew; where it is one number nothing is.
    there, again = model.predict_new()[:7], model.transform(X[:7])
    assert np.sqrt(np.mean((there - again)[~seen[:7]] ** 2)) < 0.05 * np.std(there)
    model = BayesianMF(4, n_samples=10, burn_in=20, noise="constant", random_state=0).fit(X)
    np.testing.assert_allclose(model.fold_in(X[:7]), model.row_factors_[:7], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.transform(X[:7]), model.predict_new()[:7], rtol=1e-6, atol=1e-6)
    with pytest.raises(NotInductiveError):
        model.predict_new(row_features=np.ones((2, 3)))


def test_all_of_it_survives_saving(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    rows, cols = np.array([0, 5, 9]), np.array([1, 7, 100])
    for name in ("predict_interval", "predict_entries"):
        options = {"return_std": True} if name == "predict_entries" else {}
        for one, two in zip(
            getattr(model, name)(rows, cols, **options),
            getattr(loaded, name)(rows, cols, **options),
            strict=True,
        ):
            assert one.tobytes() == two.tobytes()
    X = np.full((1, 180), np.nan)
    X[0, :20] = 3.0
    assert loaded.fold_in(X).tobytes() == model.fold_in(X).tobytes()


def test_an_average_of_three_terms_survives_saving(truth, tmp_path):
    _, values, seen = truth
    model = MatrixFactorization(2, solver="gibbs", center="joint", reg=1.0, random_state=0)
    model.fit(np.where(seen, values, np.nan)).save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_interval([0], [1]), model.predict_interval([0], [1]))


def test_clipping_bounds_predictions_and_leaves_the_scores(truth):
    _, values, seen = truth
    X = np.where(seen, np.clip(np.round(values), 1, 5), np.nan)
    clipped, free = (
        BayesianMF(4, n_samples=5, burn_in=5, random_state=0, clip=clip).fit(X) for clip in ("observed", None)
    )
    assert clipped.clip_ == (1.0, 5.0)
    full = free.predict_new()
    assert full.min() < 1
    assert full.max() > 5
    np.testing.assert_array_equal(clipped.predict_new(), np.clip(full, 1, 5))
    np.testing.assert_array_equal(clipped.row_factors_, free.row_factors_)
    interval = clipped.predict_interval([0, 1], [0, 1], 0.999)
    assert interval.min() >= 1
    assert interval.max() <= 5
    for wrong in ((5, 1), "all", 3.0):
        with pytest.raises(ParameterError, match="clip must be"):
            BayesianMF(clip=wrong).fit(X)


def test_a_weight_of_two_is_the_same_value_twice(truth):
    # Not bit by bit: a cell twice is noise twice as well, once averaged. Means over chains must agree.
    rng = np.random.default_rng(1)
    X = 2 + rng.normal(size=(12, 1)) @ rng.normal(size=(1, 9)) + 0.3 * rng.normal(size=(12, 9))
    heavy = np.zeros(X.shape)
    heavy[:, ::2] = 1
    cells = Observations.from_dense(X)

    def mean(weights):
        given = cells if weights is None else cells.with_weights(weights.ravel())
        fitted = BayesianMF(1, n_samples=200, burn_in=50, random_state=2, n_jobs=1).fit(given)
        return fitted.predict_new()

    none, ones, zero = mean(None), mean(np.ones(X.shape)), mean(heavy)
    np.testing.assert_allclose(none, ones, atol=1e-10)
    # A cell of weight zero says nothing: rows and columns without others go to the mean of the rest.
    away = np.abs(zero - X[:, ::2].mean())[:, 1::2]
    assert away.mean() < np.abs(none - X.mean())[:, 1::2].mean()
    changed = X.copy()
    changed[:, 1::2] += 100
    moved = BayesianMF(1, n_samples=200, burn_in=50, random_state=2, n_jobs=1).fit(
        Observations.from_dense(changed).with_weights(heavy.ravel())
    )
    np.testing.assert_allclose(moved.predict_new(), zero, atol=1e-8)


def test_a_chain_that_has_not_settled_is_said_so(truth, monkeypatch):
    _, values, seen = truth
    X = np.where(seen, values, np.nan)
    options = {"n_samples": 10, "burn_in": 5, "thin": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        BayesianMF(3, **options).fit(X)
    scores_at = Chain.scores_at
    monkeypatch.setattr(Chain, "scores_at", lambda own, *at: scores_at(own, *at) + 0.2 * own.number)
    with pytest.warns(ConvergenceWarning, match="R-hat"):
        BayesianMF(3, **options).fit(X)


def test_a_compressed_mean_says_what_it_lost(truth, model, tmp_path):
    scores, _, seen = truth
    rows, cols = np.nonzero(~seen)
    whole = model.predict_new()
    small, large = model.compressed(2), model.compressed(12)
    assert large.row_factors_.shape == (250, 12 + 1)
    for each in (small, large):
        found = each.predict_new()
        assert each.compression_["rms_change"] == pytest.approx(rmse(found, whole), rel=0.01)
        best = np.linalg.svd(whole - model.offsets_.mean, compute_uv=False)[each.compression_["rank"] :]
        assert rmse(found, whole) == pytest.approx(np.sqrt(np.sum(best**2) / whole.size), rel=0.01)
    assert small.compression_["rms_change"] > 3 * large.compression_["rms_change"]
    error, with_all = (rmse(each.predict_entries(rows, cols), scores[rows, cols]) for each in (large, model))
    assert error < 1.02 * with_all
    large.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_new(), large.predict_new())
    assert loaded.compression_ == large.compression_
    assert not hasattr(loaded, "predict_interval")
    for refused in (
        lambda: loaded.predict_entries([0], [0], return_std=True),
        lambda: loaded.fold_in(np.full((1, 180), 3.0)),
        lambda: loaded.fold_in_cols(np.full((250, 1), 3.0)),
    ):
        with pytest.raises(NotInductiveError):
            refused()
    assert model.predict_interval([0], [0]).shape == (1, 2)


def test_a_mean_over_draws_has_no_curvature(truth):
    _, values, seen = truth
    X = np.where(seen, values, np.nan)[:40, :30]
    model = BayesianMF(1, n_samples=2, burn_in=1, random_state=0).fit(X)
    assert identifiability(model, [0, 1], [1, 2], n_refits=2).method == "resample"
    with pytest.raises(ParameterError, match="mean over draws"):
        identifiability(model, [0], [1], method="curvature")
