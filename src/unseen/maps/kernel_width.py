"""Gaussian kernel blocks and the median rule for their width."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse

from unseen.linalg.blocked import in_blocks
from unseen.linalg.designs import CentredDesign, as_design
from unseen.typing import Features, FloatArray, IndexArray
from unseen.validation import check_positive

__all__ = [
    "dense_rows",
    "gaussian_block",
    "gaussian_from_products",
    "resolve_gamma",
    "squared_distances",
    "squared_norms",
]


def squared_norms(features: Features) -> FloatArray:
    """Squared length of each row."""
    norms: FloatArray
    if isinstance(features, CentredDesign):
        return features.squared_norms()
    if sparse.issparse(features):
        norms = np.asarray(cast(Any, features.multiply(features).sum(axis=1))).ravel()
        return norms
    norms = np.einsum("ij,ij->i", features, features)
    return norms


def squared_distances(left: Features, right: FloatArray, n_threads: int = 1) -> FloatArray:
    """Squared Euclidean distances between the rows of two matrices, never below zero."""
    distances = as_design(left, n_threads).dot(np.ascontiguousarray(right.T))
    distances *= distances.dtype.type(-2.0)
    distances += squared_norms(left)[:, None]
    distances += squared_norms(right)[None, :]
    return np.maximum(distances, 0.0, out=distances)


def gaussian_block(left: Features, right: FloatArray, gamma: float, n_threads: int = 1) -> FloatArray:
    """``exp(-gamma ||x - u||^2)`` for every row x of ``left`` and u of ``right``."""
    products = as_design(left, n_threads).dot(np.ascontiguousarray(right.T))
    return gaussian_from_products(products, squared_norms(left), squared_norms(right), gamma, n_threads)


def gaussian_from_products(
    products: FloatArray, left_norms: FloatArray, right_norms: FloatArray, gamma: float, n_threads: int = 1
) -> FloatArray:
    """Gaussian similarities from inner products ``x'u`` and squared lengths; overwrites ``products``."""
    kind = products.dtype.type

    def task(rows: slice) -> None:
        part = products[rows]
        part *= kind(-2.0)
        part += left_norms[rows, None]
        part += right_norms[None, :]
        np.maximum(part, 0.0, out=part)
        part *= kind(-gamma)
        np.exp(part, out=part)

    for _ in in_blocks(task, products.shape[0], n_threads):
        pass
    return products


def dense_rows(features: Features, picked: IndexArray) -> FloatArray:
    """A few rows of dense or sparse features as a dense array."""
    rows = cast(Any, features[picked])
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())


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
