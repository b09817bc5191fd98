"""Requests that no client should send, and what a server must not answer to them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

__all__ = ["PATHS", "send_hostile"]

ODD: list[Any] = [
    None, True, -1, 0, 1, 3.5, 1e308, -1e308, 10**30, "", "\0", "\ud800", "a" * 3000, "../../etc/passwd",
    [], {}, [[]], [{}], {"col": 0}, "user 1", 20, "20", "<b>", "NaN", [1, "1", None],
    {"row": "user 1", "col": 20, "value": 1e300},
]  # fmt: skip
FIELDS = ("rows", "cols", "cells", "row_features", "k", "candidates", "deny", "std", "row", "col", "x")
PATHS = ["/v1/predict", "/v1/recommend", "/v1/similar", "/v1/explain", "/v1/update", "/v1/reload"]
GIVEN_AWAY = ("Traceback", "site-packages", "/usr/lib", "/etc/", "/tmp/")


def send_hostile(
    client: Any, seed: int, count: int, rows: Sequence[Any], cols: Sequence[Any]
) -> dict[int, int]:
    """Send so many requests; how often each status came back.

    Raises
    ------
    AssertionError
        If an answer has a status of 500 or more, shows what is inside, or is no error as documented.
    """
    rng, found = random.Random(seed), dict[int, int]()
    for _ in range(count):
        names = rng.sample(FIELDS, rng.randrange(0, 5))
        body = {
            name: _plausible(rng, name, rows, cols) if rng.random() < 0.6 else _odd(rng, [*rows, *cols])
            for name in names
        }
        content = json.dumps(body).encode()
        if rng.random() < 0.1:
            at = rng.randrange(len(content))
            content = content[:at] + rng.randbytes(rng.randrange(1, 9)) + content[at + 1 :]
        answer = client.post(rng.choice(PATHS), content=content, headers={"content-type": "application/json"})
        if answer.status_code >= 500:
            raise AssertionError(f"{content!r} was answered by {answer.status_code}: {answer.text}")
        if answer.status_code >= 400:
            _check_error(content, answer)
        found[answer.status_code] = found.get(answer.status_code, 0) + 1
    return found


def _check_error(content: bytes, answer: Any) -> None:
    error = answer.json()["error"]
    if set(error) != {"message", "field"} or len(error["message"]) >= 500:
        raise AssertionError(f"{content!r} was answered by {answer.text}")
    # What was sent may be shown; nothing else.
    shown = [word for word in GIVEN_AWAY if word in answer.text and word.encode() not in content]
    if shown:
        raise AssertionError(f"{content!r}: the answer shows {shown}: {answer.text}")


def _odd(rng: random.Random, ids: Sequence[Any], depth: int = 0) -> Any:
    roll = rng.random()
    if depth < 4 and roll < 0.25:
        return [_odd(rng, ids, depth + 1) for _ in range(rng.randrange(4))]
    if depth < 4 and roll < 0.4:
        return {rng.choice(["col", "value", "row", "q"]): _odd(rng, ids, depth + 1) for _ in range(3)}
    return rng.choice(ids if roll < 0.7 else ODD)


def _plausible(rng: random.Random, name: str, rows: Sequence[Any], cols: Sequence[Any]) -> Any:
    cell = {"col": rng.choice(cols), "value": rng.choice([1, 5.0, -2, 1e308])}
    return {
        "rows": [rng.choice(rows)], "cols": [rng.choice(cols)], "cells": [cell], "k": rng.randrange(1, 30),
        "row": rng.choice(rows), "col": rng.choice(cols), "std": True, "deny": [rng.choice(cols)],
    }.get(name, _odd(rng, [*rows, *cols]))  # fmt: skip
