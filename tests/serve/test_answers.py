"""Answers of the server against the model asked directly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serve_models import COLS, ROWS, Small

import unseen
from unseen import IMC, BiasMC, MatrixFactorization, Observations
from unseen.exceptions import InvalidDataError
from unseen.multilabel import RidgeOvA
from unseen.serve.answers import Served, Wanted
from unseen.serve.contributions import contributions


def items(answer: Any, place: int = 0) -> list[tuple[Any, float]]:
    return [(item["id"], item["score"]) for item in answer.json()["lists"][place]["items"]]


def test_predictions(client: Any, small: Small) -> None:
    answer = client.post("/v1/predict", json={"rows": [ROWS[0], ROWS[5]], "cols": [20, "20"], "std": True})
    rows, col = [small.row(ROWS[0]), small.row(ROWS[5])], small.col(20)
    expected, std = small.model.predict_entries(rows, [col, col], return_std=True, positions=True)
    assert answer.json()["predictions"] == pytest.approx(expected)
    assert answer.json()["std"] == pytest.approx(std)


def test_lists_are_exact_and_leave_out_what_was_seen(client: Any, small: Small) -> None:
    answer = client.post("/v1/recommend", json={"rows": ROWS[:5], "k": 7, "deny": [100]})
    for place, name in enumerate(ROWS[:5]):
        i = small.row(name)
        scores = small.model.row_factors_[i] @ small.model.col_factors_.T
        scores[small.cells.csr[[i]].indices] = -np.inf
        scores[small.col(100)] = -np.inf
        best = np.argsort(-scores, kind="stable")[:7]
        assert [found for found, _ in items(answer, place)] == small.model.col_ids_[best].tolist()
        assert [score for _, score in items(answer, place)] == pytest.approx(scores[best])
        assert answer.json()["lists"][place]["of"] == name


def test_candidates(client: Any) -> None:
    answer = client.post("/v1/recommend", json={"rows": [ROWS[4]], "candidates": [0, 10, 20, 30], "k": 30})
    assert {found for found, _ in items(answer)} <= {0, 10, 20, 30}
    nothing = client.post("/v1/recommend", json={"rows": [ROWS[4]], "candidates": []})
    assert nothing.json()["lists"][0]["items"] == []


def test_a_row_is_folded_in_inside_the_request(client: Any, small: Small) -> None:
    cells = [{"col": 0, "value": 5.0}, {"col": 30, "value": 1.0}]
    answer = client.post("/v1/recommend", json={"cells": cells, "k": 4})
    new = Observations.from_triples([0, 0], [small.col(0), small.col(30)], [5.0, 1.0], (1, len(COLS)))
    scores = (small.model.fold_in(new, positions=True) @ small.model.col_factors_.T)[0]
    scores[[small.col(0), small.col(30)]] = -np.inf
    best = np.argsort(-scores, kind="stable")[:4]
    assert [found for found, _ in items(answer)] == small.model.col_ids_[best].tolist()


def test_many_requests_in_one_pass_get_what_each_alone_would(small: Small) -> None:
    served = Served(small.model, small.cells)
    rng = np.random.default_rng(0)
    asked = []
    for number in range(40):
        one = Wanted(served, int(rng.integers(1, 9)))
        if number % 3 == 0:
            one.cells = rng.permutation(len(COLS))[:3], rng.normal(size=3)
        else:
            one.rows = rng.integers(0, len(ROWS), size=number % 3)
        if number % 7 == 0:
            one.candidates = np.sort(rng.permutation(len(COLS))[:9])
        asked.append(one)
    together = served.lists(asked)
    for one, found in zip(asked, together, strict=True):
        (alone,) = served.lists([one])
        for left, right in zip(found, alone, strict=True):
            np.testing.assert_array_equal(left, right)


def test_one_bad_request_does_not_spoil_the_others(small: Small) -> None:
    served = Served(small.model, small.cells)
    good = Wanted(served, 3, rows=np.array([1]))
    bad = Wanted(served, 3, cells=(np.array([0]), np.array([1e308])))
    worse = Wanted(served, 3, cells=(np.array([0, 1]), np.array([1e308, -1e308])))
    answers = served.lists([good, bad, worse, good])
    np.testing.assert_array_equal(answers[0][0], served.lists([good])[0][0])
    np.testing.assert_array_equal(answers[3][0], answers[0][0])
    assert all(isinstance(answer, (tuple, ValueError)) for answer in answers)


def test_neighbours(client: Any, small: Small) -> None:
    answer = client.post("/v1/similar", json={"cols": [50], "k": 3})
    factors = small.model.col_factors_[:, :2]
    unit = factors / np.linalg.norm(factors, axis=1, keepdims=True)
    cosine = unit @ unit[small.col(50)]
    cosine[small.col(50)] = -2
    best = np.argsort(-cosine)[:3]
    assert [found for found, _ in items(answer)] == small.model.col_ids_[best].tolist()
    assert [score for _, score in items(answer)] == pytest.approx(cosine[best])
    assert client.post("/v1/similar", json={"rows": [ROWS[0]]}).status_code == 200


def test_parts_of_a_prediction_add_up(client: Any, small: Small) -> None:
    name = ROWS[6]
    found = client.post("/v1/explain", json={"row": name, "col": 70}).json()
    assert sum(found["parts"].values()) == pytest.approx(found["score"])
    assert found["std"] > 0
    seen = {small.model.col_ids_[j].item() for j in small.cells.csr[[small.row(name)]].indices}
    assert {cell["id"] for cell in found["cells"]} <= seen


@pytest.mark.parametrize("center", ["none", "mean", "biases", "joint"])
def test_what_rows_and_columns_do_alone_is_told_apart(small: Small, center: str) -> None:
    model = MatrixFactorization(2, reg=0.5, center=center, random_state=0, n_jobs=1).fit(small.cells)
    served = Served(model)
    parts = [served.explain(row, 3)["parts"] for row in (0, 1)] + [served.explain(0, 4)["parts"]]
    assert parts[0]["mean"] == pytest.approx(0.0 if center == "none" else small.cells.values.mean())
    biased = center in ("biases", "joint")
    assert (parts[0]["col"] == parts[1]["col"] != 0.0) is biased
    assert (parts[0]["row"] == parts[2]["row"] != 0.0) is biased


def test_what_a_cell_adds_is_what_is_lost_without_it(small: Small) -> None:
    columns, adds = contributions(small.model, small.cells, 4, 9)
    row = small.cells.csr[[4]].tolil()
    full = (small.model.fold_in(row.tocsr(), positions=True) @ small.model.col_factors_[9])[0]
    row[0, columns[1]] = 0
    less = row.tocsr()
    less.eliminate_zeros()
    without = (small.model.fold_in(less, positions=True) @ small.model.col_factors_[9])[0]
    assert adds[1] == pytest.approx(full - without)
    assert np.ptp(adds) > 0


def test_features_of_a_new_row_by_name() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30, 3))
    model = IMC(2, reg=0.1, random_state=0).fit(
        rng.normal(size=(30, 8)), row_features=features, col_features=rng.normal(size=(8, 2))
    )
    model.source_ = {"row_feature_names": ["age", "kind=a", "kind=b"]}
    served = Served(model)
    line = served.features["row"].line({"age": 0.5, "kind": "b"})
    np.testing.assert_array_equal(line, [[0.5, 0.0, 1.0]])
    ids, scores = served.lists([Wanted(served, 8, features=line)])[0]
    expected = model.predict_new(row_features=line)[0]
    np.testing.assert_allclose(scores[0], expected[ids[0]])
    for wrong in ({"age": 1.0}, {"age": "x", "kind": "a"}, {"age": 1.0, "kind": "c"}, {"size": 1.0}):
        with pytest.raises(ValueError, match=r"row_features|category"):
            served.features["row"].line(wrong)


def test_features_of_both_sides_say_what_they_add(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = {"row_features": rng.normal(2.0, 1.0, size=(30, 3)), "col_features": rng.normal(size=(8, 2))}
    model = IMC(2, reg=0.1, center="none", random_state=0).fit(rng.normal(size=(30, 8)), **features)
    model.source_ = {"row_feature_names": ["age", "kind=a", "kind=b"]}
    served = Served(model)
    assert served.about()["typical_row"] is None
    assert "features" not in served.explain(4, 5)  # without the training data nothing is known of them
    model.save(tmp_path / "model", cells=True)
    served = Served(unseen.load(tmp_path / "model"))
    assert served.about()["typical_row"] == pytest.approx(features["row_features"].mean(axis=0))
    told = served.explain(4, 5)["features"]
    assert [abs(one["adds"]) for one in told] == sorted((abs(one["adds"]) for one in told), reverse=True)
    assert {(one["of"], one["name"]) for one in told} == {
        *(("row", name) for name in ("age", "kind=a", "kind=b")), ("col", "col0"), ("col", "col1")
    }  # fmt: skip
    # Maps are linear, so all features of a row together are what it has over the average row.
    means = np.vstack([features["row_features"][4], features["row_features"].mean(axis=0)])
    scores = model.predict_new(row_features=means, col_features=features["col_features"][[5]])[:, 0]
    assert sum(one["adds"] for one in told if one["of"] == "row") == pytest.approx(scores[0] - scores[1])


def test_models_of_positives_fold_in_with_their_background() -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((40, 20)) < 0.2).astype(float)
    model = BiasMC(3, alpha=0.9, reg=1.0, random_state=0).fit(X)
    served = Served(model)
    wanted = Wanted(served, 20, cells=(np.array([1, 5]), np.ones(2)))
    ids, _ = served.lists([wanted])[0]
    assert not {1, 5} & set(ids[0].tolist())
    assert (ids[0] >= 0).sum() == 18


def test_a_model_of_positives_is_taken_to_pieces() -> None:
    positives = (np.random.default_rng(0).random((12, 8)) < 0.4).astype(float)
    model = BiasMC(2, alpha=0.9, random_state=0).fit(positives)
    found = Served(model).explain(0, 3)
    assert sum(found["parts"].values()) == pytest.approx(model.predict_entries([0], [3])[0])


def test_what_has_no_factors_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="cannot be served"):
        Served(RidgeOvA())


def test_map_and_search(client: Any, small: Small) -> None:
    points = client.get("/v1/map").json()["points"]
    assert [point["id"] for point in points] == small.model.col_ids_.values.tolist()
    spread = np.array([[point["x"], point["y"]] for point in points])
    assert spread.std(axis=0)[0] >= spread.std(axis=0)[1] > 0
    assert [point["n"] for point in points] == np.bincount(small.cells.indices).tolist()
    assert client.get("/v1/search", params={"q": "FORT"}).json()["found"] == [{"id": 40, "name": "Forty"}]
    found = client.get("/v1/search", params={"q": "user 1", "side": "row"}).json()["found"]
    assert found[0]["id"] == "user 1"
    assert client.get("/v1/seen", params={"row": "user 1"}).json()["known"]
