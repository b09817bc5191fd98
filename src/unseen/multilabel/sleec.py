"""Sparse local embeddings for extreme classification."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from unseen.embeddings import svp
from unseen.multilabel.neighbour_base import LabelEmbedding, NeighbourClassifier
from unseen.multilabel.neighbours import Metric, Search
from unseen.multilabel.partition import Partition
from unseen.typing import CSR
from unseen.validation import check_count, check_positive

__all__ = ["SLEEC"]


class SLEEC(NeighbourClassifier):
    """Sparse local embeddings: keep the cosines of nearest label vectors, regress, let neighbours vote.

    In each part of the instances, with G_ij the cosine of the labels of i and j, and Omega the pairs of
    each instance with its `n_neighbors` nearest::

        min over M of rank at most n_components, M positive semidefinite:  sum_Omega (G_ij - M_ij)^2
        M = Z Z'
        V = argmin 1/2 ||Z - X V||^2 + reg/2 ||V||^2 + l1 ||X V||_1
        score(x) = 1/k sum of the labels y_i of the k nearest V'x_i of V'x

    The first problem is solved by singular value projection, whose steps never raise the objective.
    Scores of learners with different partitions are added.

    Neighbours at the same distance: the lower training row. Labels with the same score: the one with
    more training rows, then the lower index.

    Parameters
    ----------
    n_neighbors : int, default=250
        Pairs of each instance whose cosine is kept.
    metric : {"l2", "cosine", "dot"}, default="l2"
        How near they are.
    reg : float, default=1.0
        Ridge of the map; rows of features have length one.
    l1 : float, default=0.0
        Weight of the absolute fitted values.
    prune : float, default=0.0
        Share of the weights of the map to drop, the smallest first.
    n_clusters : int, default=1
        Parts of the instances, each with a map of its own.
    partition : {"kmeans", "graph"}, default="kmeans"
        Parts by the cosine of features, or by shared labels with hyperplanes to find them.
    n_learners : int, default=1
        Members of the ensemble.
    unlabeled : {"drop", "keep"}, default="drop"
        Whether training rows without labels leave the regression and the neighbours, or stay with the
        embedding zero.
    max_iter : int, default=200
        Limit of projections.
    tol : float, default=1e-3
        Stop when the error on Omega falls by less than this share.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Attributes
    ----------
    learners_ : list of Learner
        Partitions, maps and points.
    labels_ : csr_array
        Labels of the training rows that vote.
    label_counts_ : array of shape (n_labels,)
        Training rows of each label.
    history_ : list of dict
        Error on Omega after each projection and its step, one part after the other.
    converged_ : bool
        Whether all parts settled within `max_iter` projections.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen import SLEEC
    >>> X = sparse.csr_array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])
    >>> Y = sparse.csr_array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]])
    >>> model = SLEEC(n_components=2, n_neighbors=3, k=2, reg=0.1, random_state=0).fit(X, Y)
    >>> model.predict_topk(X, k=1)[0].ravel().tolist()
    [0, 0, 2, 2]
    """

    def __init__(
        self,
        *,
        n_components: int = 100,
        n_neighbors: int = 250,
        k: int = 25,
        metric: Metric = "l2",
        neighbor_power: float = 0.0,
        reg: float = 1.0,
        l1: float = 0.0,
        prune: float = 0.0,
        n_clusters: int = 1,
        partition: Partition = "kmeans",
        n_learners: int = 1,
        unlabeled: Literal["drop", "keep"] = "drop",
        search: Search = "exact",
        normalize: bool = True,
        max_iter: int = 200,
        tol: float = 1e-3,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.k = k
        self.metric = metric
        self.neighbor_power = neighbor_power
        self.reg = reg
        self.l1 = l1
        self.prune = prune
        self.n_clusters = n_clusters
        self.partition = partition
        self.n_learners = n_learners
        self.unlabeled = unlabeled
        self.search = search
        self.normalize = normalize
        self.max_iter = max_iter
        self.tol = tol
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_neighbors", self.n_neighbors)
        check_count("max_iter", self.max_iter)

    def _embed(self, Y: CSR, rng: np.random.Generator, n_threads: int) -> LabelEmbedding:
        found = svp(
            Y,
            min(self.n_components, Y.shape[0]),
            n_neighbors=self.n_neighbors,
            max_iter=self.max_iter,
            tol=check_positive("tol", self.tol, strict=False),
            rng=rng,
            n_threads=n_threads,
        )
        return LabelEmbedding(found.instances, None, found.n_iter, found.history, found.converged)
