"""Clustering from pairs that are known to belong together or apart, fitted on these pairs alone."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from unseen.cores import LowRank
from unseen.estimators.completion import Completion
from unseen.estimators.pair_clustering import PlacingClusterer, pair_matrix
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.losses import Squared
from unseen.maps import FeatureMap, Fourier, Nystrom, Standardized, Whitened, WithOnes
from unseen.regularisers import Ridge
from unseen.solvers import AlternatingCG, GoalDirected, Solver
from unseen.terms import Term
from unseen.typing import BoolArray, Features, FloatArray, IndexArray
from unseen.validation import check_choice, check_count, check_fraction, check_positive, check_rng

__all__ = ["MCCC", "GIMCClustering", "left_space"]

RELATIVE_CUT = 1e-10
"""Singular values of the row factors below this share of the largest are rounding."""


class ObservedPairClusterer(PlacingClusterer):
    """Complete the matrix of known pairs by low rank, then cluster the space of its row factors."""

    completer_: Completion
    reg_: float
    validation_errors_: list[float] | None
    history_: list[dict[str, Any]]
    n_iter_: int
    converged_: bool

    n_clusters: int
    rank: int | None
    reg: float | Sequence[float]
    validation_fraction: float
    n_init: int
    max_iter: int
    tol: float
    random_state: Any
    n_jobs: int | None
    verbose: int

    @abstractmethod
    def _map(self) -> FeatureMap:
        """Map of the items, the same on both sides."""

    @abstractmethod
    def _solver(self) -> Solver:
        """What fits the pairs."""

    def _penalty(self, reg: float, n_items: int) -> float:
        """Ridge of the factors."""
        return reg

    def _fit_pairs(self, features: Features, pairs: IndexArray, same: BoolArray) -> None:
        n_clusters = check_count("n_clusters", self.n_clusters)
        if n_clusters > features.shape[0]:
            raise ParameterError(
                f"n_clusters={n_clusters} is more than the {features.shape[0]} items (n_samples)"
            )
        rng = check_rng(self.random_state)
        seed = int(rng.integers(2**31))
        candidates = [self.reg] if np.ndim(self.reg) == 0 else list(self.reg)  # type: ignore[arg-type]
        regs = [check_positive("reg", reg, strict=False) for reg in candidates]
        if not regs:
            raise ParameterError("reg is an empty list; pass a number, or numbers to choose from")
        self.validation_errors_ = None
        self.reg_ = regs[0]
        if len(regs) > 1:
            self.validation_errors_ = self._validate(features, pairs, same, regs, seed, rng)
            # Among equals the strongest penalty.
            self.reg_ = min(zip(self.validation_errors_, [-reg for reg in regs], regs, strict=True))[2]
        self._cluster(features, pairs, same, self.reg_, seed)

    def _cluster(
        self, features: Features, pairs: IndexArray, same: BoolArray, reg: float, seed: int
    ) -> IndexArray:
        rank = self.n_clusters if self.rank is None else check_count("rank", self.rank)
        a_map = self._map()
        model = Completion(
            [Term(a_map, a_map, LowRank(rank), Ridge(self._penalty(reg, features.shape[0])))],
            loss=Squared(),
            solver=self._solver(),
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        cells = pair_matrix(pairs, same, features.shape[0], features.dtype)
        self.completer_ = model.fit(cells, row_features=features, col_features=features)
        self.history_, self.n_iter_ = model.history_, model.n_iter_
        self.converged_ = model.converged_
        self.embedding_, self.projection_ = left_space(model.row_factors_, self.n_clusters)
        self._find_clusters(seed)
        return self.labels_

    def _factors_of(self, features: Features) -> FloatArray:
        return self.completer_._embed_rows(features)

    def _validate(
        self,
        features: Features,
        pairs: IndexArray,
        same: BoolArray,
        regs: list[float],
        seed: int,
        rng: np.random.Generator,
    ) -> list[float]:
        """Share of held-out pairs that the clusters of each penalty get wrong."""
        share = check_fraction("validation_fraction", self.validation_fraction)
        count = round(share * len(pairs))
        if count == 0 or count == len(pairs):
            raise InvalidDataError(
                f"reg is a list to choose from, but validation_fraction={share} of {len(pairs)} pairs leaves "
                f"none for {'validation' if count == 0 else 'training'}; pass more pairs, or one reg"
            )
        order = rng.permutation(len(pairs))
        held, kept = np.sort(order[:count]), np.sort(order[count:])
        errors = []
        for reg in regs:
            labels = self._cluster(features, pairs[kept], same[kept], reg, seed)
            together = labels[pairs[held, 0]] == labels[pairs[held, 1]]
            errors.append(float(np.mean(together != same[held])))
        return errors


class GIMCClustering(ObservedPairClusterer):
    """Clustering from known pairs, with features that are learned from them (GIMC eq. 13, algorithm 2).

    min over U, V, W, H   1/2 sum_known (phi_U(x_i)' W H' phi_V(x_j) - s_ij)^2 + reg/2 (||W||_F^2 + ||H||_F^2)

    with s_ij = 1 for pairs that belong together and 0 for pairs that do not; each pair counts as (i, j)
    and as (j, i). The leading left singular vectors of phi_U(X) W are then clustered by k-means. With
    ``learn_map=False`` the maps stay as they were drawn (IMC-RFF, IMC-NYS). Without pairs every item is
    only known to belong with itself.

    Parameters
    ----------
    n_components : int, default=100
        Projections or landmarks of the map.
    map : {"fourier", "nystrom"} or FeatureMap, default="fourier"
        Cosines and sines of projections, similarities to landmarks, or a map of your own (then
        ``n_components``, ``gamma`` and ``learn_map`` are its own affair).
    gamma : float or "median", default="median"
        Kernel width of the start.
    learn_map : bool, default=True
        Learn the map with the model.
    tie_uv : bool, default=False
        One map for both items of a pair, instead of one each.
    reg : float or list of float, default=0.1
        Weight of the penalty. Of a list the one is taken whose clusters get fewest held-out pairs wrong;
        the model is then fitted with all pairs.
    validation_fraction : float, default=0.1
        Share of the pairs that are held out if ``reg`` is a list.
    rank : int, optional
        Rank of the pair matrix; ``n_clusters`` by default.
    solver : {"lbfgs", "armijo"}, default="lbfgs"
        How the maps move, as in :class:`GIMC`.
    start_sweeps : int, default=15
        Sweeps over W and H before maps begin to move.
    max_iter : int, default=30
        Limit of sweeps in which maps move.

    Attributes
    ----------
    labels_ : ndarray of int
        Cluster of each item.
    embedding_ : ndarray of shape (n_items, at most n_clusters)
        What k-means saw: orthonormal columns.
    cluster_centers_ : ndarray of shape (n_clusters, width of the embedding)
        Centres of the clusters in the embedding.
    projection_ : ndarray
        From the factors of items to their embedding, also for items that come later (:meth:`predict`).
    item_ids_ : Vocabulary or None
        What the items are called.
    completer_ : Completion
        Scores of pairs: ``completer_.predict_entries(i, j)``; not symmetric by itself.
    reg_ : float
        The penalty of the fit.
    validation_errors_ : list of float or None
        Share of held-out pairs that were wrong, for each penalty of the list.
    history_ : list of dict
        ``objective`` and more of each sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import GIMCClustering
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> ring = np.linalg.norm(X[:, :2], axis=1) > 1.2  # inside or outside a circle
    >>> pairs = rng.choice(80, (400, 2))
    >>> same = ring[pairs[:, 0]] == ring[pairs[:, 1]]
    >>> model = GIMCClustering(2, n_components=20, max_iter=200, tol=1e-3, random_state=0)
    >>> model = model.fit(X, pairs=pairs, same=same)
    >>> bool(max(np.mean(model.labels_ == ring), np.mean(model.labels_ != ring)) > 0.9)
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int = 100,
        map: str | FeatureMap = "fourier",
        gamma: float | str = "median",
        learn_map: bool = True,
        tie_uv: bool = False,
        reg: float | Sequence[float] = 0.1,
        validation_fraction: float = 0.1,
        rank: int | None = None,
        standardize: bool = True,
        solver: str = "lbfgs",
        start_sweeps: int = 15,
        n_init: int = 10,
        max_iter: int = 30,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.map = map
        self.gamma = gamma
        self.learn_map = learn_map
        self.tie_uv = tie_uv
        self.reg = reg
        self.validation_fraction = validation_fraction
        self.rank = rank
        self.standardize = standardize
        self.solver = solver
        self.start_sweeps = start_sweeps
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _map(self) -> FeatureMap:
        a_map: FeatureMap
        if isinstance(self.map, FeatureMap):
            a_map = self.map
        elif check_choice("map", self.map, ("fourier", "nystrom")) == "fourier":
            a_map = Fourier(self.n_components, self.gamma, self.learn_map)
        else:
            a_map = Nystrom(self.n_components, self.gamma, self.learn_map)
        return Standardized(a_map) if self.standardize else a_map

    def _solver(self) -> Solver:
        return GoalDirected(
            step=check_choice("solver", self.solver, ("lbfgs", "armijo")),
            start_sweeps=check_count("start_sweeps", self.start_sweeps, minimum=0),
            tied=bool(self.tie_uv),
        )


