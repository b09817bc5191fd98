"""Clustering from pairs that belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unseen
from unseen import PUClustering
from unseen.estimators.pair_clustering import check_pairs, pair_matrix, spectral_embedding
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.metrics import pair_error

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def items(n: int = 120, n_clusters: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Clusters that show in few of many features, beside other ones that show in more."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_clusters
    unwanted = np.repeat(np.eye(3)[rng.integers(0, 3, n)], 4, axis=1)  # a stronger grouping
    X = np.hstack([np.eye(n_clusters)[y], unwanted])
    return X + 0.25 * rng.standard_normal(X.shape), y


def some_pairs(y: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    low, high = np.triu_indices(len(y), 1)
    together = np.flatnonzero(y[low] == y[high])
    picked = rng.choice(together, count, replace=False)
    return np.column_stack([low[picked], high[picked]])


@pytest.mark.parametrize("params", [{}, {"whiten": True}, {"rank": 6}, {"alpha": 0.999}])
def test_pairs_decide_what_the_clusters_are(params: dict[str, Any]) -> None:
    X, y = items()
    model = PUClustering(3, random_state=0, **params).fit(X, pairs=some_pairs(y, 60))
    assert pair_error(y, model.labels_) < 0.15
    alone = PUClustering(3, random_state=0, **params).fit(X)
    assert pair_error(y, alone.labels_) > 0.25


def test_pairs_that_are_apart_help() -> None:
    X, y = items(seed=3)
    few = some_pairs(y, 8, seed=1)
    rng = np.random.default_rng(0)
    other = rng.integers(0, len(y), (400, 2))
    apart = other[y[other[:, 0]] != y[other[:, 1]]]
    pairs, same = np.vstack([few, apart]), np.r_[np.ones(len(few), bool), np.zeros(len(apart), bool)]
    errors = [
        pair_error(y, PUClustering(3, random_state=0).fit(X, pairs=few).labels_),
        pair_error(y, PUClustering(3, random_state=0).fit(X, pairs=pairs, same=same).labels_),
    ]
    assert errors[1] < errors[0]


def test_scores_threads_and_saving(tmp_path: Path) -> None:
    X, y = items()
    pairs = some_pairs(y, 40)
    model = PUClustering(3, random_state=0, n_jobs=1).fit(X, pairs=pairs)
    again = PUClustering(3, random_state=0, n_jobs=2).fit(X, pairs=pairs[::-1, ::-1])
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(model.fit_predict(X, pairs=pairs), model.labels_)
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(
        loaded.completer_.predict_entries([0], [1]), model.completer_.predict_entries([0], [1])
    )
    small = PUClustering(3, random_state=0).fit(X.astype(np.float32), pairs=pairs)
    assert small.completer_.row_factors_.dtype == np.float32
    assert pair_error(small.labels_, model.labels_) < 0.1
    thin = PUClustering(3, random_state=0, standardize=False).fit(sparse.csr_array(X), pairs=pairs)
    assert thin.labels_.shape == y.shape


def test_embedding_is_the_leading_symmetric_part() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((20, 4)), rng.standard_normal((20, 4))
    scores = (left @ right.T + right @ left.T) / 2
    embedding, _ = spectral_embedding(left, right, 2)
    values, vectors = np.linalg.eigh(scores)
    expected = (vectors[:, -2:] * values[-2:]) @ vectors[:, -2:].T
    np.testing.assert_allclose(embedding @ embedding.T, expected, atol=1e-9)
    assert spectral_embedding(np.zeros((5, 2)), np.zeros((5, 2)), 2)[0].shape == (5, 1)


def test_pairs_are_read_as_they_are_meant() -> None:
    pairs, same = check_pairs([[3, 1], [1, 3], [2, 2], [0, 4]], [True, True, True, False], 5)
    np.testing.assert_array_equal(pairs, [[0, 4], [1, 3]])
    np.testing.assert_array_equal(same, [False, True])
    matrix = pair_matrix(pairs, same, 5)
    assert matrix.nnz == 4
    np.testing.assert_array_equal(matrix.csr.toarray(), matrix.csr.toarray().T)
    none, _ = check_pairs(None, None, 5)
    np.testing.assert_array_equal(pair_matrix(none, np.zeros(0, bool), 5).csr.toarray(), np.eye(5))


@pytest.mark.parametrize(
    ("pairs", "same", "words"),
    [
        ([[0, 200]], None, "200"),
        ([[0, -1]], None, "-1"),
        ([0, 1], None, "shape"),
        ([[0, 1]], [True, False], "same"),
        ([[0, 1]], [2], "same"),
        (None, [True], "without pairs"),
        ([[0, 1], [1, 0]], [True, False], r"\(0, 1\).*together and not"),
        ([[4, 4]], [False], "item 4"),
    ],
)
def test_bad_pairs_are_named(pairs: Any, same: Any, words: str) -> None:
    with pytest.raises(InvalidDataError, match=words):
        PUClustering(2).fit(items()[0], pairs=pairs, same=same)


def test_bad_parameters_are_named() -> None:
    X, y = items()
    for params, words in (
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 500}, "500"),
        ({"reg": "much"}, "reg"),
        ({"alpha": 1.0}, "alpha"),
        ({"class_prior": 2.0}, "class_prior"),
        ({"n_init": 0}, "n_init"),
        ({"rank": 0}, "rank"),
    ):
        with pytest.raises(ParameterError, match=words):
            PUClustering(2).set_params(**params).fit(X, pairs=some_pairs(y, 5))
    X[3, 2] = np.nan
    with pytest.raises(InvalidDataError, match="row 3"):
        PUClustering(2).fit(X)


@pytest.mark.data
def test_segment_from_a_hundred_pairs(data_home: Path) -> None:
    data = unseen.datasets.load_segment(data_home=data_home)
    pairs = some_pairs(data.y, 100, seed=10)
    model = PUClustering(7, whiten=True, random_state=0, tol=1e-3).fit(data.X, pairs=pairs)
    assert pair_error(data.y, model.labels_) < 0.1
    wrong = some_pairs(np.random.default_rng(0).permutation(data.y), 100, seed=10)
    misled = PUClustering(7, whiten=True, random_state=0, tol=1e-3).fit(data.X, pairs=wrong)
    assert pair_error(data.y, misled.labels_) > 0.15
