"""Biases of new rows and columns, as their features suggest.

Biases are known for rows and columns with cells; one that is new has none, and the features of a model that
was fitted after the biases were subtracted no longer speak of them. So they are regressed on the features:

    min over w, c   sum_i n_i (b_i - x_i' w - c)^2 + STRENGTH ||w||^2

with b_i the bias, n_i the number of cells and x_i the features of an entity, of unit variance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, lsqr

from unseen.typing import Features, FloatArray

__all__ = ["bias_of_features", "weights_of_features"]

STRENGTH, TOL = 10.0, 1e-12


def weights_of_features(biases: FloatArray, counts: FloatArray, features: Features) -> FloatArray:
    """Weights of the features in their own units, and a constant at the end."""
    matrix: Any = features.astype(np.float64)
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    square = matrix.multiply(matrix) if sparse.issparse(features) else matrix * matrix
    scale = np.sqrt(np.maximum(np.asarray(square.mean(axis=0)).ravel() - mean**2, 0.0))
    inverse = np.where(scale > 1e-9 * np.abs(mean), 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    root = np.sqrt(counts)
    level = float(counts @ biases / max(counts.sum(), 1e-300))

    # Centred by a correction of rank one, so that sparse features are never filled in.
    def dot(w: FloatArray) -> FloatArray:
        found: FloatArray = root * (matrix @ (inverse * w) - mean @ (inverse * w))
        return found

    def tdot(v: FloatArray) -> FloatArray:
        found: FloatArray = inverse * (matrix.T @ (root * v) - mean * (root @ v))
        return found

    scaled = LinearOperator(matrix.shape, matvec=dot, rmatvec=tdot, dtype=np.float64)
    solved = lsqr(scaled, root * (biases - level), damp=np.sqrt(STRENGTH), atol=TOL, btol=TOL)
    weights = solved[0] * inverse
    left = biases - np.asarray(matrix @ weights)
    return np.append(weights, counts @ left / max(counts.sum(), 1e-300))


def bias_of_features(weights: FloatArray, features: Features) -> FloatArray:
    """The biases that features suggest."""
    suggested: FloatArray = np.asarray(features @ weights[:-1]).ravel() + weights[-1]
    return suggested
