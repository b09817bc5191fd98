"""Clusters of items that come later, by what was learned of their features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unseen
from unseen import MCCC, GIMCClustering, PUClustering
from unseen.estimators.pair_clustering import PlacingClusterer
from unseen.exceptions import InvalidDataError, ParameterError, UnknownIdError
from unseen.metrics import pair_error

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MODELS = [
    PUClustering(3, random_state=0, n_init=2),
    PUClustering(3, rank=4, whiten=True, random_state=0, n_init=2),
    MCCC(3, random_state=0, n_init=2),
    GIMCClustering(3, n_components=20, max_iter=20, random_state=0, n_init=2),
    GIMCClustering(3, n_components=20, map="nystrom", max_iter=20, random_state=0, n_init=2),
]


def items(n: int = 160, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, clusters, and pairs of the first 120 items."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = np.hstack([np.eye(3)[y], rng.normal(size=(n, 3))]) + 0.2 * rng.normal(size=(n, 6))
    pairs = rng.choice(120, (500, 2))
    return X, y, pairs, y[pairs[:, 0]] == y[pairs[:, 1]]


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{type(model).__name__}{model.get_params()['n_init']}"
)
def test_new_items_go_where_they_belong(model: PlacingClusterer, tmp_path: Path) -> None:
    X, y, pairs, same = items()
    model.fit(X[:120], pairs=pairs, same=same)
    np.testing.assert_array_equal(model.predict(X[:120]), model.labels_)
    np.testing.assert_allclose(model._factors_of(X[:120]) @ model.projection_, model.embedding_, atol=1e-9)
    found = model.predict(X[120:])
    both, truth = np.r_[model.labels_, found], y
    assert pair_error(truth, both) < 0.1
    noise = model.predict(np.random.default_rng(0).normal(size=X[120:].shape))
    assert pair_error(y[120:], noise) > 0.25  # the control: features that say nothing
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(unseen.load(tmp_path / "model").predict(X[120:]), found)


def test_items_have_ids() -> None:
    X, _, pairs, same = items()
    plain = MCCC(3, random_state=0).fit(X[:120], pairs=pairs, same=same)
    names = np.array([f"item {i}" for i in range(120)])
    told = names[pairs]
    turned = np.random.default_rng(1).permutation(120)
    table = pd.DataFrame(X[:120], index=names, columns=list("abcdef"))
    by_index = MCCC(3, random_state=0).fit(table.iloc[turned], pairs=told, same=same)
    assert by_index.item_ids_ is not None
    assert by_index.item_ids_.values.tolist() == names[turned].tolist()
    by_column = MCCC(3, random_state=0).fit(
        pl.from_pandas(table.rename_axis("name").reset_index())[turned], pairs=told, same=same, ids="name"
    )
    for model in (by_index, by_column):
        assert pair_error(plain.labels_[turned], model.labels_) < 1e-12
    assert by_index.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(by_index.predict(table.iloc[turned]), by_index.labels_)
    new = pl.from_pandas(table.rename_axis("name").reset_index())[turned]
    np.testing.assert_array_equal(by_column.predict(new), by_column.labels_)
    with pytest.raises(UnknownIdError, match="'nobody'"):
        MCCC(3).fit(table, pairs=[["item 1", "nobody"]])
    with pytest.raises(UnknownIdError, match="holds integers"):
        MCCC(3).fit(table, pairs=pairs)
    with pytest.raises(ValueError, match="feature names"):
        by_index.predict(table[list("fedcba")])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ids": "name"}, ParameterError, "X is no frame"),
        ({"ids": ["a", "b"]}, InvalidDataError, "ids names 2 items and X has 120 rows"),
        ({"ids": ["a"] * 120}, InvalidDataError, "'a'"),
        ({"ids": [f"i{i}" for i in range(120)], "pairs": [["i0"]]}, InvalidDataError, "two ids each"),
    ],
)
def test_wrong_names_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    X = items()[0][:120]
    with pytest.raises(error, match=message):
        MCCC(3).fit(X, **options)


def test_other_features_are_refused() -> None:
    X, _, pairs, same = items()
    model = MCCC(3, random_state=0).fit(X[:120], pairs=pairs, same=same)
    with pytest.raises(InvalidDataError, match="X has 5 features, but MCCC is expecting 6"):
        model.predict(X[:, :5])
