"""The command with real sockets and processes, on this machine alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from scipy import sparse
from serve_models import COLS, ROWS, Small
from starlette.testclient import TestClient

from unseen import MatrixFactorization, io
from unseen.cli.main import main
from unseen.cli.serve import read_names, training_cells
from unseen.serve import Limits
from unseen.serve.answers import Served, Wanted
from unseen.serve.app import _Service
from unseen.serve.metrics import Metrics
from unseen.serve.run import Settings, build_app

TOKEN = "correct horse battery staple"


@contextmanager
def served(model: Path, *options: object) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    """A server in a process of its own, on a free port."""
    command = [
        sys.executable,
        "-m",
        "unseen.cli",
        "serve",
        str(model),
        "--port",
        "0",
        "--n-jobs",
        "1",
        "--json",
    ]
    process = subprocess.Popen(
        [*command, "--n-jobs", "1", *map(str, options)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        text = ""
        while not text.endswith("\n}\n"):
            line = process.stdout.readline()
            assert line, f"the server ended: {text}"
            text += line
        with httpx.Client(base_url=json.loads(text)["address"], timeout=60) as client:
            yield client, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def directory(small: Small, tmp_path: Path) -> Path:
    small.model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


def other_model(small: Small) -> Any:
    return MatrixFactorization(3, reg=1.0, random_state=1, max_iter=3, n_jobs=1).fit(small.cells)


def hammer(client: httpx.Client, stop: threading.Event, failed: list[Any], count: list[int]) -> None:
    """Ask again and again until told to stop; every list must be whole and free of denied columns."""
    with httpx.Client(base_url=client.base_url, timeout=60) as own:
        while not stop.is_set():
            try:
                answer = own.post("/v1/recommend", json={"rows": ROWS[:2], "k": 3, "deny": [40, 100]})
                lists = answer.json()["lists"]
                good = all(len(one["items"]) == 3 for one in lists)
                if not good or any(item["id"] in (40, 100) for one in lists for item in one["items"]):
                    failed.append(answer.text)
                count[0] += 1
            except Exception as error:
                failed.append(repr(error))


def test_a_model_is_exchanged_while_it_is_served(small: Small, directory: Path) -> None:
    settings = Settings(directory)
    other = other_model(small)
    body = {"rows": [ROWS[0]], "cols": [0]}
    with TestClient(build_app(settings), base_url="http://localhost") as client:
        assert client.post("/v1/reload", json={}).status_code == 403
        other.save(directory)
        expected = other.predict_entries([ROWS[0]], [0])
        wait_for(lambda: np.allclose(client.post("/v1/predict", json=body).json()["predictions"], expected))
        assert client.get("/readyz").json()["generation"] == 2


def test_updates_by_request(small: Small, directory: Path, token_file: Path) -> None:
    small.model.save(directory, cells=True)
    head = {"Authorization": f"Bearer {TOKEN}"}
    known = {"row": ROWS[4], "col": COLS[2]}
    with TestClient(
        build_app(Settings(directory, token_file=token_file)), base_url="http://localhost"
    ) as client:

        def update(body: Any, **more: Any) -> Any:
            return client.post("/v1/update", json=body, headers=head, **more)

        def seen(row: str) -> dict[Any, float]:
            cells = client.get("/v1/seen", params={"row": row}).json()["cells"]
            return {cell["id"]: cell["value"] for cell in cells}

        assert client.post("/v1/update", json={}, headers={"Authorization": "Bearer x"}).status_code == 401
        new = [{**known, "value": 4.5}, {"row": "somebody new", "col": 5, "value": 2.0}]
        answer = update({"cells": new})
        assert answer.status_code == 200, answer.text
        assert answer.json()["shape"] == [len(ROWS) + 1, len(COLS) + 1]
        assert answer.json()["drift"] >= 0
        assert seen(ROWS[4])[COLS[2]] == 4.5
        assert seen("somebody new") == {5: 2.0}
        listed = client.post("/v1/recommend", json={"rows": ["somebody new"], "k": 3}).json()["lists"][0]
        assert 5 not in {item["id"] for item in listed["items"]}
        assert update({"remove": [known]}).status_code == 200
        assert COLS[2] not in seen(ROWS[4])
        before = client.get("/readyz").json()
        for wrong, field in (
            ({}, "cells"),
            ({"cells": new[:1] * 2}, "cells"),
            ({"cells": [{**known, "col": "x", "value": 1}]}, "cells[0].col"),
            ({"remove": [{"row": "nobody", "col": COLS[0]}]}, "remove"),
            ({"remove": [known]}, "remove"),  # it has gone already
        ):
            refused = update(wrong)
            assert 400 <= refused.status_code < 500, refused.text
            assert refused.json()["error"]["field"] == field
            assert str(directory) not in refused.text
        assert client.get("/readyz").json() == before
    again = io.load(directory)
    assert again.row_factors_.shape[0] == len(ROWS) + 1


def test_a_request_keeps_the_model_that_it_began_with(small: Small) -> None:
    first, second = Served(small.model, small.cells), Served(other_model(small))
    service = _Service(None, Limits(), Metrics(), None)  # type: ignore[arg-type]
    wanted = [Wanted(model, 3, rows=np.array([1])) for model in (first, second, first)]
    for one, (ids, _) in zip(wanted, service._lists(wanted), strict=True):
        np.testing.assert_array_equal(ids, one.model.lists([one])[0][0])


@pytest.mark.slow
def test_reloads_lose_no_request(small: Small, directory: Path, token_file: Path) -> None:
    stop, failed, count = threading.Event(), list[Any](), [0]
    with served(directory, "--token-file", token_file) as (client, process):
        threads = [threading.Thread(target=hammer, args=(client, stop, failed, count)) for _ in range(4)]
        for thread in threads:
            thread.start()
        head = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post("/v1/reload").status_code in (401, 415)
        for _ in range(3):
            answer = client.post("/v1/reload", json={}, headers=head)
            assert answer.status_code == 200
        process.send_signal(signal.SIGHUP)
        generation = answer.json()["generation"]
        wait_for(lambda: client.get("/readyz").json()["generation"] > generation)
        # A changed directory is noticed without being told.
        other_model(small).save(directory)
        expected = other_model(small).predict_entries([ROWS[0]], [0])
        body = {"rows": [ROWS[0]], "cols": [0]}
        wait_for(lambda: np.allclose(client.post("/v1/predict", json=body).json()["predictions"], expected))
        (directory / "manifest.json").write_text("{")
        refused = client.post("/v1/reload", json={}, headers=head)
        assert refused.status_code == 409
        assert str(directory) not in refused.text
        assert np.allclose(client.post("/v1/predict", json=body).json()["predictions"], expected)
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed, failed[:3]
    assert count[0] > 20


def wait_for(condition: Any) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen")


@pytest.mark.slow
def test_what_is_under_way_is_answered_before_the_end(directory: Path) -> None:
    with served(directory) as (client, process):
        answers: list[int] = []

        def metrics() -> str:
            return httpx.get(client.base_url.join("/metrics"), timeout=60).text

        def pieces() -> Iterator[bytes]:
            yield b'{"rows": ["user 1"]'
            wait_for(lambda: in_progress(metrics()) >= 2)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            yield b"}"

        head = {"content-type": "application/json"}
        answers.append(client.post("/v1/recommend", content=pieces(), headers=head).status_code)
        assert process.wait(60) == 0
    assert answers == [200]


def in_progress(text: str) -> int:
    return int(text.split("\nunseen_requests_in_progress{")[1].split("} ")[1].split()[0])


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(directory: Path) -> None:
    with served(directory, "--workers", 2) as (client, process):
        body = {"rows": [ROWS[0]]}
        wait_for(lambda: _status(client, body) == 200)
        pid = int(client.get("/metrics").text.split('worker="')[1].split('"')[0])
        assert pid != process.pid
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: _status(client, body) == 200)

        def workers() -> set[str]:
            found = set()
            for _ in range(20):
                text = httpx.get(client.base_url.join("/metrics"), timeout=60).text
                found.add(text.split('worker="')[1].split('"')[0])
            return found

        wait_for(lambda: len(workers() - {str(pid)}) == 2)


def _status(client: httpx.Client, body: Any) -> int:
    try:
        return client.post("/v1/recommend", json=body).status_code
    except httpx.HTTPError:
        return 0


def proportional_mib(pid: int) -> float:
    """Memory of a process and its children, shared pages divided by those who share them."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return own / 1024 + sum(proportional_mib(int(child)) for child in children)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc")
