"""What the server refuses, how it says so, and what it never does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from serve_models import COLS, ROWS, Small
from starlette.testclient import TestClient

from benchmarks._hostile_requests import send_hostile
from unseen.serve import Limits, create_app
from unseen.serve.limits import RequestError

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


def test_hostile_requests(client: Any) -> None:
    found = send_hostile(client, 0, 400, ROWS, COLS)
    assert {200, 422} <= set(found)


@pytest.mark.slow
def test_ten_thousand_hostile_requests(client: Any) -> None:
    assert sum(send_hostile(client, 1, 10_000, ROWS, COLS).values()) == 10_000


def test_hostile_requests_would_find_a_mistake(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unseen.serve.app.parse_json", json.loads)
    with pytest.raises(AssertionError, match="answered by 500"):
        send_hostile(client, 0, 100, ROWS, COLS)


def test_hostile_requests_would_find_a_path(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def telling(content: bytes) -> Any:
        raise RequestError("/usr/lib/python3/dist-packages cannot be read")

    monkeypatch.setattr("unseen.serve.app.parse_json", telling)
    with pytest.raises(AssertionError, match="shows"):
        send_hostile(client, 0, 100, ROWS, COLS)
