"""Data frames of pandas, polars and pyarrow, through narwhals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt

from unseen.data.times import ACCEPTED, as_times
from unseen.data.vocabulary import Vocabulary, VocabularyBuilder, as_id_array
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.typing import Array
from unseen.validation import as_frame, check_choice

if TYPE_CHECKING:
    from unseen.data.stored import StoredTable

__all__ = ["FrameBackend", "FrameCells", "first_other", "frame_to_triples", "open_frame", "triples_to_frame"]

FrameBackend: TypeAlias = Literal["pandas", "polars", "pyarrow"]
IdIndices: TypeAlias = npt.NDArray[np.int64]


def open_frame(frame: Any, name: str = "frame") -> nw.DataFrame[Any]:
    """Wrap a data frame of any supported library."""
    opened = as_frame(frame, name)
    if opened is None:
        raise InvalidDataError(
            f"{name} must be a pandas or polars DataFrame or a pyarrow Table, got {type(frame).__name__}."
        )
    return opened


@dataclass
class FrameCells:
    """Cells of a frame: indices, what is known about each of them, and what the indices mean."""

    rows: IdIndices
    cols: IdIndices
    row_ids: Vocabulary
    col_ids: Vocabulary
    values: Array | None = None
    weights: Array | None = None
    times: Array | None = None


def frame_to_triples(
    native: Any,
    row: str,
    col: str,
    about: dict[str, str | None],
    row_ids: Vocabulary | None,
    col_ids: Vocabulary | None,
) -> FrameCells:
    """All lines that have a value; ``about`` names the columns of "value", "weight" and "time"."""
    frame = open_frame(native)
    if row == col:
        raise ParameterError(f"row and col are the same column, {row!r}; they need two.")
    for argument, column in {"row": row, "col": col, **about}.items():
        if column is not None and column not in frame.columns:
            raise ParameterError(
                f"{argument}={column!r} is not a column; the frame has {', '.join(map(repr, frame.columns))}."
            )
    if len(frame) == 0:
        raise InvalidDataError(
            f"frame has no line (columns {', '.join(map(repr, frame.columns))}); at least one cell is needed."
        )
    rows, found_rows = encode_ids(frame[row], row, row_ids)
    cols, found_cols = encode_ids(frame[col], col, col_ids)
    value, weight, time = (about[name] for name in ("value", "weight", "time"))
    cells = FrameCells(
        rows,
        cols,
        found_rows,
        found_cols,
        weights=None if weight is None else _numbers(frame[weight], weight),
        times=None if time is None else _moments(frame[time], time),
    )
    if value is None:
        return cells
    cells.values = _numbers(frame[value], value)
    missing = np.isnan(cells.values)
    if missing.any():
        count = int(np.count_nonzero(missing))
        warnings.warn(
            f"{count} of {missing.size} lines have no {value!r}; they are taken as missing cells.",
            DataWarning,
            stacklevel=3,
        )
        for name in ("rows", "cols", "values", "weights", "times"):
            column = getattr(cells, name)
            setattr(cells, name, None if column is None else column[~missing])
    return cells


def encode_ids(
    series: nw.Series[Any], name: str, vocabulary: Vocabulary | None = None
) -> tuple[IdIndices, Vocabulary]:
    """Index of every id of a column, in a given vocabulary or in that of the column itself."""
    nulls = series.is_null().to_numpy()
    if nulls.any():
        raise InvalidDataError(
            f"column {name!r} has no id in row {int(np.argmax(nulls))} "
            f"({int(np.count_nonzero(nulls))} nulls in all); an id is wanted in every row."
        )
    distinct, codes = _factorise(series)
    if vocabulary is not None:
        return vocabulary.index_of(distinct)[codes], vocabulary
    builder = VocabularyBuilder(f"column {name!r}")
    arrival = builder.add(distinct)
    found, final = builder.finish()
    return final[arrival[codes]], found


def _factorise(series: nw.Series[Any]) -> tuple[Array, IdIndices]:
    """Distinct ids of a column and the place of each line among them."""
    if series.dtype in (nw.String, nw.Categorical, nw.Enum):
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            pass
        else:
            # Hashing strings beats sorting them all as fixed-width text, in time and in memory.
            encoded = series.to_arrow()
            chunked = getattr(encoded, "combine_chunks", None)
            encoded = encoded if chunked is None else chunked()
            if not hasattr(encoded, "dictionary"):
                encoded = encoded.dictionary_encode()
            used, codes = np.unique(encoded.indices.to_numpy(zero_copy_only=False), return_inverse=True)
            # A categorical may know categories that do not occur.
            return encoded.dictionary.to_numpy(zero_copy_only=False)[used], codes.astype(np.int64, copy=False)
    values = series.to_numpy()
    if values.dtype.kind == "O":
        values = as_id_array(values, f"column {series.name!r}")
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct, codes.reshape(-1).astype(np.int64, copy=False)


def _numbers(series: nw.Series[Any], name: str) -> Array:
    """Values of a column as floats, NaN where there is none."""
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise InvalidDataError(
            f"column {name!r} must hold numbers, got {series.dtype}{_said(first_other(series))}."
        )
    kind = nw.Float32 if series.dtype == nw.Float32 else nw.Float64
    return series.cast(kind).to_numpy()


def first_other(series: nw.Series[Any]) -> tuple[int, str] | None:
    """The first row of a column that holds no number and is not empty, and what it holds."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return None
    for row, value in enumerate(series.to_list()):
        try:
            float(0.0 if value is None else value)
        except (TypeError, ValueError):
            return row, str(value)
    return None


