"""Gaussian kernel blocks and the median rule for their width."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse

from unseen.typing import Features, FloatArray, IndexArray
from unseen.validation import check_positive

__all__ = ["dense_rows", "gaussian_block", "resolve_gamma", "squared_distances"]


def squared_distances(left: Features, right: FloatArray) -> FloatArray:
    """Squared Euclidean distances between the rows of two matrices, never below zero."""
    left_norms = (
        np.asarray(left.multiply(left).sum(axis=1)).ravel()
        if sparse.issparse(left)
        else np.einsum("ij,ij->i", left, left)
    )
    right_norms = np.einsum("ij,ij->i", right, right)
    cross: FloatArray = np.asarray(left @ right.T)
    distances: FloatArray = left_norms[:, None] - 2.0 * cross + right_norms[None, :]
    return np.maximum(distances, 0.0, out=distances)


def gaussian_block(left: Features, right: FloatArray, gamma: float) -> FloatArray:
    """``exp(-gamma ||x - u||^2)`` for every row x of ``left`` and u of ``right``."""
    block = squared_distances(left, right)
    block *= block.dtype.type(-gamma)
    return np.exp(block, out=block)


def dense_rows(features: Features, picked: IndexArray) -> FloatArray:
    """A few rows of dense or sparse features as a dense array."""
    rows = cast(Any, features[picked])
    return np.asarray(rows.toarray() if sparse.issparse(features) else rows)


def resolve_gamma(
    gamma: float | str, features: Features, rng: np.random.Generator, sample: int = 1000
) -> float:
    """Turn ``"median"`` into one over the median squared distance of sampled rows."""
    if gamma != "median":
        return check_positive("gamma", gamma)
    n = features.shape[0]
    picked = np.sort(rng.choice(n, size=min(n, sample), replace=False))
    dense = dense_rows(features, picked).astype(np.float64, copy=False)
    distances = squared_distances(dense, dense)[np.triu_indices(len(picked), 1)]
    distances = distances[distances > 0]
    return 1.0 / float(np.median(distances)) if distances.size else 1.0
