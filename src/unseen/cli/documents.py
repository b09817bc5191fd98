"""``unseen card`` and ``unseen export``: a model for people, and for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["card", "export"]


def card(
    out: Output,
    model_path: o.ModelPath,
    target: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="FILE.md or FILE.html [shown]."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="DATA", help="Cells that the model has not seen, for its scores."),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Length of the lists that are judged.")] = 20,
    row: o.Row = None,
    col: o.Col = None,
    value: o.Value = None,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
) -> None:
    """Write what MODEL is: data, settings, scores with intervals, limits, versions."""
    from unseen.card import model_card
    from unseen.cli.serve import training_cells

    if target is not None and target.suffix not in (".md", ".html"):
        raise UsageError(f"--out {target}: the name must end in .md or .html")
    model = _load(model_path)
    cells = None
    if test is not None:
        header = o.has_header(no_header)
        how = {"row": row, "col": col, "value": value, "sep": sep, "header": header, "encoding": encoding}
        cells = training_cells(test, how, model)
        if not cells.nnz:
            raise UsageError(f"--test {test}: no cell is of a row and a column that the model knows")
    made = model_card(model, test=cells, k=k)
    text = made.html() if target is not None and target.suffix == ".html" else made.markdown()
    if target is not None:
        target.write_text(text, encoding="utf-8")
    document: dict[str, Any] = {
        "command": "card",
        "model": str(model_path),
        "out": None if target is None else str(target),
        "sections": {
            title: dict(lines) if lines and isinstance(lines[0], tuple) else list(lines)
            for title, lines in made.sections.items()
        },
    }
    out.result(document, lambda: print(text if target is None else f"written to {target}"))


def export(
    out: Output,
    model_path: o.ModelPath,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="parquet, npz or onnx-matmul.")],
    target: Annotated[
        Path, typer.Option("--out", "-o", metavar="PATH", help="File; a directory for parquet.")
    ],
) -> None:
    """Write the factors of MODEL for other programs; a score is an inner product of two lines."""
    from unseen.export import FORMATS
    from unseen.export import export as write

    if to not in FORMATS:
        raise UsageError(f"--to {to}: one of {', '.join(FORMATS)} is accepted")
    files = write(_load(model_path), target, to)
    document = {"command": "export", "model": str(model_path), "to": to, "files": [str(one) for one in files]}
    out.result(document, lambda: print("\n".join(map(str, files))))


def _load(path: Path) -> Any:
    import unseen
    from unseen.cli.clusters import is_of_clusters
    from unseen.cli.labels import is_of_labels

    model = unseen.load(path)
    if is_of_labels(model):
        raise UsageError(f"{path} is a classifier of labels; this command is for completers")
    if is_of_clusters(model):
        raise UsageError(f"{path} puts items into clusters; this command is for completers")
    return model
