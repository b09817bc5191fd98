"""Where results go: files that appear only when they are complete, stdout, or the JSON document."""

from __future__ import annotations

import csv
import io
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from unseen.cli.tables import is_parquet
from unseen.cli.terminal import visible
from unseen.exceptions import InvalidDataError, ParameterError

__all__ = ["Records", "TableWriter", "replacing"]

FORMULA = r"^[=+\-@\t\r]"
"""How text begins that spreadsheets run."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path`` that takes its place when all went well, else goes away."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


class TableWriter:
    """Writes a table piece by piece to a CSV, TSV or Parquet file, or as CSV to stdout.

    Parameters
    ----------
    path : Path or None
        Its ending decides (``.gz`` after it compresses); None is stdout. A file appears under its
        name only when it is complete.
    defuse : bool
        Put an apostrophe before text that a spreadsheet would take for a formula.
    """

    FORMATS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq")

    def __init__(self, path: Path | None, *, defuse: bool = False) -> None:
        if path is not None and not path.name.endswith(self.FORMATS):
            raise ParameterError(f"--out {path}: the name must end in {', '.join(self.FORMATS)}.")
        if path is not None and path.is_dir():
            raise InvalidDataError(f"--out {path}: there is a directory of that name.")
        if path is not None and not path.parent.is_dir():
            raise InvalidDataError(f"--out {path}: there is no directory {path.parent}.")
        self.path = path
        self.n_lines = 0
        self._defuse = defuse
        self._parquet: Any = None
        self._stream: Any = None
        self._sep = "\t" if path is not None and ".tsv" in path.suffixes else ","

    def __enter__(self) -> Self:
        import pyarrow as pa

        if self.path is None:
            sys.stdout.flush()
            self._stream = _stdout_bytes()
            return self
        self._replacing = replacing(self.path)
        temporary = self._replacing.__enter__()
        if is_parquet(self.path):
            self._temporary = temporary
        else:
            compression = "gzip" if self.path.suffix == ".gz" else None
            self._stream = pa.output_stream(str(temporary), compression=compression)
        return self

    def write(self, columns: dict[str, Any]) -> None:
        """Add lines; the first piece decides names and types."""
        import pyarrow as pa

        table = pa.table(columns)
        if self.path is not None and is_parquet(self.path):
            from pyarrow import parquet

            if self._parquet is None:
                self._parquet = parquet.ParquetWriter(self._temporary, table.schema)
            self._parquet.write_table(table)
        else:
            self._write_text(table)
        self.n_lines += table.num_rows

    def _write_text(self, table: Any) -> None:
        if self.n_lines == 0:
            text = io.StringIO()
            csv.writer(text, delimiter=self._sep, lineterminator="\n").writerow(table.column_names)
            self._emit(text.getvalue().encode())
        self._emit(_lines(table, self._sep, defuse=self._defuse))

    def _emit(self, lines: bytes) -> None:
        # Whatever a terminal would obey is spelt out there; files and pipes get ids as they are.
        if self.path is None and sys.stdout.isatty():
            lines = visible(lines.decode(), keep="\n\t").encode()
        self._stream.write(lines)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path is None:
            self._stream.flush()
            return
        with suppress(Exception) if error is not None else nullcontext():
            for handle in (self._parquet, self._stream):
                if handle is not None:
                    handle.close()
        self._replacing.__exit__(kind, error, trace)


def _stdout_bytes() -> IO[bytes] | _TextAsBytes:
    return getattr(sys.stdout, "buffer", None) or _TextAsBytes()


class _TextAsBytes:
    """Stands for a stdout that takes only text, such as one that is captured in memory."""

    closed = False

    def write(self, data: bytes) -> int:
        sys.stdout.write(bytes(data).decode())
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()


def _lines(table: Any, sep: str, *, defuse: bool = False) -> bytes:
    """A table as lines of text; only texts that would be misread get quotes, whatever else is there."""
    import pyarrow as pa
    from pyarrow import compute

    mark, nothing, end, between = (pa.scalar(text, pa.large_string()) for text in ('"', "", "\n", sep))
    columns = []
    for column in table.columns:
        text = compute.cast(column, pa.large_string()).combine_chunks()
        if defuse and not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            harmless = compute.binary_join_element_wise(pa.scalar("'", pa.large_string()), text, nothing)
            text = compute.if_else(compute.match_substring_regex(text, FORMULA), harmless, text)
        doubled = compute.replace_substring(text, '"', '""')
        quoted = compute.binary_join_element_wise(mark, doubled, mark, nothing)
        columns.append(compute.if_else(compute.match_substring_regex(text, f'["\r\n{sep}]'), quoted, text))
    lines = compute.binary_join_element_wise(*columns, between)
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines)
    joined: str = compute.binary_join(whole, end)[0].as_py()
    return f"{joined}\n".encode() if len(lines) else b""


class Records:
    """Takes the place of a file where the lines go into the JSON document."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def n_lines(self) -> int:
        """Lines so far."""
        return len(self.lines)

    def write(self, columns: dict[str, Any]) -> None:
        """Add lines."""
        lists = [np.asarray(column).tolist() for column in columns.values()]
        self.lines.extend(dict(zip(columns, line, strict=True)) for line in zip(*lists, strict=True))
