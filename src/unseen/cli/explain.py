"""``unseen explain`` and ``unseen interactions``: what a prediction is made of."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["explain", "interactions"]

PARTS = {
    "constant": "average row and column",
    "row": "features of the row",
    "col": "features of the column",
    "bilinear": "their interaction",
    "low_rank": "not explained by features",
}


def explain(
    out: Output,
    model_path: o.ModelPath,
    row: Annotated[str, typer.Argument(metavar="ROW", help="Id of a row of the training data.")],
    col: Annotated[str, typer.Argument(metavar="COL", help="Id of a column of the training data.")],
) -> None:
    """Split the prediction for one cell into the parts that a side-information model adds up."""
    model = _load(model_path)
    parts = model.explain(_index(model, "row", row), _index(model, "col", col), positions=True)
    document: dict[str, Any] = {
        "command": "explain",
        "model": str(model_path),
        "row": row,
        "col": col,
        **asdict(parts),
        "prediction": parts.prediction,
    }
    lines = [[PARTS[name], round(value, 4)] for name, value in asdict(parts).items()]
    lines.append(["prediction", round(parts.prediction, 4)])
    out.result(document, lambda: out.table(["part", "adds"], lines, title=f"{row} x {col}"))


def interactions(
    out: Output,
    model_path: o.ModelPath,
    k: Annotated[int, typer.Option("-k", min=1, help="How many to show.")] = 20,
    one_sided: Annotated[
        bool, typer.Option("--one-sided", help="Also effects of one side alone and the constant.")
    ] = False,
) -> None:
    """List the strongest interactions of features, in the units of the features."""
    learned = _load(model_path).interactions_
    top = learned.top(k, one_sided=one_sided)
    document = {
        "command": "interactions",
        "model": str(model_path),
        "n_nonzero": len(learned.top(one_sided=one_sided)),
        "interactions": [entry._asdict() for entry in top],
    }
    lines = [[entry.row_feature, entry.col_feature, float(f"{entry.weight:.4g}")] for entry in top]
    out.result(document, lambda: out.table(["row feature", "column feature", "weight"], lines))


def _load(path: Any) -> Any:
    import unseen
    from unseen.cli.methods import METHODS

    model = unseen.load(path)
    if not hasattr(type(model), "explain"):
        able = [name for name, method in METHODS.items() if hasattr(method.load(), "explain")]
        raise UsageError(f"{path} is a {type(model).__name__}; this command is for {', '.join(able)}")
    return model


def _index(model: Any, side: Any, name: str) -> int:
    import pyarrow as pa

    from unseen.cli.sources import find, training_ids
    from unseen.exceptions import UnknownIdError

    place = int(find(training_ids(model, side), pa.array([name]))[0])
    if place < 0:
        raise UnknownIdError(f"{name!r} is not the id of a training {'row' if side == 'row' else 'column'}")
    return place
