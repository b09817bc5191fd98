"""The feature map protocol."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from unseen.linalg.designs import Design
from unseen.typing import Array, Features

__all__ = ["DesignPath", "FeatureMap", "MapParams", "moved"]

MapParams: TypeAlias = dict[str, Array]
"""What a map draws or learns: projections, landmarks, column scales."""
DesignPath: TypeAlias = Callable[[float], Design]
"""Step length to the design at ``params + step * direction``."""


class FeatureMap(BaseEstimator):  # type: ignore[misc]
    """Turns the features of entities into a design matrix.

    A map has no state of its own: hyper-parameters live here, everything drawn or
    learned lives in the ``params`` that :meth:`init` returns, so that one map object can
    serve many fits and a saved model needs only arrays.

    Attributes
    ----------
    inductive : bool
        Whether the map can speak about an entity that was not there at training time.
    needs_features : bool
        Whether the side must come with features.
    by_entity : bool
        Whether each entity has one row of coefficients of its own, and there are no others.
    reads_cells : bool
        Whether the design comes from the training cells; ``features`` are then a
        :class:`~unseen.maps.joined.Seen`.
    learned : tuple of str
        Names of the params that a solver may move; their gradient comes from
        :meth:`pullback`. Empty for a fixed map.
    """

    inductive: ClassVar[bool] = True
    needs_features: ClassVar[bool] = True
    by_entity: ClassVar[bool] = False
    reads_cells: ClassVar[bool] = False

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of the parameters that are learned with the model."""
        return ()

    @abstractmethod
    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        """Draw or compute the parameters from the training features."""

    @abstractmethod
    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        """Design matrix of (training or new) entities."""

    def pullback(
        self, features: Features | None, params: MapParams, design: Design, grad: Array, n_threads: int = 1
    ) -> MapParams:
        """Gradient of the learned params, given the gradient with respect to the design.

        ``design`` is what :meth:`apply` made of the same ``params``, so that nothing need be
        computed twice.
        """
        return {}

    def path(
        self, features: Features, params: MapParams, direction: MapParams, n_threads: int = 1
    ) -> DesignPath:
        """Designs along a search direction of the learned params, for line searches.

        Maps override it where a trial can be had for less than a new :meth:`apply`.
        """

        def at(step: float) -> Design:
            return self.apply(features, features.shape[0], moved(params, direction, step), n_threads)

        return at

    def origin(self, params: MapParams, width: int) -> Array:
        """Design row of an entity whose features are all at their origin (their mean, if centred)."""
        return np.zeros((1, width))

    def units(self, params: MapParams, width: int) -> Array | None:
        """Matrix K with ``design row = [features, 1] @ K``, or None where there is no such matrix.

        It takes coefficients back to the units of the features: ``[x 1] K Z`` is ``a Z``.
        """
        return None

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        """Name the columns of the design, given the names of the features."""
        return list(names) if names is not None and len(names) == width else [f"x{i}" for i in range(width)]


def moved(params: MapParams, direction: MapParams, step: float) -> MapParams:
    """``params`` with those named in ``direction`` moved along it."""
    out = dict(params)
    for name, change in direction.items():
        out[name] = params[name] + params[name].dtype.type(step) * change
    return out