def test_workers_hold_the_model_and_the_libraries_once(tmp_path: Path) -> None:
    cells = sparse.random_array((50, 200_000), density=1e-3, rng=np.random.default_rng(0), format="csr")
    MatrixFactorization(32, reg=1.0, max_iter=1, tol=1.0, center="none", n_jobs=1).fit(cells).save(
        tmp_path / "model"
    )
    found = []
    for workers in (1, 3):
        with served(tmp_path / "model", "--workers", workers) as (client, process):
            seen: set[str] = set()

            def all_have_answered(client: httpx.Client, seen: set[str], workers: int) -> bool:
                with httpx.Client(base_url=client.base_url, timeout=60) as own:
                    own.post("/v1/recommend", json={"cells": [{"col": 1, "value": 1.0}]})
                    seen.add(own.get("/metrics").text.split('worker="')[1].split('"')[0])
                return len(seen) == workers

            wait_for(lambda: all_have_answered(client, seen, workers))  # noqa: B023
            found.append(proportional_mib(process.pid))
    assert found[1] < 1.8 * found[0]


def test_what_is_wrong_is_said_before_anything_is_open(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short").write_text("abc")
    for options, message in (
        ([tmp_path / "nothing"], "not a saved model"),
        ([directory, "--token-file", tmp_path / "short"], "16 or more"),
        ([directory, "--token-file", tmp_path / "none"], "cannot be read"),
    ):
        assert main(["serve", *map(str, options), "--port", "0"]) == 1
        assert message in capsys.readouterr().err


def test_the_command_reads_cells_and_names(directory: Path, small: Small, tmp_path: Path) -> None:
    small.cells.to_frame("pandas").to_csv(tmp_path / "cells.csv", index=False)
    (tmp_path / "names.csv").write_text("id,name\n40,Forty\n")
    how = dict.fromkeys(("row", "col", "value", "sep", "header")) | {"encoding": "utf-8"}
    model = io.load(directory)
    model.source_ = {"value": "stars"}
    cells = training_cells(tmp_path / "cells.csv", how, model)
    np.testing.assert_allclose(cells.csr.toarray(), small.cells.csr.toarray())
    served = Served(model, cells, {"col": read_names(tmp_path / "names.csv")})
    assert served.ids["col"].entry(small.col(40)) == {"id": 40, "name": "Forty"}
