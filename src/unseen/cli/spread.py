"""How far the predictions of a saved model are determined, from its training file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.errors import UsageError
from unseen.cli.pairs import Sides
from unseen.cli.sources import is_of_links, like_training, onto_training, training_ids
from unseen.data import Observations
from unseen.diagnostics import identifiability
from unseen.typing import Array

__all__ = ["SPREAD_NAMES", "remind", "spread_columns", "training_cells"]

SPREAD_NAMES = ("std", "determined")


def remind(model: Any, path: Path, columns: dict[str, Any]) -> None:
    """Give a saved model its training cells again.

    Parameters
    ----------
    model : completer
        Loaded.
    path : Path
        The file that it was fitted to.
    columns : dict
        How to read the file, as for :func:`like_training`.
    """
    model._hold(model._read_target(training_cells(model, path, columns)))


def training_cells(model: Any, path: Path, columns: dict[str, Any]) -> Observations:
    """The cells of the training file in the order of the model."""
    if any(getattr(model, f"n_{side}_features_in_", None) is not None for side in ("row", "col")):
        raise UsageError("--train is for models without features")
    source = getattr(model, "source_", None) or {}
    links = is_of_links(model)
    has_values = not links and source.get("value") is not None
    file = like_training(model, path, has_values=has_values, links=links, weighted=not links, **columns)
    if source.get("weight") is not None and file.weight is None:
        raise UsageError(
            f"{path} lacks the column {source['weight']!r} of weights that the model was fitted with"
        )
    cells, unknown = onto_training(file.read(), training_ids(model, "row"), training_ids(model, "col"))
    if any(ids.size for ids in unknown.values()):
        raise UsageError(f"{path} has ids that the model does not know; --train is what it was fitted to")
    return cells


def spread_columns(model: Any, sides: Sides, rows: Any, cols: Any) -> dict[str, Array]:
    """Columns for a table of predictions; NaN and False for ids without training cells.

    Parameters
    ----------
    model : completer
        With its training cells.
    sides : Sides
        Ids that can be predicted.
    rows, cols : pyarrow.Array
        Ids of the pairs.

    Returns
    -------
    dict of arrays
        By the names of ``SPREAD_NAMES``.
    """
    i, j = sides.row.locate(rows)[0], sides.col.locate(cols)[0]
    both = (i >= 0) & (j >= 0)
    std, determined = np.full(len(i), np.nan), np.zeros(len(i), dtype=bool)
    if both.any():
        found = identifiability(model, i[both], j[both], positions=True)
        std[both], determined[both] = found.std, found.determined
    return dict(zip(SPREAD_NAMES, (std, determined), strict=True))
