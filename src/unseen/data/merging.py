"""Cells that arrive later, laid over those that were there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unseen.data.observations import Observations
from unseen.data.pattern import Pattern, index_dtype
from unseen.data.vocabulary import Vocabulary, as_id_array
from unseen.exceptions import InvalidDataError, UnknownIdError
from unseen.typing import Array, BoolArray, Features, FloatArray, IndexArray

__all__ = ["Merged", "TrainingCells", "cells_at", "merge_cells"]

Places = npt.NDArray[np.int64]


class Merged(NamedTuple):
    """Cells after an update. Rows and columns that were there keep their positions.

    Attributes
    ----------
    cells : Observations
        All cells.
    rows, cols : ndarray of bool
        Where a cell was added, replaced or removed.
    fresh : ndarray of int
        Which of the cells were added or replaced.
    cols_only_added : ndarray of bool
        Columns whose old cells all stay as they were.
    """

    cells: Observations
    rows: BoolArray
    cols: BoolArray
    fresh: IndexArray
    cols_only_added: BoolArray


@dataclass(frozen=True)
class TrainingCells:
    """What a model was fitted to, in the form in which it is saved."""

    indptr: IndexArray
    indices: IndexArray
    values: FloatArray
    weights: FloatArray | None
    shape: tuple[int, int]
    row_features: Features | None
    col_features: Features | None

    def __post_init__(self) -> None:
        starts, cols, (n, m) = self.indptr, self.indices, self.shape
        lengths = {cols.size, self.values.size, cols.size if self.weights is None else self.weights.size}
        if (
            starts.size != n + 1
            or lengths != {int(starts[-1])}
            or starts[0] != 0
            or np.any(np.diff(starts) < 0)
        ):
            raise InvalidDataError("the cells that the model was fitted to have inconsistent lengths")
        rows = np.repeat(np.arange(n), np.diff(starts))
        inside = cols.size == 0 or (cols.min() >= 0 and cols.max() < m)
        if not inside or np.any(np.diff(rows * m + cols) <= 0):
            raise InvalidDataError("the cells that the model was fitted to are not in order")
        for side, features, length in (("row", self.row_features, n), ("col", self.col_features, m)):
            if features is not None and (features.ndim != 2 or features.shape[0] != length):
                raise InvalidDataError(
                    f"{side}_features of the fit has shape {features.shape}, not {length} rows"
                )

    @classmethod
    def of(
        cls, cells: Observations, row_features: Features | None, col_features: Features | None
    ) -> TrainingCells:
        """The cells and features of a fit."""
        pattern = (cells.indptr, cells.indices, cells.values, cells.weights, cells.shape)
        return cls(*pattern, row_features, col_features)

    def cells(self) -> Observations:
        """The cells, without ids."""
        return Observations(Pattern(self.indptr, self.indices, self.shape), self.values, weights=self.weights)


def merge_cells(
    old: Observations,
    new: Observations | None,
    removed: tuple[Places, Places] | None = None,
    *,
    decay: float = 1.0,
) -> Merged:
    """Lay new cells over old ones: a cell that is in both has the new value and weight.

    Parameters
    ----------
    old : Observations
        Cells that were there.
    new : Observations, optional
        Cells that arrive, named as the old ones are. Unknown ids become new rows and columns at the end;
        cells without ids have at least the shape of the old ones.
    removed : pair of arrays of int, optional
        Positions of old cells that go, as :func:`cells_at` finds them.
    decay : float, default=1.0
        Factor of the weights of old cells.

    Returns
    -------
    Merged

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Observations
    >>> old = Observations.from_dense([[1.0, np.nan], [2.0, 3.0]])
    >>> new = Observations.from_triples([0, 2], [0, 1], [5.0, 4.0], shape=(3, 2))
    >>> merge_cells(old, new).cells.csr.toarray()
    array([[5., 0.],
           [2., 3.],
           [0., 4.]])
    """
    row_ids, row_at = _grown(old.row_ids, None if new is None else new.row_ids, "row")
    col_ids, col_at = _grown(old.col_ids, None if new is None else new.col_ids, "col")
    shape = tuple(_length(axis, ids, old, new) for axis, ids in ((0, row_ids), (1, col_ids)))
    old_keys = old.rows.astype(np.int64) * shape[1] + old.indices
    new_keys, order = _keys(new, row_at, col_at, shape[1])
    gone = np.zeros(old.nnz, dtype=bool)
    removed_keys = np.empty(0, dtype=np.int64)
    if removed is not None:
        removed_keys = removed[0] * shape[1] + removed[1]
    for keys in (removed_keys, new_keys):
        place = np.searchsorted(old_keys, keys)
        there = place < old.nnz
        there[there] = old_keys[place[there]] == keys[there]
        gone[place[there]] = True
    kept = ~gone if gone.any() else slice(None)
    left = old_keys[kept]
    at = np.searchsorted(left, new_keys)
    # Where new cells come to lie among all; the old ones keep their order around them.
    fresh = np.zeros(left.size + new_keys.size, dtype=bool)
    fresh[at + np.arange(new_keys.size)] = True
    index = index_dtype((shape[0], shape[1]), fresh.size)
    new_rows, new_cols = np.divmod(new_keys, shape[1])
    counts = np.zeros(shape[0], dtype=np.int64)
    counts[: old.shape[0]] = np.diff(old.indptr)
    counts += np.bincount(new_rows, minlength=shape[0])
    counts -= np.bincount(old_keys[gone] // shape[1], minlength=shape[0])
    indptr = np.zeros(shape[0] + 1, dtype=index)
    np.cumsum(counts, out=indptr[1:])
    cols = _woven(old.indices[kept], fresh, new_cols, index)
    pattern = Pattern(indptr, cols, (shape[0], shape[1]))
    values = _woven(old.values[kept], fresh, None if new is None else new.values[order])
    changed = np.concatenate([old_keys[gone], new_keys])
    row_changed, col_changed = (np.zeros(length, dtype=bool) for length in shape)
    row_changed[changed // shape[1]] = True
    col_changed[changed % shape[1]] = True
    row_changed[old.shape[0] :], col_changed[old.shape[1] :] = True, True
    only_added = np.zeros(shape[1], dtype=bool)
    only_added[: old.shape[1]] = decay == 1.0
    only_added[old_keys[gone] % shape[1]] = False
    weights = _weights(old, new, kept, fresh, order, decay)
    if decay != 1.0:
        row_changed[:], col_changed[:] = True, True
    cells = Observations(pattern, values, row_ids, col_ids, weights, old.origin)
    return Merged(cells, row_changed, col_changed, np.flatnonzero(fresh), only_added)


def cells_at(old: Observations, pairs: Any) -> tuple[Places, Places]:
    """Positions of stored cells that are named by pairs of a row and a column.

    Parameters
    ----------
    old : Observations
        Cells.
    pairs : sequence of (row, col), Observations or sparse matrix
        Ids where the cells have them, else positions. Of a matrix the stored cells are meant.

    Returns
    -------
    rows, cols : ndarray of int64
    """
    if isinstance(pairs, Observations) or hasattr(pairs, "tocsr"):
        given = Observations.from_any(pairs)
        named = [
            numbers if ids is None else ids[numbers]
            for numbers, ids in ((given.rows, given.row_ids), (given.indices, given.col_ids))
        ]
    else:
        listed = pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs)
        if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in listed):
            raise InvalidDataError("remove must hold pairs of a row and a column, such as [('ann', 'Alien')]")
        named = [as_id_array([pair[axis] for pair in listed], f"remove[{axis}]") for axis in (0, 1)]
    places = []
    for side, ids, length, wanted in zip(
        ("row", "column"), (old.row_ids, old.col_ids), old.shape, named, strict=True
    ):
        if ids is not None:
            found = ids.find(wanted)
        else:
            numbers = np.asarray(wanted)
            if numbers.size and numbers.dtype.kind not in "iu":
                raise InvalidDataError(
                    f"remove names {side}s by {numbers[0]!r}, but the model was fitted without ids of "
                    f"{side}s; positions are accepted"
                )
            found = np.where((numbers >= 0) & (numbers < length), numbers, -1).astype(np.int64)
        if (found < 0).any():
            first = int(np.argmax(found < 0))
            raise UnknownIdError(
                f"remove: {wanted[first].item()!r} (pair {first}) is no {side} of this model"
            )
        places.append(found)
    keys = places[0] * old.shape[1] + places[1]
    stored = old.rows.astype(np.int64) * old.shape[1] + old.indices
    missing = ~np.isin(keys, stored)
    if missing.any():
        first = int(np.argmax(missing))
        raise InvalidDataError(
            f"remove: row {named[0][first].item()!r}, column {named[1][first].item()!r} (pair {first}) is "
            f"not among the {old.nnz} cells of this model"
        )
    return places[0], places[1]


def _grown(
    old: Vocabulary | None, new: Vocabulary | None, side: str
) -> tuple[Vocabulary | None, Places | None]:
    """The vocabulary with unknown ids at its end, and the position of each new id in it."""
    if new is None:
        return old, None
    if old is None:
        raise InvalidDataError(
            f"the cells name their {side}s ({new.sample()}), but the model was fitted without ids of {side}s"
        )
    place = old.find(new.values)
    unknown = place < 0
    if not unknown.any():
        return old, place
    if (new.values.dtype.kind == "U") != (old.values.dtype.kind == "U"):
        kinds = ["strings" if ids.values.dtype.kind == "U" else "integers" for ids in (new, old)]
        raise InvalidDataError(
            f"the cells name their {side}s by {kinds[0]} ({new.sample()}), the model by {kinds[1]} "
            f"({old.sample()})"
        )
    place[unknown] = len(old) + np.arange(int(unknown.sum()))
    return Vocabulary(np.concatenate([old.values, new.values[unknown]])), place


def _length(axis: int, ids: Vocabulary | None, old: Observations, new: Observations | None) -> int:
    if new is None:
        return int(old.shape[axis])
    if ids is not None:
        if (new.row_ids, new.col_ids)[axis] is None:
            side = ("row", "column")[axis]
            raise InvalidDataError(
                f"the cells have no ids of {side}s, but the model knows its {side}s by id ({ids.sample()}): "
                "give them as Observations with ids, or as a frame"
            )
        return len(ids)
    return max(int(old.shape[axis]), int(new.shape[axis]))


def _keys(
    new: Observations | None, row_at: Places | None, col_at: Places | None, n_cols: int
) -> tuple[Places, npt.NDArray[np.intp]]:
    """Sorted keys of the new cells, and the order that sorts them."""
    if new is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.intp)
    rows = new.rows.astype(np.int64) if row_at is None else row_at[new.rows]
    cols = new.indices.astype(np.int64) if col_at is None else col_at[new.indices]
    keys = rows * n_cols + cols
    order = np.argsort(keys, kind="stable")
    return keys[order], order


def _woven(old: Array, fresh: BoolArray, new: Array | None, dtype: Any = None) -> Any:
    """Old entries in their order, with new ones at the places that are theirs."""
    out = np.empty(fresh.size, dtype=old.dtype if dtype is None else dtype)
    out[~fresh] = old
    if new is not None:
        out[fresh] = new
    return out


def _weights(
    old: Observations,
    new: Observations | None,
    kept: BoolArray | slice,
    fresh: BoolArray,
    order: Array,
    decay: float,
) -> FloatArray | None:
    """Weights of all cells; None where all are one."""
    if old.weights is None and decay == 1.0 and (new is None or new.weights is None):
        return None
    before = np.ones_like(old.values) if old.weights is None else old.weights
    after = None
    if new is not None:
        after = (np.ones_like(new.values) if new.weights is None else new.weights)[order]
    woven: FloatArray = _woven((before[kept] * decay).astype(old.dtype), fresh, after)
    return woven
