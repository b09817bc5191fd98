"""Linear maps: no features, the features as they are, and with a constant column."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from scipy import sparse

from unseen.exceptions import DataWarning
from unseen.linalg.designs import Design, IdentityDesign, as_design
from unseen.maps.base import FeatureMap, MapParams
from unseen.typing import Array, Features, FloatArray

__all__ = ["Constant", "Given", "Identity", "IdentityWithOnes", "WithOnes", "hardly_varies", "standardized"]


class Identity(FeatureMap):
    """No features: every entity has coefficients of its own.

    Nothing is known about an entity that was not in the training data, so terms with
    this map drop out of predictions for new rows or columns.
    """

    inductive: ClassVar[bool] = False
    needs_features: ClassVar[bool] = False

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        return {}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        return IdentityDesign(n_entities)


class Constant(FeatureMap):
    """A constant column and nothing else, for a side that has no features."""

    needs_features: ClassVar[bool] = False

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        return {}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        return as_design(sparse.csr_array(np.ones((n_entities, 1))), n_threads)

    def origin(self, params: MapParams, width: int) -> Array:
        return np.ones((1, 1))

    def units(self, params: MapParams, width: int) -> Array | None:
        return np.ones((1, 1))

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return ["1"]


class IdentityWithOnes(FeatureMap):
    """Coefficients of its own for every entity, and a constant column that they share.

    Under a sparse penalty the shared column holds what most entities have in common.
    """

    inductive: ClassVar[bool] = False
    needs_features: ClassVar[bool] = False

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        return {}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        ones = sparse.csr_array(np.ones((n_entities, 1)))
        return as_design(sparse.csr_array(sparse.hstack([sparse.eye_array(n_entities), ones])), n_threads)

    def origin(self, params: MapParams, width: int) -> Array:
        return _ones_at_the_end(width)

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return [*super().feature_names(names, width - 1), "1"]


class Given(FeatureMap):
    """The features as they are.

    Parameters
    ----------
    standardize : bool, default=False
        Scale columns to unit variance, and centre them if the features are dense.
        Sparse features are only scaled: centring would fill them in. A constant column
        stays as it is if it is dense and zero-variance columns are never divided by zero.
    """

    def __init__(self, standardize: bool = False) -> None:
        self.standardize = standardize

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        if not self.standardize or features is None:
            return {}
        if sparse.issparse(features):
            square = np.asarray(features.multiply(features).mean(axis=0), dtype=np.float64).ravel()
            return {"scale": _inverse_scale(np.sqrt(square))}
        return self.scales(features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64))

    def scales(self, mean: Array, deviation: Array) -> MapParams:
        """Parameters for dense features with these means and standard deviations."""
        if not self.standardize:
            return {}
        # A column that varies only by rounding is a constant.
        constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1.0)
        mean = np.where(constant, 0.0, mean)
        deviation = np.where(constant, 0.0, deviation)
        return {"mean": mean, "scale": _inverse_scale(deviation)}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        assert features is not None
        return as_design(standardized(features, params), n_threads)

    def units(self, params: MapParams, width: int) -> Array | None:
        scale = params.get("scale", np.ones(width)).astype(np.float64)
        mean = params.get("mean", np.zeros(width)).astype(np.float64)
        return np.vstack([np.diag(scale), -mean * scale])


class WithOnes(Given):
    """The features and a constant column, so that one-sided effects have a place.

    With a constant column on both sides the bilinear form x' Z y holds a row-only linear
    part, a column-only linear part and a constant beside the interactions.

    Parameters
    ----------
    standardize : bool, default=False
        As in :class:`Given`; the constant column is appended afterwards.

    Notes
    -----
    A feature that is the same for every training entity says what the constant column says
    already. Its coefficient is held at zero, with a warning.
    """

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        params = super().init(features, n_entities, rng)
        if features is None:
            return params
        return self.without_constants(params, _constant_columns(features))

    def without_constants(self, params: MapParams, is_constant: Array) -> MapParams:
        """Parameters that leave out constant features, with a warning."""
        constant = np.flatnonzero(is_constant)
        if not constant.size:
            return params
        shown = ", ".join(map(str, constant[:5])) + (", ..." if constant.size > 5 else "")
        warnings.warn(
            f"{constant.size} of {is_constant.size} features are constant (column {shown}) and repeat the "
            "intercept; they are left out",
            DataWarning,
            stacklevel=3,
        )
        scale = params.get("scale", np.ones(is_constant.size))
        scale[constant] = 0.0
        return {"mean": np.zeros(is_constant.size), **params, "scale": scale}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        assert features is not None
        scaled = standardized(features, params)
        ones = np.ones((n_entities, 1), dtype=scaled.dtype)
        if sparse.issparse(scaled):
            return as_design(sparse.csr_array(sparse.hstack([scaled, sparse.csr_array(ones)])), n_threads)
        return as_design(np.hstack([scaled, ones]), n_threads)

    def origin(self, params: MapParams, width: int) -> Array:
        return _ones_at_the_end(width)

    def units(self, params: MapParams, width: int) -> Array | None:
        features = super().units(params, width - 1)
        return None if features is None else np.hstack([features, _ones_at_the_end(width).T])

    def feature_names(self, names: list[str] | None, width: int) -> list[str]:
        return [*super().feature_names(names, width - 1), "1"]


def _ones_at_the_end(width: int) -> Array:
    row = np.zeros((1, width))
    row[0, -1] = 1.0
    return row


def _constant_columns(features: Features) -> Array:
    """Whether each column varies by no more than rounding."""
    if sparse.issparse(features):
        high, low = (extreme.toarray().ravel() for extreme in (features.max(axis=0), features.min(axis=0)))
    else:
        high, low = features.max(axis=0), features.min(axis=0)
    return hardly_varies(low, high)


def hardly_varies(low: Array, high: Array) -> Array:
    """Whether columns with these extremes vary by no more than rounding."""
    spread: Array = high - low <= 1e-12 * np.maximum(np.abs(high), 1.0)
    return spread


def _inverse_scale(deviation: Array) -> Array:
    inverse: Array = np.divide(1.0, deviation, out=np.ones_like(deviation), where=deviation > 0)
    return inverse


def standardized(features: Features, params: MapParams) -> Features:
    """Features centred and scaled by what :class:`Given` found."""
    if "scale" not in params:
        return features
    scale = params["scale"].astype(features.dtype, copy=False)
    if sparse.issparse(features):
        return sparse.csr_array(features @ sparse.diags_array(scale))
    scaled: FloatArray = (features - params["mean"].astype(features.dtype, copy=False)) * scale
    return scaled
