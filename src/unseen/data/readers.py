"""Readers of cells from files: tables of triples and lists of edges, in chunks."""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from unseen.data.observations import Duplicates, Observations
from unseen.data.origin import Origin
from unseen.data.streaming import GrowingArray, IdColumn, PathLike, finish_ids, open_text, unreadable
from unseen.data.times import TimeColumn
from unseen.data.vocabulary import VocabularyBuilder
from unseen.exceptions import DataWarning, ParameterError
from unseen.typing import CSR, Array
from unseen.validation import check_count

__all__ = ["read_edges", "read_triples"]

Column: TypeAlias = str | int
Chunk: TypeAlias = tuple[Any, Any, list[Array], Any]
"""Row ids, column ids, numbers (values, weights, where there are such columns) and times of some lines."""

_NO_VALUE = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")


def read_triples(
    path: PathLike,
    *,
    row: Column,
    col: Column,
    value: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
    sep: str = ",",
    header: bool = True,
    encoding: str = "utf-8",
    duplicates: Duplicates | None = None,
    chunk_rows: int = 1 << 18,
) -> Observations:
    r"""Read one cell from each line of a CSV, TSV or Parquet file.

    The file is read in chunks, so memory stays within a small multiple of the result. Ids that are
    all written as integers become integers, others stay text.

    Parameters
    ----------
    path : path-like
        Plain or gzipped text (``.gz``), or Parquet (``.parquet``, ``.pq``).
    row, col : str or int
        Columns with the ids, by name or by position from 0.
    value : str or int, optional
        Column with the values; without it every pair counts one. An empty field is a missing cell.
    weight : str or int, optional
        Column with how much each cell counts, a number zero or larger in every line.
    time : str or int, optional
        Column with when each cell arose: numbers (such as Unix seconds), or dates as 2024-05-31 and
        2024-05-31T18:30:00, in every line. Moments with a time zone are kept in UTC.
    sep : str, default=","
        What stands between two fields.
    header : bool, default=True
        Whether the first line holds the names.
    encoding : str, default="utf-8"
        Encoding of text.
    duplicates : {"mean", "sum"}, optional
        By default values are averaged and counts are summed.
    chunk_rows : int, default=262144
        Lines that are held at a time, about.

    Returns
    -------
    Observations
        With vocabularies.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "ratings.csv"
    >>> _ = file.write_text("who,film,stars\nann,7,5\nbob,9,3\n")
    >>> read_triples(file, row="who", col="film", value="stars")
    Observations(2 x 2, 2 cells = 50%, float64, row ids ['ann', 'bob'], col ids [7, 9])
    """
    check_count("chunk_rows", chunk_rows)
    is_parquet = Path(path).suffix in (".parquet", ".pq")
    given = {name: column for name, column in (("value", value), ("weight", weight)) if column is not None}
    if is_parquet:
        chunks = _parquet_chunks(path, row, col, given, time, chunk_rows)
    else:
        if len(sep) != 1:
            raise ParameterError(f"sep must be one character, got {sep!r}.")
        table = _TextTable(path, row, col, given, time, sep, header, encoding)
        chunks = table.chunks(chunk_rows)
    row_builder, col_builder = (VocabularyBuilder(f"{path}: column {name!r}") for name in (row, col))
    rows, cols = IdColumn(row_builder), IdColumn(col_builder)
    numbers = {name: GrowingArray(np.float64) for name in given}
    times = TimeColumn(f"{path}: column {time!r}")
    n_lines = n_missing = 0
    for row_chunk, col_chunk, number_chunks, time_chunk in chunks:
        rows.append(row_chunk)
        cols.append(col_chunk)
        if time is not None:
            times.append(time_chunk)
        for name, chunk in zip(given, number_chunks, strict=True):
            missing = np.isnan(chunk)
            if name == "weight" and missing.any():
                line = n_lines + int(np.argmax(missing))
                raise unreadable(
                    path, None, f"column {weight!r} has no weight in line {line} (from 0, header apart)."
                )
            n_missing += int(np.count_nonzero(missing))
            numbers[name].append(chunk)
        n_lines += len(row_chunk)
    if not n_lines:
        raise unreadable(path, None, "the file holds no cells.")
    if n_missing:
        warnings.warn(
            f"{n_missing} of {n_lines} lines have no {value!r}; they are taken as missing cells.",
            DataWarning,
            stacklevel=2,
        )
    row_ids, row_final = finish_ids(row_builder, from_text=not is_parquet)
    col_ids, col_final = finish_ids(col_builder, from_text=not is_parquet)
    names = {"row": row, "col": col, "value": value, "weight": weight}
    named = {name: column for name, column in names.items() if isinstance(column, str)}
    cells = Observations.from_triples(
        rows.finish(row_final),
        cols.finish(col_final),
        None if value is None else numbers["value"].finish(),
        weights=None if weight is None else numbers["weight"].finish(),
        times=None if time is None else times.finish(),
        duplicates=duplicates,
        row_ids=row_ids,
        col_ids=col_ids,
    )
    return cells._changed(origin=Origin(**named))


