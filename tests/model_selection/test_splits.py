"""Splits partition the cells, hold out what they say and leak nothing."""

from __future__ import annotations

import doctest
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from unseen.data import Observations, Vocabulary
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.model_selection import (
    ForwardTime,
    KFoldBoth,
    KFoldCols,
    KFoldEntries,
    KFoldRows,
    _splits,
    split_both,
    split_cols,
    split_entries,
    split_last,
    split_rows,
    split_time,
)


def random_observations(seed, n_rows=12, n_cols=9, density=0.4):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n_rows, n_cols)) < density, rng.integers(0, 5, (n_rows, n_cols)), np.nan)
    dense[0, :2] = [0.0, 1.0]  # a stored zero, and never fewer than two cells
    dense[1, :2] = [2.0, 3.0]
    return Observations.from_any(dense)


def cells(observations):
    return dict(
        zip(
            zip(observations.rows.tolist(), observations.indices.tolist(), strict=True),
            observations.values.tolist(),
            strict=True,
        )
    )


def assert_partition(split, whole):
    """The test of all splits: nothing in both parts, nothing lost, nothing changed."""
    train, test = cells(split.train), cells(split.test)
    assert not train.keys() & test.keys(), "a test cell is also in training"
    assert train | test == cells(whole)
    assert split.train.shape == split.test.shape == whole.shape
    assert split.train.dtype == split.test.dtype == whole.dtype


def symmetric_observations(seed, n=15):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.3, 1)
    upper[0, 1] = upper[2, 3] = True
    return Observations.from_any(sparse.csr_array((upper | upper.T).astype(float)))


