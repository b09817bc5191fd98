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
        typer.Option(metavar="DATA", help="Cells that are left out [those that the model was fitted to]."),
    ] = None,
    with_seen: Annotated[
        bool, typer.Option("--with-seen", help="Also list the cells that the model was fitted to.")
    ] = False,
    deny: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ids of columns that may not be recommended.")
    ] = None,
    new_cells: Annotated[
        Path | None,
        typer.Option("--new-cells", metavar="FILE", help="Cells of rows that were not in the training data."),
    ] = None,
    row_features: Annotated[
        Path | None,
        typer.Option("--row-features", metavar="FILE", help="Features of new rows, with or without cells."),
    ] = None,
    id_column: o.IdColumn = None,
    col_names: o.ColNames = None,
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
    """List the columns with the highest predictions for each row, known or new, in the user's own ids."""
    import unseen
    from unseen.cli.clusters import is_of_clusters
    from unseen.cli.labels import is_of_labels
    from unseen.cli.lists import (
        column_filter,
        exclusions,
        for_arrow,
        left_out_cells,
        list_columns,
        wanted_rows,
    )
    from unseen.cli.new_rows import NewRows, names_of_columns
    from unseen.cli.sinks import Records, TableWriter
    from unseen.cli.sources import training_ids

    new = new_cells is not None or row_features is not None
    if (rows is not None) + all_rows + (rows_file is not None) + new != 1:
        raise UsageError(
            "one of --rows, --rows-file and --all is needed, or --new-cells and --row-features for new rows"
        )
    if exclude is not None and with_seen:
        raise UsageError("--exclude and --with-seen exclude each other")
    if new and (dask is not None or exclude is not None):
        raise UsageError(
            f"{'--dask' if dask is not None else '--exclude'}: for new rows their own cells are left out"
        )
    model = unseen.load(model_path)
    if is_of_labels(model):
        raise UsageError(f"{model_path} gives labels to rows of features: unseen predict lists the best")
    if is_of_clusters(model):
        raise UsageError(f"{model_path} puts items into clusters: unseen predict says into which")
    row_ids, col_ids = training_ids(model, "row"), training_ids(model, "col")
    how: dict[str, Any] = {"row": row, "col": col, "sep": sep, "header": o.has_header(no_header)}
    how["encoding"] = encoding
    allowed = column_filter(col_ids, candidates, deny, encoding)
    lists: Iterator[tuple[Any, Any, Any]]
    if new:
        newcomers = NewRows.read(model, new_cells, row_features, id_column, **how)
        row_ids, n_rows = newcomers.ids, len(newcomers.ids)
        left_out = None if with_seen else "seen"
        lists = newcomers.lists(model, k, ROWS_AT_A_TIME, exclude=left_out, candidates=allowed)
    else:
        wanted = np.arange(len(row_ids)) if all_rows else wanted_rows(row_ids, rows, rows_file, encoding)
        n_rows = len(wanted)
        given = None if exclude is None else exclusions(model, exclude, **how)
        parts = [wanted[start : start + ROWS_AT_A_TIME] for start in range(0, len(wanted), ROWS_AT_A_TIME)]
        lists = _lists(model, parts, k, left_out_cells(model, given, with_seen=with_seen), allowed, dask)
    names = list_columns(model)
    called, titles = "", None
    if col_names is not None:
        called, titles = names_of_columns(col_names, col_ids, names[2], encoding)
        called = f"{called}_name" if called in names else called
    sink = Records() if out.json and target is None else TableWriter(target, defuse=defuse)
    with sink as writer:
        for part, ids, scores in lists:
            filled = ids >= 0
            place = np.broadcast_to(np.arange(1, ids.shape[1] + 1), ids.shape)[filled]
            lines = (
                row_ids[np.repeat(part, filled.sum(axis=1))],
                place,
                col_ids[ids[filled]],
                scores[filled],
            )
            table = dict(zip(names, map(for_arrow, lines), strict=True))
            if titles is not None:
                table[called] = titles[ids[filled]]
            writer.write(table)
    document: dict[str, Any] = {
        "command": "recommend",
        "model": str(model_path),
        "out": None if target is None else str(target),
        "n_rows": n_rows,
        "n_recommendations": writer.n_lines,
    }
    if isinstance(writer, Records):
        document["recommendations"] = writer.lines
    done = f"{writer.n_lines:,} recommendations for {n_rows:,} rows"
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
    from unseen.cli.lists import seen_cells

    if isinstance(left_out, str):
        left_out = seen_cells(model)
    with cluster_client(dask) as client:
        yield from lists_on_cluster(client, model, parts, k, left_out, allowed)
