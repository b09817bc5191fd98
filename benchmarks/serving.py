"""``unseen serve`` here: times, memory of workers, reloads and deaths under load, hostile requests.

python -m benchmarks serving [--size small|medium|large], or only some parts, which take the place of what is
stored of them: python -m benchmarks.serving large times hostile
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from benchmarks._hostile_requests import send_hostile
from benchmarks._load import ask_all, closed_loop
from benchmarks._peers import python_of
from benchmarks._store import STORED, if_measured, keep, stored

RANK, K, CELLS = 64, 10, 10
COLUMNS = {"small": (20_000,), "medium": (200_000,), "large": (200_000, 1_000_000)}
REQUESTS = {"small": 300, "medium": 1000, "large": 2000}
RELOAD_REQUESTS = {"small": 1000, "medium": 10_000, "large": 100_000}
ANSWERS = {"small": 10_000, "medium": 100_000, "large": 1_000_000}
HOSTILE = {"small": 300, "medium": 3000, "large": 10_000}
DEATHS = {"small": 2, "medium": 4, "large": 10}
CLIENTS = (1, 32)
WORKERS = (1, 4)
CHILD = Path(__file__).parent / "_cornac_child.py"
FEW = 2000
"""Columns of the model where answers are counted, not timed."""


def fitted(n_cols: int) -> Any:
    """A model of this many columns; what its factors say does not matter here."""
    from unseen import MatrixFactorization, Observations

    rng = np.random.default_rng(0)
    n_rows, per_row = 2000, max(n_cols // 500, 20)
    cells = sparse.csr_array(
        (
            rng.normal(size=n_rows * per_row).astype(np.float32),
            rng.integers(0, n_cols, n_rows * per_row),
            np.arange(0, n_rows * per_row + 1, per_row),
        ),
        shape=(n_rows, n_cols),
    )
    cells.sum_duplicates()
    model = MatrixFactorization(RANK, reg=5.0, max_iter=1, tol=1.0, center="none", random_state=0)
    return model.fit(Observations.from_sparse(cells))


def saved(home: Path, n_cols: int, **options: Any) -> Path:
    """The model in a directory, fitted when it is first asked for."""
    path = home / str(n_cols)
    if not path.exists():
        fitted(n_cols).save(path, **options)
    return path


def few(home: Path) -> Path:
    """The model where answers are counted, not timed."""
    return saved(home, FEW, cells=True)


@contextmanager
def served(model: Path, *options: str) -> Iterator[tuple[str, int]]:
    """A server on a free port; its address and process."""
    command = [sys.executable, "-m", "unseen.cli", "--json", "serve", str(model), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        text = ""
        while not text.endswith("\n}\n"):
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("the server ended")
            text += line
        address = urlsplit(json.loads(text)["address"])
        yield f"{address.hostname}:{address.port}", process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def get(place: str, path: str) -> str:
    """What an address answers."""
    connection = http.client.HTTPConnection(place, timeout=60)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def new_rows(n_cols: int, count: int, seed: int) -> list[bytes]:
    """Requests for lists of rows that are folded in."""
    rng = np.random.default_rng(seed)
    return [
        json.dumps({"cells": [{"col": int(col), "value": 1.0} for col in columns], "k": K}).encode()
        for columns in (rng.choice(n_cols, CELLS, replace=False, shuffle=False) for _ in range(count))
    ]


def processor_s(pid: int) -> float:
    """Processor time of a process."""
    parts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def asked(place: str, pid: int, n_cols: int, size: str) -> list[dict[str, Any]]:
    """Times of requests that fold a row in, from clients that wait for each answer."""
    closed_loop(place, new_rows(n_cols, 50, 0), 1, 1)
    found = []
    for n_clients in CLIENTS:
        count = REQUESTS[size] * (1 if n_clients == 1 else 2) * 200_000 // max(n_cols, 200_000)
        load, start = os.getloadavg()[0], processor_s(pid)
        row = closed_loop(place, new_rows(n_cols, count, n_clients), n_clients, 2)
        row |= {"processor_ms": (processor_s(pid) - start) / count * 1e3, "load_average": load}
        found.append({"n_cols": n_cols, **row})
        print(found[-1], flush=True)
    return found


def times(home: Path, size: str) -> list[dict[str, Any]]:
    """Exact lists, by the number of columns."""
    found = []
    for n_cols in COLUMNS[size]:
        with served(saved(home, n_cols)) as (place, pid):
            found += asked(place, pid, n_cols, size)
    return found


def retrieval(home: Path, size: str) -> list[dict[str, Any]]:
    """Lists from an index, where it finds enough of exact ones for rows without what they have."""
    found = []
    for name, model, n_cols in lists_of(home, size):
        start = time.monotonic()
        with served(model, "--approximate-above", "0") as (place, pid):
            ready = time.monotonic() - start
            told = json.loads(get(place, "/readyz"))["retrieval"]
            row = {"model": name, "n_cols": n_cols, "seconds_to_start": ready, **told}
            row["times"] = asked(place, pid, n_cols, size)
            found.append(row)
            print({key: row[key] for key in row if key != "times"}, flush=True)
    return found


def lists_of(home: Path, size: str) -> Iterator[tuple[str, Path, int]]:
    """Models whose columns are looked up: of real positives, and the one that is timed."""
    from benchmarks.updates import gowalla
    from unseen import BiasMC

    if size == "large":
        train, _ = gowalla()
        model = BiasMC(RANK, alpha=0.99, reg=1.0, cg_steps=3, random_state=0).fit(train)
        model.save(home / "gowalla", cells=True)
        yield "Gowalla", home / "gowalla", train.shape[1]
    for n_cols in COLUMNS[size]:
        yield "drawn", saved(home, n_cols), n_cols


def memory(home: Path, size: str) -> dict[str, Any]:
    """Memory of all processes after all workers have answered."""
    n_cols = COLUMNS[size][-1]
    model, out = saved(home, n_cols), []
    for workers in WORKERS:
        with served(model, "--workers", str(workers), "--n-jobs", "1") as (place, pid):
            seen: set[str] = set()
            stop = time.monotonic() + 120
            while len(seen) < workers and time.monotonic() < stop:
                connection = http.client.HTTPConnection(place, timeout=60)
                body = json.dumps({"cells": [{"col": 1, "value": 1.0}]})
                connection.request("POST", "/v1/recommend", body, {"Content-Type": "application/json"})
                connection.getresponse().read()
                connection.request("GET", "/metrics")
                seen.add(connection.getresponse().read().decode().split('worker="')[1].split('"')[0])
                connection.close()
            out.append({"workers": len(seen), "pss_mib": proportional_bytes(pid) / 2**20})
    return {"n_cols": n_cols, "processes": out}


def proportional_bytes(pid: int) -> int:
    """Memory of a process and its children, shared pages divided by those who share them."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return own + sum(proportional_bytes(int(child)) for child in children)


