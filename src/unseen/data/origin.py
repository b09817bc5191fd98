"""Where cells came from: what the user calls them, and the library of the user's frames."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from unseen.data.vocabulary import Vocabulary, as_id_array, types_among
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.typing import Array
from unseen.validation import as_frame

__all__ = ["Origin", "labels_of", "make_frame", "refuse_list_of_cells", "wide_ids"]

BACKENDS = ("pandas", "polars", "pyarrow")
MOST_COLUMNS_OF_A_LIST = 6
"""Ids of both sides, value, weight, time and one more."""
FEWEST_IDS = 5
"""Lines from which on whole numbers that differ are taken for ids, not for values."""


@dataclass(frozen=True)
class Origin:
    """Names of the columns of the frame that cells came from, and its library.

    Attributes
    ----------
    row, col : str
        Columns of ids.
    value, weight : str or None
        Columns of values and weights, where there were any.
    backend : {"pandas", "polars", "pyarrow"} or None
        Library of the frame; None for files.

    Examples
    --------
    >>> import pandas as pd
    >>> from unseen import Observations
    >>> Observations.from_frame(pd.DataFrame({"who": ["ann"], "page": [7]}), row="who", col="page").origin
    Origin(row='who', col='page', value=None, weight=None, backend='pandas')
    """

    row: str = "row"
    col: str = "col"
    value: str | None = None
    weight: str | None = None
    backend: str | None = None

    def transposed(self) -> Origin:
        """Rows and columns swapped."""
        return replace(self, row=self.col, col=self.row)

    @classmethod
    def of(cls, frame: nw.DataFrame[Any], **names: Any) -> Origin:
        """Of a frame that narwhals has wrapped."""
        backend = frame.implementation.value
        return cls(**names, backend=backend if backend in BACKENDS else None)


def make_frame(columns: dict[str, Array], backend: str | None) -> Any:
    """A frame of the library that is wanted; of the first one that is installed where that is not.

    Parameters
    ----------
    columns : dict of arrays
        By name.
    backend : str or None
        Library of the result, of those that `Origin` knows.
    """
    wanted = [name for name in (backend, *BACKENDS) if name is not None and find_spec(name) is not None]
    if not wanted:
        raise ParameterError("as_frame=True needs pandas, polars or pyarrow, and none of them is installed.")
    if wanted[0] != "pandas":
        # Neither takes fixed-width text of NumPy as strings.
        columns = {name: a.astype(object) if a.dtype.kind == "U" else a for name, a in columns.items()}
    backend_name: Any = wanted[0]
    return nw.from_dict(columns, backend=backend_name).to_native()


def wide_ids(X: Any) -> tuple[Vocabulary | None, Vocabulary | None, Origin] | None:
    """Ids of a table with one line a row and one column a column; None for what is no frame.

    Names of columns are ids, and so is the index of pandas. A plain ``RangeIndex`` from 0, and labels that
    are neither integers nor text or that repeat, say nothing: then there are positions only.
    """
    if (frame := as_frame(X, "X")) is None:
        return None
    origin = Origin.of(frame)
    if origin.backend != "pandas":
        return None, Vocabulary(np.asarray(frame.columns, dtype=np.str_)), origin
    named = replace(
        origin,
        row="row" if X.index.name is None else str(X.index.name),
        col="col" if X.columns.name is None else str(X.columns.name),
    )
    if named.row == named.col:
        named = replace(named, row="row", col="col")
    return labels_of(X.index, "the index of X"), labels_of(X.columns, "columns of X"), named


def refuse_list_of_cells(X: Any) -> None:
    """Refuse a frame with a cell in each line where one with a line for each row is wanted.

    Text says for sure that a column holds no cells. Whole numbers only may be ids, so there is a warning
    where nothing is missing and the first two columns of them number different pairs.
    """
    frame = as_frame(X, "X")
    assert frame is not None
    types = dict(frame.schema)
    text = [name for name, kind in types.items() if kind in (nw.String, nw.Categorical, nw.Enum)]
    whole = [name for name, kind in types.items() if kind.is_integer()]
    others = [name for name, kind in types.items() if kind.is_numeric() and name not in whole]
    # A list starts with ids of rows, then of columns; numbers with a point are no ids.
    sides = [name for name in types if name in text or name in whole][:2]
    if len(sides) < 2:
        sides = [*sides, *("...",) * (2 - len(sides))]
    values = [name for name in (*others, *whole) if name not in sides]
    way = (
        f"Observations.from_frame(X, row={sides[0]!r}, col={sides[1]!r}"
        + (f", value={values[0]!r}" if values else "")
        + ")"
    )
    if text:
        sample = [f", such as {str(found)!r}" for found in frame[text[0]].drop_nulls().head(1).to_list()]
        raise InvalidDataError(
            f"X has text in column {text[0]!r}{''.join(sample)}, so it is no table with a line for each row "
            f"and a column for each column; a frame with a cell in each line comes through {way}, one with "
            f"ids in a column through X.set_index({text[0]!r}) of pandas"
        )
    _warn_of_ids(frame, whole)
    if not (len(whole) >= 2 and len(types) <= MOST_COLUMNS_OF_A_LIST and len(frame) > len(types)):
        return
    pairs = frame.select(whole[:2])
    listed = len(pairs.unique()) == len(frame) and all(
        len(pairs.select(name).unique()) < len(frame) for name in whole[:2]
    )
    if listed and not any(_has_gaps(frame[name]) for name in types):
        warnings.warn(
            f"X is taken as {len(frame)} rows and {len(types)} columns, {', '.join(map(repr, types))}; if it "
            f"has a cell in each line, it comes through {way}",
            DataWarning,
            stacklevel=4,
        )


def _warn_of_ids(frame: nw.DataFrame[Any], whole: list[str]) -> None:
    """Say so if the first column looks like the ids of the rows of a table with gaps."""
    first, *others = frame.columns
    if first not in whole or len(frame) < FEWEST_IDS or frame[first].n_unique() < len(frame):
        return
    if not _has_gaps(frame[first]) and any(_has_gaps(frame[name]) for name in others):
        warnings.warn(
            f"column {first!r} of X is taken as a column of values, though it holds whole numbers, each "
            f"once, as ids do; X.set_index({first!r}) of pandas makes it the ids of the rows",
            DataWarning,
            stacklevel=5,
        )


def _has_gaps(column: nw.Series[Any]) -> bool:
    """Whether a value is missing."""
    if column.is_null().any():
        return True
    return bool(column.dtype.is_float() and column.is_nan().any())


def labels_of(index: Any, name: str) -> Vocabulary | None:
    """Ids of an index of pandas, where it holds some."""
    plain = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    if plain or index.nlevels > 1 or not index.is_unique:
        return None
    labels = np.asarray(index)
    if labels.dtype.kind == "O":
        kinds = {isinstance(label, str) for label in labels.tolist()}
        if len(kinds) > 1:
            found = types_among(labels.tolist())
            raise InvalidDataError(f"{name} must be all integers or all strings, got {found}.")
        return Vocabulary(labels) if kinds == {True} else None
    return Vocabulary(as_id_array(labels)) if labels.dtype.kind in "iuU" and labels.size else None
