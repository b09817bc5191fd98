"""Cells keep when they arose, whatever is done with them."""

import datetime
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from unseen.data import Observations, Vocabulary, read_triples
from unseen.exceptions import DataWarning, InvalidDataError

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
MOMENTS = [
    datetime.datetime(2024, 5, 31, 18, 30),
    datetime.datetime(2023, 1, 1),
    datetime.datetime(2025, 2, 2),
]
COLUMNS = {"u": ["b", "a", "b"], "i": [1, 2, 0], "v": [1.0, 2.0, 3.0]}


def by_cell(seen):
    return dict(
        zip(zip(seen.rows.tolist(), seen.indices.tolist(), strict=True), seen.times.tolist(), strict=True)
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "times", [MOMENTS, [moment.date() for moment in MOMENTS], [5, 3, 9], [5.5, 3.25, 9.0]], ids=str
)
def test_times_of_a_frame_and_back(library, times):
    seen = Observations.from_frame(
        LIBRARIES[library]({**COLUMNS, "t": times}), row="u", col="i", value="v", time="t"
    )
    assert seen.times.dtype.kind == (
        "M" if isinstance(times[0], datetime.date) else "i" if times[0] == 5 else "f"
    )
    order = [1, 2, 0]  # a2, b0, b1
    expected = np.array(times, dtype=seen.times.dtype)[order]
    np.testing.assert_array_equal(seen.times, expected)
    for target in LIBRARIES:
        again = Observations.from_frame(
            seen.to_frame(target), row="row", col="col", value="value", time="time"
        )
        np.testing.assert_array_equal(again.times, seen.times)


def test_zones_become_utc():
    moments = pd.to_datetime(
        ["2024-05-31T18:30+02:00", "2024-05-31T17:00+00:00", "2024-05-31T12:00-05:00"], utc=True
    )
    for frame in (
        pd.DataFrame({**COLUMNS, "t": moments.tz_convert("Europe/Rome")}),
        pl.DataFrame({**COLUMNS, "t": moments.tz_convert("Europe/Rome")}),
        pa.table({**COLUMNS, "t": pa.array(moments.tz_convert("Europe/Rome"))}),
    ):
        seen = Observations.from_frame(frame, row="u", col="i", value="v", time="t")
        assert seen.times.astype("datetime64[m]").astype(str).tolist() == [
            "2024-05-31T17:00",
            "2024-05-31T17:00",
            "2024-05-31T16:30",
        ]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([MOMENTS[0], None, MOMENTS[1]], "column 't' has no time in row 1"),
        ([1.0, None, 2.0], "column 't' has no time in row 1|nan"),
        (["2024-05-31", "31.5.2024", "2024-06-01"], "'31.5.2024' at place 1"),
        ([True, False, True], "column 't' must hold"),
    ],
)
def test_unusable_times_are_named(library, times, message):
    frame = LIBRARIES[library]({**COLUMNS, "t": times})
    with pytest.raises(InvalidDataError, match=message):
        Observations.from_frame(frame, row="u", col="i", value="v", time="t")


def test_a_line_without_a_value_takes_its_time_with_it():
    frame = pd.DataFrame({**COLUMNS, "t": [1, 2, 3]}).assign(v=[1.0, np.nan, 3.0])
    with pytest.warns(DataWarning, match="no 'v'"):
        seen = Observations.from_frame(frame, row="u", col="i", value="v", time="t")
    assert seen.times.tolist() == [3, 1]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-9, 9)), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_repeated_cells_keep_their_latest_time(triples, random):
    naive = {}
    for row, col, time in triples:
        naive[row, col] = max(time, naive.get((row, col), -99))
    for _ in range(2):
        rows, cols, times = zip(*triples, strict=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            seen = Observations.from_triples(rows, cols, np.ones(len(rows)), (4, 4), times=times)
            dated = Observations.from_triples(
                rows, cols, np.ones(len(rows)), (4, 4), times=np.array(times, dtype="datetime64[D]")
            )
        assert by_cell(seen) == naive
        assert dated.times.astype(int).tolist() == seen.times.tolist()
        random.shuffle(triples)


def test_every_change_keeps_the_times_beside_their_cells():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((5, 4)) < 0.6, rng.random((5, 4)), np.nan)
    times = np.arange(20).reshape(5, 4)
    seen = Observations.from_dense(dense, times=times)
    assert seen.times.tolist() == times[~np.isnan(dense)].tolist()
    dated = seen.with_times(seen.times.astype("datetime64[s]"))
    for cells in (seen, seen.with_times(seen.times.astype(float)), dated):
        turned = cells.transpose()
        assert turned.times.dtype == cells.times.dtype
        assert turned.times.astype(int).tolist() == times.T[~np.isnan(dense.T)].tolist()
        kept = cells.rows > 1
        np.testing.assert_array_equal(cells.select(kept).times, cells.times[kept])
    changed = [
        seen.with_values(np.ones(seen.nnz)),
        seen.with_weights(np.ones(seen.nnz)),
        seen.with_ids(Vocabulary(range(5)), Vocabulary(range(4))),
        Observations.from_any(seen),
        Observations.from_sparse(seen.csr, times=seen.times),
        Observations.from_any(seen.csr, times=seen.with_values(seen.times).csr),
        Observations.from_any(dense, times=times),
    ]
    for other in changed:
        assert by_cell(other) == by_cell(seen)
    assert seen.with_times(None).times is None
    weighted = seen.with_weights(np.ones(seen.nnz)).with_times(seen.times + 1)
    assert weighted.weights is not None
    assert weighted.times.tolist() == (seen.times + 1).tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Observations.from_dense(np.ones((2, 2)), times=[1, 2]), r"shape of X, \(2, 2\)"),
        (lambda: Observations.from_dense(np.ones((1, 2)), times=[[1, np.nan]]), "row 0, column 1"),
        (lambda: Observations.from_triples([0], [1], [1.0], times=[1, 2]), "1 moments"),
        (lambda: Observations.from_triples([0], [1], [1.0], times=[{}]), "got object"),
        (lambda: Observations.from_triples([0], [3], [1.0], times=[np.datetime64("NaT")]), "row 0, column 3"),
        (
            lambda: Observations.from_sparse(
                sparse.eye_array(2, format="csr"), times=sparse.eye_array(2, k=1)
            ),
            "no entry for row 0, column 0",
        ),
        (
            lambda: Observations.from_dense([[1.0, 2.0]]).with_times(["2020-01-01", "2020-01-01T00:00Z"]),
            "zone",
        ),
    ],
)
def test_bad_times_are_refused(make, message):
    with pytest.raises(InvalidDataError, match=message):
        make()


