"""``unseen predict``: predictions for pairs of ids."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["predict"]


class Unknown(StrEnum):
    """What to do about ids that were not in the training data and have no features."""

    ERROR = "error"
    NAN = "nan"
    BASELINE = "baseline"


def predict(
    out: Output,
    model_path: o.ModelPath,
    pairs: Annotated[
        Path,
        typer.Argument(
            metavar="PAIRS",
            help="Table with a row id and a column id a line; for a model of labels a file of features.",
        ),
    ],
    target: o.Out = None,
    defuse: o.Defuse = False,
    unknown: Annotated[
        Unknown,
        typer.Option(help="Ids without training cells: refuse, no prediction, or mean and known bias."),
    ] = Unknown.ERROR,
    k: Annotated[
        int | None, typer.Option("-k", "--top", min=1, help="Labels for each row, for a model of labels [5].")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="What the model was fitted to: also say how far each prediction is determined (std).",
        ),
    ] = None,
    row_features: o.RowFeatures = None,
    col_features: o.ColFeatures = None,
    id_column: o.IdColumn = None,
    row: o.Row = None,
    col: o.Col = None,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
) -> None:
    """Predict the cells of PAIRS, line by line, in the order of the file; or the best labels of rows."""
    import unseen
    from unseen.cli.clusters import is_of_clusters, predict_clusters
    from unseen.cli.labels import is_of_labels, predict_labels
    from unseen.cli.pairs import Side, Sides, predict_batch
    from unseen.cli.sinks import Records, TableWriter
    from unseen.cli.sources import like_training, output_names
    from unseen.cli.spread import SPREAD_NAMES, remind, spread_columns
    from unseen.exceptions import InvalidDataError

    model = unseen.load(model_path)
    if is_of_labels(model):
        predict_labels(out, model, model_path, pairs, target, k or 5, defuse=defuse)
        return
    if is_of_clusters(model):
        if k is not None:
            raise UsageError("--top is for models of labels; an item has one cluster")
        predict_clusters(
            out, model, model_path, pairs, target, id_column=id_column, encoding=encoding, defuse=defuse
        )
        return
    if k is not None:
        raise UsageError("--top is for models of labels; unseen recommend lists the best columns of a row")
    file = like_training(
        model, pairs, row=row, col=col, sep=sep, header=o.has_header(no_header), encoding=encoding
    )
    row_name, col_name, _ = file.columns()
    sides = Sides(
        Side.of(model, "row", row_features, id_column, row_name, encoding),
        Side.of(model, "col", col_features, id_column, col_name, encoding),
    )
    names = (*output_names(row_name, col_name, "prediction", *SPREAD_NAMES), "prediction")
    if train is not None:
        how = {"row": row, "col": col, "sep": sep, "header": o.has_header(no_header), "encoding": encoding}
        remind(model, train, how)
    n_unknown = 0
    sink = Records() if out.json and target is None else TableWriter(target, defuse=defuse)
    with sink as writer:
        for rows, cols in file.table.batches([row_name, col_name]):
            predicted, count = predict_batch(model, sides, rows, cols, unknown.value, pairs)
            n_unknown += count
            ids = sides.row.shown(rows, unknown.value), sides.col.shown(cols, unknown.value)
            line = dict(zip(names, (*ids, predicted), strict=True))
            if train is not None:
                line |= spread_columns(model, sides, rows, cols)
            writer.write(line)
        if not writer.n_lines:
            raise InvalidDataError(f"{pairs}: the file holds no pairs.")
    document: dict[str, Any] = {
        "command": "predict",
        "model": str(model_path),
        "out": None if target is None else str(target),
        "n_pairs": writer.n_lines,
        "n_unknown": n_unknown,
    }
    if isinstance(writer, Records):
        document["predictions"] = writer.lines
    done = f"{writer.n_lines:,} predictions, {n_unknown:,} of them for unknown ids"
    out.result(document, lambda: out.say(f"{done}; written to {target}") if target else out.note(done))
