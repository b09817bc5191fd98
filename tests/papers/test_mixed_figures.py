"""The mixed linear model on real ratings, once, with settings fixed beforehand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unseen import MixedLinear
from unseen.datasets import load_ml100k


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_relative_error_on_movielens_is_below_the_paper(data_home: Path) -> None:
    data = load_ml100k(data_home=data_home)
    cells = data.observations
    removed = np.zeros(cells.nnz, dtype=bool)
    removed[np.random.default_rng(7).permutation(cells.nnz)[: cells.nnz // 5]] = True
    train, test = cells.select(~removed), cells.select(removed)
    model = MixedLinear(
        100.0, 1000.0, constraint="soft", max_iter=15, tol=0.0, random_state=0, max_rank=None, center="none"
    )
    model.fit(train, row_features=data.row_features, col_features=data.col_features)
    off = model.predict_entries(test.rows, test.indices, positions=True) - test.values
    ratio = float(np.linalg.norm(off) / np.linalg.norm(test.values))
    constant = float(np.linalg.norm(test.values - train.values.mean()) / np.linalg.norm(test.values))
    assert ratio < 0.276 < constant
