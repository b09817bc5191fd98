"""Fourier features of the Gaussian kernel, random or learned."""

from __future__ import annotations

import numpy as np

from unseen.linalg.blocked import in_blocks
from unseen.maps.base import MapParams
from unseen.maps.kernel_width import resolve_gamma
from unseen.maps.products import ProductMap
from unseen.typing import Features, FloatArray
from unseen.validation import check_count

__all__ = ["Fourier"]


class Fourier(ProductMap):
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

    def matrix(self, params: MapParams) -> FloatArray:
        return params["projections"]

    def bare(
        self,
        products: FloatArray,
        params: MapParams,
        norms: FloatArray | None,
        n_threads: int = 1,
        out: FloatArray | None = None,
    ) -> FloatArray:
        return cosines_and_sines(products, n_threads, out)

    def bare_slopes(self, bare: FloatArray, grad: FloatArray, out: FloatArray | None = None) -> FloatArray:
        m = bare.shape[1] // 2
        # The derivative of a cosine is minus the sine beside it, and both carry the same scale.
        slopes: FloatArray = np.multiply(bare[:, :m], grad[:, m:], out=out)
        slopes -= bare[:, m:] * grad[:, :m]
        return slopes

    def gathered(self, pulled: FloatArray, totals: FloatArray, params: MapParams) -> MapParams:
        return {"projections": pulled}

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        half = width // 2
        return [f"cos{r}" for r in range(half)] + [f"sin{r}" for r in range(half)]


def cosines_and_sines(angles: FloatArray, n_threads: int = 1, out: FloatArray | None = None) -> FloatArray:
    """``m^(-1/2) [cos(angles) sin(angles)]`` for angles with m columns."""
    n, m = angles.shape
    made: FloatArray = np.empty((n, 2 * m), dtype=angles.dtype) if out is None else out
    scale = made.dtype.type(m**-0.5)

    def task(rows: slice) -> None:
        part = made[rows]
        np.cos(angles[rows], out=part[:, :m])
        np.sin(angles[rows], out=part[:, m:])
        part *= scale

    for _ in in_blocks(task, n, n_threads):
        pass
    return made
