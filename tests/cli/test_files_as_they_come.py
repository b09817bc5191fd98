"""Files as users have them: without names, whole matrices, other encodings, pipes, odd ids."""

from __future__ import annotations

import gzip
import io
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import parquet

import unseen
from unseen.cli.sinks import TableWriter
from unseen.cli.tables import Table
from unseen.cli.terminal import visible

TRIPLES = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n196\t377\t2\t880606923\n"
WIDE = "who,Alien,Clue,Dune\nann,5,1,\nbob,,2,5\ncem,1,,4\n"


@pytest.fixture
def fitted(run, tmp_path):
    """Fit the baseline to a file and give the model, what was said, and where it is."""

    def fit(path, *options, code=0):
        ended = run("fit", path, "--method", "bias", "--out", tmp_path / "model", *options, code=code)
        return (None if code else unseen.load(tmp_path / "model")), ended.err, tmp_path / "model"

    return fit


@pytest.fixture
def piped(monkeypatch):
    def pipe(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))

    return pipe


@pytest.mark.parametrize("name", ["u.data", "u.tsv", "u.data.gz"])
def test_the_first_line_of_a_file_without_names_is_a_cell(fitted, tmp_path, name):
    path = tmp_path / name
    (gzip.open if name.endswith(".gz") else open)(path, "wt").write(TRIPLES)
    model, said, _ = fitted(path)
    assert model.row_ids_.values.tolist() == [22, 186, 196]
    assert "looks like data" in said
    assert "--no-header" in said
    model, said, _ = fitted(path, "--no-header")
    assert model.row_ids_.values.tolist() == [22, 186, 196]
    assert "looks like" not in said


def test_names_stay_names(fitted, tmp_path):
    for text in ("user,item,stars\n1,2,3\n4,2,5\n", "user,item,2024\nann,x,3\nbob,x,5\n"):
        (tmp_path / "r.csv").write_text(text)
        model, said, _ = fitted(tmp_path / "r.csv", "--header")
        assert len(model.row_ids_) == 2
        (tmp_path / "r.csv").write_text(text)
        model, said, _ = fitted(tmp_path / "r.csv", "--row", "user")
        assert len(model.row_ids_) == 2
        assert "looks like" not in said


def test_pairs_of_text_without_names_are_recognised_by_an_id_that_comes_again(run, tmp_path):
    (tmp_path / "p.csv").write_text("ann,Alien\nbob,Alien\nann,Dune\ncem,Clue\n")
    run(
        "fit",
        tmp_path / "p.csv",
        "--method",
        "bias-mc",
        "--rank",
        1,
        "--out",
        tmp_path / "m",
        "--max-iter",
        500,
    )
    assert len(unseen.load(tmp_path / "m").row_ids_) == 3
    assert Table(tmp_path / "p.csv").names == ["ann", "Alien"]


def test_pairs_and_lists_of_ids_without_names_lose_no_line(run, model, files, tmp_path):
    (tmp_path / "pairs.csv").write_text("ü4,10\nzoe,10\n")
    ended = run("predict", model, tmp_path / "pairs.csv", "--unknown", "nan")
    assert len(ended.out.splitlines()) == 3
    (tmp_path / "rows.csv").write_text("ü4\nü5\n")
    ended = run("recommend", model, "--rows-file", tmp_path / "rows.csv", "-k", 1)
    assert [line.split(",")[0] for line in ended.out.splitlines()] == ["user", "ü4", "ü5"]


def test_features_without_names(run, files, tmp_path):
    people = files.row_features.read_text(encoding="utf-8").splitlines()
    (tmp_path / "people.csv").write_text("\n".join(people[1:]) + "\n", encoding="utf-8")
    arguments = ("--method", "imc", "--rank", 3, "--reg", 0.1, "--max-iter", 200, "--quiet")
    predicted = []
    for number, path in enumerate((files.row_features, tmp_path / "people.csv")):
        out = tmp_path / f"m{number}"
        run("fit", files.ratings, "--row-features", path, "--out", out, *arguments)
        (tmp_path / "new.csv").write_text(("user,a,b,kind\n" if not number else "") + "zoe,0.5,-1,cold\n")
        (tmp_path / "pair.csv").write_text("user,item\nzoe,10\n")
        ended = run("predict", out, tmp_path / "pair.csv", "--row-features", tmp_path / "new.csv")
        predicted.append(ended.out.splitlines()[1])
    assert predicted[0] == predicted[1]


def test_a_whole_matrix(fitted, tmp_path, run):
    path = tmp_path / "wide.csv"
    path.write_text(WIDE)
    model, _, place = fitted(path, "--wide")
    assert model.row_ids_.values.tolist() == ["ann", "bob", "cem"]
    assert model.col_ids_.values.tolist() == ["Alien", "Clue", "Dune"]
    assert model.mean_ == pytest.approx(3.0)
    assert run("evaluate", place, path, "--wide", "--metrics", "rmse", "--json").document["n_cells"] == 6


@pytest.mark.parametrize("text", [WIDE, "id,a,b,c,d,e,f,g\n1,1,2,3,4,5,6,7\n2,7,6,5,4,3,2,1\n"])
def test_a_whole_matrix_is_not_taken_for_a_list_of_cells(fitted, tmp_path, text):
    path = tmp_path / "wide.csv"
    path.write_text(text)
    assert "--wide" in fitted(path, code=2)[1]


