import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unseen.data import Observations, Origin, Vocabulary
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError, UnknownIdError
from unseen.model_selection import split_entries

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
numbers = st.integers(-(2**60), 2**60)


def columns_of(frame):
    """A frame of any library as a dictionary of lists."""
    if isinstance(frame, pa.Table):
        return frame.to_pydict()
    return {name: frame[name].to_list() for name in frame.columns}


def cells(columns):
    return dict(zip(zip(columns["row"], columns["col"], strict=True), columns["value"], strict=True))


@given(
    st.one_of(
        st.dictionaries(st.tuples(texts, numbers), st.floats(-9, 9, width=32), min_size=1, max_size=20),
        st.dictionaries(st.tuples(numbers, texts), st.floats(-9, 9, width=32), min_size=1, max_size=20),
    ),
    st.sampled_from(list(LIBRARIES)),
    st.sampled_from(list(LIBRARIES)),
)
def test_frames_and_back(table, source, target):
    rows, cols = (list(ids) for ids in zip(*table, strict=True))
    frame = LIBRARIES[source]({"row": rows, "col": cols, "value": list(table.values())})
    seen = Observations.from_frame(frame, row="row", col="col", value="value")
    back = seen.to_frame(target)
    assert type(back).__module__.split(".")[0] == target
    assert cells(columns_of(back)) == table
    assert seen.row_ids.values.tolist() == sorted(set(rows))


@pytest.mark.parametrize("library", LIBRARIES)
def test_nulls(library):
    make = LIBRARIES[library]
    frame = make({"u": ["a", "b", "a"], "i": [1, 2, 2], "v": [1.0, None, 3.0]})
    with pytest.warns(DataWarning, match="1 of 3 lines have no 'v'"):
        seen = Observations.from_frame(frame, row="u", col="i", value="v")
    assert (seen.nnz, seen.shape) == (2, (2, 2))
    for column in ("u", "i"):
        broken = {"u": ["a", "b", "a"], "i": [1, 2, 2]}
        broken[column][1] = None
        with pytest.raises(
            InvalidDataError, match=rf"column '{column}' has no id in row 1 \(1 nulls in all\)"
        ):
            Observations.from_frame(make(broken), row="u", col="i")


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"u": ["b", "a", "b"], "i": [3, 1, 1]}).astype("category"),
        pl.DataFrame({"u": ["b", "a", "b"], "i": [3, 1, 1]}, schema_overrides={"u": pl.Categorical}),
        pl.DataFrame(
            {"u": ["b", "a", "b"], "i": [3, 1, 1]}, schema_overrides={"u": pl.Enum(["b", "c", "a"])}
        ),
        pa.table({"u": pa.array(["b", "a", "b"]).dictionary_encode(), "i": pa.array([3, 1, 1], pa.uint8())}),
        pa.table({"u": pa.chunked_array([["b"], ["a", "b"]]), "i": pa.chunked_array([[3, 1], [1]])}),
        pd.DataFrame({"u": np.array(["b", "a", "b"], dtype=object), "i": [3, 1, 1]}, index=[9, 9, 9]),
    ],
)
def test_kinds_of_id_columns(frame):
    seen = Observations.from_frame(frame, row="u", col="i")
    assert seen.row_ids.values.tolist() == ["a", "b"]
    assert seen.col_ids.values.tolist() == [1, 3]
    assert seen.csr.toarray().tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_without_pyarrow(make, monkeypatch):
    frame = make({"u": ["b", "a", "b"], "i": [3, 1, 1]})
    if make is pd.DataFrame:
        frame = frame.astype({"i": "category"})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    seen = Observations.from_frame(frame, row="u", col="i")
    assert seen.row_ids.values.tolist() == ["a", "b"]
    assert seen.col_ids.values.tolist() == [1, 3]
    assert seen.csr.toarray().tolist() == [[1, 0], [1, 1]]


def test_types_of_values():
    frame = pd.DataFrame(
        {"u": [0, 1], "i": [0, 1], "v": np.array([1, 2], dtype=np.float32), "w": [True, False]}
    )
    assert Observations.from_frame(frame, row="u", col="i", value="v").dtype == np.float32
    assert Observations.from_frame(frame, row="u", col="i", value="w").values.tolist() == [1.0, 0.0]


