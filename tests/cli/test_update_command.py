"""``unseen update``: cells that arrive, cells that go, two who update at once."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from cli_files import N_COLS, USERS

import unseen


@pytest.fixture
def fitted(run, files, tmp_path):
    path = tmp_path / "model"
    run("fit", files.ratings, "-o", path, "--rank", 2, "--reg", 0.5, "--center", "biases")
    return path


def test_new_values_rows_and_columns(run, files, fitted, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("stars,item,user\n5,10,ü1\n1,999,ü1\n4,10,newcomer\n")
    before = unseen.load(fitted)
    told = run("update", fitted, new, "--json").document
    after = unseen.load(fitted)
    assert (told["n_new_rows"], told["n_new_cols"], told["n_new_cells"]) == (1, 1, 3)
    assert after.row_ids_.values.tolist() == [*before.row_ids_.values.tolist(), "newcomer"]
    assert after.col_ids_.values.tolist() == [*before.col_ids_.values.tolist(), 999]
    cells = after._training_data().cells
    i, j = after.row_ids_.index_of(["ü1"])[0], after.col_ids_.index_of([10])[0]
    assert cells.csr[i, j] == 5.0
    assert told["drift"] == after.drift_
    listed = run("recommend", fitted, "--rows", "newcomer", "-k", 2, "--json").out
    assert "newcomer" in listed
    assert len(after.baseline_.row_bias_) == len(USERS) + 1


def test_cells_are_forgotten_and_the_past_fades(run, files, fitted, tmp_path):
    seen = pd.read_csv(files.ratings)
    gone = tmp_path / "gone.csv"
    seen[["user", "item"]].iloc[:3].to_csv(gone, index=False)
    told = run("update", fitted, "--remove", gone, "--json").document
    assert told["n_removed"] == 3
    assert unseen.load(fitted)._training_data().cells.nnz == len(seen) - 3
    run("update", fitted, "--decay", 0.5)
    assert set(unseen.load(fitted)._training_data().cells.weights) == {0.5}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "NEWDATA or --remove"),
        (("--remove", "{gone}"), 1, "'nobody' is not known"),
        (("{none}",), 1, "none.csv"),
    ],
)
def test_what_cannot_be_done_leaves_the_model(run, fitted, tmp_path, arguments, code, said):
    (tmp_path / "gone.csv").write_text("user,item\nnobody,10\n")
    before = (fitted / "manifest.json").read_bytes()
    named = {"gone": tmp_path / "gone.csv", "none": tmp_path / "none.csv"}
    ended = run("update", fitted, *(text.format(**named) for text in arguments), code=code)
    assert said in ended.err
    assert (fitted / "manifest.json").read_bytes() == before


def test_a_model_without_its_cells_says_how_to_keep_them(run, files, tmp_path):
    path = tmp_path / "model"
    run("fit", files.ratings, "-o", path, "--rank", 2, "--no-cells")
    assert "cells" in run("update", path, files.ratings, code=2).err


def test_features_of_new_rows_are_found_by_id(run, files, tmp_path):
    path, new, people = (tmp_path / name for name in ("imc", "new.csv", "people.csv"))
    run(
        "fit", files.ratings, "--method", "imc", "--rank", 2, "--reg", 0.1, "-o", path,
        "--row-features", files.row_features,
    )  # fmt: skip
    new.write_text("user,item,stars\nzoe,10,4\nadam,20,3\n")
    known = files.row_features.read_text()
    people.write_text(known + "zoe,3.0,-1.0,warm\nadam,-2.0,0.5,cold\n")
    run("update", path, new, "--row-features", people)
    features = unseen.load(path)._training_data().row_features
    at = unseen.load(path).row_ids_.index_of(["zoe", "adam"])
    assert np.asarray(features[at])[:, 0].tolist() == [3.0, -2.0]
    people.write_text(known + "zoe,3.0,-1.0,warm\n")
    new.write_text("user,item,stars\neve,10,4\n")
    assert "'eve'" in run("update", path, new, "--row-features", people, code=1).err


@pytest.mark.slow
def test_updates_at_the_same_time_lose_nothing(files, fitted, tmp_path):
    """Six processes, each with a row of its own: all of them are there in the end."""
    started = []
    for number in range(6):
        new = tmp_path / f"new{number}.csv"
        new.write_text(f"user,item,stars\nguest{number},10,4\n")
        command = [sys.executable, "-m", "unseen.cli", "update", str(fitted), str(new), "--quiet"]
        started.append(subprocess.Popen(command))
    assert [process.wait(timeout=300) for process in started] == [0] * 6
    model = unseen.load(fitted)
    assert len(model.row_ids_) == len(USERS) + 6
    assert model.n_features_in_ == N_COLS


def test_models_without_factors_are_updated_too(run, tmp_path):
    """Lists by likeness of columns: new cells are taken in by a fit to all of them."""
    clicks = pd.DataFrame(
        {"user": [f"u{i % 12}" for i in range(60)], "page": [f"p{i % 7}" for i in range(60)]}
    )
    clicks.drop_duplicates().to_csv(tmp_path / "clicks.csv", index=False)
    model = tmp_path / "model"
    run("fit", tmp_path / "clicks.csv", "-o", model, "--method", "spectral-filter", "--rank", 3)
    (tmp_path / "later.csv").write_text("user,page\nnew,p1\nnew,p2\nu1,p99\n")
    told = run("update", model, tmp_path / "later.csv", "--json").document
    assert (told["n_new_rows"], told["n_new_cols"], told["drift"]) == (1, 1, 0.0)
    assert "new" in run("recommend", model, "--rows", "new", "-k", 2, "--json").out
