"""``unseen compare``: methods side by side on one's own file."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.output import Output, plain

if TYPE_CHECKING:
    from unseen.comparison import Comparison

__all__ = ["compare"]


class HoldOut(StrEnum):
    """What is held out."""

    ENTRIES = "entries"
    ROWS = "rows"
    COLS = "cols"
    BOTH = "both"
    TIME = "time"


class Meaning(StrEnum):
    """What the cells mean."""

    EXPLICIT = "explicit"
    POSITIVE = "positive"
    LINKS = "links"
    MULTILABEL = "multilabel"


def compare(
    out: Output,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV (also .gz) or Parquet, one cell a line; for multilabel the text format of "
            "extreme classification.",
        ),
    ],
    methods: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Methods to compare [all that apply].")
    ] = None,
    split: Annotated[HoldOut, typer.Option(help="What is held out.")] = HoldOut.ENTRIES,
    task: Annotated[
        Meaning | None, typer.Option(help="What the cells mean [explicit; multilabel by the first line].")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Test parts.")] = 5,
    test_fraction: Annotated[float, typer.Option(help="Share that is held out.")] = 0.2,
    time: o.Time = None,
    directory: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Also write a page and JSON there.")
    ] = None,
    row: o.Row = None,
    col: o.Col = None,
    value: o.Value = None,
    weight: o.Weight = None,
    no_value: o.NoValue = False,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
    wide: o.Wide = False,
    edges: o.EdgeList = o.Edges.NO,
    row_features: o.RowFeatures = None,
    col_features: o.ColFeatures = None,
    id_column: o.IdColumn = None,
    missing: o.MissingFeatures = o.Missing.ERROR,
    seed: o.Seed = 0,
    n_jobs: o.NJobs = None,
) -> None:
    """Compare methods on DATA: settings are chosen on training cells, scores are of test cells."""
    from unseen.cli.tables import looks_extreme
    from unseen.comparison import compare as run
    from unseen.data import read_extreme

    if directory is not None and directory.exists() and not directory.is_dir():
        raise UsageError(f"--out {directory}: there is a file of that name; a directory is written")
    if split is HoldOut.TIME and time is None:
        raise UsageError("--split time needs --time, the column with when each cell arose")
    arguments: dict[str, Any] = {}
    if task is None:
        task = Meaning.MULTILABEL if looks_extreme(data) else Meaning.EXPLICIT
    if task is Meaning.MULTILABEL:
        if weight is not None:
            raise UsageError(f"--weight {weight}: every label counts one")
        features, labels = read_extreme(data)
        arguments |= {"X": features, "y": labels}
    else:
        from unseen.cli.feature_files import read_features

        file = o.cell_file(
            data,
            row,
            col,
            value,
            no_value,
            sep,
            no_header,
            edges,
            task=task.value,
            weight=weight,
            time=time,
            encoding=encoding,
            wide=wide,
        )
        cells = file.read()
        found, _ = read_features(file, cells, row_features, col_features, id_column, missing.value)
        arguments |= {"X": cells, **found}
    result = run(
        **arguments,
        task=task.value,
        split=split.value,
        methods=[name.strip() for name in methods.split(",")] if methods else None,
        repeats=repeats,
        test_fraction=test_fraction,
        random_state=seed,
        n_jobs=n_jobs,
        verbose=out.progress,
    )
    document = {"command": "compare", "data": str(data), **result.to_dict()}
    if directory is not None:
        document["report"] = str(_write(directory, data, result, document))
    out.result(document, lambda: _show(out, result, document))


def _show(out: Output, result: Comparison, document: dict[str, Any]) -> None:
    head, lines = result.rows()
    facts = result.facts
    title = f"{facts['rows']:,} x {facts['cols']:,}, {facts['cells']:,} cells, {facts['repeats']} test parts"
    out.table(head, lines, title=title)
    out.say(result.recommendation())
    for entry in result.entries:
        if entry.error is not None:
            out.note(f"{entry.method} failed: {entry.error}")
    for method, reason in result.left_out.items():
        out.note(f"{method} was left out: {reason}")
    if "report" in document:
        out.say(f"Report: {document['report']}")


def _write(directory: Path, data: Path, result: Comparison, document: dict[str, Any]) -> Path:
    import matplotlib as mpl

    from unseen.cli.compare_page import make_page
    from unseen.cli.sinks import replacing

    mpl.use("Agg")
    directory.mkdir(parents=True, exist_ok=True)
    report = directory / "compare.html"
    with replacing(report) as temporary:
        temporary.write_text(make_page(data.name, result).html(), encoding="utf-8")
    with replacing(directory / "compare.json") as temporary:
        temporary.write_text(json.dumps(plain(document), indent=1, allow_nan=False), encoding="utf-8")
    return report
