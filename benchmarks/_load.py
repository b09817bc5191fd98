"""Clients that ask a server in a closed loop: one process with as little of its own as it can.

``python -m benchmarks._load PLACE CLIENTS FILE SKIP`` sends the requests of a file, a body in JSON a line,
each client the next one as soon as it has its answer, and prints times and what was wrong as JSON.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["ask_all", "closed_loop"]

Check = Callable[[dict[str, Any], dict[str, Any]], bool]


class _Client:
    """One connection, with the answer that is under way."""

    def __init__(self, place: str) -> None:
        host, port = place.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = -1
        self.start = 0.0
        self.read = b""
        self.size = -1

    def send(self, number: int, request: bytes) -> None:
        self.number, self.read, self.size = number, b"", -1
        self.start = time.perf_counter()
        self.socket.sendall(request)

    def answer(self) -> bytes | None:
        """Head and body once all of it is there; empty if the server has hung up."""
        piece = self.socket.recv(1 << 18)
        if not piece:
            return b""
        self.read += piece
        if self.size < 0 and (end := self.read.find(b"\r\n\r\n")) >= 0:
            self.size = end + 4 + int(self.read[:end].lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return self.read if 0 <= self.size <= len(self.read) else None


def ask_all(
    place: str, bodies: Iterable[bytes], n_clients: int, keep: Callable[[int, bytes], None]
) -> list[float]:
    """Seconds of each answer; ``keep`` gets the number of a body and its answer, empty where none came.

    What begins with a slash is an address that is asked for without a body. A connection that the server
    closes is made anew, which takes a part of the next request's time only from where it is sent.
    """
    head = f"POST /v1/recommend HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\n".encode()
    waiting = enumerate(bodies)
    times: list[float] = []
    with selectors.DefaultSelector() as selector:

        def next_of(client: _Client) -> bool:
            found = next(waiting, None)
            if found is None:
                return False
            number, body = found
            if body.startswith(b"/"):
                client.send(number, b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (body, place.encode()))
            else:
                client.send(number, head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            return True

        for _ in range(n_clients):
            client = _Client(place)
            if next_of(client):
                selector.register(client.socket, selectors.EVENT_READ, client)
        while selector.get_map():
            for key, _ in selector.select():
                client = key.data
                try:
                    answer = client.answer()
                except OSError:
                    answer = b""
                if answer is None:
                    continue
                times.append(time.perf_counter() - client.start)
                keep(client.number, answer)
                if not answer or b"\r\nconnection: close\r\n" in answer[:1000].lower():
                    selector.unregister(client.socket)
                    client.socket.close()
                    client = _Client(place)
                    selector.register(client.socket, selectors.EVENT_READ, client)
                if not next_of(client):
                    selector.unregister(client.socket)
                    client.socket.close()
    return times


def is_good(body: bytes, answer: bytes) -> bool:
    """Whether an answer has whole lists, best first, without a column that must not be in them."""
    head, _, content = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        return False
    if body.startswith(b"/"):
        return f"k={len(json.loads(content)['recommendations'])}&" in body.decode()
    asked, lists = json.loads(body), json.loads(content)["lists"]
    barred = {cell["col"] for cell in asked.get("cells", ())} | set(asked.get("deny", ()))
    for one in lists:
        scores = [item["score"] for item in one["items"]]
        if len(scores) != asked["k"] or scores != sorted(scores, reverse=True):
            return False
        if barred & {item["id"] for item in one["items"]}:
            return False
    return bool(lists)


def closed_loop(place: str, bodies: list[bytes], n_clients: int, skip: int) -> dict[str, Any]:
    """Run the clients in a process of their own; the first requests of each are not timed."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(b"\n".join(bodies))
        file.flush()
        command = [sys.executable, "-m", "benchmarks._load", place, str(n_clients), file.name, str(skip)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(place: str, n_clients: str, path: str, skip: str) -> None:
    bodies = Path(path).read_bytes().split(b"\n")
    answers: dict[int, bytes] = {}
    start = time.perf_counter()
    times = ask_all(place, bodies, int(n_clients), answers.__setitem__)
    took = time.perf_counter() - start
    failed = [number for number, answer in answers.items() if not is_good(bodies[number], answer)]
    p50, p99 = np.quantile(times[int(skip) * int(n_clients) :], [0.5, 0.99]) * 1e3
    print(
        json.dumps(
            {
                "clients": int(n_clients),
                "requests": len(times),
                "p50_ms": p50,
                "p99_ms": p99,
                "a_second": len(times) / took,
                "failed": len(failed),
                "first_failure": answers[failed[0]][:300].decode() if failed else None,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
