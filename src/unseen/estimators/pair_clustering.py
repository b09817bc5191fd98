"""Clustering from pairs that are known to belong together."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from unseen import io
from unseen.cores import Full, LowRank
from unseen.data import Observations, Vocabulary
from unseen.data.features import refuse_repeated
from unseen.data.frames import encode_ids
from unseen.data.ids import find_ids
from unseen.data.origin import labels_of
from unseen.data.vocabulary import as_id_array
from unseen.docstrings import share_options
from unseen.estimators.completion import Completion
from unseen.estimators.pu_inductive import side_map
from unseen.estimators.pu_rates import given_rates
from unseen.estimators.reg_scale import lambda_max, resolve_reg
from unseen.exceptions import InvalidDataError, NotInductiveError, ParameterError
from unseen.losses import Background, Squared
from unseen.parallel import one_blas_thread
from unseen.problem import Problem
from unseen.regularisers import Nuclear
from unseen.settings import check_settings
from unseen.solvers import AlternatingCG, ProxGradient
from unseen.terms import Term
from unseen.typing import Array, BoolArray, Features, FloatArray, IndexArray
from unseen.validation import (
    as_frame,
    check_count,
    check_features,
    check_index_pairs,
    check_n_jobs,
    check_rng,
    held,
)

__all__ = ["PUClustering", "PairClusterer", "PlacingClusterer"]

BLOCK_ITEMS = 1 << 16
"""Items that are embedded at a time."""


class PairClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that cluster items from known pairs.

    Subclasses implement ``_fit_pairs``, which sets ``embedding_`` and ``labels_``.
    """

    labels_: IndexArray
    embedding_: FloatArray
    item_ids_: Vocabulary | None
    item_column_: str | None
    n_features_in_: int
    n_clusters: int
    n_init: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        share_options(cls)

    def fit(self, X: Any, y: None = None, *, pairs: Any = None, same: Any = None, ids: Any = None) -> Self:
        """Cluster the rows of ``X``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_items, n_features)
            Features.
        y : None
            Ignored; there for scikit-learn.
        pairs : array-like of shape (n_pairs, 2), optional
            Items that are known to belong together, or not: their ids where items have ids, else their
            positions.
        same : array-like of bool, shape (n_pairs,), optional
            Whether each pair belongs together; None means that all do.
        ids : array-like or str, optional
            What the items are called, or the column of a frame that says so. Without it the index of a pandas
            frame, unless it counts from 0.

        Returns
        -------
        self
        """
        check_settings(self)
        self.item_column_ = ids if isinstance(ids, str) else None
        X, called = _apart(X, ids)
        features = self._read_items(X)
        item_ids = None if called is None else Vocabulary(called)
        if item_ids is not None and len(item_ids) != features.shape[0]:
            raise InvalidDataError(f"ids names {len(item_ids)} items and X has {features.shape[0]} rows")
        checked, together = check_pairs(pairs, same, features.shape[0], item_ids)
        _check_feature_names(self, X, reset=True)
        self.item_ids_ = item_ids
        with one_blas_thread():
            self._fit_pairs(features, checked, together)
        self.n_features_in_ = features.shape[1]
        return self

    def _read_items(self, X: Any) -> Features:
        features = held(check_features(X, None, "X"))
        for count, what in zip(features.shape, ("sample", "feature"), strict=True):
            if count == 0:
                raise InvalidDataError(
                    f"X has 0 {what}(s) (shape={features.shape}) while a minimum of 1 is required."
                )
        return features

    @abstractmethod
    def _fit_pairs(self, features: Features, pairs: IndexArray, same: BoolArray) -> None:
        """Learn from validated input; each unordered pair is there once."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a directory, replacing an older one only when complete.

        Parameters
        ----------
        path : str or path-like
            Directory to write; see :func:`unseen.load`.
        """
        check_is_fitted(self)
        io.save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class PlacingClusterer(PairClusterer):
    """Base of the clusterers that learn of features, and so place new items.

    ``_fit_pairs`` also sets ``projection_`` and calls ``_find_clusters``; the product of ``_factors_of`` with
    ``projection_`` is the embedding of any items.
    """

    cluster_centers_: FloatArray
    projection_: FloatArray

    def predict(self, X: Any) -> IndexArray:
        """Clusters of items, new ones or those of training.

        Items are embedded by what was learned of their features, and belong to the cluster with the nearest
        centre. Items of training get their ``labels_``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_items, n_features)
            Features; columns of a frame as in training.

        Returns
        -------
        ndarray of int64, shape (n_items,)
            In the order of ``X``.
        """
        check_is_fitted(self)
        if not hasattr(self, "projection_"):
            raise NotInductiveError(
                f"this {type(self).__name__} was saved before centres were kept; fit it again to predict"
            )
        X, _ = _apart(X, self.item_column_ if self.item_column_ in getattr(X, "columns", ()) else None)
        _check_feature_names(self, X, reset=False)
        features = self._read_items(X)
        if features.shape[1] != self.n_features_in_:
            raise InvalidDataError(
                f"X has {features.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        labels = np.empty(features.shape[0], dtype=np.int64)
        with one_blas_thread():
            for start in range(0, len(labels), BLOCK_ITEMS):
                block = features[start : start + BLOCK_ITEMS]
                points = self._factors_of(block).astype(np.float64) @ self.projection_
                labels[start : start + BLOCK_ITEMS] = _nearest(points, self.cluster_centers_)
        return labels

    def _find_clusters(self, seed: int) -> None:
        """Cluster the embedding by k-means."""
        from sklearn.cluster import KMeans  # 20 MiB of modules that the other models do without

        kmeans = KMeans(self.n_clusters, n_init=check_count("n_init", self.n_init), random_state=seed)
        self.labels_ = kmeans.fit_predict(self.embedding_).astype(np.int64)
        self.cluster_centers_ = kmeans.cluster_centers_

    @abstractmethod
    def _factors_of(self, features: Features) -> FloatArray:
        """Factors of items, which ``projection_`` takes to their embedding."""


class PUClustering(PlacingClusterer):
    """Clustering from a few positive pairs, through features (PU, section on clustering).

    Items i and j belong together with score x_i' D x_j, learned as in :class:`BiasIMC` from the
    known pairs as positives and all other pairs as unlabelled:

    min over D   alpha sum_known (x_i' D x_j - s_ij)^2 + (1 - alpha) sum_others (x_i' D x_j)^2 + reg ||D||_*

    with s_ij = 1 for pairs that belong together, and 0 for pairs that are known not to, if any are
    given. The leading eigenvectors of the symmetric score matrix are then clustered by k-means.
    Without pairs every item is only known to belong with itself, which clusters the features alone.

    Parameters
    ----------
    class_prior : float, optional
        Share of all pairs that belong together; 1/n_clusters by default, which equal clusters have.
        It sets alpha = 1 - s/(2 class_prior), with s the share of pairs that are known to.
    alpha : float, optional
        Weight of the known pairs, instead of ``class_prior``.
    reg : float or str, default="0.02max"
        Weight of the penalty, or a share of the smallest one that makes D zero.
    intercept : bool, default=True
        Append a constant to the features.
    whiten : bool, default=False
        Turn the features into orthonormal columns. Neither choice is better throughout: try both.
    rank : int or None, default=None
        Rank of D; None learns all of D by proximal steps, a number two factors by conjugate
        gradients, for many features.

    Attributes
    ----------
    labels_ : ndarray of int
        Cluster of each item.
    embedding_ : ndarray of shape (n_items, at most n_clusters)
        What k-means saw: ``embedding_ @ embedding_.T`` is the leading part of the scores.
    cluster_centers_ : ndarray of shape (n_clusters, width of the embedding)
        Centres of the clusters in the embedding.
    projection_ : ndarray
        From the factors of items to their embedding, also for items that come later (:meth:`predict`).
    item_ids_ : Vocabulary or None
        What the items are called.
    completer_ : Completion
        Scores of pairs: ``completer_.predict_entries(i, j)``; not symmetric by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import PUClustering
    >>> rng = np.random.default_rng(0)
    >>> centres = np.repeat([[0.0, 0.0], [6.0, 0.0]], 20, axis=0)
    >>> X = np.hstack([centres, np.zeros((40, 3))]) + rng.normal(size=(40, 5))
    >>> model = PUClustering(2, random_state=0).fit(X, pairs=[[0, 1], [2, 3], [20, 21], [22, 23]])
    >>> bool(model.labels_[0] == model.labels_[5]), bool(model.labels_[0] == model.labels_[30])
    (True, False)
    """

    completer_: Completion
    n_iter_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        class_prior: float | None = None,
        alpha: float | None = None,
        reg: float | str = "0.02max",
        intercept: bool = True,
        standardize: bool = True,
        whiten: bool = False,
        rank: int | None = None,
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.class_prior = class_prior
        self.alpha = alpha
        self.reg = reg
        self.intercept = intercept
        self.standardize = standardize
        self.whiten = whiten
        self.rank = rank
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit_pairs(self, features: Features, pairs: IndexArray, same: BoolArray) -> None:
        n_clusters = check_count("n_clusters", self.n_clusters)
        n_items = features.shape[0]
        if n_clusters > n_items:
            raise ParameterError(f"n_clusters={n_clusters} is more than the {n_items} items (n_samples)")
        rng = check_rng(self.random_state)
        cells = pair_matrix(pairs, same, n_items, features.dtype)
        self.completer_ = self._fit_scores(cells, features, n_clusters, rng)
        self.n_iter_ = self.completer_.n_iter_
        left, right = self.completer_.row_factors_, self.completer_.col_factors_
        self.embedding_, self.projection_ = spectral_embedding(left, right, n_clusters)
        self._find_clusters(int(rng.integers(2**31)))

    def _factors_of(self, features: Features) -> FloatArray:
        left, right = self.completer_._embed_rows(features), self.completer_._embed_cols(features)
        return np.hstack([left, right])

    def _fit_scores(
        self, cells: Observations, features: Features, n_clusters: int, rng: np.random.Generator
    ) -> Completion:
        seen = float(cells.values.sum()) / (cells.shape[0] * cells.shape[1])
        prior = self.class_prior
        if prior is None and self.alpha is None:
            prior = max(1.0 / n_clusters, seen)
        rates = given_rates("auto" if self.alpha is None else self.alpha, None, prior, seen)
        assert rates is not None
        loss = Squared(2.0 * rates.alpha, Background(2.0 * (1.0 - rates.alpha)))
        a_map = side_map(self.intercept, self.standardize, self.whiten)
        rank = None if self.rank is None else LowRank(check_count("rank", self.rank))
        core, solver = (Full(), ProxGradient()) if rank is None else (rank, AlternatingCG())
        parts: dict[str, Any] = {"row_features": features, "col_features": features}
        problem = Problem(
            cells, [Term(a_map, a_map, core)], loss, **parts, n_threads=check_n_jobs(self.n_jobs)
        )
        reg = resolve_reg(self.reg, lambda: lambda_max(problem, np.random.default_rng(0)))
        model = Completion(
            [Term(a_map, a_map, core, Nuclear(reg))],
            loss=loss,
            solver=solver,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=int(rng.integers(2**31)),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        return model.fit(cells, **parts)


def check_pairs(
    pairs: Any, same: Any, n_items: int, ids: Vocabulary | None = None
) -> tuple[IndexArray, BoolArray]:
    """Unordered pairs of positions, each once, and whether they belong together.

    Pairs of an item with itself say nothing and are left out.
    """
    if pairs is None:
        if same is not None:
            raise InvalidDataError("same was given without pairs; pass pairs= as well")
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=bool)
    if ids is None:
        given = check_index_pairs("pairs", pairs, (n_items, n_items))
    else:
        named = _as_pairs(pairs)
        given = find_ids(named.ravel(), ids, n_items, "pairs", "row").reshape(-1, 2)
    first, second = given.T
    together = np.ones(len(given), dtype=bool) if same is None else np.asarray(same)
    if together.shape != (len(given),) or not np.isin(together, (0, 1)).all():
        raise InvalidDataError(
            f"same must be one True or False for each of {len(given)} pairs, got shape {together.shape}"
        )
    together = together.astype(bool)
    low, high = np.minimum(first, second), np.maximum(first, second)
    apart = np.flatnonzero((low == high) & ~together)
    if apart.size:
        item = _item(low[apart[0]], ids)
        raise InvalidDataError(f"pairs say that item {item} does not belong with itself (pair {apart[0]})")
    key = low * n_items + high
    unique, place = np.unique(key, return_inverse=True)
    votes = np.bincount(place, together, minlength=unique.size)
    totals = np.bincount(place, minlength=unique.size)
    torn = np.flatnonzero((votes > 0) & (votes < totals))
    if torn.size:
        one, other = (_item(item, ids) for item in divmod(int(unique[torn[0]]), n_items))
        raise InvalidDataError(f"pairs ({one}, {other}) are said to belong together and not to")
    low, high = np.divmod(unique, n_items)
    kept = low != high
    return np.column_stack([low, high])[kept], (votes > 0)[kept]


def _item(position: int, ids: Vocabulary | None) -> str:
    """What a message calls an item."""
    return str(position) if ids is None else repr(ids[int(position)].item())


def _as_pairs(pairs: Any) -> Array:
    """Pairs of ids, as they come."""
    named = np.asarray(pairs, dtype=object if isinstance(pairs, (list, tuple)) else None)
    if named.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if named.ndim != 2 or named.shape[1] != 2:
        raise InvalidDataError(f"pairs must hold two ids each, got an array of shape {named.shape}")
    return named


def _apart(X: Any, ids: Any) -> tuple[Any, Any]:
    """Features, and what the items are called: as given, in a column of a frame, or its index."""
    if ids is None:
        is_pandas = hasattr(X, "columns") and hasattr(X, "index")
        found = labels_of(X.index, "the index of X") if is_pandas else None
        return X, None if found is None else found.values
    if not isinstance(ids, str):
        return X, as_id_array(ids, "ids")
    frame = as_frame(X, "X")
    if frame is None:
        raise ParameterError(f"ids={ids!r} names a column, but X is no frame; pass the ids themselves")
    if ids not in frame.columns:
        raise ParameterError(f"ids={ids!r} is no column of X, which has {', '.join(frame.columns[:5])}")
    codes, names = encode_ids(frame[ids], ids)
    refuse_repeated(codes, names, ids)
    return frame.drop(ids).to_native(), names[codes]


def _nearest(points: FloatArray, centres: FloatArray) -> IndexArray:
    """The nearest centre of each point; among equals the first."""
    lengths = np.einsum("ij,ij->i", centres, centres)
    nearest: IndexArray = np.argmin(lengths - 2.0 * (points @ centres.T), axis=1)
    return nearest


def pair_matrix(pairs: IndexArray, same: BoolArray, n_items: int, dtype: Any = np.float64) -> Observations:
    """Symmetric matrix of ones (together) and stored zeros (apart).

    Without a single pair that belongs together, every item at least belongs with itself.
    """
    rows, cols, values = pairs[:, 0], pairs[:, 1], same.astype(dtype)
    rows, cols, values = np.r_[rows, cols], np.r_[cols, rows], np.r_[values, values]
    if not same.any():
        itself = np.arange(n_items)
        rows, cols = np.r_[rows, itself], np.r_[cols, itself]
        values = np.r_[values, np.ones(n_items, dtype=dtype)]
    return Observations.from_triples(rows, cols, values, (n_items, n_items))


def spectral_embedding(left: FloatArray, right: FloatArray, n_axes: int) -> tuple[FloatArray, FloatArray]:
    """Leading positive part of ``(left right' + right left')/2`` as ``E E'``, without forming it.

    Returns
    -------
    embedding : ndarray of shape (n_items, n_axes or fewer)
        E.
    projection : ndarray of shape (2 width, n_axes or fewer)
        P with ``E = [left right] P``, so that other items have an embedding, too: E is made of eigenvectors,
        hence ``E = (left right' + right left')/2 E / d`` with the eigenvalues d.
    """
    width = left.shape[1]
    both = np.hstack([left, right]).astype(np.float64)
    basis, small = np.linalg.qr(both)
    swap = 0.5 * small[:, :width] @ small[:, width:].T
    values, vectors = np.linalg.eigh(swap + swap.T)
    picked = np.argsort(-values)[:n_axes]
    picked = picked[values[picked] > 1e-12 * max(float(np.abs(values).max(initial=0.0)), 1e-300)]
    if picked.size == 0:  # nothing was learned: all items look alike
        return np.zeros((left.shape[0], 1)), np.zeros((2 * width, 1))
    embedding: FloatArray = basis @ (vectors[:, picked] * np.sqrt(values[picked]))
    met = both.T @ embedding / (2.0 * values[picked])
    return embedding, np.vstack([met[width:], met[:width]])