def test_a_matrix_with_text_or_repeated_ids_is_refused(fitted, tmp_path):
    for text, said in (
        ("who,a,b\nann,5,good\n", "'b'"),
        ("who,a,a\nann,5,4\n", "'a'"),
        ("who,a,b\nann,5,4\nann,1,2\n", "'ann'"),
    ):
        (tmp_path / "w.csv").write_text(text)
        assert said in fitted(tmp_path / "w.csv", "--wide", code=1)[1]


def test_encoding(fitted, tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("user;film;stars\nann;Amélie;5\nbob;Amélie;3\nann;Dune;1\n".encode("latin-1"))
    model, _, _ = fitted(path, "--encoding", "latin-1")
    assert model.col_ids_.values.tolist() == ["Amélie", "Dune"]
    assert "encoding" in fitted(path, code=1)[1]
    assert "encoding" in fitted(path, "--encoding", "utf-9", code=2)[1]


def test_standard_input(run, piped, files, model, tmp_path):
    pairs = files.pairs.read_bytes()
    expected = run("predict", model, files.pairs).out
    piped(pairs)
    assert run("predict", model, "-").out == expected
    piped(gzip.compress(pairs))
    assert run("predict", model, "-", "--out", "-").out == expected
    buffer = io.BytesIO()
    parquet.write_table(arrow_csv.read_csv(files.pairs), buffer)
    piped(buffer.getvalue())
    assert run("predict", model, "-").out == expected
    piped(b"user,item\nnobody,10\n")
    assert "standard input: 1 unknown row ids" in run("predict", model, "-", code=1).err
    assert "once" in run("fit", "-", "--row-features", "-", "--out", tmp_path / "m", code=2).err


def test_files_of_labels_are_known_by_their_first_line(run, tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("4 3 2\n0 0:1\n1 1:1\n0 0:0.5 2:1\n1 1:0.5\n")
    run("fit", path, "--out", tmp_path / "m", "--set", "n_components=1", "--set", "k=1")
    assert unseen.load(tmp_path / "m").n_labels_ == 2
    assert "multilabel" in run("fit", path, "--method", "mf", "--out", tmp_path / "n", code=2).err
    assert "multilabel" in run("diagnose", path, code=2).err


HOSTILE = "ann\x1b[2J\x9b31m\u202e"


@pytest.fixture
def hostile(run, tmp_path):
    (tmp_path / "h.csv").write_text(
        f"user,film,stars\n{HOSTILE},A,5\n{HOSTILE},B,1\nbob,A,3\n", encoding="utf-8"
    )
    run("fit", tmp_path / "h.csv", "--method", "bias", "--out", tmp_path / "m")
    return tmp_path / "m"


def test_a_terminal_never_gets_control_characters(run, hostile, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for arguments in (
        ("recommend", hostile, "--all", "--with-seen"),
        ("info", hostile),
        ("info", hostile, "--json"),
    ):
        ended = run(*arguments)
        shown = (ended.out + ended.err).replace("\x1b[1m", "").replace("\x1b[0m", "")  # our own bold titles
        assert not {"\x1b", "\x9b", "\u202e"} & set(shown), arguments
    assert "\\x1b[2J" in run("recommend", hostile, "--all", "--with-seen").out
    ended = run("recommend", hostile, "--rows", "x\x1b[2J", code=1)
    assert "\x1b" not in ended.err


def test_pipes_and_files_get_ids_as_they_are(run, hostile):
    assert HOSTILE in run("recommend", hostile, "--all", "--with-seen").out
    lines = run("recommend", hostile, "--all", "--with-seen", "--json").document["recommendations"]
    assert lines[0]["user"] == HOSTILE


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_visible_text_is_printable_and_the_rest_stays(text):
    shown = visible(text, keep="")
    assert shown.isprintable()
    assert "".join(c for c in text if c.isprintable()) == text or len(shown) > len(text) - 1


def test_formulas_are_defused_only_when_asked(tmp_path):
    table = {"id": pa.array(["=1+1", "-ann", "bob", "@x"]), "score": np.array([-1.5, 2.0, 3.0, -4.0])}
    for defuse, expected in (
        (False, ["=1+1", "-ann", "bob", "@x"]),
        (True, ["'=1+1", "'-ann", "bob", "'@x"]),
    ):
        with TableWriter(tmp_path / "x.csv", defuse=defuse) as writer:
            writer.write(table)
        lines = (tmp_path / "x.csv").read_text().splitlines()[1:]
        assert [line.split(",")[0] for line in lines] == expected
        assert [float(line.split(",")[1]) for line in lines] == table["score"].tolist()


def test_what_stands_between_fields_is_asked_for(fitted, tmp_path):
    path = tmp_path / "ml.dat"
    path.write_text("1::10::5::978300760\n1::20::3::978302109\n2::10::4::978301968\n")
    _, said, _ = fitted(path, code=2)
    assert "--col is needed" in said
    assert "--sep says what stands between fields" in said
    _, said, _ = fitted(path, "--sep", "::", code=2)
    assert "one character is wanted" in said
    assert "sed 's/::/\\t/g'" in said


def test_infinite_values_and_wide_text_are_told_with_file_and_line(fitted, tmp_path):
    (tmp_path / "r.csv").write_text("user,film,stars\nann,x,3\nbob,x,inf\n")
    assert "r.csv, line 3: 'inf' is infinite" in fitted(tmp_path / "r.csv", code=1)[1]
    (tmp_path / "w.csv").write_text("user,film,stars\nann,x,3\nbob,x,4\n", encoding="utf-16")
    assert "first bytes say utf-16" in fitted(tmp_path / "w.csv", code=1)[1]
    assert fitted(tmp_path / "w.csv", "--encoding", "utf-16")[0].row_ids_.values.tolist() == ["ann", "bob"]
