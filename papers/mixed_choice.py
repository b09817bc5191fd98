"""Mixed linear model on MovieLens-100K: how settings are chosen without a look at removed cells.

1.  Settings come from runs of their own (seed 100, 20 and 50 % removed). Of the cells that *remain*
    there, 10 % are held out, the same ones for all methods. Every choice is made by the RMSE on
    these: penalties, centring, the rank of IMC and the number of sweeps. The cells that seed 100
    removes are never read.
2.  Penalties of the low-rank parts are walked from large to small, as multiples of the spectral norm of
    the cells less their mean. A walk ends after two values in vain.
3.  Runs with 20 and 30 % removed and the folds take the settings found at 20 %, the others those found
    at 50 %, as multiples of their own spectral norm, and are fitted to all their remaining cells.

All runs share 100,000 ratings: a cell held out in step 1 may be a removed one of another run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from papers.experiment import take_out
from unseen import IMC, BiasModel, DirtyIMC, Maxide, MixedLinear, Observations
from unseen.datasets import load_ml100k
from unseen.typing import Array

__all__ = [
    "SETTING_SEED",
    "Ratings",
    "Run",
    "Setting",
    "errors",
    "measure",
    "methods",
    "quick_methods",
    "ratings",
    "split",
]

CENTERS = ("none", "mean", "biases")
WALKS: dict[str, Sequence[float]] = {
    "soft": (2.8, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25),
    "hard": (2.8, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25),
    "dirty": (0.35, 0.25, 0.18, 0.125, 0.09),
    "maxide": (100.0, 10.0, 1.0, 0.1),
    "imc": (100.0, 10.0, 1.0, 0.1),
    "bias": (24.0, 12.0, 6.0, 3.0, 1.0),
}
SETTING_SEED, PATIENCE = 100, 4
SMALL = (200, 400)
"""Users and movies of a quick run: the first users, the movies that most have rated."""
Setting = dict[str, Any]


class Ratings(NamedTuple):
    """Cells with features of both sides and the published fold of each cell."""

    observations: Observations
    row_features: Array
    col_features: Array
    fold: Array


@cache
def ratings(quick: bool) -> Ratings:
    """MovieLens-100K, or a corner of it."""
    data = load_ml100k()
    cells, fold = data.observations, data.cells["fold"]
    users, movies = np.asarray(data.row_features), np.asarray(data.col_features)
    if not quick:
        return Ratings(cells, users, movies, fold)
    often = np.sort(np.argsort(-np.diff(cells.csc.indptr), kind="stable")[: SMALL[1]])
    place = np.full(cells.shape[1], -1)
    place[often] = np.arange(often.size)
    kept = (cells.rows < SMALL[0]) & (place[cells.indices] >= 0)
    small = Observations.from_triples(
        cells.rows[kept], place[cells.indices[kept]], cells.values[kept], shape=SMALL
    )
    return Ratings(small, users[: SMALL[0]], movies[often], fold[kept])


def methods() -> dict[str, Setting]:
    """What is fixed of each method; the costly variants come last."""
    out: dict[str, Setting] = {
        "MixedLinear soft": {"family": "soft"},
        "MixedLinear hard": {"family": "hard"},
        "BiasModel": {"family": "bias"},
    }
    for intercept in (True, False):
        for name, family in (("Maxide", "maxide"), ("IMC", "imc"), ("DirtyIMC", "dirty")):
            for center in CENTERS:
                label = f"{name}, {'' if intercept else 'no '}intercept, center {center}"
                out[label] = {"family": family, "center": center, "intercept": intercept}
    return out


def quick_methods() -> list[str]:
    """Those of a quick run: with a constant column, and not after the mean alone."""
    return [
        name
        for name, fixed in methods().items()
        if fixed.get("intercept", True) and fixed.get("center") != "mean"
    ]


class Run:
    """Cells to learn from, with features, and the scales that penalties are given in."""

    def __init__(self, train: Observations, data: Ratings) -> None:
        self.train = train
        self.features: dict[str, Any] = {"row_features": data.row_features, "col_features": data.col_features}

    @cached_property
    def scales(self) -> tuple[float, float]:
        """Automatic penalties of the hard form: of G, and the spectral norm for E."""
        probe = MixedLinear(max_iter=1, n_jobs=1, constraint="hard", max_rank=None, center="none").fit(
            self.train, **self.features
        )
        return float(probe.reg_g_), float(probe.reg_e_)

    def model(self, setting: Setting) -> Any:
        """The method at a setting."""
        family, value, sweeps = setting["family"], setting["value"], setting.get("sweeps")
        if family == "bias":
            return BiasModel(value)
        common: dict[str, Any] = {"center": setting["center"], "n_jobs": 1, "random_state": 0}
        common |= {} if sweeps is None else {"max_iter": sweeps, "tol": 0.0}
        if family in ("soft", "hard"):
            reg_g, norm = self.scales
            common = {"max_iter": 40, "tol": 0.0, **common}
            reg_e = value * norm * (11.0 if family == "soft" else 1.0)
            return MixedLinear(reg_g, reg_e, constraint=family, max_rank=None, **common)
        common["intercept"] = setting["intercept"]
        if family == "dirty":
            return DirtyIMC(1.0, value * self.scales[1], **{"max_iter": 40, "tol": 1e-4, **common})
        if family == "maxide":
            return Maxide(value, **{"max_iter": 100, "tol": 1e-6, **common})
        return IMC(setting["rank"], reg=value, **{"max_iter": 30, "tol": 1e-5, **common})

    def fit(self, model: Any) -> Any:
        """Fit to the cells, with the features where the model takes them."""
        return model.fit(self.train, **({} if isinstance(model, BiasModel) else self.features))

    def settle(self, setting: Setting) -> Setting:
        """Complete a setting by what does best on held-out cells."""
        walk = WALKS[setting["family"]]
        if setting["family"] == "imc":
            return min((self._walk({**setting, "rank": rank}, walk) for rank in (1, 5)), key=_error)
        if setting["family"] in ("soft", "hard"):
            middling = [self._try({**setting, "center": center, "value": 1.4}) for center in CENTERS]
            setting = {**setting, "center": min(middling, key=_error)["center"]}
            found = self._walk(setting, walk)
            return {**found, "centers": {one["center"]: one["validation"] for one in middling}}
        return self._walk(setting, walk)

    def _walk(self, setting: Setting, values: Sequence[float]) -> Setting:
        path: list[Setting] = []
        for value in values:
            path.append(self._try({**setting, "value": value}))
            best = min(path, key=_error)
            if path[-1] is not best and path[-2:][0] is not best:
                break
        return {**best, "tried": {str(entry["value"]): entry["validation"] for entry in path}}

    def _try(self, setting: Setting) -> Setting:
        if setting["family"] == "bias":
            fitting, held_out = split(self.train, 0.1, SETTING_SEED)
            found = measure(BiasModel(setting["value"]).fit(fitting), held_out)
            return {**setting, "validation": found["rmse"]}
        model = self.model(setting).set_params(
            validation_fraction=0.1, patience=PATIENCE, random_state=SETTING_SEED
        )
        errors = [entry["validation"] for entry in self.fit(model).history_]
        return {**setting, "validation": min(errors), "sweeps": int(np.argmin(errors)) + 1}


def _error(setting: Setting) -> float:
    return float(setting["validation"])


def split(cells: Observations, share: float, seed: int) -> tuple[Observations, Observations]:
    """Random cells, without replacement: those that remain, those that are removed."""
    return take_out(cells, np.random.default_rng(seed).permutation(cells.nnz)[: round(share * cells.nnz)])


def measure(model: Any, test: Observations) -> dict[str, float]:
    """Errors on some cells."""
    return errors(model.predict_entries(test.rows, test.indices, positions=True), test.values)


def errors(predicted: Array, values: Array) -> dict[str, float]:
    """Relative error as predicted; RMSE and MAE clipped to the scale of ratings."""
    off = np.clip(predicted, 1, 5) - values
    return {
        "ratio": float(np.linalg.norm(predicted - values) / np.linalg.norm(values)),
        "rmse": float(np.sqrt(np.mean(off**2))),
        "mae": float(np.mean(np.abs(off))),
    }
