"""Neighbours, votes, ranked lists, partitions and the linear map of the neighbour classifiers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from unseen import SLEEC, ExMLDS
from unseen.exceptions import ConvergenceWarning
from unseen.multilabel.learners import Learner, LearnerSearch, Part
from unseen.multilabel.neighbours import NeighbourIndex, votes
from unseen.multilabel.partition import assign, graph_partition, spherical_kmeans
from unseen.multilabel.regression import LinearMap, regress
from unseen.multilabel.scaling import scaled_rows
from unseen.multilabel.selecting import label_order, ranked


def naive_nearest(queries: Any, points: Any, k: int, metric: str) -> Any:
    if metric == "cosine":
        lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(points, axis=1)
        score = np.divide(queries @ points.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    elif metric == "l2":
        score = -((queries[:, None] - points[None]) ** 2).sum(axis=2)
    else:
        score = queries @ points.T
    return np.argsort(-score, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
@pytest.mark.parametrize("k", [1, 5, 100])
def test_neighbours_are_those_of_a_full_comparison(metric: Any, k: int) -> None:
    rng = np.random.default_rng(0)
    queries, points = rng.standard_normal((13, 4)), rng.standard_normal((30, 4))
    ids, _ = NeighbourIndex(points, metric).search(queries, k)
    assert np.array_equal(ids, naive_nearest(queries, points, k, metric))
    others = {"cosine": "l2", "l2": "dot", "dot": "cosine"}
    if k == 5:
        assert not np.array_equal(ids, naive_nearest(queries, points, k, others[metric]))


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
def test_equal_points_come_in_the_order_of_their_rows(metric: Any) -> None:
    points = np.tile([[1.0, 2.0]], (6, 1))
    ids, cosines = NeighbourIndex(points, metric).search(np.array([[2.0, 4.0], [0.0, 0.0]]), 3)
    assert ids.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert np.allclose(cosines, [[1.0] * 3, [0.0] * 3])


def test_usearch_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(ValueError, match=r"unseen\[ann\]"):
        NeighbourIndex(np.eye(3), search="usearch")


def test_usearch_finds_nearly_all() -> None:
    pytest.importorskip("usearch")
    rng = np.random.default_rng(0)
    points = rng.standard_normal((500, 8)).astype(np.float32)
    exact = NeighbourIndex(points).search(points[:50], 10)[0]
    found, cosines = NeighbourIndex(points, search="usearch").search(points[:50], 10)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact, found, strict=True)]) > 0.9
    assert np.allclose(cosines[:, 0], 1.0, atol=1e-5)


def test_votes_are_the_mean_of_labels_and_weights_count() -> None:
    Y = sparse.csr_array([[1.0, 0, 1], [1, 1, 0], [0, 0, 1]])
    ids = np.array([[0, 1], [2, -1]])
    cosines = np.array([[0.5, -1.0], [0.8, 0.0]])
    assert np.allclose(votes(ids, cosines, Y).toarray(), [[1.0, 0.5, 0.5], [0, 0, 0.5]])
    weighted = votes(ids, cosines, Y, power=2.0).toarray()
    assert np.allclose(weighted, [[0.125, 0, 0.125], [0, 0, 0.32]])


def test_ties_go_to_the_frequent_label_then_to_the_lower_index() -> None:
    place = label_order(np.array([3, 7, 7, 1, 9]))
    scores = sparse.csr_array([[0.5, 0.5, 0.5, 0.9, 0.0], [0.0, 0.0, 0.0, 0.2, 0.0], [0.0] * 5])
    ids, values = ranked(scores, 4, place)
    assert ids.tolist() == [[3, 1, 2, 0], [3, 4, 1, 2], [4, 1, 2, 0]]
    assert values[1].tolist() == [0.2, 0.0, 0.0, 0.0]
    by_index = ranked(scores, 4, np.arange(5))[0]
    assert by_index[0].tolist() == [3, 0, 1, 2]  # another rule gives another list


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_lists_equal_a_full_sort(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 3, (5, 6)) / 2.0 * (rng.random((5, 6)) < 0.5)
    counts = rng.integers(0, 3, 6)
    ids, values = ranked(sparse.csr_array(dense), k, label_order(counts))
    for row in range(5):
        wanted = sorted(range(6), key=lambda j: (-dense[row, j], -counts[j], j))[:k]
        assert ids[row, : len(wanted)].tolist() == wanted
        assert np.array_equal(values[row, : len(wanted)], dense[row, wanted])
        assert (ids[row, len(wanted) :] == -1).all()
        assert np.isnan(values[row, len(wanted) :]).all()


def blobs(n: int = 120) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    kinds = np.arange(n) % 3
    X = np.eye(3)[kinds] * 4 + rng.standard_normal((n, 3)) * 0.3
    return scaled_rows(X), kinds


@pytest.mark.parametrize("as_sparse", [False, True])
def test_kmeans_finds_separate_directions(as_sparse: bool) -> None:
    X, kinds = blobs()
    given_X = sparse.csr_array(X) if as_sparse else X
    sums = []
    for rounds in range(1, 8):
        directions, parts = spherical_kmeans(given_X, 3, np.random.default_rng(5), max_iter=rounds)
        sums.append(float((X * directions[parts]).sum()))
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(sums))
    assert all(len(np.unique(parts[kinds == kind])) == 1 for kind in range(3))
    assert np.array_equal(assign(given_X, directions), parts)


def test_kmeans_leaves_no_part_empty() -> None:
    X = np.tile([[1.0, 0.0]], (10, 1))
    _, parts = spherical_kmeans(X, 4, np.random.default_rng(0))
    assert set(parts) == {0, 1, 2, 3}


def test_graph_parts_follow_labels_where_features_mislead() -> None:
    rng = np.random.default_rng(0)
    n = 400
    kind = rng.integers(0, 2, n)
    # Loud features say nothing about labels, one quiet feature tells them.
    loud = np.eye(2)[rng.integers(0, 2, n)] * 2.0
    X = scaled_rows(np.column_stack([loud, (2 * kind - 1) * 0.7]))
    Y = sparse.csr_array(np.eye(2)[kind])
    by_graph = graph_partition(X, Y, 2, np.random.default_rng(1))[1]
    by_features = spherical_kmeans(X, 2, np.random.default_rng(1))[1]

    def agreement(parts: Any) -> float:
        return max(np.mean(parts == kind), np.mean(parts != kind))

    assert agreement(by_graph) > 0.95
    assert agreement(by_features) < 0.8


def test_pruned_maps_keep_the_large_weights() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((50, 20), density=0.3, rng=rng, format="csr")
    X = sparse.csr_array(sparse.hstack([X, sparse.csr_array((50, 5))]))  # features that never occur
    Z = rng.standard_normal((50, 4))
    full, half = regress(X, Z, 1.0), regress(X, Z, 1.0, prune=0.5)
    assert full.features.tolist() == list(range(20))
    assert half.n_stored == full.n_stored // 2
    lost = np.abs(full.weights)[half.weights.toarray() == 0]
    assert lost.max() <= np.abs(half.weights.data).min()
    dense = np.zeros((25, 4))
    dense[:20] = full.weights
    assert np.allclose(full.apply(X), X @ dense)
    assert np.allclose(half.apply(X), X[:, :20] @ half.weights.toarray())


def joint_learner(n: int = 40, n_labels: int = 12) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(2)
    X = scaled_rows(rng.standard_normal((n, 5)))
    X[-1] = 0.0  # an embedding of zero
    Y = sparse.csr_array((rng.random((n, n_labels)) < 0.15).astype(float))
    linear = LinearMap(np.arange(5), rng.standard_normal((5, 3)))
    points = rng.standard_normal((n_labels, 3))
    points[4] = 0.0
    parts = [Part(np.arange(0, n, 2), linear, linear.apply(X[::2]), points)]
    parts.append(Part(np.arange(1, n, 2), linear, linear.apply(X[1::2]), points * 0.7))
    return X, Y, Learner(rng.standard_normal((2, 5)), parts)


def test_candidates_of_combined_scores_hold_the_best_of_all() -> None:
    X, Y, learner = joint_learner()
    search = LearnerSearch(learner, Y, k=4, metric="cosine", power=0.0, search="exact", n_threads=1)
    place = label_order(np.asarray(Y.sum(axis=0)).ravel())
    dense = search.combined(X)
    for k in (1, 3, 12):
        first = np.argsort(place)[:k]
        ids, values = ranked(search.combined_candidates(X, k, first), k, place, fill=False)
        best = -np.sort(-dense, axis=1)[:, :k]
        assert np.allclose(values, best, atol=1e-12)
        assert np.allclose(np.take_along_axis(dense, ids, axis=1), best, atol=1e-12)


def test_combined_scores_are_two_unit_vectors_and_never_nan() -> None:
    X, Y, learner = joint_learner()
    search = LearnerSearch(learner, Y, k=4, metric="cosine", power=0.0, search="exact", n_threads=1)
    dense, by_votes = search.combined(X), search.votes(X).toarray()
    assert np.isfinite(dense).all()
    part = assign(X, learner.directions)
    for row in range(len(X)):
        one = learner.parts[part[row]]
        s1, s2 = by_votes[row], one.label_points @ (X[row] @ one.map.weights)
        wanted = np.zeros(Y.shape[1])
        for score in (s1, s2):
            if np.linalg.norm(score) > 0:
                wanted = wanted + score / np.linalg.norm(score)
        assert np.allclose(dense[row], wanted)
    assert np.allclose(np.linalg.norm(dense[-1]), np.linalg.norm(by_votes[-1]) > 0)


def test_sleec_notes_its_errors_and_says_when_it_has_not_settled() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    Y = sparse.csr_array((X @ rng.standard_normal((6, 12)) > 1.5) * 1.0)
    done = SLEEC(n_components=4, n_neighbors=10, k=5, random_state=0).fit(X, Y)
    errors = [step["error"] for step in done.history_]
    assert done.converged_
    assert len(errors) == done.n_iter_ > 3
    assert all(np.diff(errors) <= 0)
    with pytest.warns(ConvergenceWarning, match="a part stopped at max_iter"):
        short = SLEEC(n_components=4, n_neighbors=10, k=5, max_iter=2, random_state=0).fit(X, Y)
    assert not short.converged_
    assert [step["error"] for step in short.history_] == errors[:2]
    assert ExMLDS(n_components=4, n_neighbors=10, k=5, random_state=0).fit(X, Y).converged_
