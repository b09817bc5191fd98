"""Generated matrices of the mixed linear model, models that are compared on them, how one is chosen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from papers.mixed_choice import split
from unseen import IMC, DirtyIMC, Maxide, MixedLinear, Observations, SparseBilinear
from unseen.typing import Array

__all__ = [
    "SIZES",
    "Generated",
    "candidates",
    "choose",
    "generate",
    "hide",
    "interactions",
    "ratio",
    "support",
]

SHAPE = (50, 140)
SIZES = {"sim 1": (15, 20, 0), "sim 2": (16, 21, 0), "sim 3": (20, 25, 5)}
"""Features of rows, of columns, and how many of each are combinations of the others."""


class Generated(NamedTuple):
    """Target with noise, features, true interactions, and the target without noise."""

    target: Array
    row_features: Array
    col_features: Array
    interactions: Array
    signal: Array

    def floor(self, missing: Array) -> float:
        """Relative error of the truth on missing cells."""
        noise = (self.target - self.signal)[missing]
        return float(np.linalg.norm(noise) / np.linalg.norm(self.target[missing]))


def features(n: int, width: int, combined: int, rng: np.random.Generator) -> Array:
    """Gaussian, Poisson and gamma columns, then combinations of them."""
    draw = (
        lambda: rng.standard_normal(n),
        lambda: rng.poisson(1.0, n).astype(float),
        lambda: rng.gamma(2.0, 1.0, n),
    )
    base = np.column_stack([draw[rng.integers(3)]() for _ in range(width - combined)])
    return np.hstack([base, base @ rng.standard_normal((width - combined, combined))])


def generate(sim: str, seed: int, density: float = 0.3) -> Generated:
    """One of the three set-ups."""
    rng = np.random.default_rng(seed)
    p, q, combined = SIZES[sim]
    X, Y = features(SHAPE[0], p, combined, rng), features(SHAPE[1], q, combined, rng)
    G = np.where(rng.random((p + 1, q + 1)) < density, 10.0 * rng.standard_normal((p + 1, q + 1)), 0.0)
    ones = [np.hstack([side, np.ones((len(side), 1))]) for side in (X, Y)]
    signal = ones[0] @ G @ ones[1].T
    return Generated(signal + rng.standard_normal(signal.shape), X, Y, G, signal)


def hide(target: Array, n_missing: int, seed: int) -> tuple[Array, Observations]:
    """Which cells are missing, and the others."""
    flat = np.zeros(target.size, dtype=bool)
    flat[np.random.default_rng(seed).permutation(target.size)[:n_missing]] = True
    missing = flat.reshape(target.shape)
    return missing, Observations.from_dense(np.where(missing, np.nan, target))


def candidates(few: bool = False) -> dict[str, list[Any]]:
    """Settings of each method; more penalties where there are few cells."""
    grid = (0.1, 1.0, 10.0, 100.0) if few else (1.0, 10.0)
    return {
        "MixedLinear hard": [
            MixedLinear(reg, e, max_iter=100, tol=1e-4, center="mean", constraint="hard", max_rank=None)
            for reg in grid
            for e in (0.1, 10.0)
        ],
        "MixedLinear soft": [
            MixedLinear(
                reg, e, constraint="soft", rho=10.0, max_iter=100, tol=1e-6, center="mean", max_rank=None
            )
            for reg in grid
            for e in (1.0, 100.0)
        ],
        "SparseBilinear": [SparseBilinear(reg, max_iter=1000, center="mean") for reg in grid],
        "Maxide": [
            Maxide(reg, max_iter=500, center="none") for reg in ((0.01, 0.1, 1.0) if few else (0.1, 1.0))
        ],
        "DirtyIMC": [DirtyIMC(0.1, reg, max_iter=50, center="none") for reg in (10.0, 100.0)],
        "IMC": [IMC(rank, reg=0.1, max_iter=50, random_state=0, center="none") for rank in (5, 15)],
    }


def choose(models: list[Any], cells: Observations, share: float, seed: int, **given: Any) -> Any:
    """The setting with the least error on a share of the cells, fitted to all of them."""
    fitting, held = split(cells, share, seed + 99)

    def error(model: Any) -> float:
        fitted = clone(model).fit(fitting, **given)
        return float(
            np.mean((fitted.predict_entries(held.rows, held.indices, positions=True) - held.values) ** 2)
        )

    return clone(min(models, key=error)).fit(cells, **given)


def ratio(model: Any, target: Array, missing: Array) -> float:
    """Relative error on missing cells."""
    rows, cols = np.nonzero(missing)
    truth = target[rows, cols]
    return float(
        np.linalg.norm(model.predict_entries(rows, cols, positions=True) - truth) / np.linalg.norm(truth)
    )


def interactions(model: Any, n_row_features: int, n_col_features: int) -> Array:
    """G without the constant row and column, read from predictions for flags, so that IMC has one too."""
    block = model.predict_new(
        row_features=np.vstack([np.eye(n_row_features), np.zeros(n_row_features)]),
        col_features=np.vstack([np.eye(n_col_features), np.zeros(n_col_features)]),
    )
    return np.asarray(block[:-1, :-1] - block[:-1, -1:] - block[-1:, :-1] + block[-1, -1])


def support(found: Array, truth: Array) -> dict[str, float]:
    """Precision and recall of the entries that are not zero, and of those above a tenth of the largest."""
    size, there = np.abs(found), truth != 0
    out = {}
    for name, least in (("", 0.1), ("nonzero_", 1e-8)):
        chosen = size > least * size.max(initial=1e-12)
        hits = float(np.sum(chosen & there))
        out[f"{name}precision"] = float(hits / max(chosen.sum(), 1))
        out[f"{name}recall"] = float(hits / max(there.sum(), 1))
    return out
