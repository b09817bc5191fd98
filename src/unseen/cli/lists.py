"""Ids and cells that recommendations are made from."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

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

__all__ = ["exclusions", "for_arrow", "known_ids", "list_columns", "wanted_rows", "without_itself"]


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


def without_itself(model: Any, left_out: Observations | None) -> Observations | None:
    """What is left out of lists, and for a graph each node of its own list."""
    if not is_of_links(model):
        return left_out
    nodes = np.arange(len(training_ids(model, "row")))
    rows, cols = nodes, nodes
    if left_out is not None:
        rows, cols = np.concatenate([nodes, left_out.rows]), np.concatenate([nodes, left_out.indices])
    return Observations.from_triples(rows, cols, np.ones(len(rows)), (len(nodes), len(nodes)))


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
