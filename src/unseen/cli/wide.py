"""Tables with one line for each row of the matrix and one column for each of its columns."""

from __future__ import annotations

import numpy as np

from unseen.cli.errors import UsageError
from unseen.cli.tables import Table, is_parquet, looks_numeric
from unseen.data import Observations, Vocabulary
from unseen.data.streaming import finish_ids
from unseen.data.vocabulary import VocabularyBuilder
from unseen.exceptions import InvalidDataError

__all__ = ["read_wide", "refuse_wide"]

MANY = 8
"""So many columns of numbers and nothing said about them: hardly one cell a line."""


def read_wide(table: Table, row: str) -> Observations:
    """Cells of a table that holds the matrix as it is, blanks and NaN missing.

    Parameters
    ----------
    table : Table
        With names of columns in its first line.
    row : str
        Column with the ids of rows.
    """
    frame = table.frame(row)
    ids = np.asarray(frame[row].to_numpy())
    others = [name for name in table.names if name != row]
    if len(set(others)) < len(others):
        twice = next(name for name in others if others.count(name) > 1)
        raise InvalidDataError(f"{table.path}: column {twice!r} is there more than once.")
    matrix = np.empty((frame.num_rows, len(others)))
    for place, name in enumerate(others):
        column = frame[name]
        if column.null_count == len(column):
            matrix[:, place] = np.nan
            continue
        try:
            matrix[:, place] = column.cast("float64").to_numpy()
        except (ValueError, TypeError, NotImplementedError) as error:
            raise InvalidDataError(
                f"{table.path}: column {name!r} holds {column.type}, and with --wide all columns but the "
                f"one of row ids (--row, here {row!r}) hold numbers or nothing"
            ) from error
    vocabularies = [_vocabulary(found, table) for found in (ids, np.array(others, dtype=object))]
    return Observations.from_dense(matrix).with_ids(*vocabularies)


def _vocabulary(ids: np.ndarray, table: Table) -> Vocabulary:
    """Ids in their order in the file; those of text that are all written as integers are integers."""
    builder = VocabularyBuilder(f"{table.path}")
    builder.add(ids)
    if len(builder) < len(ids):
        values, counts = np.unique(ids.astype(str), return_counts=True)
        raise InvalidDataError(f"{table.path}: the row id {values[counts > 1][0]!r} is there more than once.")
    sorted_ids, place = finish_ids(builder, from_text=not is_parquet(table.path))
    return Vocabulary(sorted_ids.values[place])


def refuse_wide(table: Table) -> None:
    """Stop before a matrix is taken for a list of cells, which would end in another matrix without a word."""
    if len(table.names) < 4 or is_parquet(table.path):
        return
    lines = table.lines()[int(table.header) :]
    fields = [field for line in lines for field in line[1:]]
    if not lines or not all(field == "" or looks_numeric(field) for field in fields):
        return
    gaps = any(line[1] == "" for line in lines if len(line) > 1)
    single = len(lines) > 1 and len({line[0] for line in lines}) == len(lines) and len(table.names) >= MANY
    if gaps or single:
        raise UsageError(
            f"{table.path} looks like a whole matrix, a line for each row and {len(table.names):,} columns: "
            "--wide reads it so; if it has one cell a line, name its columns with --row, --col and --value"
        )
