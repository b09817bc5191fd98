"""``unseen recommend``: the best columns for each row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["recommend"]

ROWS_AT_A_TIME = 1 << 15


def recommend(
    out: Output,
    model_path: o.ModelPath,
    rows: Annotated[str | None, typer.Option(metavar="ID,ID,...", help="Ids of rows.")] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="All rows of the training data.")] = False,
    rows_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ids of rows: first column of a table, or one a line.")
    ] = None,
    k: Annotated[int, typer.Option("-k", "--top", min=1, help="Length of each list.")] = 10,
    exclude: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Cells that are left out, such as those of the training file."),
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ids of the columns that may be recommended [all].")
    ] = None,
    target: o.Out = None,
    defuse: o.Defuse = False,
    row: o.Row = None,
    col: o.Col = None,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
    dask: o.Dask = None,
) -> None:
    """List the columns with the highest predictions for each row, in the user's own ids."""
    import unseen
    from unseen.cli.labels import is_of_labels
    from unseen.cli.lists import exclusions, for_arrow, known_ids, list_columns, wanted_rows, without_itself
    from unseen.cli.sinks import Records, TableWriter
    from unseen.cli.sources import among, training_ids
    from unseen.cli.tables import read_ids

    if (rows is not None) + all_rows + (rows_file is not None) != 1:
        raise UsageError("exactly one of --rows, --rows-file and --all is needed")
    model = unseen.load(model_path)
    if is_of_labels(model):
        raise UsageError(f"{model_path} gives labels to rows of features: unseen predict lists the best")
    row_ids, col_ids = training_ids(model, "row"), training_ids(model, "col")
    wanted = np.arange(len(row_ids)) if all_rows else wanted_rows(row_ids, rows, rows_file, encoding)
    allowed = (
        None
        if candidates is None
        else known_ids(col_ids, read_ids(candidates, among(col_ids), encoding), f"{candidates}: column")
    )
    left_out = None
    if exclude is not None:
        left_out = exclusions(model, exclude, row, col, sep, o.has_header(no_header), encoding)
    left_out = without_itself(model, left_out)
    names = list_columns(model)
    sink = Records() if out.json and target is None else TableWriter(target, defuse=defuse)
    with sink as writer:
        parts = [wanted[start : start + ROWS_AT_A_TIME] for start in range(0, len(wanted), ROWS_AT_A_TIME)]
        for part, ids, scores in _lists(model, parts, k, left_out, allowed, dask):
            filled = ids >= 0
            place = np.broadcast_to(np.arange(1, ids.shape[1] + 1), ids.shape)[filled]
            lines = (
                row_ids[np.repeat(part, filled.sum(axis=1))],
                place,
                col_ids[ids[filled]],
                scores[filled],
            )
            writer.write(dict(zip(names, map(for_arrow, lines), strict=True)))
    document: dict[str, Any] = {
        "command": "recommend",
        "model": str(model_path),
        "out": None if target is None else str(target),
        "n_rows": len(wanted),
        "n_recommendations": writer.n_lines,
    }
    if isinstance(writer, Records):
        document["recommendations"] = writer.lines
    done = f"{writer.n_lines:,} recommendations for {len(wanted):,} rows"
    out.result(document, lambda: out.say(f"{done}; written to {target}") if target else out.note(done))


def _lists(
    model: Any, parts: list[Any], k: int, left_out: Any, allowed: Any, dask: str | None
) -> Iterator[tuple[Any, Any, Any]]:
    """Lists of the rows of each part, made here or on a cluster."""
    if dask is None:
        for part in parts:
            yield (part, *model.recommend(part, k=k, exclude=left_out, candidates=allowed, positions=True))
        return
    from unseen.cli.by_blocks import cluster_client, lists_on_cluster

    with cluster_client(dask) as client:
        yield from lists_on_cluster(client, model, parts, k, left_out, allowed)
