"""Clustering from pairs by learned and by linear features."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unseen
from unseen import MCCC, GIMCClustering, Tanh
from unseen.estimators.gimc_clustering import left_space
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.metrics import pair_error

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def rings(n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three rings in a plane, and a feature that says nothing: no line separates them."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1.0 + 1.5 * y + 0.15 * rng.standard_normal(n)
    plane = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return np.hstack([plane, rng.standard_normal((n, 1))]), y


def known(y: np.ndarray, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    low, high = np.triu_indices(len(y), 1)
    picked = rng.choice(len(low), count, replace=False)
    pairs = np.column_stack([low[picked], high[picked]])
    return pairs, y[pairs[:, 0]] == y[pairs[:, 1]]


def quick(**options: Any) -> GIMCClustering:
    return GIMCClustering(3, **{"n_components": 15, "max_iter": 15, "random_state": 0, **options})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tie_uv": True},
        {"map": "nystrom", "n_components": 30, "reg": 0.01},
        {"map": Tanh(30, scale=2.0)},
    ],
)
def test_pairs_find_rings_that_features_alone_do_not(options: dict[str, Any]) -> None:
    X, y = rings()
    pairs, same = known(y, 1500)
    assert pair_error(y, quick(**options).fit(X, pairs=pairs, same=same).labels_) < 0.1
    # Controls: linear features, and pairs with shuffled answers.
    assert pair_error(y, MCCC(3, random_state=0).fit(X, pairs=pairs, same=same).labels_) > 0.2
    shuffled = np.random.default_rng(0).permutation(same)
    assert pair_error(y, quick(**options).fit(X, pairs=pairs, same=shuffled).labels_) > 0.2


def test_learned_map_fits_better_than_the_fixed_one_with_as_many_sweeps() -> None:
    X, y = rings()
    pairs, same = known(y, 1000)
    options: dict[str, Any] = {"tol": 0.0, "max_iter": 6, "start_sweeps": 4, "n_components": 8}
    learned = quick(**options).fit(X, pairs=pairs, same=same)
    fixed = quick(learn_map=False, **options).fit(X, pairs=pairs, same=same)
    assert learned.n_iter_ == fixed.n_iter_ == 6
    objectives = [entry["objective"] for entry in learned.history_]
    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(objectives))
    assert objectives[-1] < 0.9 * fixed.history_[-1]["objective"]


def test_linear_model_finds_what_is_linear() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5))
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    pairs, same = known(y, 400)
    assert pair_error(y, MCCC(2, random_state=0).fit(X, pairs=pairs, same=same).labels_) < 0.15
    assert pair_error(y, MCCC(2, random_state=0).fit(X).labels_) > 0.3  # control: no pairs


def test_scores_of_pairs_are_those_of_the_objective() -> None:
    """MCCC's objective, written out over the known pairs, is what is reported."""
    X, y = rings(60)
    pairs, same = known(y, 200)
    model = MCCC(3, reg=0.7, random_state=0).fit(X, pairs=pairs, same=same)
    state = model.completer_.state_
    i, j = np.r_[pairs[:, 0], pairs[:, 1]], np.r_[pairs[:, 1], pairs[:, 0]]
    off = model.completer_.predict_entries(i, j) - np.r_[same, same]
    squares = np.sum(state["0.row"] ** 2) + np.sum(state["0.col"] ** 2)
    value = 0.5 * off @ off + 0.7 / 60 / 2 * squares
    np.testing.assert_allclose(value, model.history_[-1]["objective"], rtol=1e-10)
    once = 0.5 * off[: len(pairs)] @ off[: len(pairs)] + 0.7 / 60 / 2 * squares
    assert not np.isclose(once, model.history_[-1]["objective"])


