"""Fourier features of the Gaussian kernel, random or learned."""

from __future__ import annotations

import numpy as np

from unseen.linalg.blocked import in_blocks
from unseen.linalg.designs import DenseDesign, Design, as_design
from unseen.maps.base import DesignPath, FeatureMap, MapParams
from unseen.maps.kernel_width import resolve_gamma
from unseen.typing import Array, Features, FloatArray
from unseen.validation import check_count

__all__ = ["Fourier"]


class Fourier(FeatureMap):
    """Cosines and sines of projections (GIMC eq. 6).

    phi(x) = m^(-1/2) [cos(u_1'x) ... cos(u_m'x) sin(u_1'x) ... sin(u_m'x)],
    u_r ~ N(0, 2 gamma I), so that phi(x)'phi(y) estimates exp(-gamma ||x - y||^2).

    Parameters
    ----------
    n_components : int, default=100
        Number m of projections; the design has 2 m columns.
    gamma : float or "median", default="median"
        Kernel width; "median" is one over the median squared distance of a sample.
    learnable : bool, default=False
        Let the solver move the projections; the random ones are where it starts.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Fourier
    >>> X = np.random.default_rng(0).normal(size=(6, 3))
    >>> a_map = Fourier(500, gamma=0.5)
    >>> design = a_map.apply(X, 6, a_map.init(X, 6, np.random.default_rng(1))).toarray()
    >>> bool(abs(design[0] @ design[1] - np.exp(-0.5 * np.sum((X[0] - X[1]) ** 2))) < 0.1)
    True
    """

    def __init__(
        self, n_components: int = 100, gamma: float | str = "median", learnable: bool = False
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.learnable = learnable

    @property
    def learned(self) -> tuple[str, ...]:
        return ("projections",) if self.learnable else ()

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        assert features is not None
        m = check_count("n_components", self.n_components)
        gamma = resolve_gamma(self.gamma, features, rng)
        projections = rng.standard_normal((features.shape[1], m)) * np.sqrt(2.0 * gamma)
        return {"projections": projections.astype(features.dtype, copy=False)}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        assert features is not None
        angles = as_design(features, n_threads).dot(params["projections"])
        return DenseDesign(cosines_and_sines(angles, n_threads), n_threads)

    def pullback(
        self, features: Features | None, params: MapParams, design: Design, grad: Array, n_threads: int = 1
    ) -> MapParams:
        assert features is not None
        phi = design.toarray()
        m = phi.shape[1] // 2
        # The derivative of a cosine is minus the sine beside it, and both carry the same scale.
        by_angle = phi[:, :m] * grad[:, m:]
        by_angle -= phi[:, m:] * grad[:, :m]
        return {"projections": as_design(features, n_threads).tdot(by_angle)}

    def path(
        self, features: Features, params: MapParams, direction: MapParams, n_threads: int = 1
    ) -> DesignPath:
        # Angles are linear in the projections: two products with X serve every trial.
        design = as_design(features, n_threads)
        angles, change = design.dot(params["projections"]), design.dot(direction["projections"])

        def at(step: float) -> Design:
            trial = angles + angles.dtype.type(step) * change
            return DenseDesign(cosines_and_sines(trial, n_threads), n_threads)

        return at

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        half = width // 2
        return [f"cos{r}" for r in range(half)] + [f"sin{r}" for r in range(half)]


def cosines_and_sines(angles: FloatArray, n_threads: int = 1) -> FloatArray:
    """``m^(-1/2) [cos(angles) sin(angles)]`` for angles with m columns."""
    n, m = angles.shape
    out: FloatArray = np.empty((n, 2 * m), dtype=angles.dtype)
    scale = out.dtype.type(m**-0.5)

    def task(rows: slice) -> None:
        part = out[rows]
        np.cos(angles[rows], out=part[:, :m])
        np.sin(angles[rows], out=part[:, m:])
        part *= scale

    for _ in in_blocks(task, n, n_threads):
        pass
    return out
