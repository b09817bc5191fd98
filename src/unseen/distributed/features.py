"""Side features that are read in partitions: which columns they are, and how they become blocks.

A block of features has one line for each row (or column) of a block of the target, in the same
order. Whatever is wrong is said with the partition and the line that it stands in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from unseen.data.vocabulary import as_id_array
from unseen.distributed.blocks import Indices
from unseen.distributed.engine import Engine, Held
from unseen.distributed.sources import (
    Partition,
    as_table,
    find_partitions,
    holds_ids,
    holds_numbers,
    ids_of,
    read_tables,
)
from unseen.distributed.steps import design_of
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.maps import FeatureMap, Given, WithOnes
from unseen.maps.base import MapParams
from unseen.maps.linear import hardly_varies, squared_deviations
from unseen.typing import Array, Features, FloatArray
from unseen.validation import check_features

__all__ = [
    "Extent",
    "FeatureColumns",
    "FeatureLines",
    "FeatureSource",
    "assemble",
    "extent",
    "make_designs",
    "map_params_of",
    "mean_of",
    "open_features",
    "place_by_ids",
    "place_by_number",
    "read_lines",
]

NUMBERS_AT_A_TIME = 1 << 20
"""Features that are read at a time."""


@dataclass(frozen=True)
class FeatureColumns:
    """Columns of a table of features: one of ids, all others features."""

    argument: str
    ids: str
    features: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names of the columns to read."""
        return [self.ids, *self.features]

    def check(self, schema: Any, where: str) -> None:
        """Refuse a partition whose columns are not those of the first one, or are not numbers."""
        found = [name for name in schema.names if name != self.ids and not name.startswith("__index_level_")]
        if self.ids not in schema.names:
            raise InvalidDataError(
                f"{self.argument}, {where}: there is no column {self.ids!r} with ids; it has "
                f"{', '.join(map(repr, schema.names))}"
            )
        if set(found) != set(self.features):
            raise InvalidDataError(
                f"{self.argument}, {where}: {len(found)} features ({_shown(found)}), the first partition has "
                f"{len(self.features)} ({_shown(self.features)}); all must have the same"
            )
        if not holds_ids(schema.field(self.ids).type):
            raise InvalidDataError(
                f"{self.argument}, {where}: column {self.ids!r} is {schema.field(self.ids).type}; integers "
                "or text are wanted as ids"
            )
        for name in self.features:
            if not holds_numbers(kind := schema.field(name).type):
                raise InvalidDataError(
                    f"{self.argument}, {where}: feature {name!r} is {kind}; numbers are wanted"
                )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


