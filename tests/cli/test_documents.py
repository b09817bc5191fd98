"""``unseen card`` and ``unseen export``."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_files import Files, Run
from pyarrow import parquet
from scipy import sparse

import unseen
from unseen import MatrixFactorization, Observations
from unseen.card import Card, model_card, scores
from unseen.datasets import make_ratings
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.export import _load_pyfunc, export


def test_a_card_says_what_the_model_is(run: Run, model: Path, files: Files) -> None:
    document = run("card", model, "--test", files.ratings, "--json").document
    assert document["sections"]["Data"]["rows"] == "30"
    assert "95 %" in document["sections"]["Scores"]["RMSE"]
    text = run("card", model).out
    assert text.startswith("# MatrixFactorization")
    assert "nothing is said about how good" in text


def test_cards_are_written_as_pages(run: Run, model: Path, tmp_path: Path) -> None:
    run("card", model, "--out", tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "must end in" in run("card", model, "--out", tmp_path / "card.pdf", code=2).err


def test_nothing_in_a_card_is_markup() -> None:
    card = Card("<b>", {"A": [("<i>|x", "*y*")], "B": ["<script>"]})
    assert "<script>" not in card.html()
    assert "<i>" not in card.html()
    assert "<script>" not in card.markdown()
    assert "| &#60;i&#62;&#124;x | \\*y\\* |" in card.markdown()


def test_scores_are_those_of_the_metrics_and_lie_in_their_intervals() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20)) + rng.normal(size=(60, 1))
    train, test = unseen.model_selection.split_entries(
        unseen.Observations.from_any(X), test_fraction=0.3, random_state=0
    )
    model = unseen.MatrixFactorization(2, reg=1.0, center="biases", random_state=0).fit(train)
    rmse, mae = scores(model, test, 20, 300, 0)
    gap = model.predict_entries(test.rows, test.indices) - test.values
    assert rmse.value == pytest.approx(unseen.metrics.rmse(test.values, test.values + gap))
    assert mae.value == pytest.approx(np.abs(gap).mean())
    assert rmse.low < rmse.value < rmse.high
    few = scores(model, test.select(test.rows < 10), 20, 300, 0)[0]
    assert few.high - few.low > rmse.high - rmse.low
    positives = unseen.BiasMC(2, reg=1.0, random_state=0).fit(sparse.csr_array(X > 1, dtype=float))
    cells = unseen.Observations.from_sparse(sparse.csr_array(X > 1.5, dtype=float))
    (recall,) = scores(positives, cells, 5, 50, 0)
    assert 0 <= recall.value <= 1
    assert "Scores" in model_card(model, test=test).sections


@pytest.mark.parametrize("to", ["npz", "parquet"])
def test_exported_factors_give_the_same_scores(run: Run, model: Path, tmp_path: Path, to: str) -> None:
    for _ in range(2):  # the second takes the place of the first
        run("export", model, "--to", to, "--out", tmp_path / "out")
    loaded = unseen.load(model)
    if to == "npz":
        with np.load(tmp_path / "out") as found:
            arrays = {name: found[name] for name in found.files}
    else:
        tables = {side: parquet.read_table(tmp_path / "out" / f"{side}s.parquet") for side in ("row", "col")}
        arrays = {f"{side}_ids": np.array(table["id"].to_pylist()) for side, table in tables.items()}
        arrays |= {f"{side}_factors": np.array(t["factors"].to_pylist()) for side, t in tables.items()}
    np.testing.assert_array_equal(arrays["row_factors"], loaded.row_factors_)
    np.testing.assert_array_equal(arrays["col_factors"], loaded.col_factors_)
    assert arrays["row_ids"].tolist() == loaded.row_ids_.values.tolist()
    assert arrays["col_ids"].tolist() == loaded.col_ids_.values.tolist()
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a message of Protocol Buffers by their numbers."""
    out: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        value: Any = varint()
        if key & 7 == 2:
            at, value = at + value, message[at : at + value]
        out.setdefault(key >> 3, []).append(value)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_onnx_file_is_one_product(tmp_path: Path, dtype: Any) -> None:
    X = np.random.default_rng(0).normal(size=(300, 200)).astype(dtype)
    fitted = unseen.MatrixFactorization(3, random_state=0, max_iter=5, tol=1).fit(X)
    (file,) = export(fitted, tmp_path / "model.onnx", "onnx-matmul")
    (graph,) = fields(file.read_bytes())[7]
    parts = fields(graph)
    node, constant = fields(parts[1][0]), fields(parts[5][0])
    assert node[4] == [b"MatMul"]
    assert node[1] == [b"factors", constant[8][0]]
    assert constant[1] == [fitted.col_factors_.shape[1], 200]
    form = "<f" if constant[2] == [1] else "<d"
    (first,) = struct.unpack_from(form, constant[9][0])
    assert first == fitted.col_factors_[0, 0]
    held = np.frombuffer(constant[9][0], dtype).reshape(constant[1])
    np.testing.assert_allclose(fitted.row_factors_ @ held, fitted.predict_new(), rtol=1e-5)


def test_what_cannot_be_exported(run: Run, model: Path, tmp_path: Path) -> None:
    assert "parquet, npz" in run("export", model, "--to", "csv", "--out", tmp_path / "x", code=2).err
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    assert (
        "something else" in run("export", model, "--to", "parquet", "--out", tmp_path / "taken", code=1).err
    )
    assert (tmp_path / "taken" / "notes.txt").read_text() == "mine"


# -- MLflow ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stars() -> pd.DataFrame:
    cells = make_ratings(30, 20, random_state=0).observations
    names = {"user": [f"u{i}" for i in cells.rows], "film": [f"f{j}" for j in cells.indices]}
    return pd.DataFrame({**names, "stars": cells.values})


def test_what_mlflow_loads_predicts_and_lists(stars: pd.DataFrame, tmp_path: Path) -> None:
    cells = Observations.from_frame(stars, row="user", col="film", value="stars")
    model = MatrixFactorization(2, reg=2.0, random_state=0).fit(cells)
    model.save(tmp_path / "model")
    function = _load_pyfunc(str(tmp_path / "model"))
    asked = stars.iloc[:5]
    np.testing.assert_allclose(function.predict(asked), model.predict_entries(asked.user, asked.film))
    rows = asked[["user"]].drop_duplicates()
    listed = function.predict(rows, {"k": 3})
    assert list(listed.columns[:2]) == ["user", "film"]
    assert len(listed) == 3 * len(rows)
    assert len(function.predict(rows)) == 10 * len(rows)
    with pytest.raises(InvalidDataError, match="lacks the column 'user'"):
        function.predict(asked[["film"]])
    with pytest.raises(ParameterError, match="params: k is accepted, got n"):
        function.predict(asked, {"n": 3})


def test_mlflow_itself(stars: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyfunc = pytest.importorskip("mlflow.pyfunc")
    monkeypatch.chdir(tmp_path)
    cells = Observations.from_frame(stars, row="user", col="film", value="stars")
    model = MatrixFactorization(2, reg=2.0, random_state=0).fit(cells)
    model.save(tmp_path / "model")
    told = {"loader_module": "unseen.export", "pip_requirements": ["unseen"]}
    pyfunc.save_model(tmp_path / "kept", data_path=tmp_path / "model", **told)
    asked = stars.iloc[:5]
    function = pyfunc.load_model(str(tmp_path / "kept"))
    np.testing.assert_allclose(function.predict(asked), model.predict_entries(asked.user, asked.film))
    assert len(function.predict(asked[["user"]].iloc[:1])) == 10
