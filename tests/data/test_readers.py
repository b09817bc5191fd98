import csv
import gzip
import io
import subprocess
import sys
import textwrap

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from unseen.data import Observations, read_edges, read_triples
from unseen.data.readers import _TextTable
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError


@pytest.fixture(params=["pyarrow", "plain"])
def parser(request, monkeypatch):
    """Both ways of reading text."""
    if request.param == "plain":
        monkeypatch.setattr(_TextTable, "chunks", _TextTable._plain_chunks)
    return request.param


def cells(seen):
    rows, cols = seen.row_ids[seen.rows].tolist(), seen.col_ids[seen.indices].tolist()
    return dict(zip(zip(rows, cols, strict=True), seen.values.tolist(), strict=True))


TEXT = "who,film,stars\nann,x7,5\nbob,x9,3\nann,x9,1.5\n"
WANTED = {("ann", "x7"): 5.0, ("bob", "x9"): 3.0, ("ann", "x9"): 1.5}


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.rstrip("\n"),
        "\n" + TEXT.replace("\n", "\n\n"),
        "\ufeff" + TEXT,
        TEXT.replace("ann", '"ann"').replace("stars", '"stars"'),
        TEXT.replace(",5\n", ", 5 \n"),
    ],
    ids=["plain", "crlf", "no final newline", "blank lines", "byte order mark", "quoted", "padded number"],
)
@pytest.mark.parametrize("chunk_rows", [1, 1000])
def test_odd_but_legal_files(tmp_path, parser, text, chunk_rows):
    file = tmp_path / "ratings.csv"
    file.write_bytes(text.encode())
    seen = read_triples(file, row="who", col="film", value="stars", chunk_rows=chunk_rows)
    assert cells(seen) == WANTED
    with gzip.open(tmp_path / "ratings.csv.gz", "wb") as handle:
        handle.write(text.encode())
    assert cells(read_triples(tmp_path / "ratings.csv.gz", row=0, col=1, value=2)) == WANTED


def test_quotes_unicode_and_separators(tmp_path, parser):
    file = tmp_path / "x.tsv"
    file.write_text('"Zoë ""Z"" \tX"\t日本\t2\nb\t"two\nlines"\t3\n', encoding="utf-8")
    seen = read_triples(file, row=0, col=1, value=2, sep="\t", header=False)
    assert cells(seen) == {('Zoë "Z" \tX', "日本"): 2.0, ("b", "two\nlines"): 3.0}


def test_other_encodings(tmp_path, parser):
    file = tmp_path / "x.csv"
    file.write_bytes("u,i\nZoë,1\n".encode("latin-1"))
    assert read_triples(file, row="u", col="i", encoding="latin-1").row_ids[0] == "Zoë"
    with pytest.raises(InvalidDataError, match=r"x\.csv.*such as latin-1"):
        read_triples(file, row="u", col="i")
    file.write_text("u,i\nZoë,1\n", encoding="utf-16")
    with pytest.raises(InvalidDataError, match=r"x\.csv.*first bytes say utf-16"):
        read_triples(file, row="u", col="i")
    assert read_triples(file, row="u", col="i", encoding="utf-16").row_ids[0] == "Zoë"


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        (["10", "9", "-3"], [-3, 9, 10]),
        (["10", "9", "x"], ["10", "9", "x"]),
        (["007", "7"], ["007", "7"]),
        (["1", "99999999999999999999"], ["1", "99999999999999999999"]),
    ],
)
def test_integers_are_recognised_as_a_whole_column(tmp_path, parser, ids, wanted):
    file = tmp_path / "x.csv"
    file.write_text("u,i\n" + "".join(f"{name},k\n" for name in ids))
    seen = read_triples(file, row="u", col="i", chunk_rows=1)
    assert seen.row_ids.values.tolist() == wanted
    assert seen.col_ids.values.tolist() == ["k"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("who,film,stars\n", "holds no cells"),
        (TEXT + "carl,x1\n", r"line 5: expected 3 fields, found 2: \['carl', 'x1'\]"),
        (TEXT + "\ncarl,x1,2,3\n", "line 6: expected 3 fields, found 4"),
        (TEXT + "carl,x1,good\n", "line 5: 'good' is not a number"),
        (TEXT + "carl,x1,1_0\n", "line 5: '1_0' is not a number"),
        (TEXT + ",x1,2\n", "line 5: an id is empty"),
        (TEXT + "ann\0,x1,2\n", "no id may end in NUL"),
        (TEXT + "carl,x1,inf\n", "line 5: 'inf' is infinite"),
        (TEXT + "carl,x1,1e999\n", "line 5: '1e999' is infinite"),
    ],
)
def test_what_is_wrong_is_located(tmp_path, parser, text, message):
    file = tmp_path / "ratings.csv"
    file.write_text(text)
    with pytest.raises(InvalidDataError, match=message) as caught:
        read_triples(file, row="who", col="film", value="stars")
    assert "ratings.csv" in str(caught.value)