@contextmanager
def meanwhile(action: Any, seconds: float) -> Iterator[None]:
    """Do something again and again, in a thread."""
    stop = threading.Event()

    def again() -> None:
        while not stop.wait(seconds):
            action()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def reloads(home: Path, size: str) -> dict[str, Any]:
    """Requests that fail while the model is loaded again and again."""
    with served(few(home)) as (place, pid):
        with meanwhile(lambda: os.kill(pid, signal.SIGHUP), 0.5):
            found = closed_loop(place, new_rows(FEW, RELOAD_REQUESTS[size], 7), 8, 0)
        generation = json.loads(get(place, "/readyz"))["generation"]
    return {name: found[name] for name in ("requests", "failed")} | {"reloads": generation - 1}


def deaths(home: Path, size: str) -> dict[str, Any]:
    """Workers are killed one by one while clients ask; whoever a dead one was answering asks anew."""
    answered = lost = 0
    with served(few(home), "--workers", "4") as (place, pid):
        children = Path(f"/proc/{pid}/task/{pid}/children")
        killed: list[int] = []

        def kill() -> None:
            victim = int(children.read_text().split()[0])
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

        def note(number: int, answer: bytes) -> None:
            nonlocal answered, lost
            if answer.startswith(b"HTTP/1.1 200"):
                answered += 1
            else:
                lost += 1

        def bodies() -> Iterator[bytes]:
            while len(killed) < DEATHS[size]:
                yield from new_rows(FEW, 100, 8)

        with meanwhile(kill, 1.5):
            ask_all(place, bodies(), 8, note)
        time.sleep(3)
        workers = len(children.read_text().split())
        found = closed_loop(place, new_rows(FEW, 500, 9), 8, 0)
    return {
        "killed": len(killed), "answered": answered, "lost_with_a_worker": lost, "workers_after": workers,
        "failed_after": found["failed"],
    }  # fmt: skip


