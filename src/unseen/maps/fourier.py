"""Random Fourier features of the Gaussian kernel."""

from __future__ import annotations

import numpy as np

from unseen.linalg.designs import DenseDesign, Design, as_design
from unseen.maps.base import FeatureMap, MapParams
from unseen.maps.kernel_width import resolve_gamma
from unseen.typing import Features

__all__ = ["Fourier"]


class Fourier(FeatureMap):
    """Cosines and sines of random projections (GIMC eq. 6).

    phi(x) = m^(-1/2) [cos(u_1'x) ... cos(u_m'x) sin(u_1'x) ... sin(u_m'x)],
    u_r ~ N(0, 2 gamma I), so that phi(x)'phi(y) estimates exp(-gamma ||x - y||^2).

    Parameters
    ----------
    n_components : int, default=100
        Number m of projections; the design has 2 m columns.
    gamma : float or "median", default="median"
        Kernel width; "median" is one over the median squared distance of a sample.
    """

    def __init__(self, n_components: int = 100, gamma: float | str = "median") -> None:
        self.n_components = n_components
        self.gamma = gamma

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        assert features is not None
        gamma = resolve_gamma(self.gamma, features, rng)
        projections = rng.standard_normal((features.shape[1], self.n_components)) * np.sqrt(2.0 * gamma)
        return {"projections": projections.astype(features.dtype, copy=False)}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        assert features is not None
        angles = as_design(features, n_threads).dot(params["projections"])
        m = angles.shape[1]
        out = np.empty((n_entities, 2 * m), dtype=angles.dtype)
        np.cos(angles, out=out[:, :m])
        np.sin(angles, out=out[:, m:])
        out *= out.dtype.type(m**-0.5)
        return DenseDesign(out, n_threads)

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        half = width // 2
        return [f"cos{r}" for r in range(half)] + [f"sin{r}" for r in range(half)]
