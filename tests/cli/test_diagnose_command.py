"""``unseen diagnose``: the same findings as through the library, on the screen, as JSON and as a page."""

from __future__ import annotations

import pytest

import unseen
from unseen.data import read_triples
from unseen.diagnostics import diagnose, identifiability

BLOCKS = "row,col,value\na,x,1\na,y,2\nb,x,3\nc,z,4\n"


@pytest.fixture
def blocks(tmp_path):
    path = tmp_path / "blocks.csv"
    path.write_text(BLOCKS)
    return path


def test_what_is_found_is_shown(run, blocks):
    out = run("diagnose", blocks, "--rank", 1).out
    assert "block 2" in out
    assert "fall into 2 blocks" in out
    assert "Cells of rows and columns" in out


def test_json_is_what_the_library_finds(run, blocks):
    document = run("diagnose", blocks, "--rank", 1, "--json").document
    cells = read_triples(blocks, row="row", col="col", value="value")
    expected = diagnose(cells, 1).to_dict()
    assert {key: document[key] for key in expected} == expected
    assert document["n_blocks"] == 2
    assert document["blocks"][1]["per_needed"] is None  # one cell alone


def test_positives_need_no_values(run, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("who,what\na,x\nb,x\nc,y\n")
    assert run("diagnose", path, "--json").document["all_values_equal"] is True


@pytest.mark.parametrize("figures", [True, False])
def test_a_page_is_written(run, blocks, tmp_path, figures):
    if figures:
        pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    ended = run("diagnose", blocks, "--out", page, *([] if figures else ["--no-figures"]))
    text = page.read_text(encoding="utf-8")
    assert f"Report: {page}" in ended.out
    assert ("<img" in text) is figures
    assert "fall into 2 blocks" in text
    assert text.count("<table") == 3


def test_wrong_use_is_one_line(run, blocks, tmp_path):
    assert "rank" in run("diagnose", blocks, "--rank", 0, code=2).err
    assert run("diagnose", tmp_path / "nothing.csv", code=1).err.startswith("error: ")
    (tmp_path / "empty.csv").write_text("row,col,value\n")
    assert run("diagnose", tmp_path / "empty.csv", code=1).err.startswith("error: ")


def test_predictions_come_with_their_spread(run, files, model):
    ended = run("predict", model, files.pairs, "--train", files.ratings, "--json").document
    loaded = unseen.load(model)
    cells = read_triples(files.ratings, row="user", col="item", value="stars")
    i = loaded.row_ids_.index_of([line["user"] for line in ended["predictions"]])
    j = loaded.col_ids_.index_of([line["item"] for line in ended["predictions"]])
    found = identifiability(loaded, i, j, cells, positions=True)
    assert [line["std"] for line in ended["predictions"]] == pytest.approx(found.std.tolist())
    assert [line["determined"] for line in ended["predictions"]] == found.determined.tolist()
    plain = run("predict", model, files.pairs, "--json").document["predictions"]
    assert "std" not in plain[0]
    assert plain[0]["prediction"] == ended["predictions"][0]["prediction"]
    header = run("predict", model, files.pairs, "--train", files.ratings).out.splitlines()[0]
    assert header == "user,item,prediction,std,determined"


def test_the_spread_needs_the_training_file(run, files, model, inductive, blocks):
    assert "does not know" in run("predict", model, files.pairs, "--train", blocks, "--row", 0, code=None).err
    assert "without features" in run("predict", inductive, files.pairs, "--train", files.ratings, code=2).err
