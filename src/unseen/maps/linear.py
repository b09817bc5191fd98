"""Linear maps: no features, the features as they are, and with a constant column."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from scipy import sparse

from unseen.exceptions import DataWarning
from unseen.linalg.designs import (
    CentredDesign,
    DenseDesign,
    Design,
    IdentityDesign,
    SparseDesign,
    as_design,
)
from unseen.maps.base import FeatureMap, MapParams
from unseen.typing import CSR, Array, Features, FloatArray

__all__ = [
    "Constant",
    "Given",
    "Identity",
    "IdentityWithOnes",
    "WithOnes",
    "hardly_varies",
    "moments",
    "squared_deviations",
    "standardized",
]


class Identity(FeatureMap):
    """No features: every entity has coefficients of its own.

    Nothing is known about an entity that was not in the training data, so terms with
    this map drop out of predictions for new rows or columns.
    """

    by_entity: ClassVar[bool] = True
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
        Centre columns and scale them to unit variance, by the means and deviations of the training
        entities. Sparse features stay sparse: their means are subtracted in products. A constant column is
        only left as it is; nothing is divided by zero.
    """

    def __init__(self, standardize: bool = False) -> None:
        self.standardize = standardize

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        if not self.standardize or features is None:
            return {}
        return self.scales(*moments(features))

    def scales(self, mean: Array, deviation: Array) -> MapParams:
        """Parameters for features with these means and standard deviations."""
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
        return standardized(features, params, n_threads)

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
        return standardized(features, params, n_threads, ones=True)

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


def moments(features: Features) -> tuple[Array, Array]:
    """Mean and standard deviation of each column in float64, the same for dense and sparse features."""
    n = features.shape[0]
    if not sparse.issparse(features):
        return features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    mean = np.asarray(features.sum(axis=0, dtype=np.float64)).ravel() / n
    return mean, np.sqrt(squared_deviations(features, mean) / n)


def squared_deviations(features: Features, mean: Array) -> Array:
    """Sum over the rows of squared differences from the means; blank cells of sparse features are zeros."""
    if sparse.issparse(features):
        csc = sparse.csc_array(features)
        counts = np.diff(csc.indptr)
        column = np.repeat(np.arange(csc.shape[1]), counts)
        away = csc.data.astype(np.float64) - mean[column]
        stored = np.bincount(column, away * away, minlength=csc.shape[1])
        return np.asarray(stored + (csc.shape[0] - counts) * mean * mean)
    difference = features.astype(np.float64) - mean
    squares: Array = np.einsum("ij,ij->j", difference, difference)
    return squares


def standardized(features: Features, params: MapParams, n_threads: int = 1, *, ones: bool = False) -> Design:
    """Features centred and scaled by what :class:`Given` found, and a constant column if asked for.

    What was found at training decides, not the format of the features at hand.
    """
    scale = params.get("scale")
    mean = params.get("mean", np.zeros(0)) if scale is not None else np.zeros(0)
    centred = features if isinstance(features, CentredDesign) else None
    if centred is None and not sparse.issparse(features):
        dense: FloatArray = np.asarray(features)
        if scale is not None:
            dense = dense - mean.astype(dense.dtype, copy=False) if mean.size else dense
            dense = dense * scale.astype(dense.dtype, copy=False)
        if ones:
            dense = np.hstack([dense, np.ones((dense.shape[0], 1), dtype=dense.dtype)])
        return DenseDesign(dense, n_threads)
    rows: CSR = sparse.csr_array(features if centred is None else centred.base.matrix)
    shift = np.zeros(rows.shape[1]) if centred is None else centred.shift
    if scale is not None:
        shift = (shift + (mean if mean.size else 0.0)) * scale
        rows = sparse.csr_array(rows @ sparse.diags_array(scale.astype(rows.dtype, copy=False)))
    if ones:
        column = sparse.csr_array(np.ones((rows.shape[0], 1), dtype=rows.dtype))
        rows = sparse.csr_array(sparse.hstack([rows, column]))
        shift = np.append(shift, 0.0)
    base = SparseDesign(rows, n_threads)
    return CentredDesign(base, shift.astype(np.float64)) if shift.any() else base
