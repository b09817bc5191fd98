import inspect
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from unseen import datasets
from unseen.datasets import (
    hide_labels,
    make_fourier,
    make_gimc_toy,
    make_imc,
    make_low_rank,
    make_positives,
    make_power_law,
    make_ratings,
)
from unseen.datasets.sampling import draw_cells
from unseen.exceptions import ParameterError

SMALL = {
    make_low_rank: {"n_rows": 60, "n_cols": 40},
    make_imc: {"n_rows": 60, "n_cols": 40},
    make_ratings: {"n_rows": 60, "n_cols": 40},
    make_gimc_toy: {},
    make_fourier: {"n_rows": 60, "n_cols": 40},
    make_power_law: {"n_rows": 60, "n_cols": 40, "n_cells": 500, "rank": 3},
    make_positives: {"n_rows": 60, "n_cols": 40, "n_features": 12},
}


def same(first, second):
    return np.array_equal(first.values, second.values) and np.array_equal(first.indices, second.indices)


@pytest.mark.parametrize("make", SMALL)
def test_seeds(make):
    first, again, other = (make(**SMALL[make], random_state=seed) for seed in (0, 0, 1))
    assert same(first.observations, again.observations)
    assert not same(first.observations, other.observations)
    for name, value in vars(first).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(again, name))


@pytest.mark.parametrize("make", [make for make in SMALL if make not in (make_positives, make_ratings)])
def test_what_is_seen_is_the_truth_and_noise(make):
    noisy = make(**SMALL[make], random_state=0)
    seen = noisy.observations
    error = seen.values - noisy.truth(seen.rows, seen.indices)
    assert np.std(error) == pytest.approx(noisy.noise, rel=0.2)
    assert noisy.noise > 0
    silent = {"noise_variance": 0.0} if make is make_gimc_toy else {"noise": 0.0}
    exact = make(**SMALL[make], **silent, random_state=0)
    seen = exact.observations
    np.testing.assert_allclose(seen.values, exact.truth(seen.rows, seen.indices), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [make_low_rank, make_imc, make_fourier])
def test_variance_of_the_truth_is_one(make):
    variances = []
    for seed in range(10):
        data = make(random_state=seed)
        variances.append(np.var(data.row_factors @ data.col_factors.T))
    assert np.mean(variances) == pytest.approx(1, abs=0.25)


def test_features_explain_inductive_data_and_nothing_else():
    data = make_imc(random_state=0)
    np.testing.assert_allclose(data.row_features @ data.row_weights, data.row_factors)
    np.testing.assert_allclose(data.col_features @ data.col_weights, data.col_factors)
    assert np.linalg.matrix_rank(data.row_weights @ data.col_weights.T) == 3


def explained(features, target):
    """Share of the variance of a target that a linear function of features explains."""
    design = np.column_stack([features, np.ones(len(features))])
    rest = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return 1 - np.var(rest, axis=0).sum() / np.var(target, axis=0).sum()


def test_ratings_depend_on_features_in_part():
    data = make_ratings(2000, 50, explained=0.6, random_state=0)
    assert set(np.unique(data.observations.values)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    scores = data.row_factors @ data.col_factors.T
    # Offsets and half of each side of the tastes: cold rows can be predicted in part, not wholly.
    assert 0.4 < explained(data.row_features, scores) < 0.8
    none = make_ratings(2000, 50, explained=0.0, random_state=0)
    assert explained(none.row_features, none.row_factors @ none.col_factors.T) < 0.05
    full = make_ratings(2000, 50, explained=1.0, random_state=0)
    assert explained(full.row_features, full.row_factors @ full.col_factors.T) == pytest.approx(1)


def test_waves_are_hidden_from_linear_models():
    data = make_fourier(2000, 40, random_state=0)
    assert explained(data.row_features, data.row_factors @ data.col_factors.T) < 0.35


def test_the_toy_of_the_paper():
    data = make_gimc_toy(fraction=0.3, random_state=0)
    assert data.observations.nnz == 12_000
    assert data.row_features.shape == data.col_features.shape == (200, 50)
    assert data.noise == pytest.approx(np.sqrt(0.1))


@pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 1.0])
def test_cells_are_distinct_and_uniform(share):
    rng = np.random.default_rng(0)
    counts = np.zeros((20, 30))
    for _ in range(200):
        rows, cols = draw_cells((20, 30), round(600 * share) or 1, rng)
        assert (
            len(set(zip(rows.tolist(), cols.tolist(), strict=True))) == rows.size == (round(600 * share) or 1)
        )
        assert (np.diff(rows * 30 + cols) > 0).all()
        counts[rows, cols] += 1
    expected = 200 * (round(600 * share) or 1) / 600
    spread = np.sqrt(expected * (1 - share)) + 1e-9
    assert (np.abs(counts - expected) <= 5 * spread + 2).all()
    assert np.abs(counts[:10].mean() - counts[10:].mean()) <= 0.2 * expected + 0.3