def test_examples_run():
    result = doctest.testmod(_splits)
    assert result.attempted > 0
    assert result.failed == 0


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.floats(0.05, 0.95), st.sampled_from(["entries", "covered", "rows", "cols"]))
def test_every_split_is_a_partition(seed, fraction, kind):
    whole = random_observations(seed)
    options = {"test_fraction": fraction, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        split = {
            "entries": lambda: split_entries(whole, **options),
            "covered": lambda: split_entries(whole, keep_rows_covered=True, **options),
            "rows": lambda: split_rows(whole, **options),
            "cols": lambda: split_cols(whole, **options),
        }[kind]()
    assert_partition(split, whole)
    assert split.train.nnz > 0
    assert split.test.nnz > 0


def test_a_planted_leak_is_detected():
    whole = random_observations(0)
    split = split_entries(whole, random_state=0)
    assert_partition(split, whole)
    leaky = _splits.Split(whole, split.test)  # the negative control: training on everything
    with pytest.raises(AssertionError, match="also in training"):
        assert_partition(leaky, whole)


def test_size_of_the_test_part():
    whole = Observations.from_any(np.ones((10, 21)))
    for fraction, expected in [(0.2, 42), (0.001, 1), (0.999, 209)]:
        assert split_entries(whole, test_fraction=fraction, random_state=0).test.nnz == expected


def test_same_seed_same_split_other_seed_other_split():
    whole = random_observations(1)
    for function in (split_entries, split_rows, split_cols):
        first, second, other = (cells(function(whole, random_state=seed).test) for seed in (0, 0, 1))
        assert first == second
        assert first != other


def test_entries_are_drawn_uniformly():
    whole = Observations.from_any(np.ones((4, 6)))
    counts = np.zeros((4, 6))
    for seed in range(600):
        test = split_entries(whole, test_fraction=0.25, random_state=seed).test
        counts[test.rows, test.indices] += 1
    # 600 draws at 1/4: mean 150, standard deviation 10.6; five of them on either side.
    assert counts.min() > 97
    assert counts.max() < 203


@given(st.integers(0, 10_000))
def test_rows_stay_covered(seed):
    whole = random_observations(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        split = split_entries(whole, test_fraction=0.7, random_state=seed, keep_rows_covered=True)
    np.testing.assert_array_equal(np.diff(split.train.indptr) > 0, np.diff(whole.indptr) > 0)


def test_covering_rows_may_shrink_the_test_part_with_a_warning():
    whole = Observations.from_any(np.array([[1.0, 2.0], [3.0, np.nan], [4.0, np.nan]]))
    with pytest.warns(DataWarning, match="leaves 1 of 4"):
        assert split_entries(whole, test_fraction=0.5, random_state=0, keep_rows_covered=True).test.nnz == 1
    with (
        pytest.warns(DataWarning, match="leaves 0"),
        pytest.raises(InvalidDataError, match="no row can spare one"),
    ):
        split_entries(np.diag([1.0, 2.0]) + np.where(np.eye(2), 0, np.nan), keep_rows_covered=True)


def test_held_out_rows_and_columns_are_whole():
    whole = random_observations(3)
    by_rows = split_rows(whole, test_fraction=0.3, random_state=0)
    assert set(by_rows.test.rows) == set(by_rows.rows)
    assert not set(by_rows.train.rows) & set(by_rows.rows)
    assert by_rows.cols is None
    by_cols = split_cols(whole, test_fraction=0.3, random_state=0)
    assert set(by_cols.test.indices) == set(by_cols.cols)
    assert not set(by_cols.train.indices) & set(by_cols.cols)


def test_empty_rows_are_never_held_out():
    whole = Observations.from_triples([0, 5, 9], [0, 1, 2], [1.0, 2.0, 3.0], shape=(10, 3))
    for seed in range(20):
        assert set(split_rows(whole, random_state=seed).rows) <= {0, 5, 9}


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(2, 6), st.booleans())
def test_folds_cover_each_cell_once(seed, n_splits, shuffle):
    whole = random_observations(seed)
    tested = []
    for split in KFoldEntries(n_splits, shuffle=shuffle, random_state=seed).split(whole):
        assert_partition(split, whole)
        tested += cells(split.test).keys()
        assert abs(split.test.nnz - whole.nnz / n_splits) <= 1
    assert sorted(tested) == sorted(cells(whole))


@pytest.mark.parametrize("how", ["split", "folds"])
def test_mirrored_cells_stay_together(how):
    whole = symmetric_observations(0)
    if how == "split":
        splits = [split_entries(whole, random_state=seed, symmetric=True) for seed in range(5)]
    else:
        splits = list(KFoldEntries(4, random_state=0, symmetric=True).split(whole))
    for split in splits:
        assert_partition(split, whole)
        for part in split:
            assert {(j, i) for i, j in cells(part)} == cells(part).keys()


def test_a_symmetric_matrix_split_cell_by_cell_warns():
    whole = symmetric_observations(0)
    with pytest.warns(DataWarning, match="symmetric=True"):
        split = split_entries(whole, random_state=0)
    mirrored = {(j, i) for i, j in cells(split.test)}
    assert mirrored & cells(split.train).keys()  # the leak that the warning is about
    with pytest.raises(ParameterError, match="square"):
        split_entries(random_observations(0), symmetric=True)


def test_latest_cells_are_held_out():
    whole = random_observations(5)
    times = np.random.default_rng(0).integers(0, 10, whole.nnz)  # with ties
    split = split_time(whole.with_times(times), test_fraction=0.3)
    assert_partition(split, whole)
    by_cell = cells(whole.with_values(times.astype(float)))
    latest_train = max(by_cell[cell] for cell in cells(split.train))
    earliest_test = min(by_cell[cell] for cell in cells(split.test))
    assert latest_train < earliest_test
    assert split.test.nnz >= round(0.3 * whole.nnz)
    as_matrix = split_time(whole.csr, whole.with_values(times.astype(float)).csr, test_fraction=0.3)
    assert cells(as_matrix.test) == cells(split.test)


def test_cutoff_and_dates():
    whole = Observations.from_triples([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0])
    dates = np.array(["2024-01-01", "2024-06-01", "2023-01-01"], dtype="datetime64[D]")
    assert split_time(whole.with_times(dates), cutoff="2024-01-01").test.values.tolist() == [1.0, 2.0]
    assert split_time(whole.with_times([1, 3, 2]), cutoff=2.5).test.values.tolist() == [2.0]


@pytest.mark.parametrize(
    ("times", "options", "message"),
    [
        ([1, 1, 1], {}, "no training"),
        ([1, 2, 3], {"cutoff": 9}, "no test"),
        (None, {}, r"nothing about times.*from_frame\(frame.*time="),
    ],
)
def test_times_that_cannot_split(times, options, message):
    whole = Observations.from_triples([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0], times=times)
    with pytest.raises(InvalidDataError, match=message):
        split_time(whole, **options)


def test_times_of_other_cells_are_refused():
    whole = Observations.from_triples([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidDataError, match="not the 3 cells"):
        split_time(whole, sparse.csr_array(np.eye(2)))
    named = whole.with_ids(Vocabulary(["a", "b"]), Vocabulary(["x", "y"]))
    other = whole.with_ids(Vocabulary(["b", "a"]), Vocabulary(["x", "y"]))
    with pytest.raises(InvalidDataError, match="other row ids"):
        split_time(named, other)
    assert split_time(named, named, test_fraction=0.3).test.values.tolist() == [3.0]


@pytest.mark.parametrize("split", [split_time, lambda X, times: split_last(X, times=times)])
def test_an_array_of_times_is_refused_with_the_way(split):
    # The lines of a frame are in another order than the cells, so the array would split by chance.
    whole = Observations.from_triples([1, 0], [0, 1], [1.0, 2.0])
    for X in (whole, sparse.coo_array(np.ones((1, 2)))):
        with pytest.raises(ParameterError, match=r"nobody can check.*from_frame.*time="):
            split(X, [1, 2])


def test_a_frame_in_any_order_is_split_by_its_own_times():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"u": list("ccabba"), "i": list("yxzyxx"), "v": np.arange(6.0), "t": [5, 1, 6, 2, 4, 3]}
    )
    for _ in range(5):
        mixed = frame.iloc[rng.permutation(6)]
        seen = Observations.from_frame(mixed, row="u", col="i", value="v", time="t")
        assert split_time(seen, test_fraction=0.34).test.to_frame()["time"].tolist() == [6, 5]


