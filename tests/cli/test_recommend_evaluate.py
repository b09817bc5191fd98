"""Lists and scores: the same as through the library, in the user's own ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cli_files import ITEMS, USERS

import unseen
from unseen.data import Observations, read_triples
from unseen.metrics import ndcg_at_k, rmse
from unseen.model_selection import ForwardTime, KFoldEntries, cross_validate


@pytest.fixture(scope="module")
def cells(files):
    return read_triples(files.ratings, row="user", col="item", value="stars")


class TestRecommend:
    def test_lists_are_those_of_the_library(self, run, files, model, cells):
        loaded = unseen.load(model)
        asked = loaded.row_ids_.index_of([USERS[7], USERS[2]])
        ids, scores = loaded.recommend(asked, k=4, exclude=cells, positions=True)
        document = run(
            "recommend",
            model,
            "--rows",
            f"{USERS[7]},{USERS[2]}",
            "-k",
            4,
            "--exclude",
            files.ratings,
            "--json",
        ).document
        lines = document["recommendations"]
        assert [line["user"] for line in lines] == [USERS[7]] * 4 + [USERS[2]] * 4
        assert [line["rank"] for line in lines] == [1, 2, 3, 4] * 2
        assert [line["item"] for line in lines] == loaded.col_ids_[ids.ravel()].tolist()
        assert np.array_equal([line["score"] for line in lines], scores.ravel())

    def test_excluded_cells_never_come_up(self, run, files, model, tmp_path):
        run("recommend", model, "--all", "-k", 50, "--exclude", files.ratings, "--out", tmp_path / "x.csv")
        found = pd.read_csv(tmp_path / "x.csv")
        known = pd.read_csv(files.ratings)
        both = found.merge(known, on=["user", "item"])
        assert len(both) == 0
        assert len(found) + len(known) == len(USERS) * len(ITEMS)
        run("recommend", model, "--all", "-k", 50, "--with-seen", "--out", tmp_path / "y.csv")
        assert len(pd.read_csv(tmp_path / "y.csv")) == len(USERS) * len(ITEMS)

    def test_candidates_and_rows_from_files(self, run, model, tmp_path):
        (tmp_path / "rows.txt").write_text(f"{USERS[3]}\n\n{USERS[1]}\n", encoding="utf-8")
        pd.DataFrame({"item": [50, 20]}).to_parquet(tmp_path / "allowed.parquet")
        out = tmp_path / "x.parquet"
        run(
            "recommend", model, "--rows-file", tmp_path / "rows.txt", "--out", out, "--with-seen",
            "--candidates", tmp_path / "allowed.parquet",
        )  # fmt: skip
        found = pd.read_parquet(out)
        assert found["user"].tolist() == [USERS[3]] * 2 + [USERS[1]] * 2
        assert set(found["item"]) == {20, 50}

    def test_pieces_do_not_change_the_result(self, run, model, monkeypatch):
        whole = run("recommend", model, "--all", "-k", 3).out
        monkeypatch.setattr("unseen.cli.recommend.ROWS_AT_A_TIME", 7)
        assert run("recommend", model, "--all", "-k", 3).out == whole

    def test_unknown_ids_are_named(self, run, model, tmp_path):
        assert "'nobody'" in run("recommend", model, "--rows", f"{USERS[0]},nobody", code=1).err
        (tmp_path / "c.txt").write_text("20\n12345\n")
        ended = run("recommend", model, "--all", "--candidates", tmp_path / "c.txt", code=1)
        assert "'12345'" in ended.err
        assert "c.txt" in ended.err

    @pytest.mark.parametrize("options", [(), ("--all", "--rows", "a")])
    def test_rows_are_said_once(self, run, model, options):
        assert "--rows" in run("recommend", model, *options, code=2).err


class TestEvaluate:
    def test_scores_are_those_of_the_library(self, run, files, model, cells):
        loaded = unseen.load(model)
        document = run("evaluate", model, files.ratings, "--metrics", "rmse,ndcg@3", "--json").document
        assert document["scores"]["rmse"] == rmse(
            cells, loaded.predict_entries(cells.rows, cells.indices, positions=True)
        )
        ids, _ = loaded.recommend(np.arange(len(USERS)), k=3, exclude=None, positions=True)
        assert document["scores"]["ndcg@3"] == pytest.approx(ndcg_at_k(cells.csr, ids, 3))
        assert document["n_skipped"] == 0

    def test_known_cells_can_be_left_out_of_lists(self, run, files, model, tmp_path):
        frame = pd.read_csv(files.ratings)
        frame.iloc[::2].to_csv(tmp_path / "known.csv", index=False)
        frame.iloc[1::2].to_csv(tmp_path / "test.csv", index=False)
        options = ("evaluate", model, tmp_path / "test.csv", "--metrics", "recall@5", "--json")
        frame.iloc[:1].to_csv(tmp_path / "one.csv", index=False)
        plain = run(*options).document["scores"]["recall@5"]  # leaves out what the model holds
        without = run(*options, "--exclude", tmp_path / "known.csv").document["scores"]["recall@5"]
        with_known = run(*options, "--exclude", tmp_path / "one.csv").document["scores"]["recall@5"]
        assert plain == without > with_known

    def test_unknown_ids(self, run, files, model, tmp_path):
        frame = pd.read_csv(files.ratings).head(5)
        frame.loc[2, "user"] = "nobody"
        frame.to_csv(tmp_path / "t.csv", index=False)
        ended = run("evaluate", model, tmp_path / "t.csv", code=1)
        assert "'nobody'" in ended.err
        assert "1 of 5" in ended.err
        document = run("evaluate", model, tmp_path / "t.csv", "--unknown", "skip", "--json").document
        assert (document["n_cells"], document["n_skipped"]) == (4, 1)

    def test_cross_validation_is_that_of_the_library(self, run, files, cells):
        document = run(
            "evaluate",
            files.ratings,
            "--method",
            "mf",
            "--rank",
            2,
            "--reg",
            1,
            "--center",
            "none",
            "--folds",
            3,
            "--seed",
            5,
            "--json",
        ).document
        direct = cross_validate(
            unseen.MatrixFactorization(2, random_state=5, reg=1.0, center="none"),
            cells,
            cv=KFoldEntries(3, random_state=5),
        )
        assert document["scores"]["rmse"]["mean"] == direct.mean("rmse")
        assert document["scores"]["rmse"]["std"] == pytest.approx(np.std(direct.column("rmse")))

    def test_rows_are_held_out_whole(self, run, files):
        options = ("evaluate", files.ratings, "--method", "bias", "--folds", 4, "--segments", "--json")
        document = run(*options, "--split", "rows").document
        segments = {line["segment"]: line for line in document["segments"]}
        assert segments["new rows"]["n_cells"] == segments["all"]["n_cells"] == 287
        assert segments["old rows"] == {"segment": "old rows", "n_cells": 0, "rmse": None, "mae": None}
        assert segments["new rows"]["rmse"] == pytest.approx(document["scores"]["rmse"]["mean"])
        cold = {
            line["segment"]: line["n_cells"] for line in run(*options, "--split", "cols").document["segments"]
        }
        assert (cold["new columns"], cold["new rows"]) == (287, 0)
        both = run(*options, "--split", "both").document["segments"]
        assert {line["segment"]: line["n_cells"] for line in both}["old rows"] == 0

    def test_what_came_last_is_predicted_from_what_was_before(self, run, files, tmp_path):
        frame = pd.read_csv(files.ratings)
        frame["when"] = np.random.default_rng(0).permutation(len(frame))
        frame.to_csv(tmp_path / "dated.csv", index=False)
        options = ("--method", "bias", "--split", "time", "--time", "when", "--folds", 3, "--json")
        document = run("evaluate", tmp_path / "dated.csv", *options).document
        cells = Observations.from_frame(frame, row="user", col="item", value="stars", time="when")
        direct = cross_validate(unseen.BiasModel(), cells, cv=ForwardTime(3))
        assert [fold["rmse"] for fold in document["folds"]] == direct.column("rmse")
        assert [fold["n_train"] for fold in document["folds"]] == direct.column("n_train")
        for wrong in (("--split", "time"), ("--time", "when")):
            assert "--time" in run("evaluate", tmp_path / "dated.csv", "--method", "bias", *wrong, code=2).err

    def test_parts_of_the_test_cells_of_a_model(self, run, files, tmp_path):
        frame = pd.read_csv(files.ratings)
        frame.iloc[::2].to_csv(tmp_path / "train.csv", index=False)
        frame.iloc[1::2].to_csv(tmp_path / "test.csv", index=False)
        run("fit", tmp_path / "train.csv", "--method", "bias", "--out", tmp_path / "m")
        score = (
            "evaluate",
            tmp_path / "m",
            tmp_path / "test.csv",
            "--metrics",
            "rmse,hit_rate@5,map@5,coverage@5",
        )
        held = run(*score, "--segments").out
        ended = run(*score, "--segments", "--exclude", tmp_path / "train.csv")
        assert ended.out == held
        assert "tail columns" in ended.out
        document = run(*score, "--segments", "--exclude", tmp_path / "train.csv", "--json").document
        parts = {line["segment"]: line for line in document["segments"]}
        assert parts["all"]["rmse"] == document["scores"]["rmse"]
        assert sum(parts[f"{name} columns"]["n_cells"] for name in ("new", "tail", "middle", "head")) == 143

    def test_features_help_cold_rows(self, run, files):
        options = ("evaluate", files.ratings, "--split", "rows", "--folds", 3, "--json", "--method")
        features = ("--row-features", files.row_features, "--col-features", files.col_features)
        with_features = run(*options, "imc", "--reg", 0.1, *features).document["scores"]["rmse"]["mean"]
        without = run(*options, "mf", "--center", "biases").document["scores"]["rmse"]["mean"]
        assert with_features < 0.5 * without

    def test_a_table_for_people(self, run, files, model):
        assert "rmse" in run("evaluate", model, files.ratings).out
        assert "std" in run("evaluate", files.ratings, "--method", "bias", "--folds", 2).out

    def test_positives_are_measured_by_their_lists(self, run, files, tmp_path):
        liked = tmp_path / "liked.csv"
        frame = pd.read_csv(files.ratings).query("stars > 3")[["user", "item"]]
        frame.iloc[::2].to_csv(liked, index=False)
        frame.iloc[1::2].to_csv(tmp_path / "rest.csv", index=False)
        settings = ("--method", "bias-mc", "--rank", 3, "--json")
        crossed = run("evaluate", liked, *settings, "--folds", 2).document["scores"]
        assert list(crossed) == ["precision@10", "recall@10"]
        run("fit", liked, *settings, "--out", tmp_path / "m")
        options = ("--exclude", liked, "--unknown", "skip", "--json")
        scores = run("evaluate", tmp_path / "m", tmp_path / "rest.csv", *options).document["scores"]
        assert list(scores) == ["precision@10", "recall@10"]
        assert 0 < scores["recall@10"] <= 1

    def test_usage(self, run, files, model):
        assert "TEST" in run("evaluate", model, code=2).err
        assert "TEST" in run("evaluate", files.ratings, files.ratings, "--method", "mf", code=2).err
        assert "'best'" in run("evaluate", model, files.ratings, "--metrics", "best", code=2).err
        assert "folds" in run("evaluate", files.ratings, "--method", "bias", "--folds", 1, code=2).err


@pytest.fixture
def weighted(files, tmp_path):
    table = pd.read_csv(files.ratings)
    table["w"] = np.random.default_rng(0).choice([0.0, 0.5, 3.0], len(table))
    path = tmp_path / "weighted.csv"
    table.to_csv(path, index=False)
    return path


def test_weights_of_a_file_count_in_fits_and_scores(run, weighted, tmp_path):
    cells = read_triples(weighted, row="user", col="item", value="stars", weight="w")
    run("fit", weighted, "--method", "bias", "--weight", "w", "--out", tmp_path / "m")
    model = unseen.load(tmp_path / "m")
    direct = unseen.BiasModel().fit(cells)
    assert np.array_equal(model.row_bias_, direct.row_bias_)
    assert not np.array_equal(model.row_bias_, unseen.BiasModel().fit(cells.with_weights(None)).row_bias_)
    wanted = rmse(cells, direct.predict_entries(cells.rows, cells.indices, positions=True))
    # The model remembers the column; a file without it is scored without weights.
    for options in ([], ["--weight", "w"], ["--weight", 3]):
        found = run("evaluate", tmp_path / "m", weighted, "--metrics", "rmse", "--json", *options)
        assert found.document["scores"]["rmse"] == pytest.approx(wanted)
    plain = tmp_path / "plain.csv"
    pd.read_csv(weighted).drop(columns="w").to_csv(plain, index=False)
    found = run("evaluate", tmp_path / "m", plain, "--metrics", "rmse", "--json")
    assert found.document["scores"]["rmse"] != pytest.approx(wanted, rel=1e-3)
    # By cross-validation and in comparisons.
    folds = run("evaluate", weighted, "--method", "bias", "--weight", "w", "--folds", 3, "--json")
    splits = KFoldEntries(3, random_state=0)
    wanted = cross_validate(unseen.BiasModel(), cells, cv=splits).mean("rmse")
    assert folds.document["scores"]["rmse"]["mean"] == pytest.approx(wanted)
    options = ["--methods", "bias", "--repeats", 1, "--json"]
    plain, weighed = (
        run("compare", weighted, *extra, *options).document["entries"][0]["scores"]
        for extra in ([], ["--weight", "w"])
    )
    assert plain != weighed


def test_predictions_with_a_spread_need_the_weights_again(run, weighted, tmp_path):
    run("fit", weighted, "--method", "bias", "--weight", "w", "--out", tmp_path / "m")
    plain = tmp_path / "plain.csv"
    table = pd.read_csv(weighted)
    table.drop(columns="w").to_csv(plain, index=False)
    table[["user", "item"]].head(4).to_csv(tmp_path / "pairs.csv", index=False)
    run("predict", tmp_path / "m", tmp_path / "pairs.csv", "--train", weighted)
    ended = run("predict", tmp_path / "m", tmp_path / "pairs.csv", "--train", plain, code=2)
    assert "lacks the column 'w' of weights" in ended.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weight", "z"], "--weight z: no such column"),
        (["--weight", "stars"], "has another meaning"),
        (["--weight", "w", "--method", "katz"], "links have no weights"),
        (["--weight", "w", "--edges", "directed"], "a list of edges has no columns"),
    ],
)
def test_weights_that_cannot_be_are_refused(run, weighted, tmp_path, options, message):
    assert message in run("fit", weighted, "--out", tmp_path / "m", *options, code=2).err


class TestNewRows:
    @pytest.fixture
    def newcomers(self, tmp_path):
        path = tmp_path / "new.csv"
        path.write_text("user,item,stars\nzoe,10,5\nzoe,50,1\nyan,30,2\nyan,9999,4\n", encoding="utf-8")
        return path

    def test_by_cells(self, run, model, newcomers):
        ended = run("recommend", model, "--new-cells", newcomers, "-k", 3, "--json")
        document = ended.document
        assert "9999" in document["warnings"][0]
        frame = pd.DataFrame({"user": ["zoe", "zoe", "yan"], "item": [10, 50, 30], "stars": [5.0, 1.0, 2.0]})
        cells = Observations.from_frame(frame, row="user", col="item", value="stars")
        loaded = unseen.load(model)
        factors = loaded.fold_in(loaded_order(loaded, cells), positions=True)
        for person, scores in zip(cells.row_ids.values, factors @ loaded.col_factors_.T, strict=True):
            known = set(frame[frame["user"] == person]["item"])
            best = [
                j for j in loaded.col_ids_[np.argsort(-scores, kind="stable")].tolist() if j not in known
            ][:3]
            assert [line["item"] for line in document["recommendations"] if line["user"] == person] == best
        seen = run("recommend", model, "--new-cells", newcomers, "-k", 20, "--with-seen", "--json").document
        assert len([line for line in seen["recommendations"] if line["user"] == "zoe"]) == 20

    def test_by_features_and_by_both(self, run, inductive, tmp_path):
        people = tmp_path / "people.csv"
        people.write_text("user,a,b,kind\nyan,-1,0.5,cold\nzoe,1,0,warm\n", encoding="utf-8")
        lines = run("recommend", inductive, "--row-features", people, "-k", 2, "--json").document
        loaded = unseen.load(inductive)
        names = loaded.source_["row_feature_names"]
        features = np.zeros((2, len(names)))
        for i, person in enumerate(({"a": -1, "b": 0.5, "kind=cold": 1}, {"a": 1, "b": 0, "kind=warm": 1})):
            features[i] = [person.get(name, 0) for name in names]
        ids, _ = loaded.recommend(row_features=features, k=2)
        assert [line["item"] for line in lines["recommendations"]] == ids.ravel().tolist()
        cells = tmp_path / "cells.csv"
        cells.write_text(f"user,item,stars\nzoe,{ids[1, 0]},5\n", encoding="utf-8")
        both = run("recommend", inductive, "--new-cells", cells, "--row-features", people, "-k", 2, "--json")
        found = [line["item"] for line in both.document["recommendations"]]
        assert int(ids[1, 0]) not in found
        assert {line["user"] for line in both.document["recommendations"]} == {"zoe"}
        assert "row_features" in run("recommend", inductive, "--new-cells", cells, code=1).err

    def test_names_and_denied_columns(self, run, model, tmp_path):
        (tmp_path / "films.csv").write_text(
            "item,title\n" + "".join(f"{10 * j},Film {j}\n" for j in range(15))
        )
        (tmp_path / "deny.txt").write_text("10\n20\n30\n")
        lines = run(
            "recommend", model, "--all", "-k", 20, "--col-names", tmp_path / "films.csv", "--deny",
            tmp_path / "deny.txt", "--json",
        ).document["recommendations"]  # fmt: skip
        assert not {10, 20, 30} & {line["item"] for line in lines}
        for line in lines:
            assert line["title"] == (f"Film {line['item'] // 10}" if line["item"] < 150 else "")

    @pytest.mark.parametrize(
        "options", [("--rows", "x", "--new-cells", "y"), (), ("--all", "--exclude", "x", "--with-seen")]
    )
    def test_wrong_usage(self, run, model, options):
        run("recommend", model, *options, code=2)

    def test_training_cells_are_left_out(self, run, files, model):
        lines = run("recommend", model, "--all", "-k", 20, "--json").document["recommendations"]
        seen = set(pd.read_csv(files.ratings)[["user", "item"]].itertuples(index=False, name=None))
        assert not seen & {(line["user"], line["item"]) for line in lines}
        assert len(lines) + len(seen) == len(USERS) * len(ITEMS)


def loaded_order(model, cells):
    """Cells in the columns of a model."""
    place = model.col_ids_.index_of(cells.col_ids.values)
    return Observations.from_triples(
        cells.rows, place[cells.indices], cells.values, (cells.shape[0], len(model.col_ids_))
    )


def test_features_of_new_rows_are_those_of_training(run, inductive, files, tmp_path):
    people = pd.read_csv(files.row_features)
    new = people.head(2).assign(user=["new1", "new2"], kind=["warm", "tepid"])
    new.to_csv(tmp_path / "new.csv", index=False)
    ended = run("recommend", inductive, "--row-features", tmp_path / "new.csv", "-k", 1)
    assert "'kind=tepid', which did not occur in training" in ended.err
    new.assign(c=1.0).to_csv(tmp_path / "more.csv", index=False)
    ended = run("recommend", inductive, "--row-features", tmp_path / "more.csv", "-k", 1, code=1)
    assert "more.csv has 'c', which the model was not fitted with" in ended.err
    pd.concat([new, people.head(3)]).to_csv(tmp_path / "both.csv", index=False)
    ended = run("recommend", inductive, "--row-features", tmp_path / "both.csv", "-k", 1)
    assert "3 of 5 lines are of training rows and get no list, such as 'ü0', 'ü1', 'ü2'" in ended.err
    assert ended.out.count("new") == 2


def test_cells_that_the_model_was_fitted_to_are_told(run, files, model, tmp_path):
    ended = run("evaluate", model, files.ratings)
    n = len(pd.read_csv(files.ratings))
    assert f"the model was fitted to {n} of these {n} cells" in ended.err
    run("fit", files.ratings, "--method", "bias", "--out", tmp_path / "m")
    known = set(zip(*pd.read_csv(files.ratings)[["user", "item"]].to_numpy().T, strict=True))
    other = [(user, item, 3) for user in USERS[:5] for item in ITEMS[:9] if (user, item) not in known]
    pd.DataFrame(other, columns=["user", "item", "stars"]).to_csv(tmp_path / "other.csv", index=False)
    assert "was fitted to" not in run("evaluate", tmp_path / "m", tmp_path / "other.csv").err
