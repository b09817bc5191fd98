"""Every address for every kind of model: a right answer, or a refusal that says what is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import unseen
from benchmarks._hostile_requests import send_hostile
from unseen import IMC, BayesianMF, BiasMC, BiasModel, MatrixFactorization, Observations, SoftImpute
from unseen.datasets import make_ratings
from unseen.exceptions import InvalidDataError
from unseen.serve import create_app
from unseen.serve.answers import Served

DATA = make_ratings(40, 30, density=0.3, random_state=0)
ROWS = [f"u{number}" for number in range(40)]
COLS = [f"f{number}" for number in range(30)]


def named(cells: Observations, positives: bool = False) -> Observations:
    frame = pd.DataFrame(
        {
            "user": [ROWS[i] for i in cells.rows],
            "film": [COLS[j] for j in cells.indices],
            "stars": cells.values,
        }
    )
    if positives:
        return Observations.from_frame(frame[frame.stars >= 3], row="user", col="film")
    return Observations.from_frame(frame, row="user", col="film", value="stars")


def features() -> pd.DataFrame:
    table = pd.DataFrame(DATA.row_features, columns=[f"x{t}" for t in range(DATA.row_features.shape[1])])
    return table.assign(user=ROWS)[["user", *table.columns]]


KINDS: dict[str, Callable[[], Any]] = {
    "factors": lambda: MatrixFactorization(3, reg=2.0, random_state=0).fit(named(DATA.observations)),
    "biases": lambda: BiasModel().fit(named(DATA.observations)),
    "convex": lambda: SoftImpute(3.0).fit(named(DATA.observations)),
    "positives": lambda: BiasMC(3, alpha=0.9, reg=1.0, random_state=0).fit(named(DATA.observations, True)),
    "features": lambda: IMC(2, random_state=0).fit(named(DATA.observations), row_features=features()),
    "averaged": lambda: BayesianMF(2, n_samples=10, burn_in=5, random_state=0).fit(named(DATA.observations)),
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return request.param, KINDS[request.param]()


@pytest.mark.parametrize("saved", [None, "cells", "seen", "bare"])
def test_every_flow(kind: tuple[str, Any], saved: str | None, tmp_path: Path) -> None:
    name, model = kind
    if saved is not None:
        model.save(tmp_path / "model", cells=saved == "cells", seen=saved != "bare")
        model = unseen.load(tmp_path / "model")
    line = {f"x{t}": 0.5 for t in range(DATA.row_features.shape[1])}
    with TestClient(create_app(model), raise_server_exceptions=False) as client:

        def ask(path: str, body: Any = None) -> tuple[int, Any]:
            answer = client.get(path) if body is None else client.post(path, json=body)
            content = answer.json()
            if answer.status_code != 200:
                assert answer.status_code == 422, content
                assert content["error"]["message"]
            return answer.status_code, content

        about = ask("/v1/model")[1]
        pairs = {"rows": ROWS[:3], "cols": COLS[:3]}
        status, content = ask("/v1/predict", pairs)
        np.testing.assert_allclose(content["predictions"], model.predict_entries(**pairs), rtol=1e-6)
        status, content = ask("/v1/predict", {**pairs, "std": True})
        assert (status == 200) is (about["spread"] is not None)
        if status == 200 and name == "averaged":
            np.testing.assert_allclose(content["std"], model.predict_entries(**pairs, return_std=True)[1])
            assert about["spread"] == "values"
        elif status == 200:
            assert about["spread"] == "fits"
        status, content = ask("/v1/recommend", {"rows": ROWS[:2], "k": 4})
        wanted = model.recommend(ROWS[:2], 4, exclude="seen" if about["knows_seen_cells"] else None)[0]
        assert [[item["id"] for item in one["items"]] for one in content["lists"]] == wanted.tolist()
        cells = [{"col": "f1", "value": 1}, {"col": "f2", "value": 1}]
        status, content = ask("/v1/recommend", {"cells": cells, "k": 3})
        assert (status == 200) is (name != "features")
        if status != 200:
            assert content["error"]["field"] == "row_features"
        status, content = ask("/v1/recommend", {"cells": cells, "row_features": line, "k": 3})
        assert (status == 200) is (name == "features")
        status, content = ask("/v1/recommend", {"row_features": line, "k": 3})
        assert (status == 200) is (name == "features")
        for body in ({"cols": ["f1"], "k": 3}, {"rows": ["u1"], "k": 3}):
            assert (ask("/v1/similar", body)[0] == 200) is (name != "biases")
        assert (ask("/v1/map")[0] == 200) is (name != "biases")
        status, content = ask("/v1/explain", {"row": "u1", "col": "f1"})
        assert sum(content["parts"].values()) == pytest.approx(content["score"])
        send_hostile(client, 3, 60, ROWS, COLS)


def test_values_that_a_model_of_positives_cannot_read() -> None:
    model = KINDS["positives"]()
    with TestClient(create_app(model), raise_server_exceptions=False) as client:
        answer = client.post("/v1/recommend", json={"cells": [{"col": "f1", "value": 5}]})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "cells[0].value"
    assert "fitted to positives: 1 (0 for none) is accepted, got 5" in answer.json()["error"]["message"]


@pytest.mark.filterwarnings("ignore")
def test_what_has_no_factors_is_refused_at_the_start() -> None:
    models = [
        unseen.SpectralFilter(3).fit(named(DATA.observations, True)),
        unseen.Blend([BiasModel(), MatrixFactorization(2, reg=2.0)]).fit(named(DATA.observations)),
    ]
    for model in models:
        with pytest.raises(InvalidDataError, match=r"cannot be served: only completers with factors"):
            Served(model)
