"""When cells arose: numbers or moments, one for each cell."""

from __future__ import annotations

import re
import warnings
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.data.pattern import SideIds, spot
from unseen.exceptions import InvalidDataError
from unseen.typing import Array, IndexArray

__all__ = ["TimeColumn", "as_times", "check_times", "latest", "parse_times", "shown_time"]

ACCEPTED = "numbers, datetimes or text as 2024-05-31 or 2024-05-31T18:30:00"
_ZONE = re.compile(r"\d[T ].*(Z|[+-]\d\d:?\d\d)$")


def check_times(times: Any, rows: IndexArray, cols: IndexArray, ids: SideIds = (None, None)) -> Array:
    """One moment for each cell; a cell without one is refused."""
    moments = as_times(times, "times")
    if moments.shape != rows.shape:
        raise InvalidDataError(
            f"times must hold {rows.size} moments, one a cell; got {moments.dtype} of shape {moments.shape}."
        )
    missing = _missing(moments)
    if missing.any():
        first = int(np.argmax(missing))
        raise InvalidDataError(
            f"times holds {moments[first]} for {spot(int(rows[first]), int(cols[first]), ids)}; "
            "every cell needs a finite time."
        )
    return moments


def as_times(times: Any, name: str) -> Array:
    """An array of int64, float64 or datetime64; other kinds are refused, moments of a zone become UTC."""
    array: Array = np.asarray(times)
    if array.dtype.kind == "M":
        return array
    if array.dtype.kind in "iu":
        return array.astype(np.int64) if array.dtype != np.uint64 else array.astype(np.float64)
    if array.dtype.kind == "f":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "O" and array.size:
        values = array.ravel().tolist()
        if all(isinstance(value, (date, np.datetime64)) for value in values):
            return np.array([_in_utc(value) for value in values], dtype="datetime64[us]").reshape(array.shape)
        if all(isinstance(value, str) for value in values):
            array = array.astype(np.str_)
    if array.dtype.kind in "UT":
        return parse_times(array.astype(np.str_), name)
    raise InvalidDataError(f"{name} must hold {ACCEPTED}; got {array.dtype}.")


def parse_times(texts: npt.NDArray[np.str_], name: str) -> Array:
    """Moments from text: numbers where each is one, else dates of ISO 8601 in UTC."""
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        pass
    else:
        whole = np.isfinite(numbers).all() and (np.abs(numbers) < 2**53).all()
        integers = numbers.astype(np.int64) if whole else numbers
        return integers if whole and np.array_equal(integers, numbers) else numbers
    zoned = [_ZONE.search(text) is not None for text in texts.tolist()]
    if any(zoned) and not all(zoned):
        raise InvalidDataError(
            f"{name} has {texts[zoned.index(True)]!r} with a time zone and {texts[zoned.index(False)]!r} "
            "without; all or none would be accepted."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # NumPy says that it goes over to UTC
            return texts.astype("datetime64[us]")
    except ValueError:
        for position, text in enumerate(texts.tolist()):
            try:
                np.datetime64(text.removesuffix("Z"), "us")
            except ValueError:
                raise InvalidDataError(
                    f"{name} has {text!r} at place {position} (from 0), which is no time; "
                    f"{ACCEPTED} would be accepted."
                ) from None
        raise


def latest(rows: IndexArray, cols: IndexArray, times: Array) -> Array:
    """The latest time of each different cell, in row order."""
    order = np.lexsort((cols, rows))
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = (np.diff(rows[order]) != 0) | (np.diff(cols[order]) != 0)
    starts = np.flatnonzero(new)
    return np.maximum.reduceat(times[order], starts) if starts.size else times[:0]


def shown_time(moment: Any) -> str:
    """A moment as people write it: a date where it has no hours."""
    if not isinstance(moment, np.datetime64):
        return f"{moment:g}" if isinstance(moment, float) and abs(moment) < 1e6 else f"{moment}"
    day = moment.astype("datetime64[D]")
    return str(day) if day == moment else str(moment.astype("datetime64[s]"))


class TimeColumn:
    """A column of times that arrives in chunks of one kind."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._chunks: list[Array] = []

    def append(self, chunk: Any) -> None:
        """Take in a chunk, an array or a pyarrow array."""
        moments = as_times(_from_arrow(chunk) if hasattr(chunk, "null_count") else chunk, self._name)
        missing = _missing(moments)
        line = sum(known.size for known in self._chunks)
        if missing.any():
            line += int(np.argmax(missing))
            raise InvalidDataError(f"{self._name} has no time in line {line} (from 0, header apart).")
        if self._chunks and (self._chunks[0].dtype.kind == "M") != (moments.dtype.kind == "M"):
            raise InvalidDataError(
                f"{self._name} has numbers and dates, the second kind at line {line} or soon after."
            )
        self._chunks.append(moments)

    def finish(self) -> Array:
        """Give up the times."""
        whole = np.concatenate(self._chunks)
        self._chunks.clear()
        return whole


def _from_arrow(chunk: Any) -> Array:
    import pyarrow as pa

    if pa.types.is_timestamp(chunk.type) and chunk.type.tz is not None:
        chunk = chunk.cast(pa.timestamp(chunk.type.unit))  # what is stored is UTC
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    if chunk.null_count and not pa.types.is_temporal(chunk.type):
        chunk = chunk.cast(pa.float64()) if not pa.types.is_string(chunk.type) else chunk.fill_null("nan")
    values: Array = chunk.to_numpy(zero_copy_only=False)
    return values


def _missing(moments: Array) -> npt.NDArray[np.bool_]:
    if moments.dtype.kind == "M":
        return np.isnat(moments)
    return ~np.isfinite(moments) if moments.dtype.kind == "f" else np.zeros(moments.shape, dtype=np.bool_)


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
