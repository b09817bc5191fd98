"""BayesianMF with levels: probabilities, predictions that agree with them, new rows, saving, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import unseen
from unseen import BayesianMF, Completion, Observations, Ordinal, Term
from unseen.estimators.averaged import _run_of_levels
from unseen.exceptions import ParameterError, UnsupportedComposition
from unseen.losses import Background, Squared
from unseen.solvers import Gibbs

CUTS = np.array([-1.5, -0.7, 0.4, 1.4])
OPTIONS = {"n_samples": 30, "burn_in": 40, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 120)) + 0.5 * rng.normal(size=(200, 1))
    levels = np.digitize(scores + rng.normal(size=scores.shape), CUTS) + 1.0
    seen = rng.random(levels.shape) < 0.3
    return scores, levels, seen


@pytest.fixture(scope="module")
def model(truth):
    _, levels, seen = truth
    return BayesianMF(4, likelihood="ordinal", **OPTIONS).fit(np.where(seen, levels, np.nan))


def rmse(one, other):
    return float(np.sqrt(np.mean((one - other) ** 2)))


def test_probabilities_are_near_the_true_ones_and_calibrated(truth, model):
    scores, levels, seen = truth
    rows, cols = np.nonzero(~seen)
    found = model.predict_proba(rows, cols)
    np.testing.assert_array_equal(model.levels_, [1, 2, 3, 4, 5])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    true = np.diff(stats.norm.cdf(CUTS - scores[rows, cols][:, None]), axis=1, prepend=0, append=1)
    plain = np.bincount(levels[seen].astype(int), minlength=6)[1:] / seen.sum()
    assert rmse(found, true) < 0.6 * rmse(plain, true)
    # Cells whose top level has chance p have it in a share p of cases; halved odds would be noticed.
    top, chance = levels[rows, cols] == 5, found[:, -1]
    for part in np.array_split(np.argsort(chance), 5):
        error = np.sqrt(chance[part].mean() / len(part))
        assert abs(top[part].mean() - chance[part].mean()) < 8 * error + 0.01
    assert abs(top.mean() - 0.8 * chance.mean()) > 0.01


def test_mean_levels_beat_values_taken_as_measured(truth, model):
    _, levels, seen = truth
    rows, cols = np.nonzero(~seen)
    plain = BayesianMF(4, clip=(1, 5), **OPTIONS).fit(np.where(seen, levels, np.nan))
    errors = [rmse(each.predict_entries(rows, cols), levels[rows, cols]) for each in (model, plain)]
    assert errors[0] < errors[1]


def test_all_predictions_agree(model):
    block, i, j = model.predict_new(), np.array([0, 7, 30]), np.array([1, 2, 80])
    one = model.predict_entries(i, j)
    np.testing.assert_allclose(one, block[i, j], rtol=1e-5)
    np.testing.assert_allclose(one, model.predict_proba(i, j) @ model.levels_)
    mean, std = model.predict_entries(i, j, return_std=True)
    np.testing.assert_allclose(mean, one)
    squares = model.predict_proba(i, j) @ model.levels_**2
    np.testing.assert_allclose(std, np.sqrt(squares - one**2))
    raw = model.predict_entries(i, j, raw=True)
    np.testing.assert_allclose(raw, np.einsum("ij,ij->i", model.row_factors_[i], model.col_factors_[j]))
    assert block.min() > 1
    assert block.max() < 5


def test_runs_of_levels_have_the_probability_closest_to_what_is_asked():
    chances = np.array([[0.1, 0.5, 0.3, 0.1], [0.97, 0.01, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25]])
    found = [_run_of_levels(chances, level).tolist() for level in (0.5, 0.8, 0.99)]
    assert found == [
        [[1, 1], [0, 0], [0, 1]],
        [[1, 2], [0, 0], [0, 2]],
        [[0, 3], [0, 2], [0, 3]],
    ]


def test_intervals_have_levels_as_ends_and_hold(truth, model):
    _, levels, seen = truth
    rows, cols = (found[::7] for found in np.nonzero(~seen))
    for level in (0.5, 0.8, 0.9):
        low, high = model.predict_interval(rows, cols, level).T
        inside = np.mean((low <= levels[rows, cols]) & (levels[rows, cols] <= high))
        assert abs(inside - level) < 0.03
        assert np.isin([low, high], model.levels_).all()
        wider = np.mean((low - 1 <= levels[rows, cols]) & (levels[rows, cols] <= high + 1))
        assert wider > level + 0.03


def test_new_rows_are_placed_like_old_ones(truth, model):
    _, levels, seen = truth
    X = np.where(seen, levels, np.nan)
    old, new = model.predict_new()[:20], model.transform(X[:20])
    assert rmse(old, new) < 0.1
    assert rmse(old, new[::-1]) > 0.3
    np.testing.assert_array_equal(model.fold_in(X[:3]), model.fold_in(X[:3]))


def test_all_of_it_survives_saving(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    for name in ("predict_proba", "predict_interval", "predict_entries"):
        one, two = (getattr(each, name)([0, 3], [4, 5]) for each in (model, loaded))
        assert one.tobytes() == two.tobytes()
    assert loaded.loss_.get_params() == model.loss_.get_params()


def test_an_update_goes_on_with_the_thresholds(truth):
    _, levels, seen = truth
    early = seen & (np.random.default_rng(3).random(seen.shape) < 0.9)
    model = BayesianMF(2, likelihood="ordinal", **OPTIONS).fit(np.where(early, levels, np.nan))
    learned = np.array(model.history_[-1]["thresholds"])
    model.partial_fit(Observations.from_dense(np.where(seen & ~early, levels, np.nan)))
    first = np.array(model.history_[0]["thresholds"])
    fresh = np.array(Ordinal().fitted(levels[seen]).thresholds)
    assert np.abs(first - learned).max() < 0.5 * np.abs(fresh - learned).max()


def test_likes_and_dislikes(truth):
    scores, _, seen = truth
    likes = (scores + np.random.default_rng(5).normal(size=scores.shape) > 0).astype(float)
    model = BayesianMF(4, likelihood="probit", **OPTIONS).fit(np.where(seen, likes, np.nan))
    rows, cols = np.nonzero(~seen)
    found = model.predict_proba(rows, cols)[:, 1]
    assert rmse(found, stats.norm.cdf(scores[rows, cols])) < 0.17
    np.testing.assert_allclose(found, model.predict_entries(rows, cols))
    np.testing.assert_array_equal(model.levels_, [0, 1])


def test_what_counts_and_what_is_refused(truth):
    _, levels, seen = truth
    cells = Observations.from_dense(np.where(seen, levels, np.nan)[:40, :30])
    half = (np.arange(cells.nnz) % 2).astype(float)
    without = cells.select(half > 0)
    options = OPTIONS | {"n_samples": 200, "noise": "constant"}
    one, two, three = (
        BayesianMF(1, likelihood="ordinal", **options).fit(given)
        for given in (cells.with_weights(half), without, cells)
    )
    # Means over chains with other numbers; what is left out says nothing.
    apart = [rmse(each.predict_new(), two.predict_new()) for each in (one, three)]
    assert apart[0] < 0.5 * apart[1]
    with pytest.raises(UnsupportedComposition, match="once or not at all"):
        BayesianMF(1, likelihood="ordinal", **OPTIONS).fit(cells.with_weights(half + 0.5))
    with pytest.raises(ParameterError, match="likelihood"):
        BayesianMF(1, likelihood="poisson").fit(cells)
    with pytest.raises(AttributeError):
        BayesianMF(1, **OPTIONS).fit(cells).predict_proba([0], [1])
    with pytest.raises(UnsupportedComposition, match="blank cells are pulled"):
        Completion([Term()], loss=Squared(background=Background()), solver=Gibbs(2, 1)).fit(cells)


def test_same_bits_for_any_number_of_threads(truth, monkeypatch):
    monkeypatch.setattr("unseen.kernels._arguments.WORK_A_THREAD", 1)
    _, levels, seen = truth
    X = np.where(seen, levels, np.nan)
    options = OPTIONS | {"n_samples": 3, "burn_in": 3}
    found = [
        BayesianMF(3, likelihood="ordinal", **(options | {"n_jobs": n})).fit(X).row_factors_.tobytes()
        for n in (1, 2, 4)
    ]
    assert found[0] == found[1] == found[2]