def test_a_broken_archive_is_named(tmp_path, parser):
    whole = gzip.compress(TEXT.encode() * 2000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "fake.csv.gz").write_text(TEXT)
    for name in ("cut.csv.gz", "fake.csv.gz"):
        with pytest.raises(InvalidDataError, match=name):
            read_triples(tmp_path / name, row="who", col="film", value="stars")
    with pytest.raises(FileNotFoundError):
        read_triples(tmp_path / "none.csv", row="who", col="film")


def test_missing_values_and_duplicates_are_told(tmp_path, parser):
    file = tmp_path / "x.csv"
    file.write_text("u,i,v\na,b,\na,c,NaN\na,d,4\na,d,2\n")
    with pytest.warns(DataWarning) as caught:
        seen = read_triples(file, row="u", col="i", value="v")
    assert {str(w.message).split()[0] for w in caught} == {"1", "2"}
    assert cells(seen) == {("a", "d"): 3.0}
    assert seen.shape == (1, 3)
    with pytest.warns(DataWarning, match="summed"):
        assert cells(read_triples(file, row="u", col="i"))["a", "d"] == 2


def test_columns_that_do_not_exist(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text(TEXT)
    with pytest.raises(
        ParameterError, match=r"row='user' is not a column of .*; it has 'who', 'film', 'stars'"
    ):
        read_triples(file, row="user", col="film")
    with pytest.raises(ParameterError, match="col=3"):
        read_triples(file, row=0, col=3)
    with pytest.raises(ParameterError, match="no header"):
        read_triples(file, row="who", col=1, header=False)
    with pytest.raises(ParameterError, match="sep must be one character"):
        read_triples(file, row=0, col=1, sep="::")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    st.dictionaries(
        st.tuples(
            st.text(
                st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=4
            ),
            st.integers(-9, 9),
        ),
        st.floats(-9, 9),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 3, 100]),
)
def test_whatever_the_csv_module_writes_is_read(tmp_path, parser, table, chunk_rows):
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["u", "i", "v"])
    writer.writerows((f"x{row}", col, repr(value)) for (row, col), value in table.items())
    file = tmp_path / "x.csv"
    file.write_bytes(text.getvalue().encode())
    found = cells(read_triples(file, row="u", col="i", value="v", chunk_rows=chunk_rows))
    assert found == {(f"x{row}", col): value for (row, col), value in table.items()}


def test_without_pyarrow(tmp_path, monkeypatch):
    file = tmp_path / "ratings.csv"
    file.write_text(TEXT)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert cells(read_triples(file, row="who", col="film", value="stars")) == WANTED
    with pytest.raises(ParameterError, match="needs pyarrow"):
        read_triples(tmp_path / "x.parquet", row=0, col=1)


def test_parquet(tmp_path):
    frame = pl.DataFrame({"u": ["b", "a", "b"], "i": [3, 1, 1], "v": [1, None, 3]})
    file = tmp_path / "x.parquet"
    frame.write_parquet(file)
    for chunk_rows in (1, 100):
        with pytest.warns(DataWarning, match="1 of 3 lines have no 'v'"):
            seen = read_triples(file, row="u", col="i", value="v", chunk_rows=chunk_rows)
        assert cells(seen) == {("b", 3): 1.0, ("b", 1): 3.0}
    as_categories = frame.with_columns(pl.col("u").cast(pl.Categorical))
    as_categories.write_parquet(file)
    assert read_triples(file, row=0, col=1).nnz == 3
    with pytest.raises(ParameterError, match="row='x' is not a column"):
        read_triples(file, row="x", col="i")
    parquet.write_table(pa.table({"u": ["a", None], "i": [1.5, 2.0], "v": ["x", "y"]}), file)
    with pytest.raises(InvalidDataError, match=r"x\.parquet: column 'u' has no id in row 1"):
        read_triples(file, row="u", col="i")
    with pytest.raises(InvalidDataError, match=r"x\.parquet: column 'i' must be integers or strings"):
        read_triples(file, row="i", col="i")
    file.write_text("not parquet")
    with pytest.raises(InvalidDataError, match=r"x\.parquet"):
        read_triples(file, row="u", col="i")


def test_text_and_frame_agree(tmp_path, parser):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"u": rng.integers(0, 99, 500), "i": rng.integers(0, 50, 500), "v": rng.normal(size=500)}
    )
    frame = frame.unique(["u", "i"], maintain_order=True)
    file = tmp_path / "x.csv"
    frame.write_csv(file)
    read = read_triples(file, row="u", col="i", value="v", chunk_rows=64)
    direct = Observations.from_frame(frame, row="u", col="i", value="v")
    assert read.row_ids == direct.row_ids
    np.testing.assert_array_equal(read.indices, direct.indices)
    np.testing.assert_array_equal(read.values, direct.values)


