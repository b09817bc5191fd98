"""Parts of predictions and interactions on the command line: the same numbers as through the library."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cli_files import USERS

import unseen
from unseen import Observations


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
    told = run("explain", mixed, USERS[3], 10).out
    assert "this row, on average, and its features" in told
    assert "this column, on average, and its features" in told


def test_interactions_have_the_names_of_the_file(run, mixed):
    ended = run("interactions", mixed, "-k", 3, "--one-sided", "--json").document
    model = unseen.load(mixed)
    assert len(ended["interactions"]) == min(3, ended["n_nonzero"])
    names = {entry["row_feature"] for entry in ended["interactions"]}
    assert names <= set(model.source_["row_feature_names"]) | {"1"}
    assert run("interactions", mixed).code == 0


def test_what_cannot_be_explained_is_said(run, mixed, model):
    assert run("explain", mixed, "nobody", 10, code=1).err.startswith("error: 'nobody'")
    assert "mixed-linear" in run("interactions", model, code=2).err


def test_parts_are_sorted_and_add_up_for_every_model_of_values(run, files, model, mixed, tmp_path):
    run("fit", files.ratings, "--method", "bias", "--out", tmp_path / "bias")
    positive = pd.read_csv(files.ratings).assign(stars=lambda frame: frame["stars"].clip(lower=0))
    positive.to_csv(tmp_path / "positive.csv", index=False)
    run("fit", tmp_path / "positive.csv", "--method", "nmf", "--rank", 2, "--out", tmp_path / "nmf")
    positive[["user", "item"]].to_csv(tmp_path / "pairs.csv", index=False)
    run("fit", tmp_path / "positive.csv", "--method", "pmf", "--rank", 2, "--out", tmp_path / "pmf")
    run("fit", tmp_path / "pairs.csv", "--method", "bias-mc", "--rank", 2, "--out", tmp_path / "bias-mc")
    everything = ("bias", "nmf", "pmf", "bias-mc")
    for path in (model, mixed, *(tmp_path / name for name in everything)):
        document = run("explain", path, USERS[4], 10, "--json").document
        sizes = [abs(part["adds"]) for part in document["parts"] if part["part"] != "not told apart"]
        assert sizes == sorted(sizes, reverse=True)
        loaded = unseen.load(path)
        expected = loaded.predict_entries([USERS[4]], [10])[0]
        assert sum(part["adds"] for part in document["parts"]) == pytest.approx(expected, abs=1e-6)
        assert document["prediction"] == pytest.approx(expected, abs=1e-6)
        assert "not told apart" not in {part["part"] for part in document["parts"]}


def test_what_the_row_has_on_average_is_no_matter_of_features_that_are_not_there(run, files, tmp_path):
    run("fit", files.ratings, "--method", "maxide", "--row-features", files.row_features,
        "--out", tmp_path / "maxide")  # fmt: skip
    told = run("explain", tmp_path / "maxide", USERS[4], 10).out
    assert "this row, on average, and its features" in told
    assert "this column, on average " in told
    assert "features of the column" not in told


def test_positives_of_the_row_add_up_to_its_score(run, files, tmp_path):
    pd.read_csv(files.ratings)[["user", "item"]].to_csv(tmp_path / "pairs.csv", index=False)
    run("fit", tmp_path / "pairs.csv", "--method", "bias-mc", "--rank", 2, "--set", "tol=1e-12",
        "--max-iter", 500, "--out", tmp_path / "m")  # fmt: skip
    asked = ("explain", tmp_path / "m", USERS[4], 10, "--train", tmp_path / "pairs.csv", "--json")
    parts = {part["part"]: part["adds"] for part in run(*asked).document["parts"]}
    model = unseen.load(tmp_path / "m")
    cells = Observations.from_frame(pd.read_csv(tmp_path / "pairs.csv"), row="user", col="item")
    cols, adds = model.explain(cells, USERS[4], 10)
    assert parts == pytest.approx(dict(zip(map(str, cols), adds, strict=True)), abs=1e-5)
    assert sum(parts.values()) == pytest.approx(model.predict_entries([USERS[4]], [10])[0], abs=1e-6)


def test_levels_are_no_sum(run, files, tmp_path):
    rounded = pd.read_csv(files.ratings).assign(stars=lambda frame: frame["stars"].round())
    rounded.to_csv(tmp_path / "r.csv", index=False)
    run("fit", tmp_path / "r.csv", "--method", "mmmf", "--rank", 2, "--out", tmp_path / "m")
    assert "no sum of parts" in run("explain", tmp_path / "m", USERS[4], 10, code=1).err


def test_each_cell_of_the_row_adds_what_leaving_its_deviation_out_takes_away(run, files, model, tmp_path):
    (tmp_path / "names.csv").write_text("item,title\n10,Alien\n20,Brazil\n")
    asked = ("explain", model, USERS[4], 10, "--train", files.ratings)
    document = run(*asked, "--json").document
    expected = unseen.load(model).predict_entries([USERS[4]], [10])[0]
    assert document["prediction"] == pytest.approx(expected)
    table = pd.read_csv(files.ratings).query("user == @USERS[4]")
    named = [part["part"].split(":")[0] for part in document["parts"] if ":" in part["part"]]
    assert sorted(map(int, named)) == sorted(table["item"])
    # Oracle: the same prediction by hand, ridge regression of the row's deviations on the column factors.
    fitted = unseen.load(model)
    offsets, width = fitted.offsets_, fitted.widths_[0]
    places = fitted.col_ids_.index_of(table["item"].to_numpy())
    V = fitted.col_factors_[places, :width].astype(float)
    target = fitted.col_factors_[fitted.col_ids_.index_of([10])[0], :width].astype(float)
    deviation = table["stars"].to_numpy() - offsets.mean - offsets.col[places]
    n = len(table)
    bias = np.full((1, n), 1 / (n + offsets.reg_row))
    pull = target @ np.linalg.solve(V.T @ V + 0.5 * np.eye(width), V.T) @ (np.eye(n) - bias) + bias
    adds = dict(zip(map(str, table["item"]), (pull.ravel() * deviation), strict=True))
    for part in document["parts"]:
        if ":" in part["part"]:
            assert part["adds"] == pytest.approx(adds[part["part"].split(":")[0]], abs=1e-6)
    shown = run(*asked, "--col-names", tmp_path / "names.csv", "-k", 3).out
    assert "smaller parts" in shown
    assert "Alien" in shown


def test_a_part_for_each_cell_needs_a_linear_rule(run, files, tmp_path):
    positive = pd.read_csv(files.ratings).assign(stars=lambda frame: frame["stars"].clip(lower=0))
    positive.to_csv(tmp_path / "positive.csv", index=False)
    run("fit", tmp_path / "positive.csv", "--method", "nmf", "--rank", 2, "--out", tmp_path / "nmf")
    assert (
        "linear"
        in run("explain", tmp_path / "nmf", USERS[4], 10, "--train", tmp_path / "positive.csv", code=1).err
    )
