"""Fits by blocks from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_files import Files, Run

import unseen

pytest.importorskip("fsspec", reason="files are found by fsspec")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def parquet(files: Files, tmp_path: Path) -> Path:
    folder = tmp_path / "cells"
    folder.mkdir()
    frame = pd.read_csv(files.ratings)
    for number in range(2):
        frame.iloc[number::2].to_parquet(folder / f"{number}.parquet")
    return folder


def test_a_fit_from_disk_is_a_model_like_any_other(
    files: Files, parquet: Path, run: Run, tmp_path: Path
) -> None:
    settings = ("--method", "mf", "--rank", 2, "--reg", 0.5, "--center", "mean", "--max-iter", 5)
    done = run("fit", parquet, "--out", tmp_path / "one", *settings, "--memory", "1GiB", "--json").document
    assert (done["n_rows"], done["n_cols"]) == (30, 20)
    assert done["expected_memory_bytes"] < 2**30
    plain = run("fit", files.ratings, "--out", tmp_path / "two", *settings, "--json").document
    assert done["objective"] == pytest.approx(plain["objective"], rel=1e-9)
    lists = [
        run("recommend", tmp_path / name, "--all", "-k", 3, "--with-seen").out for name in ("one", "two")
    ]
    assert [line.split(",")[:-1] for line in lists[0].splitlines()] == [
        line.split(",")[:-1] for line in lists[1].splitlines()
    ]
    assert unseen.load(tmp_path / "one").source_["row"] == "user"


def test_a_cluster_on_this_machine(parquet: Path, run: Run, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, silence_logs=50, protocol="tcp://") as cluster:
        address = cluster.scheduler_address
        settings = ("--method", "bias-mc", "--no-value", "--set", "alpha=0.8", "--max-iter", 3, "--rank", 2)
        run("fit", parquet, "--out", tmp_path / "one", *settings, "--dask", address)
        run("fit", parquet, "--out", tmp_path / "two", *settings, "--memory", "1GiB")
        one, two = unseen.load(tmp_path / "one"), unseen.load(tmp_path / "two")
        np.testing.assert_allclose(one.row_factors_, two.row_factors_, atol=1e-4)
        there, here = (
            run(
                "recommend", tmp_path / "one", "--all", "-k", 3, "--exclude", parquet / "0.parquet", *extra
            ).out
            for extra in (("--dask", address), ())
        )
        assert there == here


def test_wrong_usage_is_refused(files: Files, parquet: Path, run: Run, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "model", "--reg", 1)
    assert "read Parquet" in run("fit", files.ratings, *out, "--memory", "1GiB", code=2).err
    both = run("fit", parquet, *out, "--memory", "1GiB", "--dask", "local", code=2)
    assert "exclude each other" in both.err
    wrong = run("fit", parquet, *out, "--memory", "lots", code=2)
    assert "memory must be a number of bytes" in wrong.err
    features = run("fit", parquet, *out, "--memory", "1GiB", "--row-features", files.row_features, code=2)
    assert "read Parquet" in features.err
    missing = run("fit", parquet, *out, "--memory", "1GiB", "--missing", "zero", code=2)
    assert "wants features of every id" in missing.err


def test_features_by_blocks_are_those_of_a_fit_in_memory(
    files: Files, parquet: Path, run: Run, tmp_path: Path
) -> None:
    tables = {side: tmp_path / f"{side}.parquet" for side in ("row", "col")}
    pd.read_csv(files.row_features).drop(columns="kind").to_parquet(tables["row"])
    pd.read_csv(files.col_features, sep="\t").to_parquet(tables["col"])
    settings = ("--method", "imc", "--rank", 2, "--reg", 0.5, "--center", "biases", "--max-iter", 4)
    sides = ("--row-features", tables["row"], "--col-features", tables["col"])
    done = run(
        "fit", parquet, "--out", tmp_path / "one", *settings, *sides, "--memory", "1GiB", "--json"
    ).document
    plain = run("fit", files.ratings, "--out", tmp_path / "two", *settings, *sides, "--json").document
    assert done["objective"] == pytest.approx(plain["objective"], rel=1e-6)
    one, two = (unseen.load(tmp_path / name) for name in ("one", "two"))
    assert one.source_["row_feature_names"] == two.source_["row_feature_names"]
    new = np.ones((2, one.n_row_features_in_))
    np.testing.assert_allclose(one.predict_new(new), two.predict_new(new), atol=1e-4)