@pytest.mark.parametrize("seed", range(4))
def test_the_last_cells_of_each_row_are_held_out(seed):
    rng = np.random.default_rng(seed)
    whole = random_observations(seed)
    timed = whole.with_times(rng.integers(0, 4, whole.nnz))  # with ties
    for n in (1, 2, 3):
        split = split_last(timed, n)
        assert_partition(split, timed)
        for row in range(whole.shape[0]):
            inside = timed.rows == row
            cells_of_row = sorted(
                zip(timed.times[inside].tolist(), timed.indices[inside].tolist(), strict=True)
            )
            late = cells_of_row[-n:] if len(cells_of_row) > n else []
            held = split.test.indices[split.test.rows == row].tolist()
            assert held == sorted(col for _, col in late)
            assert split.train.rows.tolist().count(row) == len(cells_of_row) - len(late)
    with pytest.raises(InvalidDataError, match="no row has more than n=99"):
        split_last(timed, 99)


def shows(train, test, side):
    """Whether training has a row or a column of the test part."""
    return bool(np.intersect1d(getattr(train, side), getattr(test, side)).size)


def cold_splits():
    whole = random_observations(7)
    return {
        "rows": [split_rows(whole, random_state=0), *KFoldRows(3, random_state=0).split(whole)],
        "cols": [split_cols(whole, random_state=0), *KFoldCols(3, random_state=0).split(whole)],
        "both": [
            split_both(whole, test_fraction=0.4, random_state=0),
            split_both(whole, test_fraction=0.3, col_fraction=0.5, random_state=1),
            *KFoldBoth(2, random_state=0).split(whole),
        ],
    }


@pytest.mark.parametrize("kind", ["rows", "cols", "both"])
def test_cold_splits_never_show_what_is_cold(kind):
    sides = {"rows": ["rows"], "cols": ["indices"], "both": ["rows", "indices"]}[kind]
    for split in cold_splits()[kind]:
        assert split.train.nnz
        assert split.test.nnz
        for side in sides:
            assert not shows(split.train, split.test, side)
        if kind in ("rows", "both"):
            assert set(split.test.rows.tolist()) <= set(split.rows.tolist())
            assert not np.isin(split.train.rows, split.rows).any()
        if kind in ("cols", "both"):
            assert set(split.test.indices.tolist()) <= set(split.cols.tolist())
            assert not np.isin(split.train.indices, split.cols).any()


