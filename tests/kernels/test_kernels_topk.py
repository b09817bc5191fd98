"""Ranking kernel: ties, exclusion, candidates, too few columns, NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen import kernels


def ranked(scores, k, **options):
    """Top k of given scores, through factors of rank 1."""
    column = np.asarray(scores, dtype=np.float32)[:, None]
    ids, best = kernels.topk(np.ones((1, 1), dtype=np.float32), column, k, **options)
    return ids[0].tolist(), best[0].tolist()


def test_ties_go_to_the_smaller_id():
    assert ranked([1, 2, 2, 1, 2], 4) == ([1, 2, 4, 0], [2, 2, 2, 1])


def test_all_equal_over_many_tiles():
    assert ranked(np.ones(1000), 5)[0] == [0, 1, 2, 3, 4]


def test_excluded_ids_never_come_back():
    exclude = (np.array([0, 2]), np.array([1, 4]))
    assert ranked([1, 2, 2, 1, 2], 3, exclude=exclude) == ([2, 0, 3], [2, 1, 1])


def test_places_that_cannot_be_filled():
    ids, scores = ranked([3.0, 5.0], 4)
    assert ids == [1, 0, -1, -1]
    assert scores[:2] == [5, 3]
    assert np.isnan(scores[2:]).all()


def test_no_columns_no_rows_no_places():
    ids, scores = kernels.topk(np.ones((2, 3)), np.ones((0, 3)), 2)
    assert ids.tolist() == [[-1, -1]] * 2
    assert np.isnan(scores).all()
    assert kernels.topk(np.ones((0, 3)), np.ones((5, 3)), 2)[0].shape == (0, 2)
    assert kernels.topk(np.ones((2, 3)), np.ones((5, 3)), 0)[0].shape == (2, 0)


def test_nan_never_wins_and_infinity_counts():
    assert ranked([np.nan, 1, np.nan, 2], 3)[0] == [3, 1, -1]
    assert ranked([-np.inf, np.nan, np.inf, 0], 4)[0] == [2, 3, 0, -1]
    assert ranked([0.0, *[np.nan] * 200, 1.0], 2)[0] == [201, 0]


def test_candidates_keep_their_global_ids():
    ids = np.array([2, 7, 9, 30])
    exclude = (np.array([0, 2], dtype=np.int32), np.array([1, 9], dtype=np.int32))
    assert ranked([1, 3, 9, 2], 3, col_ids=ids, exclude=exclude)[0] == [7, 30, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=60, deadline=None)
@given(
    n_rows=st.integers(1, 40), n_cols=st.integers(1, 200), rank=st.integers(1, 20), k=st.integers(1, 60),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_is_a_stable_sort_of_all_scores(dtype, n_rows, n_cols, rank, k, seed):
    rng = np.random.default_rng(seed)
    # Small integers, so that scores are exact and ties frequent.
    left = rng.integers(-2, 3, (n_rows, rank)).astype(dtype)
    right = rng.integers(-2, 3, (n_cols, rank)).astype(dtype)
    ids, scores = kernels.topk(left, right, k, n_threads=2)
    everything = left @ right.T
    order = np.argsort(-everything, axis=1, kind="stable")[:, :k]
    kept = order.shape[1]
    np.testing.assert_array_equal(ids[:, :kept], order)
    np.testing.assert_array_equal(scores[:, :kept], np.take_along_axis(everything, order, axis=1))
    assert (ids[:, kept:] == -1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_alone_gets_the_bits_that_it_gets_among_many(dtype):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((300, 17)).astype(dtype), rng.standard_normal((1001, 17)).astype(dtype)
    exclude = (
        np.arange(0, 601, 2),
        np.sort(rng.integers(0, 500, (300, 2)) + np.array([0, 500]), axis=1).ravel(),
    )
    ids, scores = kernels.topk(left, right, 9, exclude=exclude, n_threads=2)
    for count in (1, 2, 7, 40):
        for n_threads in (1, 2, 3):
            part = (exclude[0][: count + 1], exclude[1][: 2 * count])
            found, best = kernels.topk(left[:count], right, 9, exclude=part, n_threads=n_threads)
            np.testing.assert_array_equal(found, ids[:count])
            np.testing.assert_array_equal(best, scores[:count])
