"""Small tables of the loaders: columns of text files, cells in canonical order, indicators."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data import Observations, Vocabulary
from unseen.data.streaming import open_text
from unseen.typing import CSR, Array

__all__ = ["make_cells", "multi_hot", "one_hot", "read_columns", "read_lines", "read_numbers"]


def read_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """All lines that are not blank."""
    with open_text(path, encoding) as handle:
        return [line for line in handle.read().splitlines() if line]


def read_columns(path: Path, sep: str = ",", encoding: str = "utf-8") -> list[tuple[str, ...]]:
    """A small table of text, as one tuple for each column."""
    with open_text(path, encoding) as handle:
        rows = [
            row for row in csv.reader(handle, delimiter=sep, quotechar='"' if sep == "," else None) if row
        ]
    return list(zip(*rows, strict=True))


def read_numbers(path: Path, sep: str = ",", *, header: bool = True) -> Mapping[str, npt.NDArray[np.float64]]:
    """A table of numbers, by column name; without a header by position."""
    with open_text(path) as handle:
        names = next(csv.reader([handle.readline()], delimiter=sep)) if header else None
        table = np.loadtxt(handle, delimiter=sep, ndmin=2)
    return dict(zip(names or map(str, range(table.shape[1])), table.T, strict=True))


def make_cells(
    rows: Array,
    cols: Array,
    values: Array,
    shape: tuple[int, int],
    *,
    repeated: Literal["mean", "last"],
    **about: Array,
) -> tuple[Observations, dict[str, Array]]:
    """Cells, and more about each of them in the same order; of repeated cells the last line counts."""
    rows, cols = rows.astype(np.int64), cols.astype(np.int64)
    order = np.lexsort((cols, rows))  # stable: lines of a cell stay in their order
    is_first = np.ones(order.size, dtype=bool)
    is_first[1:] = (np.diff(rows[order]) != 0) | (np.diff(cols[order]) != 0)
    starts = np.flatnonzero(is_first)
    last = order[np.append(starts[1:], order.size) - 1]
    merged = values[last]
    if repeated == "mean":
        merged = np.add.reduceat(values[order], starts) / np.diff(np.append(starts, order.size))
    seen = Observations.from_triples(rows[last], cols[last], merged, shape)
    return seen, {name: column[last] for name, column in about.items()}


def one_hot(labels: Sequence[str] | Array, categories: Sequence[str]) -> npt.NDArray[np.float64]:
    """Indicators of a column of text, in a given order of categories."""
    place = Vocabulary(list(categories)).index_of(np.asarray(labels))
    return np.eye(len(categories))[place]


def multi_hot(lists: Sequence[str], sep: str = "|") -> tuple[CSR, list[str]]:
    """Indicators of a column of lists, and the names found."""
    parts = [text.split(sep) if text else [] for text in lists]
    names, codes = Vocabulary.encode([name for names in parts for name in names])
    lengths = np.array([len(names) for names in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    flags = sparse.csr_array((np.ones(codes.size), codes, indptr), shape=(len(parts), len(names)))
    flags.sum_duplicates()
    flags.data[:] = 1
    return flags, list(names)
