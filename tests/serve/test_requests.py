"""What the server refuses, how it says so, and what it never does."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from serve_models import COLS, ROWS, Small
from starlette.testclient import TestClient

from unseen.serve import Limits, create_app

WRONG = [
    ("/v1/predict", {"rows": [ROWS[0]]}, 422, "cols"),
    ("/v1/predict", {"rows": [ROWS[0]], "cols": [0, 10]}, 422, "cols"),
    ("/v1/predict", {"rows": ["nobody"], "cols": [0]}, 404, "rows[0]"),
    ("/v1/predict", {"rows": [ROWS[0]], "cols": [2**70]}, 404, "cols[0]"),
    ("/v1/predict", {"rows": [ROWS[0]], "cols": [True]}, 422, "cols[0]"),
    ("/v1/predict", {"rows": [ROWS[3] + "\0"], "cols": [0]}, 404, "rows[0]"),
    ("/v1/recommend", {}, 422, "rows"),
    ("/v1/recommend", {"rows": [], "k": 3}, 422, "rows"),
    ("/v1/recommend", {"rows": ROWS[:2] * 40}, 413, "rows"),
    ("/v1/recommend", {"rows": [ROWS[0]], "k": 0}, 422, "k"),
    ("/v1/recommend", {"rows": [ROWS[0]], "k": 31}, 422, "k"),
    ("/v1/recommend", {"rows": [ROWS[0]], "surprise": 1}, 422, "surprise"),
    ("/v1/recommend", {"rows": [ROWS[0]], "cells": [{"col": 0, "value": 1}]}, 422, "rows"),
    ("/v1/recommend", {"cells": [{"col": 0}]}, 422, "cells[0]"),
    ("/v1/recommend", {"cells": [{"col": 0, "value": "1"}]}, 422, "cells[0].value"),
    ("/v1/recommend", {"cells": [{"col": 0, "value": 10**400}]}, 422, "cells[0].value"),
    ("/v1/recommend", {"cells": [{"col": 0, "value": 1}, {"col": "0", "value": 2}]}, 422, "cells"),
    ("/v1/recommend", {"row_features": {"age": 1}}, 422, "row_features"),
    ("/v1/similar", {}, 422, "rows"),
    ("/v1/explain", {"row": ROWS[0], "col": 5}, 404, "col"),
    ("/v1/update", {"cells": []}, 403, None),
    ("/v1/reload", {}, 403, None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "field"), WRONG)
def test_wrong_requests(client: Any, path: str, body: Any, status: int, field: str | None) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"{", "application/json", 400),
        (b'{"k": NaN}', "application/json", 400),
        (b"[" * 10_000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"k": 1' + b"1" * 5000 + b"}", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"rows=1", "application/x-www-form-urlencoded", 415),
        (b'{"rows": ["' + b"x" * 30_000 + b'"]}', "application/json", 413),
    ],
)
def test_wrong_bodies(client: Any, content: bytes, kind: str, status: int) -> None:
    answer = client.post("/v1/recommend", content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_body_of_unknown_length_is_cut_off(client: Any) -> None:
    def pieces() -> Any:
        for _ in range(100):
            yield b" " * 1000

    answer = client.post("/v1/predict", content=pieces(), headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_unknown_addresses_and_methods(client: Any) -> None:
    for path in ("/nowhere", "/page.js/../app.py", "/..%2f..%2fetc%2fpasswd", "/v1"):
        assert client.get(path).status_code == 404
        assert set(client.get(path).json()["error"]) == {"message", "field"}
    assert client.get("/v1/predict").status_code == 405


def test_nothing_in_an_id_can_run(client: Any) -> None:
    answer = client.post("/v1/recommend", json={"rows": [ROWS[0]]})
    assert answer.json()["lists"][0]["of"] == ROWS[0]
    for path in ("/", "/v1/model", "/nowhere"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    assert answer.headers["content-type"] == "application/json"


def test_names_of_the_host(small: Small) -> None:
    with TestClient(create_app(small.model, hosts=["localhost", "[::1]"])) as client:
        assert client.get("/healthz", headers={"host": "localhost:8000"}).status_code == 200
        assert client.get("/healthz", headers={"host": "[::1]:8000"}).status_code == 200
        assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 421


def test_health_metrics_and_description(client: Any) -> None:
    client.post("/v1/recommend", json={"rows": [ROWS[0]]})
    client.get("/nowhere")
    text = client.get("/metrics").text
    assert 'path="/v1/recommend",status="200"} 1' in text
    assert 'path="other",status="404"} 1' in text
    assert "unseen_batch_requests_count" in text
    assert client.get("/readyz").json()["status"] == "ready"
    document = client.get("/openapi.json").json()
    assert "deny" in json.dumps(document["paths"]["/v1/recommend"])
    assert client.get("/v1/model").json()["n_cols"] == len(COLS)


def test_a_slow_answer_is_given_up(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    from unseen.serve.answers import Served

    let_go = Event()
    monkeypatch.setattr(Served, "predict", lambda *_: let_go.wait(5) and None)
    with TestClient(create_app(small.model, limits=Limits(seconds=0.05))) as client:
        answer = client.post("/v1/predict", json={"rows": [ROWS[0]], "cols": [0]})
        let_go.set()
    assert answer.status_code == 503
    assert "0.05 s" in answer.json()["error"]["message"]


def test_a_mistake_of_ours_shows_nothing(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.serve.answers import Served

    def broken(*_: Any) -> Any:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(Served, "predict", broken)
    with TestClient(create_app(small.model), raise_server_exceptions=False) as client:
        answer = client.post("/v1/predict", json={"rows": [ROWS[0]], "cols": [0]})
    assert answer.status_code == 500
    assert answer.json() == {"error": {"message": "internal error", "field": None}}


# -- hostile requests -----------------------------------------------------------------

ODD: list[Any] = [
    None, True, -1, 0, 1, 3.5, 1e308, -1e308, 10**30, "", "\0", "\ud800", "a" * 3000, "../../etc/passwd",
    [], {}, [[]], [{}], {"col": 0}, "user 1", 20, "20", "<b>", "NaN", [1, "1", None],
    {"row": "user 1", "col": 20, "value": 1e300},
]  # fmt: skip
FIELDS = ("rows", "cols", "cells", "row_features", "k", "candidates", "deny", "std", "row", "col", "x")
PATHS = ["/v1/predict", "/v1/recommend", "/v1/similar", "/v1/explain", "/v1/update", "/v1/reload"]


def odd_value(rng: random.Random, depth: int = 0) -> Any:
    roll = rng.random()
    if depth < 4 and roll < 0.25:
        return [odd_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if depth < 4 and roll < 0.4:
        return {rng.choice(["col", "value", "row", "q"]): odd_value(rng, depth + 1) for _ in range(3)}
    if roll < 0.7:
        return rng.choice(ROWS + COLS)
    return rng.choice(ODD)


def plausible(rng: random.Random, name: str) -> Any:
    cell = {"col": rng.choice(COLS), "value": rng.choice([1, 5.0, -2, 1e308])}
    return {
        "rows": [rng.choice(ROWS)], "cols": [rng.choice(COLS)], "cells": [cell], "k": rng.randrange(1, 30),
        "row": rng.choice(ROWS), "col": rng.choice(COLS), "std": True, "deny": [rng.choice(COLS)],
    }.get(name, odd_value(rng))  # fmt: skip


def hostile(client: Any, seed: int, count: int) -> dict[int, int]:
    rng, found = random.Random(seed), dict[int, int]()
    for _ in range(count):
        names = rng.sample(FIELDS, rng.randrange(0, 5))
        body = {name: plausible(rng, name) if rng.random() < 0.6 else odd_value(rng) for name in names}
        content = json.dumps(body).encode()
        if rng.random() < 0.1:
            at = rng.randrange(len(content))
            content = content[:at] + rng.randbytes(rng.randrange(1, 9)) + content[at + 1 :]
        answer = client.post(rng.choice(PATHS), content=content, headers={"content-type": "application/json"})
        assert answer.status_code < 500, (body, answer.text)
        assert "Traceback" not in answer.text
        assert "site-packages" not in answer.text
        if answer.status_code >= 400:
            assert set(answer.json()["error"]) == {"message", "field"}
            assert len(answer.json()["error"]["message"]) < 500
        found[answer.status_code] = found.get(answer.status_code, 0) + 1
    return found


def test_hostile_requests(client: Any) -> None:
    found = hostile(client, 0, 400)
    assert {200, 422} <= set(found)


@pytest.mark.slow
def test_ten_thousand_hostile_requests(client: Any) -> None:
    assert sum(hostile(client, 1, 10_000).values()) == 10_000


def test_hostile_requests_would_find_a_mistake(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unseen.serve.app.parse_json", json.loads)
    with pytest.raises(AssertionError):
        hostile(client, 0, 100)
