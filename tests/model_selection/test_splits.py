"""Splits partition the cells, hold out what they say and leak nothing."""

from __future__ import annotations

import doctest
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from unseen.data import Observations
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.model_selection import (
    KFoldEntries,
    _splits,
    split_cols,
    split_entries,
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
    split = split_time(whole, times, test_fraction=0.3)
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
    assert split_time(whole, dates, cutoff="2024-01-01").test.values.tolist() == [1.0, 2.0]
    assert split_time(whole, [1, 3, 2], cutoff=2.5).test.values.tolist() == [2.0]


@pytest.mark.parametrize(
    ("times", "options", "error", "message"),
    [
        ([1, 1, 1], {}, InvalidDataError, "no training"),
        ([1, 2, 3], {"cutoff": 9}, InvalidDataError, "no test"),
        ([1, 2], {}, InvalidDataError, "one for each of 3 cells"),
        ([1.0, np.nan, 2.0], {}, InvalidDataError, "position 1"),
        (sparse.csr_array(np.eye(2)), {}, InvalidDataError, "not the 3 cells"),
    ],
)
def test_bad_times(times, options, error, message):
    whole = Observations.from_triples([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0])
    with pytest.raises(error, match=message):
        split_time(whole, times, **options)


def test_an_array_of_times_needs_an_order():
    with pytest.raises(ParameterError, match="no agreed order"):
        split_time(sparse.coo_array(np.ones((2, 2))), [1, 2, 3, 4])


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
