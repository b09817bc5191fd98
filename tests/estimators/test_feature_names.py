"""Names of columns in and out, as scikit-learn has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from unseen import BiasModel, MatrixFactorization, Observations, SpectralFilter, SPPMIEmbedding, load


def wide() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(12, 4)), columns=list("dbca"), index=[f"r{i}" for i in range(12)])
    return table.mask(rng.random((12, 4)) < 0.2)


@pytest.mark.parametrize("model", [BiasModel(), MatrixFactorization(1, reg=0.1, random_state=0)])
def test_frames_go_in_and_come_out(model: Any, tmp_path: Any) -> None:
    table = wide()
    model.fit(table)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list("dbca")
    assert model.get_feature_names_out().tolist() == list("dbca")
    plain = model.transform(table)
    out = model.set_output(transform="pandas").transform(table)
    assert out.columns.tolist() == list("dbca")
    assert out.index.tolist() == table.index.tolist()
    np.testing.assert_array_equal(out, plain)
    turned = model.transform(table[["a", "b", "c", "d"]])  # matched by name, not taken by position
    pd.testing.assert_frame_equal(turned, out)
    assert isinstance(model.set_output(transform="polars").transform(table), pl.DataFrame)
    with pytest.raises(ValueError, match="'e'"):
        model.transform(table.rename(columns={"a": "e"}))
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").feature_names_in_.tolist() == list("dbca")


def test_arrays_have_numbered_columns() -> None:
    model = BiasModel().fit(wide().to_numpy())
    assert not hasattr(model, "feature_names_in_")
    assert model.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert model.get_feature_names_out(list("abcd")).tolist() == list("abcd")
    assert model.set_output(transform="pandas").transform(wide().to_numpy()).columns.tolist()[1] == "x1"
    numbered = Observations.from_frame(
        pd.DataFrame({"u": [1, 2], "i": [7, 9], "v": [1.0, 2.0]}), row="u", col="i", value="v"
    )
    assert BiasModel().fit(numbered).get_feature_names_out().tolist() == ["7", "9"]


def test_models_of_whole_rows_and_embeddings_have_names() -> None:
    Y = sparse.csr_array([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    assert SpectralFilter(2).fit(Y).set_output(transform="pandas").transform(Y).shape == (4, 4)
    embedding = SPPMIEmbedding(2, random_state=0).set_output(transform="pandas")
    assert embedding.fit_transform(Y).columns.tolist() == ["sppmiembedding0", "sppmiembedding1"]
