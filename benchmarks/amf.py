"""AMF beside its baselines on five rating matrices; settings are chosen on validation cells.

``AMF_SPLITS=2 python -m benchmarks amf`` runs the first two splits of each matrix only.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._store import store
from unseen import AugmentedMF, BiasModel, MatrixFactorization, Observations
from unseen.baselines import MMMF, NMF, PMF
from unseen.datasets import (
    MatrixData,
    load_ciao,
    load_filmtrust,
    load_ml100k,
    load_yelp2013,
    load_yelp_3zones,
)

LOADERS: dict[str, Callable[[], MatrixData]] = {
    "yelp-2013": load_yelp2013,
    "yelp-3zones": load_yelp_3zones,
    "ml100k": load_ml100k,
    "filmtrust": load_filmtrust,
    "ciao": load_ciao,
}
SPLITS = int(os.environ.get("AMF_SPLITS", "10"))
RESTARTS = 5
RANK, PAPER_RANK = 10, 60
SEED: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
Array = npt.NDArray[Any]
Setting = dict[str, Any]
Builder = Callable[[Setting], Any]

BIAS_REGS = [{"bias_reg": pair} for pair in ((3.0, 3.0), (5.0, 3.0), (7.0, 3.0), (10.0, 3.0), (5.0, 5.0))]


class Mean:
    """The mean of the observed cells everywhere."""

    def fit(self, cells: Observations) -> Mean:
        self.value = float(cells.values.mean(dtype=np.float64))
        return self

    def predict_entries(self, rows: Array, cols: Array) -> Array:
        return np.full(len(rows), self.value)


def methods(bias_reg: tuple[float, float]) -> dict[str, tuple[Builder, list[Setting]]]:
    """Every method with the settings among which validation cells choose; none where there is one setting."""
    biases: dict[str, Any] = {"center": "biases", "bias_reg": bias_reg, **SEED}
    return {
        "mean": (lambda s: Mean(), [{}]),
        "BiasModel": (lambda s: BiasModel(bias_reg), [{}]),
        "MatrixFactorization, biases": (
            lambda s: MatrixFactorization(RANK, reg=s["reg"], max_iter=15, **biases),
            [{"reg": reg} for reg in (3.0, 10.0, 20.0, 40.0)],
        ),
        "MatrixFactorization, mean, reg 0.02": (
            lambda s: MatrixFactorization(RANK, reg=0.02, center="mean", max_iter=15, **SEED),
            [{}],
        ),
        "NMF": (lambda s: NMF(RANK, max_iter=30, **SEED), [{}]),
        "PMF": (lambda s: PMF(RANK, max_iter=30, **SEED), [{}]),
        "MMMF": (lambda s: MMMF(RANK, max_iter=30, **SEED), [{}]),
        "AMF, raw": (lambda s: AugmentedMF(RANK, center="none", max_iter=10, **SEED), [{}]),
        "AMF, mean": (lambda s: AugmentedMF(RANK, center="mean", max_iter=10, **SEED), [{}]),
        "AMF, the paper's settings, mean": (
            lambda s: AugmentedMF(
                PAPER_RANK, center="mean", solver="linesearch", eps_abs=0.01, max_iter=30, **SEED
            ),
            [{}],
        ),
        "AMF, biases": (lambda s: AugmentedMF(RANK, max_iter=10, **biases), [{}]),
        "AMF, biases, chosen": (
            lambda s: AugmentedMF(RANK, weight=s["weight"], reg=s["reg"], max_iter=10, **biases),
            [
                {"weight": weight, "reg": reg}
                for weight in (0.01, 0.1, 1.0)
                for reg in (0.02, 3.0, 10.0, 30.0)
            ],
        ),
    }


def splits(name: str, data: MatrixData) -> Iterator[Array]:
    """Test cells of each split, as the paper has them: ten folds, or 80 % of the cells between zones."""
    n_cells = data.observations.nnz
    if name == "yelp-3zones":
        between = np.flatnonzero(data.cells["item_zone"] != data.cells["user_zone"])
        for seed in range(10):
            order = np.random.default_rng(seed).permutation(between)
            held = np.zeros(n_cells, dtype=bool)
            held[order[int(0.2 * order.size) :]] = True
            yield held
        return
    for part in np.array_split(np.random.default_rng(0).permutation(n_cells), 10):
        held = np.zeros(n_cells, dtype=bool)
        held[part] = True
        yield held


def error(model: Any, cells: Observations, limits: tuple[float, float]) -> float:
    predicted = np.clip(model.predict_entries(cells.rows, cells.indices), *limits)
    return float(np.sqrt(np.mean((predicted.astype(np.float64) - cells.values) ** 2)))


def run_split(train: Observations, test: Observations, number: int) -> Iterator[dict[str, Any]]:
    limits = float(train.values.min()), float(train.values.max())
    held = np.zeros(train.nnz, dtype=bool)
    held[np.random.default_rng(500 + number).permutation(train.nnz)[: train.nnz // 10]] = True
    inner, validation = train.select(~held), train.select(held)

    def pick(build: Builder, settings: list[Setting]) -> Setting:
        if len(settings) == 1:
            return settings[0]
        return min(settings, key=lambda s: error(build(s).fit(inner), validation, limits))

    bias_reg = pick(lambda s: BiasModel(s["bias_reg"]), BIAS_REGS)["bias_reg"]
    for name, (build, settings) in methods(bias_reg).items():
        setting = pick(build, settings)
        yield {
            "method": name,
            "split": number,
            "setting": {**setting, "bias_reg": bias_reg},
            "rmse": error(build(setting).fit(train), test, limits),
        }


def restarts(train: Observations, test: Observations) -> list[dict[str, Any]]:
    """The spread over starts, at one split: of the error, and of the single predictions."""
    limits = float(train.values.min()), float(train.values.max())
    builders: dict[str, Callable[[int], Any]] = {
        "MatrixFactorization, mean, reg 0.02": lambda s: MatrixFactorization(
            RANK, reg=0.02, center="mean", max_iter=30, random_state=s, n_jobs=1
        ),
        "MatrixFactorization, mean, reg 15": lambda s: MatrixFactorization(
            RANK, reg=15.0, center="mean", max_iter=30, random_state=s, n_jobs=1
        ),
        "NMF": lambda s: NMF(RANK, max_iter=30, random_state=s, n_jobs=1),
        "PMF": lambda s: PMF(RANK, max_iter=30, random_state=s, n_jobs=1),
        "MMMF": lambda s: MMMF(RANK, max_iter=30, random_state=s, n_jobs=1),
        "AMF, mean": lambda s: AugmentedMF(RANK, center="mean", max_iter=30, random_state=s, n_jobs=1),
        "AMF, biases": lambda s: AugmentedMF(RANK, max_iter=30, random_state=s, n_jobs=1),
    }
    rows = []
    for name, build in builders.items():
        models = [build(seed).fit(train) for seed in range(RESTARTS)]
        errors = [error(model, test, limits) for model in models]
        predicted = np.stack([model.predict_entries(test.rows, test.indices) for model in models])
        rows.append(
            {"method": name, "rmse": errors, "prediction_sd": float(predicted.std(axis=0, ddof=1).mean())}
        )
        print("restarts", name, np.round(errors, 4), flush=True)
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    settings = {"rank": RANK, "paper_rank": PAPER_RANK, "splits": SPLITS, "restarts": RESTARTS}
    for name in ("filmtrust", "ciao", "yelp-3zones", "ml100k", "yelp-2013"):
        data = LOADERS[name]()
        cells = data.observations
        rows: list[dict[str, Any]] = []
        for number, held in zip(range(SPLITS), splits(name, data), strict=False):
            rows += run_split(cells.select(~held), cells.select(held), number)
            shown = {row["method"]: round(row["rmse"], 4) for row in rows if row["split"] == number}
            print(name, number, shown, flush=True)
        results[name] = {"shape": list(cells.shape), "cells": cells.nnz, "rows": rows}
        if name == "yelp-3zones":
            held = next(splits(name, data))
            results[name]["restarts"] = restarts(cells.select(~held), cells.select(held))
        store("amf", {"settings": settings, "data": results})


if __name__ == "__main__":
    main()
