import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from unseen.exceptions import InvalidDataError, ParameterError
from unseen.validation import (
    check_choice,
    check_count,
    check_entries,
    check_features,
    check_fraction,
    check_n_jobs,
    check_positive,
    check_rng,
)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3)])
def test_positive_numbers_come_back_as_float(value):
    checked = check_positive("reg", value)
    assert type(checked) is float
    assert checked == float(value)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "1", None, np.bool_(True), 1j])
def test_what_is_not_positive_is_refused_by_name(value):
    with pytest.raises(ParameterError, match="reg must be"):
        check_positive("reg", value)


def test_zero_and_infinity_pass_only_where_asked_for():
    assert check_positive("tol", 0, strict=False) == 0.0
    assert check_positive("bound", np.inf, allow_inf=True) == np.inf
    with pytest.raises(ParameterError, match=r">= 0, got -0\.1"):
        check_positive("tol", -0.1, strict=False)


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_open_interval_holds_its_inside(value):
    assert check_fraction("alpha", value) == value


@pytest.mark.parametrize("end", [0, 1])
def test_ends_of_an_interval(end):
    with pytest.raises(ParameterError, match=r"alpha must be a number in \(0, 1\)"):
        check_fraction("alpha", end)
    assert check_fraction("alpha", end, include_low=True, include_high=True) == end


@pytest.mark.parametrize("value", [0, 1.0, True, "3", None, np.nan])
def test_counts_are_integers(value):
    with pytest.raises(ParameterError, match="rank must be an integer >= 1"):
        check_count("rank", value)
    assert check_count("rank", np.int32(7)) == 7
    assert check_count("burn_in", 0, minimum=0) == 0


def test_choice_lists_what_is_accepted():
    assert check_choice("solver", "als", ("als", "ccd")) == "als"
    with pytest.raises(ParameterError, match="solver must be one of 'als', 'ccd'; got 'sgd'"):
        check_choice("solver", "sgd", ("als", "ccd"))
    with pytest.raises(ParameterError):
        check_choice("flag", 1, (True, False))
    with pytest.raises(ParameterError):
        check_choice("solver", np.zeros(2), ("als",))


def test_threads():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert check_n_jobs(None) == check_n_jobs(-1) == cores
    assert check_n_jobs(3) == 3
    for refused in (0, -2, True, 1.0, "2"):
        with pytest.raises(ParameterError, match="n_jobs"):
            check_n_jobs(refused)


def test_random_states():
    assert check_rng(3).integers(2**60) == check_rng(np.int64(3)).integers(2**60)
    assert check_rng(3).integers(2**60) != check_rng(4).integers(2**60)
    own = np.random.default_rng(0)
    assert check_rng(own) is own
    first, second = (check_rng(np.random.RandomState(5)).integers(2**60) for _ in range(2))
    assert first == second
    legacy = np.random.RandomState(5)
    assert check_rng(legacy).integers(2**60) != check_rng(legacy).integers(2**60)
    for refused in (-1, True, 1.5, "seed"):
        with pytest.raises(ParameterError, match="random_state"):
            check_rng(refused)


def test_entries():
    rows, cols = check_entries(np.array([0, 2], dtype=np.uint8), [1, 1], (3, 2))
    assert rows.dtype == cols.dtype == np.int64
    assert check_entries(1, 0, (3, 2))[0].tolist() == [1]
    assert check_entries([], [], (3, 2))[0].size == 0


@pytest.mark.parametrize(
    ("rows", "cols", "message"),
    [
        ([0, 3], [0, 0], r"rows\[1\] is 3, outside of 0\.\.2"),
        ([0, 1], [0, -1], r"cols\[1\] is -1"),
        ([0, 1], [0], "same length"),
        ([0.0], [0], "rows must hold integers"),
        ([[0]], [[0]], "one-dimensional"),
        ([True], [0], "rows must hold integers"),
    ],
)
def test_bad_entries_are_named(rows, cols, message):
    with pytest.raises(InvalidDataError, match=message):
        check_entries(rows, cols, (3, 2))


def test_features_keep_float32_and_memory():
    single = np.ones((3, 2), dtype=np.float32)
    assert check_features(single, 3, "row_features") is single
    assert check_features([[True], [False]], 2, "row_features").dtype == np.float64
    assert check_features(single, 3, "row_features", dtype=np.float64).dtype == np.float64


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_features_from_frames(make):
    checked = check_features(make({"age": [1, 2], "tall": [True, False]}), 2, "row_features")
    assert isinstance(checked, np.ndarray)
    assert checked.tolist() == [[1, 1], [2, 0]]
    with pytest.raises(InvalidDataError, match="column 'city'"):
        check_features(make({"city": ["x", "y"]}), 2, "row_features")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.coo_array, pd.DataFrame])
def test_non_finite_features_are_located(bad, wrap):
    features = np.ones((4, 3))
    assert check_features(wrap(features), 4, "col_features").shape == (4, 3)
    features[2, 1] = bad
    with pytest.raises(InvalidDataError, match=r"col_features holds .* in row 2, column 1") as caught:
        check_features(wrap(features), 4, "col_features")
    assert ("Impute" in str(caught.value)) == np.isnan(bad)


def test_huge_finite_features_pass():
    assert np.isfinite(check_features(np.full((2, 2), 1e154), 2, "row_features")).all()
    with pytest.raises(InvalidDataError, match="row 1, column 0; numbers whose squares are finite"):
        check_features(np.array([[1.0, 1.0], [-1e200, 1.0]]), 2, "row_features")


def test_sparse_features_become_canonical_and_leave_the_input_alone():
    twice = sparse.csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 2))
    checked = check_features(twice, 1, "row_features")
    assert checked.toarray().tolist() == [[3, 0]]
    assert twice.data.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones(3), "two-dimensional"),
        (np.ones((2, 2)), "has 2 rows, but 3 entities"),
        (np.ones((3, 1)) * 1j, "Complex data not supported"),
        ([["a"], ["b"], ["c"]], "must hold numbers"),
        (np.array([[{}], [1], [2]], dtype=object), "must hold numbers"),
    ],
)
def test_unusable_features_are_refused(features, message):
    with pytest.raises(InvalidDataError, match=message):
        check_features(features, 3, "row_features")
