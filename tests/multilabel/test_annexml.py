"""AnnexML: parts that keep pairs together, and the ensemble over them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unseen import AnnexML, load
from unseen.embeddings.graph import neighbor_counts
from unseen.exceptions import ParameterError
from unseen.metrics import precision_at_k
from unseen.multilabel.pairs import FollowedLeader, pair_partition
from unseen.multilabel.scaling import scaled_rows


def data(n: int = 400, seed: int = 0) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Eight groups with words and labels of their own, some of both noise."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 8, n)
    X = (rng.random((n, 40)) < 0.05) * 1.0
    X[np.arange(n), group * 5 + rng.integers(0, 5, n)] += 1.0
    X[np.arange(n), group * 5 + rng.integers(0, 5, n)] += 1.0
    Y = (rng.random((n, 24)) < 0.02) * 1.0
    Y[np.arange(n), group * 3 + rng.integers(0, 3, n)] = 1.0
    return sparse.csr_array(X), sparse.csr_array(Y)


def kept(near: sparse.csr_array, parts: np.ndarray) -> float:
    """Share of neighbours in the same part."""
    owner = np.repeat(np.arange(near.shape[0]), np.diff(near.indptr))
    return float((parts[owner] == parts[near.indices]).mean())


def test_weights_follow_the_sum_of_gradients() -> None:
    rng = np.random.default_rng(0)
    start = np.array([[0.0, 0.3, -0.2]])
    leader = FollowedLeader(start, rate=0.1, l1=0.5)
    np.testing.assert_allclose(leader.weights, start)
    gradients = rng.standard_normal((30, 3))
    for gradient in gradients:
        leader.step(np.array([0]), gradient[None])
    # The maximum of: sum g w - l1 |w| - sum (s_t - s_{t-1}) / rate / 2 (w - w_t)^2, term by term.
    w, squares = start[0].copy(), np.ones(3)
    linear = w / 0.1 + 0.5 * np.sign(w)
    for gradient in gradients:
        more = squares + gradient**2
        linear += gradient + (np.sqrt(more) - np.sqrt(squares)) / 0.1 * w
        squares = more
        grid = np.linspace(-2, 2, 40_001)
        value = linear[:, None] * grid - 0.5 * abs(grid) - np.sqrt(squares)[:, None] / 0.2 * grid**2
        w = grid[np.argmax(value, axis=1)]
    np.testing.assert_allclose(leader.weights[0], w, atol=2e-3)
    assert (leader.weights[0] != 0).any()


def test_parts_keep_pairs_and_a_shuffled_graph_is_not_kept() -> None:
    X, Y = data()
    rows, rng = scaled_rows(X), np.random.default_rng(1)
    near = neighbor_counts(Y, 10, rng=rng, similarity="share")
    planes, parts = pair_partition(rows, near, 4, np.random.default_rng(0), l1=0.5, max_iter=20)
    sizes = np.bincount(parts, minlength=4)
    assert (sizes > 20).sum() >= 3
    by_chance = float(((sizes / sizes.sum()) ** 2).sum())
    assert kept(near, parts) > by_chance + 0.3
    np.testing.assert_array_equal(parts, np.argmax(rows @ planes.T, axis=1))
    other = rng.permutation(len(parts))
    assert abs(kept(near, parts[other]) - by_chance) < 0.1
    sparser, _ = pair_partition(rows, near, 4, np.random.default_rng(0), l1=20.0)
    assert (sparser == 0).mean() > 0.1 > (planes == 0).mean()


def test_the_ensemble_learns_with_and_without_parts() -> None:
    X, Y = data(600)
    train, test = slice(0, 400), slice(400, 600)
    popular = np.full((200, 1), int(np.argmax(Y[train].sum(axis=0))))
    base = precision_at_k(Y[test], popular, 1)
    for n_clusters in ("auto", 3):
        model = AnnexML(8, n_clusters=n_clusters, n_learners=3, l1=0.5, random_state=0)
        model.fit(X[train], Y[train])
        assert len(model.learners_[0].parts) == (1 if n_clusters == "auto" else 3)
        assert precision_at_k(Y[test], model.predict_topk(X[test])[0], 1) > base + 0.15


def test_neighbours_are_nearer_than_at_the_start() -> None:
    X, Y = data(200)
    near = neighbor_counts(Y, 10, rng=np.random.default_rng(0), similarity="share")
    owner = np.repeat(np.arange(200), np.diff(near.indptr))

    def ahead(points: np.ndarray) -> float:
        units = points / np.linalg.norm(points, axis=1, keepdims=True)
        cosines = units @ units.T
        return float(cosines[owner, near.indices].mean() - cosines.mean())

    first, last = (
        AnnexML(8, n_learners=1, max_iter=passes, random_state=0).fit(X, Y).learners_[0].parts[0].points
        for passes in (1, 20)
    )
    assert ahead(last) > ahead(first) + 0.05


def test_threads_change_nothing_and_saved_models_come_back(tmp_path, monkeypatch) -> None:
    from unseen.kernels import _arguments

    X, Y = data(150)
    settings = {"n_clusters": 2, "n_learners": 2, "l1": 0.5, "max_iter": 3, "random_state": 0}
    one = AnnexML(4, n_jobs=1, **settings).fit(X, Y)
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)
    other = AnnexML(4, n_jobs=3, **settings).fit(X, Y)
    for ours, theirs in zip(one.learners_, other.learners_, strict=True):
        assert ours.directions.tobytes() == theirs.directions.tobytes()
        assert [p.points.tobytes() for p in ours.parts] == [p.points.tobytes() for p in theirs.parts]
    one.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_topk(X)[1], one.predict_topk(X)[1])


@pytest.mark.parametrize(
    "setting",
    [{"n_neighbors": 0}, {"n_clusters": "many"}, {"gamma": 0.0}, {"learning_rate": -1.0}, {"l1": -1.0}],
)
def test_settings_out_of_range_are_refused(setting) -> None:
    X, Y = data(30)
    with pytest.raises(ParameterError, match=next(iter(setting))):
        AnnexML(4, **setting).fit(X, Y)
