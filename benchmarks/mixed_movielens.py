"""MovieLens-100K by the protocol of the mixed linear model.

Known ratings are removed at random (20 to 50 %, seeds 0..3). Settings are chosen on 10 % of the
remaining ones, the model is refitted on all of them and the removed ones are looked at once. The
same methods on the published folds, and on users and movies that are held out whole.

    python -m benchmarks.mixed_movielens --part rates --out rates.json
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from unseen import IMC, BiasModel, DirtyIMC, Maxide, MixedLinear, Observations
from unseen.datasets import load_ml100k
from unseen.exceptions import ConvergenceWarning

PAPER = {0.2: 0.276, 0.3: 0.279, 0.4: 0.284, 0.5: 0.292}
Candidates = list[Any]


def methods() -> dict[str, Candidates]:
    """Candidates of each method; the first block of names is the paper's own comparison."""
    soft = {"constraint": "soft", "rho": 100.0, "max_iter": 15, "tol": 0.0, "random_state": 0}
    hard = {"constraint": "hard", "max_iter": 20, "random_state": 0}
    out: dict[str, Candidates] = {
        "MixedLinear soft": [
            MixedLinear(100.0, 1000.0, center="none", **soft),
            MixedLinear(100.0, 1500.0, center="biases", **soft),
            MixedLinear(100.0, 2000.0, center="biases", **soft),
        ],
        "MixedLinear hard": [
            MixedLinear(100.0, 100.0, center="none", **hard),
            MixedLinear(100.0, 30.0, center="biases", **hard),
            MixedLinear(100.0, 100.0, center="biases", **hard),
        ],
        "BiasModel": [BiasModel(reg) for reg in (3.0, 6.0)],
    }
    for intercept in (True, False):
        for center in ("none", "mean", "biases"):
            label = f"{'' if intercept else 'no '}intercept, center {center}"
            common = {"intercept": intercept, "center": center, "random_state": 0}
            out[f"Maxide, {label}"] = [Maxide(reg, max_iter=100, tol=1e-5, **common) for reg in (1.0, 10.0)]
            out[f"IMC, {label}"] = [IMC(5, reg=reg, max_iter=20, tol=1e-4, **common) for reg in (10.0, 100.0)]
            if center != "mean":
                out[f"DirtyIMC, {label}"] = [
                    DirtyIMC(1.0, reg, max_iter=15, tol=1e-4, **common) for reg in (12.0, 16.0)
                ]
    return out


def select(candidates: Candidates, train: Observations, features: dict[str, Any], seed: int) -> Any:
    """Choose on 10 % of the cells, then refit on all; an early stop is chosen the same way."""
    fitting, held_out = split(train, 0.1, seed + 1000)
    best: tuple[float, Any] | None = None
    for candidate in candidates:
        model = clone(candidate)
        early = isinstance(model, MixedLinear) and model.constraint == "hard"
        used = {} if isinstance(model, BiasModel) else features
        if early:
            model.set_params(validation_fraction=0.1, patience=5)
            model.fit(train, **used)
            errors = [entry["validation"] for entry in model.history_]
            error, model = min(errors), clone(candidate).set_params(max_iter=int(np.argmin(errors)) + 1)
        else:
            model.fit(fitting, **used)
            error = measure(model, held_out)["rmse"]
            model = clone(candidate)
        if best is None or error < best[0]:
            best = (error, model)
    assert best is not None
    chosen = best[1]
    return chosen.fit(train, **({} if isinstance(chosen, BiasModel) else features))


def split(cells: Observations, share: float, seed: int) -> tuple[Observations, Observations]:
    """Random cells, without replacement."""
    removed = np.zeros(cells.nnz, dtype=bool)
    removed[np.random.default_rng(seed).permutation(cells.nnz)[: round(share * cells.nnz)]] = True
    return cells.select(~removed), cells.select(removed)


def measure(model: Any, test: Observations) -> dict[str, float]:
    """Relative error as predicted; RMSE and MAE clipped to the scale of ratings."""
    return errors(model.predict_entries(test.rows, test.indices), test.values)


