"""Tables in files: looked into, guessed at, read in batches."""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.errors import UsageError
from unseen.data.streaming import open_text
from unseen.exceptions import DataWarning, InvalidDataError

__all__ = ["Table", "is_parquet", "is_table", "looks_extreme", "looks_numeric", "read_ids"]

SEPARATORS = (",", "\t", ";", "|")
BATCH_BYTES = 1 << 24
LOOKED_AT = 1000
"""Lines that a guess about a file looks at."""


def is_parquet(path: Path) -> bool:
    """Whether the name says Parquet."""
    return path.suffix in (".parquet", ".pq")


def is_table(path: Path) -> bool:
    """Whether the name says that there are columns, with or without a header."""
    return is_parquet(path) or bool({".csv", ".tsv"} & set(path.suffixes))


@dataclass(frozen=True)
class Table:
    """A file with columns, and how it is written where it is text.

    Attributes
    ----------
    path : Path
        CSV, TSV or Parquet, text also gzipped.
    sep : str or None
        What stands between fields; by default whatever occurs most often in the first line.
    header : bool
        Whether the first line holds names. `seen` finds out.
    encoding : str
        Encoding of text.
    """

    path: Path
    sep: str | None = None
    header: bool = True
    encoding: str = "utf-8"

    @cached_property
    def separator(self) -> str:
        """What stands between fields."""
        if self.sep is not None:
            names = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
            sep = names.get(self.sep, self.sep)
            if len(sep) != 1:
                raise UsageError(
                    f"--sep {self.sep}: one character is wanted, or tab, comma, semicolon or pipe; sed "
                    f"'s/{self.sep}/\\t/g' {self.path} | unseen ... - reads it with tabs in their place"
                )
            return sep
        if is_parquet(self.path):
            return ","
        with open_text(self.path, self.encoding) as handle:
            first = handle.readline()
        return max(SEPARATORS, key=first.count)

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns; their positions as text where there is no header."""
        if is_parquet(self.path):
            return list(_open_parquet(self.path).schema_arrow.names)
        first = next(iter(self.lines(1)), None)
        if first is None:
            raise InvalidDataError(f"{self.path}: the file is empty.")
        return first if self.header else [str(position) for position in range(len(first))]

    def lines(self, limit: int = LOOKED_AT) -> list[list[str]]:
        """The first lines of text that hold anything, field by field."""
        with open_text(self.path, self.encoding) as handle:
            try:
                filled = (fields for fields in csv.reader(handle, delimiter=self.separator) if fields)
                return list(itertools.islice(filled, limit))
            except csv.Error as error:
                raise InvalidDataError(f"{self.path}: {error}.") from error

    def seen(
        self,
        header: bool | None,
        *,
        names: Collection[str] = (),
        known: Callable[[str], bool] | None = None,
        n_ids: int = 2,
        judged: int | None = None,
    ) -> Table:
        """The same table with or without a header, as told or as the first lines look; a guess is said.

        Parameters
        ----------
        header : bool or None
            None guesses: a first line with numbers where the second has some, or with an id that comes
            again, holds data.
        names : collection of str
            Names of columns that are asked for; a first line that has one of them holds names.
        known : callable, optional
            Whether a text is an id that a model knows; a first line with one holds data.
        n_ids : int
            Leading columns that may hold ids.
        judged : int, optional
            Leading columns whose numbers count; all by default.
        """
        if is_parquet(self.path):
            return self
        if header is not None:
            return replace(self, header=header)
        first, *rest = self.lines() or [[]]
        ids = first[:n_ids]
        if {name for name in names if not name.isdecimal()} & set(first):
            is_data = False
        elif known is not None and any(map(known, ids)):
            is_data = True
        else:
            is_data = _looks_like_data(first[:judged], rest) or _comes_again(ids, rest)
        if is_data:
            shown = ", ".join(map(repr, first[:4])) + (", ..." if len(first) > 4 else "")
            warnings.warn(
                f"{self.path}: the first line ({shown}) looks like data, so it is read as data and columns "
                "go by position; --no-header says so without a warning, --header says that it holds names",
                DataWarning,
                stacklevel=2,
            )
        return replace(self, header=not is_data)

    def batches(self, columns: list[str]) -> Iterator[list[Any]]:
        """Columns as pyarrow arrays, some lines at a time; ids of text files stay text."""
        if is_parquet(self.path):
            yield from _complete(_open_parquet(self.path).iter_batches(columns=columns), columns, self.path)
            return
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=columns,
            strings_can_be_null=False,
        )
        with self._arrow_stream() as stream:
            opened = arrow_csv.open_csv(stream, self._how_to_read(), self._how_to_parse(), convert)
            yield from _complete(opened, columns, self.path)

    def frame(self, id_column: str) -> Any:
        """All of it; ids of text files stay text, the other columns get the type they look like."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        if is_parquet(self.path):
            return _open_parquet(self.path).read()
        convert = arrow_csv.ConvertOptions(column_types={id_column: pa.string()})
        with self._arrow_stream() as stream:
            return arrow_csv.read_csv(stream, self._how_to_read(), self._how_to_parse(), convert)

    def _how_to_read(self) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.ReadOptions(
            column_names=self.names,
            skip_rows=0,
            skip_rows_after_names=int(self.header),
            block_size=BATCH_BYTES,
            encoding=self.encoding,
        )

    def _how_to_parse(self) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)

    @contextmanager
    def _arrow_stream(self) -> Iterator[Any]:
        import pyarrow as pa

        try:
            with pa.input_stream(str(self.path), compression="detect") as stream:
                yield stream
        except pa.ArrowInvalid as error:
            with open_text(self.path, self.encoding) as handle:
                for _ in handle:  # says where the text is not in this encoding
                    pass
            raise InvalidDataError(f"{self.path}: {error}.") from error


