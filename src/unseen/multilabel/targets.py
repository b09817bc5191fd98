"""Reading what a classifier is taught: an indicator matrix, sets of labels, or one class for each row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from unseen.exceptions import InvalidDataError
from unseen.typing import CSR, Array
from unseen.validation import as_frame, check_features

__all__ = ["Targets", "read_classes", "read_indicator", "read_like", "read_targets", "refuse_misaligned"]

SETS = (list, tuple, set, frozenset, np.ndarray)
"""What may hold the labels of a row."""


class Targets(NamedTuple):
    """What was taught.

    Attributes
    ----------
    indicator : csr_array
        Canonical, every stored value is one.
    names : ndarray or None
        What its columns are called; None where only their numbers are known.
    kind : {"indicator", "sets", "classes"}
        How it came.
    """

    indicator: CSR
    names: Array | None
    kind: str


def read_targets(Y: Any, n_rows: int, dtype: Any) -> Targets:
    """Turn user input into a 0/1 CSR matrix with names of its columns.

    Parameters
    ----------
    Y : sparse matrix, frame, array or sequence of sets
        Indicators of shape (n_rows, n_labels), the labels of each row, or n_rows classes.
    n_rows : int
        Rows of the features.
    dtype : dtype
        Floating type of the result.

    Returns
    -------
    Targets
    """
    if Y is None:
        raise InvalidDataError(
            "requires y to be passed, but the target y is None; pass a 0/1 matrix, the labels of each row, "
            "such as [['a', 'b'], ['c']], or one class for each row"
        )
    if (names := _columns_of(Y)) is not None or sparse.issparse(Y):
        return Targets(read_indicator(Y, n_rows, dtype), names, "indicator")
    if (rows := _as_sets(Y)) is not None:
        indicator, names = read_sets(rows, n_rows, dtype)
        return Targets(indicator, names, "sets")
    array = _as_array(Y)
    if array.ndim == 1:
        return Targets(*read_classes(array, n_rows, dtype), "classes")
    if array.ndim != 2:
        raise InvalidDataError(f"Y must have one or two dimensions, got shape {array.shape}")
    return Targets(read_indicator(Y, n_rows, dtype), None, "indicator")


def read_like(Y: Any, n_rows: int, labels: Array) -> CSR:
    """Labels that a fitted model is measured against, in its columns; labels unknown to it come after these.

    Parameters
    ----------
    Y : sparse matrix, frame, array or sequence of sets
        As :func:`read_targets` takes it; an indicator without names has the columns of training.
    n_rows : int
        Rows of the features.
    labels : ndarray
        What the model calls its labels.

    Returns
    -------
    csr_array of shape (n_rows, n_labels or more)
    """
    found = read_targets(Y, n_rows, np.float64)
    if found.names is None:
        if found.indicator.shape[1] != len(labels):
            raise InvalidDataError(
                f"y has {found.indicator.shape[1]} columns, but the model knows {len(labels)} labels"
            )
        return found.indicator
    if (found.names.dtype.kind == "U") != (labels.dtype.kind == "U"):
        raise InvalidDataError(
            f"y names labels like {found.names[0].item()!r}, but the model was fitted with labels like "
            f"{labels[0].item()!r}"
        )
    place = {name: position for position, name in enumerate(labels.tolist())}
    columns = np.array([place.setdefault(name, len(place)) for name in found.names.tolist()], dtype=np.int64)
    cells = found.indicator.tocoo()
    return sparse.csr_array((cells.data, (cells.row, columns[cells.col])), shape=(n_rows, len(place)))


def read_indicator(Y: Any, n_rows: int, dtype: Any) -> CSR:
    """A validated n_rows x n_labels indicator with at least one label."""
    checked = check_features(Y, None, "Y", dtype=dtype)
    _same_rows(checked.shape[0], n_rows)
    csr = sparse.csr_array(checked)
    wrong = (csr.data != 0) & (csr.data != 1)
    if wrong.any():
        place = int(np.argmax(wrong))
        row = int(np.searchsorted(csr.indptr, place, side="right")) - 1
        raise InvalidDataError(
            f"Y holds {csr.data[place]:g} in row {row}, column {csr.indices[place]}; "
            "only 0 and 1 are accepted. One class for each row must be one-dimensional, and labels with "
            "numbers for names come as sets: [{1, 2}, {3}]."
        )
    if not csr.data.all():
        csr = csr.copy()
        csr.eliminate_zeros()
    if csr.nnz == 0:
        raise InvalidDataError(f"Y ({csr.shape[0]} x {csr.shape[1]}) has no label at all: every entry is 0")
    return csr


def read_sets(rows: Sequence[Any], n_rows: int, dtype: Any) -> tuple[CSR, Array]:
    """An indicator of the labels of each row, and the sorted labels."""
    _same_rows(len(rows), n_rows)
    for number, row in enumerate(rows):
        if not isinstance(row, SETS):
            raise InvalidDataError(
                f"y holds {row!r} in row {number}, where other rows hold their labels: a row without labels "
                "is an empty list"
            )
    lengths = [len(row) for row in rows]
    items = np.empty(sum(lengths), dtype=object)
    items[:] = list(chain.from_iterable(rows))
    if not items.size:
        raise InvalidDataError(f"y ({n_rows} rows) has no label at all: every row is empty")
    owners = np.repeat(np.arange(n_rows), lengths)
    labels, codes = np.unique(_plain(items, owners), return_inverse=True)
    indicator = sparse.csr_array(
        (np.ones(items.size, dtype=dtype), (owners, codes)), shape=(n_rows, len(labels))
    )
    indicator.data[:] = 1  # a label that a row names twice is still one label
    return indicator, labels


def read_classes(y: Array, n_rows: int, dtype: Any) -> tuple[CSR, Array]:
    """One-hot rows for one class a row, and the sorted classes."""
    _same_rows(len(y), n_rows)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InvalidDataError(
            f"Input y contains NaN or infinity, first in row {int(np.argmin(np.isfinite(y)))}"
        )
    if y.dtype.kind == "O":
        y = _plain(y, np.arange(len(y)))
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    one_hot = sparse.csr_array(
        (np.ones(n_rows, dtype=dtype), codes.astype(np.int32), np.arange(n_rows + 1, dtype=np.int32)),
        shape=(n_rows, len(classes)),
    )
    return one_hot, classes


def refuse_misaligned(X: Any, y: Any) -> None:
    """Refuse frames of pandas whose indexes name the rows differently.

    Rows are taken in their order, as scikit-learn does; where both sides say what their rows are, and say
    different things, that order is wrong.
    """
    own, other = (getattr(side, "index", None) for side in (X, y))
    if own is None or other is None or not (hasattr(own, "equals") and hasattr(other, "equals")):
        return
    if len(own) != len(other) or own.equals(other):
        return
    count = np.arange(len(own))
    plain = [np.array_equal(np.asarray(index), count) for index in (own, other)]
    if not any(plain) or set(own) == set(other):
        first = int(np.argmax(np.asarray(own) != np.asarray(other)))
        raise InvalidDataError(
            f"X and y have different indexes, first in row {first}: {own[first]!r} and {other[first]!r}. "
            "y.loc[X.index] has the rows of y in the order of X; X.reset_index(drop=True), and the same for "
            "y, if rows belong together by their order"
        )


def _columns_of(Y: Any) -> Array | None:
    """Names of the columns of a frame."""
    if (frame := as_frame(Y, "y")) is None:
        return None
    names = list(Y.columns) if frame.implementation.is_pandas() else list(frame.columns)
    held = np.empty(len(names), dtype=object)
    held[:] = names
    return _plain(held, None)


def _as_sets(Y: Any) -> Sequence[Any] | None:
    """Rows that hold their labels; None for everything else.

    A list of lists of numbers is a matrix to NumPy, so only sets hold labels that are called by numbers.
    """
    if isinstance(Y, np.ndarray) or hasattr(Y, "to_list"):  # an array, or a column of a frame
        if getattr(Y, "ndim", 1) != 1:
            return None
        rows = Y.tolist() if isinstance(Y, np.ndarray) else Y.to_list()
        return rows if any(isinstance(row, SETS) for row in rows) else None
    if not isinstance(Y, Sequence) or isinstance(Y, str) or not any(isinstance(row, SETS) for row in Y):
        return None
    if any(isinstance(row, (set, frozenset)) for row in Y):
        return Y
    inside = [item for row in Y if isinstance(row, SETS) for item in row]
    if any(isinstance(item, str) for item in inside) or not inside:
        return Y
    if len({len(row) if isinstance(row, SETS) else -1 for row in Y}) > 1:
        raise InvalidDataError(
            "y is a list of rows of different lengths with numbers in them: a 0/1 matrix has the same length "
            "everywhere, and labels with numbers for names come as sets: [set(row) for row in y]"
        )
    return None


def _as_array(Y: Any) -> Array:
    try:
        return np.asarray(Y)
    except ValueError as error:
        raise InvalidDataError(f"y cannot be read: {error}") from error


def _plain(y: Array, rows: Array | None) -> Array:
    """Names held as Python objects, as an array that can be sorted and saved."""
    kinds = {type(item) for item in y}
    if all(issubclass(kind, str) for kind in kinds):
        return y.astype(str)
    if all(issubclass(kind, (int, np.integer, np.bool_)) for kind in kinds):
        return y.astype(np.int64)
    if all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        numbers = y.astype(np.float64)
        if rows is None or np.isfinite(numbers).all():
            return numbers
    usual = max(kinds, key=lambda kind: sum(type(item) is kind for item in y))
    wrong = next(place for place, item in enumerate(y) if type(item) is not usual or item != item)
    where = "as the name of a column" if rows is None else f"in row {rows[wrong]}"
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InvalidDataError(
        f"y must hold classes or labels of one kind, text or numbers; found {names}, such as {y[wrong]!r} "
        f"{where}. Rows without a class cannot be learned from: leave them out"
    )


def _same_rows(found: int, wanted: int) -> None:
    if found != wanted:
        raise InvalidDataError(f"X has {wanted} rows and Y has {found}; they must describe the same rows")
