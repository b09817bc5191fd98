"""What holds for all answers: headers, names of the host, errors, counts."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unseen.serve.metrics import Metrics

__all__ = ["JSON", "Guard", "error_answer"]

HEADERS = {
    # Ids are shown as text and scripts come from this server alone: nothing in an id can run.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
log = logging.getLogger("unseen.serve")


class JSON(Response):
    """An answer in JSON; ASCII, so that lone surrogates of an id survive."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write it; NaN would be an error of ours."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def error_answer(
    message: str, field: str | None, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """An error, as all addresses give it."""
    return JSON({"error": {"message": message, "field": field}}, status, headers)


class Guard:
    """Wraps an application.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
        Counts the answers.
    paths : collection of str
        Addresses that are counted by name; all others together.
    hosts : sequence of str or None
        Names of the host that are accepted. A page of a stranger can give a name of its own to this machine's
        address, and would then be of the same origin.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, paths: Collection[str], hosts: Sequence[str] | None
    ) -> None:
        self._app, self._metrics, self._paths = app, metrics, paths
        self._hosts = None if hosts is None else {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 0

        async def with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *ENCODED]
            await send(message)

        self._metrics.in_progress += 1
        try:
            if self._is_of_stranger(scope):
                answer = error_answer("this name of the host is not accepted", "Host", 421)
                await answer(scope, receive, with_headers)
            else:
                await self._app(scope, receive, with_headers)
        except Exception:
            log.exception("a request failed")
            if not status:
                await error_answer("internal error", None, 500)(scope, receive, with_headers)
        finally:
            self._metrics.in_progress -= 1
        path = scope["path"] if scope["path"] in self._paths else "other"
        self._metrics.request(path, status, time.perf_counter() - start)

    def _is_of_stranger(self, scope: Scope) -> bool:
        if self._hosts is None:
            return False
        host = Headers(scope=scope).get("host", "").lower()
        name = host[: host.rindex("]") + 1] if "]" in host else host.partition(":")[0]
        return name not in self._hosts
