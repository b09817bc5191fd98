"""Forests whose splits rank labels: FastXML and PfastreXML."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from unseen.metrics import label_propensities
from unseen.multilabel.base import MultiLabelClassifier
from unseen.multilabel.forest import grow_forest, pair_products
from unseen.multilabel.scaling import scaled_rows, with_ones
from unseen.typing import CSR, Features, FloatArray
from unseen.validation import check_count, check_fraction, check_positive, check_rng

__all__ = ["FastXML", "PfastreXML"]

ROWS_AT_A_TIME = 2048


class FastXML(MultiLabelClassifier):
    """An ensemble of trees whose nodes send rows to the side that ranks their labels better.

    At each node, over weights w, sides s_i in {-1, 1} and rankings r of the labels, one for each side::

        min  ||w||_1 + sum_i C_i log(1 + exp(-s_i w.x_i)) - sum_i nDCG(r of side s_i, y_i)

    Sides start at random. A ranking is the order of its rows' labels, each weighed by one over the largest
    DCG that its row can have; rows then change to the side with the larger nDCG, until none does. Then w is
    learned by coordinate descent with the sides as they are, and rows go where w sends them. ``C_i`` is C
    times the rows of the node over those of its side. A leaf keeps the average labels of its rows, and scores
    are averages over the leaves that a row falls into.

    Nodes that no w splits are leaves, whatever their size.

    Parameters
    ----------
    n_trees : int, default=50
        Trees.
    max_leaf : int, default=10
        Nodes with no more rows are not split.
    leaf_labels : int, default=100
        Labels that a leaf keeps, the most frequent.
    normalize : bool, default=True
        Whether rows of features are scaled to length one, before a constant is added.
    tol : float, default=0.01
        Share of the first violation of optimality at which a node's weights are done.
    max_iter : int, default=20
        Limit of passes over the weights of a node.
    random_state : int, Generator, RandomState or None
        Draws the sides that nodes start from.

    Attributes
    ----------
    forest_ : LabelForest
        Splits and leaves of all trees.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import FastXML
    >>> X = np.repeat(np.eye(3), 20, axis=0)
    >>> Y = np.repeat(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]), 20, axis=0)
    >>> model = FastXML(n_trees=5, C=10.0, random_state=0).fit(X, Y)
    >>> model.predict_topk(np.eye(3), k=1)[0].ravel().tolist()
    [0, 1, 2]
    """

    _why_no_weights = "rankings and leaves count rows"

    def __init__(
        self,
        n_trees: int = 50,
        *,
        max_leaf: int = 10,
        C: float = 1.0,
        leaf_labels: int = 100,
        normalize: bool = True,
        tol: float = 0.01,
        max_iter: int = 20,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.C = C
        self.leaf_labels = leaf_labels
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _label_weights(self, Y: CSR) -> FloatArray:
        """What a hit of each label is worth."""
        return np.ones(Y.shape[1])

    def _fit(self, X: Features, Y: CSR) -> None:
        settings = {
            "max_leaf": check_count("max_leaf", self.max_leaf),
            "leaf_labels": check_count("leaf_labels", self.leaf_labels),
            "max_passes": check_count("max_iter", self.max_iter),
        }
        n_trees = check_count("n_trees", self.n_trees)
        targets = Y.copy()
        targets.data = self._label_weights(Y).astype(Y.dtype)[Y.indices]
        lengths = np.diff(Y.indptr)
        best = np.concatenate([[1.0], np.cumsum(1.0 / np.log2(np.arange(lengths.max(initial=1)) + 2.0))])
        gains = targets.copy()
        gains.data = (targets.data / np.repeat(best[lengths], lengths)).astype(Y.dtype)
        self.forest_ = grow_forest(
            self._features(X),
            gains,
            targets,
            n_trees,
            check_rng(self.random_state),
            **settings,
            C=check_positive("C", self.C),
            tol=check_positive("tol", self.tol),
            n_threads=self._n_threads(),
        )
        self.n_iter_ = 1
        self.history_: list[dict[str, Any]] = []

    def _features(self, X: Features) -> CSR:
        """Rows as the trees see them: of length one, then a constant."""
        rows: CSR = sparse.csr_array(with_ones(scaled_rows(X) if self.normalize else X))
        rows.sort_indices()
        return rows

    def _shares(self, X: Features) -> CSR:
        return self.forest_.shares(self._features(X))

    def _scores(self, X: Features) -> FloatArray | CSR:
        found = self._shares(X)
        return found.toarray() if self.multi_class_ else found  # few classes, many labels

    def _block_rows(self) -> int:
        return super()._block_rows() if self.multi_class_ else ROWS_AT_A_TIME


class PfastreXML(FastXML):
    """FastXML with rewards for rare labels: splits and leaves by propensities, labels re-ranked by centroids.

    With p_l the chance that a true label l is recorded, estimated from how often it was seen, a label of a
    row counts 1/p_l in the nDCG of the splits and in the averages of the leaves. Labels of the leaves are
    ranked by::

        score_l(x) = P_l(x)^a  (1 + exp(gamma/2 ||x - mu_l||^2))^(a - 1)

    with P_l the average over leaves, mu_l the mean of the rows with label l and a the `tree_weight`.

    Parameters
    ----------
    n_trees : int, default=50
        Trees.
    max_leaf : int, default=10
        Nodes with no more rows are not split.
    leaf_labels : int, default=100
        Labels that a leaf keeps, the heaviest.
    tree_weight : float, default=0.8
        Exponent of the trees' score, between 0 and 1.
    gamma : float, default=30.0
        How fast the score of a centroid falls with the distance.
    propensity : pair of floats, default=(0.55, 1.5)
        Constants a and b of :func:`unseen.metrics.label_propensities`.
    threshold : float, default=0.1
        Score above which `predict` gives a label.
    normalize : bool, default=True
        Whether rows of features are scaled to length one, before a constant is added.
    tol : float, default=0.01
        Share of the first violation of optimality at which a node's weights are done.
    max_iter : int, default=20
        Limit of passes over the weights of a node.
    random_state : int, Generator, RandomState or None
        Draws the sides that nodes start from.

    Attributes
    ----------
    forest_ : LabelForest
        Splits and leaves of all trees.
    centroids_ : csr_array of shape (n_labels, n_features)
        Mean of the rows with each label.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import PfastreXML
    >>> X = np.repeat(np.eye(3), 20, axis=0)
    >>> Y = np.repeat(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]), 20, axis=0)
    >>> model = PfastreXML(n_trees=5, C=10.0, random_state=0).fit(X, Y)
    >>> model.predict_topk(np.eye(3), k=1)[0].ravel().tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        n_trees: int = 50,
        *,
        max_leaf: int = 10,
        C: float = 1.0,
        leaf_labels: int = 100,
        tree_weight: float = 0.8,
        gamma: float = 30.0,
        propensity: tuple[float, float] = (0.55, 1.5),
        threshold: float = 0.1,
        normalize: bool = True,
        tol: float = 0.01,
        max_iter: int = 20,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_trees,
            max_leaf=max_leaf,
            C=C,
            leaf_labels=leaf_labels,
            normalize=normalize,
            tol=tol,
            max_iter=max_iter,
            calibrate=calibrate,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.tree_weight = tree_weight
        self.gamma = gamma
        self.propensity = propensity
        self.threshold = threshold

    def _label_weights(self, Y: CSR) -> FloatArray:
        a, b = self.propensity
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        weights: FloatArray = 1.0 / label_propensities(counts, Y.shape[0], a=a, b=b)
        return weights

    def _fit(self, X: Features, Y: CSR) -> None:
        check_fraction("tree_weight", self.tree_weight, include_low=True, include_high=True)
        check_positive("gamma", self.gamma, strict=False)
        super()._fit(X, Y)
        counts = np.maximum(np.bincount(Y.indices, minlength=Y.shape[1]), 1)
        rows = sparse.csr_array(scaled_rows(X) if self.normalize else X)
        means = sparse.csr_array(sparse.diags_array(1.0 / counts) @ (Y.T @ rows))
        means.sort_indices()
        self.centroids_ = means.astype(X.dtype)

    def _shares(self, X: Features) -> CSR:
        found = super()._shares(X)
        rows = sparse.csr_array(scaled_rows(X) if self.normalize else X)
        owner = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
        products = pair_products(rows, owner, self.centroids_, found.indices)
        lengths = [np.asarray(part.multiply(part).sum(axis=1)).ravel() for part in (rows, self.centroids_)]
        distances = np.maximum(lengths[0][owner] + lengths[1][found.indices] - 2.0 * products, 0.0)
        near = np.logaddexp(0.0, 0.5 * self.gamma * distances)
        found.data = np.exp(self.tree_weight * np.log(found.data) - (1.0 - self.tree_weight) * near).astype(
            found.dtype
        )
        return found