def read_ids(path: Path, known: Callable[[str], bool], encoding: str = "utf-8") -> Any:
    """Ids from the first column of a table (.csv, .tsv, .parquet), or one a line from any other file."""
    import pyarrow as pa

    if is_table(path):
        table = Table(path, encoding=encoding).seen(None, known=known)
        batches = [batch[0] for batch in table.batches(table.names[:1])]
        ids = pa.concat_arrays(batches) if batches else pa.array([], pa.string())
    else:
        with open_text(path, encoding) as handle:
            ids = pa.array([line.strip() for line in handle if line.strip()], pa.string())
    if not len(ids):
        raise InvalidDataError(f"{path}: the file holds no ids.")
    return ids


def _looks_like_data(first: list[str], rest: list[list[str]]) -> bool:
    """Whether there are numbers in the first line, and in the second at the same places."""
    pairs = list(zip(first, rest[0] if rest else [], strict=False))
    if not any(looks_numeric(above) and looks_numeric(below) for above, below in pairs):
        return False
    return all(not a or not b or looks_numeric(a) == looks_numeric(b) for a, b in pairs)


def _comes_again(ids: list[str], rest: list[list[str]]) -> bool:
    """Whether an id of the first line is in the same column of another one."""
    return any(
        text and text in {line[place] for line in rest if place < len(line)} for place, text in enumerate(ids)
    )


def looks_extreme(path: Path) -> bool:
    """Whether the first lines are those of a file of features and labels: three counts, then ``n:value``."""
    if is_parquet(path):
        return False
    try:
        with open_text(path) as handle:
            first, second = handle.readline(), handle.readline()
    except InvalidDataError:  # some other text
        return False
    counts = first.split(" ")
    return len(counts) == 3 and all(count.strip().isdecimal() for count in counts) and ":" in second


def looks_numeric(text: str) -> bool:
    """Whether a field holds a finite number."""
    try:
        return np.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


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
