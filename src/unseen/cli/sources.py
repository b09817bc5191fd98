"""From files to cells and features in a model's own numbering, and the ids back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unseen.cli.errors import UsageError
from unseen.cli.graphs import as_graph
from unseen.cli.tables import Table, is_parquet, is_table
from unseen.cli.wide import read_wide, refuse_wide
from unseen.data import Observations, Vocabulary, read_edges, read_triples
from unseen.exceptions import DataWarning, UnknownIdError
from unseen.typing import Array

__all__ = [
    "CellFile",
    "among",
    "find",
    "is_of_links",
    "knows",
    "like_training",
    "onto_training",
    "output_names",
    "some_rows",
    "training_ids",
    "within_training",
]

Indices = npt.NDArray[np.int64]
INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"


@dataclass(frozen=True)
class CellFile:
    """A file with one cell in each line, and which of its columns matter.

    Attributes
    ----------
    path : Path
        CSV, TSV or Parquet, text also gzipped.
    row, col, value : str or None
        Columns by name or position from 0; by default the first, second and third.
    has_values : bool
        False counts each line as one.
    sep : str or None
        What stands between fields; by default seen from the first line.
    header : bool
        Whether the first line holds names.
    edges : {"no", "undirected", "directed"}
        Whether the file is a list of edges instead.
    values_optional : bool
        Whether a file with two columns counts each line as one without being told.
    links : bool
        Whether lines are links of one undirected graph. A file that is no table by its name is then
        a list of edges.
    weight : str or None
        Column with how much each cell counts; by default all count one.
    time : str or None
        Column with when each cell arose.
    encoding : str
        Encoding of text.
    wide : bool
        Whether each line is a whole row of the matrix: its id first, then a value or nothing for each column.
    """

    path: Path
    row: str | None = None
    col: str | None = None
    value: str | None = None
    has_values: bool = True
    sep: str | None = None
    header: bool = True
    edges: Literal["no", "undirected", "directed"] = "no"
    values_optional: bool = False
    links: bool = False
    weight: str | None = None
    time: str | None = None
    encoding: str = "utf-8"
    wide: bool = False

    @property
    def table(self) -> Table:
        """The file as columns."""
        return Table(self.path, self.sep, self.header, self.encoding)

    def seen(self, header: bool | None, known: Callable[[str], bool] | None = None) -> CellFile:
        """The same file with or without a header, as told or as it looks; see `Table.seen`."""
        if self.is_edge_list or self.wide:
            return self if header is None else replace(self, header=header)
        names = [name for name in (self.row, self.col, self.value, self.weight, self.time) if name]
        return replace(self, header=self.table.seen(header, names=names, known=known).header)

    def read(self) -> Observations:
        """Read all cells, with the ids as vocabularies."""
        if self.is_edge_list:
            self.extra_column("weight")  # refuses what a list of edges cannot have
            self.extra_column("time")
            cells = read_edges(
                self.path,
                directed=self.edges == "directed",
                sep=None if self.sep is None else self.table.separator,
                encoding=self.encoding,
            )
            return as_graph(cells, self.path) if self.links else cells
        if not self.links:
            return self._read_table()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # a link that is listed twice is one link
            cells = self._read_table()
        return as_graph(cells, self.path)

    @property
    def is_edge_list(self) -> bool:
        """Whether lines are two node ids without a header, between comments."""
        return self.edges != "no" or (self.links and not is_table(self.path))

    def _read_table(self) -> Observations:
        row, col, value = self.columns()
        weight, time = self.extra_column("weight"), self.extra_column("time")
        if self.wide:
            return read_wide(self.table, row)
        named = any(name is not None for name in (self.row, self.col, self.value)) or not self.has_values
        if not named and not self.links:
            refuse_wide(self.table)
        return read_triples(
            self.path,
            row=self._for_reader(row),
            col=self._for_reader(col),
            value=None if value is None else self._for_reader(value),
            weight=None if weight is None else self._for_reader(weight),
            time=None if time is None else self._for_reader(time),
            sep=self.table.separator,
            header=self.header,
            encoding=self.encoding,
        )

    def columns(self) -> tuple[str, str, str | None]:
        """Names of the columns with rows, columns and values; positions as text without a header."""
        if self.is_edge_list:
            return "row", "col", None
        names = self.table.names
        if self.wide:
            return self._resolve("--row", self.row, names, 0) or "row", "col", "value"
        row = self._resolve("--row", self.row, names, 0)
        col = self._resolve("--col", self.col, names, 1)
        if row == col:
            raise UsageError(f"--row and --col are both column {row!r} of {self.path}")
        if not self.has_values or (self.values_optional and self.value is None and len(names) == 2):
            return row, col, None
        return row, col, self._resolve("--value", self.value, names, 2)

    def extra_column(self, kind: Literal["weight", "time"]) -> str | None:
        """Name of the column with weights or times, if there is one."""
        given = getattr(self, kind)
        if given is None:
            return None
        if self.is_edge_list:
            raise UsageError(f"--{kind} {given}: a list of edges has no columns beside the two nodes")
        if self.wide:
            raise UsageError(f"--{kind} {given}: --wide tables have values alone")
        names = self.table.names
        column = self._resolve(f"--{kind}", given, names, 0)
        if column in self.columns():
            raise UsageError(f"--{kind} {given}: column {column!r} of {self.path} has another meaning")
        return column

    def _resolve(self, option: str, given: str | None, names: list[str], default: int) -> str:
        if given in names:
            return str(given)
        position = int(given) if given is not None and given.isdecimal() else default
        if (given is None or given.isdecimal()) and position < len(names):
            return names[position]
        shown = ", ".join(map(repr, names))
        hint = "; --no-value counts each pair as one" if option == "--value" else ""
        if len(names) == 1 and self.sep is None and not is_parquet(self.path):
            hint += "; --sep says what stands between fields, if it is no comma, tab, semicolon or |"
        missing = "is needed" if given is None else f"{given}: no such column"
        raise UsageError(f"{option} {missing}: {self.path} has the columns {shown}{hint}")

    def _for_reader(self, column: str) -> str | int:
        return column if self.header or is_parquet(self.path) else int(column)


def like_training(
    model: Any,
    path: Path,
    *,
    row: str | None,
    col: str | None,
    value: str | None = None,
    has_values: bool = False,
    sep: str | None = None,
    header: bool | None = None,
    links: bool = False,
    weight: str | None = None,
    weighted: bool = False,
    encoding: str = "utf-8",
    wide: bool = False,
) -> CellFile:
    """A file whose columns are named as in the training file, where it has such columns.

    Weights are looked for only where they count (``weighted``).
    """
    if links and not is_table(path):
        return CellFile(path, sep=sep, links=True, encoding=encoding)
    if wide:
        return CellFile(path, row, sep=sep, header=header is not False, encoding=encoding, wide=True)
    source = getattr(model, "source_", None) or {}
    given = {"row": row, "col": col, "value": value} | ({"weight": weight} if weighted else {})
    wanted = [name for name in (*given.values(), *map(source.get, given)) if isinstance(name, str)]
    table = Table(path, sep, encoding=encoding)
    table = table.seen(header, names=wanted, known=knows(model))
    names = table.names
    for key in given:
        if given[key] is None and source.get(key) in names:
            given[key] = source[key]
    return CellFile(
        path,
        given["row"],
        given["col"],
        given["value"],
        has_values=has_values,
        sep=sep,
        header=table.header,
        links=links,
        weight=given.get("weight"),
        encoding=encoding,
    )


def among(vocabulary: Vocabulary | None) -> Callable[[str], bool]:
    """Whether a text is one of some ids."""
    import pyarrow as pa

    return lambda text: vocabulary is not None and bool(find(vocabulary, pa.array([text]))[0] >= 0)


def knows(model: Any) -> Callable[[str], bool]:
    """Whether a text is the id of a row or column of a model that was fitted with ids."""
    is_row, is_col = (among(getattr(model, f"{side}_ids_", None)) for side in ("row", "col"))
    return lambda text: is_row(text) or is_col(text)


def is_of_links(model: Any) -> bool:
    """Whether a model was fitted to the links of one graph, so that its rows and columns are the same."""
    return (getattr(model, "source_", None) or {}).get("task") == "links"


def output_names(row: str, col: str, *others: str) -> tuple[str, str]:
    """Names for columns of ids in a file: as in the input, where they are names and are not taken."""
    is_free = not {row, col} & set(others) and row != col
    return (row, col) if is_free and not (row.isdecimal() or col.isdecimal()) else ("row", "col")


def training_ids(model: Any, side: Literal["row", "col"]) -> Vocabulary:
    """What a model calls its rows or columns; their numbers where it was fitted without ids."""
    vocabulary = getattr(model, f"{side}_ids_", None)
    if vocabulary is None:
        # Models of links have as many rows as columns, and not all of them have factors.
        is_row = side == "row" and hasattr(model, "row_factors_")
        return Vocabulary(np.arange(model.row_factors_.shape[0] if is_row else model.n_features_in_))
    return vocabulary  # type: ignore[no-any-return]


def find(vocabulary: Vocabulary, ids: Any) -> Indices:
    """Index of each id of a pyarrow column, -1 for the unknown.

    Text that is written like an integer finds that integer, and the other way round, because ids
    may come from a text file in one place and from Parquet in another.
    """
    import pyarrow as pa
    from pyarrow import compute

    column = ids.combine_chunks() if hasattr(ids, "combine_chunks") else ids
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    distinct, codes = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False)
    if vocabulary.values.dtype.kind == "U":
        found = vocabulary.find(distinct.cast(pa.string()).to_numpy(zero_copy_only=False))
    elif pa.types.is_integer(distinct.type):
        found = vocabulary.find(distinct.to_numpy(zero_copy_only=False))
    else:
        found = np.full(len(distinct), -1, dtype=np.int64)
        plain = compute.match_substring_regex(distinct.cast(pa.string()), INTEGER)
        numbers = distinct.filter(plain).cast(pa.string()).cast(pa.int64())
        found[plain.to_numpy(zero_copy_only=False)] = vocabulary.find(numbers.to_numpy())
    return found[codes] if len(codes) else np.empty(0, dtype=np.int64)


def onto_training(
    cells: Observations, row_ids: Vocabulary, col_ids: Vocabulary
) -> tuple[Observations, dict[str, Array]]:
    """Cells in the numbering of the training data, and the ids that are not there, by side."""
    import pyarrow as pa

    places, unknown = [], {}
    for side, own, known_ids in (("row", cells.row_ids, row_ids), ("col", cells.col_ids, col_ids)):
        assert own is not None
        ids = own.values
        indices = find(known_ids, pa.array(ids.astype(object) if ids.dtype.kind == "U" else ids))
        places.append(indices)
        unknown[side] = ids[indices < 0]
    rows, cols = places[0][cells.rows], places[1][cells.indices]
    known = (rows >= 0) & (cols >= 0)
    shape = (len(row_ids), len(col_ids))
    about: dict[str, Any] = {
        name: None if given is None else given[known]
        for name, given in (("weights", cells.weights), ("times", cells.times))
    }
    moved = Observations.from_triples(rows[known], cols[known], cells.values[known], shape, **about)
    return moved, unknown


def some_rows(cells: Observations, rows: Indices) -> Observations:
    """Some rows of cells, numbered anew."""
    place = np.full(cells.shape[0], -1)
    place[rows] = np.arange(len(rows))
    kept = place[cells.rows] >= 0
    part = cells.select(kept)
    return Observations.from_triples(
        place[part.rows], part.indices, part.values, (len(rows), cells.shape[1]), weights=part.weights
    )


def within_training(
    cells: Observations,
    row_ids: Vocabulary,
    col_ids: Vocabulary,
    path: Path,
    unknown: str,
    *,
    links: bool = False,
) -> tuple[Observations, int]:
    """Test cells of known ids, and how many have others, which is an error unless they are skipped."""
    test, lost = onto_training(cells, row_ids, col_ids)
    n_cells, n_lost = cells.nnz, cells.nnz - test.nnz
    if links:  # each is there in both directions
        n_cells, n_lost = n_cells // 2, n_lost // 2
    if n_lost and unknown == "error":
        side, ids = next((side, ids) for side, ids in lost.items() if ids.size)
        shown = ", ".join(map(repr, ids[:5].tolist())) + (", ..." if ids.size > 5 else "")
        raise UnknownIdError(
            f"{path}: {n_lost} of {n_cells} {'links' if links else 'cells'} have ids that the model does not "
            f"know, such as the {'row' if side == 'row' else 'column'} ids {shown}; "
            "--unknown skip leaves them out"
        )
    return test, n_lost
