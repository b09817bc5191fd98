"""Label embeddings by co-occurrence, a linear map from features, votes of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from unseen.embeddings import joint_regression, sgns, sppmi
from unseen.embeddings.sppmi import DEFAULT_MU
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.multilabel.neighbour_base import LabelEmbedding, Learned, NeighbourClassifier
from unseen.multilabel.neighbours import Metric, Search
from unseen.multilabel.partition import Partition
from unseen.multilabel.regression import LinearMap
from unseen.typing import CSR, Features
from unseen.validation import check_choice, check_count, check_features, check_positive, check_several

__all__ = ["ExMLDS"]

FROM_SPPMI: dict[str, Any] = {"rate": 0.005, "positives": "counts", "negative": "context"}
"""Settings of joint learning from a good start, which long steps would spoil."""
EMBEDDING_TOL = 1e-3
"""Of the eigenvectors: finer digits are lost in the regression that follows."""


class ExMLDS(NeighbourClassifier):
    """Extreme multi-label learning through distributional semantics.

    Instances that share labels get embeddings z that are near, a linear map V learns to find them from
    the features, and a new instance gets the average labels of the k nearest training instances::

        M_ij = number of labels that i and j share
        PMI_ij = log( M_ij |M| / (M_i. M_.j) ),   SPPMI = max(PMI - log(shift), 0) where M_ij > 0      (4)
        Z = U S^(1/2) of the largest eigenvalues of SPPMI                                   (Algorithm 2)
        V = argmin 1/2 ||Z - X V||^2 + reg/2 ||V||^2 + l1 ||X V||_1
        score(x) = 1/k sum of the labels y_i of the k nearest V'x_i of V'x                             (1)

    ``method="sgns"`` learns Z by sampling pairs with negative samples (3) instead, and
    ``method="joint_sgns"`` learns V itself that way (10), from the V of "sppmi" on unless `start` says
    otherwise. With `label_correlations` instances and labels
    are embedded together (Algorithm 3) and the score is ``s1/||s1|| + s2/||s2||``, votes and inner
    products with the embeddings of labels, a zero vector counting as zero (Algorithm 4).

    Neighbours at the same distance: the lower training row. Labels with the same score: the one with
    more training rows, then the lower index.

    Parameters
    ----------
    method : {"sppmi", "sgns", "joint_sgns"}, default="sppmi"
        How embeddings are learned.
    n_neighbors : int, None or "auto", default="auto"
        Pairs of each instance that are embedded, those with the largest cosine of labels; None takes
        every pair with a label in common (sppmi only). "auto" is 250, and 10 for joint_sgns.
    counts : {"graph", "full"}, default="graph"
        Whether the sums in the PMI are over these pairs or over all.
    shift : float, default=1.0
        Number of negative samples that the PMI is shifted by; 1 leaves it as it is.
    label_correlations : sparse matrix or array of shape (n_labels, n_labels), optional
        Symmetric counts >= 0 of labels that occur together, from whatever source.
    weighting : {"counts", "blocks"}, default="counts"
        What `mu` multiplies: the counts before the PMI is taken, as in the paper, or the three blocks of
        the PMI matrix after it.
    mu : (float, float, float), optional
        Weights of label pairs, instance pairs and memberships; by default (1, 1, 10) for counts and
        (10, 1, 10) for blocks.
    neighbor_power : float, default=8.0
        A vote weighs ``max(cosine, 0) ** neighbor_power``; zero gives each neighbour the same, as in the
        paper.
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
        Members of the ensemble; their scores are added.
    unlabeled : {"drop", "keep"}, default="drop"
        Whether training rows without labels leave the regression and the neighbours, or stay with the
        embedding zero.
    n_negatives : int, optional
        Negative samples for each pair, for the sampling methods; 5 for sgns and 10 for joint_sgns by
        default.
    max_iter : int, optional
        Passes over the pairs, for the sampling methods; 35 for sgns and 10 for joint_sgns by default.
    start : {"sppmi", "random"}, default="sppmi"
        Where joint_sgns starts: at the map of method "sppmi" with short steps, or at random numbers with
        long ones, which overfits where there are few rows for each feature.
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
        Of each part: for sppmi the ``products`` with its matrix, for sgns the ``loss`` of some fixed pairs
        after so many ``passes``; of joint_sgns what its start noted.
    converged_ : bool
        Whether the eigenvectors of all parts settled; not there for sgns, whose passes are counted.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen import ExMLDS
    >>> X = sparse.csr_array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])
    >>> Y = sparse.csr_array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]])
    >>> model = ExMLDS(n_components=2, k=2, reg=0.1, random_state=0).fit(X, Y)
    >>> model.predict_topk(X, k=1)[0].ravel().tolist()
    [0, 0, 2, 2]
    """

    _unsettled = (
        "has eigenvectors that did not settle, as a tight cluster of eigenvalues makes them; another "
        "n_components may part it"
    )

    def __init__(
        self,
        method: Literal["sppmi", "sgns", "joint_sgns"] = "sppmi",
        *,
        n_components: int = 100,
        n_neighbors: int | Literal["auto"] | None = "auto",
        counts: Literal["graph", "full"] = "graph",
        shift: float = 1.0,
        label_correlations: Any = None,
        weighting: Literal["counts", "blocks"] = "counts",
        mu: tuple[float, float, float] | None = None,
        k: int = 25,
        metric: Metric = "cosine",
        neighbor_power: float = 8.0,
        reg: float = 1.0,
        l1: float = 0.0,
        prune: float = 0.0,
        n_clusters: int = 1,
        partition: Partition = "kmeans",
        n_learners: int = 1,
        unlabeled: Literal["drop", "keep"] = "drop",
        search: Search = "exact",
        normalize: bool = True,
        n_negatives: int | None = None,
        max_iter: int | None = None,
        start: Literal["sppmi", "random"] = "sppmi",
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.counts = counts
        self.shift = shift
        self.label_correlations = label_correlations
        self.weighting = weighting
        self.mu = mu
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
        self.n_negatives = n_negatives
        self.max_iter = max_iter
        self.start = start
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("method", self.method, ("sppmi", "sgns", "joint_sgns"))
        if self.n_neighbors is None and self.method != "sppmi":
            raise ParameterError(f"n_neighbors=None is for method='sppmi'; got method={self.method!r}.")
        for name in ("n_neighbors", "n_negatives", "max_iter"):
            if getattr(self, name) not in (None, "auto"):
                check_count(name, getattr(self, name))
        check_choice("start", self.start, ("sppmi", "random"))
        check_choice("counts", self.counts, ("graph", "full"))
        check_positive("shift", self.shift)
        check_choice("weighting", self.weighting, ("counts", "blocks"))
        if self.label_correlations is not None and self.method != "sppmi":
            raise ParameterError(
                f"label_correlations are for method='sppmi'; got method={self.method!r}. "
                "Leave them out, or factorise with sppmi."
            )
        self._weights()

    def _weights(self) -> tuple[float, float, float]:
        if self.mu is None:
            return DEFAULT_MU[self.weighting]
        given = check_several("mu", self.mu, "three weights (labels, rows, memberships)")
        if len(given) != 3:
            raise ParameterError(f"mu must have three weights (labels, rows, memberships), got {self.mu!r}.")
        first, second, third = (check_positive("mu", weight, strict=False) for weight in given)
        if first == second == third == 0.0:
            raise ParameterError("mu must have a weight above 0, got three zeros.")
        return first, second, third

    def _fit(self, X: Features, Y: CSR) -> None:
        self._correlations = self._read_correlations(Y.shape[1])
        try:
            super()._fit(X, Y)
        finally:
            del self._correlations  # not a part of the model

    def _read_correlations(self, n_labels: int) -> CSR | None:
        if self.label_correlations is None:
            return None
        counts: CSR = sparse.csr_array(check_features(self.label_correlations, None, "label_correlations"))
        if counts.shape != (n_labels, n_labels):
            raise InvalidDataError(
                f"label_correlations have shape {counts.shape}; Y has {n_labels} labels, so "
                f"({n_labels}, {n_labels}) is needed."
            )
        counts = counts.astype(np.float64)
        counts.sum_duplicates()
        if counts.nnz and not (np.isfinite(counts.data).all() and counts.data.min() >= 0):
            raise InvalidDataError("label_correlations must be finite counts >= 0.")
        if abs(counts - counts.T).sum() > 1e-8 * abs(counts).sum():
            raise InvalidDataError("label_correlations must be symmetric: C[i, j] == C[j, i].")
        counts.eliminate_zeros()
        return counts

    def _embed(self, Y: CSR, rng: np.random.Generator, n_threads: int) -> LabelEmbedding:
        n_components = min(self.n_components, Y.shape[0])
        # What joint_sgns starts from has the usual number; its own is for each visit of a row.
        wanted = self.n_neighbors
        n_neighbors = 250 if self.method == "joint_sgns" or isinstance(wanted, str) else wanted
        if self.method == "sgns":
            assert n_neighbors is not None
            found = sgns(
                Y,
                n_components,
                n_neighbors=n_neighbors,
                n_negatives=self.n_negatives or 5,
                n_epochs=self.max_iter or 35,
                shared=True,
                rng=rng,
                n_threads=n_threads,
            )
        else:
            found = sppmi(
                Y,
                n_components,
                shift=self.shift,
                n_neighbors=n_neighbors,
                counts=self.counts,
                weighting=self.weighting,
                mu=self._weights(),
                label_correlations=self._correlations,
                tol=EMBEDDING_TOL,
                rng=rng,
                n_threads=n_threads,
            )
        return LabelEmbedding(
            found.instances, found.labels, found.n_iter, list(found.history), found.converged
        )

    def _learn_map(self, X: Features, Y: CSR, rng: np.random.Generator, n_threads: int) -> Learned:
        if self.method != "joint_sgns":
            return super()._learn_map(X, Y, rng, n_threads)
        known = np.flatnonzero(np.diff(Y.indptr))  # without labels there are no pairs to learn from
        if not known.size:
            return Learned(LinearMap(np.arange(X.shape[1]), np.zeros((X.shape[1], 1), dtype=X.dtype)))
        max_iter = self.max_iter or 10
        settings: dict[str, Any] = {}
        noted: Sequence[dict[str, float]] = ()
        settled: bool | None = None
        if self.start == "sppmi":
            first = super()._learn_map(X, Y, rng, n_threads)
            found, noted, settled = first.map, first.history, first.converged
            whole = np.zeros((X.shape[1], self.n_components), dtype=X.dtype)
            whole[found.features] = (
                found.weights.toarray() if sparse.issparse(found.weights) else found.weights
            )
            settings = {**FROM_SPPMI, "init": whole}
        weights = joint_regression(
            sparse.csr_array(X)[known],
            Y[known],
            self.n_components,
            n_neighbors=10 if not isinstance(self.n_neighbors, int) else self.n_neighbors,
            n_negatives=self.n_negatives or 10,
            max_iter=max_iter,
            rng=rng,
            n_threads=n_threads,
            **settings,
        )
        linear = LinearMap(np.arange(X.shape[1]), weights.astype(X.dtype, copy=False))
        return Learned(linear, None, max_iter, noted, settled)