MEASURE = """
    import sys
    import unseen.data, pyarrow.csv

    def high_water_mark():  # in kB; ru_maxrss would count what the parent of the process held
        return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

    def read(path):
        return unseen.data.read_triples(path, row="u", col="i", value="v", chunk_rows=1 << 10)

    def size(seen):
        arrays = (seen.values, seen.indices, seen.indptr, seen.row_ids.values, seen.col_ids.values)
        return sum(a.nbytes for a in arrays)

    # What grows with the file is wanted, not the constant that the parser takes.
    small = size(read(sys.argv[1]))
    before = high_water_mark()
    large = size(read(sys.argv[2]))
    print(1024 * (high_water_mark() - before) / (large - small))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the high-water mark from /proc")
def test_memory_stays_within_a_small_multiple_of_the_result(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("small", 200_000), ("large", 1_000_000)):
        flat = np.sort(rng.choice(20_000 * 2_000, n, replace=False))
        rng.shuffle(flat)
        frame = pl.DataFrame({"u": flat // 2_000, "i": flat % 2_000, "v": rng.integers(1, 6, n)})
        frame.with_columns(pl.format("user {}", "u").alias("u")).write_csv(tmp_path / f"{name}.csv")
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), tmp_path / "small.csv", tmp_path / "large.csv"]
    ratio = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 0.5 < ratio < 5  # lists of Python objects would take more than ten times the result


def test_edges(tmp_path):
    text = "# nodes: 3\r\n10 20\r\n\n20\t10 # again\n20   30 0.5\n30 30"
    (tmp_path / "g.txt").write_text(text)
    graph = read_edges(tmp_path / "g.txt")
    assert graph.row_ids is graph.col_ids
    assert graph.row_ids.values.tolist() == [10, 20, 30]
    assert graph.csr.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 1]]
    arrows = read_edges(tmp_path / "g.txt", directed=True)
    assert arrows.csr.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 1]]
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress(text.encode()))
    assert cells(read_edges(tmp_path / "g.txt.gz", chunk_rows=1)) == cells(graph)


def test_edges_between_names(tmp_path):
    (tmp_path / "g.csv").write_text("% comment\nA b,日本\n日本,C\n")
    graph = read_edges(tmp_path / "g.csv", sep=",", comments="%")
    assert graph.row_ids.values.tolist() == ["A b", "C", "日本"]
    assert graph.nnz == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no edges"),
        ("# only\n", "holds no edges"),
        ("1 2\n\n3\n", r"g\.txt, line 3: expected two node ids"),
    ],
)
def test_unusable_edges_are_located(tmp_path, text, message):
    (tmp_path / "g.txt").write_text(text)
    with pytest.raises(InvalidDataError, match=message):
        read_edges(tmp_path / "g.txt")


WEIGHTED = "who,film,stars,w\nann,x7,5,0.5\nbob,x9,3,0\nann,x9,1.5,2\n"


def test_weights_are_a_column(tmp_path, parser):
    path = tmp_path / "ratings.csv"
    path.write_text(WEIGHTED)
    seen = read_triples(path, row="who", col="film", value="stars", weight="w")
    assert cells(seen) == WANTED
    assert cells(seen.with_values(seen.weights)) == {
        ("ann", "x7"): 0.5,
        ("bob", "x9"): 0.0,
        ("ann", "x9"): 2.0,
    }
    assert read_triples(path, row=0, col=1, value=2).weights is None
    pairs = read_triples(path, row=0, col=1, weight=3)
    assert (pairs.values.tolist(), pairs.weights.tolist()) == ([1.0, 1.0, 1.0], seen.weights.tolist())
    table = path.with_suffix(".parquet")
    pl.read_csv(path).write_parquet(table)
    assert read_triples(table, row="who", col="film", weight="w").weights.tolist() == seen.weights.tolist()
    for wrong, message in ((",0.5\n", "no weight in line 0"), (",2\n", "no weight in line 2")):
        path.write_text(WEIGHTED.replace(wrong, ",\n"))
        with pytest.raises(InvalidDataError, match=message):
            read_triples(path, row="who", col="film", value="stars", weight="w")
    path.write_text(WEIGHTED.replace(",2\n", ",-2\n"))
    with pytest.raises(InvalidDataError, match="weights holds -2"):
        read_triples(path, row="who", col="film", value="stars", weight="w")
    with pytest.raises(ParameterError, match="weight='v' is not a column"):
        read_triples(path, row="who", col="film", weight="v")
