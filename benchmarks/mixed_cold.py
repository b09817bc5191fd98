"""MovieLens-100K: users, then movies, that are held out whole, predicted from their features.

A fifth of the users (or movies) is held out, seeds 0..3. Of the others, a fifth chooses the settings
by its RMSE, then takes part in the last fit. The held-out ones are read once. cmfrec gets the same
features, splits and rule, in an environment of its own.

    python -m benchmarks mixed_cold
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks._peers import run_child
from benchmarks._store import store
from benchmarks.mixed_movielens import errors, load
from unseen import IMC, BiasModel, DirtyIMC, Maxide, MixedLinear, Observations, SparseBilinear
from unseen.datasets import load_ml100k
from unseen.exceptions import ConvergenceWarning, DataWarning

ONE_SIDE = "SparseBilinear, features of the cold side only"
"""Each warm user (or movie) then has weights of its own for the features of movies (or users)."""
CHILD = Path(__file__).with_name("_mixed_cold_child.py")
PEERS = {
    "CMF": [{"k": 40, "reg": reg, "weight": w} for reg in (3.0, 10.0, 30.0) for w in (1.0, 10.0)],
    "ContentBased": [{"k": 5, "reg": reg} for reg in (10.0, 1000.0)],
}


def candidates() -> dict[str, list[Any]]:
    """After biases a cold row still has the biases of its columns; the features say the rest."""
    common = {"n_jobs": 1, "random_state": 0}
    soft = {"constraint": "soft", "max_iter": 10, "tol": 0.0, **common}
    hard = {"constraint": "hard", "max_iter": 6, **common}
    both = ("none", "biases")
    return {
        "BiasModel": [BiasModel(reg) for reg in (1.0, 5.0, 20.0)],
        "MixedLinear soft": [
            MixedLinear(r, 1500.0, center=c, **soft) for c in both for r in (300.0, 30.0, 3.0)
        ],
        "MixedLinear hard": [
            MixedLinear(r, 100.0, center=c, **hard) for c in both for r in (300.0, 30.0, 3.0)
        ],
        "SparseBilinear": [
            SparseBilinear(r, center=c, **common) for c in ("mean", "biases") for r in (300.0, 30.0)
        ],
        ONE_SIDE: [SparseBilinear(r, max_iter=100, tol=1e-5, **common) for r in (20.0, 10.0, 5.0, 2.5)],
        "Maxide": [Maxide(r, center=c, **common) for c in both for r in (10.0, 1.0)],
        "IMC": [IMC(5, reg=r, center=c, **common) for c in both for r in (10.0, 100.0)],
        "DirtyIMC": [
            DirtyIMC(r, 16.0, center=c, max_iter=10, tol=0.0, **common)
            for c in both
            for r in (30.0, 10.0, 3.0)
        ],
    }


class Side:
    """Cells turned so that the cold entities are rows, with their roles: 0 learn, 1 choose, 2 test."""

    def __init__(self, data: Any, side: str, seed: int) -> None:
        cells = data.observations
        self.rows, self.cols, self.values = cells.rows, cells.indices, cells.values
        self.row_features, self.col_features = data.row_features, data.col_features
        if side == "col":
            self.rows, self.cols = self.cols, self.rows
            self.row_features, self.col_features = self.col_features, self.row_features
        order = np.random.default_rng(seed).permutation(len(self.row_features))
        n_cold = len(order) // 5
        self.role = np.zeros(len(order), dtype=int)
        self.role[order[:n_cold]] = 2
        self.role[order[n_cold : n_cold + (len(order) - n_cold) // 5]] = 1

    def predict(self, model: Any, known: list[int], wanted: int, one_side: bool = False) -> np.ndarray:
        """Fit to the rows of some roles, predict the cells of those of another from features alone."""
        in_fit, in_test = np.isin(self.role, known), self.role == wanted
        seen, asked = in_fit[self.rows], in_test[self.rows]
        place = np.cumsum(in_fit) - 1
        train = Observations.from_triples(
            place[self.rows[seen]], self.cols[seen], self.values[seen],
            shape=(int(in_fit.sum()), len(self.col_features)),
        )  # fmt: skip
        if isinstance(model, BiasModel):
            model.fit(train)
            return np.asarray(model.mean_ + model.col_bias_[self.cols[asked]])
        other = {} if one_side else {"col_features": self.col_features}
        model.fit(train, row_features=self.row_features[in_fit], **other)
        block = model.predict_new(row_features=self.row_features[in_test])
        return np.asarray(block[(np.cumsum(in_test) - 1)[self.rows[asked]], self.cols[asked]])

    def truth(self, role: int) -> np.ndarray:
        return np.asarray(self.values[self.role[self.rows] == role])

    def choose(self, models: list[Any], one_side: bool) -> Any:
        def error(model: Any) -> float:
            return float(np.mean((self.predict(clone(model), [0], 1, one_side) - self.truth(1)) ** 2))

        return min(models, key=error)

    def peer(self, model: str) -> tuple[np.ndarray, dict[str, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            request = {"data": f"{folder}/data.npz", "out": f"{folder}/out.npy", "model": model,
                       "settings": PEERS[model], "n_threads": 1}  # fmt: skip
            hidden = np.where(self.role[self.rows] == 2, np.nan, self.values)
            np.savez(request["data"], rows=self.rows, cols=self.cols, values=hidden, role=self.role,
                     row_features=self.row_features, col_features=self.col_features)  # fmt: skip
            answer = run_child("cmfrec", CHILD, request, n_threads=1)
            return np.load(request["out"]), answer["setting"]


def one(cold: Side, name: str) -> dict[str, Any]:
    """Choose, predict once, and say what was chosen."""
    if name == "mean":
        known = np.concatenate([cold.truth(0), cold.truth(1)])
        return errors(np.full(cold.truth(2).size, known.mean()), cold.truth(2))
    if name.startswith("cmfrec "):
        predicted, params = cold.peer(name.removeprefix("cmfrec "))
    else:
        one_side = name == ONE_SIDE
        chosen = cold.choose(candidates()[name], one_side)
        keys = ("reg", "reg_g", "reg_features", "center")
        params = {key: value for key, value in chosen.get_params().items() if key in keys}
        predicted = cold.predict(clone(chosen), [0, 1], 2, one_side)
    return {**errors(predicted, cold.truth(2)), "params": params}


def main() -> None:
    """Add the runs that are not stored yet."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataWarning)
    names = ["mean", *candidates(), *(f"cmfrec {model}" for model in PEERS)]
    table = load("mixed_cold")
    done = {(entry["method"], entry["side"], entry["seed"]) for entry in table}
    data = load_ml100k()
    for side in ("row", "col"):
        for seed in range(int(os.environ.get("SEEDS", "4"))):
            cold = Side(data, side, seed)
            for name in names:
                if (name, side, seed) not in done:
                    table.append({"method": name, "side": side, "seed": seed, **one(cold, name)})
                    print(table[-1], flush=True)
                    store("mixed_cold", {"protocol": __doc__, "results": table})


if __name__ == "__main__":
    main()
