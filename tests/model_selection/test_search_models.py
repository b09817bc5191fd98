"""Selection with the library's own estimators."""

from __future__ import annotations

import doctest
import importlib
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import unseen
from unseen import IMC, BiasModel, MatrixFactorization, MixedLinear, Observations, SoftImpute
from unseen.estimators import composed
from unseen.model_selection import (
    GridSearch,
    cross_validate,
    split_entries,
    split_rows,
    split_time,
)
from unseen.plotting import ConvergenceDisplay, SpectrumDisplay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def planted():
    """A 60 x 50 matrix of rank 3 with small noise, 40 % known."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 50))
    noisy = truth + 0.1 * rng.standard_normal(truth.shape)
    return Observations.from_any(np.where(rng.random(truth.shape) < 0.4, noisy, np.nan))


@pytest.mark.parametrize("name", ["_evaluate", "_search", "_results", "_scoring"])
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"unseen.model_selection.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("solver", ["als", "ccd"])
def test_a_path_that_begins_at_nothing_is_as_good_as_cold_fits(planted, solver, monkeypatch):
    split = split_entries(planted, random_state=0)
    regs = [1.0, 10.0, 1e3, 1e5]  # the last two shrink all factors to nothing
    model = MatrixFactorization(rank=5, solver=solver, random_state=0, reg=1.0, center="none")
    cold = [cross_validate(clone(model).set_params(reg=reg), planted, cv=split).mean("rmse") for reg in regs]
    assert cold[-1] > 5 * min(cold)
    search = GridSearch(model, {"reg": regs}, cv=split, refit=False).fit(planted)
    np.testing.assert_allclose(search.results_.column("score"), cold, rtol=0.1)
    # Negative control: a path that goes on from dead factors is visible to the check above.
    monkeypatch.setattr(composed, "revived", lambda problem, previous, fresh: {**fresh, **previous})
    stuck = GridSearch(model, {"reg": regs}, cv=split, refit=False).fit(planted)
    assert not np.allclose(stuck.results_.column("score"), cold, rtol=0.1)


def test_search_finds_rank_and_reg_and_beats_the_baseline(planted):
    train, test = split_entries(planted, random_state=1)
    search = GridSearch(
        MatrixFactorization(max_iter=20, random_state=0, reg=1.0, center="none"),
        {"rank": [1, 3], "reg": [0.3, 100.0]},
        cv=2,
    ).fit(train)
    assert search.best_params_["rank"] == 3
    assert search.best_params_["reg"] < 100.0
    error = np.sqrt(
        np.mean((search.predict_entries(test.rows, test.indices, positions=True) - test.values) ** 2)
    )
    baseline = BiasModel().fit(train)
    bias_error = np.sqrt(
        np.mean((baseline.predict_entries(test.rows, test.indices, positions=True) - test.values) ** 2)
    )
    assert error < 0.4 * bias_error


def test_soft_impute_path(planted):
    split = split_entries(planted, random_state=0)
    regs = [1.0, 3.0, 1e4]
    model = SoftImpute(
        max_iter=1000, tol=1e-8, reg=1.0, max_rank=None, center="none"
    )  # convex: settled, the start does not matter
    search = GridSearch(model, {"reg": regs}, cv=split, refit=False).fit(planted)
    cold = [cross_validate(clone(model).set_params(reg=r), planted, cv=split).mean("rmse") for r in regs]
    np.testing.assert_allclose(search.results_.column("score"), cold, rtol=0.02)


def test_paths_follow_the_penalty_of_the_estimator(planted, monkeypatch):
    split = split_entries(planted, random_state=0)
    grid = {"reg_g": [1.0, 10.0], "reg_e": [20.0, "spectral", 60.0]}
    model = MixedLinear(
        constraint="soft", rho=10.0, max_iter=1000, tol=1e-9, max_rank=None, center="none", reg_e="spectral"
    )
    starts = []
    fit = MixedLinear.fit

    def logged(self, *args, **features):
        starts.append((self.reg_g, self.reg_e, hasattr(self, "row_factors_")))
        return fit(self, *args, **features)

    monkeypatch.setattr(MixedLinear, "fit", logged)
    search = GridSearch(model, grid, cv=split, refit=False).fit(planted)
    path = [("spectral", False), (60.0, True), (20.0, True)]
    assert starts == [(reg_g, reg_e, warm) for reg_g in (1.0, 10.0) for reg_e, warm in path]
    for row in search.results_:
        cold = cross_validate(clone(model).set_params(**row["params"]), planted, cv=split)
        np.testing.assert_allclose(row["score"], cold.mean("rmse"), rtol=1e-3)
    scores = search.results_.column("score")  # the agreement is no accident: penalties matter
    assert np.ptp(scores) > 0.01 * min(scores)


def test_cold_rows_need_features():
    rng = np.random.default_rng(0)
    features, other = rng.standard_normal((80, 4)), rng.standard_normal((30, 3))
    truth = features @ rng.standard_normal((4, 3)) @ other.T
    X = Observations.from_any(np.where(rng.random(truth.shape) < 0.5, truth, np.nan))
    splits = [split_rows(X, random_state=seed) for seed in range(2)]
    sides = {"row_features": features, "col_features": other}
    with_features = cross_validate(
        IMC(rank=3, reg=1e-3, random_state=0, center="none"), X, cv=splits, **sides
    )
    without = cross_validate(
        MatrixFactorization(rank=3, reg=0.1, random_state=0, center="none"), X, cv=splits
    )
    assert with_features.mean("rmse") < 0.1 * without.mean("rmse")


def test_ranking_search_on_positives():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 60)
    likes = (groups[:, None] == np.arange(45)[None] % 3) & (rng.random((60, 45)) < 0.6)
    X = Observations.from_any(np.where(likes, 1.0, np.nan))
    zeros_known = Observations.from_any(likes.astype(float))
    search = GridSearch(
        MatrixFactorization(rank=3, random_state=0, reg=1.0, center="none"),
        {"reg": [1.0, 1e4]},
        cv=3,
        scoring="auc",
    ).fit(zeros_known)
    assert search.best_params_ == {"reg": 1.0}
    assert search.best_score_ > 0.7
    ids, _ = search.recommend(np.arange(60), k=5, exclude=X)
    assert np.mean(ids % 3 == groups[:, None]) > 0.9


def test_threads_do_not_change_a_search(planted):
    model = MatrixFactorization(rank=3, max_iter=5, random_state=0, n_jobs=1, reg=1.0, center="none")
    grid = {"reg": [1.0, 3.0], "rank": [2, 3]}
    one, two = (GridSearch(model, grid, cv=2, n_jobs=n).fit(planted) for n in (1, 2))
    assert one.results_.column("fold_scores") == two.results_.column("fold_scores")
    np.testing.assert_array_equal(one.best_estimator_.row_factors_, two.best_estimator_.row_factors_)


def test_search_saves_the_model_it_found(planted, tmp_path):
    search = GridSearch(
        MatrixFactorization(rank=3, random_state=0, reg=1.0, center="none"), {"reg": [0.1, 1.0]}, cv=2
    ).fit(planted)
    search.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    assert loaded.reg == search.best_params_["reg"]
    np.testing.assert_array_equal(
        loaded.predict_entries([0, 5], [1, 2]), search.predict_entries([0, 5], [1, 2])
    )
    assert search.fold_in(planted).shape[0] == 60
    assert search.transform(planted).shape == (60, 50)


def test_search_is_a_scikit_learn_estimator():
    model = MatrixFactorization(rank=2, max_iter=3, random_state=0, n_jobs=1, reg=1.0, center="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks feed constant and symmetric data
        report = check_estimator(GridSearch(model, {"reg": [1.0, 2.0]}, cv=2), on_fail=None)
    assert len(report) > 30
    assert [entry["check_name"] for entry in report if entry["status"] == "failed"] == []


def test_displays_take_fitted_models(planted):
    pytest.importorskip("matplotlib").use("Agg")
    models = {
        s: MatrixFactorization(rank=3, reg=0.1, solver=s, random_state=0, center="none")
        for s in ("als", "ccd")
    }
    for model in models.values():
        model.fit(planted)
    assert len(ConvergenceDisplay.from_estimator(models, x="seconds", gap=True).lines_) == 2
    drawn = SpectrumDisplay.from_estimator(models["als"]).lines_[0].get_ydata()
    completed = models["als"].row_factors_ @ models["als"].col_factors_.T
    np.testing.assert_allclose(drawn, np.linalg.svd(completed, compute_uv=False)[:3], rtol=1e-8)


@pytest.mark.data
def test_search_on_real_ratings():
    pd = pytest.importorskip("pandas")
    home = os.environ.get("UNSEEN_DATA")
    if not home or not (path := Path(home) / "ml100k" / "u.data.gz").exists():
        pytest.skip("UNSEEN_DATA does not point to ml100k")
    frame = pd.read_csv(path, sep="\t", names=["user", "movie", "rating", "time"])
    X = Observations.from_frame(frame, row="user", col="movie", value="rating", time="time")
    train, test = split_time(X, test_fraction=0.2)
    validation = split_entries(train, test_fraction=0.1, random_state=0)
    model = MatrixFactorization(rank=10, center="biases", max_iter=15, random_state=0, reg=1.0)
    search = GridSearch(model, {"reg": [1.0, 10.0, 30.0]}, cv=validation).fit(train)
    assert search.best_params_["reg"] > 1.0  # one percent of a rating's weight overfits rows with few ratings
    scores = {
        name: np.sqrt(
            np.mean((fitted.predict_entries(test.rows, test.indices, positions=True) - test.values) ** 2)
        )
        for name, fitted in {"search": search, "bias": BiasModel().fit(train)}.items()
    }
    assert scores["search"] < scores["bias"] + 0.02
