"""Tables in files: looked into, read in batches."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from unseen.data.streaming import open_text
from unseen.exceptions import InvalidDataError

__all__ = [
    "column_names",
    "guess_separator",
    "is_parquet",
    "is_table",
    "read_batches",
    "read_frame",
    "read_ids",
]

SEPARATORS = (",", "\t", ";", "|")
BATCH_BYTES = 1 << 24


def is_parquet(path: Path) -> bool:
    """Whether the name says Parquet."""
    return path.suffix in (".parquet", ".pq")


def is_table(path: Path) -> bool:
    """Whether the name says that there are columns, with or without a header."""
    return is_parquet(path) or bool({".csv", ".tsv"} & set(path.suffixes))


def guess_separator(path: Path, given: str | None) -> str:
    """What stands between fields: as given, else whatever occurs most often in the first line."""
    if given is not None:
        return {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}.get(given, given)
    if is_parquet(path):
        return ","
    with open_text(path) as handle:
        first = handle.readline()
    return max(SEPARATORS, key=first.count)


def column_names(path: Path, sep: str, header: bool = True) -> list[str]:
    """Names of the columns; their positions as text where there is no header."""
    if is_parquet(path):
        return list(_open_parquet(path).schema_arrow.names)
    with open_text(path) as handle:
        first = next((fields for fields in csv.reader(handle, delimiter=sep) if fields), None)
    if first is None:
        raise InvalidDataError(f"{path}: the file is empty.")
    return first if header else [str(position) for position in range(len(first))]


def read_batches(path: Path, columns: list[str], *, sep: str, header: bool = True) -> Iterator[list[Any]]:
    """Columns of a file as pyarrow arrays, some lines at a time; ids of text files stay text."""
    if is_parquet(path):
        yield from _complete(_open_parquet(path).iter_batches(columns=columns), columns, path)
        return
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = column_names(path, sep, header)
    read = arrow_csv.ReadOptions(
        column_names=names, skip_rows=0, skip_rows_after_names=int(header), block_size=BATCH_BYTES
    )
    parse = arrow_csv.ParseOptions(delimiter=sep, newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()), include_columns=columns, strings_can_be_null=False
    )
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            yield from _complete(arrow_csv.open_csv(stream, read, parse, convert), columns, path)
    except pa.ArrowInvalid as error:
        raise InvalidDataError(f"{path}: {error}.") from error


def read_frame(path: Path, id_column: str, *, sep: str) -> Any:
    """A whole table; ids of text files stay text, the other columns get the type they look like."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    if is_parquet(path):
        return _open_parquet(path).read()
    parse = arrow_csv.ParseOptions(delimiter=sep, newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(column_types={id_column: pa.string()})
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return arrow_csv.read_csv(stream, parse_options=parse, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise InvalidDataError(f"{path}: {error}.") from error


def read_ids(path: Path) -> Any:
    """Ids from the first column of a table (.csv, .tsv, .parquet), or one a line from any other file."""
    import pyarrow as pa

    if is_table(path):
        sep = guess_separator(path, None)
        batches = [batch[0] for batch in read_batches(path, column_names(path, sep)[:1], sep=sep)]
        ids = pa.concat_arrays(batches) if batches else pa.array([], pa.string())
    else:
        with open_text(path) as handle:
            ids = pa.array([line.strip() for line in handle if line.strip()], pa.string())
    if not len(ids):
        raise InvalidDataError(f"{path}: the file holds no ids.")
    return ids


def _open_parquet(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InvalidDataError(f"{path}: {error}.") from error


def _complete(batches: Iterable[Any], columns: list[str], path: Path) -> Iterator[list[Any]]:
    """Columns of each batch; an id that is not there is an error with its line."""
    import pyarrow as pa
    from pyarrow import compute

    start = 0
    for batch in batches:
        found = [batch.column(name) for name in columns]
        for name, ids in zip(columns, found, strict=True):
            missing = ids.is_null()
            if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
                missing = compute.or_kleene(missing, compute.equal(compute.binary_length(ids), 0))
            place = compute.index(missing, True).as_py()
            if place >= 0:
                raise InvalidDataError(
                    f"{path}: column {name!r} has no id in line {start + place} (from 0, header apart)."
                )
        start += batch.num_rows
        yield found
