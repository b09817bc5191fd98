"""Partitions of a target on disk or in memory, and the checks that every partition passes.

Nobody has to hold all partitions. Whatever is wrong with one is said with its name.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from unseen.data.vocabulary import as_id_array
from unseen.distributed.blocks import Triples
from unseen.distributed.files import filesystem
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.typing import Array, BoolArray, FloatArray
from unseen.validation import float_dtype

__all__ = [
    "Columns",
    "IdCells",
    "Partition",
    "Wanted",
    "as_table",
    "coded",
    "find_partitions",
    "holds_ids",
    "holds_numbers",
    "ids_of",
    "indexed",
    "read_tables",
]

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """Which columns hold the cells, and what the values mean.

    Attributes
    ----------
    row, col : str
        Columns with ids.
    value : str or None
        Column with values; None counts every line as one.
    positive : bool
        Values are weights of positives: zeros are dropped, negative values refused.
    weights : bool or None
        For positives: None refuses values other than one, False takes every non-zero as one.
    weight : str or None
        Column with weights of the cells; None counts all alike.
    """

    row: str = "row"
    col: str = "col"
    value: str | None = "value"
    positive: bool = False
    weights: bool | None = None
    weight: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns to read."""
        return [name for name in (self.row, self.col, self.value, self.weight) if name is not None]

    def check(self, schema: Any, where: str) -> None:
        """Refuse a partition that lacks a column or has one of another kind."""
        for argument in ("row", "col", "value", "weight"):
            name = getattr(self, argument)
            if name is None:
                continue
            if name not in schema.names:
                raise InvalidDataError(
                    f"{where}: {argument}={name!r} is not a column; it has "
                    f"{', '.join(map(repr, schema.names))}"
                )
            kind = schema.field(name).type
            number = argument in ("value", "weight")
            if not (holds_numbers(kind) if number else holds_ids(kind)):
                wanted = "numbers" if number else "integers or text"
                raise InvalidDataError(f"{where}: column {name!r} is {kind}; {wanted} are wanted")


@dataclass(frozen=True)
class Partition:
    """A part of a target: a row group of a Parquet file, or a frame in memory."""

    name: str
    place: str | None = None
    row_group: int = 0
    frame: Any = None
    n_lines: int = 0


class IdCells(NamedTuple):
    """Cells with the ids of rows and columns: distinct ids in order, and the place of each line's id."""

    row_ids: Array
    row_codes: Codes
    col_ids: Array
    col_codes: Codes
    values: FloatArray | None
    weights: FloatArray | None = None

    def ids(self, side: int) -> Array:
        """Distinct ids of rows (0) or columns (1)."""
        return self.col_ids if side else self.row_ids


def find_partitions(source: Any) -> list[Partition]:
    """Partitions of a Parquet dataset (path or address), of a frame or of a list of frames."""
    if isinstance(source, (str, bytes)) or hasattr(source, "__fspath__"):
        return _parquet_partitions(str(source))
    frames = source if isinstance(source, (list, tuple)) else [source]
    return [
        Partition(f"partition {number}", frame=frame, n_lines=len(frame))
        for number, frame in enumerate(frames)
    ]


def _parquet_partitions(address: str) -> list[Partition]:
    import pyarrow as pa
    from pyarrow import parquet

    fs, root = filesystem(address)
    if fs.isfile(root):
        files = [root]
    else:
        files = [
            name
            for name in sorted(fs.find(root))
            if name.endswith((".parquet", ".pq")) and not posixpath.basename(name).startswith(("_", "."))
        ]
    if not files:
        raise InvalidDataError(f"{address!r} holds no Parquet file; a file or a folder of them is wanted")
    found = []
    for name in files:
        try:
            with fs.open(name, "rb") as handle:
                metadata = parquet.ParquetFile(handle).metadata
        except pa.ArrowInvalid as error:
            raise InvalidDataError(f"partition {name!r} is not a Parquet file: {error}") from error
        found += [
            Partition(
                f"{name!r}, row group {group}",
                fs.unstrip_protocol(name),
                group,
                n_lines=metadata.row_group(group).num_rows,
            )
            for group in range(metadata.num_row_groups)
        ]
    return found


class Wanted(Protocol):
    """Columns to read, and what a partition must have."""

    @property
    def names(self) -> list[str]:
        """Names of the columns to read."""
        ...

    def check(self, schema: Any, where: str) -> None:
        """Refuse a partition that lacks a column or has one of another kind."""
        ...


def read_tables(
    partition: Partition, columns: Wanted, batch_lines: int | None = None
) -> Iterator[tuple[Any, int]]:
    """Tables of a partition with the columns that matter, and the number of the first line of each."""
    import pyarrow as pa

    if partition.place is None:
        table = as_table(partition)
        columns.check(table.schema, partition.name)
        yield table.select(columns.names), 0
        return
    from pyarrow import parquet

    fs, place = filesystem(partition.place)
    with fs.open(place, "rb") as handle:
        try:
            file = parquet.ParquetFile(handle)
            columns.check(file.schema_arrow, partition.name)
            first = 0
            for batch in file.iter_batches(
                batch_lines or 1 << 20,
                row_groups=[partition.row_group],
                columns=columns.names,
                use_threads=False,
            ):
                yield pa.Table.from_batches([batch]), first
                first += batch.num_rows
        except pa.ArrowException as error:
            raise InvalidDataError(f"{partition.name}: {error}") from error


