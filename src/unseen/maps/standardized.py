"""Another map on features that were scaled first."""

from __future__ import annotations

from typing import cast

import numpy as np

from unseen.linalg.designs import DenseDesign, Design, SparseDesign
from unseen.maps.base import DesignPath, FeatureMap, MapParams
from unseen.maps.linear import Given, standardized
from unseen.typing import Array, Features

__all__ = ["Standardized"]

PREFIX = "feature_"
"""Keeps the scales apart from the params of the map inside."""


class Standardized(FeatureMap):
    """Another map, applied to features of unit variance.

    They are centred too; the means of sparse features are subtracted in products, so that they stay sparse.
    New entities are scaled by the numbers of the training entities, whatever their format.

    Parameters
    ----------
    base : FeatureMap, optional
        What is applied afterwards; :class:`Given` by default. It may be learned.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Fourier
    >>> from unseen.maps import Standardized
    >>> X = np.random.default_rng(0).normal(size=(6, 3)) * [1.0, 1000.0, 0.01]
    >>> a_map = Standardized(Fourier(4, learnable=True))
    >>> a_map.learned, sorted(a_map.init(X, 6, np.random.default_rng(1)))
    (('projections',), ['feature_mean', 'feature_scale', 'projections'])
    """

    def __init__(self, base: FeatureMap | None = None) -> None:
        self.base = base

    def _base(self) -> FeatureMap:
        return Given() if self.base is None else self.base

    @property
    def learned(self) -> tuple[str, ...]:
        return self._base().learned

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        assert features is not None
        scales = Given(standardize=True).init(features, n_entities, rng)
        named = {PREFIX + name: value for name, value in scales.items()}
        return {**named, **self._base().init(_plain(standardized(features, scales)), n_entities, rng)}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        return self._base().apply(_scaled(features, params), n_entities, params, n_threads)

    def pullback(
        self, features: Features | None, params: MapParams, design: Design, grad: Array, n_threads: int = 1
    ) -> MapParams:
        return self._base().pullback(_scaled(features, params), params, design, grad, n_threads)

    def path(
        self, features: Features, params: MapParams, direction: MapParams, n_threads: int = 1
    ) -> DesignPath:
        return self._base().path(_scaled(features, params), params, direction, n_threads)

    def origin(self, params: MapParams, width: int) -> Array:
        return self._base().origin(params, width)

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return self._base().feature_names(names, width)


def _scaled(features: Features | None, params: MapParams) -> Features:
    assert features is not None
    scales = {name.removeprefix(PREFIX): value for name, value in params.items() if name.startswith(PREFIX)}
    return _plain(standardized(features, scales))


def _plain(design: Design) -> Features:
    """A design as the features of another map; centred sparse ones stand for themselves."""
    if isinstance(design, (DenseDesign, SparseDesign)):
        return design.matrix
    return cast(Features, design)
