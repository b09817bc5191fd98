"""Fitting from files and predicting pairs: the same numbers as through the library."""

from __future__ import annotations

import csv
import gzip
import io
import warnings

import numpy as np
import pandas as pd
import pytest
from cli_files import ITEMS, USERS

import unseen
from unseen.data import align, read_triples
from unseen.exceptions import ConvergenceWarning


def expected_pairs(path):
    model = unseen.load(path)
    rows = model.row_ids_.index_of([USERS[4], USERS[3], USERS[4]])
    cols = model.col_ids_.index_of([10, 0, 10])
    return model.predict_entries(rows, cols, positions=True)


def test_fit_is_what_the_library_does(run, files, model, tmp_path):
    cells = read_triples(files.ratings, row="user", col="item", value="stars")
    direct = unseen.MatrixFactorization(2, reg=0.5, center="biases", random_state=0).fit(cells)
    assert np.array_equal(unseen.load(model).row_factors_, direct.row_factors_)
    run("fit", files.ratings, "--out", tmp_path / "m", "--rank", 2, "--reg", 0.7, "--center", "biases")
    assert not np.array_equal(unseen.load(tmp_path / "m").row_factors_, direct.row_factors_)


def test_set_reaches_every_parameter(run, files, tmp_path):
    ended = run(
        "fit", files.ratings, "--out", tmp_path / "m", "--set", "rank=3", "--set", "solver=ccd",
        "--set", "validation_fraction=0.2", "--set", "tol=1e-3", "--json",
    )  # fmt: skip
    params = ended.document["params"]
    assert (params["rank"], params["solver"], params["validation_fraction"]) == (3, "ccd", 0.2)
    assert unseen.load(tmp_path / "m").get_params()["tol"] == 1e-3


def test_lists_are_values_of_settings_too(run, files, tmp_path):
    run("fit", files.ratings, "--method", "bias", "--set", "reg=[1, 2]", "--out", tmp_path / "m")
    assert unseen.load(tmp_path / "m").reg == [1, 2]


def test_every_method_of_the_table_fits(run, files, tmp_path):
    from unseen.cli.methods import METHODS

    liked = tmp_path / "liked.csv"
    pd.read_csv(files.ratings).query("stars > 3")[["user", "item"]].to_csv(liked, index=False)
    whole = pd.read_csv(files.ratings)  # some methods take levels or nothing below zero
    whole.assign(stars=whole.stars.round().clip(1, 5)).to_csv(tmp_path / "whole.csv", index=False)
    inputs = {
        "explicit": [tmp_path / "whole.csv"],
        "positive": [liked, "--set", "rho=0.3", "--set", "rank=3", "--max-iter", 3],
        "links": [liked],
    }
    features = ["--row-features", files.row_features, "--col-features", files.col_features]
    for name, method in METHODS.items():
        if method.task in ("multilabel", "clustering"):
            continue  # other files; see test_labels_command.py and test_clusters_command.py
        given = [*inputs[method.task], *(features if "imc" in name else [])]
        if name == "spectral-filter":  # nothing is iterated, and there is no share of hidden positives
            given = [liked, "--set", "rank=3"]
        elif name == "item-neighbors":
            given = [liked, "--set", "n_neighbors=3"]
        ended = run("fit", *given, "--method", name, "--out", tmp_path / name, "--json", "--n-jobs", 1)
        assert ended.document["estimator"] == method.estimator
        assert (
            run("recommend", tmp_path / name, "--rows", USERS[0], "-k", 2, "--json").document[
                "n_recommendations"
            ]
            == 2
        )
        assert run("info", tmp_path / name, "--json").document["value_column"] == (
            "stars" if method.task == "explicit" else None
        )


def test_weights_of_penalties_may_be_relative(run, files, tmp_path):
    liked = tmp_path / "liked.csv"
    pd.read_csv(files.ratings).query("stars > 3")[["user", "item"]].to_csv(liked, index=False)
    options = ["fit", liked, "--method", "shift-mc", "--set", "rho=0.3", "--rank", 3, "--out", tmp_path / "m"]
    assert run(*options, "--reg", "0.2max", "--json").document["params"]["reg"] == "0.2max"
    assert run(*options, "--reg", "0.2", "--json").document["params"]["reg"] == 0.2
    assert "reg" in run("fit", files.ratings, "--out", tmp_path / "n", "--reg", "much", code=2).err


