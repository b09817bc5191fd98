"""MovieLens-100K by the protocol of the mixed linear model.

Known ratings are removed at random (20 to 50 %, seeds 0..3), or are those of a published fold. The
removed cells of a run are read once, after everything about the model is settled:

1.  Settings come from runs of their own (seed 100, 20 and 50 % removed). Of the cells that *remain*
    there, 10 % are held out, the same ones for all methods. Every choice is made by the RMSE on
    these: penalties, centring, the rank of IMC and the number of sweeps. The cells that seed 100
    removes are never read.
2.  Penalties of the low-rank parts are walked from large to small, as multiples of the spectral norm of
    the cells less their mean. A walk ends after two values in vain.
3.  Runs with 20 and 30 % removed and the folds take the settings found at 20 %, the others those found
    at 50 %, as multiples of their own spectral norm, and are fitted to all their remaining cells.

All runs share 100,000 ratings: a cell held out in step 1 may be a removed one of another run.

    python -m benchmarks.mixed_movielens --part settings      # then rates, folds, sweeps; resumes
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks._store import STORED, store
from unseen import IMC, BiasModel, DirtyIMC, Maxide, MixedLinear, Observations
from unseen.datasets import load_ml100k
from unseen.exceptions import ConvergenceWarning

PAPER = {0.2: 0.276, 0.3: 0.279, 0.4: 0.284, 0.5: 0.292}
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
Setting = dict[str, Any]


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


class Run:
    """Cells to learn from, with features, and the scales that penalties are given in."""

    def __init__(self, train: Observations, data: Any) -> None:
        self.train = train
        self.features = {"row_features": data.row_features, "col_features": data.col_features}

    @cached_property
    def scales(self) -> tuple[float, float]:
        """Automatic penalties of the hard form: of G, and the spectral norm for E."""
        probe = MixedLinear(max_iter=1, n_jobs=1).fit(self.train, **self.features)
        return float(probe.reg_g_), float(probe.reg_e_)

    def model(self, setting: Setting) -> Any:
        family, value, sweeps = setting["family"], setting["value"], setting.get("sweeps")
        if family == "bias":
            return BiasModel(value)
        common = {"center": setting["center"], "n_jobs": 1, "random_state": 0}
        common |= {} if sweeps is None else {"max_iter": sweeps, "tol": 0.0}
        if family in ("soft", "hard"):
            reg_g, norm = self.scales
            common = {"max_iter": 40, "tol": 0.0, **common}
            reg_e = value * norm * (11.0 if family == "soft" else 1.0)
            return MixedLinear(reg_g, reg_e, constraint=family, **common)
        common["intercept"] = setting["intercept"]
        if family == "dirty":
            norm = self.scales[1]
            return DirtyIMC(1.0, value * norm, **{"max_iter": 40, "tol": 1e-4, **common})
        if family == "maxide":
            return Maxide(value, **{"max_iter": 100, "tol": 1e-6, **common})
        return IMC(setting["rank"], reg=value, **{"max_iter": 30, "tol": 1e-5, **common})

    def fit(self, model: Any) -> Any:
        return model.fit(self.train, **({} if isinstance(model, BiasModel) else self.features))

    # -- choosing --------------------------------------------------------------------

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
        return {**best, "tried": {entry["value"]: entry["validation"] for entry in path}}

    def _try(self, setting: Setting) -> Setting:
        if setting["family"] == "bias":
            fitting, held_out = split(self.train, 0.1, SETTING_SEED)
            return {
                **setting,
                "validation": measure(BiasModel(setting["value"]).fit(fitting), held_out)["rmse"],
            }
        model = self.model(setting).set_params(
            validation_fraction=0.1, patience=PATIENCE, random_state=SETTING_SEED
        )
        errors = [entry["validation"] for entry in self.fit(model).history_]
        return {**setting, "validation": min(errors), "sweeps": int(np.argmin(errors)) + 1}


def _error(setting: Setting) -> float:
    return float(setting["validation"])


def split(cells: Observations, share: float, seed: int) -> tuple[Observations, Observations]:
    """Random cells, without replacement."""
    removed = np.zeros(cells.nnz, dtype=bool)
    removed[np.random.default_rng(seed).permutation(cells.nnz)[: round(share * cells.nnz)]] = True
    return cells.select(~removed), cells.select(removed)


def measure(model: Any, test: Observations) -> dict[str, float]:
    return errors(model.predict_entries(test.rows, test.indices), test.values)


def errors(predicted: Any, values: Any) -> dict[str, float]:
    """Relative error as predicted; RMSE and MAE clipped to the scale of ratings."""
    off = np.clip(predicted, 1, 5) - values
    return {
        "ratio": float(np.linalg.norm(predicted - values) / np.linalg.norm(values)),
        "rmse": float(np.sqrt(np.mean(off**2))),
        "mae": float(np.mean(np.abs(off))),
    }


def settings(data: Any, name: str, known: list[Setting]) -> Iterator[Setting]:
    for rate in (0.2, 0.5):
        if not any((entry["method"], entry["rate"]) == (name, rate) for entry in known):
            start = time.perf_counter()
            run = Run(split(data.observations, rate, SETTING_SEED)[0], data)
            found = run.settle(methods()[name])
            yield {"method": name, "rate": rate, **found, "seconds": time.perf_counter() - start}


def sweeps(data: Any) -> Iterator[dict[str, Any]]:
    """Held-out error of the hard form along its sweeps, on the cells that settings are chosen on."""
    run = Run(split(data.observations, 0.2, SETTING_SEED)[0], data)
    chosen = next(e for e in load("mixed_settings") if (e["method"], e["rate"]) == ("MixedLinear hard", 0.2))
    model = run.model({**chosen, "sweeps": 30})
    model.set_params(validation_fraction=0.1, patience=1000, random_state=SETTING_SEED)
    for number, entry in enumerate(run.fit(model).history_, 1):
        yield {"sweep": number, **{key: entry[key] for key in ("validation", "rank", "feasibility")}}


def runs(data: Any, part: str) -> Iterator[tuple[dict[str, Any], Observations, Observations]]:
    """Labels, remaining and removed cells of each run."""
    if part == "folds":
        for fold in range(1, 6):
            held = data.cells["fold"] == fold
            yield {"fold": fold}, data.observations.select(~held), data.observations.select(held)
        return
    for seed in range(4):
        for rate in PAPER:
            yield {"rate": rate, "seed": seed}, *split(data.observations, rate, seed)


def measured(data: Any, part: str, names: list[str], known: list[Setting]) -> Iterator[dict[str, Any]]:
    chosen = {(entry["method"], entry["rate"]): entry for entry in load("mixed_settings")}
    for labels, train, test in runs(data, part):
        run = Run(train, data)
        for name in names:
            if any(all(entry[k] == v for k, v in {"method": name, **labels}.items()) for entry in known):
                continue
            start = time.perf_counter()
            rate = 0.2 if labels.get("rate", 0.2) < 0.35 else 0.5
            model = run.fit(clone(run.model({**methods()[name], **chosen[name, rate]})))
            last = model.history_[-1] if getattr(model, "history_", None) else {}
            facts = {key: last[key] for key in ("rank", "feasibility") if key in last}
            yield {"method": name, **labels, **measure(model, test), **facts,
                   "seconds": time.perf_counter() - start}  # fmt: skip


def load(name: str) -> list[dict[str, Any]]:
    path = STORED / f"{name}.json"
    return json.loads(path.read_text())["results"] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=("settings", "rates", "folds", "sweeps"), required=True)
    parser.add_argument("--methods", nargs="*", default=None, help="beginnings of names")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    part = arguments.part
    data = load_ml100k()
    results = load(f"mixed_{part}")
    names = [n for n in methods() if not arguments.methods or n.startswith(tuple(arguments.methods))]
    if part == "settings":
        found = (entry for name in names for entry in settings(data, name, results))
    elif part == "sweeps":
        results, found = [], sweeps(data)
    else:
        found = measured(data, part, names, results)
    for entry in found:
        results.append(entry)
        store(f"mixed_{part}", {"protocol": __doc__, "results": results})
        print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
