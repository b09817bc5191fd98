"""Trees over rows whose nodes are split by rankings of labels and whose leaves hold shares of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.kernels.reference_labels import SIDE_BORDER
from unseen.typing import CSR, FloatArray, IndexArray

__all__ = ["LabelForest", "grow_forest", "pair_products"]

SPLIT_CELLS = 1 << 22
"""Weights, nodes times features, that are learned at a time."""
TOGETHER = 1 << 24
"""Rows, each counted once a tree, of the trees that grow at a time."""
PAIRS = 1 << 16
"""Products of two sparse rows that are computed at a time."""


@dataclass(frozen=True)
class LabelForest:
    """Binary trees side by side.

    A place is the number of a split, or ``-1 - number`` of a leaf. Children have larger numbers than their
    parents.

    Attributes
    ----------
    roots : int64 array of shape (n_trees,)
        Places.
    splits : csr_array of shape (n_splits, n_features)
        A row whose product with the weights is above 1e-6 goes to the first child, any other to the second.
    children : int64 array of shape (n_splits, 2)
        Places.
    leaves : csr_array of shape (n_leaves, n_labels)
        Average labels of the training rows in a leaf, the largest only.
    """

    roots: IndexArray
    splits: CSR
    children: IndexArray
    leaves: CSR

    def leaves_of(self, X: CSR) -> IndexArray:
        """Leaf of each row in each tree, of shape (n, n_trees)."""
        n_trees = len(self.roots)
        place = np.tile(self.roots, X.shape[0])
        walking = np.flatnonzero(place >= 0)
        while walking.size:
            products = pair_products(X, walking // n_trees, self.splits, place[walking])
            place[walking] = self.children[place[walking], (products <= SIDE_BORDER).astype(np.int64)]
            walking = walking[place[walking] >= 0]
        return (-1 - place).reshape(X.shape[0], n_trees)

    def shares(self, X: CSR) -> CSR:
        """Labels of the leaves of each row, averaged over the trees."""
        n_rows, n_trees = X.shape[0], len(self.roots)
        leaves = self.leaves_of(X).ravel()
        ones = np.ones(len(leaves), dtype=self.leaves.dtype)
        chosen = sparse.csr_array(
            (ones, leaves, np.arange(n_rows + 1) * n_trees), shape=(n_rows, self.leaves.shape[0])
        )
        found: CSR = sparse.csr_array(chosen @ self.leaves)
        found.data /= found.dtype.type(n_trees)
        found.sort_indices()
        return found


def pair_products(left: CSR, rows: IndexArray, right: CSR, others: IndexArray) -> FloatArray:
    """Inner products of rows of two sparse matrices, pair by pair."""
    out = np.empty(len(rows), dtype=np.result_type(left.dtype, right.dtype))
    for start in range(0, len(rows), PAIRS):
        here = slice(start, start + PAIRS)
        out[here] = np.asarray((left[rows[here]].multiply(right[others[here]])).sum(axis=1)).ravel()
    return out


def grow_forest(
    X: CSR,
    gains: CSR,
    targets: CSR,
    n_trees: int,
    rng: np.random.Generator,
    *,
    max_leaf: int,
    leaf_labels: int,
    C: float,
    tol: float,
    max_passes: int,
    n_threads: int = 1,
) -> LabelForest:
    """Grow trees from sides drawn at random, level by level and many at a time.

    Parameters
    ----------
    X : csr_array of shape (n, d)
        Features, a constant column included where one is wanted.
    gains : csr_array of shape (n, n_labels)
        What a label of a row is worth in the rankings; see :func:`unseen.kernels.label_splits`.
    targets : csr_array of shape (n, n_labels)
        What leaves average.
    n_trees : int
    rng : Generator
    max_leaf : int
        Nodes with no more rows are leaves; so are those that no weights split.
    leaf_labels : int
        Labels that a leaf keeps.
    C, tol, max_passes
        See :func:`unseen.kernels.label_splits`.
    n_threads : int

    Returns
    -------
    LabelForest
    """
    n_rows = X.shape[0]
    step = max(1, TOGETHER // n_rows)
    grown = _Growing(n_trees)
    for first in range(0, n_trees, step):
        trees = np.arange(first, min(first + step, n_trees))
        starts, rows = np.arange(len(trees) + 1) * n_rows, np.tile(np.arange(n_rows), len(trees))
        nodes = kernels.RowGroups(starts, rows)
        # The root of a tree hangs, like any node, at a place in a table.
        hooks = np.column_stack([np.full(len(trees), -1), trees])
        while len(nodes.starts) > 1:
            sizes = np.diff(nodes.starts)
            open_nodes = np.flatnonzero(sizes > max_leaf)
            grown.add_leaves(_chosen(nodes, np.flatnonzero(sizes <= max_leaf)), hooks[sizes <= max_leaf])
            nodes, hooks = _chosen(nodes, open_nodes), hooks[open_nodes]
            if not open_nodes.size:
                break
            sides = (2 * rng.integers(0, 2, len(nodes.rows)) - 1).astype(np.int8)
            weights = _split(X, gains, nodes, sides, C, tol, max_passes, n_threads)
            owner = np.repeat(np.arange(len(open_nodes)), np.diff(nodes.starts))
            ahead = np.bincount(owner[sides > 0], minlength=len(open_nodes))
            whole = (ahead == 0) | (ahead == np.diff(nodes.starts))
            grown.add_leaves(_chosen(nodes, np.flatnonzero(whole)), hooks[whole])
            parents = grown.add_splits(weights[~whole], hooks[~whole])
            kept = ~whole[owner]
            number = np.cumsum(~whole) - 1
            child = 2 * number[owner[kept]] + (sides[kept] < 0)
            order = np.argsort(child, kind="stable")
            counts = np.bincount(child, minlength=2 * len(parents))
            nodes = kernels.RowGroups(np.concatenate([[0], np.cumsum(counts)]), nodes.rows[kept][order])
            hooks = np.column_stack([np.repeat(parents, 2), np.tile([0, 1], len(parents))])
    return grown.finish(targets, leaf_labels, X.shape[1])


class _Growing:
    """Splits and leaves as they come; a hook says of which split, or tree (-1), a node is the child."""

    def __init__(self, n_trees: int) -> None:
        self.roots = np.zeros(n_trees, dtype=np.int64)
        self.weights: list[CSR] = []
        self.children = np.zeros((0, 2), dtype=np.int64)
        self.members: list[kernels.RowGroups] = []
        self.n_leaves = 0

    def add_leaves(self, members: kernels.RowGroups, hooks: IndexArray) -> None:
        """Rows of new leaves."""
        self._hang(hooks, -1 - (self.n_leaves + np.arange(len(hooks))))
        self.n_leaves += len(hooks)
        self.members.append(members)

    def add_splits(self, weights: CSR, hooks: IndexArray) -> IndexArray:
        """Weights of new splits; their numbers."""
        numbers = len(self.children) + np.arange(len(hooks))
        self._hang(hooks, numbers)
        self.weights.append(weights)
        self.children = np.concatenate([self.children, np.zeros((len(hooks), 2), dtype=np.int64)])
        return numbers

    def _hang(self, hooks: IndexArray, places: IndexArray) -> None:
        root = hooks[:, 0] < 0
        self.roots[hooks[root, 1]] = places[root]
        self.children[hooks[~root, 0], hooks[~root, 1]] = places[~root]

    def finish(self, targets: CSR, leaf_labels: int, width: int) -> LabelForest:
        """The forest, with the average labels of its leaves."""
        rows = np.concatenate([group.rows for group in self.members])
        sizes = np.concatenate([np.diff(group.starts) for group in self.members])
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        shares = np.repeat(1.0 / np.maximum(sizes, 1), sizes).astype(targets.dtype)
        members = sparse.csr_array((shares, rows, indptr), shape=(len(sizes), targets.shape[0]))
        averages = sparse.csr_array(members @ targets)
        splits = (
            sparse.csr_array(sparse.vstack(self.weights, format="csr"))
            if len(self.children)
            else sparse.csr_array((0, width), dtype=targets.dtype)
        )
        return LabelForest(self.roots, splits, self.children, largest_cells(averages, leaf_labels))


def largest_cells(matrix: CSR, most: int) -> CSR:
    """The `most` largest stored cells of each row; of equal ones those with lower columns."""
    matrix.sort_indices()
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.indices, -matrix.data, rows))
    rank = np.arange(len(rows)) - matrix.indptr[rows]
    kept = np.zeros(len(rows), dtype=bool)
    kept[order[rank < most]] = True
    counts = np.bincount(rows[kept], minlength=matrix.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape)


def _chosen(nodes: kernels.RowGroups, which: IndexArray) -> kernels.RowGroups:
    """Some of the groups."""
    sizes = np.diff(nodes.starts)[which]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(nodes.starts[which] - starts[:-1], sizes) + np.arange(starts[-1])
    return kernels.RowGroups(starts, nodes.rows[places])


def _split(
    X: CSR,
    gains: CSR,
    nodes: kernels.RowGroups,
    sides: IndexArray,
    C: float,
    tol: float,
    max_passes: int,
    n_threads: int,
) -> CSR:
    """Weights of all nodes, a block of nodes at a time; `sides` are found in place."""
    n_nodes, step = len(nodes.starts) - 1, max(1, SPLIT_CELLS // X.shape[1])
    parts = []
    for first in range(0, n_nodes, step):
        block = np.arange(first, min(first + step, n_nodes))
        span = slice(nodes.starts[first], nodes.starts[block[-1] + 1])
        weights = kernels.label_splits(
            X, gains, _chosen(nodes, block), sides[span], C=C, tol=tol, max_passes=max_passes,
            n_threads=n_threads,
        )  # fmt: skip
        parts.append(sparse.csr_array(weights))
    return sparse.csr_array(sparse.vstack(parts, format="csr"))
