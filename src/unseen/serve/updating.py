"""New cells for a model on disk, from a request."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unseen import io
from unseen.data import Observations, Vocabulary
from unseen.exceptions import DriftWarning, InvalidDataError
from unseen.model_files import exclusive
from unseen.serve.limits import RequestError
from unseen.serve.names import as_number
from unseen.serve.values import check_values

__all__ = ["update_directory"]


def update_directory(directory: Path, parts: dict[str, Any]) -> dict[str, Any]:
    """Take cells in and forget others; whoever else updates the directory waits.

    Parameters
    ----------
    directory : Path
        Saved model, with its cells.
    parts : dict
        ``cells`` and ``remove`` of a checked request.

    Returns
    -------
    dict
        ``drift``, and whether a new fit is advised.
    """
    with exclusive(directory):
        model = io.load(directory)
        sides = {side: getattr(model, f"{side}_ids_", None) for side in ("row", "col")}
        cells = None
        if parts["cells"]:
            check_values(model, parts["cells"])
            cells = _cells(parts["cells"], sides, (model._n_rows(), model.n_features_in_))
        pairs = None
        if parts["remove"]:
            rows, cols = (_keys(parts["remove"], side, sides[side], "remove") for side in ("row", "col"))
            pairs = list(zip(rows, cols, strict=True))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                model.partial_fit(cells, remove=pairs)
            except InvalidDataError as error:
                of_pairs = str(error).startswith("remove")
                raise RequestError(str(error), "remove" if of_pairs else "cells") from error
        model.save(directory, cells=True)
    advised = any(issubclass(warning.category, DriftWarning) for warning in said)
    return {"drift": float(model.drift_), "refit_advised": advised}


def _cells(
    given: list[dict[str, Any]], sides: dict[str, Vocabulary | None], shape: tuple[int, int]
) -> Observations:
    places: list[Any] = []
    ids: dict[str, Any] = {}
    size = []
    for (side, known), length in zip(sides.items(), shape, strict=True):
        keys = _keys(given, side, known, "cells")
        if known is None:
            places.append(np.array(keys))
            size.append(length)
            if max(keys) >= length:
                raise RequestError(
                    f"cells: the model knows {length} {side}s by position; {max(keys)} is not one of them",
                    f"cells[{int(np.argmax(keys))}].{side}",
                    404,
                )
        else:
            vocabulary, found = Vocabulary.encode(keys)
            ids[f"{side}_ids"] = vocabulary
            places.append(found)
            size.append(len(vocabulary))
    if len(set(zip(*(place.tolist() for place in places), strict=True))) < len(given):
        raise RequestError("cells has a cell more than once", "cells")
    values = np.array([cell["value"] for cell in given])
    rows, cols = places
    return Observations.from_triples(rows, cols, values, (size[0], size[1]), **ids)


def _keys(given: Sequence[dict[str, Any]], side: str, known: Vocabulary | None, field: str) -> list[Any]:
    """Ids of one side, of the kind that the model has."""
    if known is not None and known.values.dtype.kind == "U":
        return [str(cell[side]) for cell in given]
    keys = [as_number(cell[side]) for cell in given]
    for place, key in enumerate(keys):
        if key is None or (known is None and key < 0):
            where = f"{field}[{place}].{side}"
            raise RequestError(f"{where}: the model names its {side}s by whole numbers", where)
    return keys