def test_a_given_vocabulary_sets_the_order_and_refuses_strangers():
    frame = pd.DataFrame({"u": ["b", "a"], "i": [3, 1]})
    users = Vocabulary(["z", "b", "a"])
    seen = Observations.from_frame(frame, row="u", col="i", row_ids=users)
    assert seen.csr.toarray().tolist() == [[0, 0], [0, 1], [1, 0]]
    with pytest.raises(UnknownIdError, match="'b'"):
        Observations.from_frame(frame, row="u", col="i", row_ids=Vocabulary(["a"]))


def test_counts_are_summed_and_values_averaged():
    frame = pl.DataFrame({"u": ["a", "a"], "i": [1, 1], "v": [2.0, 4.0]})
    with pytest.warns(DataWarning, match="summed"):
        assert Observations.from_frame(frame, row="u", col="i").values.tolist() == [2]
    with pytest.warns(DataWarning, match="averaged"):
        assert Observations.from_frame(frame, row="u", col="i", value="v").values.tolist() == [3]


def test_misuse_is_named():
    frame = pd.DataFrame({"u": ["a"], "i": [1.5], "v": ["x"]})
    with pytest.raises(ParameterError, match="col='item' is not a column; the frame has 'u', 'i', 'v'"):
        Observations.from_frame(frame, row="u", col="item")
    with pytest.raises(InvalidDataError, match="column 'i' must be integers or strings"):
        Observations.from_frame(frame, row="u", col="i")
    with pytest.raises(InvalidDataError, match="column 'v' must hold numbers"):
        Observations.from_frame(frame.assign(i="b"), row="u", col="i", value="v")
    with pytest.raises(InvalidDataError, match="pandas or polars DataFrame"):
        Observations.from_frame([1, 2], row="u", col="i")
    seen = Observations.from_any([[1.0]])
    with pytest.raises(ParameterError, match="backend must be one of"):
        seen.to_frame("excel")
    with pytest.raises(ParameterError, match="3 different names"):
        seen.to_frame(row="x", col="x")


def test_without_ids_the_indices_are_written():
    assert Observations.from_any([[np.nan, 2.0]]).to_frame("pyarrow").to_pydict() == {
        "row": [0],
        "col": [1],
        "value": [2.0],
    }


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_names_and_library_of_a_frame_are_kept(backend):
    frame = Observations.from_triples([0, 1], [1, 0], [2.0, 3.0]).to_frame(
        backend, row="u", col="i", value="v"
    )
    seen = Observations.from_frame(frame, row="u", col="i", value="v")
    assert seen.origin == Origin("u", "i", "v", None, backend)
    kept = [seen.select([True, False]), seen.with_values([1.0, 1.0]), seen.with_weights([1.0, 2.0])]
    assert all(
        part.origin == seen.origin for part in [*kept, seen.with_ids(None, None), *split_entries(seen)]
    )
    assert seen.transpose().origin == Origin("i", "u", "v", None, backend)


@pytest.mark.parametrize("index", [["x", "y"], [7, 3]])
def test_a_wide_frame_has_ids(index):
    wide = pd.DataFrame([[1.0, np.nan], [2.0, 3.0]], index=index, columns=["b", "a"])
    seen = Observations.from_any(wide)
    assert seen.row_ids.values.tolist() == index
    assert seen.col_ids.values.tolist() == ["b", "a"]
    assert Observations.from_any(pl.from_pandas(wide.fillna(0))).col_ids == seen.col_ids


def test_labels_that_say_nothing_are_no_ids():
    counted = Observations.from_any(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]]))
    assert counted.row_ids is None
    assert counted.col_ids is None
    assert Observations.from_any(pd.DataFrame(np.ones((2, 2)), index=["a", "a"])).row_ids is None
    with pytest.raises(
        InvalidDataError, match=r"columns of X must be all integers or all strings, got int.*str"
    ):
        Observations.from_any(pd.DataFrame(np.ones((1, 2)), columns=[1, "a"]))
