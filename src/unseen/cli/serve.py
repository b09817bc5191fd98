"""``unseen serve``: a model behind HTTP, and a page to look into it."""

from __future__ import annotations

import os
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["serve"]


def serve(
    out: Output,
    model_path: o.ModelPath,
    cells: Annotated[
        Path | None,
        typer.Option(
            "--cells",
            metavar="DATA",
            help="Training cells: left out of lists, and shown as reasons on the page.",
        ),
    ] = None,
    row_names: Annotated[
        Path | None,
        typer.Option("--row-names", metavar="FILE", help="Table of what to call rows: id first, then name."),
    ] = None,
    col_names: Annotated[
        Path | None, typer.Option("--col-names", metavar="FILE", help="The same for columns.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; they hold the factors of the model once.")
    ] = 1,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Allow updates and reloads to who knows its text."),
    ] = None,
    host_names: Annotated[
        str | None,
        typer.Option(
            "--host-names", metavar="NAME,NAME,...", help="Names of this host that requests may use [any]."
        ),
    ] = None,
    max_seconds: Annotated[float, typer.Option("--max-seconds", min=0.1, help="Time of one request.")] = 10.0,
    max_rows: Annotated[int, typer.Option("--max-rows", min=1, help="Rows of one request.")] = 1000,
    approximate_above: Annotated[
        int | None,
        typer.Option(
            "--approximate-above",
            metavar="COLUMNS",
            min=0,
            help="Look lists up in an index (usearch) where the model has more columns than this; its recall "
            "is measured [exact lists].",
        ),
    ] = None,
    n_jobs: o.NJobs = None,
    row: o.Row = None,
    col: o.Col = None,
    value: o.Value = None,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
) -> None:
    """Answer requests about MODEL over HTTP; the page at / shows it in a browser."""
    # Threads that wait for the next pass over the factors sleep: others need the core they would spin on.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from unseen.serve import Limits
    from unseen.serve.approximate import Approximate
    from unseen.serve.run import Settings
    from unseen.serve.run import serve as run

    load_cells = None
    if cells is not None:
        header = o.has_header(no_header)
        how = {"row": row, "col": col, "value": value, "sep": sep, "header": header, "encoding": encoding}
        load_cells = partial(training_cells, cells, how)
    settings = Settings(
        model_path,
        host,
        port,
        workers,
        token_file,
        load_cells,
        {
            side: read_names(path)
            for side, path in (("row", row_names), ("col", col_names))
            if path is not None
        },
        n_jobs,
        Limits(seconds=max_seconds, rows=max_rows),
        tuple(name.strip() for name in (host_names or "").split(",") if name.strip()),
        None if approximate_above is None else Approximate(approximate_above),
    )
    if not settings.is_local:
        out.note(
            f"warning: {host} can be reached from other machines, and requests are not encrypted; put a "
            "proxy with TLS in front"
        )

    def started(address: str) -> None:
        document = {"command": "serve", "model": str(model_path), "address": address, "workers": workers}
        out.result(
            document, lambda: print(f"{model_path} is served at {address} (end with Ctrl-C)", flush=True)
        )

    run(settings, started)


def training_cells(path: Path, how: dict[str, Any], model: Any) -> Any:
    """The cells of a file in the numbering of a model."""
    from unseen.cli.sources import is_of_links, like_training, onto_training, training_ids
    from unseen.exceptions import DataWarning

    links = is_of_links(model)
    has_values = not links and ((getattr(model, "source_", None) or {}).get("value") or how["value"])
    file = like_training(model, path, **how, has_values=bool(has_values), links=links, weighted=not links)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # said when the model was fitted
        return onto_training(file.read(), training_ids(model, "row"), training_ids(model, "col"))[0]


def read_names(path: Path) -> dict[Any, str]:
    """Names by id, from the first two columns of a table with a header."""
    from unseen.cli.tables import Table

    table = Table(path)
    if len(table.names) < 2:
        raise UsageError(f"{path} has one column; ids and names are needed")
    key, name = table.names[:2]
    frame = table.frame(key)
    pairs = zip(frame[key].to_pylist(), frame[name].to_pylist(), strict=True)
    return {one: str(text) for one, text in pairs if text is not None}
