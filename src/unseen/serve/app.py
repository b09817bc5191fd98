"""The application: addresses, and what each of them answers."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from unseen.data.ids import Side
from unseen.serve.answers import Served, Wanted
from unseen.serve.approximate import Approximate
from unseen.serve.batching import Batcher
from unseen.serve.guard import JSON, Guard, error_answer
from unseen.serve.holder import Holder
from unseen.serve.limits import Limits, RequestError
from unseen.serve.metrics import Metrics
from unseen.serve.openapi import openapi
from unseen.serve.schema import REQUESTS, parse_json, read
from unseen.serve.values import check_values

__all__ = ["create_app"]

PAGE = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js", "/map.js": "map.js"}
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
MOST_ON_MAP = 5000
MOST_FOUND = 20
MOST_SEEN = 200

Parts = dict[str, Any]
Answer = dict[str, Any]


class _Service:
    """What the addresses share."""

    def __init__(
        self,
        holder: Holder,
        limits: Limits,
        metrics: Metrics,
        update: Callable[[Parts], Answer] | None,
    ) -> None:
        self.holder, self.limits, self.metrics, self.update = holder, limits, metrics, update
        self.batcher: Batcher[Wanted, tuple[Any, Any]] = Batcher(
            self._lists, most=limits.rows, waiting=limits.waiting
        )
        self.updating = asyncio.Lock()

    def _lists(self, wanted: list[Wanted]) -> Sequence[tuple[Any, Any] | Exception]:
        # The model may have been exchanged while they waited: each is answered by the one it was read for.
        self.metrics.batch(len(wanted))
        answers: dict[int, tuple[Any, Any] | Exception] = {}
        for model in {id(one.model): one.model for one in wanted}.values():
            group = [one for one in wanted if one.model is model]
            answers |= {id(one): answer for one, answer in zip(group, model.lists(group), strict=True)}
        return [answers[id(one)] for one in wanted]

    # -- lists -----------------------------------------------------------------------

    async def recommend(self, parts: Parts) -> Answer:
        model = self.holder.current
        wanted = self._wanted(model, parts)
        if parts["std"] and wanted.rows is None:
            raise RequestError("std is known for known rows alone", "std")
        ids, scores = await self.batcher.ask(wanted)
        std = None
        if parts["std"]:
            std = await asyncio.to_thread(_spread_of_lists, model, wanted.rows, ids)
        names = [None] if wanted.rows is None else [model.ids["row"][int(row)] for row in wanted.rows]
        return {"lists": _lists(model, "col", names, ids, scores, std)}

    def _wanted(self, model: Served, parts: Parts) -> Wanted:
        rows, cells, features = parts["rows"], parts["cells"], parts["row_features"]
        if (rows is None) is (cells is None and features is None):
            raise RequestError("either rows or (cells, row_features or both) are needed", "rows")
        columns = model.ids["col"]
        wanted = Wanted(model, parts["k"] or 10)
        if rows is not None:
            wanted.rows = model.ids["row"].index(rows, "rows")
        if cells is not None:
            positions = columns.index([cell["col"] for cell in cells], "cells")
            if len(np.unique(positions)) < len(positions):
                raise RequestError("cells has a column more than once", "cells")
            check_values(model.model, cells)
            if features is None and model.features["row"].names:
                raise RequestError(
                    "the model was fitted with row_features: a new row needs them beside its cells",
                    "row_features",
                )
            wanted.cells = positions, np.array([cell["value"] for cell in cells])
        if features is not None:
            wanted.features = model.features["row"].line(features)
        if parts["candidates"] is not None:
            wanted.candidates = np.unique(columns.index(parts["candidates"], "candidates"))
        if parts["deny"] is not None:
            wanted.deny = np.unique(columns.index(parts["deny"], "deny"))
        return wanted

    async def similar(self, parts: Parts) -> Answer:
        model = self.holder.current
        if (parts["rows"] is None) is (parts["cols"] is None):
            raise RequestError("either rows or cols are needed", "rows")
        side: Side = "row" if parts["cols"] is None else "col"
        picked = model.ids[side].index(parts[f"{side}s"], f"{side}s")
        ids, scores = await asyncio.to_thread(model.similar, side, picked, parts["k"] or 10)
        names = [model.ids[side][int(place)] for place in picked]
        return {"lists": _lists(model, side, names, ids, scores, None)}

    # -- single cells ----------------------------------------------------------------

    async def predict(self, parts: Parts) -> Answer:
        model = self.holder.current
        if len(parts["rows"]) != len(parts["cols"]):
            raise RequestError(
                f"rows and cols must be of one length, got {len(parts['rows'])} and {len(parts['cols'])}",
                "cols",
            )
        rows = model.ids["row"].index(parts["rows"], "rows")
        cols = model.ids["col"].index(parts["cols"], "cols")
        answer: Answer = {"predictions": (await asyncio.to_thread(model.predict, rows, cols)).tolist()}
        if parts["std"]:
            answer["std"] = (await asyncio.to_thread(model.spread, rows, cols)).tolist()
        return answer

    async def explain(self, parts: Parts) -> Answer:
        model = self.holder.current
        row = int(model.ids["row"].index([parts["row"]], "row")[0])
        col = int(model.ids["col"].index([parts["col"]], "col")[0])
        found = await asyncio.to_thread(model.explain, row, col)
        return {"row": model.ids["row"][row], "col": model.ids["col"][col], **found}

    # -- what the page asks beside ---------------------------------------------------

    async def about(self, request: Request) -> Answer:
        return self.holder.current.about() | {
            "generation": self.holder.generation,
            "updates": self.update is not None,
        }

    async def search(self, request: Request) -> Answer:
        model = self.holder.current
        words, side = request.query_params.get("q", ""), request.query_params.get("side", "col")
        if side not in ("row", "col"):
            raise RequestError("side must be row or col", "side")
        if len(words) > 200:
            raise RequestError("q has more than 200 characters", "q")
        names = model.ids["row"] if side == "row" else model.ids["col"]
        return {"found": await asyncio.to_thread(names.search, words, MOST_FOUND)}

    async def map(self, request: Request) -> Answer:
        model = self.holder.current
        columns = await asyncio.to_thread(model.columns_of_map, MOST_ON_MAP)
        places = await asyncio.to_thread(lambda: model.places[columns])
        points = [
            model.ids["col"].entry(int(column)) | {"x": float(x), "y": float(y)}
            for column, (x, y) in zip(columns, places, strict=True)
        ]
        degrees = model.degrees.get("col")
        if degrees is not None:
            points = [
                point | {"n": count} for point, count in zip(points, degrees[columns].tolist(), strict=True)
            ]
        return {"points": points, "n_cols": model.shape[1]}

    async def seen(self, request: Request) -> Answer:
        model = self.holder.current
        row = int(model.ids["row"].index([request.query_params.get("row", "")], "row")[0])
        cells = await asyncio.to_thread(model.known, row)
        return {"known": model.seen is not None, "cells": cells[:MOST_SEEN]}

    # -- changes ---------------------------------------------------------------------

    async def apply_update(self, parts: Parts) -> Answer:
        if self.update is None:
            raise RequestError("updates are off: the server was started without a token file", status=403)
        if not parts["cells"] and not parts["remove"]:
            raise RequestError("cells or remove is needed", "cells")
        async with self.updating:
            told = await asyncio.to_thread(self.update, parts)
            self.metrics.updates += 1
            await self.holder.reload()
        return {"generation": self.holder.generation, "shape": list(self.holder.current.shape), **told}

    async def apply_reload(self, parts: Parts) -> Answer:
        try:
            await self.holder.reload()
        except Exception as error:
            # What went wrong names files of this machine: that is for the log.
            raise RequestError(
                "the directory holds no model that can be loaded; the one before stays", status=409
            ) from error
        return {"generation": self.holder.generation}


def _spread_of_lists(model: Served, rows: Any, ids: Any) -> Any:
    listed = ids >= 0
    std = np.full(ids.shape, np.nan)
    std[listed] = model.spread(np.repeat(rows, listed.sum(axis=1)), ids[listed])
    return std


def _lists(
    model: Served, side: Side, names: Sequence[Any], ids: Any, scores: Any, std: Any
) -> list[dict[str, Any]]:
    out = []
    for place, name in enumerate(names):
        items = []
        for at, (position, score) in enumerate(zip(ids[place].tolist(), scores[place].tolist(), strict=True)):
            if position < 0:
                continue
            item = model.ids[side].entry(position) | {"score": score}
            if std is not None:
                item["std"] = float(std[place, at])
            items.append(item)
        out.append({"of": name, "items": items})
    return out


# -- the application ------------------------------------------------------------------


def create_app(
    model: Any = None,
    *,
    load: Callable[[], Served] | None = None,
    directory: Path | None = None,
    cells: Any = None,
    names: dict[str, dict[Any, str]] | None = None,
    approximate_above: int | None = None,
    limits: Limits | None = None,
    token: str | None = None,
    update: Callable[[Parts], Answer] | None = None,
    hosts: Sequence[str] | None = None,
) -> Any:
    """An ASGI application that answers for a model.

    Parameters
    ----------
    model : completer
        Fitted; or give ``load``.
    load : callable, optional
        Reads the model, at the start and at each reload.
    directory : Path, optional
        Directory whose changes lead to a reload.
    cells : Observations, optional
        Training cells of ``model``: left out of lists.
    names : dict of dict, optional
        By side ("row", "col"): what people call an id.
    approximate_above : int, optional
        Look lists of ``model`` up in an index where it has more columns; its recall is told by ``/readyz``.
    limits : Limits, optional
        What one request may ask for.
    token : str, optional
        What ``Authorization: Bearer`` must say for updates and reloads; without it both are off.
    update : callable, optional
        Writes new cells into the model's directory, and says what is worth knowing.
    hosts : sequence of str, optional
        Names under which the server may be spoken to; any by default.

    Returns
    -------
    ASGI application

    Examples
    --------
    >>> import numpy as np
    >>> from starlette.testclient import TestClient
    >>> from unseen import MatrixFactorization
    >>> from unseen.serve import create_app
    >>> X = np.outer(np.arange(1.0, 5), np.arange(1.0, 4))
    >>> X[3, 1:] = np.nan
    >>> model = MatrixFactorization(1, reg=0.1, center="none", random_state=0).fit(X)
    >>> with TestClient(create_app(model)) as client:
    ...     answer = client.post("/v1/recommend", json={"rows": [3], "k": 2}).json()
    >>> [item["id"] for item in answer["lists"][0]["items"]]
    [2, 1]
    """
    limits = limits or Limits()
    metrics = Metrics()
    approximate = None if approximate_above is None else Approximate(approximate_above)
    holder = Holder(load or partial(Served, model, cells, names, approximate), directory, metrics)
    service = _Service(holder, limits, metrics, update if token else None)
    document = openapi(limits)
    posts: dict[str, Callable[[Parts], Awaitable[Answer]]] = {
        "/v1/predict": service.predict,
        "/v1/recommend": service.recommend,
        "/v1/similar": service.similar,
        "/v1/explain": service.explain,
        "/v1/update": service.apply_update,
        "/v1/reload": service.apply_reload,
    }
    gets: dict[str, Callable[[Request], Awaitable[Answer]]] = {
        "/v1/model": service.about,
        "/v1/search": service.search,
        "/v1/map": service.map,
        "/v1/seen": service.seen,
    }
    guarded = {"/v1/update", "/v1/reload"}

    def post(path: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if path in guarded:
                _check_token(request, token)
            body = await _body(request, limits)
            parts = read(REQUESTS[path], parse_json(body or b"{}" if path == "/v1/reload" else body), limits)
            if path in guarded:  # takes the time that it takes
                return JSON(await posts[path](parts))
            return JSON(await _in_time(posts[path](parts), limits))

        return endpoint

    def get(path: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return JSON(await _in_time(gets[path](request), limits))

        return endpoint

    def static(name: str) -> Callable[[Request], Awaitable[Response]]:
        content = (files("unseen.serve") / "page" / name).read_bytes()
        media = MEDIA[Path(name).suffix]

        async def endpoint(request: Request) -> Response:
            return Response(content, media_type=media)

        return endpoint

    async def described(request: Request) -> Response:
        return JSON(document)

    async def healthy(request: Request) -> Response:
        return JSON({"status": "ok"})

    async def ready(request: Request) -> Response:
        told = {"status": "ready", "generation": holder.generation}
        return JSON({**told, "retrieval": holder.current.retrieval()})

    async def measured(request: Request) -> Response:
        return PlainTextResponse(metrics.text(holder.generation, holder.current.shape, holder.current.recall))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        watcher = asyncio.create_task(holder.watch())
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError, AttributeError):
            # Not on Windows, and not where the loop runs in another thread than the main one.
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(holder.try_reload()))
        yield
        watcher.cancel()
        service.batcher.close()

    routes = [Route(path, post(path), methods=["POST"]) for path in posts]
    routes += [Route(path, get(path)) for path in gets]
    routes += [Route(path, static(name)) for path, name in PAGE.items()]
    routes += [
        Route(path, endpoint)
        for path, endpoint in (
            ("/openapi.json", described),
            ("/healthz", healthy),
            ("/readyz", ready),
            ("/metrics", measured),
        )
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=_handlers())
    known = {*posts, *gets, *PAGE, "/openapi.json", "/healthz", "/readyz", "/metrics"}
    return Guard(app, metrics, known, hosts)


async def _in_time(answer: Awaitable[Answer], limits: Limits) -> Answer:
    try:
        return await asyncio.wait_for(answer, limits.seconds)
    except TimeoutError as error:
        raise RequestError(f"no answer within {limits.seconds:g} s", status=503) from error


async def _body(request: Request, limits: Limits) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError("the content type must be application/json", status=415)
    too_large = RequestError(f"the body is larger than {limits.body_bytes} bytes", status=413)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and len(length) < 19 and int(length) > limits.body_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > limits.body_bytes:
                    raise too_large
    except TimeoutError as error:
        raise RequestError(f"the body did not arrive within {limits.seconds:g} s", status=408) from error
    return bytes(body)


def _check_token(request: Request, token: str | None) -> None:
    if token is None:
        raise RequestError("off: the server was started without a token file", status=403)
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise RequestError("a valid token is needed: Authorization: Bearer ...", "Authorization", 401)


def _handlers() -> dict[Any, Any]:
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)
        return error_answer(error.message, error.field, error.status)

    async def of_library(request: Request, error: Exception) -> Response:
        return error_answer(str(error), None, 422)

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return error_answer(str(error.detail), None, error.status_code, error.headers)

    async def gone(request: Request, error: Exception) -> Response:
        return error_answer("the client went away", None, 400)

    async def broken(request: Request, error: Exception) -> Response:
        return error_answer("internal error", None, 500)

    from unseen import exceptions

    library = (
        exceptions.InvalidDataError,
        exceptions.NotInductiveError,
        exceptions.ParameterError,
        exceptions.UnsupportedComposition,
    )
    return {
        RequestError: refused,
        HTTPException: of_http,
        ClientDisconnect: gone,
        Exception: broken,
        **dict.fromkeys(library, of_library),
    }