def test_a_planted_leak_would_be_seen():
    split = split_both(random_observations(7), test_fraction=0.4, random_state=0)
    first = int(split.test.rows[0])
    leaked = Observations.from_triples(
        np.append(split.train.rows, first), np.append(split.train.indices, 0), shape=split.train.shape
    )
    assert shows(leaked, split.test, "rows")
    assert not shows(split.train, split.test, "rows")


def test_folds_of_rows_and_columns_test_every_cell_once():
    whole = random_observations(3)
    for folds in (KFoldRows(3, random_state=1), KFoldCols(3, random_state=1)):
        tested = [cell for split in folds.split(whole) for cell in cells(split.test)]
        assert sorted(tested) == sorted(cells(whole))
        assert folds.get_n_splits() == 3
        assert "n_splits=3" in repr(folds)
    with pytest.raises(ParameterError, match="only 2 rows have cells"):
        list(KFoldRows(3).split(np.ones((2, 5))))
    with pytest.raises(InvalidDataError, match="no test cells"):
        list(KFoldBoth(2, random_state=2).split(np.where(np.eye(2) > 0, 1.0, np.nan)))
    with pytest.raises(InvalidDataError, match="leaves no"):
        split_both(np.where(np.eye(2) > 0, 1.0, np.nan), test_fraction=0.5, random_state=2)


def test_windows_walk_forward():
    whole = random_observations(4)
    timed = whole.with_times(np.random.default_rng(0).permutation(whole.nnz))
    reached = -1
    for split in ForwardTime(3, test_fraction=0.5).split(timed):
        assert split.train.times.max() < split.test.times.min()
        assert split.test.times.min() > reached
        reached = split.test.times.max()
    assert reached == timed.times.max()
    with pytest.raises(InvalidDataError, match="too few different moments"):
        list(ForwardTime(3).split(timed.with_times(timed.times // 60)))


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 2, "half", None])
def test_bad_fraction(fraction):
    for function in (split_entries, split_rows, split_cols):
        with pytest.raises(ParameterError, match="test_fraction"):
            function(np.ones((3, 4)), test_fraction=fraction)


def test_too_little_to_divide():
    with pytest.raises(InvalidDataError, match="X has 1 cells"):
        split_entries(np.array([[1.0, np.nan]]))
    with pytest.raises(InvalidDataError, match="X has 1 rows with cells"):
        split_rows(np.array([[1.0, 1.0]]))
    with pytest.raises(ParameterError, match="n_splits=5 but there are only 4"):
        next(KFoldEntries(5).split(np.arange(4.0).reshape(2, 2)))
    with pytest.raises(ParameterError, match="n_splits"):
        KFoldEntries(1)


def test_vocabularies_survive():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"u": list("abcab"), "i": list("xyxyx"), "r": [1.0, 2, 3, 4, 5]})
    whole = Observations.from_frame(frame, row="u", col="i", value="r")
    split = split_entries(whole, test_fraction=0.4, random_state=0)
    assert split.train.row_ids is not None
    assert split.test.col_ids is not None


def test_times_of_another_matrix_count_before_its_values():
    lines = pd.DataFrame(
        {"who": list("aabb"), "what": list("xyxy"), "stars": [5.0, 1.0, 4.0, 2.0], "at": [1, 2, 3, 4]}
    )
    X = Observations.from_frame(lines, row="who", col="what", value="stars")
    dated = Observations.from_frame(lines, row="who", col="what", value="stars", time="at")
    assert split_time(X, dated, test_fraction=0.25).test.values.tolist() == [2.0]
    in_values = Observations.from_frame(lines, row="who", col="what", value="at")
    assert split_time(X, in_values, test_fraction=0.25).test.values.tolist() == [2.0]
