"""The real data sets, against the numbers that their publishers state."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unseen import datasets
from unseen.data import read_svmlight

HOME = os.environ.get("UNSEEN_DATA")
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not HOME, reason="UNSEEN_DATA does not point to the real data sets"),
]


def test_ml100k():
    data = datasets.load_ml100k()
    seen = data.observations
    assert (seen.shape, seen.nnz) == ((943, 1682), 100_000)
    assert seen.values.mean() == pytest.approx(3.52986)
    assert seen.values.std() == pytest.approx(1.1257, abs=1e-4)
    assert np.bincount(data.cells["fold"]).tolist() == [0] + [20_000] * 5
    assert data.cells["ua_test"].sum() == data.cells["ub_test"].sum() == 9_430
    per_user = np.bincount(seen.rows, weights=data.cells["ua_test"])
    assert set(per_user) == {10}
    assert (seen.times.astype("datetime64[s]").astype(np.int64) == data.cells["timestamp"]).all()
    # Sizes, not contents: a notebook shows it.
    assert len(repr(data)) < 1500
    assert "row_features=float64 943 x 24" in repr(data)
    assert data.row_features.shape == (943, 24) == (943, len(data.row_feature_names))
    assert data.col_features.shape == (1682, 20) == (1682, len(data.col_feature_names))
    assert np.isfinite(data.col_features).all()
    assert np.linalg.matrix_rank(np.column_stack([data.row_features, np.ones(943)])) == 23
    # The first line of the file: user 196, item 242, 3 stars.
    cell = np.flatnonzero((seen.rows == 195) & (seen.indices == 241))
    assert (seen.values[cell], data.cells["timestamp"][cell]) == ([3], [881250949])
    assert data.extras["titles"][0] == "Toy Story (1995)"
    assert "Misérables, Les (1995)" in data.extras["titles"]
    toy_story = dict(zip(data.col_feature_names, data.col_features[0], strict=True))
    assert [name for name, flag in toy_story.items() if flag == 1] == ["Animation", "Children's", "Comedy"]
    assert toy_story["year"] == 1995


@pytest.mark.parametrize(
    ("name", "n_nodes", "n_edges", "n_train"),
    [("ca_grqc", 4_158, 13_422, 6_711), ("ca_hepph", 11_204, 117_619, 58_810)],
)
def test_graphs(name, n_nodes, n_edges, n_train):
    data = getattr(datasets, f"load_{name}")()
    stored = np.load(Path(HOME) / name.replace("_", "-") / "lcc_splits.npz")
    np.testing.assert_array_equal(data.edges, stored["edges"])
    np.testing.assert_array_equal(data.train, stored["train"])
    assert (data.observations.shape, data.observations.nnz) == ((n_nodes, n_nodes), 2 * n_edges)
    assert (data.observations.csr != data.observations.csr.T).nnz == 0
    assert connected_components(data.observations.csr)[0] == 1
    train, test = data.split(3)
    assert train.nnz == 2 * n_train
    assert len(test) == n_edges - n_train
    assert train.csr[test[:, 0], test[:, 1]].sum() == 0


@pytest.mark.parametrize(
    ("name", "shape", "n_labels", "n_train", "positives"),
    [
        ("bibtex", (7_395, 1_836), 159, 4_880, (11_616, 6_146)),
        ("delicious", (16_105, 500), 983, 12_920, (246_088, 60_229)),
        ("corel5k", (5_000, 499), 374, 4_500, (15_847, 1_763)),
        ("rcv1_subset", (6_000, 944), 101, 3_000, (8_743, 8_535)),
        ("mediamill_subset", (2_500, 120), 101, 1_750, None),
    ],
)
def test_multi_label_sets(name, shape, n_labels, n_train, positives):
    data = getattr(datasets, f"load_{name}")()
    assert data.X.shape == shape
    assert data.Y.shape == (shape[0], n_labels)
    assert set(data.Y.data) == {1.0}
    X_train, Y_train, X_test, Y_test = data.split()
    assert X_train.shape[0] == Y_train.shape[0] == n_train
    assert X_test.shape[0] == shape[0] - n_train
    if positives:
        assert (Y_train.nnz, Y_test.nnz) == positives
    for names, width in ((data.feature_names, shape[1]), (data.label_names, n_labels)):
        assert len(names) in (0, width)
    for train, test in data.splits.values():
        assert sorted(np.concatenate([train, test])) == list(range(shape[0]))


def test_published_splits_of_bibtex():
    data = datasets.load_bibtex()
    assert list(data.splits) == ["mulan", "sleec", *(f"repository{i}" for i in range(10))]
    _, Y_train, _, Y_test = data.split("sleec")
    assert (Y_train.nnz, Y_test.nnz) == (11_729, 6_033)
    with pytest.raises(ValueError, match="name must be one of 'mulan', 'sleec'"):
        data.split("mine")


def test_unlabelled_rows_are_kept():
    _, Y_train, _, Y_test = datasets.load_delicious().split()
    assert ((Y_train.sum(axis=1) == 0).sum(), (Y_test.sum(axis=1) == 0).sum()) == (10, 4)
    assert (datasets.load_mediamill_subset().Y.sum(axis=1) == 0).sum() == 74


def n_parts(seen):
    n_rows, n_cols = seen.shape
    both = sparse.block_array([[None, seen.csr], [seen.csr.T, None]])
    assert both.shape == (n_rows + n_cols, n_rows + n_cols)
    return connected_components(both)[0]


def test_yelp2013():
    data = datasets.load_yelp2013()
    seen = data.observations
    assert (seen.shape, seen.nnz, n_parts(seen)) == ((45_981, 11_537), 229_906, 53)
    assert seen.values.mean() == pytest.approx(3.7667, abs=1e-4)
    assert len(set(data.cells["order"])) == seen.nnz
    assert data.col_features.shape == (11_537, len(data.col_feature_names))
    first = data.col_features[[0]].toarray()[0]
    named = {data.col_feature_names[i] for i in np.flatnonzero(first)}
    assert {"city=Peoria", "category=Accountants", "latitude"} <= named


def test_yelp_3zones():
    data = datasets.load_yelp_3zones()
    seen = data.observations
    assert (seen.shape, seen.nnz, n_parts(seen)) == ((8_272, 5_842), 77_127, 1)
    table = np.zeros((3, 3), dtype=int)
    np.add.at(table, (data.cells["user_zone"], data.cells["item_zone"]), 1)
    assert table.tolist() == [[35616, 4309, 1795], [3726, 20206, 693], [1373, 585, 8824]]
    np.testing.assert_array_equal(data.extras["user_zone"][seen.rows], data.cells["user_zone"])
    np.testing.assert_array_equal(data.extras["item_zone"][seen.indices], data.cells["item_zone"])


def test_filmtrust():
    data = datasets.load_filmtrust()
    assert (data.observations.shape, data.observations.nnz) == ((1_508, 2_071), 35_494)
    assert n_parts(data.observations) == 3
    assert (data.observations.values.min(), data.observations.values.max()) == (0.5, 4.0)
    assert data.extras["trust"].shape == (1_642, 1_642)
    assert data.extras["trust"].nnz == 1_853


def test_ciao():
    data = datasets.load_ciao()
    seen = data.observations
    assert (seen.shape, seen.nnz, n_parts(seen)) == ((2_248, 16_861), 35_835, 83)
    assert (data.col_features[seen.indices, data.cells["category"]] == 1).all()
    assert np.bincount(data.col_features.sum(axis=1).astype(int)).tolist() == [0, 16_858, 3]
    assert set(seen.values) == {1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.parametrize(
    ("name", "shape", "n_classes", "n_train"),
    [
        ("letter", (20_000, 16), 26, 16_000),
        ("segment", (2_310, 18), 7, 2_310),
        ("covtype", (15_120, 54), 7, 15_120),
        ("mushroom", (8_124, 112), 2, 8_124),
    ],
)
def test_class_sets(name, shape, n_classes, n_train):
    data = getattr(datasets, f"load_{name}")()
    assert data.X.shape == shape
    assert len(data.feature_names) == shape[1]
    assert len(data.class_names) == n_classes == data.y.max() + 1
    assert len(data.train) == n_train
    assert len(data.train) + len(data.test) == shape[0]
    if name in ("segment", "covtype"):
        assert len(set(np.bincount(data.y))) == 1


def test_mushroom_equals_its_svmlight_form():
    data = datasets.load_mushroom()
    folder = Path(HOME) / "mushroom"
    X, y = read_svmlight(folder / "mushroom.svm.gz", n_features=112)
    assert (data.X != X).nnz == 0
    np.testing.assert_array_equal(data.y, y)
    assert data.feature_names == (folder / "features.txt").read_text().split()
    assert np.bincount(data.y).tolist() == [4_208, 3_916]


def test_nci_dream():
    data = datasets.load_nci_dream()
    assert data.observations.shape == (44, 31)
    assert data.row_features.shape == (44, 36_953)
    assert set(np.unique(data.row_features)) == {0.0, 1.0}
    everything = datasets.load_nci_dream(profiled_only=False)
    assert (everything.observations.shape, everything.observations.nnz) == ((53, 31), 1_282)
    assert everything.extras["is_test_row"].sum() == 18
    assert everything.row_features is None
    assert everything.observations.values.max() < 12
    assert everything.observations.row_ids[0] == "HCC1954"
    assert "BT20" in everything.observations.row_ids
    assert "BT20" not in data.observations.row_ids
