"""``unseen serve`` on this machine: times of requests, memory of workers, reloads under load."""

from __future__ import annotations

import http.client
import json
import os
import signal
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

from benchmarks._store import keep

RANK, K, CELLS = 64, 10, 10
COLUMNS = {"small": 20_000, "medium": 200_000, "large": 200_000}
REQUESTS = {"small": 200, "medium": 400, "large": 1000}
RELOAD_REQUESTS = {"small": 500, "medium": 2000, "large": 10_000}
CLIENTS = (1, 32)
WORKERS = (1, 4)


def fitted(n_cols: int) -> Any:
    """A model of this many columns; what its factors say does not matter here."""
    from unseen import MatrixFactorization, Observations

    rng = np.random.default_rng(0)
    n_rows, per_row = 2000, n_cols // 500
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


def ask(connection: http.client.HTTPConnection, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    """One request."""
    sent = {"Content-Type": "application/json", **headers}
    connection.request("POST", path, json.dumps(body), sent)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def closed_loop(place: str, n_cols: int, n_clients: int, n_requests: int, seed: int) -> dict[str, Any]:
    """Times of requests that fold a row in, from clients that wait for each answer."""
    times: list[float] = []
    failed: list[Any] = []

    def client(number: int) -> None:
        rng = np.random.default_rng([seed, number])
        connection = http.client.HTTPConnection(place, timeout=60)
        for turn in range(n_requests // n_clients + 2):
            columns = rng.choice(n_cols, CELLS, replace=False).tolist()
            body = {"cells": [{"col": col, "value": 1.0} for col in columns], "k": K}
            start = time.perf_counter()
            status, answer = ask(connection, "/v1/recommend", body)
            if turn >= 2:
                times.append(time.perf_counter() - start)
            listed = {item["id"] for item in answer["lists"][0]["items"]} if status == 200 else set()
            if status != 200 or listed & set(columns):
                failed.append(answer)
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(n_clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1e3
    return {
        "clients": n_clients,
        "requests": len(times),
        "p50_ms": p50,
        "p99_ms": p99,
        "a_second": len(times) / took,
        "failed": len(failed),
    }


def proportional_bytes(pid: int) -> int:
    """Memory of a process and its children, shared pages divided by those who share them."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return own + sum(proportional_bytes(int(child)) for child in children)


def memory(model: Path, n_cols: int) -> list[dict[str, Any]]:
    """Memory of all processes after all workers have answered."""
    out = []
    for workers in WORKERS:
        with served(model, "--workers", str(workers), "--n-jobs", "1") as (place, pid):
            seen: set[str] = set()
            stop = time.monotonic() + 120
            while len(seen) < workers and time.monotonic() < stop:
                connection = http.client.HTTPConnection(place, timeout=60)
                ask(connection, "/v1/recommend", {"cells": [{"col": 1, "value": 1.0}]})
                connection.request("GET", "/metrics")
                seen.add(connection.getresponse().read().decode().split('worker="')[1].split('"')[0])
                connection.close()
            out.append({"workers": len(seen), "pss_mib": proportional_bytes(pid) / 2**20})
    return out


def reloads(model: Path, n_cols: int, n_requests: int) -> dict[str, Any]:
    """Requests that fail while the model is loaded again and again."""
    stop = threading.Event()
    with served(model) as (place, pid):

        def reload() -> None:
            while not stop.is_set():
                os.kill(pid, signal.SIGHUP)
                time.sleep(0.5)

        thread = threading.Thread(target=reload)
        thread.start()
        found = closed_loop(place, n_cols, 8, n_requests, 7)
        stop.set()
        thread.join()
        connection = http.client.HTTPConnection(place, timeout=60)
        connection.request("GET", "/readyz")
        generation = json.loads(connection.getresponse().read())["generation"]
    return {"requests": found["requests"], "failed": found["failed"], "reloads": generation - 1}


def main(size: str = "large") -> None:
    """Run all of it; only the large run is stored."""
    n_cols = COLUMNS[size]
    results: dict[str, Any] = {"n_cols": n_cols, "rank": RANK, "k": K, "cells_of_a_row": CELLS}
    with tempfile.TemporaryDirectory() as home:
        model = Path(home) / "model"
        fitted(n_cols).save(model)
        with served(model) as (place, _):
            results["load_average"] = os.getloadavg()[0]
            results["times"] = [
                closed_loop(place, n_cols, n_clients, REQUESTS[size], n_clients) for n_clients in CLIENTS
            ]
        results["reloads"] = reloads(model, n_cols, RELOAD_REQUESTS[size])
        results["memory"] = memory(model, n_cols)
    print(json.dumps(results, indent=1))
    print(keep("serving", results, size))


if __name__ == "__main__":
    main(*sys.argv[1:])