def test_predictions_keep_order_and_repetitions(run, files, model):
    lines = list(csv.reader(io.StringIO(run("predict", model, files.pairs).out)))
    assert lines[0] == ["user", "item", "prediction"]
    assert [line[:2] for line in lines[1:]] == [[USERS[4], "10"], [USERS[3], "0"], [USERS[4], "10"]]
    assert np.array_equal([float(line[2]) for line in lines[1:]], expected_pairs(model))


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "x.parquet"])
def test_all_kinds_of_files_hold_the_same(run, files, model, tmp_path, name):
    target = tmp_path / name
    said = run("predict", model, files.pairs, "--out", target)
    assert str(target) in said.out
    if name.endswith("parquet"):
        found = pd.read_parquet(target)
    else:
        found = pd.read_csv(target, sep="\t" if "tsv" in name else ",")
    assert found["user"].tolist() == [USERS[4], USERS[3], USERS[4]]
    assert found["item"].tolist() == [10, 0, 10]
    assert np.array_equal(found["prediction"], expected_pairs(model))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_json_holds_the_predictions_when_there_is_no_file(run, files, model):
    document = run("predict", model, files.pairs, "--json").document
    assert [line["item"] for line in document["predictions"]] == [10, 0, 10]
    assert np.array_equal([line["prediction"] for line in document["predictions"]], expected_pairs(model))


def test_input_may_be_compressed_or_parquet_or_without_header(run, files, model, tmp_path):
    frame = pd.read_csv(files.ratings)
    frame.to_parquet(tmp_path / "r.parquet")
    frame.to_csv(tmp_path / "bare.tsv.gz", index=False, header=False, sep="\t")
    frame[["stars", "item", "user"]].to_csv(tmp_path / "turned.csv", index=False, sep=";")
    options = ["--rank", 2, "--reg", 0.5, "--center", "biases", "--quiet", "--out"]
    run("fit", tmp_path / "r.parquet", *options, tmp_path / "m1")
    run("fit", tmp_path / "bare.tsv.gz", "--no-header", *options, tmp_path / "m2")
    run(
        "fit",
        tmp_path / "turned.csv",
        "--row",
        "user",
        "--col",
        1,
        "--value",
        "stars",
        *options,
        tmp_path / "m3",
    )
    (tmp_path / "p.txt").write_text("0,ü1\n10,ü2\n", encoding="utf-8")
    said = run("predict", tmp_path / "m2", tmp_path / "p.txt", "--no-header", "--row", 1, "--col", 0).out
    assert said.splitlines()[0] == "row,col,prediction"
    assert run("predict", model, tmp_path / "p.txt", "--no-header", "--row", 1, "--col", 0).out == said
    wanted = unseen.load(model).row_factors_
    for name in ("m1", "m2", "m3"):
        assert np.array_equal(unseen.load(tmp_path / name).row_factors_, wanted)


def test_ids_that_look_like_numbers(run, tmp_path):
    (tmp_path / "r.csv").write_text("u,i,v\n007,1,1\n7,2,2\n007,2,3\nx,1,2\n")
    run("fit", tmp_path / "r.csv", "--out", tmp_path / "m", "--rank", 1)
    model = unseen.load(tmp_path / "m")
    assert model.row_ids_.values.tolist() == ["007", "7", "x"]
    assert model.col_ids_.values.tolist() == [1, 2]
    # Pairs that hold only numbers still find ids that are text, and the other way round.
    pd.DataFrame({"u": [7], "i": ["2"]}).to_parquet(tmp_path / "p.parquet")
    found = run("predict", tmp_path / "m", tmp_path / "p.parquet", "--json").document["predictions"]
    assert found[0]["prediction"] == model.predict_entries([1], [1], positions=True)[0]
    (tmp_path / "p.csv").write_text("u,i\n7,02\n")
    assert "'02'" in run("predict", tmp_path / "m", tmp_path / "p.csv", code=1).err


