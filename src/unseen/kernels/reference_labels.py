"""NumPy twins of the kernels that learn classifiers of rows: splits of trees and duals of linear ones."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["SIDE_BORDER", "label_splits", "linear_duals"]

INNER_PASSES = 4
SIDE_BORDER = 1e-6
"""Above rounding: products that cancel are on the second side."""
NO_LIMIT = 1e300
WORD = (1 << 64) - 1


def label_splits(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    gain_indptr: IndexArray,
    gain_indices: IndexArray,
    gain_values: FloatArray,
    starts: IndexArray,
    rows: IndexArray,
    sides: Array,
    weights: FloatArray,
    C: float,
    tol: float,
    max_passes: int,
    max_rounds: int,
    n_labels: int,
    n_threads: int,
) -> None:
    """Sides of rows by rankings of labels, and sparse logistic weights that tell them apart."""
    for node in range(len(starts) - 1):
        span = slice(starts[node], starts[node + 1])
        own = rows[span]
        gains = _dense(gain_indptr, gain_indices, gain_values, own, n_labels)
        side = _rank_sides(gains, sides[span].astype(np.int64), max_rounds)
        weights[node] = 0.0
        if 0 < np.count_nonzero(side > 0) < len(own):
            X = _dense(indptr, indices, values, own, weights.shape[1])
            side = _logistic(X, side, weights[node], C, tol, max_passes)
        sides[span] = side


def _dense(
    indptr: IndexArray, indices: IndexArray, values: FloatArray, rows: IndexArray, width: int
) -> FloatArray:
    out = np.zeros((len(rows), width))
    for place, row in enumerate(rows):
        cells = slice(indptr[row], indptr[row + 1])
        out[place, indices[cells]] = values[cells]
    return out


def _rank_sides(gains: FloatArray, side: IndexArray, max_rounds: int) -> IndexArray:
    seen = np.flatnonzero(gains.any(axis=0))
    gains = gains[:, seen]
    for _ in range(max_rounds):
        ahead = np.zeros(len(gains))
        for sign in (1, -1):
            total = gains[side == sign].sum(axis=0)
            rank = np.empty(len(seen), dtype=np.int64)
            rank[np.argsort(-total, kind="stable")] = np.arange(len(seen))
            ahead += sign * (gains @ (1.0 / np.log2(rank + 2.0)))
        new = np.where(ahead > 0, 1, np.where(ahead < 0, -1, side))
        if np.array_equal(new, side):
            break
        side = new
    return side


def _logistic(
    X: FloatArray, side: IndexArray, w: FloatArray, C: float, tol: float, max_passes: int
) -> IndexArray:
    n, first = len(side), np.count_nonzero(side > 0)
    weight = np.where(side > 0, C * n / first, C * n / (n - first))
    curvature = 0.25 * (weight @ X**2)
    # In the order in which the rows name them.
    order = [f for f in dict.fromkeys(np.nonzero(X)[1].tolist()) if curvature[f] > 0]
    scores, start, done = np.zeros(n), 0.0, 0
    active = np.zeros(X.shape[1], dtype=bool)
    while done < max_passes:
        violation = 0.0
        for part in range(1 + INNER_PASSES):
            if done >= max_passes:
                break
            done += 1
            for f in order:
                if part and not active[f]:
                    continue
                slope = float(-(side * weight * expit(-side * scores)) @ X[:, f])
                if part == 0:
                    wrong = abs(slope + np.sign(w[f])) if w[f] else max(abs(slope) - 1.0, 0.0)
                    violation = max(violation, wrong)
                target, reach = w[f] - slope / curvature[f], 1.0 / curvature[f]
                step = w.dtype.type(np.sign(target) * max(abs(target) - reach, 0.0)) - w[f]
                w[f] += step
                scores += step * X[:, f]
                if part == 0:
                    active[f] = w[f] != 0
        start = start or violation
        if violation <= tol * start:
            break
    return np.where(scores > SIDE_BORDER, 1, -1)


def linear_duals(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    starts: IndexArray,
    rows: IndexArray,
    signs: Array,
    alpha: FloatArray,
    weights: FloatArray,
    C_positive: float,
    C_negative: float,
    margin_positive: float,
    margin_negative: float,
    l1: float,
    tol: float,
    squared: bool,
    max_passes: int,
    seed: int,
    n_threads: int,
) -> None:
    """Linear classifiers, each on rows of its own."""
    for problem in range(len(starts) - 1):
        span = slice(starts[problem], starts[problem + 1])
        positive = signs[span] > 0
        C = np.where(positive, C_positive, C_negative)
        X = _dense(indptr, indices, values, rows[span], weights.shape[1]).astype(weights.dtype)
        weights[problem] = _dual(
            X,
            np.where(positive, 1.0, -1.0),
            alpha[span],
            np.where(positive, margin_positive, margin_negative),
            np.full(len(C), NO_LIMIT) if squared else C,
            0.5 / C if squared else np.zeros(len(C)),
            l1,
            tol,
            max_passes,
            _shuffler(seed + problem),
        )


def _shuffler(seed: int):  # type: ignore[no-untyped-def]
    state = (seed * 2654435769 + 88172645463325252) & WORD

    def below(n: int) -> int:
        nonlocal state
        state ^= (state << 13) & WORD
        state ^= state >> 7
        state ^= (state << 17) & WORD
        return state % n

    return below


def _shrunk(v: FloatArray, by: float) -> FloatArray:
    out: FloatArray = np.sign(v) * np.maximum(np.abs(v) - by, 0.0)
    return out


def _dual(  # type: ignore[no-untyped-def]
    X: FloatArray,
    sign: FloatArray,
    alpha: FloatArray,
    margin: FloatArray,
    limit: FloatArray,
    ridge: FloatArray,
    l1: float,
    tol: float,
    max_passes: int,
    below,
) -> FloatArray:
    v: FloatArray = ((alpha * sign) @ X).astype(X.dtype)
    lengths = (X.astype(np.float64) ** 2).sum(axis=1)
    order = list(range(len(sign)))
    n_active, ceiling = len(order), NO_LIMIT
    for _ in range(max_passes):
        for i in range(n_active):
            other = i + below(n_active - i)
            order[i], order[other] = order[other], order[i]
        worst, at = 0.0, 0
        while at < n_active:
            i = order[at]
            slope = sign[i] * float(_shrunk(v, l1) @ X[i]) - margin[i] + ridge[i] * alpha[i]
            if (alpha[i] == 0 and slope > ceiling) or (alpha[i] == limit[i] and slope < -ceiling):
                n_active -= 1
                order[at], order[n_active] = order[n_active], i
                continue
            at += 1
            idle = (alpha[i] == 0 and slope > 0) or (alpha[i] == limit[i] and slope < 0)
            worst = max(worst, 0.0 if idle else abs(slope))
            if idle or slope == 0 or lengths[i] + ridge[i] == 0:
                continue
            step = min(max(alpha[i] - slope / (lengths[i] + ridge[i]), 0.0), limit[i]) - alpha[i]
            alpha[i] += step
            v += ((step * sign[i]) * X[i]).astype(X.dtype)
        ceiling = worst or NO_LIMIT
        if worst <= tol:
            if n_active == len(order):
                break
            n_active, ceiling = len(order), NO_LIMIT
    return _shrunk(v, l1)
