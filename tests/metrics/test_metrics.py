"""Pointwise, binary and clustering metrics."""

from __future__ import annotations

import doctest
import importlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.metrics import mean_absolute_error, rand_score, roc_auc_score, root_mean_squared_error

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.metrics import (
    auc,
    constraint_error,
    fpr_fnr_curve,
    mae,
    pair_error,
    ranked_hits,
    relative_error,
    rmse,
)

values = hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(-100, 100))


@pytest.mark.parametrize(
    "name", ["_pointwise", "_ranking", "_propensity", "_binary", "_clustering", "_frequency"]
)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"unseen.metrics.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


@given(values, st.integers(0, 100))
def test_pointwise_agrees_with_scikit_learn(truth, seed):
    prediction = truth + np.random.default_rng(seed).standard_normal(truth.size)
    np.testing.assert_allclose(
        rmse(truth, prediction), root_mean_squared_error(truth, prediction), rtol=1e-10
    )
    np.testing.assert_allclose(mae(truth, prediction), mean_absolute_error(truth, prediction), rtol=1e-10)


def test_relative_error_is_the_unsquared_ratio():
    truth, prediction = np.array([3.0, 4.0]), np.array([3.0, 3.0])
    assert relative_error(truth, prediction) == pytest.approx(1 / 5)
    assert relative_error(truth, prediction) != pytest.approx(1 / 25)
    with pytest.raises(InvalidDataError, match="all 2 true values are 0"):
        relative_error([0.0, 0.0], [1.0, 1.0])


def test_float32_is_summed_in_float64():
    truth = np.zeros(1_000_000, dtype=np.float32)
    prediction = np.full_like(truth, 0.1)
    assert mae(truth, prediction) == pytest.approx(float(np.float32(0.1)), rel=1e-12)


def test_observations_stand_for_their_values():
    observed = Observations.from_any(sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]])))
    assert rmse(observed, observed.values + 2) == 2.0


@pytest.mark.parametrize("metric", [rmse, mae, relative_error])
def test_bad_values_are_named(metric):
    with pytest.raises(InvalidDataError, match=r"shape \(2,\)"):
        metric([1.0, 2.0], [1.0])
    with pytest.raises(InvalidDataError, match="empty"):
        metric([], [])
    with pytest.raises(InvalidDataError, match="y_pred has nan at position 1"):
        metric([1.0, 2.0], [1.0, np.nan])
    with pytest.raises(InvalidDataError, match="y_true has inf at position 0"):
        metric([np.inf, 2.0], [1.0, 1.0])


@given(st.integers(0, 10_000), st.integers(2, 60))
def test_auc_agrees_with_scikit_learn(seed, n):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    labels[:2] = [0, 1]
    scores = rng.integers(0, 5, n).astype(float)
    np.testing.assert_allclose(auc(labels, scores), roc_auc_score(labels, scores), rtol=1e-12, atol=1e-15)
    # Negative control: turned scores give the complement.
    np.testing.assert_allclose(auc(labels, -scores), 1 - roc_auc_score(labels, scores), rtol=1e-9, atol=1e-15)


def test_auc_needs_both_kinds():
    with pytest.raises(InvalidDataError, match="2 positives and 0 negatives"):
        auc([1, 1], [0.1, 0.2])
    with pytest.raises(InvalidDataError, match="NaN at position 1"):
        auc([1, 0], [0.1, np.nan])


def test_fpr_fnr_against_counting():
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.1
    scores = rng.random(200)
    order = np.argsort(-scores, kind="stable")
    curve = fpr_fnr_curve(labels[order])
    for k in (1, 17, 200):
        top = set(order[:k])
        positives = set(np.flatnonzero(labels))
        assert curve.fpr[k - 1] == pytest.approx(len(top - positives) / (200 - len(positives)))
        assert curve.fnr[k - 1] == pytest.approx(1 - len(top & positives) / len(positives))
        assert curve.precision[k - 1] == pytest.approx(len(top & positives) / k)
    assert curve.fpr[-1] == 1.0
    assert curve.fnr[-1] == 0.0
    short = fpr_fnr_curve(labels[order][:50], n_positive=int(labels.sum()), n_candidates=200)
    np.testing.assert_array_equal(short.fpr, curve.fpr[:50])
    np.testing.assert_array_equal(short.fnr, curve.fnr[:50])


def test_fpr_fnr_refuses_impossible_counts():
    with pytest.raises(ParameterError, match="n_positive=1"):
        fpr_fnr_curve([True, True, False], n_positive=1)
    with pytest.raises(ParameterError, match="n_candidates=3"):
        fpr_fnr_curve([False, False, True], n_positive=2, n_candidates=3)
    with pytest.raises(InvalidDataError, match="other than 0 and 1"):
        fpr_fnr_curve([0.5, 1.0])


def test_ranked_hits_of_undirected_links():
    links = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    np.testing.assert_array_equal(ranked_hits(links, [[0, 2], [0, 1], [1, 2]]), [False, True, False])
    with pytest.raises(InvalidDataError, match=r"\(0, 1\) more than once"):
        ranked_hits(links, [[0, 1], [0, 1]])
    with pytest.raises((InvalidDataError, ParameterError)):
        ranked_hits(links, [[0, 3]])


@given(st.integers(0, 10_000), st.integers(2, 25))
def test_pair_error_agrees_with_scikit_learn_and_counting(seed, n):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 4, n), rng.integers(0, 3, n)
    counted = np.mean([(a[i] == a[j]) != (b[i] == b[j]) for i, j in combinations(range(n), 2)])
    np.testing.assert_allclose(pair_error(a, b), counted, atol=1e-15)
    np.testing.assert_allclose(pair_error(a, b), 1 - rand_score(a, b), atol=1e-12)


def test_pair_error_ignores_names_and_survives_many_clusters():
    labels = np.arange(100_000)
    assert pair_error(labels, labels[::-1]) == 0.0
    assert pair_error(labels, np.zeros_like(labels)) == 1.0


def test_constraint_error():
    labels = [0, 0, 1, 1]
    assert constraint_error(labels, [[0, 1], [2, 3]]) == 0.0
    assert constraint_error(labels, [[0, 1], [2, 3]], same=[False, False]) == 1.0
    with pytest.raises(InvalidDataError, match="item 4 in pair 0"):
        constraint_error(labels, [[0, 4]])
    with pytest.raises(InvalidDataError, match="same has shape"):
        constraint_error(labels, [[0, 1]], same=[True, True])