def _said(other: tuple[int, str] | None) -> str:
    if other is None:
        return "; to_numeric() of pandas or cast() of polars reads numbers from text"
    return f", with {other[1]!r:.60} in row {other[0]}"


def _moments(series: nw.Series[Any], name: str) -> Array:
    """Times of a column; a line without one is refused."""
    nulls = series.is_null().to_numpy()
    if nulls.any():
        raise InvalidDataError(
            f"column {name!r} has no time in row {int(np.argmax(nulls))} "
            f"({int(np.count_nonzero(nulls))} nulls in all); every cell needs one."
        )
    if series.dtype == nw.Datetime and getattr(series.dtype, "time_zone", None) is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if not (series.dtype.is_numeric() or series.dtype in (nw.Datetime, nw.Date, nw.String, nw.Object)):
        raise InvalidDataError(f"column {name!r} must hold times: {ACCEPTED}; got {series.dtype}.")
    return as_times(series.to_numpy(), f"column {name!r}")


def triples_to_frame(
    seen: StoredTable, backend: FrameBackend, row: str, col: str, value: str, weight: str, time: str
) -> Any:
    """Build the frame of `Observations.to_frame`."""
    check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
    rows: Array = seen.rows if seen.row_ids is None else seen.row_ids[seen.rows]
    cols: Array = seen.indices if seen.col_ids is None else seen.col_ids[seen.indices]
    given = [("row", row, rows), ("col", col, cols), ("value", value, seen.values)]
    given += [("weight", weight, seen.weights)] if seen.weights is not None else []
    given += [("time", time, seen.times)] if seen.times is not None else []
    columns = {name: column for _, name, column in given}
    if len(columns) < len(given):
        arguments = ", ".join(argument for argument, _, _ in given)
        names = tuple(name for _, name, _ in given)
        raise ParameterError(f"{arguments} need {len(given)} different names, got {names!r}.")
    if backend != "pandas":
        # Neither takes fixed-width text of NumPy as strings.
        columns = {name: a.astype(object) if a.dtype.kind == "U" else a for name, a in columns.items()}
    try:
        return nw.from_dict(columns, backend=backend).to_native()
    except ImportError as error:
        raise ParameterError(f"backend={backend!r} is not installed: {error}.") from error