def test_without_values_each_pair_counts_one(run, tmp_path):
    (tmp_path / "p.csv").write_text("u,i\na,x\nb,y\na,x\n")
    ended = run("fit", tmp_path / "p.csv", "--no-value", "--out", tmp_path / "m", "--rank", 1)
    assert "warning:" in ended.err
    assert "uplicate" in ended.err
    assert "--no-value" in run("fit", tmp_path / "p.csv", "--out", tmp_path / "n", code=2).err


def test_edges_make_a_square_matrix(run, tmp_path):
    (tmp_path / "graph.txt").write_text("# friends\n1 2\n2 3\n")
    document = run(
        "fit", tmp_path / "graph.txt", "--edges", "undirected", "--out", tmp_path / "m", "--json"
    ).document
    assert (document["n_rows"], document["n_cols"], document["n_cells"]) == (3, 3, 4)


class TestUnknownIds:
    @pytest.fixture
    def pairs(self, tmp_path):
        path = tmp_path / "pairs.csv"
        pd.DataFrame({"user": ["nobody", USERS[1], "nobody"], "item": [20, 999, 999]}).to_csv(
            path, index=False
        )
        return path

    def test_are_named(self, run, model, pairs, tmp_path):
        ended = run("predict", model, pairs, "--out", tmp_path / "x.csv", code=1)
        assert "'nobody'" in ended.err
        assert "'999'" in ended.err
        assert "pairs.csv" in ended.err
        assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]

    def test_can_have_no_prediction(self, run, model, pairs):
        document = run("predict", model, pairs, "--unknown", "nan", "--json").document
        assert [line["prediction"] for line in document["predictions"]] == [None] * 3
        assert document["n_unknown"] == 3

    def test_can_have_the_baseline(self, run, files, model, pairs):
        cells = read_triples(files.ratings, row="user", col="item", value="stars")
        bias = unseen.BiasModel().fit(cells)
        wanted = [
            bias.mean_ + bias.col_bias_[bias.col_ids_.index_of([20])[0]],
            bias.mean_ + bias.row_bias_[bias.row_ids_.index_of([USERS[1]])[0]],
            bias.mean_,
        ]
        document = run("predict", model, pairs, "--unknown", "baseline", "--json").document
        assert np.allclose([line["prediction"] for line in document["predictions"]], wanted)

    def test_baseline_of_a_model_saved_without_one(self, run, files, pairs, tmp_path):
        cells = read_triples(files.ratings, row="user", col="item", value="stars")
        unseen.MatrixFactorization(2, random_state=0, reg=1.0, center="none").fit(cells).save(
            tmp_path / "plain"
        )
        assert "unseen fit" in run("predict", tmp_path / "plain", pairs, "--unknown", "baseline", code=1).err


