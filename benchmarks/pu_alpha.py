"""How far off are the weight and the hidden share of alpha="auto", and what does it cost?

Generated positives with a known share of hidden ones. For each setting: the weight that theory names,
(1 + rho)/2, the weight chosen from held-out positives, and the share of truly hidden positives in lists
of ten columns for each row with the chosen weight, the theoretical one, none (0.5) and the best
of the grid, which only the truth can name.

    python -m benchmarks pu_alpha      writes benchmarks/stored/pu_alpha.json
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks._store import store
from unseen import BiasMC
from unseen.datasets import make_positives
from unseen.estimators.pu_rates import alpha_grid
from unseen.metrics import recall_at_k

LIST_LENGTH = 10
SHAPE = (1000, 800)
SETTINGS: list[dict[str, Any]] = [
    {"name": "10 groups, dense", "data": {"n_groups": 10, "inside": 0.9, "across": 0.02}},
    {"name": "50 groups, sparse", "data": {"n_groups": 50, "inside": 0.5, "across": 0.002}},
    {"name": "rank 5, 2 % positive", "data": {"rank": 5, "class_prior": 0.02}},
    {"name": "rank 5, 10 % positive", "data": {"rank": 5, "class_prior": 0.1}},
]


def hidden_recall(alpha: float | str, data: Any, rank: int, seed: int) -> tuple[float, Any]:
    model = BiasMC(rank, alpha=alpha, reg="0.05max", list_length=LIST_LENGTH, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.observations)
    ids, _ = model.recommend(np.arange(SHAPE[0]), k=LIST_LENGTH, exclude=data.observations)
    return recall_at_k(data.hidden, ids, k=LIST_LENGTH), model


def one(setting: dict[str, Any], rho: float, seed: int) -> dict[str, Any]:
    data = make_positives(*SHAPE, rho=rho, random_state=seed, **setting["data"])
    rank = 2 * setting["data"].get("n_groups", setting["data"].get("rank"))
    seen = data.observations.nnz / (SHAPE[0] * SHAPE[1])
    grid = {alpha: hidden_recall(alpha, data, rank, seed)[0] for alpha in alpha_grid(seen)}
    auto, model = hidden_recall("auto", data, rank, seed)
    theory, _ = hidden_recall((1 + rho) / 2, data, rank, seed)
    return {
        "setting": setting["name"],
        "rho": rho,
        "seed": seed,
        "seen": seen,
        "alpha_theory": (1 + rho) / 2,
        "alpha_chosen": model.alpha_,
        "rho_estimated": model.rho_,
        "recall_chosen": auto,
        "recall_theory": theory,
        "recall_half": grid[0.5],
        "recall_best": max(grid.values()),
        "grid": [[alpha, recall] for alpha, recall in grid.items()],
    }


def main() -> None:
    runs = []
    for setting in SETTINGS:
        for rho in (0.5, 0.9):
            for seed in range(3):
                runs.append(one(setting, rho, seed))
                print({key: value for key, value in runs[-1].items() if key != "grid"}, flush=True)
    store("pu_alpha", {"list_length": LIST_LENGTH, "shape": SHAPE, "runs": runs})


if __name__ == "__main__":
    main()
