"""AMF: rating matrices, splits and methods that its experiments share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from papers.experiment import take_out
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
from unseen.typing import Array

__all__ = [
    "BIAS_REGS",
    "LOADERS",
    "Builder",
    "Setting",
    "error",
    "limits_of",
    "methods",
    "split_of",
]

LOADERS: dict[str, Callable[[], MatrixData]] = {
    "yelp-2013": load_yelp2013,
    "yelp-3zones": load_yelp_3zones,
    "ml100k": load_ml100k,
    "filmtrust": load_filmtrust,
    "ciao": load_ciao,
}
RANK, PAPER_RANK = 10, 60
SEED: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
PAPER_REG = 0.02
"""eta = 1/lambda of the paper."""
BIAS_REGS = [{"bias_reg": pair} for pair in ((3.0, 3.0), (5.0, 3.0), (7.0, 3.0), (10.0, 3.0), (5.0, 5.0))]
Setting = dict[str, Any]
Builder = Callable[[Setting], Any]


class Mean:
    """The mean of the observed cells everywhere."""

    def fit(self, cells: Observations) -> Self:
        """Learn it."""
        self.value = float(cells.values.mean(dtype=np.float64))
        return self

    def predict_entries(self, rows: Array, cols: Array, *, positions: bool) -> Array:
        """Say it."""
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
            lambda s: MatrixFactorization(RANK, reg=PAPER_REG, center="mean", max_iter=15, **SEED),
            [{}],
        ),
        "NMF": (lambda s: NMF(RANK, max_iter=30, **SEED), [{}]),
        "PMF": (lambda s: PMF(RANK, max_iter=30, **SEED), [{}]),
        "MMMF": (lambda s: MMMF(RANK, max_iter=30, **SEED), [{}]),
        "AMF, raw": (lambda s: AugmentedMF(RANK, reg=PAPER_REG, center="none", max_iter=10, **SEED), [{}]),
        "AMF, mean": (lambda s: AugmentedMF(RANK, reg=PAPER_REG, center="mean", max_iter=10, **SEED), [{}]),
        "AMF, the paper's settings, mean": (
            lambda s: AugmentedMF(
                PAPER_RANK,
                reg=PAPER_REG,
                center="mean",
                solver="linesearch",
                eps_abs=0.01,
                max_iter=30,
                **SEED,
            ),
            [{}],
        ),
        "AMF, biases": (lambda s: AugmentedMF(RANK, reg=PAPER_REG, max_iter=10, **biases), [{}]),
        "AMF, biases, chosen": (
            lambda s: AugmentedMF(RANK, weight=s["weight"], reg=s["reg"], max_iter=10, **biases),
            [
                {"weight": weight, "reg": reg}
                for weight in (0.01, 0.1, 1.0)
                for reg in (PAPER_REG, 3.0, 10.0, 30.0)
            ],
        ),
    }


def splits(name: str, data: MatrixData) -> Iterator[Array]:
    """Test cells of each split, as the paper has them: ten folds, or 80 % of the cells between zones."""
    if name == "yelp-3zones":
        between = np.flatnonzero(data.cells["item_zone"] != data.cells["user_zone"])
        for seed in range(10):
            order = np.random.default_rng(seed).permutation(between)
            yield order[int(0.2 * order.size) :]
        return
    yield from np.array_split(np.random.default_rng(0).permutation(data.observations.nnz), 10)


def split_of(name: str, number: int) -> tuple[Observations, Observations]:
    """Training and test cells of a split."""
    data = LOADERS[name]()
    return take_out(data.observations, list(splits(name, data))[number])


def limits_of(cells: Observations) -> tuple[float, float]:
    """Ends of the scale."""
    return float(cells.values.min()), float(cells.values.max())


def error(model: Any, cells: Observations, limits: tuple[float, float]) -> float:
    """RMSE of predictions that are cut to the scale."""
    predicted = np.clip(model.predict_entries(cells.rows, cells.indices, positions=True), *limits)
    return float(np.sqrt(np.mean((predicted.astype(np.float64) - cells.values) ** 2)))
