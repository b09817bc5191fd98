"""Landmarks: rows or centres that stand for the data, and their mixing matrix."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from unseen.exceptions import DataWarning
from unseen.linalg.blocked import BLOCK_ROWS
from unseen.linalg.designs import CentredDesign
from unseen.maps.kernel_width import dense_rows, gaussian_block
from unseen.typing import Features, FloatArray, IndexArray

__all__ = ["inverse_root", "pick_landmarks", "unreached", "warn_of_unreached"]

KMEANS_ROWS = 20_000
"""Rows that k-means sees; centres of a sample serve as landmarks just as well."""
UNDERFLOW = 1e-300
"""Similarities below this carry neither a signal nor a gradient."""
RELATIVE_CUT = 1e-8
"""Directions of the landmarks' kernel matrix below this share of the largest are rounding."""


def pick_landmarks(features: Features, count: int, how: str, rng: np.random.Generator) -> FloatArray:
    """``count`` landmarks (at most one a row): random rows, or centres of k-means."""
    n = features.shape[0]
    count = min(count, n)
    if how == "random":
        return dense_rows(features, np.sort(rng.choice(n, size=count, replace=False)))
    from sklearn.cluster import KMeans

    sampled = features
    if n > KMEANS_ROWS:
        rows = np.sort(rng.choice(n, size=max(KMEANS_ROWS, count), replace=False))
        sampled = features[rows]
    seed = int(rng.integers(2**31))
    # On several threads k-means adds in an order that is not fixed. Equal rows give fewer centres than
    # asked for; that does no harm here, so the warning is not passed on.
    shift: Any = 0.0
    if isinstance(sampled, CentredDesign):  # centres move along with their rows
        sampled, shift = sampled.base.matrix, sampled.shift
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        centres = KMeans(count, n_init=1, max_iter=50, random_state=seed).fit(sampled).cluster_centers_
    return np.ascontiguousarray(centres - shift, dtype=features.dtype)


def inverse_root(landmarks: FloatArray, gamma: float) -> FloatArray:
    """``(E^+)^(1/2)`` of the landmarks' own kernel matrix E; equal landmarks do no harm."""
    values, vectors = np.linalg.eigh(gaussian_block(landmarks, landmarks, gamma).astype(np.float64))
    kept = values > RELATIVE_CUT * values[-1]
    basis = vectors[:, kept]
    root: FloatArray = basis / np.sqrt(values[kept]) @ basis.T
    return root


def unreached(features: Features, landmarks: FloatArray, gamma: float) -> IndexArray:
    """Landmarks whose similarity to every row (but one, which may be the landmark itself) underflows."""
    n = features.shape[0]
    waiting = np.arange(len(landmarks))
    seen = np.zeros(len(landmarks), dtype=np.int64)
    for start in range(0, n, BLOCK_ROWS):
        block = gaussian_block(features[start : start + BLOCK_ROWS], landmarks[waiting], gamma)
        seen[waiting] += np.count_nonzero(block >= UNDERFLOW, axis=0)
        waiting = waiting[seen[waiting] < 2]
        if waiting.size == 0:  # the usual case: known after the first block
            break
    return waiting


def warn_of_unreached(features: Features, landmarks: FloatArray, gamma: float) -> None:
    """Say so where a kernel is so narrow that landmarks see no rows."""
    if features.shape[0] < 2:
        return
    dead = unreached(features, landmarks, gamma)
    if dead.size:
        shown = ", ".join(map(str, dead[:5])) + (", ..." if dead.size > 5 else "")
        warnings.warn(
            f"{dead.size} of {len(landmarks)} landmarks ({shown}) are similar to no other row: with "
            f"gamma={gamma:g} their features underflow to zero and cannot be learned from; use a smaller "
            'gamma, gamma="median", or scale the features',
            DataWarning,
            stacklevel=2,
        )
