"""The description of all addresses, written from the table that requests are read by."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from unseen.serve.limits import Limits
from unseen.serve.schema import REQUESTS, SCHEMAS

__all__ = ["openapi"]

GETS = {
    "/v1/model": ("What is served.", {}),
    "/v1/search": ("Ids and names with some words in them.", {"q": "Words.", "side": "row or col."}),
    "/v1/map": ("Columns in the plane.", {}),
    "/v1/seen": ("Training cells of a row.", {"row": "Id of the row."}),
    "/healthz": ("Whether the process lives.", {}),
    "/readyz": ("Whether a model is loaded.", {}),
    "/metrics": ("Counters for Prometheus.", {}),
}
ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"message": {"type": "string"}, "field": {"type": ["string", "null"]}},
            "required": ["message", "field"],
        }
    },
    "required": ["error"],
}


def openapi(limits: Limits) -> dict[str, Any]:
    """The document, with the limits of this server."""
    failed = {"description": "Error.", "content": _json({"$ref": "#/components/schemas/Error"})}
    paths: dict[str, Any] = {}
    for path, request in REQUESTS.items():
        schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: {**SCHEMAS[field.kind], "description": field.what}
                for name, field in request.fields.items()
            },
            "required": [name for name, field in request.fields.items() if field.required],
        }
        answer = {"type": "object", "required": [request.gives]}
        operation: dict[str, Any] = {
            "summary": request.summary,
            "requestBody": {"required": path != "/v1/reload", "content": _json(schema)},
            "responses": {"200": {"description": "Answer.", "content": _json(answer)}, "4XX": failed},
        }
        if path in ("/v1/update", "/v1/reload"):
            operation["security"] = [{"token": []}]
        paths[path] = {"post": operation}
    for path, (summary, query) in GETS.items():
        paths[path] = {
            "get": {
                "summary": summary,
                "parameters": [
                    {"name": name, "in": "query", "description": what, "schema": {"type": "string"}}
                    for name, what in query.items()
                ],
                "responses": {"200": {"description": "Answer."}, "4XX": failed},
            }
        }
    about = (
        f"A body has at most {limits.body_bytes} bytes, a request at most {limits.rows} rows, lists of "
        f"{limits.k} and {limits.cells} cells, and {limits.seconds:g} s."
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "unseen", "version": version("unseen"), "description": about},
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