@pytest.mark.parametrize("mode", [{"n_groups": 4}, {"rank": 3, "class_prior": 0.2}])
def test_positives(mode):
    data = make_positives(200, 150, rho=0.7, random_state=0, **mode)
    total, hidden, seen = data.positives.nnz, data.hidden.nnz, data.observations.nnz
    assert hidden + seen == total
    assert hidden == round(0.7 * total)
    assert set(data.observations.values) == {1.0}
    assert (data.observations.csr.multiply(data.positives) != data.observations.csr).nnz == 0
    scores = data.row_factors @ data.col_factors.T
    if data.threshold is None:
        assert set(np.unique(scores).round(12)) == {0.1, 0.9}
        inside = data.row_groups[:, None] == data.col_groups[None, :]
        assert data.positives.toarray()[inside].mean() == pytest.approx(0.9, abs=0.02)
        assert data.positives.toarray()[~inside].mean() == pytest.approx(0.1, abs=0.02)
    else:
        np.testing.assert_array_equal(data.positives.toarray(), scores > data.threshold)
        assert total / scores.size == pytest.approx(0.2, abs=0.02)


def test_positives_of_low_rank_and_their_features():
    data = make_positives(
        80, 60, n_groups=3, inside=1.0, across=0.0, n_features=7, feature_noise=0.0, rho=0.0, random_state=0
    )
    assert np.linalg.matrix_rank(data.positives.toarray()) == 3
    assert data.hidden.nnz == 0
    assert data.row_features.shape == (80, 7)
    assert explained(data.row_features, data.row_factors) == pytest.approx(1)
    noisy = make_positives(80, 60, n_groups=3, n_features=7, feature_noise=5.0, random_state=0)
    assert explained(noisy.row_features, noisy.row_factors) < 0.5


def test_hiding_labels():
    Y = sparse.random_array((50, 20), density=0.3, format="csr", rng=0)
    before = Y.copy()
    seen = hide_labels(Y, 0.8, random_state=0)
    assert seen.nnz == Y.nnz - round(0.8 * Y.nnz)
    assert (before != Y).nnz == 0
    assert ((seen != 0) > (Y != 0)).nnz == 0
    assert hide_labels(Y, 0.0).nnz == Y.nnz
    assert hide_labels(Y, 1.0).nnz == 0
    assert (hide_labels(Y, 0.5, 0) != hide_labels(Y, 0.5, 1)).nnz > 0
    with pytest.raises(ParameterError, match="fraction"):
        hide_labels(Y, 1.5)


def test_popularity_follows_the_power_law():
    data = make_power_law(2000, 1000, 20_000, exponent=0.8, shuffle=False, random_state=0)
    per_row = np.diff(data.observations.indptr)
    assert per_row[:20].mean() > 3 * per_row[200:400].mean()
    assert per_row[200:400].mean() > 2 * per_row[1500:].mean()
    flat = np.diff(make_power_law(2000, 1000, 20_000, exponent=0.0, random_state=0).observations.indptr)
    assert flat.max() < 40 < per_row.max()
    shuffled = np.diff(make_power_law(2000, 1000, 20_000, random_state=0).observations.indptr)
    assert shuffled[:20].mean() < 0.5 * per_row[:20].mean()
    assert data.observations.dtype == np.float32
    assert set(data.observations.values) == {1.0}


def test_power_law_memory_grows_with_cells_only():
    tracemalloc.start()
    seen = make_power_law(200_000, 300_000, 200_000, rank=2, random_state=0).observations
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen.shape == (200_000, 300_000)  # 60 thousand million cells
    assert peak < 40e6


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_low_rank, {"rank": 0}, "rank must be an integer >= 1"),
        (make_low_rank, {"density": 0}, "density"),
        (make_low_rank, {"noise": -1}, "noise"),
        (make_gimc_toy, {"fraction": 2}, "fraction"),
        (make_imc, {"rank": 20}, "rank must be at most 8"),
        (make_fourier, {"rank": 20}, "twice n_waves"),
        (make_ratings, {"explained": 1.5}, "explained"),
        (make_positives, {"rho": 1}, "rho"),
        (make_positives, {"rank": 2, "n_groups": 2}, "either n_groups or rank"),
        (make_positives, {"n_features": 2}, "n_features must be at least 10"),
        (make_power_law, {"n_rows": 5, "n_cols": 5, "n_cells": 5, "dtype": np.int8}, "dtype must be one of"),
        (make_low_rank, {"random_state": "x"}, "random_state"),
    ],
)
def test_misuse_is_named(make, options, message):
    with pytest.raises(ParameterError, match=message):
        make(**options)


def test_all_loaders_look_alike():
    loaders = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("load_")]
    assert len(loaders) == 17
    for load in loaders:
        parameters = inspect.signature(load).parameters
        assert list(parameters)[:2] == ["data_home", "download"]
        assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
        assert parameters["download"].default is False
