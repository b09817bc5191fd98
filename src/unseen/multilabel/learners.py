"""One learner of an ensemble: parts of the instances, each with a linear map and its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.multilabel.neighbours import Metric, NeighbourIndex, Search, votes
from unseen.multilabel.partition import assign
from unseen.multilabel.regression import LinearMap
from unseen.multilabel.scaling import unit_csr
from unseen.typing import CSR, Array, Features, FloatArray, IndexArray

__all__ = ["Learner", "LearnerSearch", "Part"]


@dataclass(frozen=True)
class Part:
    """A part of the instances.

    Attributes
    ----------
    rows : int64 array of shape (n,)
        Training rows that are in it.
    map : LinearMap
        From features to embeddings.
    points : array of shape (n, r)
        Embeddings of its rows, by the map.
    label_points : array of shape (n_labels, r) or None
        Embeddings of the labels, where they are learned together.
    """

    rows: IndexArray
    map: LinearMap
    points: FloatArray
    label_points: FloatArray | None = None


@dataclass(frozen=True)
class Learner:
    """A partition and what was learned in each part.

    Attributes
    ----------
    directions : array of shape (n_parts, d)
        A row belongs to the part with the largest inner product.
    parts : list of Part
        In the same order.
    """

    directions: FloatArray
    parts: list[Part]


class LearnerSearch:
    """Scores of new rows by one learner; indexes are built once and used for all blocks of rows.

    Parameters
    ----------
    learner : Learner
        What was learned.
    labels : csr_array of shape (n, n_labels)
        Labels of all training rows.
    k : int
        Neighbours that vote.
    metric : {"cosine", "l2", "dot"}
        How near they are.
    power : float
        Exponent of the cosine in the weight of a vote.
    search : {"exact", "usearch"}
        How they are found.
    n_threads : int
        Threads.
    """

    def __init__(
        self,
        learner: Learner,
        labels: CSR,
        *,
        k: int,
        metric: Metric,
        power: float,
        search: Search,
        n_threads: int,
    ) -> None:
        self.learner, self.k, self.power, self.n_threads = learner, k, power, n_threads
        self._labels = [labels[part.rows] for part in learner.parts]
        self._indexes = [
            NeighbourIndex(part.points, metric, search=search, n_threads=n_threads) for part in learner.parts
        ]

    def votes(self, X: Features) -> CSR:
        """Average labels of the neighbours of each row."""
        return self._by_part(X, lambda number, z: self._votes(number, z))

    def combined(self, X: Features) -> FloatArray:
        """Votes and inner products with label embeddings, each scaled to length one and added."""
        dense = [(rows, self._combined_dense(number, z)) for number, rows, z in self._embedded(X)]
        out = np.empty((X.shape[0], self._labels[0].shape[1]), dtype=X.dtype)
        for rows, scores in dense:
            out[rows] = scores
        return out

    def combined_candidates(self, X: Features, k: int, first: IndexArray) -> CSR:
        """The combined scores of all labels that can be among the k best.

        Votes are not negative, so a label without votes is among the k best only if fewer than k labels
        have a larger inner product: the k largest and the labels with votes are enough. Rows with an
        embedding of zero get the labels of `first`, those that come first among equals.
        """
        return self._by_part(X, lambda number, z: self._combined_sparse(number, z, k, first))

    def _embedded(self, X: Features) -> list[tuple[int, IndexArray, FloatArray]]:
        directions = self.learner.directions
        belongs = (
            np.zeros(X.shape[0], dtype=np.int64)
            if len(directions) == 1
            else assign(X, directions, n_threads=self.n_threads)
        )
        out: list[tuple[int, IndexArray, FloatArray]] = []
        for number, part in enumerate(self.learner.parts):
            rows = np.flatnonzero(belongs == number)
            if rows.size:
                own = X if rows.size == X.shape[0] else X[rows]
                out.append((number, rows, part.map.apply(own, n_threads=self.n_threads)))
        return out

    def _by_part(self, X: Features, score: Callable[[int, FloatArray], CSR]) -> CSR:
        found = [(rows, score(number, z)) for number, rows, z in self._embedded(X)]
        if not found:
            return sparse.csr_array((X.shape[0], self._labels[0].shape[1]), dtype=X.dtype)
        if len(found) == 1:
            return found[0][1]
        back = np.argsort(np.concatenate([rows for rows, _ in found]), kind="stable")
        stacked: CSR = sparse.csr_array(sparse.vstack([scores for _, scores in found], format="csr"))
        return stacked[back]

    def _votes(self, number: int, z: FloatArray) -> CSR:
        ids, cosines = self._indexes[number].search(z, self.k)
        return votes(ids, cosines, self._labels[number], power=self.power)

    def _combined_dense(self, number: int, z: FloatArray) -> FloatArray:
        points = self._label_points(number)
        by_votes = self._votes(number, z)
        by_label = z @ points.T
        scale = _inverse(
            np.sqrt(np.einsum("ij,ij->i", by_label, by_label, dtype=np.float64, casting="same_kind"))
        )
        by_label *= scale.astype(z.dtype)[:, None]
        by_label += unit_csr(by_votes).toarray()
        return by_label

    def _combined_sparse(self, number: int, z: FloatArray, k: int, first: IndexArray) -> CSR:
        points = self._label_points(number)
        by_votes = unit_csr(self._votes(number, z))
        wide, n_labels = points.astype(np.float64), len(points)
        lengths = np.einsum("ij,ij->i", z.astype(np.float64) @ (wide.T @ wide), z.astype(np.float64))
        scale = _inverse(np.sqrt(np.maximum(lengths, 0.0))).astype(z.dtype)
        ids, _ = kernels.topk(z, points, min(k, n_labels), n_threads=self.n_threads)
        ids[scale == 0.0] = first[: ids.shape[1]]
        voted = _keys(by_votes)
        keys = np.union1d(voted, (np.arange(len(z))[:, None] * n_labels + ids).ravel())
        rows = keys // n_labels
        indptr = np.searchsorted(rows, np.arange(len(z) + 1))
        columns = keys - rows * n_labels
        scores = kernels.sddmm(indptr, columns, z, points, n_threads=self.n_threads) * scale[rows]
        scores[np.searchsorted(keys, voted)] += by_votes.data
        # Made by hand: adding sparse matrices would drop scores that are exactly zero.
        return sparse.csr_array((scores, columns, indptr), shape=by_votes.shape)

    def _label_points(self, number: int) -> FloatArray:
        points = self.learner.parts[number].label_points
        assert points is not None
        return points


def _keys(scores: CSR) -> IndexArray:
    """Row and column of each stored cell as one number."""
    counts = np.diff(scores.indptr)
    rows = np.repeat(np.arange(scores.shape[0], dtype=np.int64), counts)
    keys: IndexArray = rows * scores.shape[1] + scores.indices
    return keys


def _inverse(lengths: Array) -> Array:
    """One over each length; a length of zero contributes nothing."""
    inverse: Array = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    return inverse
