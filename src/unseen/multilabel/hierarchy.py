"""Trees over labels: how labels are grouped, and the best labels of a row by walking down with a beam."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from unseen.multilabel.partition import spherical_kmeans
from unseen.multilabel.scaling import unit_csr
from unseen.typing import CSR, FloatArray, IndexArray

__all__ = ["LabelHierarchy", "balanced_halves", "group_labels", "label_profiles"]

HALVING_ROUNDS = 20


@dataclass(frozen=True)
class LabelHierarchy:
    """A tree whose nodes hold labels or other nodes, with a linear classifier for each child of a node.

    Attributes
    ----------
    starts : int64 array of shape (n_nodes + 1,)
        Node i has the children ``starts[i]`` to ``starts[i + 1] - 1``; node 0 is the root.
    ends : int64 array of shape (n_children,)
        Where a child leads: the number of a node, larger than its parent's, or ``-1 - label``.
    weights : csr_array of shape (n_children, n_features)
        Classifiers.
    """

    starts: IndexArray
    ends: IndexArray
    weights: CSR

    def scores(self, X: CSR, beam: int, n_labels: int) -> CSR:
        """Chances of the labels that a beam reaches.

        A child whose classifier gives z is chosen with the chance ``exp(-max(0, 1 - z)^2)``, and a label
        has the product along its way. At each depth a row keeps its `beam` most likely nodes, equal ones by
        number.

        Parameters
        ----------
        X : csr_array of shape (n, n_features)
        beam : int
        n_labels : int

        Returns
        -------
        csr_array of shape (n, n_labels)
        """
        rows: IndexArray = np.arange(X.shape[0])
        nodes: IndexArray = np.zeros(X.shape[0], dtype=np.int64)
        logs: FloatArray = np.zeros(X.shape[0], dtype=X.dtype)
        found: list[tuple[IndexArray, IndexArray, FloatArray]] = []
        while rows.size:
            rows, ends, logs = self._children(X, rows, nodes, logs)
            is_label = ends < 0
            found.append((rows[is_label], -1 - ends[is_label], logs[is_label]))
            rows, nodes, logs = _kept(rows[~is_label], ends[~is_label], logs[~is_label], beam)
        at, labels, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        scores = sparse.coo_array((np.exp(values), (at, labels)), shape=(X.shape[0], n_labels))
        return sparse.csr_array(scores)

    def _children(
        self, X: CSR, rows: IndexArray, nodes: IndexArray, logs: FloatArray
    ) -> tuple[IndexArray, IndexArray, FloatArray]:
        """All children of the nodes that rows are at, a node at a time."""
        order = np.argsort(nodes, kind="stable")
        rows, logs = rows[order], logs[order]
        numbers, first = np.unique(nodes[order], return_index=True)
        out: list[tuple[IndexArray, IndexArray, FloatArray]] = []
        for node, own in zip(numbers, np.split(np.arange(len(rows)), first[1:]), strict=True):
            below = slice(self.starts[node], self.starts[node + 1])
            z = (X[rows[own]] @ self.weights[below].T).toarray()
            reached = logs[own][:, None] - np.square(np.maximum(1 - z, 0))
            width = reached.shape[1]
            out.append((np.repeat(rows[own], width), np.tile(self.ends[below], len(own)), reached.ravel()))
        at, ends, values = (np.concatenate(parts) for parts in zip(*out, strict=True))
        return at, ends, values


def _kept(
    rows: IndexArray, nodes: IndexArray, logs: FloatArray, beam: int
) -> tuple[IndexArray, IndexArray, FloatArray]:
    order = np.lexsort((nodes, -logs, rows))
    rows, nodes, logs = rows[order], nodes[order], logs[order]
    best = np.arange(len(rows)) - np.searchsorted(rows, rows) < beam
    return rows[best], nodes[best], logs[best]


def label_profiles(X: CSR, Y: CSR) -> CSR:
    """Sum of the features of each label's rows, of length one; zeros for a label without rows."""
    total: CSR = sparse.csr_array(Y.T @ X)
    total.sort_indices()
    return unit_csr(total)


