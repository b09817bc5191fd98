"""Trees over labels with a linear classifier for each branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.multilabel.base import MultiLabelClassifier
from unseen.multilabel.hierarchy import LabelHierarchy, group_labels, label_profiles
from unseen.multilabel.linear import kept_weights
from unseen.multilabel.scaling import scaled_rows, with_ones
from unseen.typing import CSR, Features, FloatArray, IndexArray
from unseen.validation import check_count, check_fraction, check_positive, check_rng

__all__ = ["LabelTree"]

BLOCK_WEIGHTS = 1 << 22
"""Weights, classifiers times features, that are learned at a time."""
BLOCK_PAIRS = 1 << 22
"""Rows of classifiers that are learned from at a time."""
PAIRS_AT_A_TIME = 1 << 20
"""Scores of rows and children of nodes that exist at a time."""
ROWS_AT_A_TIME = 2048


class LabelTree(MultiLabelClassifier):
    """Labels in a tree: rows walk down to the few groups whose labels are then ranked.

    A label is described by the sum of its rows' features, scaled to length one. Groups of labels are split
    in two halves of equal size by their cosines, or in `branching` groups by k-means, until a group has at
    most `max_leaf` labels. For each child c of a node, a group or a label, a classifier learns from the rows
    that have a label under the node, with t_i = 1 where row i has one under the child and -1 elsewhere::

        min  1/2 ||w_c||^2 + C sum_i max(0, 1 - t_i w_c.x_i)^2

    by coordinate descent in the dual. A new row keeps its `beam` most likely nodes at each depth, and a
    label has the score::

        prod over its way of exp(-max(0, 1 - w_c.x)^2),  averaged over the trees.

    With two balanced branches this is Parabel; with many by k-means and few levels it is Bonsai.

    Parameters
    ----------
    n_trees : int, default=3
        Trees; they differ by the labels that groups start from.
    branching : int, default=2
        Groups that a group is split into.
    max_leaf : int, default=100
        Labels of a group that is not split.
    balanced : bool, default=True
        Whether groups of a split are of equal size, or those of k-means.
    beam : int, default=10
        Nodes that a row keeps at each depth.
    threshold : float, default=0.37
        Score above which `predict` gives a label.
    normalize : bool, default=True
        Whether rows of features are scaled to length one, before a constant is added.
    tol : float, default=0.01
        Largest violation of optimality in the dual that is accepted.
    max_iter : int, default=100
        Limit of passes over the rows of a classifier.
    random_state : int, Generator, RandomState or None
        Draws the labels that groups start from.

    Attributes
    ----------
    trees_ : list of LabelHierarchy
        Groups and classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import LabelTree
    >>> X = np.repeat(np.eye(4), 5, axis=0)
    >>> Y = np.repeat(np.eye(4, dtype=int), 5, axis=0)
    >>> model = LabelTree(2, max_leaf=2, C=10.0, random_state=0).fit(X, Y)
    >>> model.predict_topk(np.eye(4), k=1)[0].ravel().tolist()
    [0, 1, 2, 3]
    """

    _why_no_weights = "classifiers of a node count rows"

    def __init__(
        self,
        n_trees: int = 3,
        *,
        branching: int = 2,
        max_leaf: int = 100,
        balanced: bool = True,
        beam: int = 10,
        C: float = 1.0,
        prune: float = 0.01,
        threshold: float = 0.37,
        normalize: bool = True,
        tol: float = 0.01,
        max_iter: int = 100,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.branching = branching
        self.max_leaf = max_leaf
        self.balanced = balanced
        self.beam = beam
        self.C = C
        self.prune = prune
        self.threshold = threshold
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Features, Y: CSR) -> None:
        grouping: dict[str, Any] = {
            "branching": check_count("branching", self.branching, minimum=2),
            "max_leaf": check_count("max_leaf", self.max_leaf),
            "balanced": self.balanced,
        }
        check_count("beam", self.beam)
        check_positive("C", self.C)
        check_positive("prune", self.prune, strict=False)
        check_fraction("threshold", self.threshold, include_low=True)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        rng = check_rng(self.random_state)
        features = self._features(X)
        profiles = label_profiles(sparse.csr_array(features[:, :-1]), Y)
        self.trees_ = []
        for _ in range(check_count("n_trees", self.n_trees)):
            starts, ends = group_labels(profiles, rng, n_threads=self._n_threads(), **grouping)
            self.trees_.append(LabelHierarchy(starts, ends, self._classifiers(features, Y, starts, ends)))
        self.n_iter_ = 1
        self.history_: list[dict[str, Any]] = []

    def _features(self, X: Features) -> CSR:
        """Rows as the classifiers see them: of length one, then a constant."""
        rows: CSR = sparse.csr_array(with_ones(scaled_rows(X) if self.normalize else X))
        rows.sort_indices()
        return rows

    def _classifiers(self, X: CSR, Y: CSR, starts: IndexArray, ends: IndexArray) -> CSR:
        """Weights of all children, a block of them at a time."""
        below = _rows_below(Y, starts, ends)
        parents = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        everyone = np.arange(Y.shape[0])
        learned = []
        counts = np.array([len(everyone) if not parent else len(below[parent]) for parent in parents])
        by_label = sparse.csc_array(Y)
        for first, last in _blocks(counts, X.shape[1]):
            groups = [below[parent] if parent else everyone for parent in parents[first:last]]
            sizes = counts[first:last]
            signs = np.full(int(sizes.sum()), -1, dtype=np.int8)
            at = 0
            for end, rows in zip(ends[first:last], groups, strict=True):
                own = below[end] if end >= 0 else _column(by_label, -1 - end)
                signs[at + np.searchsorted(rows, own)] = 1
                at += len(rows)
            weights = kernels.linear_duals(
                X,
                kernels.RowGroups(np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(groups)),
                signs,
                C=(self.C, self.C),
                tol=self.tol,
                max_passes=self.max_iter,
                n_threads=self._n_threads(),
            )
            learned.append(kept_weights(weights, self.prune))
        return sparse.csr_array(sparse.vstack(learned, format="csr"))

    def _scores(self, X: Features) -> FloatArray | CSR:
        rows = self._features(X)
        total = self.trees_[0].scores(rows, self.beam, self.n_labels_)
        for tree in self.trees_[1:]:
            total = sparse.csr_array(total + tree.scores(rows, self.beam, self.n_labels_))
        total.data /= total.dtype.type(len(self.trees_))
        return total.toarray() if self.multi_class_ else total  # few classes, many labels

    def _block_rows(self) -> int:
        widest = max(int(np.diff(tree.starts).max()) for tree in self.trees_)
        fitting = PAIRS_AT_A_TIME // (min(self.beam, self.n_labels_) * widest)
        limit = super()._block_rows() if self.multi_class_ else ROWS_AT_A_TIME
        return max(1, min(fitting, limit))


def _column(matrix: Any, number: int) -> IndexArray:
    rows: IndexArray = matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]]
    return rows


def _rows_below(Y: CSR, starts: IndexArray, ends: IndexArray) -> list[IndexArray]:
    """Rows that have a label under each node, in order."""
    by_label = sparse.csc_array(Y)
    below: list[IndexArray] = [np.empty(0, dtype=np.int64)] * (len(starts) - 1)
    for node in range(len(starts) - 2, -1, -1):  # children have larger numbers
        found = [
            below[end] if end >= 0 else _column(by_label, -1 - end)
            for end in ends[starts[node] : starts[node + 1]]
        ]
        below[node] = np.unique(np.concatenate(found))
    return below


def _blocks(counts: IndexArray, width: int) -> Iterator[tuple[int, int]]:
    """Consecutive classifiers whose weights and rows are within the limits of a block."""
    first = 0
    while first < len(counts):
        sizes = np.cumsum(counts[first : first + max(1, BLOCK_WEIGHTS // width)])
        taken = max(1, int(np.searchsorted(sizes, BLOCK_PAIRS, side="right")))
        yield first, first + taken
        first += taken
