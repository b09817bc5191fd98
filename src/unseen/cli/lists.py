"""Ids and cells that recommendations are made from."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.errors import UsageError
from unseen.cli.sources import (
    Indices,
    among,
    find,
    is_of_links,
    like_training,
    onto_training,
    output_names,
    training_ids,
)
from unseen.cli.tables import read_ids
from unseen.data import Observations, Vocabulary
from unseen.exceptions import DataWarning, UnknownIdError
from unseen.typing import Array

__all__ = [
    "column_filter",
    "exclusions",
    "for_arrow",
    "left_out_cells",
    "list_columns",
    "seen_cells",
    "wanted_rows",
]


def exclusions(
    model: Any,
    path: Path,
    row: str | None,
    col: str | None,
    sep: str | None,
    header: bool | None,
    encoding: str = "utf-8",
    wide: bool = False,
) -> Observations:
    """The cells of a file in the model's numbering; ids that the model does not know cannot come up."""
    links = is_of_links(model)
    how: dict[str, Any] = {"row": row, "col": col, "sep": sep, "header": header, "encoding": encoding}
    file = like_training(model, path, **how, links=links, wide=wide)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a pair that is listed twice is left out once
        return onto_training(file.read(), training_ids(model, "row"), training_ids(model, "col"))[0]


def column_filter(
    vocabulary: Vocabulary, candidates: Path | None, deny: Path | None, encoding: str
) -> Indices | None:
    """Columns that may be listed, from files of ids; None for all."""
    allowed: Indices | None = None
    if candidates is not None:
        ids = read_ids(candidates, among(vocabulary), encoding)
        allowed = known_ids(vocabulary, ids, f"{candidates}: column")
    if deny is not None:
        barred = known_ids(vocabulary, read_ids(deny, among(vocabulary), encoding), f"{deny}: column")
        allowed = np.setdiff1d(np.arange(len(vocabulary)) if allowed is None else allowed, barred)
    return allowed


def left_out_cells(model: Any, given: Observations | None, *, with_seen: bool) -> Any:
    """What is left out of lists, as `recommend` takes it: for a graph also each node of its own list."""
    links = is_of_links(model)
    if given is None and not with_seen:
        if getattr(model, "seen_", None) is None:
            raise UsageError(
                "this model does not hold which cells it was fitted to: --exclude DATA names them, "
                "--with-seen lists them too"
            )
        if not links:
            return "seen"
        given = seen_cells(model)
    if not links:
        return given
    nodes = np.arange(len(training_ids(model, "row")))
    rows, cols = nodes, nodes
    if given is not None:
        rows, cols = np.concatenate([nodes, given.rows]), np.concatenate([nodes, given.indices])
    return Observations.from_triples(rows, cols, np.ones(len(rows)), (len(nodes), len(nodes)))


def seen_cells(model: Any) -> Observations:
    """The cells that a model was fitted to, as ones."""
    seen = model.seen_
    shape = (len(seen.indptr) - 1, int(seen.n_cols))
    rows = np.repeat(np.arange(shape[0]), np.diff(seen.indptr))
    return Observations.from_triples(rows, seen.indices, np.ones(len(rows)), shape)


def wanted_rows(
    vocabulary: Vocabulary, listed: str | None, file: Path | None, encoding: str = "utf-8"
) -> Indices:
    """Rows that are listed on the command line or in a file."""
    import pyarrow as pa

    if file is not None:
        return known_ids(vocabulary, read_ids(file, among(vocabulary), encoding), f"{file}: row")
    ids = pa.array([part.strip() for part in str(listed).split(",") if part.strip()], pa.string())
    return known_ids(vocabulary, ids, "--rows: row")


def known_ids(vocabulary: Vocabulary, ids: Any, what: str) -> Indices:
    """Index of each id; unknown ones are an error that names them."""
    found = find(vocabulary, ids)
    if (found < 0).any():
        unknown = list(dict.fromkeys(ids.filter(found < 0).to_pylist()))
        shown = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        raise UnknownIdError(f"{what} ids that are not in the training data: {shown}")
    return found


def list_columns(model: Any) -> tuple[str, str, str, str]:
    """Names of the columns of a file of recommendations."""
    source = getattr(model, "source_", None) or {}
    row, col = output_names(source.get("row", "row"), source.get("col", "col"), "rank", "score")
    return row, "rank", col, "score"


def for_arrow(values: Array) -> Array:
    """As pyarrow takes it: text as Python objects only."""
    return values.astype(object) if values.dtype.kind == "U" else values
