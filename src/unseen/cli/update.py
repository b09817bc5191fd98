"""``unseen update``: take new cells into a saved model."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.output import Output

if TYPE_CHECKING:
    from unseen.data import Observations

__all__ = ["update"]


def update(
    out: Output,
    model_path: o.ModelPath,
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[NEWDATA]", help="New cells, in columns named as those of the fit."),
    ] = None,
    remove: Annotated[
        Path | None,
        typer.Option("--remove", metavar="PAIRS", help="Cells to forget: a row id and a column id a line."),
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="MODEL", help="Directory to write [the same].")
    ] = None,
    row_features: o.RowFeatures = None,
    col_features: o.ColFeatures = None,
    id_column: o.IdColumn = None,
    row: o.Row = None,
    col: o.Col = None,
    value: o.Value = None,
    weight: o.Weight = None,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
    wide: o.Wide = False,
    decay: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Factor of the weights of all earlier cells.")
    ] = 1.0,
    drift_limit: Annotated[
        float,
        typer.Option(min=0.0, help="Warn if the objective is estimated to lie further above a new fit's."),
    ] = 0.01,
) -> None:
    """Take the cells of NEWDATA into MODEL: new values, new rows, new columns; and forget PAIRS.

    Others who update the same model wait; whoever reads it has the old model or the new one.
    """
    import unseen
    from unseen.cli.sources import like_training
    from unseen.exceptions import DriftWarning, ModelFileError
    from unseen.model_files import MANIFEST, exclusive

    if data is None and remove is None and decay == 1.0:
        raise UsageError("NEWDATA or --remove is needed")
    if not (model_path / MANIFEST).is_file():
        raise ModelFileError(f"{str(model_path)!r} is not a saved model: there is no {MANIFEST}")
    with exclusive(model_path):
        model = unseen.load(model_path)
        source = getattr(model, "source_", None) or {}
        if source.get("task") in ("multilabel", "links") or not hasattr(model, "partial_fit"):
            raise UsageError(
                f"{model_path}: a model of {source.get('task', 'this kind')} is not updated; fit it again"
            )
        header = o.has_header(no_header)
        cells = None
        before = model._n_rows(), model.n_features_in_
        if data is not None:
            file = like_training(
                model,
                data,
                row=row,
                col=col,
                value=value,
                has_values=bool(source.get("value")),
                weight=weight,
                weighted=True,
                sep=sep,
                header=header,
                encoding=encoding,
                wide=wide,
            )
            cells = file.read()
        features = {
            f"{side}_features": _of_new(model, side, cells, given, id_column, source, encoding)
            for side, given in (("row", row_features), ("col", col_features))
        }
        pairs = None
        if remove is not None:
            asked = like_training(model, remove, row=row, col=col, sep=sep, header=header, encoding=encoding)
            pairs = [
                pair
                for part in asked.table.batches(list(asked.columns()[:2]))
                for pair in _pairs(model, part, remove)
            ]
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.partial_fit(cells, remove=pairs, decay=decay, drift_limit=drift_limit, **features)
        seconds = time.perf_counter() - start
        _renew(model)
        model.save(target or model_path, cells=True)
    for warning in said:
        out.note(str(warning.message))
    rows, cols = model._n_rows(), model.n_features_in_
    document = {
        "command": "update",
        "model": str(target or model_path),
        "n_rows": rows,
        "n_cols": cols,
        "n_new_rows": rows - before[0],
        "n_new_cols": cols - before[1],
        "n_new_cells": 0 if cells is None else cells.nnz,
        "n_removed": 0 if pairs is None else len(pairs),
        "drift": model.drift_,
        "refit_advised": any(issubclass(warning.category, DriftWarning) for warning in said),
        "update_time_s": seconds,
    }
    line = (
        f"{document['n_new_cells']:,} cells taken in, {document['n_removed']:,} forgotten, "
        f"{document['n_new_rows']:,} new rows, {document['n_new_cols']:,} new columns in {seconds:.2f} s; "
        f"drift {model.drift_:.2%}; saved to {document['model']}"
    )
    out.result(document, lambda: out.say(line))


def _renew(model: Any) -> None:
    """The baseline for unknown ids is that of all cells."""
    from unseen import BiasModel

    if getattr(model, "baseline_", None) is not None:
        model.baseline_ = BiasModel().fit(model._training_data().cells)


def _pairs(model: Any, part: list[Any], path: Path) -> list[tuple[Any, Any]]:
    """Ids of a table of pairs, as the model has them."""
    from unseen.cli.sources import find
    from unseen.exceptions import UnknownIdError

    sides = []
    for ids, column in zip((model.row_ids_, model.col_ids_), part, strict=True):
        places = find(ids, column)
        if (places < 0).any():
            first = column[int(np.argmax(places < 0))].as_py()
            raise UnknownIdError(f"{path}: {first!r} is not known to the model")
        sides.append(ids[places].tolist())
    return list(zip(*sides, strict=True))


def _of_new(
    model: Any,
    side: str,
    cells: Observations | None,
    path: Path | None,
    id_column: str | None,
    source: dict[str, Any],
    encoding: str,
) -> Any:
    """Features of the ids that the model does not know, in the order in which they come."""
    from unseen.cli.feature_files import FeatureFile
    from unseen.exceptions import UnknownIdError

    if path is None or cells is None:
        return None
    known, ids = getattr(model, f"{side}_ids_"), cells.row_ids if side == "row" else cells.col_ids
    assert ids is not None
    new = ids.values[known.find(ids.values) < 0]
    if not len(new):
        return None
    names = source.get(f"{side}_feature_names")
    found = FeatureFile(path, id_column, encoding).of_new_ids(known, str(source.get(side) or side), names)
    at = np.full(len(new), -1) if found is None else found[0].find(new)
    if (at < 0).any():
        raise UnknownIdError(f"{path}: no line for {new[int(np.argmax(at < 0))].item()!r}, which is new")
    assert found is not None
    return found[1][at]
