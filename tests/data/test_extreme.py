import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from unseen.data import read_extreme, read_svmlight, write_extreme
from unseen.exceptions import DataWarning, InvalidDataError

TINY = "3 4 5\n0,4 1:0.5 3:2\n 0:1\n2 \n"


@pytest.mark.parametrize(
    "text",
    [
        TINY,
        TINY.replace("\n", "\r\n"),
        TINY.rstrip("\n"),
        TINY + "\n\n",
        TINY.replace(" 0:1", "0:1"),
        TINY.replace(" 0:1", "\t0:1"),
        TINY.replace("2 \n", "2\n"),
    ],
)
def test_odd_but_legal_files(tmp_path, text):
    (tmp_path / "t.txt").write_bytes(text.encode())
    (tmp_path / "t.txt.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("t.txt", "t.txt.gz"):
        X, Y = read_extreme(tmp_path / name)
        assert X.toarray().tolist() == [[0, 0.5, 0, 2], [1, 0, 0, 0], [0, 0, 0, 0]]
        assert Y.toarray().tolist() == [[1, 0, 0, 0, 1], [0] * 5, [0, 0, 1, 0, 0]]


def test_an_empty_line_is_an_empty_row(tmp_path):
    (tmp_path / "t.txt").write_text("2 3 3\n\n1 2:1\n")
    X, Y = read_extreme(tmp_path / "t.txt", dtype=np.float32)
    assert (X.dtype, Y.dtype) == (np.float32, np.float32)
    assert np.diff(X.indptr).tolist() == np.diff(Y.indptr).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the file is empty"),
        ("3 4\n", "line 1: expected the numbers of rows, features and labels, found '3 4'"),
        ("a b c\n", "line 1"),
        ("3 4 5\n0 1:1\n", "line 3: the header promises 3 rows, the file ends after 1"),
        ("1 4 5\n0 1:1\n0 1:1\n", "line 3: the header promises 1 rows, but there are more"),
        ("2 4 5\n0 1:1\n5 1:1\n", r"line 3: '5' is not a label in 0\.\.4"),
        ("2 4 5\n0 1:1\n1,,2 1:1\n", "line 3: '' is not a label"),
        ("2 4 5\n0 1:1\n1 4:1\n", r"line 3: '4:1' has no feature in 0\.\.3"),
        ("2 4 5\n0 1:1\n1 1:x\n", "line 3: '1:x' has no finite value"),
        ("2 4 5\n0 1:1\n1 1:\n", "line 3: '1:' has no finite value"),
        ("2 4 5\n0 1:1\n1 1:inf\n", "line 3: '1:inf' has no finite value"),
        ("2 4 5\n0 1:1\n1 1.5:1\n", "line 3: '1.5:1' has no feature"),
        ("2 4 5\n0 1:1\n1 7\n", "line 3: '7' has no feature"),
    ],
)
def test_what_is_wrong_is_located(tmp_path, text, message):
    (tmp_path / "t.txt").write_text(text)
    with pytest.raises(InvalidDataError, match=message):
        read_extreme(tmp_path / "t.txt")


def test_repeats_within_a_row(tmp_path):
    (tmp_path / "t.txt").write_text("1 2 2\n1,1 0:1 0:2\n")
    with pytest.warns(DataWarning, match="1 features repeat"):
        X, Y = read_extreme(tmp_path / "t.txt")
    assert X.toarray().tolist() == [[3, 0]]
    assert Y.toarray().tolist() == [[0, 1]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            hnp.arrays(
                st.sampled_from([np.float32, np.float64]),
                st.tuples(st.just(n), st.integers(1, 4)),
                elements=st.floats(-(2.0**99), 2.0**99, width=32),
            ),
            hnp.arrays(np.bool_, st.tuples(st.just(n), st.integers(1, 4))),
        )
    ),
    st.sampled_from(["t.txt", "t.txt.gz"]),
)
def test_written_files_read_back_bit_for_bit(tmp_path, matrices, name):
    features, labels = matrices
    write_extreme(tmp_path / name, sparse.csr_array(features), sparse.csr_array(labels))
    X, Y = read_extreme(tmp_path / name, dtype=features.dtype)
    np.testing.assert_array_equal(X.toarray(), features)
    np.testing.assert_array_equal(Y.toarray(), labels)
    assert [file.name for file in tmp_path.iterdir() if "part" in file.name] == []


def test_many_rows_cross_the_chunks(tmp_path):
    X = sparse.random_array((9_000, 30), density=0.1, format="csr", rng=0)
    Y = sparse.random_array((9_000, 20), density=0.05, format="csr", rng=1)
    write_extreme(tmp_path / "t.txt", X, Y)
    found, labels = read_extreme(tmp_path / "t.txt")
    assert (found != X).nnz == 0
    assert (labels != (Y != 0)).nnz == 0
    lines = (tmp_path / "t.txt").read_text().splitlines()
    lines[8_000] += " 99:1"
    (tmp_path / "t.txt").write_text("\n".join(lines))
    with pytest.raises(InvalidDataError, match="line 8001: '99:1'"):
        read_extreme(tmp_path / "t.txt")


def test_rows_must_match(tmp_path):
    with pytest.raises(InvalidDataError, match="same number of rows, got 2 and 3"):
        write_extreme(tmp_path / "t.txt", sparse.csr_array((2, 2)), sparse.csr_array((3, 2)))
    assert list(tmp_path.iterdir()) == []


def test_svmlight(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    X, y = read_svmlight(tmp_path / "t.svm", n_features=5)
    assert X.toarray().tolist() == [[0.5, 0, 2, 0, 0], [0, 1, 0, 0, 0]]
    assert y.tolist() == [1, -1]
    (tmp_path / "t.svm").write_text("1 nonsense\n")
    with pytest.raises(InvalidDataError, match=r"t\.svm"):
        read_svmlight(tmp_path / "t.svm")
