"""Predictions for pairs of ids: known ones, and new ones through their features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.feature_files import FeatureFile
from unseen.cli.sources import Indices, find, training_ids
from unseen.data import Vocabulary
from unseen.exceptions import ModelFileError, UnknownIdError
from unseen.typing import Features, FloatArray

__all__ = ["Side", "Sides", "predict_batch"]

MAX_BLOCK = 4_000_000
"""Cells of a dense block of predictions for new rows or columns."""


@dataclass(frozen=True)
class Side:
    """The ids of one side that can be predicted: those of the training data and new ones with features."""

    known: Vocabulary
    new: Vocabulary | None
    features: Features | None

    @classmethod
    def of(
        cls,
        model: Any,
        side: Any,
        path: Path | None,
        id_column: str | None,
        like: str,
        encoding: str = "utf-8",
    ) -> Side:
        """Read the features of new ids, if a file is given."""
        known = training_ids(model, side)
        names = (getattr(model, "source_", None) or {}).get(f"{side}_feature_names")
        found = (
            None if path is None else FeatureFile(path, id_column, encoding).of_new_ids(known, like, names)
        )
        return cls(known, None, None) if found is None else cls(known, *found)

    def shown(self, ids: Any, unknown: str) -> Any:
        """Ids as they are written out: integers again where every id is one of the training data."""
        import pyarrow as pa

        only_known = self.new is None and unknown == "error"
        return ids.cast(pa.int64()) if only_known and self.known.values.dtype.kind != "U" else ids

    def locate(self, ids: Any) -> tuple[Indices, Indices]:
        """Place of each id among the training ids and among the new ones, -1 for none."""
        known = find(self.known, ids)
        new = np.full(known.size, -1) if self.new is None else find(self.new, ids)
        return known, np.where(known >= 0, -1, new)


@dataclass(frozen=True)
class Sides:
    """Both sides."""

    row: Side
    col: Side


def predict_batch(
    model: Any, sides: Sides, rows: Any, cols: Any, unknown: str, path: Path
) -> tuple[FloatArray, int]:
    """Predictions for some pairs, and for how many of them an id was unknown.

    Parameters
    ----------
    model : completer
        Fitted.
    sides : Sides
        Ids that can be predicted.
    rows, cols : pyarrow.Array
        Ids of the pairs.
    unknown : {"error", "nan", "baseline"}
        What to do about other ids.
    path : Path
        File of the pairs, for messages.
    """
    i, new_i = sides.row.locate(rows)
    j, new_j = sides.col.locate(cols)
    both = (i >= 0) & (j >= 0)
    of_known = model.predict_entries(i[both], j[both], positions=True)
    predicted = np.full(len(i), np.nan, dtype=of_known.dtype)
    predicted[both] = of_known
    for mask, left, right in (
        ((new_i >= 0) & (j >= 0), new_i, j),
        ((i >= 0) & (new_j >= 0), i, new_j),
        ((new_i >= 0) & (new_j >= 0), new_i, new_j),
    ):
        if mask.any():
            is_new = (bool(new_i[mask][0] >= 0), bool(new_j[mask][0] >= 0))
            predicted[mask] = _predict_new(model, sides, left[mask], right[mask], is_new)
    row_unknown, col_unknown = (i < 0) & (new_i < 0), (j < 0) & (new_j < 0)
    lost = row_unknown | col_unknown
    if lost.any() and unknown == "error":
        raise UnknownIdError(_name_unknown(path, ("row", rows, row_unknown), ("column", cols, col_unknown)))
    if lost.any() and unknown == "baseline":
        predicted[lost] = _baseline(model, i[lost], j[lost])
    return predicted, int(np.count_nonzero(lost))


def _predict_new(
    model: Any, sides: Sides, left: Indices, right: Indices, is_new: tuple[bool, bool]
) -> FloatArray:
    """Cells of new rows or columns, by blocks of bounded size."""
    predicted = np.empty(len(left))
    if not is_new[0]:  # new columns of known rows: blocks of columns
        for part, chosen, place in _chunks(right, len(sides.row.known)):
            assert sides.col.features is not None
            predicted[part] = model.predict_new(col_features=sides.col.features[chosen])[left[part], place]
        return predicted
    assert sides.row.features is not None
    width = len(sides.col.known) if not is_new[1] else len(np.unique(right))
    for part, chosen, place in _chunks(left, width):
        features = sides.row.features[chosen]
        if not is_new[1]:
            predicted[part] = model.predict_new(features)[place, right[part]]
        else:
            assert sides.col.features is not None
            cols, other = np.unique(right[part], return_inverse=True)
            predicted[part] = model.predict_new(features, sides.col.features[cols])[place, other]
    return predicted


def _chunks(entities: Indices, width: int) -> Iterator[tuple[Indices, Indices, Indices]]:
    """Positions, distinct entities and place among these, for some entities at a time."""
    order = np.argsort(entities, kind="stable")
    distinct, first = np.unique(entities[order], return_index=True)
    step = max(1, MAX_BLOCK // max(width, 1))
    ends = np.append(first, len(order))
    for start in range(0, len(distinct), step):
        stop = min(start + step, len(distinct))
        part = order[ends[start] : ends[stop]]
        chosen = distinct[start:stop]
        yield part, chosen, np.searchsorted(chosen, entities[part])


def _baseline(model: Any, i: Indices, j: Indices) -> FloatArray:
    """Mean plus the bias of the known side."""
    from unseen import BiasModel

    baseline = model if isinstance(model, BiasModel) else getattr(model, "baseline_", None)
    if baseline is None:
        raise ModelFileError(
            "--unknown baseline: this model has none; `unseen fit` keeps one for explicit tasks"
        )
    row = np.where(i >= 0, baseline.row_bias_[np.maximum(i, 0)], 0.0)
    col = np.where(j >= 0, baseline.col_bias_[np.maximum(j, 0)], 0.0)
    return np.asarray(baseline.mean_ + row + col)


def _name_unknown(path: Path, *sides: tuple[str, Any, Any]) -> str:
    parts = []
    for name, ids, mask in sides:
        if mask.any():
            distinct = list(dict.fromkeys(ids.filter(mask).to_pylist()))
            shown = ", ".join(map(repr, distinct[:5])) + (", ..." if len(distinct) > 5 else "")
            parts.append(f"{len(distinct)} unknown {name} ids: {shown}")
    return f"{path}: {'; '.join(parts)}. --unknown nan or baseline, or a file of features, lets them pass."