class _TextTable:
    """A text file with columns. Parsed by pyarrow where there is one, by the csv module elsewhere."""

    def __init__(
        self,
        path: PathLike,
        row: Column,
        col: Column,
        numbers: dict[str, Column],
        time: Column | None,
        sep: str,
        header: bool,
        encoding: str,
    ) -> None:
        self.path, self.sep, self.header, self.encoding = path, sep, header, encoding
        with open_text(path, encoding) as handle:
            reader = csv.reader(handle, delimiter=sep)
            first = next((fields for fields in reader if fields), None)
            self.n_header_lines = reader.line_num if header else 0
        if first is None:
            raise unreadable(path, None, "the file is empty.")
        self.n_fields = len(first)
        self.row, self.col = self._position("row", row, first), self._position("col", col, first)
        self.numbers = [self._position(name, column, first) for name, column in numbers.items()]
        self.time = None if time is None else self._position("time", time, first)

    def _position(self, argument: str, column: Column, first: list[str]) -> int:
        if isinstance(column, str) and self.header and column in first:
            return first.index(column)
        if not isinstance(column, str) and 0 <= column < len(first):
            return int(column)
        names = ", ".join(map(repr, first)) if self.header else f"positions 0..{len(first) - 1} (no header)"
        raise ParameterError(f"{argument}={column!r} is not a column of {self.path}; it has {names}.")

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            return self._plain_chunks(chunk_rows)
        return self._arrow_chunks(chunk_rows)

    def _arrow_chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = [str(number) for number in range(self.n_fields)]
        wanted = {str(self.row): pa.string(), str(self.col): pa.string()}
        wanted |= {str(number): pa.float64() for number in self.numbers}
        wanted |= {} if self.time is None else {str(self.time): pa.string()}
        read = arrow_csv.ReadOptions(
            use_threads=False,
            # pyarrow reads some thirty blocks ahead, so they must be small.
            block_size=min(max(chunk_rows * 64, 1 << 16), 1 << 20),
            column_names=names,
            skip_rows=self.n_header_lines,
            encoding=self.encoding,
        )
        parse = arrow_csv.ParseOptions(delimiter=self.sep, newlines_in_values=True)
        convert = arrow_csv.ConvertOptions(
            column_types=wanted,
            include_columns=list(wanted),
            null_values=_NO_VALUE,
            strings_can_be_null=False,
        )
        try:
            with pa.input_stream(str(self.path), compression="detect") as stream:
                for batch in arrow_csv.open_csv(stream, read, parse, convert):
                    rows, cols = batch.column(str(self.row)), batch.column(str(self.col))
                    if self._has_empty(rows) or self._has_empty(cols):
                        raise pa.ArrowInvalid("an id is empty")
                    numbers = [
                        batch.column(str(number)).to_numpy(zero_copy_only=False) for number in self.numbers
                    ]
                    if any(np.isinf(number).any() for number in numbers):
                        raise pa.ArrowInvalid("a number is infinite")
                    times = None if self.time is None else batch.column(str(self.time))
                    yield rows, cols, numbers, times
        except (pa.ArrowInvalid, OSError) as error:
            # Read again by the slower way, which knows the number of the line.
            for _ in self._plain_chunks(1 << 14):
                pass
            raise unreadable(self.path, None, str(error)) from error

    @staticmethod
    def _has_empty(ids: Any) -> bool:
        from pyarrow import compute

        return bool(compute.any(compute.equal(compute.binary_length(ids), 0)).as_py())

    def _plain_chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        with open_text(self.path, self.encoding) as handle:
            reader = csv.reader(handle, delimiter=self.sep)
            try:
                lines = self._checked(reader)
                while chunk := list(itertools.islice(lines, chunk_rows)):
                    rows, cols, times, *numbers = zip(*chunk, strict=True)
                    columns = [np.array(column, dtype=np.float64) for column in numbers]
                    yield np.array(rows, object), np.array(cols, object), columns, np.array(times)
            except csv.Error as error:
                raise unreadable(self.path, reader.line_num, f"{error}.") from error

    def _checked(self, reader: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the ids and numbers of each line; what is wrong is reported with its line."""
        lines = (fields for fields in reader if fields)
        for fields in itertools.islice(lines, int(self.header), None):
            if len(fields) != self.n_fields:
                reason = f"expected {self.n_fields} fields, found {len(fields)}: {fields!r}."
                raise unreadable(self.path, reader.line_num, reason)
            if not fields[self.row] or not fields[self.col]:
                raise unreadable(self.path, reader.line_num, f"an id is empty: {fields!r}.")
            numbers = []
            for place in self.numbers:
                text = fields[place].strip()
                try:
                    # Python would read 1_000 as a number; nobody else does.
                    numbers.append(np.nan if text in _NO_VALUE else float(text.replace("_", "?")))
                except ValueError:
                    reason = f"{fields[place]!r} is not a number; a number or an empty field is wanted."
                    raise unreadable(self.path, reader.line_num, reason) from None
                if np.isinf(numbers[-1]):
                    reason = f"{fields[place]!r} is infinite; a number or an empty field is wanted."
                    raise unreadable(self.path, reader.line_num, reason)
            time = "" if self.time is None else fields[self.time]
            yield fields[self.row], fields[self.col], time, *numbers


def _parquet_chunks(
    path: PathLike,
    row: Column,
    col: Column,
    numbers: dict[str, Column],
    time: Column | None,
    chunk_rows: int,
) -> Iterator[Chunk]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ParameterError("reading Parquet needs pyarrow: pip install unseen[frames].") from error
    try:
        with parquet.ParquetFile(path) as file:
            yield from _parquet_batches(path, file, row, col, numbers, time, chunk_rows)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the file contradicts itself
        raise unreadable(path, None, str(error).strip()) from error


def _parquet_batches(
    path: PathLike,
    file: Any,
    row: Column,
    col: Column,
    numbers: dict[str, Column],
    time: Column | None,
    chunk_rows: int,
) -> Iterator[Chunk]:
    import pyarrow as pa

    names = file.schema_arrow.names
    given = {"row": row, "col": col, **numbers} | ({} if time is None else {"time": time})
    wanted = [_parquet_column(path, argument, column, names) for argument, column in given.items()]
    first = 0
    for batch in file.iter_batches(batch_size=chunk_rows, columns=list(dict.fromkeys(wanted))):
        ids = [batch.column(name) for name in wanted[:2]]
        for name, column in zip(wanted, ids, strict=False):
            if column.null_count:
                line = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise unreadable(path, None, f"column {name!r} has no id in row {line} (from 0).")
        found = []
        for name in wanted[2 : 2 + len(numbers)]:
            try:
                found.append(batch.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False))
            except pa.ArrowInvalid as error:
                raise unreadable(path, None, f"column {name!r}: {error}.") from error
        yield ids[0], ids[1], found, None if time is None else batch.column(wanted[-1])
        first += batch.num_rows


def _parquet_column(path: PathLike, argument: str, column: Column, names: list[str]) -> str:
    if isinstance(column, str) and column in names:
        return column
    if not isinstance(column, str) and 0 <= column < len(names):
        return names[column]
    found = ", ".join(map(repr, names))
    raise ParameterError(f"{argument}={column!r} is not a column of {path}; it has {found}.")


def read_edges(
    path: PathLike,
    *,
    directed: bool = False,
    comments: str = "#",
    sep: str | None = None,
    encoding: str = "utf-8",
    chunk_rows: int = 1 << 18,
) -> Observations:
    r"""Read a graph from a list of edges: two node ids in each line.

    Parameters
    ----------
    path : path-like
        Plain or gzipped text. Fields after the second are not looked at.
    directed : bool, default=False
        Otherwise each edge is stored in both directions.
    comments : str, default="#"
        What starts a comment.
    sep : str, optional
        What stands between two fields; by default any blanks.
    encoding : str, default="utf-8"
        Encoding of the text.
    chunk_rows : int, default=262144
        Lines that are held at a time.

    Returns
    -------
    Observations
        Square, ones on the edges (an edge that is listed again counts once; loops stay), with one
        vocabulary for both sides.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "graph.txt"
    >>> _ = file.write_text("# a triangle\n10 20\n20 30\n30 10\n")
    >>> read_edges(file).csr.toarray().tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    check_count("chunk_rows", chunk_rows)
    builder = VocabularyBuilder("nodes")
    rows, cols = IdColumn(builder), IdColumn(builder)
    with open_text(path, encoding) as handle:
        start = 0
        while lines := list(itertools.islice(handle, chunk_rows)):
            edges = _parse_edges(path, lines, start, comments, sep)
            rows.append(edges[:, 0])
            cols.append(edges[:, 1])
            start += len(lines)
    if not len(builder):
        raise unreadable(path, None, "the file holds no edges.")
    nodes, final = finish_ids(builder, from_text=True)
    sources, targets = rows.finish(final), cols.finish(final)
    if not directed:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    graph: CSR = sparse.csr_array((np.ones(sources.size), (sources, targets)), shape=(len(nodes), len(nodes)))
    graph.sum_duplicates()
    graph.data[:] = 1
    return Observations.from_sparse(graph).with_ids(nodes, nodes)


def _parse_edges(path: PathLike, lines: list[str], start: int, comments: str, sep: str | None) -> Array:
    parse: Callable[..., Array] = np.loadtxt
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # lines without data are no news
        try:
            edges = parse(lines, np.str_, comments=comments, delimiter=sep, usecols=(0, 1), ndmin=2)
        except ValueError as error:
            for number, line in enumerate(lines, start + 1):
                fields = line.split(comments)[0].split(sep)
                if fields and fields != [""] and len(fields) < 2:
                    raise unreadable(
                        path, number, f"expected two node ids, found {line.strip()!r}."
                    ) from error
            raise unreadable(path, None, str(error)) from error
    return edges.reshape(-1, 2)
