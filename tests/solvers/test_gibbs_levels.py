"""Draws of cells with levels: targets, thresholds, and the whole chain against its own prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from unseen import Constant, Full, Identity, LowRank, Observations, Ordinal, Probit, Term
from unseen.parallel import one_blas_thread
from unseen.problem import Problem
from unseen.solvers import gibbs_cells
from unseen.solvers.gibbs_cells import LevelCells, noise_between
from unseen.solvers.gibbs_chain import Chain
from unseen.solvers.gibbs_prior import SPREAD, SidePrior


@pytest.mark.parametrize(("low", "high"), [(-0.5, 1.0), (-np.inf, -6.0), (5.0, 5.5), (38.0, np.inf)])
def test_noise_between_ends_is_truncated_normal(low, high):
    uniform = (np.arange(4000) + 0.5) / 4000
    found = noise_between(np.full(4000, low), np.full(4000, high), uniform)
    assert found.min() >= low
    assert found.max() <= high
    if low < 30:
        np.testing.assert_allclose(np.sort(found), stats.truncnorm.ppf(uniform, low, high), rtol=1e-6)


def problem_of(values: np.ndarray, loss: object) -> Problem:
    terms = [
        Term(core=LowRank(1)),
        Term(Identity(), Constant(), Full()),
        Term(Constant(), Identity(), Full()),
    ]
    return Problem(Observations.from_dense(values), terms, loss)


@pytest.mark.parametrize("planted", [False, True])
def test_thresholds_are_drawn_from_their_posterior(planted, monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=12)
    values = np.digitize(scores + rng.normal(size=12), [-0.3, 0.9])[None].astype(float)
    if planted:  # a proposal that is not answered for
        monkeypatch.setattr(gibbs_cells, "_log_normal", lambda *_: 0.0)
    cells = LevelCells(problem_of(values, Ordinal(levels=(0, 1, 2), thresholds=(-0.5, 0.5))))
    draws = []
    for _ in range(6000):
        cells.draw(scores, lambda shape: rng.standard_normal(shape), rng)
        draws.append(cells.thresholds)
    assert cells.accepted > 3000
    # The posterior on a grid; the prior of thresholds is all but flat.
    grid = np.linspace(-4, 4, 201)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    log_density = np.where(first < second, 0.0, -np.inf)
    for score, level in zip(scores, values[0], strict=True):
        ends = [np.full_like(first, -np.inf), first, second, np.full_like(first, np.inf)]
        share = stats.norm.cdf(ends[int(level) + 1] - score) - stats.norm.cdf(ends[int(level)] - score)
        log_density = log_density + np.log(np.maximum(share, 1e-300))
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = np.array([(density * first).sum(), (density * second).sum()])
    std = np.sqrt([(density * (first - mean[0]) ** 2).sum(), (density * (second - mean[1]) ** 2).sum()])
    found = np.array(draws)
    # Draws are worth about a third of as many independent ones.
    z_mean = np.abs(found.mean(axis=0) - mean) / (std / np.sqrt(2000))
    z_std = np.abs(found.std(axis=0) / std - 1) / np.sqrt(0.5 / 2000)
    assert (max(z_mean.max(), z_std.max()) < 4) is not planted


def prior_draw(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Scores and likes, from factors and biases that are N(0, d^2 / 2) with sizes d of the prior."""
    rows, cols = (
        rng.standard_normal((length, 2)) / np.sqrt(2.0) * SPREAD * np.sqrt(2.0) * rng.standard_normal(2)
        for length in shape
    )
    scores = rows[:, :1] @ cols[:, :1].T + rows[:, 1:] + cols[:, 1]
    return scores, (scores + rng.standard_normal(shape) > 0).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("planted", [1.0, 0.3])
def test_ranks_of_the_truth_among_draws_are_uniform(planted, monkeypatch):
    """Simulation-based calibration: what data were made from is one more draw given them."""
    monkeypatch.setattr(SidePrior, "draw", lambda *_: None)  # it stays at N(0, 1/2), but for sizes
    resize = SidePrior.resize
    if planted != 1.0:  # sizes that believe too little of what the cells say
        monkeypatch.setattr(SidePrior, "resize", lambda own, seen, rng: resize(own, planted * seen, rng))
    ranks, kept = [], 15
    with one_blas_thread():
        for seed in range(160):
            rng = np.random.default_rng([7, seed])
            scores, levels = prior_draw(rng, (7, 6))
            problem = problem_of(levels, Probit())
            chain = Chain(problem, problem.start(rng), rng, diagonal=False)
            draws = []
            for number in range(40 + 4 * kept):
                chain.sweep()
                if number >= 40 and number % 4 == 0:
                    cells = chain.scores_at(np.array([0, 3]), np.array([0, 4]))
                    draws.append([cells[0], cells[1] ** 2])
            truth = np.array([scores[0, 0], scores[3, 4] ** 2])
            ranks.append((np.array(draws) < truth).sum(axis=0))
    p_values = []
    for found in np.array(ranks).T:
        counts = np.bincount(found // 4, minlength=4)  # 0 to 15 in four bins
        p_values.append(stats.chisquare(counts).pvalue)
    assert (min(p_values) > 0.005) == (planted == 1.0), p_values