def balanced_halves(
    profiles: CSR, n_first: int, rng: np.random.Generator
) -> tuple[IndexArray, IndexArray, list[float]]:
    """Two groups of given sizes, each row near the mean direction of its own.

    Starts from two rows as centres. In turns, the `n_first` rows with the largest difference of cosines go to
    the first group, and the centres become the directions of the groups' sums. No turn lowers the sum of
    cosines.

    Parameters
    ----------
    profiles : csr_array of shape (n, d)
        Rows of length one, or zero.
    n_first : int
        Rows of the first group, between 1 and n - 1.
    rng : Generator
        Draws the rows to start from.

    Returns
    -------
    first, second : arrays
        Numbers of rows.
    reached : list of float
        The sum of cosines after each turn.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> rows = sparse.csr_array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.6, 0.8]])
    >>> sorted(sorted(group.tolist()) for group in balanced_halves(rows, 2, np.random.default_rng(0))[:2])
    [[0, 2], [1, 3]]
    """
    centres = profiles[rng.choice(profiles.shape[0], 2, replace=False)].toarray()
    reached: list[float] = []
    first = second = np.empty(0, dtype=np.int64)
    for _ in range(HALVING_ROUNDS):
        order = np.argsort(-(profiles @ (centres[0] - centres[1])), kind="stable")
        first, second = np.sort(order[:n_first]), np.sort(order[n_first:])
        sums = [np.asarray(profiles[group].sum(axis=0)).ravel() for group in (first, second)]
        lengths = [float(np.linalg.norm(total)) for total in sums]
        centres = np.array([total / (length or 1.0) for total, length in zip(sums, lengths, strict=True)])
        reached.append(sum(lengths))  # the sum of a group's cosines with its direction
        if len(reached) > 1 and reached[-1] <= reached[-2] * (1 + 1e-6):
            break
    return first, second, reached


def group_labels(
    profiles: CSR,
    rng: np.random.Generator,
    *,
    branching: int,
    max_leaf: int,
    balanced: bool,
    n_threads: int = 1,
) -> tuple[IndexArray, IndexArray]:
    """Split labels again and again until no group has more than `max_leaf`.

    Parameters
    ----------
    profiles : csr_array of shape (n_labels, d)
    rng : Generator
    branching : int
        Groups that a group is split into.
    max_leaf : int
        Labels of a group that is not split.
    balanced : bool
        Whether the groups of a split have equal sizes, by halves of halves, or those of k-means.
    n_threads : int

    Returns
    -------
    starts, ends : arrays
        See :class:`LabelHierarchy`.
    """
    waiting = [np.arange(profiles.shape[0])]
    starts, ends, n_nodes = [0], [], 1
    for labels in waiting:  # grows while it is walked: parents come before their children
        if len(labels) <= max_leaf:
            ends.append(-1 - labels)
        else:
            own, wanted = profiles[labels], min(branching, len(labels))
            if balanced:
                groups = _balanced(own, wanted, rng)
            else:
                _, parts = spherical_kmeans(own, wanted, rng, n_threads=n_threads)
                groups = [np.flatnonzero(parts == part) for part in range(wanted)]
            ends.append(n_nodes + np.arange(len(groups)))
            n_nodes += len(groups)
            waiting.extend(labels[group] for group in groups)
        starts.append(starts[-1] + len(ends[-1]))
    return np.array(starts), np.concatenate(ends)


def _balanced(profiles: CSR, n_groups: int, rng: np.random.Generator) -> list[IndexArray]:
    if n_groups == 1:
        return [np.arange(profiles.shape[0])]
    first_groups = n_groups // 2
    size = profiles.shape[0] * first_groups // n_groups
    first, second, _ = balanced_halves(profiles, size, rng)
    out: list[IndexArray] = []
    for group, count in ((first, first_groups), (second, n_groups - first_groups)):
        out.extend(group[part] for part in _balanced(profiles[group], count, rng))
    return out
