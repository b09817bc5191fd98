"""FastXML and PfastreXML: their trees, their leaves and their order of labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unseen import FastXML, PfastreXML, load
from unseen.exceptions import ModelFileError, ParameterError
from unseen.metrics import label_propensities, precision_at_k
from unseen.multilabel.forest import largest_cells, pair_products
from unseen.multilabel.scaling import scaled_rows


def data(
    n: int = 400, d: int = 30, n_labels: int = 20, seed: int = 0
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Groups of rows with words and labels of their own, some of them noise."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, n)
    words = rng.random((5, d)) < 0.2
    X = (rng.random((n, d)) < np.where(words[group], 0.7, 0.05)) * 1.0
    tags = rng.random((5, n_labels)) < 0.2
    tags[:, 0] = True
    Y = (rng.random((n, n_labels)) < np.where(tags[group], 0.8, 0.02)) * 1.0
    return sparse.csr_array(X), sparse.csr_array(Y)


@pytest.fixture(scope="module")
def fitted() -> tuple[FastXML, sparse.csr_array, sparse.csr_array]:
    X, Y = data()
    return FastXML(8, C=3.0, random_state=0).fit(X, Y), X, Y


def naive_leaf(model: FastXML, tree: int, x: np.ndarray) -> int:
    place = model.forest_.roots[tree]
    while place >= 0:
        ahead = model.forest_.splits[[place]].toarray()[0] @ x > 1e-6
        place = model.forest_.children[place, 0 if ahead else 1]
    return -1 - int(place)


def test_rows_walk_to_leaves_that_average_their_labels(fitted) -> None:
    model, X, Y = fitted
    rows = np.hstack([scaled_rows(X).toarray(), np.ones((X.shape[0], 1))])
    forest = model.forest_
    found = forest.leaves_of(model._features(X))
    for tree in range(3):
        leaves = np.array([naive_leaf(model, tree, x) for x in rows])
        np.testing.assert_array_equal(found[:, tree], leaves)
        for leaf in np.unique(leaves)[:10]:
            np.testing.assert_allclose(
                forest.leaves[[leaf]].toarray()[0], Y.toarray()[leaves == leaf].mean(axis=0), atol=1e-12
            )
    average = np.mean([forest.leaves.toarray()[found[:, tree]] for tree in range(8)], axis=0)
    np.testing.assert_allclose(model.decision_function(X).toarray(), average, atol=1e-12)


def test_every_row_is_in_one_leaf_of_each_tree_and_large_leaves_are_rare(fitted) -> None:
    model, X, _ = fitted
    sizes = np.unique(model.forest_.leaves_of(model._features(X)), return_counts=True)[1]
    assert sizes.sum() == 8 * X.shape[0]
    assert (sizes <= model.max_leaf).mean() > 0.8
    assert len(sizes) == model.forest_.leaves.shape[0]


def test_trees_learn() -> None:
    X, Y = data(600)
    train, test = slice(0, 400), slice(400, 600)
    popular = np.asarray(Y[train].sum(axis=0)).ravel()[1:].argmax() + 1
    base = precision_at_k(Y[test][:, 1:], np.full((200, 1), popular - 1), 1)
    for cls in (FastXML, PfastreXML):
        model = cls(20, C=3.0, random_state=0).fit(X[train], Y[train][:, 1:])
        assert model.score(X[test], Y[test][:, 1:]) > base + 0.2


def test_threads_and_blocks_of_nodes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.kernels import _arguments
    from unseen.multilabel import forest

    X, Y = data(150)
    one = FastXML(4, C=3.0, random_state=0, n_jobs=1).fit(X, Y)
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)
    monkeypatch.setattr(forest, "SPLIT_CELLS", 3 * X.shape[1])
    other = FastXML(4, C=3.0, random_state=0, n_jobs=3).fit(X, Y)
    assert one.forest_.splits.data.tobytes() == other.forest_.splits.data.tobytes()
    np.testing.assert_array_equal(one.predict_topk(X)[0], other.predict_topk(X)[0])


def test_without_a_split_there_is_one_leaf() -> None:
    X, Y = data(8)
    model = FastXML(2, random_state=0).fit(X, Y)
    assert model.forest_.splits.shape[0] == 0
    assert model.forest_.leaves.shape[0] == 2
    np.testing.assert_allclose(
        model.decision_function(X).toarray(), np.tile(Y.toarray().mean(axis=0), (8, 1))
    )


def test_pfastrexml_ranks_by_the_formula() -> None:
    X, Y = data(200)
    model = PfastreXML(3, C=3.0, random_state=0).fit(X, Y)
    rows = scaled_rows(X).toarray()
    weights = 1.0 / label_propensities(np.asarray(Y.sum(axis=0)).ravel(), 200)
    leaves = model.forest_.leaves_of(model._features(X))
    trees = np.zeros(Y.shape)
    for tree in range(3):
        for leaf in np.unique(leaves[:, tree]):
            inside = leaves[:, tree] == leaf
            trees[inside] += (Y.toarray()[inside] * weights).mean(axis=0) / 3
    means = np.array([rows[Y.toarray()[:, label] > 0].mean(axis=0) for label in range(Y.shape[1])])
    distance = ((rows[:, None, :] - means) ** 2).sum(axis=2)
    wanted = trees**0.8 * (1.0 + np.exp(15.0 * distance)) ** -0.2
    np.testing.assert_allclose(model.decision_function(X).toarray(), wanted, atol=1e-9)


def test_saved_forests_come_back_and_altered_ones_do_not(fitted, tmp_path) -> None:
    model, X, _ = fitted
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_topk(X)[1], model.predict_topk(X)[1])
    children = model.forest_.children
    held = children[1, 0]
    children[1, 0] = 0  # a way back to the root
    try:
        with pytest.raises(ModelFileError, match="children"):
            model.save(tmp_path / "loop")
    finally:
        children[1, 0] = held


def test_helpers() -> None:
    rng = np.random.default_rng(0)
    left, right = (sparse.csr_array(rng.random((6, 4)) * (rng.random((6, 4)) < 0.6)) for _ in range(2))
    rows, others = rng.integers(0, 6, 20), rng.integers(0, 6, 20)
    np.testing.assert_allclose(
        pair_products(left, rows, right, others), (left.toarray()[rows] * right.toarray()[others]).sum(axis=1)
    )
    matrix = sparse.csr_array([[3.0, 1.0, 2.0, 2.0], [0.0, 0.0, 0.0, 5.0]])
    assert largest_cells(matrix, 2).toarray().tolist() == [[3.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 5.0]]


@pytest.mark.parametrize("setting", [{"n_trees": 0}, {"max_leaf": 0}, {"C": 0.0}, {"leaf_labels": 0}])
def test_settings_out_of_range_are_refused(setting) -> None:
    X, Y = data(20)
    with pytest.raises(ParameterError, match=next(iter(setting))):
        FastXML(**setting).fit(X, Y)