@pytest.mark.filterwarnings("ignore:the row factors have rank")
def test_reg_is_chosen_on_held_out_pairs() -> None:
    X, y = rings()
    pairs, same = known(y, 600)
    model = quick(reg=[1e4, 0.1], learn_map=False).fit(X, pairs=pairs, same=same)
    assert model.reg_ == 0.1
    assert model.validation_errors_ is not None
    assert model.validation_errors_[1] < model.validation_errors_[0]
    alone = quick(reg=0.1, learn_map=False).fit(X, pairs=pairs, same=same)
    np.testing.assert_array_equal(alone.labels_, model.labels_)  # fitted again with all pairs
    assert alone.validation_errors_ is None


def test_threads_order_saving_sparse_and_float32(tmp_path: Any) -> None:
    X, y = rings(80)
    pairs, same = known(y, 300)
    model = quick(n_jobs=1, max_iter=3).fit(X, pairs=pairs, same=same)
    again = quick(n_jobs=2, max_iter=3).fit(X, pairs=pairs[::-1, ::-1], same=same[::-1])
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(
        loaded.completer_.predict_entries([0], [1]), model.completer_.predict_entries([0], [1])
    )
    thin = quick(max_iter=3).fit(sparse.csr_array(X), pairs=pairs, same=same)
    assert thin.labels_.shape == y.shape
    small = quick(max_iter=3).fit(X.astype(np.float32), pairs=pairs, same=same)
    assert small.completer_.row_factors_.dtype == np.float32


def test_left_space_spans_the_leading_directions() -> None:
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((30, 4)) * [10.0, 5.0, 1.0, 0.1]
    space, projection = left_space(factor, 2)
    np.testing.assert_allclose(factor @ projection, space, atol=1e-12)
    vectors = np.linalg.svd(factor, full_matrices=False)[0][:, :2]
    np.testing.assert_allclose(space @ space.T, vectors @ vectors.T, atol=1e-12)
    with pytest.warns(DataWarning, match="rank 1"):
        assert left_space(np.outer(np.ones(5), [1.0, 2.0, 0.0]), 3)[0].shape == (5, 1)
    with pytest.warns(DataWarning, match="rank 0"):
        assert not left_space(np.zeros((5, 3)), 3)[0].any()


@pytest.mark.parametrize("model", [quick(), MCCC(3)])
def test_contradictory_pairs_are_named(model: Any) -> None:
    X, _ = rings(30)
    with pytest.raises(InvalidDataError, match=r"\(3, 7\)"):
        model.fit(X, pairs=[[3, 7], [1, 2], [7, 3]], same=[True, True, False])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 31}, "n_clusters=31"),
        ({"reg": -1.0}, "reg"),
        ({"reg": []}, "reg is an empty list"),
        ({"map": "cosine"}, "map"),
        ({"solver": "sgd"}, "solver"),
        ({"n_init": 0}, "n_init"),
        ({"rank": 0}, "rank"),
    ],
)
def test_bad_settings_are_named(options: dict[str, Any], message: str) -> None:
    X, y = rings(30)
    pairs, same = known(y, 40)
    with pytest.raises(ParameterError, match=message):
        quick(max_iter=1).set_params(**options).fit(X, pairs=pairs, same=same)


def test_too_few_pairs_to_choose_from() -> None:
    X, _ = rings(30)
    with pytest.raises(InvalidDataError, match="leaves none for validation"):
        quick(reg=[0.1, 1.0]).fit(X, pairs=[[0, 3], [1, 4]])


@pytest.mark.parametrize(
    "model", [GIMCClustering(2, n_components=4, start_sweeps=1, max_iter=1), MCCC(2, max_iter=1)]
)
def test_no_array_of_items_times_items(model: Any) -> None:
    n = 12_000
    rng = np.random.default_rng(0)
    X, pairs = rng.standard_normal((n, 4)), rng.integers(0, n, (20_000, 2))
    same = X[pairs[:, 0], 0] * X[pairs[:, 1], 0] > 0
    tracemalloc.start()
    try:
        model.set_params(n_init=1, n_jobs=1, random_state=0).fit(X, pairs=pairs, same=same)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n * 8 / 20, f"{peak / 2**20:.0f} MiB"


def test_single_item() -> None:
    assert GIMCClustering(1, random_state=0).fit(np.ones((1, 2))).labels_.tolist() == [0]
