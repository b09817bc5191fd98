"""Data frames of pandas, polars and pyarrow, through narwhals."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt

from unseen.data.vocabulary import Vocabulary, VocabularyBuilder
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.typing import Array
from unseen.validation import check_choice

if TYPE_CHECKING:
    from unseen.data.observations import Observations

__all__ = ["FrameBackend", "frame_to_triples", "open_frame", "triples_to_frame"]

FrameBackend: TypeAlias = Literal["pandas", "polars", "pyarrow"]
IdIndices: TypeAlias = npt.NDArray[np.int64]


def open_frame(frame: Any, name: str = "frame") -> nw.DataFrame[Any]:
    """Wrap a data frame of any supported library."""
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InvalidDataError(
            f"{name} must be a pandas or polars DataFrame or a pyarrow Table, got {type(frame).__name__}."
        ) from error


def frame_to_triples(
    native: Any,
    row: str,
    col: str,
    value: str | None,
    weight: str | None,
    row_ids: Vocabulary | None,
    col_ids: Vocabulary | None,
) -> tuple[IdIndices, IdIndices, Array | None, Array | None, Vocabulary, Vocabulary]:
    """Indices, values and weights of all lines that have a value, and what the indices mean."""
    frame = open_frame(native)
    for argument, column in (("row", row), ("col", col), ("value", value), ("weight", weight)):
        if column is not None and column not in frame.columns:
            raise ParameterError(
                f"{argument}={column!r} is not a column; the frame has {', '.join(map(repr, frame.columns))}."
            )
    rows, found_rows = encode_ids(frame[row], row, row_ids)
    cols, found_cols = encode_ids(frame[col], col, col_ids)
    weights = None if weight is None else _numbers(frame[weight], weight)
    if value is None:
        return rows, cols, None, weights, found_rows, found_cols
    values = _numbers(frame[value], value)
    missing = np.isnan(values)
    if missing.any():
        count = int(np.count_nonzero(missing))
        warnings.warn(
            f"{count} of {values.size} lines have no {value!r}; they are taken as missing cells.",
            DataWarning,
            stacklevel=3,
        )
        rows, cols, values = rows[~missing], cols[~missing], values[~missing]
        weights = None if weights is None else weights[~missing]
    return rows, cols, values, weights, found_rows, found_cols


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
    if values.dtype.kind == "O" and series.dtype in (nw.String, nw.Categorical, nw.Enum):
        values = np.asarray(values.tolist())
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct, codes.reshape(-1).astype(np.int64, copy=False)


def _numbers(series: nw.Series[Any], name: str) -> Array:
    """Values of a column as floats, NaN where there is none."""
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise InvalidDataError(f"column {name!r} must hold numbers, got {series.dtype}.")
    kind = nw.Float32 if series.dtype == nw.Float32 else nw.Float64
    return series.cast(kind).to_numpy()


def triples_to_frame(
    seen: Observations, backend: FrameBackend, row: str, col: str, value: str, weight: str
) -> Any:
    """Build the frame of `Observations.to_frame`."""
    check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
    names = (row, col, value) if seen.weights is None else (row, col, value, weight)
    if len(set(names)) < len(names):
        wanted = (
            "row, col and value need three" if len(names) == 3 else "row, col, value and weight need four"
        )
        raise ParameterError(f"{wanted} different names, got {names!r}.")
    rows: Array = seen.rows if seen.row_ids is None else seen.row_ids[seen.rows]
    cols: Array = seen.indices if seen.col_ids is None else seen.col_ids[seen.indices]
    columns = {row: rows, col: cols, value: seen.values}
    if seen.weights is not None:
        columns[weight] = seen.weights
    if backend != "pandas":
        # Neither takes fixed-width text of NumPy as strings.
        columns = {name: a.astype(object) if a.dtype.kind == "U" else a for name, a in columns.items()}
    try:
        return nw.from_dict(columns, backend=backend).to_native()
    except ImportError as error:
        raise ParameterError(f"backend={backend!r} is not installed: {error}.") from error