class MCCC(ObservedPairClusterer):
    """Clustering from known pairs through linear features: matrix completion for constrained clustering.

    min over W, H   1/2 sum_known (q_i' W H' q_j - s_ij)^2 + reg/2 (||W||_F^2 + ||H||_F^2)

    q_i is row i of an orthonormal basis of [X 1], times the root of the number of items; s_ij is 1 for
    pairs that belong together and 0 for pairs that do not, and each pair counts as (i, j) and as (j, i). The
    leading left singular vectors of Q W are then clustered by k-means. It is what
    :class:`GIMCClustering` is compared with.

    Parameters
    ----------
    reg : float or list of float, default=1.0
        Weight of the penalty; a list as in :class:`GIMCClustering`.
    validation_fraction : float, default=0.1
        Share of the pairs that are held out if ``reg`` is a list.
    rank : int, optional
        Rank of the pair matrix; ``n_clusters`` by default.

    Attributes
    ----------
    labels_ : ndarray of int
        Cluster of each item.
    embedding_ : ndarray of shape (n_items, at most n_clusters)
        What k-means saw: orthonormal columns.
    cluster_centers_ : ndarray of shape (n_clusters, width of the embedding)
        Centres of the clusters in the embedding.
    projection_ : ndarray
        From the factors of items to their embedding, also for items that come later (:meth:`predict`).
    item_ids_ : Vocabulary or None
        What the items are called.
    completer_ : Completion
        Scores of pairs: ``completer_.predict_entries(i, j)``; not symmetric by itself.
    reg_ : float
        The penalty of the fit.
    validation_errors_ : list of float or None
        Share of held-out pairs that were wrong, for each penalty of the list.
    history_ : list of dict
        ``objective`` and more of each sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import MCCC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> side = X[:, 0] > 0
    >>> pairs = rng.choice(60, (200, 2))
    >>> same = side[pairs[:, 0]] == side[pairs[:, 1]]
    >>> model = MCCC(2, random_state=0).fit(X, pairs=pairs, same=same)
    >>> bool(max(np.mean(model.labels_ == side), np.mean(model.labels_ != side)) > 0.85)
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        reg: float | Sequence[float] = 1.0,
        validation_fraction: float = 0.1,
        rank: int | None = None,
        n_init: int = 10,
        max_iter: int = 50,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.reg = reg
        self.validation_fraction = validation_fraction
        self.rank = rank
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _map(self) -> FeatureMap:
        return Whitened(WithOnes(standardize=True))

    def _solver(self) -> Solver:
        return AlternatingCG()

    def _penalty(self, reg: float, n_items: int) -> float:
        # The basis itself has rows of length about n^(-1/2); factors grow by what features lack.
        return reg / n_items


def left_space(factor: FloatArray, n_axes: int) -> tuple[FloatArray, FloatArray]:
    """Leading left singular vectors of a tall matrix; fewer than asked for where its rank is lower.

    Returns
    -------
    space : ndarray of shape (n_items, n_axes or fewer)
        The singular vectors.
    projection : ndarray of shape (width, n_axes or fewer)
        What the factors are multiplied by to give them: right singular vectors over singular values.
    """
    basis, small = np.linalg.qr(factor.astype(np.float64))
    rotation, values, axes = np.linalg.svd(small)
    found = int(np.count_nonzero(values > RELATIVE_CUT * max(float(values[0]), 1e-300)))
    if found < min(n_axes, factor.shape[1]):
        warnings.warn(
            f"the row factors have rank {found}, fewer than {n_axes} clusters; clustering in {found} "
            "dimension(s). A smaller reg or more pairs may help",
            DataWarning,
            stacklevel=2,
        )
    if found == 0:
        return np.zeros((factor.shape[0], 1)), np.zeros((factor.shape[1], 1))
    kept = min(found, n_axes)
    space: FloatArray = basis @ rotation[:, :kept]
    return space, axes[:kept].T / values[:kept]
