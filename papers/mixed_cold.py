"""MovieLens-100K: users, then movies, that are held out whole, predicted from their features.

A fifth of the users (or movies) is held out, seeds 0..3. Of the others, a fifth chooses the settings
by its RMSE, then takes part in the last fit. The held-out ones are read once.
"""

from __future__ import annotations

from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from sklearn.base import clone

from papers.display import Table, canvas, with_spread
from papers.experiment import Claim, Experiment, Row, Unit, grouped
from papers.mixed_choice import Ratings, errors, ratings
from unseen import IMC, BiasModel, DirtyIMC, Maxide, MixedLinear, Observations, SparseBilinear
from unseen.typing import Array

__all__ = ["EXPERIMENT", "Side"]

ONE_SIDE = "SparseBilinear, features of the cold side only"
"""Each warm user (or movie) then has weights of its own for the features of movies (or users)."""
SIDES = {"row": "users", "col": "movies"}
WITH_FEATURES = ("MixedLinear soft", "MixedLinear hard", "SparseBilinear", "Maxide", "IMC", "DirtyIMC")


def candidates() -> dict[str, list[Any]]:
    """After biases a cold row still has the biases of its columns; the features say the rest."""
    common: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
    soft = {"constraint": "soft", "max_iter": 10, "tol": 0.0, "max_rank": None, **common}
    hard = {"constraint": "hard", "max_iter": 6, "max_rank": None, **common}
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
        ONE_SIDE: [
            SparseBilinear(r, max_iter=100, tol=1e-5, center="mean", **common) for r in (20.0, 10.0, 5.0, 2.5)
        ],
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

    def __init__(self, data: Ratings, side: str, seed: int) -> None:
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

    def predict(self, model: Any, known: list[int], wanted: int, one_side: bool = False) -> Array:
        """Fit to the rows of some roles, predict the cells of those of another from features alone."""
        in_fit, in_test = np.isin(self.role, known), self.role == wanted
        seen, asked = in_fit[self.rows], in_test[self.rows]
        place = np.cumsum(in_fit) - 1
        train = Observations.from_triples(
            place[self.rows[seen]],
            self.cols[seen],
            self.values[seen],
            shape=(int(in_fit.sum()), len(self.col_features)),
        )
        if isinstance(model, BiasModel):
            model.fit(train)
            return np.asarray(model.mean_ + model.col_bias_[self.cols[asked]])
        other = {} if one_side else {"col_features": self.col_features}
        model.fit(train, row_features=self.row_features[in_fit], **other)
        block = model.predict_new(row_features=self.row_features[in_test])
        return np.asarray(block[(np.cumsum(in_test) - 1)[self.rows[asked]], self.cols[asked]])

    def truth(self, role: int) -> Array:
        """Ratings of the rows of a role."""
        return np.asarray(self.values[self.role[self.rows] == role])

    def choose(self, models: list[Any], one_side: bool) -> Any:
        """The model with the least error on the rows that choose."""

        def error(model: Any) -> float:
            return float(np.mean((self.predict(clone(model), [0], 1, one_side) - self.truth(1)) ** 2))

        return min(models, key=error)


def one(side: str, seed: int, name: str, quick: bool) -> list[Row]:
    """Choose, predict once, and say what was chosen."""
    cold = Side(ratings(quick), side, seed)
    labels = {"method": name, "side": side, "seed": seed}
    if name == "mean":
        known = np.concatenate([cold.truth(0), cold.truth(1)])
        return [{**labels, **errors(np.full(cold.truth(2).size, known.mean()), cold.truth(2))}]
    one_side = name == ONE_SIDE
    chosen = cold.choose(candidates()[name], one_side)
    keys = ("reg", "reg_g", "reg_features", "center")
    params = {key: value for key, value in chosen.get_params().items() if key in keys}
    predicted = cold.predict(clone(chosen), [0, 1], 2, one_side)
    return [{**labels, **errors(predicted, cold.truth(2)), "params": params}]


def units(quick: bool) -> list[Unit]:
    return [
        Unit(f"{SIDES[side]} seed={seed} {name}", partial(one, side, seed, name, quick))
        for side in SIDES
        for seed in range(1 if quick else 4)
        for name in ("mean", *candidates())
    ]


def tables(rows: list[Row]) -> dict[str, Table]:
    found = grouped(rows, "method", "side")
    lines = [
        [
            name,
            *(
                with_spread(row[key] for row in found[name, side])
                for side in SIDES
                for key in ("rmse", "mae")
            ),
        ]
        for (name,) in grouped(rows, "method")
    ]
    return {"cold": Table.of(["", "users: RMSE", "MAE", "movies: RMSE", "MAE"], lines)}


def claims(rows: list[Row]) -> list[Claim]:
    found = {key: mean(row["rmse"] for row in own) for key, own in grouped(rows, "method", "side").items()}
    seeds = grouped(rows, "side", "seed")
    movies = [
        {row["method"]: row["rmse"] for row in own} for (side, _), own in seeds.items() if side == "col"
    ]
    return [
        Claim.ours(
            "features of new users say more than the biases of the movies",
            [found[name, "row"] < found["BiasModel", "row"] for name in WITH_FEATURES],
            "RMSE, mean over seeds, each model with features of both sides",
        ),
        Claim.ours(
            "features of new movies say more than the biases of the users",
            [found[name, "col"] < found["BiasModel", "col"] for name in WITH_FEATURES],
            "RMSE, mean over seeds, each model with features of both sides",
        ),
        Claim.ours(
            "so do weights of each user for the features of new movies",
            [by[ONE_SIDE] < by["BiasModel"] for by in movies],
            "one case for each seed",
        ),
    ]


def figures(rows: list[Row]) -> list[tuple[Any, str]]:
    found = grouped(rows, "method", "side")
    names = [name for (name,) in grouped(rows, "method")]
    shown = [name.replace(", features of the cold", "\n(features of the cold").replace(" only", " only)")
             for name in names]  # fmt: skip
    figure, panels = canvas((8, 3.6), 2, sharey=True)
    for axes, (side, label) in zip(panels, SIDES.items(), strict=True):
        for place, name in enumerate(names):
            values = [row["rmse"] for row in found[name, side]]
            axes.plot(values, [place] * len(values), ".", color="tab:blue", alpha=0.5)
            axes.plot(mean(values), place, "|", color="black", markersize=14)
        axes.set(title=f"new {label}", xlabel="RMSE")
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_yticks(range(len(names)), shown)
    panels[0].invert_yaxis()
    return [(figure, "Error on users and movies held out whole: one point for each seed, and the mean.")]


EXPERIMENT = Experiment(
    name="mixed-cold",
    paper="mixed",
    shows="users and movies without any rating, predicted from their features (not in the paper)",
    differences="The paper has no such experiment; it is what a model of features is for. A fifth of the "
    "users or movies is held out whole, a fifth of the others chooses the settings.",
    units=units,
    tables=tables,
    claims=claims,
    figures=figures,
    datasets=("ml100k",),
)
