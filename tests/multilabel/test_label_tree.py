"""LabelTree: groups of labels, classifiers of branches, and the walk with a beam."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unseen import LabelTree, LinearOvA, load
from unseen.exceptions import ModelFileError, ParameterError
from unseen.metrics import precision_at_k
from unseen.multilabel.hierarchy import LabelHierarchy, balanced_halves, group_labels, label_profiles


def data(n: int = 300, seed: int = 0) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Four groups of three labels; words tell the group, and less clearly the label."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 12, n)
    X = (rng.random((n, 28)) < 0.1) * 1.0
    X[np.arange(n), label // 3] += 2.0
    X[np.arange(n), 4 + label] += 1.0
    Y = (rng.random((n, 12)) < 0.03) * 1.0
    Y[np.arange(n), label] = 1.0
    return sparse.csr_array(X), sparse.csr_array(Y)


@pytest.fixture(scope="module", params=[(2, True), (3, False)])
def fitted(request) -> tuple[LabelTree, sparse.csr_array, sparse.csr_array]:
    branching, balanced = request.param
    X, Y = data()
    model = LabelTree(2, branching=branching, balanced=balanced, max_leaf=3, random_state=0, beam=99)
    return model.fit(X, Y), X, Y


def naive(tree: LabelHierarchy, x: np.ndarray, node: int = 0, log: float = 0.0) -> dict[int, float]:
    """Chances of all labels under a node, by walking to each."""
    found: dict[int, float] = {}
    for child in range(tree.starts[node], tree.starts[node + 1]):
        z = float(tree.weights[[child]].toarray()[0] @ x)
        below = log - max(0.0, 1.0 - z) ** 2
        end = int(tree.ends[child])
        found |= naive(tree, x, end, below) if end >= 0 else {-1 - end: np.exp(below)}
    return found


def test_every_label_is_in_one_leaf(fitted) -> None:
    model, _, _ = fitted
    for tree in model.trees_:
        assert sorted(-1 - tree.ends[tree.ends < 0]) == list(range(12))
        for node in range(len(tree.starts) - 1):
            ends = tree.ends[tree.starts[node] : tree.starts[node + 1]]
            assert (ends > node).all() or (len(ends) <= 3 and (ends < 0).all())


def test_a_wide_beam_gives_all_labels_the_product_of_their_way(fitted) -> None:
    model, X, _ = fitted
    scores = model.decision_function(X[:20]).toarray()
    rows = model._features(X[:20]).toarray()
    for row, x in enumerate(rows):
        ways = [naive(tree, x) for tree in model.trees_]
        wanted = [np.mean([way[label] for way in ways]) for label in range(12)]
        np.testing.assert_allclose(scores[row], wanted, rtol=1e-9, atol=1e-12)


def test_a_narrow_beam_keeps_the_best_node_at_each_depth(fitted) -> None:
    model, X, _ = fitted
    tree = model.trees_[0]
    rows = model._features(X[:20])
    scores = tree.scores(rows, 1, 12)
    for row, x in enumerate(rows.toarray()):
        node = 0
        while True:
            children = np.arange(tree.starts[node], tree.starts[node + 1])
            inner = children[tree.ends[children] >= 0]
            if not inner.size:
                break
            z = tree.weights[inner].toarray() @ x
            node = int(tree.ends[inner[np.argmin(np.maximum(0.0, 1.0 - z) ** 2)]])
        reached = set(-1 - tree.ends[children])
        assert reached <= set(scores[[row]].indices)
    assert scores.nnz < 20 * 12


def test_classifiers_learn_from_the_rows_under_their_parent(fitted) -> None:
    model, X, Y = fitted
    tree, rows = model.trees_[0], model._features(X).toarray()

    def under(end: int) -> np.ndarray:
        if end < 0:
            return Y.toarray()[:, -1 - end] > 0
        return np.any([under(int(e)) for e in tree.ends[tree.starts[end] : tree.starts[end + 1]]], axis=0)

    node = int(np.argmax(np.diff(tree.starts)[1:])) + 1  # not the root: not all rows are under it
    here = under(node)
    assert tree.starts[node + 1] - tree.starts[node] > 1
    assert 0 < here.sum() < len(rows)
    for child in range(tree.starts[node], tree.starts[node + 1]):
        inside = under(int(tree.ends[child]))[here]
        alone = LinearOvA(fit_intercept=False, prune=0.0, normalize=False, tol=1e-6).fit(
            rows[here], np.column_stack([inside, ~inside])
        )
        np.testing.assert_allclose(
            tree.weights[[child]].toarray()[0], alone.coef_[[0]].toarray()[0], atol=0.05
        )
        wrong = LinearOvA(fit_intercept=False, prune=0.0, normalize=False, tol=1e-6).fit(
            rows, np.column_stack([under(int(tree.ends[child])), ~under(int(tree.ends[child]))])
        )  # a classifier that learned from all rows is another
        assert abs(tree.weights[[child]].toarray()[0] - wrong.coef_[[0]].toarray()[0]).max() > 0.1


def test_halves_are_of_the_size_asked_for_and_no_turn_lowers_the_cosines() -> None:
    X, Y = data()
    profiles = label_profiles(X, Y)
    np.testing.assert_allclose(np.sqrt((profiles.toarray() ** 2).sum(axis=1)), 1.0)
    for n_first in (1, 5, 6):
        first, second, reached = balanced_halves(profiles, n_first, np.random.default_rng(3))
        assert len(first) == n_first
        assert sorted([*first, *second]) == list(range(12))
        assert all(np.diff(reached) >= -1e-12)
    starts, ends = group_labels(profiles, np.random.default_rng(0), branching=4, max_leaf=3, balanced=True)
    leaves = [ends[starts[node] : starts[node + 1]] for node in range(1, 5)]
    assert [len(leaf) for leaf in leaves] == [3, 3, 3, 3]


def test_labels_that_share_words_share_a_leaf() -> None:
    X, Y = data(2000)
    starts, ends = group_labels(
        label_profiles(X, Y), np.random.default_rng(0), branching=4, max_leaf=3, balanced=True
    )
    groups = [set(((-1 - ends[starts[node] : starts[node + 1]]) // 3).tolist()) for node in range(1, 5)]
    assert sum(len(group) == 1 for group in groups) >= 2


def test_threads_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.kernels import _arguments

    X, Y = data(120)
    one = LabelTree(2, max_leaf=3, random_state=0, n_jobs=1).fit(X, Y)
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)
    other = LabelTree(2, max_leaf=3, random_state=0, n_jobs=3).fit(X, Y)
    for ours, theirs in zip(one.trees_, other.trees_, strict=True):
        assert ours.weights.data.tobytes() == theirs.weights.data.tobytes()
    np.testing.assert_array_equal(one.predict_topk(X)[0], other.predict_topk(X)[0])


def test_trees_learn_about_as_well_as_all_classifiers() -> None:
    X, Y = data(900)
    train, test = slice(0, 600), slice(600, 900)
    tree = LabelTree(3, max_leaf=3, random_state=0).fit(X[train], Y[train])
    flat = LinearOvA().fit(X[train], Y[train])
    reached = [precision_at_k(Y[test], model.predict_topk(X[test])[0], 1) for model in (tree, flat)]
    assert reached[0] > reached[1] - 0.03
    assert reached[0] > 0.6


def test_saved_trees_come_back_and_altered_ones_do_not(fitted, tmp_path) -> None:
    model, X, _ = fitted
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_topk(X)[1], model.predict_topk(X)[1])
    ends = model.trees_[0].ends
    held = ends.copy()
    for forged in (0, 10_000, -13):  # a way back to the root, and past the end
        ends[np.flatnonzero(held >= 0)[0]] = forged
        with pytest.raises(ModelFileError, match="ends"):
            model.save(tmp_path / "loop")
        ends[:] = held


@pytest.mark.parametrize(
    "setting", [{"n_trees": 0}, {"branching": 1}, {"beam": 0}, {"C": 0.0}, {"prune": -1.0}]
)
def test_settings_out_of_range_are_refused(setting) -> None:
    X, Y = data(20)
    with pytest.raises(ParameterError, match=next(iter(setting))):
        LabelTree(**setting).fit(X, Y)
