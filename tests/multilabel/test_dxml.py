"""DXML: walks on the graph of labels, the network, and the classifier over both."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unseen import DXML, load
from unseen.embeddings import deepwalk
from unseen.embeddings.walks import walk_counts
from unseen.exceptions import ParameterError
from unseen.metrics import precision_at_k
from unseen.multilabel import network


def data(n: int = 300, seed: int = 0) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Five groups with words and labels of their own."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, n)
    X = (rng.random((n, 20)) < np.where(np.arange(20) // 4 == group[:, None], 0.6, 0.05)) * 1.0
    Y = (rng.random((n, 15)) < np.where(np.arange(15) // 3 == group[:, None], 0.6, 0.02)) * 1.0
    return sparse.csr_array(X), sparse.csr_array(Y)


def test_walks_between_two_nodes_are_counted() -> None:
    graph = sparse.csr_array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    counts = walk_counts(graph, rng=np.random.default_rng(0), n_walks=7, length=3, window=2)
    # Each of 14 walks goes there and back: two pairs of neighbours, and one of a node with itself.
    assert counts.toarray().tolist() == [[0, 28, 0], [28, 0, 0], [0, 0, 0]]


def test_walks_take_edges_by_their_weights() -> None:
    graph = sparse.csr_array([[0.0, 3.0, 1.0], [3.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    counts = walk_counts(graph, rng=np.random.default_rng(0), n_walks=4000, length=2, window=1)
    # From node 0 three of four walks go to 1, and all walks from 1 and 2 go to 0.
    share = counts[0, 1] / (counts[0, 1] + counts[0, 2])
    assert share == pytest.approx((3 / 4 + 1) / 3, abs=0.01)
    assert share < 0.9
    assert abs(share - 0.5) > 0.05


def test_vectors_of_labels_that_occur_together_are_near() -> None:
    _, Y = data()
    graph = sparse.csr_array(Y.T @ Y)
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    Z = deepwalk(graph, 8, rng=np.random.default_rng(0))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    same = np.arange(15)[:, None] // 3 == np.arange(15) // 3
    cosines = Z @ Z.T
    assert cosines[same & ~np.eye(15, dtype=bool)].mean() > cosines[~same].mean() + 0.1


def test_without_torch_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    X, Y = data(30)
    with pytest.raises(ParameterError, match=r"unseen\[deep\]"):
        DXML(4).fit(X, Y)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="needs PyTorch: pip install 'unseen[deep]'")


def test_the_network_is_what_torch_learned(torch) -> None:
    X, _ = data(100)
    Z = np.random.default_rng(0).standard_normal((100, 3))
    found, losses = network.fit_network(
        X, Z, hidden=7, dropout=0.0, rate=1e-12, batch_size=100, max_iter=1, rng=np.random.default_rng(0)
    )
    gaps = abs(found.apply(X) - Z)
    huber = np.where(gaps < 1, 0.5 * gaps**2, gaps - 0.5)
    assert huber.mean() == pytest.approx(losses[0], rel=1e-5)  # steps of 1e-12 change nothing
    without = np.maximum(X @ found.inner, 0) @ found.weights + found.bias
    assert abs(without - found.apply(X)).max() > 1e-3  # the inner bias counts
    _, losses = network.fit_network(
        X, Z[:, :1] * 0 + X.sum(axis=1)[:, None], hidden=16, dropout=0.0, rate=0.01, batch_size=20,
        max_iter=60, rng=np.random.default_rng(0),
    )  # fmt: skip
    assert losses[-1] < 0.05 * losses[0]


def test_it_learns_and_leaves_torch_as_it_was(torch) -> None:
    X, Y = data(500)
    train, test = slice(0, 300), slice(300, 500)
    popular = np.full((200, 1), int(np.argmax(Y[train].sum(axis=0))))
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    model = DXML(8, hidden=32, max_iter=40, random_state=0).fit(X[train], Y[train])
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert model.history_[-1]["loss"] < 0.8 * model.history_[0]["loss"]
    reached = precision_at_k(Y[test], model.predict_topk(X[test])[0], 1)
    assert reached > precision_at_k(Y[test], popular, 1) + 0.2


def test_seeds_threads_and_files(torch, tmp_path) -> None:
    X, Y = data(120)
    settings = {"hidden": 8, "max_iter": 3, "n_learners": 2, "random_state": 0}
    one, other = (DXML(4, n_jobs=n_jobs, **settings).fit(X, Y) for n_jobs in (1, 3))
    assert one.learners_[1].parts[0].points.tobytes() == other.learners_[1].parts[0].points.tobytes()
    one.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_topk(X)[1], one.predict_topk(X)[1])


@pytest.mark.parametrize(
    "setting", [{"hidden": 0}, {"dropout": 1.0}, {"walk_length": 1}, {"learning_rate": 0.0}, {"max_iter": 0}]
)
def test_settings_out_of_range_are_refused(setting) -> None:
    X, Y = data(30)
    with pytest.raises(ParameterError, match=next(iter(setting))):
        DXML(4, **setting).fit(X, Y)
