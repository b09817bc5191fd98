"""Tables of side features: by id, in the numbering and the columns of a model."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.errors import UsageError
from unseen.cli.sources import CellFile, among, find
from unseen.cli.tables import Table
from unseen.data import Observations, Vocabulary, align
from unseen.data.feature_frames import in_order
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError, UnknownIdError
from unseen.typing import Array, Features

__all__ = ["FeatureFile", "read_features"]


@dataclass(frozen=True)
class FeatureFile:
    """A table of side features, one line for each id.

    Attributes
    ----------
    path : Path
        CSV, TSV or Parquet.
    id_column : str or None
        Column with the ids; by default the one named like that of the cells, else the first.
    encoding : str
        Encoding of text.
    of_new_rows : bool
        Whether lines of training rows are out of place, which is said.
    """

    path: Path
    id_column: str | None = None
    encoding: str = "utf-8"
    of_new_rows: bool = False

    def read(self, like: str, vocabulary: Vocabulary, expected: Collection[str] = ()) -> tuple[Any, str]:
        """The table and the name of its column of ids; a first line with a known id is no header."""
        by_position = bool(expected) and all(name.isdecimal() for name in expected)
        table = Table(self.path, encoding=self.encoding).seen(
            False if by_position else None,
            names=[self.id_column or like, *expected],
            known=among(vocabulary),
            n_ids=1,
            judged=1,
        )
        names = table.names
        if self.id_column is not None and self.id_column not in names:
            shown = ", ".join(map(repr, names))
            raise UsageError(f"--id-column {self.id_column}: {self.path} has the columns {shown}")
        id_column = self.id_column or (like if like in names else names[0])
        return table.frame(id_column), id_column

    def aligned(self, vocabulary: Vocabulary, like: str, missing: str) -> tuple[Features, list[str]]:
        """Features of all ids of a vocabulary, and their names."""
        frame, id_column = self.read(like, vocabulary)
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
        frame, id_column = self.read(like, vocabulary, [name.partition("=")[0] for name in names or ()])
        is_new = find(vocabulary, frame[id_column]) < 0
        if not is_new.any():
            return None
        if self.of_new_rows and not is_new.all():
            count = int(np.count_nonzero(~is_new))
            shown = ", ".join(map(repr, frame[id_column].filter(~is_new)[:5].to_pylist()))
            warnings.warn(
                f"{self.path}: {count} of {len(is_new)} lines are of training rows and get no list, such as "
                f"{shown}; --rows lists for these",
                DataWarning,
                stacklevel=2,
            )
        frame = frame.filter(is_new)
        own = Vocabulary(_numpy(frame[id_column]))
        matrix, own_names = self._align(frame, id_column, own, "error")
        if names is None:
            return own, matrix
        columns = [name for name in frame.column_names if name != id_column]
        return own, self._in_order(matrix, own_names, names, columns)

    def of_all(
        self, known: Vocabulary, like: str | None = None, names: list[str] | None = None
    ) -> tuple[Vocabulary, Features, list[str], str]:
        """All ids of the table, their features, what these are called, and the name of the column of ids."""
        expected = [name.partition("=")[0] for name in names or ()]
        frame, id_column = self.read(like or "", known, expected)
        own = Vocabulary(_numpy(frame[id_column]))
        matrix, own_names = self._align(frame, id_column, own, "error")
        if names is None:
            return own, matrix, own_names, id_column
        columns = [name for name in frame.column_names if name != id_column]
        return own, self._in_order(matrix, own_names, names, columns), names, id_column

    def of_ids(self, ids: Vocabulary, like: str, names: list[str] | None) -> Features:
        """Features of all of some ids, in the columns that a model knows."""
        frame, id_column = self.read(like, ids, [name.partition("=")[0] for name in names or ()])
        absent = ids.values[~np.isin(np.arange(len(ids)), find(ids, frame[id_column]))].tolist()
        if absent:
            shown = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
            raise UnknownIdError(f"{self.path}: no line for {shown}")
        matrix, own_names = self._align(frame, id_column, ids, "error")
        columns = [name for name in frame.column_names if name != id_column]
        return matrix if names is None else self._in_order(matrix, own_names, names, columns)

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
        text = [column for column in columns if column not in own_names]
        return in_order(matrix, own_names, names, text, str(self.path))


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
            features[f"{side}_features"], names[side] = FeatureFile(path, id_column, file.encoding).aligned(
                ids, like, missing
            )
    return features, names


def _numpy(column: Any) -> Array:
    values: Array = column.combine_chunks().to_numpy(zero_copy_only=False)
    return values
