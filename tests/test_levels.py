"""Ordinal and probit losses: against their definition, in the tails, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from unseen import Completion, Constant, Full, Identity, Observations, Ordinal, Probit, Ridge, Term
from unseen.cores import LowRank
from unseen.exceptions import InvalidDataError, ParameterError, UnsupportedComposition
from unseen.problem import Problem
from unseen.solvers import LBFGS

LOSS = Ordinal(levels=(1, 2, 4), thresholds=(-0.5, 0.8), width=1.3)


@pytest.mark.parametrize("loss", [LOSS, Probit(0.7)])
def test_values_and_slopes_are_those_of_the_definition(loss):
    rng = np.random.default_rng(0)
    levels, thresholds = loss.cuts()
    scores, values = rng.normal(size=40), rng.choice(levels, 40)
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    below = stats.norm.cdf((ends - scores[:, None]) / loss.width)
    share = np.diff(below, axis=1)
    picked = share[np.arange(40), np.searchsorted(levels, values)]
    np.testing.assert_allclose(loss.pointwise(scores, values), -np.log(picked))
    np.testing.assert_allclose(loss.probabilities(scores), share, atol=1e-12)
    np.testing.assert_allclose(loss.link(scores), share @ levels)
    step = 1e-6
    slopes = (loss.pointwise(scores + step, values) - loss.pointwise(scores - step, values)) / (2 * step)
    np.testing.assert_allclose(loss.grad(scores, values), slopes, atol=1e-7)
    assert not np.allclose(loss.grad(scores + 0.01, values), slopes, atol=1e-7)


def test_nothing_is_lost_in_the_tails():
    scores = np.array([-30.0, 30.0, -30.0, 30.0])
    values = np.array([4.0, 1.0, 2.0, 2.0])
    loss, slope = LOSS.pointwise(scores, values), LOSS.grad(scores, values)
    assert np.isfinite(loss).all()
    assert (np.sign(slope) == [-1, 1, -1, 1]).all()
    # Far away the loss is half the squared distance to the nearest end.
    np.testing.assert_allclose(loss[0], 0.5 * ((0.8 + 30) / 1.3) ** 2, rtol=0.02)


def test_levels_and_thresholds_come_from_the_values():
    loss = Ordinal().fitted(np.array([3.0, 1.0, 1.0, 5.0, 3.0, 3.0]))
    assert loss.classes == (1.0, 3.0, 5.0)
    np.testing.assert_allclose(
        loss.probabilities(np.zeros(1))[0], np.array([2.5, 3.5, 1.5]) / 7.5, atol=1e-12
    )
    assert Ordinal().classes is None
    kept = LOSS.fitted(np.array([1.0, 2.0]))
    assert kept.get_params() == {"levels": (1.0, 2.0, 4.0), "thresholds": (-0.5, 0.8), "width": 1.3}


def test_what_is_no_level_is_refused():
    with pytest.raises(InvalidDataError, match=r"value 3\.0"):
        LOSS.pointwise(np.zeros(2), np.array([1.0, 3.0]))
    with pytest.raises(InvalidDataError, match="found 500 different"):
        Ordinal().fitted(np.random.default_rng(0).normal(size=500))
    with pytest.raises(UnsupportedComposition, match="from the cells of a fit"):
        Ordinal().link(np.zeros(1))
    for wrong in ({"levels": (2, 1)}, {"levels": "ab"}, {"levels": (1, 2), "thresholds": (0, 1)}):
        with pytest.raises(ParameterError):
            Ordinal(**({"thresholds": (0,)} | wrong)).cuts()


def test_point_solutions_of_levels():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(80, 1)) @ rng.normal(size=(1, 60)) * 1.5
    X = np.digitize(scores + rng.normal(size=scores.shape), [-1.0, 0.3, 1.2]) + 1.0
    shown = np.where(rng.random(X.shape) < 0.5, X, np.nan)
    terms = [Term(core=LowRank(1), reg=Ridge(0.5))]
    model = Completion(terms, loss=Ordinal(), solver=LBFGS(), random_state=0).fit(shown)
    np.testing.assert_array_equal(model.levels_, [1, 2, 3, 4])
    chances = model.predict_proba([0, 1], [2, 3])
    np.testing.assert_allclose(chances @ model.levels_, model.predict_entries([0, 1], [2, 3]))
    hidden = np.isnan(shown)
    away = (model.predict_new() - X)[hidden]
    assert np.sqrt(np.mean(away**2)) < 0.85 * X[hidden].std()
    likes = Completion(terms, loss=Probit(), random_state=0)
    likes.fit(np.where(np.isnan(shown), np.nan, shown > 2))
    liked = (X > 2)[hidden]
    right = np.mean((likes.predict_new() > 0.5)[hidden] == liked)
    assert right > max(liked.mean(), 1 - liked.mean()) + 0.08


@pytest.mark.parametrize("loss", [Probit(), LOSS])
@pytest.mark.parametrize("weighted", [False, True])
def test_objectives_and_gradients_of_compositions(loss, weighted):
    rng = np.random.default_rng(2)
    levels = loss.cuts().levels
    X = np.where(rng.random((9, 7)) < 0.6, rng.choice(levels, (9, 7)), np.nan)
    cells = Observations.from_dense(X)
    if weighted:
        cells = cells.with_weights(rng.uniform(0, 2, cells.nnz))
    terms = [Term(core=LowRank(2), reg=Ridge(0.3)), Term(Identity(), Constant(), Full(), Ridge(0.5))]
    problem = Problem(cells, terms, loss)
    state = problem.start(rng)
    state["1.core"] = rng.normal(size=state["1.core"].shape)
    assert problem.value(state) == pytest.approx(problem.oracle(state), rel=1e-12)
    for key in problem.blocks(state):
        direction = rng.normal(size=state[key].shape)
        ends = [problem.value({**state, key: state[key] + step * direction}) for step in (1e-6, -1e-6)]
        slope = float(np.sum(problem.grad(state, [key])[key] * direction))
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(slope, rel=1e-6)
