"""What requests look like: one table that they are read by and that the OpenAPI document is written from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from unseen.serve.limits import Limits, RequestError

__all__ = ["REQUESTS", "Field", "Request", "parse_json", "read"]

SHOWN = 40
ID_SCHEMA = {"oneOf": [{"type": "string"}, {"type": "integer"}]}


def _shown(value: Any) -> str:
    """A value as a message shows it; never long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def _wrong(value: Any, field: str, wanted: str) -> RequestError:
    return RequestError(f"{field} must be {wanted}, got {_shown(value)}", field)


# -- kinds of values ------------------------------------------------------------------


def an_id(value: Any, field: str, limits: Limits) -> Any:
    """An id of a row or a column."""
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _wrong(value, field, "an id: text or a whole number")


def ids(value: Any, field: str, limits: Limits) -> list[Any]:
    """One or more ids."""
    return _items(value, field, limits, limits.rows, an_id)


def more_ids(value: Any, field: str, limits: Limits) -> list[Any]:
    """Any number of ids; the size of the body is the limit."""
    return _items(value, field, limits, limits.body_bytes, an_id, least=0)


def count(value: Any, field: str, limits: Limits) -> int:
    """The length of a list."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= limits.k:
        raise _wrong(value, field, f"a whole number from 1 to {limits.k}")
    return value


def flag(value: Any, field: str, limits: Limits) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise _wrong(value, field, "true or false")
    return value


def number(value: Any, field: str, limits: Limits) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(value, field, "a number")
    try:
        if math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise _wrong(value, field, "a finite number")


def new_cells(value: Any, field: str, limits: Limits) -> list[dict[str, Any]]:
    """Cells of a new row."""
    return _items(value, field, limits, limits.cells, _record({"col": an_id, "value": number}))


def triples(value: Any, field: str, limits: Limits) -> list[dict[str, Any]]:
    """Cells with row, column and value."""
    kinds = {"row": an_id, "col": an_id, "value": number}
    return _items(value, field, limits, limits.cells, _record(kinds), least=0)


def pairs(value: Any, field: str, limits: Limits) -> list[dict[str, Any]]:
    """Cells without values."""
    return _items(value, field, limits, limits.cells, _record({"row": an_id, "col": an_id}), least=0)


def features(value: Any, field: str, limits: Limits) -> dict[str, Any]:
    """Values of features by name: numbers, or text for a category."""
    if not isinstance(value, dict) or not value:
        raise _wrong(value, field, "an object of features by name")
    out = {}
    for name, entry in value.items():
        if len(name) > 1000:
            raise RequestError(f"{field} has a name of {len(name)} characters", field)
        place = f"{field}.{name}"
        out[name] = entry if isinstance(entry, str) else number(entry, place, limits)
    return out


Kind = Callable[[Any, str, Limits], Any]


def _items(value: Any, field: str, limits: Limits, most: int, kind: Kind, least: int = 1) -> list[Any]:
    if not isinstance(value, list) or len(value) < least:
        raise _wrong(value, field, f"a list of {least} or more")
    if len(value) > most:
        raise RequestError(f"{field} has {len(value)} entries; at most {most} are accepted", field, 413)
    return [kind(entry, f"{field}[{place}]", limits) for place, entry in enumerate(value)]


def _record(kinds: Mapping[str, Kind]) -> Kind:
    def kind(value: Any, field: str, limits: Limits) -> dict[str, Any]:
        if not isinstance(value, dict) or set(value) != set(kinds):
            raise _wrong(value, field, "an object with " + ", ".join(kinds))
        return {name: kinds[name](value[name], f"{field}.{name}", limits) for name in kinds}

    return kind


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


def _object_of(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS: dict[Kind, dict[str, Any]] = {
    an_id: ID_SCHEMA,
    ids: _list_of(ID_SCHEMA) | {"minItems": 1},
    more_ids: _list_of(ID_SCHEMA),
    count: {"type": "integer", "minimum": 1},
    flag: {"type": "boolean"},
    new_cells: _list_of(_object_of(col=ID_SCHEMA, value={"type": "number"})) | {"minItems": 1},
    triples: _list_of(_object_of(row=ID_SCHEMA, col=ID_SCHEMA, value={"type": "number"})),
    pairs: _list_of(_object_of(row=ID_SCHEMA, col=ID_SCHEMA)),
    features: {
        "type": "object",
        "additionalProperties": {"oneOf": [{"type": "number"}, {"type": "string"}]},
    },
}


# -- requests -------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A part of a request."""

    kind: Kind
    what: str
    required: bool = False


@dataclass(frozen=True)
class Request:
    """What can be asked at one address."""

    summary: str
    fields: dict[str, Field]
    gives: str
    """Name of the list in the answer."""


K = Field(count, "Length of each list.")
STD = Field(flag, "Also say how far each prediction moves over fits that are as good.")
REQUESTS: dict[str, Request] = {
    "/v1/predict": Request(
        "Values of single cells.",
        {
            "rows": Field(ids, "Row of each cell.", True),
            "cols": Field(ids, "Column of each cell.", True),
            "std": STD,
        },
        "predictions",
    ),
    "/v1/recommend": Request(
        "Columns with the highest predictions, for known rows or for a new one.",
        {
            "rows": Field(ids, "Known rows; cells that they have are left out."),
            "cells": Field(new_cells, "Known cells of a new row; their columns are left out."),
            "row_features": Field(features, "Features of a new row by name."),
            "k": K,
            "candidates": Field(more_ids, "Columns that may be listed; all by default."),
            "deny": Field(more_ids, "Columns that must not be listed."),
            "std": STD,
        },
        "lists",
    ),
    "/v1/similar": Request(
        "Nearest rows or columns by the cosine of their factors.",
        {
            "rows": Field(ids, "Rows."),
            "cols": Field(ids, "Columns."),
            "k": K,
        },
        "lists",
    ),
    "/v1/explain": Request(
        "What one prediction is made of.",
        {"row": Field(an_id, "Known row.", True), "col": Field(an_id, "Known column.", True)},
        "parts",
    ),
    "/v1/update": Request(
        "New cells for the model; needs the token.",
        {
            "cells": Field(triples, "New cells; one that was there is replaced."),
            "remove": Field(pairs, "Cells to forget."),
        },
        "shape",
    ),
    "/v1/reload": Request("Load the model again from its directory; needs the token.", {}, "generation"),
}


def parse_json(body: bytes) -> dict[str, Any]:
    """The object that a body holds."""
    try:
        value = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestError(f"the body is not valid JSON: {reason[:200]}", status=400) from error
    if not isinstance(value, dict):
        raise RequestError(f"the body must be a JSON object, got {_shown(value)}", status=400)
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def read(request: Request, body: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """The checked parts of a request; None for those that are absent."""
    for name in body:
        if name not in request.fields:
            known = ", ".join(request.fields) or "nothing"
            raise RequestError(f"{_shown(name)} is not known here; accepted: {known}", name[:SHOWN])
    out: dict[str, Any] = {}
    for name, field in request.fields.items():
        if body.get(name) is not None:
            out[name] = field.kind(body[name], name, limits)
        elif field.required:
            raise RequestError(f"{name} is missing", name)
        else:
            out[name] = None
    return out
