"""A small model with awkward ids, behind the application."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from serve_models import COLS, ROWS, Small
from starlette.testclient import TestClient

from unseen import MatrixFactorization, Observations
from unseen.serve import Limits, create_app


@pytest.fixture(scope="session")
def small() -> Small:
    rng = np.random.default_rng(0)
    truth = 3 + rng.normal(size=(len(ROWS), 2)) @ rng.normal(size=(2, len(COLS)))
    i, j = np.nonzero(rng.random(truth.shape) < 0.4)
    frame = pd.DataFrame({"user": [ROWS[t] for t in i], "item": [COLS[t] for t in j], "stars": truth[i, j]})
    cells = Observations.from_frame(frame, row="user", col="item", value="stars")
    model = MatrixFactorization(2, reg=0.5, center="biases", random_state=0, n_jobs=1).fit(cells)
    return Small(model, cells)


@pytest.fixture
def client(small: Small) -> Iterator[Any]:
    limits = Limits(body_bytes=20_000, rows=50, k=30, cells=40)
    app = create_app(small.model, cells=small.cells, limits=limits, names={"col": {40: "Forty"}})
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client
