"""Exit codes, error lines, JSON, interruption: what scripts rely on."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unseen.cli.sinks import TableWriter, replacing
from unseen.cli.sources import find
from unseen.data import Vocabulary


def test_version_and_help(run):
    assert run("--version").out.startswith("unseen ")
    assert "fit" in run("--help").out
    for name in ("demo", "fit", "predict", "recommend", "evaluate", "info"):
        assert "--json" in run(name, "--help").out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "command is needed"),
        (("nonsense",), 2, "nonsense"),
        (("fit",), 2, "DATA"),
        (("fit", "{r}"), 2, "--out"),
        (("fit", "{r}", "--out", "{new}", "--bogus"), 2, "--bogus"),
        (("fit", "{r}", "--out", "{new}", "--method", "magic"), 2, "soft-impute"),
        (("fit", "{r}", "--out", "{new}", "--task", "ranking"), 2, "explicit"),
        (("fit", "{r}", "--out", "{new}", "--method", "bias", "--rank", "3"), 2, "--rank"),
        (("fit", "{r}", "--out", "{new}", "--set", "rank"), 2, "name=value"),
        (("fit", "{r}", "--out", "{new}", "--set", "ranks=3"), 2, "'ranks'"),
        (("fit", "{r}", "--out", "{new}", "--rank", "0"), 2, "rank"),
        (("fit", "{r}", "--out", "{new}", "--rank", "many"), 2, "--rank"),
        (("fit", "{r}", "--out", "{new}", "--center", "left"), 2, "center"),
        (("fit", "{r}", "--out", "{new}", "--row", "who"), 2, "'user'"),
        (("fit", "{r}", "--out", "{new}", "--row", "7"), 2, "--row 7"),
        (("fit", "{r}", "--out", "{new}", "--row", "item"), 2, "both"),
        (("fit", "{r}", "--out", "{new}", "--value", "stars", "--no-value"), 2, "--no-value"),
        (("fit", "{r}", "--out", "{r}"), 1, "it is a file"),
        (("fit", "{r}", "--out", "{home}"), 1, "other files"),
        (("fit", "{home}/none.csv", "--out", "{new}"), 1, "none.csv"),
        (("fit", "{r}", "--out", "{new}", "--row-features", "{home}/none.csv"), 1, "none.csv"),
        (("fit", "{r}", "--out", "{new}", "--row-features", "{people}"), 2, "row_features"),
        (("predict", "{home}/none", "{r}"), 1, "manifest.json"),
        (("predict", "{m}", "{home}/none.csv"), 1, "none.csv"),
        (("predict", "{m}", "{r}", "--out", "{new}.xlsx"), 2, ".parquet"),
        (("predict", "{m}", "{r}", "--out", "{home}/none/x.csv"), 1, "no directory"),
        (("predict", "{m}", "{r}", "--unknown", "maybe"), 2, "baseline"),
        (("recommend", "{m}", "--all", "-k", "0"), 2, "-k"),
        (("info", "{r}"), 1, "not a saved model"),
        (("demo", "--out", "{r}"), 2, "file of that name"),
    ],
)
def test_errors_are_one_line_and_a_code(run, files, model, tmp_path, arguments, code, said):
    places = {
        "r": files.ratings,
        "m": model,
        "home": files.home,
        "people": files.row_features,
        "new": tmp_path / "new",
    }
    ended = run(*(argument.format(**places) for argument in arguments), "--quiet", code=code)
    lines = ended.err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert said in lines[0]
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("u,i,v\n", "no cells"),
        ("u,i,v\na,x,1\nb,y,much\n", "line 3"),
        ("u,i,v\na,x,1\nb,y\n", "line 3"),
        ("u,i,v\na,x,1\n,y,2\n", "line 3"),
        ("u,i,v\na,x,inf\n", "inf"),
    ],
)
def test_bad_files_are_named_with_the_line(run, tmp_path, content, said):
    (tmp_path / "bad.csv").write_text(content)
    ended = run("fit", tmp_path / "bad.csv", "--out", tmp_path / "m", code=1)
    assert said in ended.err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("user,item\n", "no pairs"),
        ("user,item\na\n", "columns"),
        ("user,item\n,10\n", "line 0"),
    ],
)
def test_bad_pairs(run, model, tmp_path, content, said):
    (tmp_path / "bad.csv").write_text(content)
    ended = run("predict", model, tmp_path / "bad.csv", "--out", tmp_path / "x.csv", code=1)
    assert said in ended.err
    assert "bad.csv" in ended.err
    assert not (tmp_path / "x.csv").exists()


def test_damaged_model(run, files, tmp_path):
    run("fit", files.ratings, "--out", tmp_path / "m", "--method", "bias")
    arrays = next((tmp_path / "m").glob("*.safetensors"))
    arrays.write_bytes(arrays.read_bytes()[:-1] + b"?")
    assert "altered" in run("info", tmp_path / "m", code=1).err


def test_json_is_one_document_whatever_is_warned(run, files, tmp_path):
    ended = run("fit", files.ratings, "--out", tmp_path / "m", "--max-iter", 1, "--json")
    assert "max_iter=1" in ended.document["warnings"][0]
    assert "warning: " in ended.err
    before = run("--json", "--quiet", "info", tmp_path / "m")
    assert before.err == ""
    assert before.document["n_iter"] == 1


def test_debug_shows_the_traceback(run, tmp_path):
    assert "Traceback" in run("info", tmp_path, "--debug", code=1).err
    assert "Traceback" in run("--debug", "info", tmp_path, code=1).err
    assert "Traceback" not in run("info", tmp_path, code=1).err


def test_a_fault_of_ours_is_still_one_line(run, model, monkeypatch):
    def broken(path):
        raise RuntimeError("oh\nno")

    monkeypatch.setattr("unseen.io.load", broken)
    monkeypatch.setattr("unseen.load", broken, raising=False)
    assert run("info", model, code=1).err == "error: RuntimeError: oh no (--debug shows where)\n"


def test_interruption_leaves_no_output(run, files, model, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unseen.cli.pairs.predict_batch", interrupted)
    for name in ("x.csv", "x.parquet"):
        ended = run("predict", model, files.pairs, "--out", tmp_path / name, code=130)
        assert "interrupted" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_a_fit(files, tmp_path):
    code = (
        "import sys, time, unseen; from unseen.cli.main import main\n"
        "unseen.MatrixFactorization.fit = lambda *_, **__: time.sleep(600)\n"
        f"sys.exit(main(['fit', {str(files.ratings)!r}, '--out', {str(tmp_path / 'm')!r}]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "cells" in process.stderr.readline()  # said just before the fit begins
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err.strip()) == ("", "error: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away(model):
    script = f"{sys.executable} -m unseen.cli recommend '{model}' --all | head -n 1"
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert ended.stdout == "user,rank,item,score\n"
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("typer", ["--version"], "unseen[cli]"),
        ("matplotlib", ["demo", "--quick", "--out", "{new}"], "unseen[plot]"),
        ("pyarrow", ["predict", "{m}", "{p}", "--out", "{new}.csv"], "unseen[cli]"),
    ],
)
def test_missing_extras_are_named(run, files, model, tmp_path, monkeypatch, module, arguments, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "unseen.cli.app", raising=False)
    places = {"m": model, "p": files.pairs, "new": tmp_path / "new"}
    for name in [name for name in sys.modules if name.startswith("unseen.cli.") and module == "typer"]:
        monkeypatch.delitem(sys.modules, name)
    ended = run(*(argument.format(**places) for argument in arguments), code=1)
    assert ended.err.startswith(f"error: this needs {module}")
    assert extra in ended.err
    assert list(tmp_path.iterdir()) == []


def test_help_does_not_load_the_numerics():
    code = (
        "import sys; from unseen.cli.main import main; main(['fit', '--help']); "
        "print([name for name in ('sklearn', 'scipy', 'pyarrow', 'pandas') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


# Text as spreadsheets hold it: anything but what CSV cannot carry (NUL, lone surrogates).
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)


@given(
    st.lists(st.tuples(texts, st.floats(allow_nan=False)), min_size=1, max_size=6),
    st.sampled_from([",", "\t"]),
)
def test_written_text_is_read_back(tmp_path_factory, lines, sep):
    path = tmp_path_factory.mktemp("w") / ("x.csv" if sep == "," else "x.tsv")
    ids, numbers = zip(*lines, strict=True)
    with TableWriter(path) as writer:
        writer.write({"id": pa.array(ids), "value": list(numbers)})
    with path.open(encoding="utf-8", newline="") as handle:
        found = list(csv.reader(handle, delimiter=sep))
    assert found[0] == ["id", "value"]
    assert [line[0] for line in found[1:]] == list(ids)
    assert [float(line[1]) for line in found[1:]] == list(numbers)


@given(st.lists(st.integers(-(10**17), 10**17), min_size=1, max_size=8, unique=True))
def test_numbers_are_found_as_text_and_text_as_numbers(ids):
    places = list(range(len(ids)))
    texts = [str(number) for number in ids]
    for vocabulary in (Vocabulary(ids), Vocabulary(texts)):
        for column in (pa.array(ids, pa.int64()), pa.array(texts), pa.chunked_array([pa.array(texts)])):
            assert find(vocabulary, column).tolist() == places
    assert find(Vocabulary(ids), pa.array(["", "x", f"0{ids[0]}", f"{ids[0]}.0"])).tolist() == [-1] * 4


def test_replacing_keeps_the_old_file_when_something_fails(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")

    def write(text: str, *, fail: bool) -> None:
        with replacing(path) as temporary:
            Path(temporary).write_text(text)
            if fail:
                raise ValueError

    with pytest.raises(ValueError):
        write("half", fail=True)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
    write("new", fail=False)
    assert path.read_text() == "new"


def test_errors_are_json_where_json_is_asked_for(run, files, tmp_path):
    for arguments, code, kind, said in (
        (("info", tmp_path / "none", "--json"), 1, "ModelFileError", "manifest.json"),
        (("--json", "fit", files.ratings, "--out", tmp_path / "m", "--rank", 0), 2, "ParameterError", "rank"),
        (("fit", "--json"), 2, "UsageError", "DATA"),
    ):
        ended = run(*arguments, code=code)
        error = ended.document["error"]
        assert (error["type"], error["exit_code"]) == (kind, code)
        assert said in error["message"]
        assert ended.err.endswith(f"error: {error['message']}\n")
    assert run("info", tmp_path / "none", code=1).out == ""


@pytest.mark.parametrize("given", [("--rank", "many"), ("--rank=many",)])
def test_a_value_that_cannot_be_is_said(run, files, tmp_path, given):
    ended = run("fit", files.ratings, "--out", tmp_path / "m", *given, code=2)
    assert "--rank" in ended.err
    assert "'many'" in ended.err
    assert ended.err.count("many") == 1


def test_info_without_a_model_says_what_computes(run):
    facts = run("info", "--json").document
    assert facts["provider"] in ("native", "reference")
    assert facts["default_device"] == "cpu"
    assert (facts["cuda"] is None) == ("no_cuda" in facts)
    assert facts["provider"] in run("info").out