@dataclass(frozen=True)
class FeatureSource:
    """Features of one side: partitions of a table, or an array with one line for each index.

    Attributes
    ----------
    argument : str
        ``"row_features"`` or ``"col_features"``.
    columns : FeatureColumns or None
        Columns of a table; None for an array.
    partitions : list
        `Partition` of a table, or lazy frames of a dask DataFrame.
    array : ndarray, CSR or None
        The features of all indices.
    """

    argument: str
    columns: FeatureColumns | None = None
    partitions: Sequence[Any] = ()
    array: Features | None = None

    @property
    def side(self) -> str:
        """``"row"`` or ``"col"``."""
        return self.argument.removesuffix("_features")

    @property
    def n_features(self) -> int:
        """Features of each line."""
        if self.columns is not None:
            return len(self.columns.features)
        assert self.array is not None
        return int(self.array.shape[1])

    @property
    def numbers_a_line(self) -> int:
        """Numbers that a line takes in memory: an index beside each value of a sparse one."""
        if self.array is None or isinstance(self.array, np.ndarray):
            return self.n_features
        return int(-(-2 * self.array.nnz // max(self.array.shape[0], 1)))

    @property
    def sparse(self) -> bool:
        """Whether only non-zeros are stored."""
        return bool(sparse.issparse(self.array))

    @property
    def names(self) -> list[str] | None:
        """Names of the features, where they have any."""
        return None if self.columns is None else list(self.columns.features)


class FeatureLines(NamedTuple):
    """Some lines of a partition: ids (or indices of the target), features, and where they stand."""

    ids: Array
    values: FloatArray
    lines: Indices
    where: str

    def chosen(self, place: Any) -> FeatureLines:
        """Some of the lines."""
        return FeatureLines(self.ids[place], self.values[place], self.lines[place], self.where)


def open_features(
    side: str, given: Any, like: str, id_column: str | None, shape: tuple[int, int] | None
) -> FeatureSource:
    """Find the columns and partitions of features; nothing but the first schema is read.

    Parameters
    ----------
    side : {"row", "col"}
        Whose features.
    given : str, path, frame, list of frames, dask DataFrame or array
        As ``fit`` takes them.
    like : str
        Name of the target's column of ids.
    id_column : str or None
        Name of the features' column of ids; by default ``like``, else the first column.
    shape : (int, int) or None
        Shape of the target, where its ids are indices.
    """
    argument = f"{side}_features"
    lazy = hasattr(given, "dask")
    is_table = lazy or isinstance(given, (str, bytes)) or hasattr(given, "__fspath__")
    is_table = is_table or hasattr(given, "columns") or hasattr(given, "column_names")
    first = given[0] if isinstance(given, (list, tuple)) and len(given) else None
    if not is_table and not (hasattr(first, "columns") or hasattr(first, "column_names")):
        return _array_source(side, given, shape)
    if lazy:
        names = [str(name) for name in given.columns]
        partitions: list[Any] = list(given.to_delayed())
    else:
        partitions = find_partitions(given)
        names = _column_names(partitions[0])
    ids = id_column or (like if like in names else names[0])
    if ids not in names:
        raise InvalidDataError(f"{argument} has no column {ids!r}; it has {', '.join(map(repr, names))}")
    features = tuple(name for name in names if name != ids)
    if not features:
        raise InvalidDataError(f"{argument} has no column of features beside {ids!r}")
    return FeatureSource(argument, FeatureColumns(argument, ids, features), partitions)


def _array_source(side: str, given: Any, shape: tuple[int, int] | None) -> FeatureSource:
    argument = f"{side}_features"
    if shape is None:
        raise ParameterError(
            f"{argument} is an array, whose lines have no ids; pass a table with a column of ids, or shape= "
            "if the ids of X are indices"
        )
    return FeatureSource(argument, array=check_features(given, shape[0 if side == "row" else 1], argument))


def _column_names(partition: Partition) -> list[str]:
    if partition.place is None:
        found = as_table(partition).schema.names
    else:
        from pyarrow import parquet

        from unseen.distributed.files import filesystem

        fs, place = filesystem(partition.place)
        with fs.open(place, "rb") as handle:
            found = parquet.ParquetFile(handle).schema_arrow.names
    return [name for name in found if not name.startswith("__index_level_")]


def read_lines(partition: Partition, columns: FeatureColumns, dtype: str) -> Iterator[FeatureLines]:
    """Checked lines of a partition, some at a time."""
    at_a_time = max(1024, NUMBERS_AT_A_TIME // len(columns.features))
    for table, first in read_tables(partition, columns, at_a_time):
        where = f"{columns.argument}, {partition.name}"
        array = ids_of(table, columns.ids, where, first)
        if hasattr(array, "dictionary"):
            array = array.dictionary_decode()
        ids = as_id_array(array.to_numpy(zero_copy_only=False), f"{where}: column {columns.ids!r}")
        values: FloatArray = np.empty((len(ids), len(columns.features)), dtype=dtype)
        for place, name in enumerate(columns.features):
            column = table.column(name)
            with np.errstate(over="ignore"):
                values[:, place] = column.to_numpy()
            bad = ~np.isfinite(values[:, place])
            if bad.any():
                line = int(np.argmax(bad))
                raise InvalidDataError(
                    f"{where}: feature {name!r} is {column[line].as_py()} in line {first + line}; only "
                    f"finite numbers of type {dtype} are accepted"
                )
        yield FeatureLines(ids, values, np.arange(first, first + len(ids)), where)


# -- from lines to blocks -----------------------------------------------------------------------


def place_by_number(lines: FeatureLines, length: int) -> FeatureLines:
    """Lines whose ids are indices of the target already."""
    bad = (lines.ids < 0) | (lines.ids >= length) if lines.ids.dtype.kind in "iu" else None
    if bad is None or bad.any():
        line = 0 if bad is None else int(np.argmax(bad))
        raise InvalidDataError(
            f"{lines.where}: id {lines.ids[line].item()!r} in line {lines.lines[line]} is no index of "
            f"0..{length - 1}, which shape= asks for"
        )
    return lines


def place_by_ids(lines: FeatureLines, known: Array, first: int) -> FeatureLines:
    """Lines of ids that the target has, numbered by their place among ``known`` (sorted) from ``first``."""
    if not len(known) or not len(lines.ids):
        return FeatureLines(np.empty(0, np.int64), lines.values[:0], lines.lines[:0], lines.where)
    if (known.dtype.kind == "U") != (lines.ids.dtype.kind == "U"):
        kinds = ["text" if ids.dtype.kind == "U" else "integers" for ids in (lines.ids, known)]
        raise InvalidDataError(f"{lines.where}: the ids are {kinds[0]}, those of the target are {kinds[1]}")
    place = np.minimum(np.searchsorted(known, lines.ids), len(known) - 1)
    there = known[place] == lines.ids
    kept = lines.chosen(there)
    return kept._replace(ids=place[there].astype(np.int64) + first)


def assemble(
    parts: Sequence[FeatureLines], start: int, stop: int, source: FeatureSource, ids: Array | None
) -> FloatArray:
    """Features of the indices ``start`` to ``stop`` in order, each exactly once among the lines.

    ``ids`` are what the user calls these indices, for messages.
    """
    length = stop - start
    count = np.zeros(length, dtype=np.int64)
    for part in parts:
        count += np.bincount(part.ids - start, minlength=length)
    if length and count.max() > 1:
        twice = int(np.argmax(count > 1))
        places = [
            f"{part.where}, line {line}" for part in parts for line in part.lines[part.ids == start + twice]
        ]
        raise InvalidDataError(
            f"{_name(ids, start, twice)!r} has {count[twice]} lines: {'; '.join(places[:2])}; one line for "
            "each id is wanted"
        )
    if length and count.min() == 0:
        absent = int(np.argmax(count == 0))
        where = f" in {len(source.partitions)} partitions"
        raise InvalidDataError(
            f"{source.argument} has no line for the {source.side} id {_name(ids, start, absent)!r}{where} "
            f"({int((count == 0).sum())} of {length} ids of its block); every id of X needs one"
        )
    dtype = parts[0].values.dtype if parts else np.float64
    out: FloatArray = np.empty((length, source.n_features), dtype=dtype)
    for part in parts:
        out[part.ids - start] = part.values
    return out


def _name(ids: Array | None, start: int, place: int) -> Any:
    return start + place if ids is None else ids[place].item()


# -- from features to designs -------------------------------------------------------------------


class Extent(NamedTuple):
    """Number of lines, sums, and extremes of each feature."""

    n_lines: int
    sums: Array
    low: Array
    high: Array


def extent(features: Features) -> Extent:
    """What one block adds to means and extremes."""
    if sparse.issparse(features):
        low, high = (extreme.toarray().ravel() for extreme in (features.min(axis=0), features.max(axis=0)))
        sums = np.asarray(features.sum(axis=0, dtype=np.float64)).ravel()
        return Extent(features.shape[0], sums, low, high)
    return Extent(
        len(features), features.sum(axis=0, dtype=np.float64), features.min(axis=0), features.max(axis=0)
    )


def mean_of(parts: Sequence[Extent]) -> Array:
    """Means over all blocks, added in their order."""
    total: Array = np.zeros_like(parts[0].sums)
    for part in parts:
        total += part.sums
    return total / sum(part.n_lines for part in parts)


def map_params_of(a_map: FeatureMap, parts: Sequence[Extent], squares: Sequence[Array]) -> MapParams:
    """Parameters of a linear map, from sums over the blocks of its features."""
    assert isinstance(a_map, Given)
    total: Array = np.zeros_like(parts[0].sums)
    for part in squares:
        total += part
    deviation = np.sqrt(total / sum(part.n_lines for part in parts))
    params = a_map.scales(mean_of(parts), deviation)
    if not isinstance(a_map, WithOnes):
        return params
    low = np.min([part.low for part in parts], axis=0)
    high = np.max([part.high for part in parts], axis=0)
    return a_map.without_constants(params, hardly_varies(low, high))


def make_designs(engine: Engine, side: str, a_map: FeatureMap, n_threads: int) -> MapParams:
    """Turn the features that the blocks of one side hold into designs; returns the map's parameters."""
    assert isinstance(a_map, Given)
    features = Held("features")
    extents = engine.each(side, extent, features)
    squares = engine.each(side, squared_deviations, features, mean_of(extents)) if a_map.standardize else []
    params = map_params_of(a_map, extents, squares)
    engine.each(side, design_of, features, a_map, params, n_threads, keep="design")
    engine.drop(side, "features")
    return params
