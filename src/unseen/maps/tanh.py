"""A layer of tanh units: a short example of a learned map."""

from __future__ import annotations

import numpy as np

from unseen.linalg.designs import DenseDesign, Design, as_design
from unseen.maps.base import FeatureMap, MapParams
from unseen.typing import Array, Features
from unseen.validation import check_count, check_positive

__all__ = ["Tanh"]


class Tanh(FeatureMap):
    """One hidden layer: phi(x) = m^(-1/2) [tanh(u_1'x + b_1) ... tanh(u_m'x + b_m)].

    Directions u_r start as N(0, scale^2/d), offsets b_r as N(0, scale^2); d is the number of features.

    Parameters
    ----------
    n_components : int, default=100
        Number m of units.
    scale : float, default=1.0
        Size of the start for features of unit variance.
    learnable : bool, default=True
        Let the solver move directions and offsets.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Tanh
    >>> X = np.random.default_rng(0).normal(size=(6, 3))
    >>> a_map = Tanh(4)
    >>> a_map.apply(X, 6, a_map.init(X, 6, np.random.default_rng(1))).shape
    (6, 4)
    """

    def __init__(self, n_components: int = 100, scale: float = 1.0, learnable: bool = True) -> None:
        self.n_components = n_components
        self.scale = scale
        self.learnable = learnable

    @property
    def learned(self) -> tuple[str, ...]:
        return ("directions", "offsets") if self.learnable else ()

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        assert features is not None
        m, d = check_count("n_components", self.n_components), features.shape[1]
        scale = check_positive("scale", self.scale)
        directions = rng.normal(scale=scale / np.sqrt(d), size=(d, m)).astype(features.dtype, copy=False)
        return {
            "directions": directions,
            "offsets": rng.normal(scale=scale, size=m).astype(features.dtype, copy=False),
        }

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        assert features is not None
        units = as_design(features, n_threads).dot(params["directions"])
        units += params["offsets"]
        np.tanh(units, out=units)
        units *= units.dtype.type(units.shape[1] ** -0.5)
        return DenseDesign(units, n_threads)

    def pullback(
        self, features: Features | None, params: MapParams, design: Design, grad: Array, n_threads: int = 1
    ) -> MapParams:
        assert features is not None
        phi = design.toarray()
        m = phi.shape[1]
        # tanh' = 1 - tanh^2, and phi carries the scale m^(-1/2).
        inner = grad * (phi.dtype.type(m**-0.5) - phi.dtype.type(m**0.5) * phi * phi)
        return {
            "directions": as_design(features, n_threads).tdot(inner),
            "offsets": inner.sum(axis=0, dtype=np.float64).astype(phi.dtype, copy=False),
        }

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return [f"unit{r}" for r in range(width)]
