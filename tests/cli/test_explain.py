"""Parts of predictions and interactions on the command line: the same numbers as through the library."""

from __future__ import annotations

import pytest
from cli_files import USERS

import unseen


@pytest.fixture
def mixed(run, files, tmp_path):
    path = tmp_path / "mixed"
    run("fit", files.ratings, "--method", "mixed-linear", "--row-features", files.row_features,
        "--col-features", files.col_features, "--set", "constraint=soft", "--max-iter", 10,
        "--set", "tol=1e-3", "--out", path)  # fmt: skip
    return path


def test_explain_adds_up_to_the_prediction(run, mixed):
    ended = run("explain", mixed, USERS[3], 10, "--json").document
    model = unseen.load(mixed)
    i, j = model.row_ids_.index_of([USERS[3]]), model.col_ids_.index_of([10])
    assert abs(ended["prediction"] - model.predict_entries(i, j, positions=True)[0]) < 1e-9
    parts = [ended[name] for name in ("constant", "row", "col", "bilinear", "low_rank")]
    assert abs(sum(parts) - ended["prediction"]) < 1e-9
    assert "features of the row" in run("explain", mixed, USERS[3], 10).out


def test_interactions_have_the_names_of_the_file(run, mixed):
    ended = run("interactions", mixed, "-k", 3, "--one-sided", "--json").document
    model = unseen.load(mixed)
    assert len(ended["interactions"]) == min(3, ended["n_nonzero"])
    names = {entry["row_feature"] for entry in ended["interactions"]}
    assert names <= set(model.source_["row_feature_names"]) | {"1"}
    assert run("interactions", mixed).code == 0


def test_what_cannot_be_explained_is_said(run, mixed, model):
    assert run("explain", mixed, "nobody", 10, code=1).err.startswith("error: 'nobody'")
    assert "mixed-linear" in run("explain", model, USERS[3], 10, code=2).err
