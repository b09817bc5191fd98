"""Nystrom features of the Gaussian kernel, with fixed or learned landmarks."""

from __future__ import annotations

import numpy as np

from unseen.linalg.blocked import matmul
from unseen.linalg.designs import DenseDesign, Design, as_design
from unseen.maps.base import DesignPath, FeatureMap, MapParams, moved
from unseen.maps.kernel_width import gaussian_block, gaussian_from_products, resolve_gamma, squared_norms
from unseen.maps.landmarks import inverse_root, pick_landmarks, warn_of_unreached
from unseen.typing import Array, Features, FloatArray
from unseen.validation import check_choice, check_count

__all__ = ["Nystrom"]


class Nystrom(FeatureMap):
    """Gaussian similarities to landmarks (GIMC eqs. 7 and 8).

    phi(x) = [k(x, u_1) ... k(x, u_m)] M,  k(x, u) = exp(-gamma ||x - u||^2), with
    M = (E^+)^(1/2), E_rs = k(u_r, u_s), if ``whiten`` and M = I otherwise. Directions of
    E below 1e-8 of its largest eigenvalue are dropped, so duplicate landmarks do no harm.

    Parameters
    ----------
    n_components : int, default=100
        Number m of landmarks; at most the number of training rows.
    gamma : float or "median", default="median"
        Kernel width; "median" is one over the median squared distance of a sample.
    learnable : bool, default=False
        Let the solver move the landmarks; those picked are where it starts. M stays what it was
        at the start, so that learning begins at the model with fixed landmarks.
    whiten : bool, default=True
        Multiply by the inverse square root of the landmarks' own kernel matrix. Without it columns
        are nearly collinear for small ``gamma``, and a mild penalty becomes a strong one.
    landmarks : {"random", "kmeans"}, default="random"
        Training rows drawn at random, or centres of k-means (on at most 20,000 rows).

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Nystrom
    >>> X = np.random.default_rng(0).normal(size=(6, 3))
    >>> a_map = Nystrom(6, gamma=0.5)
    >>> design = a_map.apply(X, 6, a_map.init(X, 6, np.random.default_rng(1))).toarray()
    >>> bool(np.isclose(design[0] @ design[1], np.exp(-0.5 * np.sum((X[0] - X[1]) ** 2))))
    True
    """

    def __init__(
        self,
        n_components: int = 100,
        gamma: float | str = "median",
        learnable: bool = False,
        whiten: bool = True,
        landmarks: str = "random",
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.learnable = learnable
        self.whiten = whiten
        self.landmarks = landmarks

    @property
    def learned(self) -> tuple[str, ...]:
        return ("landmarks",) if self.learnable else ()

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        assert features is not None
        count = check_count("n_components", self.n_components)
        how = check_choice("landmarks", self.landmarks, ("random", "kmeans"))
        gamma = resolve_gamma(self.gamma, features, rng)
        landmarks = pick_landmarks(features, count, how, rng)
        warn_of_unreached(features, landmarks, gamma)
        params = {"landmarks": landmarks, "gamma": np.array(gamma)}
        if self.whiten:
            params["mixing"] = inverse_root(landmarks, gamma).astype(features.dtype, copy=False)
        return params

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        assert features is not None
        similarities = gaussian_block(features, params["landmarks"], float(params["gamma"]), n_threads)
        return self._design(similarities, params, n_threads)

    def pullback(
        self, features: Features | None, params: MapParams, design: Design, grad: Array, n_threads: int = 1
    ) -> MapParams:
        assert features is not None
        gamma, landmarks = float(params["gamma"]), params["landmarks"]
        if isinstance(design, _MixedDesign):
            similarities = design.similarities
        elif "mixing" in params:
            similarities = gaussian_block(features, landmarks, gamma, n_threads)
        else:
            similarities = design.toarray()
        if "mixing" in params:
            grad = matmul(grad, np.ascontiguousarray(params["mixing"].T), n_threads=n_threads)
        weights = similarities * grad
        # d k(x, u) / d u = 2 gamma k(x, u) (x - u)
        pulled = as_design(features, n_threads).tdot(weights).T
        pulled = pulled - weights.sum(axis=0, dtype=np.float64)[:, None] * landmarks
        return {"landmarks": (2.0 * gamma * pulled).astype(landmarks.dtype, copy=False)}

    def path(
        self, features: Features, params: MapParams, direction: MapParams, n_threads: int = 1
    ) -> DesignPath:
        # Products with moved landmarks are linear in the step; their lengths are few and new each time.
        design = as_design(features, n_threads)
        gamma, norms = float(params["gamma"]), squared_norms(features)
        products, change = (
            design.dot(np.ascontiguousarray(part["landmarks"].T)) for part in (params, direction)
        )

        def at(step: float) -> Design:
            trial = products + products.dtype.type(step) * change
            lengths = squared_norms(moved(params, direction, step)["landmarks"])
            similarities = gaussian_from_products(trial, norms, lengths, gamma, n_threads)
            return self._design(similarities, params, n_threads)

        return at

    def _design(self, similarities: FloatArray, params: MapParams, n_threads: int) -> Design:
        if "mixing" not in params:
            return DenseDesign(similarities, n_threads)
        mixed = matmul(similarities, params["mixing"], n_threads=n_threads)
        return (
            _MixedDesign(mixed, similarities, n_threads) if self.learnable else DenseDesign(mixed, n_threads)
        )

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return [f"landmark{r}" for r in range(width)]


class _MixedDesign(DenseDesign):
    """Mixed similarities that remember the plain ones, which the gradient needs."""

    def __init__(self, matrix: FloatArray, similarities: FloatArray, n_threads: int = 1) -> None:
        super().__init__(matrix, n_threads)
        self.similarities = similarities
