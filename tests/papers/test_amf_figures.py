"""What AMF reaches on real ratings, at fixed settings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from unseen import AugmentedMF, BiasModel
from unseen.datasets import MatrixData, load_ml100k, load_yelp2013, load_yelp_3zones

pytestmark = [pytest.mark.data, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]


def first_split(data: MatrixData) -> np.ndarray:
    n_cells = data.observations.nnz
    held = np.zeros(n_cells, dtype=bool)
    if "item_zone" in data.cells:
        between = np.flatnonzero(data.cells["item_zone"] != data.cells["user_zone"])
        order = np.random.default_rng(0).permutation(between)
        held[order[int(0.2 * order.size) :]] = True
    else:
        held[np.array_split(np.random.default_rng(0).permutation(n_cells), 10)[0]] = True
    return held


@pytest.mark.parametrize(
    ("load", "biases", "centred", "between"),
    [
        (load_yelp2013, 1.103, 1.104, 1.215),
        (load_yelp_3zones, 1.040, 1.045, 1.140),
        (load_ml100k, 0.945, 0.925, 1.020),
    ],
)
def test_errors(
    load: Callable[[], MatrixData], biases: float, centred: float, between: float, data_home: object
) -> None:
    data = load()
    cells, held = data.observations, first_split(data)
    train, test = cells.select(~held), cells.select(held)

    def error(model: BiasModel | AugmentedMF) -> float:
        predicted = np.clip(
            model.fit(train).predict_entries(test.rows, test.indices, positions=True), 1.0, 5.0
        )
        return float(np.sqrt(np.mean((predicted - test.values) ** 2)))

    assert error(BiasModel((7.0, 3.0))) < biases
    options = {"bias_reg": (7.0, 3.0), "max_iter": 4, "random_state": 0}
    assert error(AugmentedMF(10, **options)) < centred
    assert error(AugmentedMF(10, center="mean", **options)) < between
    # Negative control: the pull to zero is no good for ratings that are not centred.
    assert error(AugmentedMF(10, center="none", **options)) > between + 0.1
