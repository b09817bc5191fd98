"""From the user's ids to positions and back, for what is asked of a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unseen.data.observations import Observations
from unseen.data.origin import Origin
from unseen.data.vocabulary import Vocabulary, as_id_array
from unseen.exceptions import InvalidDataError, UnknownIdError
from unseen.typing import Array, IndexArray
from unseen.validation import as_frame, check_choice, check_indices, refuse_masked

__all__ = ["SeenCells", "by_position", "cells_like", "find_ids", "named", "onto"]

Side = Literal["row", "col"]
NOUNS = {"row": "row", "col": "column"}


@dataclass(frozen=True)
class SeenCells:
    """Which cells a model was fitted to, row by row.

    Attributes
    ----------
    indptr, indices : ndarray
        As of a CSR matrix.
    n_cols : int
        Columns of the matrix.
    """

    indptr: IndexArray
    indices: IndexArray
    n_cols: int

    def __post_init__(self) -> None:
        starts, cols = self.indptr, self.indices
        if not (starts.size and starts[0] == 0 and starts[-1] == cols.size and np.all(np.diff(starts) >= 0)):
            raise InvalidDataError("the cells that the model was fitted to have inconsistent lengths")
        if cols.size and not (cols.min() >= 0 and cols.max() < self.n_cols):
            raise InvalidDataError(f"a cell that the model was fitted to is outside of {self.n_cols} columns")

    @classmethod
    def of(cls, cells: Observations) -> SeenCells:
        """The stored cells."""
        return cls(cells.indptr, cells.indices, cells.shape[1])

    def rows(self, picked: IndexArray) -> tuple[IndexArray, IndexArray]:
        """``indptr`` and ``indices`` of some rows."""
        starts = self.indptr[picked]
        counts = self.indptr[picked + 1] - starts
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(self.indptr.dtype)
        place = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], counts)
        return ends, self.indices[place]


def find_ids(
    ids: Any,
    vocabulary: Vocabulary | None,
    length: int,
    argument: str,
    side: Side,
    *,
    on_unknown: str = "raise",
    accepted: tuple[str, ...] = ("raise",),
) -> npt.NDArray[np.int64]:
    """Position of each id, -1 for the unknown ones where they are let pass.

    Parameters
    ----------
    ids : array-like, or one id
        Ids where there is a vocabulary, else positions.
    vocabulary : Vocabulary or None
        What the positions are called.
    length : int
        How many there are.
    argument : str
        Name of the argument, for messages.
    side : {"row", "col"}
        What is asked for, for messages.
    on_unknown : str
        "raise" refuses unknown ids; all else lets them pass.
    accepted : tuple of str
        What the caller takes as ``on_unknown``.

    Returns
    -------
    ndarray of int64
    """
    refuse_masked(ids, argument)
    if vocabulary is None:
        return check_indices(argument, _as_array(ids), length)
    asked = as_id_array(_as_array(ids), argument)
    is_text = vocabulary.values.dtype.kind == "U"
    noun = NOUNS[side]
    if asked.size and is_text != (asked.dtype.kind == "U"):
        found, known = ("integers", "strings") if is_text else ("strings", "integers")
        raise UnknownIdError(
            f"{argument} holds {found} ({_shown(asked)}), but the {noun}s of this model are named by {known} "
            f"({vocabulary.sample()}); positions=True takes {noun} numbers"
        )
    found_at = vocabulary.find(asked)
    unknown = found_at < 0
    if on_unknown == "raise" and unknown.any():
        others = [f"on_unknown={choice!r}" for choice in accepted if choice != "raise"]
        hint = f"; {' or '.join(others)} lets them pass" if others else ""
        raise UnknownIdError(
            f"{argument} has {int(unknown.sum())} of {asked.size} ids that are no {noun} of this model: "
            f"{_shown(asked[unknown])} (first at place {int(np.argmax(unknown))}); it knows "
            f"{len(vocabulary)} {noun}s ({vocabulary.sample()}){hint}"
        )
    return found_at


def named(places: IndexArray, vocabulary: Vocabulary | None) -> Array:
    """Ids at positions; what stands where there is none (-1) is an empty text, or -1 again."""
    if vocabulary is None:
        return places
    values = vocabulary.values
    ids: Array = values[np.maximum(places, 0)]
    nothing = places < 0
    if nothing.any():
        ids[nothing] = "" if values.dtype.kind == "U" else values.dtype.type(0) - (values.dtype.kind == "i")
    return ids


def onto(
    cells: Observations,
    side: Side,
    vocabulary: Vocabulary | None,
    length: int,
    argument: str,
    *,
    unknown: Literal["raise", "skip", "some"] = "raise",
    accepted: tuple[str, ...] = ("raise",),
) -> Observations:
    """Cells with one side in the order of a model, matched by id.

    Parameters
    ----------
    cells : Observations
        Cells with ids of that side, where the model has them.
    side : {"row", "col"}
        Which side.
    vocabulary : Vocabulary or None
        What the model calls that side.
    length : int
        Rows or columns of the model.
    argument : str
        Name of the argument, for messages.
    unknown : {"raise", "skip", "some"}
        Refuse unknown ids, leave out their cells, or leave them out if some ids are known.
    accepted : tuple of str
        What the caller takes as ``on_unknown``.

    Returns
    -------
    Observations
        Of the model's length on that side.
    """
    axis, noun = (0, "row") if side == "row" else (1, "column")
    own = cells.row_ids if side == "row" else cells.col_ids
    if vocabulary is None:
        if own is not None:
            raise InvalidDataError(
                f"{argument} names its {noun}s ({own.sample()}), but the model was fitted without ids of "
                f"{noun}s, so they cannot be matched; positions=True takes them in their order"
            )
        return cells
    if own is None:
        raise InvalidDataError(
            f"{argument} has no ids of {noun}s, but the model knows its {noun}s by id "
            f"({vocabulary.sample()}): give it as Observations with {side}_ids or as a frame; positions=True "
            f"takes its {noun}s in the order of the training data"
        )
    if own is vocabulary or own == vocabulary:
        return cells
    check_choice("unknown", unknown, ("raise", "skip", "some"))
    used = np.unique(cells.rows if side == "row" else cells.indices)
    place = np.full(len(own), -1, dtype=np.int64)
    place[used] = find_ids(
        own[used], vocabulary, length, argument, side, on_unknown=unknown, accepted=accepted
    )
    if unknown == "some" and used.size and np.all(place[used] < 0):
        raise UnknownIdError(
            f"{argument} has no id that is a {noun} of this model: {_shown(own[used])}; it knows "
            f"{vocabulary.sample()}"
        )
    kept = place[cells.rows if side == "row" else cells.indices] >= 0
    cells = cells if kept.all() else cells.select(kept)
    moved = [cells.rows.astype(np.int64), cells.indices.astype(np.int64)]
    moved[axis] = place[moved[axis]]
    shape = (length, cells.shape[1]) if side == "row" else (cells.shape[0], length)
    ids = (vocabulary, cells.col_ids) if side == "row" else (cells.row_ids, vocabulary)
    return Observations.from_triples(
        moved[0],
        moved[1],
        cells.values,
        shape,
        weights=cells.weights,
        times=cells.times,
        row_ids=ids[0],
        col_ids=ids[1],
    )


def cells_like(X: Any, origin: Origin | None, argument: str, *, values: bool = True) -> Observations:
    """Cells in any form; a frame with the columns that the training frame had has a cell in each line.

    Parameters
    ----------
    X : matrix, frame or Observations
        What the user passed.
    origin : Origin or None
        Where the training cells came from.
    argument : str
        Name of the argument, for messages.
    values : bool, default=True
        Whether values matter, and not only which cells there are.

    Returns
    -------
    Observations
    """
    frame = None if origin is None or isinstance(X, Observations) else as_frame(X, argument)
    if frame is None or origin is None or not {origin.row, origin.col} <= set(frame.columns):
        return Observations.from_any(X)
    value = origin.value if origin.value in frame.columns else None
    weight = origin.weight if origin.weight in frame.columns else None
    others = [name for name in frame.columns if name not in (origin.row, origin.col, weight)]
    if values and value is None and (origin.value is not None or others):
        missing = "a column of values" if origin.value is None else f"the column {origin.value!r}"
        raise InvalidDataError(
            f"{argument} has a cell in each line, by its columns {origin.row!r} and {origin.col!r}, and "
            f"lacks {missing}: Observations.from_frame(frame, row={origin.row!r}, col={origin.col!r}, "
            "value=...) says where values are"
        )
    return Observations.from_frame(X, row=origin.row, col=origin.col, value=value, weight=weight)


def by_position(model: Any) -> dict[str, bool]:
    """What makes a fitted model take positions, as splits have them."""
    best = getattr(model, "best_estimator_", model)
    has_ids = any(getattr(best, f"{side}_ids_", None) is not None for side in ("row", "col"))
    return {"positions": True} if has_ids else {}


def _as_array(ids: Any) -> Any:
    return ids if isinstance(ids, (list, tuple)) else np.asarray(ids)


def _shown(ids: Array) -> str:
    """The first of some ids, as they are shown."""
    distinct = list(dict.fromkeys(ids.tolist()))
    return ", ".join(map(repr, distinct[:5])) + (", ..." if len(distinct) > 5 else "")