class TestNewRowsAndColumns:
    @pytest.fixture
    def new(self, tmp_path):
        people = pd.DataFrame(
            {"b": [0.5, -1.0], "user": ["new1", "new2"], "kind": ["warm", "warm"], "a": [1.0, 2.0]}
        )
        people.to_csv(tmp_path / "new.csv", index=False)
        pd.DataFrame({"item": [777], "c": [1.0], "d": [-1.0]}).to_parquet(tmp_path / "things.parquet")
        pairs = {"user": ["new2", USERS[0], "new1", USERS[5], "new2"], "item": [30, 30, 777, 777, 0]}
        pd.DataFrame(pairs).to_csv(tmp_path / "pairs.csv", index=False)
        return tmp_path

    def test_are_predicted_by_their_features(self, run, inductive, new):
        ended = run(
            "predict", inductive, new / "pairs.csv", "--row-features", new / "new.csv",
            "--col-features", new / "things.parquet", "--json",
        )  # fmt: skip
        model = unseen.load(inductive)
        # Columns in the order of training (a, b, kind=cold, kind=warm); nobody new is cold.
        rows = np.array([[1.0, 0.5, 0.0, 1.0], [2.0, -1.0, 0.0, 1.0]])
        known, column = model.row_ids_.index_of([USERS[0], USERS[5]]), np.array([[1.0, -1.0]])
        items = model.col_ids_.index_of([30, 0])
        block = model.predict_new(row_features=rows)
        wanted = [
            block[1, items[0]],
            model.predict_entries([known[0]], [items[0]], positions=True)[0],
            model.predict_new(rows, column)[0, 0],
            model.predict_new(col_features=column)[known[1], 0],
            block[1, items[1]],
        ]
        assert np.allclose([line["prediction"] for line in ended.document["predictions"]], wanted)
        assert ended.document["n_unknown"] == 0

    def test_a_feature_of_training_must_be_there(self, run, inductive, new):
        pd.read_csv(new / "new.csv").drop(columns="a").to_csv(new / "short.csv", index=False)
        ended = run("predict", inductive, new / "pairs.csv", "--row-features", new / "short.csv", code=1)
        assert "short.csv" in ended.err
        assert "'a'" in ended.err

    def test_a_model_without_features_says_so(self, run, model, new):
        ended = run(
            "predict", model, new / "pairs.csv", "--row-features", new / "new.csv", "--unknown", "nan", code=1
        )
        assert "row_features" in ended.err

    def test_blocks_do_not_change_the_result(self, run, inductive, new, monkeypatch):
        options = (
            "predict",
            inductive,
            new / "pairs.csv",
            "--row-features",
            new / "new.csv",
            "--unknown",
            "nan",
        )
        whole = run(*options).out
        monkeypatch.setattr("unseen.cli.pairs.MAX_BLOCK", 1)
        assert run(*options).out == whole


class TestFeatureFiles:
    def test_are_aligned_by_id(self, files, inductive):
        cells = read_triples(files.ratings, row="user", col="item", value="stars")
        people, names = align(pd.read_csv(files.row_features), cells.row_ids, "user")
        things, _ = align(pd.read_csv(files.col_features, sep="\t"), cells.col_ids, "item")
        direct = unseen.IMC(3, reg=0.1, random_state=0, max_iter=200, center="none")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            direct.fit(cells, row_features=people, col_features=things)
        assert np.allclose(unseen.load(inductive).row_factors_, direct.row_factors_)
        assert unseen.load(inductive).source_["row_feature_names"] == names

    def test_an_id_without_features(self, run, files, tmp_path):
        pd.read_csv(files.row_features).iloc[:-2].to_csv(tmp_path / "few.csv", index=False)
        options = ["fit", files.ratings, "--method", "imc", "--row-features", tmp_path / "few.csv"]
        ended = run(*options, "--out", tmp_path / "m", code=1)
        assert "few.csv" in ended.err
        assert f"'{USERS[-1]}'" in ended.err
        assert "--missing" in ended.err
        assert not (tmp_path / "m").exists()
        run(*options, "--missing", "mean", "--out", tmp_path / "m", "--max-iter", 3)

    def test_id_column(self, run, files, tmp_path):
        frame = pd.read_csv(files.col_features, sep="\t")
        frame.rename(columns={"item": "code"})[["c", "code", "d"]].to_csv(tmp_path / "f.csv", index=False)
        options = [
            "fit",
            files.ratings,
            "--method",
            "imc",
            "--col-features",
            tmp_path / "f.csv",
            "--max-iter",
            3,
        ]
        run(*options, "--id-column", "code", "--out", tmp_path / "m")
        assert "'code'" in run(*options, "--id-column", "nope", "--out", tmp_path / "n", code=2).err


def test_info_tells_what_a_model_is(run, inductive):
    document = run("info", inductive, "--json").document
    assert document["estimator"] == "IMC"
    assert document["row_features"] == ["a", "b", "kind=cold", "kind=warm"]
    assert (document["n_rows"], document["n_cols"]) == (len(USERS), len(ITEMS))
    told = run("info", inductive).out
    assert "kind=warm" in told
    assert "stars" in told


def test_gzip_output_is_gzip(run, files, model, tmp_path):
    run("predict", model, files.pairs, "--out", tmp_path / "x.csv.gz")
    with gzip.open(tmp_path / "x.csv.gz", "rt", encoding="utf-8") as handle:
        assert handle.readline() == "user,item,prediction\n"
