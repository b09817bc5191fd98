"""NumPy twins of the kernels that learn classifiers of rows: splits of trees and duals of linear ones."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["SIDE_BORDER", "label_splits", "linear_duals", "margin_sweep"]

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


def margin_sweep(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    label_indptr: IndexArray,
    label_indices: IndexArray,
    visits: IndexArray,
    slots: IndexArray,
    active: IndexArray,
    alpha: FloatArray,
    weights: FloatArray,
    costs: FloatArray,
    gaps: FloatArray,
    l1: float,
    feature_share: float,
    label_share: float,
    n_candidates: int,
    seed: int,
    n_threads: int,
) -> None:
    """Dual steps of the multi-label margin loss, a row at a time."""
    below, n_labels = _shuffler(seed), weights.shape[1]
    for row in visits:
        span = slice(indptr[row], indptr[row + 1])
        own = label_indices[label_indptr[row] : label_indptr[row + 1]]
        x, features, C = values[span], indices[span], costs[row]
        squares = float(x.astype(np.float64) @ x)
        gaps[row] = 0.0
        if not 0 < len(own) < n_labels or squares == 0 or C == 0:
            continue
        slot = slice(slots[row], slots[row + 1])
        used = active[slot][active[slot] >= 0]
        mass = alpha[slot][: len(used)]
        n_parts = 1 if label_share >= 1 else min(int(1 / label_share), n_labels)
        part = 0 if n_parts == 1 else below(n_parts)
        seen = np.arange(n_labels * part // n_parts, n_labels * (part + 1) // n_parts)
        exact = x @ _shrunk(weights[features], l1)
        scores = (
            exact if feature_share >= 1 else _sampled(x, _shrunk(weights[features], l1), feature_share, below)
        )
        lowest = float(exact[own].min())
        gained = np.where(np.arange(len(used)) < len(own), 1 - exact[used], exact[used])
        before = float(mass @ gained)
        highest = float(exact[used[len(own) :]].max(initial=-np.inf))
        for _ in range(min(n_candidates, slot.stop - slot.start - len(used))):
            free = np.setdiff1d(seen, used)
            if not free.size:
                break
            best = free[np.argmax(scores[free])]
            highest = max(highest, float(exact[best]))
            if 1 + exact[best] - lowest <= 0:
                break
            used, mass = np.append(used, best), np.append(mass, 0.0)
        if len(used) == len(own):
            continue
        gaps[row] = C * max(1 + highest - lowest, 0.0) - before
        first = mass[: len(own)] + (1 - exact[own]) / squares
        second = mass[len(own) :] + exact[used[len(own) :]] / squares
        new = np.concatenate(_nearest_pair(first.astype(np.float64), second.astype(np.float64), C))
        step = new - mass
        step[len(own) :] *= -1
        weights[np.ix_(features, used)] += np.outer(x, step).astype(weights.dtype)
        kept = np.concatenate([np.arange(len(own)), len(own) + np.flatnonzero(new[len(own) :])])
        active[slot], alpha[slot] = -1, 0.0
        active[slot.start : slot.start + len(kept)] = used[kept]
        alpha[slot.start : slot.start + len(kept)] = new[kept]


def _sampled(x: FloatArray, w: FloatArray, share: float, below) -> FloatArray:  # type: ignore[no-untyped-def]
    sums = np.cumsum(np.abs(x.astype(np.float64)))
    n_draws = max(int(share * len(x)), 1)
    drawn = [min(int(np.searchsorted(sums, sums[-1] * below(1 << 53) / 2**53, side="right")), len(x) - 1)
             for _ in range(n_draws)]  # fmt: skip
    found: FloatArray = (np.sign(x[drawn]) * (sums[-1] / n_draws)) @ w[drawn]
    return found


def _simplex(values: FloatArray, total: float) -> FloatArray:
    ordered = np.sort(values)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    level = levels[np.flatnonzero(ordered > levels)[-1]]
    out: FloatArray = np.maximum(values - level, 0.0)
    return out


def _nearest_pair(first: FloatArray, second: FloatArray, most: float) -> tuple[FloatArray, FloatArray]:
    """Nearest non-negative numbers with equal sums on both sides, at most `most`."""
    low, high = -second.max(), first.max()
    if low >= high:
        return np.zeros_like(first), np.zeros_like(second)
    levels = np.concatenate([first, -second])
    levels = np.sort(levels[(levels >= low) & (levels <= high)])
    ahead = [np.maximum(first - t, 0).sum() - np.maximum(second + t, 0).sum() for t in levels]
    at = int(np.flatnonzero(np.array(ahead) >= 0)[-1])  # falls from the first level to the last
    level = levels[at]
    if ahead[at] > 0:
        above = (first > level).sum() + (second >= -level).sum()
        level += ahead[at] / above
    if np.maximum(first - level, 0).sum() > most:
        return _simplex(first, most), _simplex(second, most)
    return np.maximum(first - level, 0), np.maximum(second + level, 0)
