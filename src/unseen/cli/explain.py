"""``unseen explain`` and ``unseen interactions``: what a prediction is made of."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
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
    train: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA", help="What the model was fitted to: say what each cell of the row adds."
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Parts to show; the others are added up.")] = 10,
    col_names: o.ColNames = None,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
) -> None:
    """Split the prediction for one cell into parts that add up to it, the largest first.

    By features where the model has them, with --train by the known cells of the row, else by mean, biases and
    factors.
    """
    import unseen
    from unseen.cli.contributions import by_cells, by_factors
    from unseen.cli.lists import list_columns
    from unseen.cli.new_rows import names_of_columns
    from unseen.cli.sources import training_ids
    from unseen.cli.spread import training_cells
    from unseen.estimators.explained import Explained

    model = unseen.load(model_path)
    if not hasattr(model, "row_factors_"):
        raise UsageError(f"{model_path} is a {type(model).__name__}, whose scores are no sum of parts")
    i, j = _index(model, "row", row), _index(model, "col", col)
    ids = training_ids(model, "col")
    names = [str(name) for name in ids.values.tolist()]
    if col_names is not None:
        titles = names_of_columns(col_names, ids, list_columns(model)[2], encoding)[1]
        names = [title or name for title, name in zip(titles, names, strict=True)]
    document: dict[str, Any] = {"command": "explain", "model": str(model_path), "row": row, "col": col}
    if train is not None:
        how = {"sep": sep, "header": o.has_header(no_header), "encoding": encoding, "row": None, "col": None}
        parts = by_cells(model, training_cells(model, train, how), i, j, names)
    elif isinstance(model, Explained):
        found = model.explain(i, j, positions=True)
        document |= asdict(found)
        parts = _named(model, asdict(found))
        parts = sorted(parts, key=lambda part: -abs(part[1]))
    else:
        parts = by_factors(model, i, j)
    total = sum(value for _, value in parts)
    document["parts"] = [{"part": name, "adds": value} for name, value in parts]
    document["prediction"] = total
    shown = parts if len(parts) <= k + 1 else parts[:k]
    lines: list[list[Any]] = [[name, round(value, 4)] for name, value in shown]
    if len(shown) < len(parts):
        rest = sum(value for _, value in parts[k:])
        lines.append([f"{len(parts) - k} smaller parts", round(rest, 4)])
    # Some losses have a scale of their own: parts add up to the score, from which the prediction follows.
    predicted = float(model.predict_entries([i], [j], positions=True)[0])
    same = abs(predicted - total) <= 1e-5 * max(1.0, abs(total))
    lines.append(["prediction" if same else "score", round(total, 4)])
    if not same:
        document["score"], document["prediction"] = total, predicted
        lines.append(["prediction", round(predicted, 4)])
    out.result(document, lambda: out.table(["part", "adds"], lines, title=f"{row} x {names[j]}"))


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
    from unseen.estimators.explained import Explained

    model = unseen.load(path)
    if not isinstance(model, Explained):
        able = [name for name, method in METHODS.items() if issubclass(method.load(), Explained)]
        raise UsageError(f"{path} is a {type(model).__name__}; this command is for {', '.join(able)}")
    return model


def _named(model: Any, found: dict[str, float]) -> list[tuple[str, float]]:
    """Parts by what they are called: what biases of cells add is no matter of features."""
    called = dict(PARTS)
    if "0.core" not in model.state_:
        called |= {"constant": "mean and biases", "low_rank": "factors"}
        return [(called[name], value) for name, value in found.items() if name in ("constant", "low_rank")]
    for side, noun in (("row", "row"), ("col", "column")):
        has_bias = getattr(model.offsets_, side) is not None
        has_features = getattr(model, f"n_{side}_features_in_", None) is not None
        if has_bias:
            called[side] = f"this {noun}, on average" + (", and its features" if has_features else "")
    return [(called[name], value) for name, value in found.items()]


def _index(model: Any, side: Any, name: str) -> int:
    import pyarrow as pa

    from unseen.cli.sources import find, training_ids
    from unseen.exceptions import UnknownIdError

    place = int(find(training_ids(model, side), pa.array([name]))[0])
    if place < 0:
        raise UnknownIdError(f"{name!r} is not the id of a training {'row' if side == 'row' else 'column'}")
    return place
