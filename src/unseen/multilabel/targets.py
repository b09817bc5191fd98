"""Reading what a classifier is taught: an indicator matrix, or one class for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from unseen.exceptions import InvalidDataError
from unseen.typing import CSR, Array
from unseen.validation import check_features

__all__ = ["read_classes", "read_indicator", "read_targets"]


def read_targets(Y: Any, n_rows: int, dtype: Any) -> tuple[CSR, Array | None]:
    """Turn user input into a 0/1 CSR matrix, and the class names where ``Y`` is one-dimensional.

    Parameters
    ----------
    Y : sparse matrix, frame or array
        Indicators of shape (n_rows, n_labels), or n_rows classes.
    n_rows : int
        Rows of the features.
    dtype : dtype
        Floating type of the result.

    Returns
    -------
    indicator : csr_array
        Canonical, every stored value is one.
    classes : ndarray or None
        Sorted class names; None for indicators.
    """
    if Y is None:
        raise InvalidDataError(
            "requires y to be passed, but the target y is None; pass a 0/1 matrix or one class for each row"
        )
    if not sparse.issparse(Y) and not hasattr(Y, "columns"):
        array = np.asarray(Y)
        if array.ndim == 1:
            return read_classes(array, n_rows, dtype)
        if array.ndim != 2:
            raise InvalidDataError(f"Y must have one or two dimensions, got shape {array.shape}")
    return read_indicator(Y, n_rows, dtype), None


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
            "only 0 and 1 are accepted. One class for each row must be one-dimensional."
        )
    if not csr.data.all():
        csr = csr.copy()
        csr.eliminate_zeros()
    if csr.nnz == 0:
        raise InvalidDataError(f"Y ({csr.shape[0]} x {csr.shape[1]}) has no label at all: every entry is 0")
    return csr


def read_classes(y: Array, n_rows: int, dtype: Any) -> tuple[CSR, Array]:
    """One-hot rows for one class a row, and the sorted classes."""
    _same_rows(len(y), n_rows)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InvalidDataError(
            f"Input y contains NaN or infinity, first in row {int(np.argmin(np.isfinite(y)))}"
        )
    if y.dtype.kind == "O":
        y = _plain(y)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    one_hot = sparse.csr_array(
        (np.ones(n_rows, dtype=dtype), codes.astype(np.int32), np.arange(n_rows + 1, dtype=np.int32)),
        shape=(n_rows, len(classes)),
    )
    return one_hot, classes


def _plain(y: Array) -> Array:
    """Classes held as Python objects, as an array that can be sorted and saved."""
    kinds = {type(item) for item in y}
    if all(issubclass(kind, str) for kind in kinds):
        return y.astype(str)
    if all(issubclass(kind, (int, np.integer, np.bool_)) for kind in kinds):
        return y.astype(np.int64)
    if all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        return y.astype(np.float64)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InvalidDataError(f"y must hold classes of one kind, text or numbers; found {names}")


def _same_rows(found: int, wanted: int) -> None:
    if found != wanted:
        raise InvalidDataError(f"X has {wanted} rows and Y has {found}; they must describe the same rows")
