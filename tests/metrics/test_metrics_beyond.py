"""Coverage, novelty, diversity and segments against loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from unseen import BiasModel, Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.metrics import (
    coverage_at_k,
    diversity_at_k,
    label_propensities,
    novelty_at_k,
    propensity_scored_precision_at_k,
    recall_at_k,
    rmse,
    stratified_recall_at_k,
)
from unseen.model_selection import Split, get_scorer, segment_table, segments


@st.composite
def lists(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, k = draw(st.integers(1, 6)), draw(st.integers(3, 9)), draw(st.integers(2, 3))
    ids = np.array([rng.permutation(m)[:k] for _ in range(n)])
    ids[rng.random(n) < 0.3, -1] = -1
    vectors = rng.normal(size=(m, 4)) * (rng.random((m, 1)) < 0.8)
    return ids, m, k, vectors, rng.integers(0, 12, m)


@given(lists())
def test_by_loops(problem):
    ids, m, k, vectors, counts = problem
    filled = [[j for j in row if j >= 0] for row in ids]
    assert coverage_at_k(ids, m, k) == len(set().union(*filled)) / m
    bits = [-np.log2(max(counts[j], 1) / 20) for row in filled for j in row]
    assert novelty_at_k(ids, counts, 20, k) == pytest.approx(np.mean(bits))

    def unlike(a, b):
        length = np.linalg.norm(a) * np.linalg.norm(b)
        return 1 - (a @ b / length if length else 0)

    pairs = [
        np.mean([unlike(vectors[a], vectors[b]) for a, b in combinations(row, 2)])
        for row in filled
        if len(row) > 1
    ]
    if pairs:
        assert diversity_at_k(ids, vectors, k) == pytest.approx(np.mean(pairs))
        assert diversity_at_k(ids, sparse.csr_array(vectors), k) == pytest.approx(np.mean(pairs))


@given(lists())
def test_stratified_recall_by_loops(problem):
    ids, m, k, _, counts = problem
    rng = np.random.default_rng(int(counts.sum()))
    truth = rng.random((len(ids), m)) < 0.4
    truth[0, 0] = True
    rows = [
        sum(max(counts[j], 1) ** -0.5 for j in row if j >= 0 and own[j])
        / sum(max(counts[j], 1) ** -0.5 for j in np.flatnonzero(own))
        for row, own in zip(ids, truth, strict=True)
        if own.any()
    ]
    truth = sparse.csr_array(truth.astype(float))
    assert stratified_recall_at_k(truth, ids, counts, k) == pytest.approx(np.mean(rows))
    plain = recall_at_k(truth, ids, k, empty_rows="skip")
    assert stratified_recall_at_k(truth, ids, counts, k, power=0.0) == pytest.approx(plain)


def test_rare_hits_count_more_than_frequent_ones():
    truth, counts = sparse.csr_array([[1.0, 1.0]]), [100, 1]
    assert stratified_recall_at_k(truth, [[0]], counts, 1) == pytest.approx(0.1 / 1.1)
    assert stratified_recall_at_k(truth, [[1]], counts, 1) == pytest.approx(1 / 1.1)
    # A row without any weight says nothing.
    both = sparse.csr_array([[1.0, 1.0], [1.0, 0.0]])
    weighted = stratified_recall_at_k(both, [[0], [0]], counts, 1, sample_weight=[1.0, 0.0])
    assert weighted == pytest.approx(0.1 / 1.1)


def test_what_is_refused():
    with pytest.raises(InvalidDataError, match="relevant"):
        stratified_recall_at_k(np.zeros((1, 2)), [[0]], [1, 1], 1)
    with pytest.raises(InvalidDataError, match="counts"):
        stratified_recall_at_k(np.ones((1, 2)), [[0]], [1, -1], 1)
    with pytest.raises(ParameterError, match="power"):
        stratified_recall_at_k(np.ones((1, 2)), [[0]], [1, 1], 1, power=-1)
    with pytest.raises(InvalidDataError, match="integers"):
        coverage_at_k([[0.5, 1.0]], 3, 2)
    with pytest.raises(InvalidDataError, match="id 7"):
        coverage_at_k([[7, 1]], 3, 2)
    with pytest.raises(InvalidDataError, match="counts"):
        novelty_at_k([[0, 1]], [9, 1], 4, 2)
    with pytest.raises(InvalidDataError, match="pairs"):
        diversity_at_k([[0, -1]], np.eye(2), 2)
    with pytest.raises(ParameterError, match="diversity@k"):
        get_scorer("variety@5")


@pytest.fixture
def split() -> Split:
    rng = np.random.default_rng(0)
    n, m = 40, 30
    chance = np.linspace(0.9, 0.05, m)[None] * np.ones((n, 1))
    X = np.where(rng.random((n, m)) < chance, 1 + rng.random((n, m)), np.nan)
    cells = Observations.from_any(X)
    test = (rng.random(cells.nnz) < 0.2) | (cells.rows < 3) | (cells.indices == 4)
    return Split(cells.select(~test), cells.select(test))


def test_segments_partition_rows_and_columns(split):
    parts = segments(split)
    sizes = {name: part.test.nnz for name, part in parts.items()}
    assert sizes["new rows"] + sizes["old rows"] == sizes["all"] == split.test.nnz
    assert sum(sizes[f"{name} columns"] for name in ("new", "tail", "middle", "head")) == sizes["all"]
    assert set(parts["new rows"].test.rows) == {0, 1, 2}
    assert set(parts["new columns"].test.indices) == {4}
    counts = np.bincount(split.train.indices, minlength=30)
    head, tail = (counts[np.unique(parts[f"{name} columns"].test.indices)] for name in ("head", "tail"))
    assert head.min() > tail.max()


def test_segment_tables_are_scores_of_the_parts(split):
    model = BiasModel().fit(split.train)
    table = {
        line["segment"]: line for line in segment_table(model, split, ["rmse", "recall@5", "diversity@5"])
    }
    for name, part in segments(split).items():
        expected = rmse(part.test, model.predict_entries(part.test.rows, part.test.indices))
        assert table[name]["rmse"] == pytest.approx(expected)
        rows = np.flatnonzero(np.diff(part.test.indptr))
        ids, _ = model.recommend(rows, k=5, exclude=split.train)
        assert table[name]["recall@5"] == pytest.approx(recall_at_k(part.test.csr[rows], ids, 5))
    assert table["new rows"]["rmse"] != table["old rows"]["rmse"]
    assert 0 < table["all"]["diversity@5"] < 1


def test_a_segment_without_cells_is_nan(split):
    old = Split(split.train, split.test.select(split.test.rows > 2))
    line = segment_table(BiasModel().fit(split.train), old)[1]
    assert line["segment"] == "new rows"
    assert line["n_cells"] == 0
    assert np.isnan(line["rmse"])


def test_scorers_of_rare_columns_are_their_metrics(split):
    model = BiasModel().fit(split.train)
    rows = np.flatnonzero(np.diff(split.test.indptr))
    ids, _ = model.recommend(rows, k=5, exclude=split.train)
    counts = np.bincount(split.train.indices, minlength=split.train.shape[1])
    wanted = stratified_recall_at_k(split.test.csr[rows], ids, counts, 5)
    assert get_scorer("stratified_recall@5")(model, split) == pytest.approx(wanted)
    rarity = label_propensities(counts, split.train.shape[0])
    wanted = propensity_scored_precision_at_k(split.test.csr[rows], ids, rarity, 5)
    assert get_scorer("psp@5")(model, split) == pytest.approx(wanted)
    # Counts are those of training cells: with the held-out ones the measure would be another.
    all_counts = counts + np.bincount(split.test.indices, minlength=split.test.shape[1])
    other = stratified_recall_at_k(split.test.csr[rows], ids, all_counts, 5)
    assert other != pytest.approx(get_scorer("stratified_recall@5")(model, split), rel=1e-6)
