import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from unseen.data import Vocabulary
from unseen.data.features import align
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError, UnknownIdError

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
FILMS = {"film": ["c", "a", "b"], "year": [3, 1, 2], "kind": ["x", "y", "x"], "long": [True, False, True]}
NAMES = ["year", "kind=x", "kind=y", "long"]


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize("library", LIBRARIES)
def test_lines_follow_the_vocabulary(library):
    matrix, names = align(LIBRARIES[library](FILMS), Vocabulary(["a", "b", "c"]), "film")
    assert names == NAMES
    assert dense(matrix).tolist() == [[1, 0, 1, 0], [2, 1, 0, 1], [3, 1, 0, 1]]


@given(st.permutations(["a", "b", "c"]), st.permutations([0, 1, 2]))
def test_order_of_lines_does_not_matter(order, lines):
    frame = pd.DataFrame(FILMS).iloc[lines]
    matrix, _ = align(frame, Vocabulary(order), "film")
    rows = {"a": [1, 0, 1, 0], "b": [2, 1, 0, 1], "c": [3, 1, 0, 1]}
    assert dense(matrix).tolist() == [rows[name] for name in order]


def test_ids_without_a_line():
    vocabulary = Vocabulary(["a", "b", "c", "q", "r"])
    with pytest.raises(UnknownIdError, match="no line for 2 of 5 ids: 'q', 'r'"):
        align(pd.DataFrame(FILMS), vocabulary, "film")
    zero, _ = align(pd.DataFrame(FILMS), vocabulary, "film", missing="zero")
    assert dense(zero)[3:].tolist() == [[0] * 4] * 2
    mean, _ = align(pd.DataFrame(FILMS), vocabulary, "film", missing="mean")
    np.testing.assert_allclose(dense(mean)[3:], [[2, 2 / 3, 1 / 3, 2 / 3]] * 2)
    np.testing.assert_array_equal(dense(mean)[:3], dense(zero)[:3])


def test_ids_that_nobody_asked_for():
    with pytest.warns(DataWarning, match="1 of 3 ids of features are none of the cells: "):
        matrix, names = align(pd.DataFrame(FILMS), Vocabulary(["b", "c"]), "film")
    assert names == ["year", "kind=x", "long"]
    assert dense(matrix).tolist() == [[2, 1, 1], [3, 1, 1]]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("column", "filled"), [("year", [0.0, 2.5]), ("kind", [0.0, 0.5])])
def test_nulls(library, column, filled):
    broken = {name: list(values) for name, values in FILMS.items()}
    broken[column][1] = None
    frame, vocabulary = LIBRARIES[library](broken), Vocabulary(["a", "b", "c"])
    with pytest.raises(InvalidDataError, match=f"column '{column}' has no value for id 'a'"):
        align(frame, vocabulary, "film")
    for how, value in zip(("zero", "mean"), filled, strict=True):
        matrix, names = align(frame, vocabulary, "film", missing=how)
        place = [name.split("=")[0] for name in names].index(column)
        wanted = 1.0 if (how, column) == ("mean", "kind") else value
        assert dense(matrix)[0, place] == wanted


def test_many_categories_stay_sparse():
    frame = pd.DataFrame({"id": np.arange(500), "zip": [f"z{i % 200}" for i in range(500)]})
    matrix, names = align(frame, Vocabulary(np.arange(500)), "id")
    assert sparse.issparse(matrix)
    assert (matrix.shape, matrix.nnz, len(names)) == ((500, 200), 500, 200)


def test_mappings():
    matrix, names = align({"a": [1, 2], "b": [3, 4]}, Vocabulary(["b", "a"]))
    assert (matrix.tolist(), names) == ([[3, 4], [1, 2]], ["0", "1"])
    matrix, _ = align({"a": [1, 2]}, Vocabulary(["b", "a"]), missing="mean")
    assert matrix.tolist() == [[1, 2], [1, 2]]


def test_float32_stays():
    frame = pd.DataFrame({"id": [1, 2], "x": np.array([1, 2], dtype=np.float32)})
    assert align(frame, Vocabulary([2, 1]), "id")[0].dtype == np.float32


def test_misuse_is_named():
    vocabulary = Vocabulary(["a"])
    with pytest.raises(ParameterError, match="id_column='movie' is not a column"):
        align(pd.DataFrame(FILMS), vocabulary, "movie")
    with pytest.raises(InvalidDataError, match="each id once; 'a' occurs again"):
        align(pd.DataFrame({"id": ["a", "a"], "x": [1, 2]}), vocabulary, "id")
    with pytest.raises(InvalidDataError, match="no column besides 'id'"):
        align(pd.DataFrame({"id": ["a"]}), vocabulary, "id")
    with pytest.raises(InvalidDataError, match="column 'x' is infinite for id 'a'"):
        align(pd.DataFrame({"id": ["a"], "x": [np.inf]}), vocabulary, "id")
    with pytest.raises(InvalidDataError, match="column 'when' must hold numbers"):
        align(pd.DataFrame({"id": ["a"], "when": pd.to_datetime(["2020-01-01"])}), vocabulary, "id")
    with pytest.raises(ParameterError, match="missing must be one of"):
        align(pd.DataFrame(FILMS), vocabulary, "film", missing="drop")