def errors(predicted: Any, values: Any) -> dict[str, float]:
    off = np.clip(predicted, 1, 5) - values
    return {
        "ratio": float(np.linalg.norm(predicted - values) / np.linalg.norm(values)),
        "rmse": float(np.sqrt(np.mean(off**2))),
        "mae": float(np.mean(np.abs(off))),
    }


def rates(data: Any, wanted: list[str]) -> Iterator[dict[str, Any]]:
    features = {"row_features": data.row_features, "col_features": data.col_features}
    for seed in range(4):
        for rate in PAPER:
            train, test = split(data.observations, rate, seed)
            for name in wanted:
                yield from timed(name, lambda n=name, t=train, s=seed: select(methods()[n], t, features, s),
                                 test, rate=rate, seed=seed, paper=PAPER[rate])  # fmt: skip


def folds(data: Any, wanted: list[str]) -> Iterator[dict[str, Any]]:
    features = {"row_features": data.row_features, "col_features": data.col_features}
    for fold in range(1, 6):
        held = data.cells["fold"] == fold
        train, test = data.observations.select(~held), data.observations.select(held)
        for name in wanted:
            yield from timed(name, lambda n=name, t=train, f=fold: select(methods()[n], t, features, f),
                             test, fold=fold)  # fmt: skip


def cold(data: Any, wanted: list[str]) -> Iterator[dict[str, Any]]:
    """Users, then movies, held out whole: only models that speak through features, and the mean."""
    cells = data.observations
    for side, ids, n in (("row", cells.rows, cells.shape[0]), ("col", cells.indices, cells.shape[1])):
        for seed in range(4):
            gone = np.zeros(n, dtype=bool)
            gone[np.random.default_rng(seed).permutation(n)[: n // 5]] = True
            train, test = cells.select(~gone[ids]), cells.select(gone[ids])
            yield {"method": "mean", "side": side, "seed": seed,
                   **errors(np.full(test.nnz, train.values.mean()), test.values)}  # fmt: skip
            for name in wanted:
                if name != "BiasModel" and ("center biases" in name or "no intercept" in name):
                    continue
                yield from _cold_one(data, name, side, seed, gone, train, test)


def _cold_one(
    data: Any, name: str, side: str, seed: int, gone: Any, train: Observations, test: Observations
) -> Iterator[dict[str, Any]]:
    candidate = next(c for c in methods()[name] if getattr(c, "center", "none") != "biases")
    features = {"row_features": data.row_features, "col_features": data.col_features}
    model = clone(candidate)
    if isinstance(model, BiasModel):
        model.fit(train)
        predicted = model.mean_ + (
            model.col_bias_[test.indices] if side == "row" else model.row_bias_[test.rows]
        )
    else:
        # The cold entities take part with their features and no cells, as they would on the day.
        model.fit(train, **features)
        new = {f"{side}_features": features[f"{side}_features"][gone]}
        block = model.predict_new(**new)
        place = np.cumsum(gone) - 1
        rows = place[test.rows] if side == "row" else test.rows
        cols = test.indices if side == "row" else place[test.indices]
        predicted = block[rows, cols]
    yield {"method": name, "side": side, "seed": seed, **errors(predicted, test.values)}


def timed(name: str, fit: Callable[[], Any], test: Observations, **labels: Any) -> Iterator[dict[str, Any]]:
    start = time.perf_counter()
    model = fit()
    seconds = time.perf_counter() - start
    params = {
        k: v for k, v in model.get_params().items() if k in ("reg", "reg_e", "reg_rest", "center", "max_iter")
    }
    yield {"method": name, **labels, **measure(model, test), "params": params, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=("rates", "folds", "cold"), default="rates")
    parser.add_argument("--methods", nargs="*", default=None)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = load_ml100k()
    wanted = arguments.methods or list(methods())
    results = []
    for result in {"rates": rates, "folds": folds, "cold": cold}[arguments.part](data, wanted):
        results.append(result)
        arguments.out.write_text(json.dumps(results, indent=1))
        print({k: v for k, v in result.items() if k != "params"}, flush=True)


if __name__ == "__main__":
    main()
