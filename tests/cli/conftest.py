"""Small files, and a way to run the command inside the test process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_files import ITEMS, N_COLS, N_ROWS, USERS, Ended, Files, Run

from unseen.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object, code: int | None = 0) -> Ended:
        found = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        if code is not None:
            assert found == code, err
        return Ended(found, out, err)

    return call


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    home = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(N_ROWS, 2)), rng.normal(size=(N_COLS, 2))
    truth = 3 + X @ Y.T
    rows, cols = np.nonzero(rng.random((N_ROWS, N_COLS)) < 0.5)
    ratings = pd.DataFrame(
        {
            "user": [USERS[i] for i in rows],
            "item": [ITEMS[j] for j in cols],
            "stars": truth[rows, cols].round(2),
        }
    )
    kind = np.where(X[:, 0] > 0, "warm", "cold")
    people = pd.DataFrame({"user": USERS, "a": X[:, 0], "b": X[:, 1], "kind": kind})
    things = pd.DataFrame({"item": ITEMS, "c": Y[:, 0], "d": Y[:, 1]})
    asked = pd.DataFrame({"user": [USERS[4], USERS[3], USERS[4]], "item": [10, 0, 10]})
    paths = Files(home, *(home / name for name in ("r.csv", "p.csv", "people.csv", "things.tsv")))
    ratings.to_csv(paths.ratings, index=False)
    asked.to_csv(paths.pairs, index=False)
    people.to_csv(paths.row_features, index=False)
    things.to_csv(paths.col_features, index=False, sep="\t")
    return paths


@pytest.fixture(scope="session")
def model(files: Files) -> Path:
    path = files.home / "mf"
    code = main(
        [
            "fit", str(files.ratings), "--out", str(path), "--rank", "2", "--reg", "0.5",
            "--center", "biases", "--quiet",
        ]
    )  # fmt: skip
    assert code == 0
    return path


@pytest.fixture(scope="session")
def inductive(files: Files) -> Path:
    path = files.home / "imc"
    code = main(
        [
            "fit", str(files.ratings), "--method", "imc", "--rank", "3", "--reg", "0.1", "--center", "none",
            "--out", str(path),
            "--row-features", str(files.row_features), "--col-features", str(files.col_features),
            "--max-iter", "200", "--quiet",
        ]
    )  # fmt: skip
    assert code == 0
    return path
