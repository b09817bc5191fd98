"""Nystrom features of the Gaussian kernel."""

from __future__ import annotations

import numpy as np

from unseen.linalg.designs import DenseDesign, Design
from unseen.maps.base import FeatureMap, MapParams
from unseen.maps.kernel_width import dense_rows, gaussian_block, resolve_gamma
from unseen.typing import Features

__all__ = ["Nystrom"]


class Nystrom(FeatureMap):
    """Gaussian similarities to landmark rows (GIMC eqs. 7 and 8).

    phi(x) = [k(x, u_1) ... k(x, u_m)] M,  k(x, u) = exp(-gamma ||x - u||^2), with
    M = (E^+)^(1/2), E_rs = k(u_r, u_s), if ``whiten`` and M = I otherwise. Directions of
    E below 1e-8 of its largest eigenvalue are dropped, so duplicate landmarks do no harm.

    Parameters
    ----------
    n_components : int, default=100
        Number m of landmarks, drawn from the training rows; at most the number of rows.
    gamma : float or "median", default="median"
        Kernel width; "median" is one over the median squared distance of a sample.
    whiten : bool, default=True
        Multiply by the inverse square root of the landmarks' own kernel matrix.
    """

    def __init__(self, n_components: int = 100, gamma: float | str = "median", whiten: bool = True) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.whiten = whiten

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        assert features is not None
        gamma = resolve_gamma(self.gamma, features, rng)
        picked = np.sort(rng.choice(n_entities, size=min(self.n_components, n_entities), replace=False))
        landmarks = dense_rows(features, picked)
        params = {"landmarks": landmarks, "gamma": np.array(gamma)}
        if self.whiten:
            values, vectors = np.linalg.eigh(gaussian_block(landmarks, landmarks, gamma).astype(np.float64))
            kept = values > 1e-8 * values[-1]
            basis = vectors[:, kept]
            params["mixing"] = (basis / np.sqrt(values[kept]) @ basis.T).astype(features.dtype, copy=False)
        return params

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        assert features is not None
        similarities = gaussian_block(features, params["landmarks"], float(params["gamma"]))
        if "mixing" in params:
            similarities = similarities @ params["mixing"]
        return DenseDesign(similarities, n_threads)

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return [f"landmark{r}" for r in range(width)]
