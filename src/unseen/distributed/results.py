"""Factors and lists of a fit as Parquet files, one for each block, written by whoever holds the block."""

from __future__ import annotations

import posixpath
from typing import Any

import numpy as np

from unseen import kernels
from unseen.distributed.blocks import CellBlock
from unseen.distributed.files import filesystem
from unseen.distributed.recipes import with_offsets
from unseen.exceptions import InvalidDataError
from unseen.typing import Array, FloatArray

__all__ = [
    "Lists",
    "list_block",
    "merge_lists",
    "prepare_folder",
    "stored_columns",
    "top_of",
    "write_factors",
    "write_lists",
]

Lists = tuple[Array, FloatArray]
"""Column numbers and scores, best first; -1 and NaN where there is none."""


def prepare_folder(address: str) -> None:
    """Make an empty folder for the files; refuse one that holds others."""
    fs, root = filesystem(address)
    if fs.isfile(root) or (fs.exists(root) and fs.ls(root)):
        raise InvalidDataError(f"{address!r} is not empty; name a new or empty folder")
    fs.makedirs(root, exist_ok=True)


def _write_table(table: Any, address: str, number: int) -> int:
    from pyarrow import parquet

    fs, root = filesystem(address)
    place = posixpath.join(root, f"part-{number:05d}.parquet")
    hidden = posixpath.join(root, f".part-{number:05d}")
    with fs.open(hidden, "wb") as file:
        parquet.write_table(table, file)
    fs.mv(hidden, place)
    return int(table.num_rows)


def _for_arrow(ids: Array) -> Any:
    return ids.astype(object) if ids.dtype.kind == "U" else ids


def _complete(factors: FloatArray, side: str, mean: float, bias: FloatArray | None) -> FloatArray:
    """A block of factors with its offsets; ``bias`` is a column, as tables have."""
    column = None if bias is None else bias[:, 0]
    return np.ascontiguousarray(with_offsets(np.asarray(factors), side, mean, column))


def write_factors(
    factors: FloatArray,
    bias: FloatArray | None,
    ids: Array,
    side: str,
    mean: float,
    address: str,
    number: int,
) -> int:
    """Write a block of factors with its ids; returns the number of lines."""
    import pyarrow as pa

    full = _complete(factors, side, mean, bias)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(full.ravel()), full.shape[1])
    table = pa.table({"id": pa.array(_for_arrow(ids)), "factor": lists})
    return _write_table(table, address, number)


def list_block(
    rows: FloatArray,
    row_bias: FloatArray | None,
    cols: FloatArray,
    col_bias: FloatArray | None,
    cells: CellBlock | None,
    so_far: Lists | None,
    first_col: int,
    k: int,
    mean: float,
    n_threads: int,
) -> tuple[Lists, None]:
    """Best columns of a block of rows among one block of columns and those that were best so far."""
    left, right = _complete(rows, "row", mean, row_bias), _complete(cols, "col", mean, col_bias)
    return top_of(left, right, first_col, cells, k, so_far, n_threads), None


def stored_columns(cells: CellBlock) -> tuple[Array, Array]:
    """Number of cells of each row of a block, and their columns."""
    return np.diff(cells.indptr), cells.touched[cells.indices]


def top_of(
    rows: FloatArray,
    cols: FloatArray,
    first_col: int,
    cells: CellBlock | None,
    k: int,
    so_far: Lists | None,
    n_threads: int = 1,
) -> Lists:
    """Best columns of a block of rows among some columns and those that were best so far."""
    exclude = None
    if cells is not None:
        exclude = (cells.indptr.astype(np.int64), cells.touched[cells.indices])
    found = kernels.topk(
        np.ascontiguousarray(rows),
        np.ascontiguousarray(cols),
        k,
        exclude=exclude,
        col_ids=np.arange(first_col, first_col + len(cols), dtype=np.int64),
        n_threads=n_threads,
    )
    return found if so_far is None else merge_lists(so_far, found)


def merge_lists(one: Lists, other: Lists) -> Lists:
    """The best of two lists for each row; ties by smaller number."""
    ids, scores = np.hstack([one[0], other[0]]), np.hstack([one[1], other[1]])
    k = one[0].shape[1]
    # NaN sorts to the end, so what is not there comes last.
    order = np.lexsort((ids, -scores), axis=1)[:, :k]
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)


def write_lists(
    lists: Lists, row_ids: Array, col_ids: Array | None, names: tuple[str, str], address: str, number: int
) -> int:
    """Write the lists of a block of rows as lines of row, rank, column, score."""
    import pyarrow as pa

    ids, scores = lists
    there = ids >= 0
    place = np.broadcast_to(np.arange(1, ids.shape[1] + 1), ids.shape)[there]
    found = ids[there]
    columns = {
        names[0]: _for_arrow(np.repeat(row_ids, there.sum(axis=1))),
        "rank": place,
        names[1]: found if col_ids is None else _for_arrow(col_ids[found]),
        "score": scores[there],
    }
    return _write_table(pa.table(columns), address, number)