@pytest.mark.parametrize("parser", ["pyarrow", "csv"])
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["978300760", "978302109", "5"], [978302109, 5, 978300760]),
        (["2024-05-31", "2023-01-01", "2025-02-02"], ["2023-01-01", "2025-02-02", "2024-05-31"]),
        (
            ["2024-05-31 18:30:00", "2024-05-31T18:30:01", "2023-01-01"],
            ["2024-05-31T18:30:01", "2023-01-01T00:00:00", "2024-05-31T18:30:00"],
        ),
        (
            ["2024-05-31T18:30:00+02:00", "2024-05-31T16:30:01Z", "2023-01-01T00:00:00Z"],
            ["2024-05-31T16:30:01", "2023-01-01T00:00:00", "2024-05-31T16:30:00"],
        ),
    ],
)
def test_times_in_a_text_file(tmp_path, monkeypatch, parser, texts, expected):
    if parser == "csv":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "cells.csv"
    path.write_text(
        "u,i,v,t\n" + "".join(f"{u},{i},1,{t}\n" for u, i, t in zip("bab", "120", texts, strict=True))
    )
    seen = read_triples(path, row="u", col="i", value="v", time="t", chunk_rows=2)
    if seen.times.dtype.kind == "M":
        assert [str(np.datetime64(e, "us")) for e in expected] == seen.times.astype(str).tolist()
    else:
        assert seen.times.tolist() == expected
    path.write_text("u,i,v,t\na,1,1,5\nb,1,1,\n")
    with pytest.raises(InvalidDataError, match=r"cells.csv: column 't'.*''|no time in line 1"):
        read_triples(path, row="u", col="i", value="v", time="t")


def test_times_in_parquet(tmp_path):
    path = tmp_path / "cells.parquet"
    from pyarrow import parquet

    for times in (
        pa.array(MOMENTS, pa.timestamp("ms", "Europe/Rome")),
        pa.array([moment.date() for moment in MOMENTS], pa.date32()),
        pa.array([3, 1, 5]),
        pa.array(["2024-05-31", "2023-01-01", "2025-02-02"]),
    ):
        parquet.write_table(pa.table({**COLUMNS, "t": times}), path)
        seen = read_triples(path, row="u", col="i", value="v", time="t")
        assert np.argsort(seen.times).tolist() == [0, 2, 1]
    parquet.write_table(pa.table({**COLUMNS, "t": pa.array([1, None, 2])}), path)
    with pytest.raises(InvalidDataError, match="no time in line 1"):
        read_triples(path, row="u", col="i", value="v", time="t")


def test_the_repr_says_what_is_there():
    seen = Observations.from_frame(
        pd.DataFrame({**COLUMNS, "t": MOMENTS, "w": [0.5, 1, 2]}),
        row="u",
        col="i",
        value="v",
        weight="w",
        time="t",
    )
    assert repr(seen) == (
        "Observations(2 x 3, 3 cells = 50%, float64, row ids ['a', 'b'], col ids [0, 1, 2], weights 0.5..2, "
        "times 2023-01-01..2025-02-02)"
    )
    assert "times 5..9" in repr(seen.with_times([5, 7, 9]))
    assert "times 2024-05-31T18:30:00..2025-02-02" in repr(seen.select(seen.rows == 1))
    assert repr(seen.select(seen.rows > 9)).endswith("col ids [0, 1, 2], weights, times)")
