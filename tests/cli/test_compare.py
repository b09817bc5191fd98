"""``unseen compare``: table, words, page and JSON."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def dated(files):
    path = files.home / "dated.csv"
    frame = pd.read_csv(files.ratings)
    frame["when"] = np.random.default_rng(0).permutation(len(frame))
    frame.to_csv(path, index=False)
    return path


def test_the_table_and_the_page(run, files, tmp_path):
    ended = run(
        "compare", files.ratings, "--methods", "mf", "--repeats", 2, "--out", tmp_path / "page", "--n-jobs", 1
    )  # fmt: skip
    assert "Use " in ended.out
    page = (tmp_path / "page" / "compare.html").read_text(encoding="utf-8")
    assert page.count("<img") == 2
    assert "http://" not in page.replace("http://www.w3.org", "")
    stored = json.loads((tmp_path / "page" / "compare.json").read_text(encoding="utf-8"))
    assert {entry["method"] for entry in stored["entries"]} == {"mean", "bias", "mf"}
    assert " ".join(ended.out.split()).count(stored["recommendation"]) == 1


def test_json_names_what_was_left_out(run, files):
    document = run(
        "compare", files.ratings, "--methods", "imc", "--repeats", 1, "--json", "--n-jobs", 1
    ).document
    assert "features" in document["left_out"]["imc"]
    assert document["entries"][0]["scores"]["rmse"][0] > 0


def test_features_and_cold_rows(run, files):
    document = run(
        "compare", files.ratings, "--methods", "imc", "--repeats", 2, "--split", "rows", "--json",
        "--row-features", files.row_features, "--col-features", files.col_features, "--n-jobs", 1,
    ).document  # fmt: skip
    means = {entry["method"]: np.mean(entry["scores"]["rmse"]) for entry in document["entries"]}
    assert means["imc"] < means["bias"]


def test_time(run, dated):
    document = run(
        "compare", dated, "--split", "time", "--time", "when", "--repeats", 2, "--methods", "bias", "--json"
    ).document
    assert document["split"] == "time"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--methods", "nope"), "nope"),
        (("--split", "time"), "--time"),
        (("--time", "stars"), "--time"),
        (("--repeats", 0), "repeats"),
    ],
)
def test_wrong_usage(run, files, arguments, words):
    assert words in run("compare", files.ratings, *arguments, code=2).err


def test_out_is_a_file(run, files, tmp_path):
    (tmp_path / "taken").write_text("")
    assert "--out" in run("compare", files.ratings, "--out", tmp_path / "taken", code=2).err
