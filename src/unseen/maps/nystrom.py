"""Nystrom features of the Gaussian kernel, with fixed or learned landmarks."""

from __future__ import annotations

import numpy as np

from unseen.maps.base import MapParams
from unseen.maps.kernel_width import gaussian_from_products, resolve_gamma, squared_norms
from unseen.maps.landmarks import inverse_root, pick_landmarks, warn_of_unreached
from unseen.maps.products import ProductMap
from unseen.typing import Features, FloatArray
from unseen.validation import check_choice, check_count

__all__ = ["Nystrom"]


class Nystrom(ProductMap):
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

    needs_norms = True

    def matrix(self, params: MapParams) -> FloatArray:
        return np.ascontiguousarray(params["landmarks"].T)

    def bare(
        self,
        products: FloatArray,
        params: MapParams,
        norms: FloatArray | None,
        n_threads: int = 1,
        out: FloatArray | None = None,
    ) -> FloatArray:
        assert norms is not None
        lengths = squared_norms(params["landmarks"])
        similarities = gaussian_from_products(products, norms, lengths, float(params["gamma"]), n_threads)
        if out is None:
            return similarities
        out[:] = similarities
        return out

    def bare_slopes(self, bare: FloatArray, grad: FloatArray, out: FloatArray | None = None) -> FloatArray:
        slopes: FloatArray = np.multiply(bare, grad, out=out)
        return slopes

    def gathered(self, pulled: FloatArray, totals: FloatArray, params: MapParams) -> MapParams:
        landmarks = params["landmarks"]
        # d k(x, u) / d u = 2 gamma k(x, u) (x - u)
        away = pulled.T - totals[:, None] * landmarks
        return {"landmarks": (2.0 * float(params["gamma"]) * away).astype(landmarks.dtype, copy=False)}

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return [f"landmark{r}" for r in range(width)]
