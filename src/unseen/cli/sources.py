"""From files to cells and features in a model's own numbering, and the ids back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unseen.cli.errors import UsageError
from unseen.cli.graphs import as_graph
from unseen.cli.tables import column_names, guess_separator, is_parquet, is_table, read_frame
from unseen.data import Observations, Vocabulary, align, read_edges, read_triples
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError, UnknownIdError
from unseen.typing import Array, Features

__all__ = [
    "CellFile",
    "FeatureFile",
    "find",
    "is_of_links",
    "like_training",
    "onto_training",
    "output_names",
    "read_features",
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

    def read(self) -> Observations:
        """Read all cells, with the ids as vocabularies."""
        if self.is_edge_list:
            self.extra_column("weight")  # refuses what a list of edges cannot have
            self.extra_column("time")
            cells = read_edges(self.path, directed=self.edges == "directed", sep=self._edge_separator())
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
        sep = guess_separator(self.path, self.sep)
        row, col, value = self.columns()
        weight, time = self.extra_column("weight"), self.extra_column("time")
        return read_triples(
            self.path,
            row=self._for_reader(row),
            col=self._for_reader(col),
            value=None if value is None else self._for_reader(value),
            weight=None if weight is None else self._for_reader(weight),
            time=None if time is None else self._for_reader(time),
            sep=sep,
            header=self.header,
        )

    def columns(self) -> tuple[str, str, str | None]:
        """Names of the columns with rows, columns and values; positions as text without a header."""
        if self.is_edge_list:
            return "row", "col", None
        names = column_names(self.path, guess_separator(self.path, self.sep), self.header)
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
        names = column_names(self.path, guess_separator(self.path, self.sep), self.header)
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
        missing = "is needed" if given is None else f"{given}: no such column"
        raise UsageError(f"{option} {missing}: {self.path} has the columns {shown}{hint}")

    def _for_reader(self, column: str) -> str | int:
        return column if self.header or is_parquet(self.path) else int(column)

    def _edge_separator(self) -> str | None:
        return None if self.sep is None else guess_separator(self.path, self.sep)


@dataclass(frozen=True)
class FeatureFile:
    """A table of side features, one line for each id.

    Attributes
    ----------
    path : Path
        CSV, TSV or Parquet with a header.
    id_column : str or None
        Column with the ids; by default the one named like that of the cells, else the first.
    """

    path: Path
    id_column: str | None = None

    def read(self, like: str) -> tuple[Any, str]:
        """The table and the name of its column of ids."""
        sep = guess_separator(self.path, None)
        names = column_names(self.path, sep)
        if self.id_column is not None and self.id_column not in names:
            shown = ", ".join(map(repr, names))
            raise UsageError(f"--id-column {self.id_column}: {self.path} has the columns {shown}")
        id_column = self.id_column or (like if like in names else names[0])
        return read_frame(self.path, id_column, sep=sep), id_column

    def aligned(self, vocabulary: Vocabulary, like: str, missing: str) -> tuple[Features, list[str]]:
        """Features of all ids of a vocabulary, and their names."""
        frame, id_column = self.read(like)
        has_line = np.isin(np.arange(len(vocabulary)), find(vocabulary, frame[id_column]))
        if missing == "error" and not has_line.all():
            absent = vocabulary[~has_line].tolist()
            shown = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
            raise UnknownIdError(
                f"{self.path}: no line for {len(absent)} of {len(vocabulary)} ids of the cells: {shown}; "
                "--missing zero or mean would fill them"
            )
        return self._align(frame, id_column, vocabulary, missing)

    def of_new_ids(
        self, vocabulary: Vocabulary, like: str, names: list[str] | None
    ) -> tuple[Vocabulary, Features] | None:
        """Ids that are not in a vocabulary and their features, in the columns that a model knows."""
        frame, id_column = self.read(like)
        is_new = find(vocabulary, frame[id_column]) < 0
        if not is_new.any():
            return None
        frame = frame.filter(is_new)
        own = Vocabulary(_numpy(frame[id_column]))
        matrix, own_names = self._align(frame, id_column, own, "error")
        if names is None:
            return own, matrix
        columns = [name for name in frame.column_names if name != id_column]
        return own, self._in_order(matrix, own_names, names, columns)

    def _align(
        self, frame: Any, id_column: str, vocabulary: Vocabulary, missing: str
    ) -> tuple[Features, list[str]]:
        position = frame.column_names.index(id_column)
        indices = find(vocabulary, frame[id_column])
        # Ids as the cells have them: a text file cannot tell the number 7 from the text "7".
        known = frame.filter(indices >= 0)
        ids = vocabulary[indices[indices >= 0]]
        column = ids.astype(object) if ids.dtype.kind == "U" else ids
        known = known.set_column(position, id_column, [column])
        try:
            return align(known, vocabulary, id_column, missing=missing)  # type: ignore[arg-type]
        except (InvalidDataError, ParameterError) as error:
            raise type(error)(f"{self.path}: {error}") from error

    def _in_order(
        self, matrix: Features, own_names: list[str], names: list[str], columns: list[str]
    ) -> Features:
        """Columns as in training; a category that does not occur among the new ids is zero."""
        absent = [
            name
            for name in names
            if name not in columns and not any(name.startswith(f"{column}=") for column in columns)
        ]
        if absent:
            raise InvalidDataError(
                f"{self.path}: the model was fitted with the features {', '.join(map(repr, absent[:5]))}, "
                "which this file does not have"
            )
        place = {name: position for position, name in enumerate(own_names)}
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        result = np.zeros((dense.shape[0], len(names)), dtype=dense.dtype)
        for position, name in enumerate(names):
            if name in place:
                result[:, position] = dense[:, place[name]]
        return result


def read_features(
    file: CellFile,
    cells: Observations,
    row_path: Path | None,
    col_path: Path | None,
    id_column: str | None,
    missing: str,
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Side features as ``fit`` takes them, and the names of the features by side."""
    row, col, _ = file.columns()
    features: dict[str, Any] = {}
    names: dict[str, list[str]] = {}
    for side, path, like, ids in (
        ("row", row_path, row, cells.row_ids),
        ("col", col_path, col, cells.col_ids),
    ):
        if path is not None:
            assert ids is not None
            features[f"{side}_features"], names[side] = FeatureFile(path, id_column).aligned(
                ids, like, missing
            )
    return features, names


def like_training(
    model: Any,
    path: Path,
    *,
    row: str | None,
    col: str | None,
    value: str | None = None,
    has_values: bool = False,
    sep: str | None = None,
    header: bool = True,
    links: bool = False,
    weight: str | None = None,
    weighted: bool = False,
) -> CellFile:
    """A file whose columns are named as in the training file, where it has such columns.

    Weights are looked for only where they count (``weighted``).
    """
    if links and not is_table(path):
        return CellFile(path, sep=sep, links=True)
    names = column_names(path, guess_separator(path, sep), header)
    source = getattr(model, "source_", None) or {}
    given = {"row": row, "col": col, "value": value} | ({"weight": weight} if weighted else {})
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
        header=header,
        links=links,
        weight=given.get("weight"),
    )


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


def _numpy(column: Any) -> Array:
    values: Array = column.combine_chunks().to_numpy(zero_copy_only=False)
    return values