def left_out(home: Path, size: str) -> dict[str, Any]:
    """Lists of known rows: none may have a cell of its row, or what the request denies."""
    import unseen

    model = few(home)
    seen = unseen.load(model).seen_
    rng = np.random.default_rng(3)
    bodies = [
        {"rows": rng.integers(0, FEW, 1000).tolist(), "k": K, "deny": rng.integers(0, FEW, 200).tolist()}
        for _ in range(ANSWERS[size] // 1000)
    ]
    own = [set(seen.rows(np.array([row]))[1].tolist()) for row in range(FEW)]
    wrong = short = count = 0

    def check(number: int, answer: bytes) -> None:
        nonlocal wrong, short, count
        denied = set(bodies[number]["deny"])
        for one in json.loads(answer.partition(b"\r\n\r\n")[2])["lists"]:
            listed = {item["id"] for item in one["items"]}
            wrong += bool(listed & (own[one["of"]] | denied))
            short += len(listed) != K
            count += 1

    with served(model) as (place, _):
        ask_all(place, (json.dumps(body).encode() for body in bodies), 2, check)
    return {"answers": count, "with_an_excluded_id": wrong, "of_another_length": short}


def hostile(home: Path, size: str) -> dict[str, Any]:
    """What became of requests that no client should send."""
    import httpx

    token = home / "token"
    token.write_text("a token of the benchmark")
    head = {"Authorization": "Bearer a token of the benchmark"}
    with (
        served(few(home), "--token-file", str(token)) as (place, _),
        httpx.Client(base_url=f"http://{place}", timeout=60, headers=head) as client,
    ):
        statuses = send_hostile(client, 2, HOSTILE[size], range(FEW), range(FEW))
    return {str(status): count for status, count in sorted(statuses.items())}


def cornac(home: Path, size: str) -> list[dict[str, Any]]:
    """Lists of known users without what they have, beside those of Cornac's Flask application.

    Both factorise the same cells with one sweep; only times are compared. Cornac folds no row in.
    """
    n_cols, rng = COLUMNS[size][0], np.random.default_rng(5)
    place = f"127.0.0.1:{free_port()}"
    model = fitted(n_cols)
    model.save(home / "known", cells=True)
    cells = model._training_data().cells
    np.savez(home / "cells.npz", rows=cells.rows, cols=cells.indices, values=cells.values)
    found = []
    rows = rng.integers(0, cells.shape[0], REQUESTS["small"]).tolist()
    with served(home / "known") as (own, _):
        for n_clients in CLIENTS:
            bodies = [json.dumps({"rows": [row], "k": K}).encode() for row in rows]
            found.append({"library": "unseen", "n_cols": n_cols, **closed_loop(own, bodies, n_clients, 2)})
    command = [python_of("cornac"), str(CHILD), str(home), place.split(":")[1], str(RANK)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        while "ready" not in process.stdout.readline():
            if process.poll() is not None:
                raise RuntimeError("Cornac's server ended")
        for n_clients in CLIENTS:
            wanted = [f"/recommend?uid={row}&k={K}&remove_seen=true".encode() for row in rows]
            found.append({"library": "Cornac", "n_cols": n_cols, **closed_loop(place, wanted, n_clients, 2)})
    finally:
        process.terminate()
        process.wait(60)
    return found


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


PARTS = (times, retrieval, cornac, memory, reloads, deaths, left_out, hostile)


def main(size: str = "large", *only: str) -> None:
    """Run all of it, or some parts; only the large run is stored."""
    results: dict[str, Any] = {}
    if size == "large" and (STORED / "serving.json").exists():
        results = {name: part for name, part in stored("serving").items() if name != "environment"}
    results |= {"rank": RANK, "k": K, "cells_of_a_row": CELLS}
    with tempfile.TemporaryDirectory() as home:
        for part in PARTS:
            if only and part.__name__ not in only:
                continue
            results[part.__name__] = part(Path(home), size)
            print(part.__name__, results[part.__name__], flush=True)
            print(keep("serving", results, size))


def tables() -> dict[str, str]:
    """What the guide shows."""
    from benchmarks._serving_tables import of_times, under_load

    return {
        "serving-times": if_measured("serving", of_times),
        "serving-under-load": if_measured("serving", under_load),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
