"""AnnexML: parts and embeddings that keep the graph of rows with the same labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from unseen.embeddings import joint_regression
from unseen.embeddings.graph import neighbor_counts
from unseen.multilabel.neighbour_base import LabelEmbedding, Learned, NeighbourClassifier
from unseen.multilabel.neighbours import Metric, Search
from unseen.multilabel.pairs import pair_partition
from unseen.multilabel.regression import LinearMap
from unseen.typing import CSR, Features, FloatArray, IndexArray
from unseen.validation import check_count, check_positive

__all__ = ["AnnexML"]


class AnnexML(NeighbourClassifier):
    """An ensemble whose parts and embeddings keep the graph of rows with the same labels.

    Each row has the `n_neighbors` others with the largest sums over shared labels of 1 / (labels of the
    other). Each learner first splits the rows by hyperplanes w_c with L1 penalties, so that a row and its
    neighbours are on the side of the same one::

        c = argmax_c w_c.x_i,    max  sum over neighbours j of log s(w_c.x_j) + random j' of log s(-w_c.x_j')

    and then learns in each part a linear map V under which neighbours are near and random rows are not::

        max_V  sum_i [ sum over neighbours j of log s(gamma cos(Vx_i, Vx_j))
                       + sum over random j' of log s(-gamma cos(Vx_i, Vx_j')) ]

    A new row goes to the part of its largest hyperplane and gets the average labels of the k nearest rows
    there, found by comparison with all or by a walk on an approximate graph of neighbours (`search`). Scores
    of the learners are added.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of a row in the space of labels, and random rows beside each.
    n_clusters : int or "auto", default="auto"
        Parts; "auto" has one for each 6,000 rows.
    n_learners : int, default=15
        Members of the ensemble.
    gamma : float, default=10.0
        How steep the loss is in the cosine.
    learning_rate : float, default=0.1
        First step length of both stages, AdaGrad's.
    l1 : float, default=4.0
        Penalty of the hyperplanes, in sums of gradients.
    max_iter : int, default=10
        Passes over the rows, of either stage.
    search : {"exact", "usearch"}, default="exact"
        Compare with all rows of the part, or walk an approximate index (package usearch).
    random_state : int, Generator, RandomState or None
        Starts, orders and random rows.
    n_jobs : int, optional
        Threads of the graph and of predictions. Results do not depend on it.

    Attributes
    ----------
    learners_ : list of Learner
        Hyperplanes, maps and points.
    labels_ : csr_array
        Labels of the training rows that vote.
    label_counts_ : array of shape (n_labels,)
        Training rows of each label.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import AnnexML
    >>> X = np.repeat(np.eye(3), 20, axis=0)
    >>> Y = np.repeat(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]), 20, axis=0)
    >>> model = AnnexML(4, n_learners=2, random_state=0).fit(X, Y)
    >>> sorted(model.predict_topk(np.eye(3), k=2)[0][0].tolist())
    [0, 1]
    """

    partition = "graph"
    reg, prune = 1.0, 0.0
    unlabeled = "drop"

    def __init__(
        self,
        n_components: int = 50,
        *,
        n_neighbors: int = 10,
        n_clusters: int | str = "auto",
        n_learners: int = 15,
        gamma: float = 10.0,
        learning_rate: float = 0.1,
        l1: float = 4.0,
        max_iter: int = 10,
        k: int = 10,
        metric: Metric = "cosine",
        neighbor_power: float = 0.0,
        search: Search = "exact",
        normalize: bool = True,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_clusters = n_clusters
        self.n_learners = n_learners
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.l1 = l1
        self.max_iter = max_iter
        self.k = k
        self.metric = metric
        self.neighbor_power = neighbor_power
        self.search = search
        self.normalize = normalize
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_neighbors", self.n_neighbors)
        check_count("max_iter", self.max_iter)
        check_positive("gamma", self.gamma)
        check_positive("learning_rate", self.learning_rate)

    def _embed(self, Y: CSR, rng: np.random.Generator, n_threads: int) -> LabelEmbedding:
        raise NotImplementedError("AnnexML learns its map without embeddings before it")

    def _split(
        self, X: Features, Y: CSR, n_parts: int, rng: np.random.Generator, n_threads: int
    ) -> tuple[FloatArray, IndexArray]:
        if n_parts == 1:
            return super()._split(X, Y, n_parts, rng, n_threads)
        near = neighbor_counts(Y, self.n_neighbors, rng=rng, similarity="share", n_threads=n_threads)
        return pair_partition(
            sparse.csr_array(X),
            near,
            n_parts,
            rng,
            l1=self.l1,
            rate=self.learning_rate,
            max_iter=self.max_iter,
        )

    def _learn_map(self, X: Features, Y: CSR, rng: np.random.Generator, n_threads: int) -> Learned:
        weights = joint_regression(
            sparse.csr_array(X),
            Y,
            self.n_components,
            rng=rng,
            n_neighbors=self.n_neighbors,
            pool=None,
            n_negatives=self.n_neighbors,
            kernel="cosine",
            gamma=self.gamma,
            rate=self.learning_rate,
            ridge=0.0,
            max_iter=self.max_iter,
            n_threads=n_threads,
        )
        linear = LinearMap(np.arange(X.shape[1]), weights.astype(X.dtype, copy=False))
        return Learned(linear, None, self.max_iter)
