"""What ExMLDS and SLEEC share: embed labels, regress on features, let neighbours vote."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from unseen.exceptions import ConvergenceWarning
from unseen.multilabel.base import MultiLabelClassifier
from unseen.multilabel.learners import Learner, LearnerSearch, Part
from unseen.multilabel.partition import graph_partition, spherical_kmeans
from unseen.multilabel.regression import LinearMap, regress
from unseen.multilabel.scaling import scaled_rows
from unseen.multilabel.selecting import best_of_dense, label_order, ranked
from unseen.typing import CSR, Features, FloatArray, IndexArray
from unseen.validation import (
    check_choice,
    check_count,
    check_fraction,
    check_n_jobs,
    check_positive,
    check_rng,
)

__all__ = ["LabelEmbedding", "NeighbourClassifier"]

DENSE_LABELS = 100_000
"""Above as many labels combined scores are computed for candidates alone."""
ROWS_A_PART = 6000
"""Rows of a part where their number is not given."""
ROWS_AT_A_TIME = 4096
"""Rows whose neighbours vote at a time."""


@dataclass(frozen=True)
class LabelEmbedding:
    """Embeddings of the rows of a label matrix.

    Attributes
    ----------
    rows : array of shape (n, r)
        Of the rows.
    labels : array of shape (n_labels, r) or None
        Of the labels, where they are embedded too.
    n_iter : int
        Rounds that it took.
    history : list of dict
        What was noted in each round.
    converged : bool or None
        Whether the rounds came to rest; None for those that are so many and no more.
    """

    rows: FloatArray
    labels: FloatArray | None = None
    n_iter: int = 1
    history: Sequence[dict[str, float]] = ()
    converged: bool | None = None


@dataclass(frozen=True)
class Learned:
    """What is learned in a part.

    Attributes
    ----------
    map : LinearMap
        From features to embeddings.
    label_points : array of shape (n_labels, r) or None
        Embeddings of labels.
    n_iter : int
        Rounds that it took.
    history : list of dict
        What was noted in each round.
    converged : bool or None
        Whether the rounds came to rest; None for those that are so many and no more.
    """

    map: LinearMap
    label_points: FloatArray | None = None
    n_iter: int = 1
    history: Sequence[dict[str, float]] = ()
    converged: bool | None = None


class NeighbourClassifier(MultiLabelClassifier):
    """Base of the classifiers that embed labels and let neighbours vote.

    A subclass sets the parameters that are read here and gives `_embed`, or `_learn_map` where the map
    is learned without a regression.
    """

    _why_no_weights = "neighbours are counted, and a part of a row is no neighbour"
    _unsettled = (
        "stopped at max_iter before its embedding settled; raise max_iter, or tol if this is accurate enough"
    )

    # Parameters of every subclass; scikit-learn wants them in its own __init__.
    n_components: int
    k: int
    metric: Any
    neighbor_power: float
    reg: float
    l1: float
    prune: float
    n_clusters: Any
    partition: Any
    n_learners: int
    unlabeled: str
    search: Any
    normalize: bool
    random_state: Any
    n_jobs: int | None

    @abstractmethod
    def _embed(self, Y: CSR, rng: np.random.Generator, n_threads: int) -> LabelEmbedding:
        """Embeddings of rows that all have labels."""

    def _learn_map(self, X: Features, Y: CSR, rng: np.random.Generator, n_threads: int) -> Learned:
        """Map from features to embeddings, and the embeddings of labels where there are any."""
        lengths = np.diff(Y.indptr)
        known = np.flatnonzero(lengths > 0)
        targets = np.zeros((Y.shape[0], self.n_components), dtype=X.dtype)
        label_points, found = None, None
        if known.size:
            found = self._embed(Y[known] if known.size < len(lengths) else Y, rng, n_threads)
            targets[known, : found.rows.shape[1]] = found.rows
            if found.labels is not None:
                label_points = np.zeros((Y.shape[1], self.n_components), dtype=X.dtype)
                label_points[:, : found.labels.shape[1]] = found.labels
        linear = regress(X, targets, self.reg, l1=self.l1, prune=self.prune, n_threads=n_threads)
        if found is None:
            return Learned(linear)
        return Learned(linear, label_points, found.n_iter, found.history, found.converged)

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)
        check_count("k", self.k)
        check_choice("metric", self.metric, ("cosine", "l2", "dot"))
        check_fraction(
            "neighbor_power", self.neighbor_power, high=1000.0, include_low=True, include_high=True
        )
        check_positive("reg", self.reg)
        check_positive("l1", self.l1, strict=False)
        check_fraction("prune", self.prune, include_low=True)
        if self.n_clusters != "auto":
            check_count("n_clusters", self.n_clusters)
        check_choice("partition", self.partition, ("kmeans", "graph"))
        check_count("n_learners", self.n_learners)
        check_choice("unlabeled", self.unlabeled, ("drop", "keep"))
        check_choice("search", self.search, ("exact", "usearch"))

    def _fit(self, X: Features, Y: CSR) -> None:
        self._check_parameters()
        n_threads = check_n_jobs(self.n_jobs)
        rng = check_rng(self.random_state)
        kept = np.arange(Y.shape[0])
        if self.unlabeled == "drop":
            kept = np.flatnonzero(np.diff(Y.indptr))
        features = self._scaled(X if kept.size == Y.shape[0] else X[kept])
        self.labels_ = Y if kept.size == Y.shape[0] else Y[kept]
        self.label_counts_ = np.bincount(self.labels_.indices, minlength=Y.shape[1]).astype(np.int64)
        self.n_iter_ = 1
        self.history_: list[dict[str, Any]] = []
        self.__dict__.pop("converged_", None)
        self.learners_ = [
            self._fit_learner(features, self.labels_, rng, n_threads) for _ in range(self.n_learners)
        ]
        if not getattr(self, "converged_", True):
            warnings.warn(f"a part {self._unsettled}", ConvergenceWarning, stacklevel=4)

    def _fit_learner(self, X: Features, Y: CSR, rng: np.random.Generator, n_threads: int) -> Learner:
        wanted = X.shape[0] // ROWS_A_PART if self.n_clusters == "auto" else self.n_clusters
        n_parts = min(max(wanted, 1), X.shape[0])
        directions, parts = self._split(X, Y, n_parts, rng, n_threads)
        filled = np.flatnonzero(np.bincount(parts, minlength=n_parts))
        # A part has random numbers of its own, so what it learns does not hang on the other parts.
        sources = rng.spawn(len(filled))
        learned = [
            self._fit_part(X, Y, np.flatnonzero(parts == part), source, n_threads)
            for part, source in zip(filled, sources, strict=True)
        ]
        return Learner(np.ascontiguousarray(directions[filled]), learned)

    def _split(
        self, X: Features, Y: CSR, n_parts: int, rng: np.random.Generator, n_threads: int
    ) -> tuple[FloatArray, IndexArray]:
        if n_parts == 1:
            return np.zeros((1, X.shape[1]), dtype=X.dtype), np.zeros(X.shape[0], dtype=np.int64)
        if self.partition == "graph":
            return graph_partition(X, Y, n_parts, rng, n_threads=n_threads)
        return spherical_kmeans(X, n_parts, rng, n_threads=n_threads)

    def _fit_part(
        self, X: Features, Y: CSR, rows: IndexArray, rng: np.random.Generator, n_threads: int
    ) -> Part:
        own, labels = (X, Y) if rows.size == X.shape[0] else (X[rows], Y[rows])
        found = self._learn_map(own, labels, rng, n_threads)
        self.n_iter_ = max(self.n_iter_, int(found.n_iter))
        self.history_ = [*self.history_, *found.history]
        if found.converged is not None:
            self.converged_ = found.converged and getattr(self, "converged_", True)
        return Part(rows, found.map, found.map.apply(own, n_threads=n_threads), found.label_points)

    def _scaled(self, X: Features) -> Features:
        """Rows of length one, if that is wanted; rows of zeros stay."""
        return scaled_rows(X) if self.normalize else X

    def _searches(self) -> list[LearnerSearch]:
        return [
            LearnerSearch(
                learner,
                self.labels_,
                k=self.k,
                metric=self.metric,
                power=self.neighbor_power,
                search=self.search,
                n_threads=check_n_jobs(self.n_jobs),
            )
            for learner in self.learners_
        ]

    def _has_label_points(self) -> bool:
        return self.learners_[0].parts[0].label_points is not None

    def _total_votes(self, searches: list[LearnerSearch], X: Features) -> CSR:
        total = searches[0].votes(X)
        for search in searches[1:]:
            total = sparse.csr_array(total + search.votes(X))
        return total

    def _scores(self, X: Features) -> FloatArray | CSR:
        searches, features = self._searches(), self._scaled(X)
        if not self._has_label_points():
            votes = self._total_votes(searches, features)
            return votes.toarray() if self.multi_class_ else votes  # few classes, many labels
        total: FloatArray = sum(search.combined(features) for search in searches)  # type: ignore[assignment]
        return total

    def _threshold(self) -> float:
        return 0.5 * self.n_learners  # each learner gives the share of its neighbours

    def _block_rows(self) -> int:
        if self.search == "usearch":
            return 1 << 16  # an index is built for each block
        return super()._block_rows() if self._has_label_points() else ROWS_AT_A_TIME

    def _best(self, X: Features, k: int) -> tuple[IndexArray, FloatArray]:
        searches, X = self._searches(), self._scaled(X)
        place = label_order(self.label_counts_)
        if not self._has_label_points():
            return ranked(self._total_votes(searches, X), k, place)
        if len(searches) > 1 and self.labels_.shape[1] <= DENSE_LABELS:
            total: Any = sum(search.combined(X) for search in searches)
            return best_of_dense(total, k, np.argsort(place))
        first = np.argsort(place)[:k]
        candidates = [search.combined_candidates(X, k, first) for search in searches]
        total = candidates[0]
        for more in candidates[1:]:
            total = sparse.csr_array(total + more)
        return ranked(total, k, place, fill=False)