def as_table(partition: Partition) -> Any:
    """A frame in memory as an Arrow table."""
    import narwhals.stable.v1 as nw

    if hasattr(partition.frame, "combine_chunks"):
        return partition.frame
    try:
        return nw.from_native(partition.frame, eager_only=True).to_arrow()
    except TypeError as error:
        raise InvalidDataError(
            f"{partition.name} must be a pandas or polars DataFrame or a pyarrow Table, got "
            f"{type(partition.frame).__name__}"
        ) from error


def holds_numbers(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def holds_ids(kind: Any) -> bool:
    """Whether an Arrow type is one of ids: integers or text."""
    from pyarrow import types

    inside = kind.value_type if types.is_dictionary(kind) else kind
    kinds = (types.is_integer, types.is_string, types.is_large_string, types.is_null, types.is_string_view)
    return any(is_kind(inside) for is_kind in kinds)


def _numbers(table: Any, name: str, where: str, first: int, *, lowest: float = -np.inf) -> FloatArray:
    """A column of finite numbers, none of them missing."""
    column = table.column(name)
    if column.null_count:
        line = int(np.argmax(column.is_null().to_numpy()))
        raise InvalidDataError(f"{where}: {name!r} is missing in line {first + line}")
    raw = column.to_numpy()
    values: FloatArray = raw.astype(float_dtype(raw.dtype), copy=False)
    good = np.isfinite(values) & (values >= lowest)
    if not good.all():
        line = int(np.argmin(good))
        wanted = "a missing cell has no line" if lowest < 0 else f"a weight is {lowest:g} or larger"
        raise InvalidDataError(
            f"{where}: {name!r} is {values[line]} in line {first + line}; only finite numbers are "
            f"accepted, {wanted}"
        )
    return values


def _values(
    table: Any, columns: Columns, where: str, first: int
) -> tuple[FloatArray | None, FloatArray | None, BoolArray | None]:
    """Checked values and weights, and which lines count; None where all do."""
    weights = None
    if columns.weight is not None:
        weights = _numbers(table, columns.weight, where, first, lowest=0.0)
    if columns.value is None:
        return None, weights, None
    values = _numbers(table, columns.value, where, first)
    if not columns.positive:
        return values, weights, None
    wrong = values < 0 if columns.weights is not None else (values != 0) & (values != 1)
    if wrong.any():
        line = int(np.argmax(wrong))
        raise InvalidDataError(
            f"{where}: {columns.value!r} is {values[line]:g} in line {first + line}; positives are ones; "
            "pass weights=True to let values above zero weigh the positives, or weights=False to take every "
            "non-zero as one positive"
        )
    kept = values != 0
    if not columns.weights:
        values = np.ones_like(values)
    if kept.all():
        return values, weights, None
    return values[kept], None if weights is None else weights[kept], kept


def ids_of(table: Any, name: str, where: str, first: int) -> Any:
    """A column of ids, none of them missing."""
    column = table.column(name)
    if column.null_count:
        line = int(np.argmax(column.is_null().to_numpy()))
        raise InvalidDataError(f"{where}: column {name!r} has no id in line {first + line}")
    return column.combine_chunks()


def coded(table: Any, columns: Columns, where: str, first: int = 0) -> IdCells:
    """Cells of a table with the distinct ids of its rows and columns."""
    values, weights, kept = _values(table, columns, where, first)
    sides: list[Any] = []
    for name in (columns.row, columns.col):
        array = ids_of(table, name, where, first)
        encoded = array if hasattr(array, "dictionary") else array.dictionary_encode()
        distinct = as_id_array(encoded.dictionary.to_numpy(zero_copy_only=False), f"{where}: column {name!r}")
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        if kept is not None:
            codes = codes[kept]
        used, codes = np.unique(codes, return_inverse=True)  # a categorical may know more than it holds
        distinct = distinct[used]
        order = np.argsort(distinct, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        sides += [distinct[order], place[codes.reshape(-1)]]
    rows, row_codes, cols, col_codes = sides
    return IdCells(rows, row_codes, cols, col_codes, values, weights)


def indexed(table: Any, columns: Columns, shape: tuple[int, int], where: str, first: int = 0) -> Triples:
    """Cells of a table whose ids are indices from 0."""
    values, weights, kept = _values(table, columns, where, first)
    sides = []
    for name, length in zip((columns.row, columns.col), shape, strict=True):
        array = ids_of(table, name, where, first)
        indices = array.to_numpy(zero_copy_only=False)
        if indices.dtype.kind not in "iu":
            raise InvalidDataError(f"{where}: column {name!r} must hold integers where shape= is given")
        bad = (indices < 0) | (indices >= length)
        if bad.any():
            line = int(np.argmax(bad))
            raise InvalidDataError(
                f"{where}: {name!r} is {indices[line]} in line {first + line}, outside of 0..{length - 1}"
            )
        sides.append(indices if kept is None else indices[kept])
    return Triples(sides[0], sides[1], values, weights)


def check_columns(names: Sequence[str | None]) -> None:
    """Refuse columns that are used twice."""
    given = [name for name in names if name is not None]
    if len(set(given)) < len(given):
        raise ParameterError(f"row, col, value and weight must be different columns, got {given}")
