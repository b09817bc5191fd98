"""Another map's columns, made orthonormal."""

from __future__ import annotations

import numpy as np

from unseen.exceptions import InvalidDataError, ParameterError, TooLargeError
from unseen.linalg.designs import DenseDesign, Design
from unseen.maps.base import FeatureMap, MapParams
from unseen.maps.linear import Given
from unseen.typing import Array, Features

__all__ = ["Whitened"]

RELATIVE_CUT = 1e-8
"""Directions with singular values below this share of the largest are rounding, not features."""
MAX_CELLS = 200_000_000
"""Entities times features up to which a dense decomposition is made."""


class Whitened(FeatureMap):
    """Columns of another map, rotated and scaled to be orthonormal over the training entities.

    phi(x) = base(x) V S^-1 with the thin decomposition base(X) = U S V'. The span of the
    columns stays the same; what changes is that a penalty on the coefficients no longer depends
    on how the features were scaled or correlated. Directions below 1e-8 of the largest singular
    value are dropped, so constant and repeated columns do no harm. The result is dense.

    Parameters
    ----------
    base : FeatureMap, optional
        Map to whiten; :class:`Given` by default. It stays fixed: a learned map is refused.
    """

    def __init__(self, base: FeatureMap | None = None) -> None:
        self.base = base

    def _base(self) -> FeatureMap:
        return Given() if self.base is None else self.base

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        if self._base().learned:
            raise ParameterError(
                f"{type(self.base).__name__} is to be learned, and Whitened keeps its base fixed; "
                "pass learnable=False (Nystrom whitens by itself)"
            )
        params = self._base().init(features, n_entities, rng)
        design = self._base().apply(features, n_entities, params)
        if design.shape[0] * design.shape[1] > MAX_CELLS:
            raise TooLargeError(
                f"whitening needs a dense copy of {design.shape[0]} x {design.shape[1]} features, the limit "
                f"is {MAX_CELLS:,} numbers; pass whiten=False, or fewer features"
            )
        dense = design.toarray().astype(np.float64)
        if not np.isfinite(dense).all():
            raise InvalidDataError("features overflow when they are standardised; rescale them")
        _, values, axes = np.linalg.svd(dense, full_matrices=False)
        kept = values > RELATIVE_CUT * values[0] if values.size else np.zeros(0, dtype=bool)
        return {**params, "whitening": axes[kept].T / values[kept]}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        design = self._base().apply(features, n_entities, params, n_threads)
        dtype = np.float64 if features is None else features.dtype
        return DenseDesign(design.dot(params["whitening"].astype(dtype)), n_threads)

    def origin(self, params: MapParams, width: int) -> Array:
        rotation = params["whitening"]
        return np.asarray(self._base().origin(params, rotation.shape[0]) @ rotation)

    def units(self, params: MapParams, width: int) -> Array | None:
        rotation = params["whitening"]
        base = self._base().units(params, rotation.shape[0])
        return None if base is None else np.asarray(base @ rotation)

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return [f"axis{r}" for r in range(width)]
