"""Ranking metrics against brute force over rows and against scikit-learn."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import ndcg_score

from unseen.exceptions import InvalidDataError, ParameterError
from unseen.metrics import (
    frequency_bins,
    hit_rate_at_k,
    label_propensities,
    map_at_k,
    mrr_at_k,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_ndcg_at_k,
    propensity_scored_precision_at_k,
    recall_at_k,
)

RANKING = [precision_at_k, recall_at_k, ndcg_at_k, map_at_k, mrr_at_k, hit_rate_at_k]


def sorted_columns(scores):
    """Reference order: larger score first, then smaller column; NaN and -inf left out."""
    listed = [j for j in range(len(scores)) if not math.isnan(scores[j]) and scores[j] > -math.inf]
    return sorted(listed, key=lambda j: (-scores[j], j))


def brute_force(Y, scores, k):
    """All measures at k by loops and sets."""
    precision, recall, ndcg, average, reciprocal, hit = [], [], [], [], [], []
    for i in range(len(Y)):
        true = {j for j in range(Y.shape[1]) if Y[i, j] != 0}
        top = sorted_columns(scores[i])[:k]
        hits = [j in true for j in top]
        precision.append(sum(hits) / k)
        recall.append(sum(hits) / len(true) if true else 0.0)
        gain = sum(1 / math.log2(p + 2) for p, hit in enumerate(hits) if hit)
        best = sum(1 / math.log2(p + 2) for p in range(min(k, len(true))))
        ndcg.append(gain / best if true else 0.0)
        found = [p for p, is_hit in enumerate(hits) if is_hit]
        average.append(sum((n + 1) / (p + 1) for n, p in enumerate(found)) / max(min(k, len(true)), 1))
        reciprocal.append(1 / (found[0] + 1) if found else 0.0)
        hit.append(bool(found))
    return [np.mean(values) for values in (precision, recall, ndcg, average, reciprocal, hit)]


@st.composite
def problems(draw):
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    k = draw(st.integers(1, m))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, m)) < 0.4).astype(float)
    scores = rng.integers(0, 4, size=(n, m)).astype(float)  # few levels, so ties are everywhere
    scores[rng.random((n, m)) < draw(st.sampled_from([0.0, 0.3]))] = draw(st.sampled_from([np.nan, -np.inf]))
    return Y, scores, k


@given(problems())
def test_scores_agree_with_brute_force(problem):
    Y, scores, k = problem
    got = [metric(sparse.csr_array(Y), scores, k) for metric in RANKING]
    np.testing.assert_allclose(got, brute_force(Y, scores, k), rtol=1e-13)


@given(problems())
def test_ids_and_scores_agree(problem):
    Y, scores, k = problem
    ids = np.full((len(Y), k), -1)
    for i, row in enumerate(scores):
        top = sorted_columns(row)[:k]
        ids[i, : len(top)] = top
    for metric in RANKING:
        assert metric(sparse.coo_array(Y), ids, k) == metric(Y, scores, k)


def test_blocks_of_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    Y = rng.random((50, 20)) < 0.2
    scores = rng.integers(0, 5, size=(50, 20)).astype(np.float32)
    whole = [metric(Y, scores, 7) for metric in RANKING]
    monkeypatch.setattr("unseen.metrics._lists._SCORES_PER_BLOCK", 60)
    assert [metric(Y, scores, 7) for metric in RANKING] == whole


@pytest.mark.parametrize("k", [1, 3, 10])
def test_ndcg_agrees_with_scikit_learn(k):
    rng = np.random.default_rng(k)
    Y = (rng.random((40, 30)) < 0.2).astype(float)
    scores = rng.standard_normal((40, 30))
    np.testing.assert_allclose(
        ndcg_at_k(sparse.csr_array(Y), scores, k), ndcg_score(Y, scores, k=k), rtol=1e-12
    )
    # Negative control: another truth must not agree.
    assert abs(ndcg_at_k(sparse.csr_array(1 - Y), scores, k) - ndcg_score(Y, scores, k=k)) > 1e-3


def test_ties_prefer_the_smaller_column():
    Y = sparse.csr_array([[0, 1, 0]])
    assert precision_at_k(Y, np.zeros((1, 3)), 1) == 0.0
    assert precision_at_k(Y, np.array([[0.0, 1.0, 1.0]]), 1) == 1.0


@pytest.mark.parametrize("metric", RANKING)
def test_rows_without_relevant_columns(metric):
    Y = sparse.csr_array([[1, 0], [0, 0]])
    ids = np.array([[0], [1]])
    assert metric(Y, ids, 1) == 0.5
    assert metric(Y, ids, 1, empty_rows="skip") == 1.0
    with pytest.raises(ParameterError, match="empty_rows"):
        metric(Y, ids, 1, empty_rows="drop")
    with pytest.raises(InvalidDataError, match="no row"):
        metric(sparse.csr_array((2, 2)), ids, 1, empty_rows="skip")


def test_stored_zeros_are_not_relevant_and_input_is_untouched():
    Y = sparse.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    assert precision_at_k(Y, [[0]], 1) == 0.0
    assert Y.nnz == 2


def test_duplicate_cells_of_the_truth_count_once():
    Y = sparse.coo_array((np.ones(2), (np.zeros(2, int), np.ones(2, int))), shape=(1, 3))
    assert recall_at_k(Y, [[1]], 1) == 1.0


def test_huge_sparse_truth_is_never_made_dense():
    n, m = 200_000, 3_000_000
    rng = np.random.default_rng(0)
    cols = rng.integers(0, m, n)
    Y = sparse.csr_array((np.ones(n), cols, np.arange(n + 1)), shape=(n, m))
    ids = np.stack([cols, np.where(cols > 0, cols - 1, 1)], axis=1)
    assert precision_at_k(Y, ids, 2) == 0.5


@pytest.mark.parametrize(
    ("predictions", "k", "error", "message"),
    [
        ([[0, 1]], 2, InvalidDataError, "2 rows"),
        ([[0, 0], [0, 1]], 2, InvalidDataError, "id 0 more than once in row 0"),
        ([[0, 3], [0, 1]], 2, InvalidDataError, "id 3 in row 0, place 1"),
        ([[0, -2], [0, 1]], 2, InvalidDataError, "id -2"),
        ([[0], [1]], 2, ParameterError, "k=2 but predictions list only 1"),
        ([[0.0], [1.0]], 2, InvalidDataError, "1 columns of scores"),
        ([[True, False, True]] * 2, 1, InvalidDataError, "dtype bool"),
        ([[0], [1]], 0, ParameterError, "k"),
    ],
)
def test_bad_predictions_are_named(predictions, k, error, message):
    with pytest.raises(error, match=message):
        precision_at_k(sparse.csr_array(np.eye(2, 3)), predictions, k)


def test_empty_places_may_repeat():
    assert precision_at_k(sparse.csr_array(np.eye(2, 3)), [[0, -1, -1], [-1, -1, -1]], 3) == pytest.approx(
        1 / 6
    )


def test_nan_in_the_truth_is_named():
    Y = sparse.csr_array(np.array([[1.0, 0.0], [0.0, np.nan]]))
    with pytest.raises(InvalidDataError, match="row 1, column 1"):
        precision_at_k(Y, [[0], [1]], 1)


# --- propensities ---------------------------------------------------------------------------


def brute_force_propensity(Y, scores, p, k):
    reached = best = reached_gain = best_gain = 0.0
    for i in range(len(Y)):
        true = [j for j in range(Y.shape[1]) if Y[i, j]]
        top = sorted_columns(scores[i])[:k]
        ideal = sorted((1 / p[j] for j in true), reverse=True)[:k]
        reached += sum(1 / p[j] for j in top if j in true)
        best += sum(ideal)
        if true:
            unit = sum(1 / math.log2(q + 2) for q in range(min(k, len(true))))
            reached_gain += sum(1 / p[j] / math.log2(q + 2) for q, j in enumerate(top) if j in true) / unit
            best_gain += sum(w / math.log2(q + 2) for q, w in enumerate(ideal)) / unit
    return reached / best, reached_gain / best_gain


@given(problems())
def test_propensity_scores_agree_with_brute_force(problem):
    Y, scores, k = problem
    Y[0, 0] = 1.0
    p = np.linspace(0.1, 1.0, Y.shape[1])
    got = [
        metric(sparse.csr_array(Y), scores, p, k)
        for metric in (propensity_scored_precision_at_k, propensity_scored_ndcg_at_k)
    ]
    np.testing.assert_allclose(got, brute_force_propensity(Y, scores, p, k), rtol=1e-12)


def test_rarest_first_is_perfect_and_frequent_first_is_not():
    Y = sparse.csr_array(np.ones((3, 4)))
    p = np.array([0.9, 0.5, 0.2, 0.1])
    rare, frequent = np.tile([3, 2], (3, 1)), np.tile([0, 1], (3, 1))
    for metric in (propensity_scored_precision_at_k, propensity_scored_ndcg_at_k):
        assert metric(Y, rare, p, 2) == pytest.approx(1.0)
        assert metric(Y, frequent, p, 2) < 0.3


def test_propensity_formula():
    n, a, b = 1000, 0.55, 1.5
    for count in (0, 1, 17, 1000):
        c = (math.log(n) - 1) * (b + 1) ** a
        expected = 1 / (1 + c * math.exp(-a * math.log(count + b)))
        assert label_propensities([count], n)[0] == pytest.approx(expected, rel=1e-14)
    assert np.all(np.diff(label_propensities(np.arange(50), n)) > 0)
    assert np.all(label_propensities([0, 1], 2) == 1.0)


def test_bad_propensities_are_named():
    Y = sparse.csr_array(np.eye(2))
    with pytest.raises(InvalidDataError, match="column 1"):
        propensity_scored_precision_at_k(Y, [[0], [1]], [1.0, 0.0], 1)
    with pytest.raises(InvalidDataError, match="shape"):
        propensity_scored_precision_at_k(Y, [[0], [1]], [1.0], 1)
    with pytest.raises(InvalidDataError, match="no relevant cell"):
        propensity_scored_precision_at_k(sparse.csr_array((2, 2)), [[0], [1]], [1.0, 1.0], 1)
    with pytest.raises(InvalidDataError, match="label 1"):
        label_propensities([1, -1], 10)


# --- frequency bins -------------------------------------------------------------------------


@settings(max_examples=50)
@given(problems(), st.booleans())
def test_bins_partition_columns_places_and_hits(problem, use_edges):
    Y, scores, k = problem
    counts = np.random.default_rng(0).integers(0, 50, Y.shape[1])
    table = frequency_bins(sparse.csr_array(Y), scores, counts, k, edges=(5, 20) if use_edges else None)
    assert [row["bin"] for row in table] == ["head", "middle", "tail"]
    assert sum(row["n_columns"] for row in table) == Y.shape[1]
    assert sum(row["n_relevant"] for row in table) == int(Y.sum())
    expected_hits = precision_at_k(Y, scores, k) * k * len(Y)
    assert sum(row["n_hits"] for row in table) == pytest.approx(expected_hits)
    present = [row for row in table if row["n_columns"]]
    for upper, lower in pairwise(present):
        assert upper["lowest_count"] > lower["highest_count"]


def test_thirds_hold_equal_shares_of_occurrences():
    counts = np.concatenate([[1000], np.full(10, 100), np.full(1000, 1)])
    Y = sparse.csr_array((1, counts.size))
    table = frequency_bins(Y, np.zeros((1, counts.size)), counts, 1)
    assert [row["n_columns"] for row in table] == [1, 10, 1000]


def test_bad_edges_and_counts():
    Y = sparse.csr_array(np.eye(2))
    with pytest.raises(ParameterError, match="edges"):
        frequency_bins(Y, [[0], [1]], [1, 1], 1, edges=(5, 2))
    with pytest.raises(InvalidDataError, match="column 0"):
        frequency_bins(Y, [[0], [1]], [-1, 1], 1)
