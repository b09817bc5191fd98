"""Side features: numbers, entities in rows."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.exceptions import InvalidDataError, NotNumbersError
from unseen.typing import CSR, Array, Features, FloatArray
from unseen.validation.arrays import check_sparse, float_dtype, refuse_long, refuse_masked

__all__ = ["as_frame", "check_features", "held"]

DENSE_SHARE = 0.25
"""Share of non-zeros above which features are held as a dense array."""


def check_features(
    features: Any, n_entities: int | None, name: str, *, dtype: npt.DTypeLike | None = None
) -> Features:
    """Check side features: one row of finite numbers for each entity.

    Parameters
    ----------
    features : array-like, scipy.sparse or data frame
        Numbers, entities in rows. Frames of pandas, polars or pyarrow must have numeric or boolean
        columns only, in the order of the entities.
    n_entities : int or None
        Number of rows wanted; None accepts any.
    name : str
        The argument, as the user knows it.
    dtype : dtype, optional
        Floating type of the result. The default keeps float32 and turns all else into float64.

    Returns
    -------
    ndarray or csr_array
        C-contiguous, or canonical CSR for sparse input. Not a copy where none is needed.

    Examples
    --------
    >>> check_features([[1, 2], [3, 4]], 2, "row_features")
    array([[1., 2.],
           [3., 4.]])
    """
    checked = (
        _sparse_features(features, name, dtype)
        if sparse.issparse(features)
        else _dense_features(features, name, dtype)
    )
    if n_entities is not None and checked.shape[0] != n_entities:
        raise InvalidDataError(
            f"{name} has {checked.shape[0]} rows, but {n_entities} entities each need one."
        )
    return checked


def held(features: Features) -> Features:
    """Features in the form in which a model holds them: dense if more than a quarter of them are not zero.

    Numbers decide, not the format that they came in, so that the same numbers give the same model to the
    last bit; above that share dense products are faster too.
    """
    if sparse.issparse(features):
        csr: CSR = sparse.csr_array(features)
        if csr.nnz > DENSE_SHARE * csr.shape[0] * csr.shape[1]:
            return np.ascontiguousarray(csr.toarray())
    return features


def _dense_features(features: Any, name: str, dtype: npt.DTypeLike | None) -> FloatArray:
    refuse_masked(features, name, "impute missing features first")
    array = _frame_to_array(features, name)
    if array.ndim != 2:
        raise InvalidDataError(
            f"{name} must be two-dimensional (entities x features), got shape {array.shape}. "
            "Reshape your data, for one feature with array.reshape(-1, 1)."
        )
    _refuse_non_numeric(array.dtype, name)
    try:
        result = np.ascontiguousarray(array, dtype=dtype or float_dtype(array.dtype))
    except TypeError as error:
        raise NotNumbersError(f"{name} must hold numbers: {error}.") from error
    except ValueError as error:
        raise InvalidDataError(f"{name} must hold numbers: {error}.") from error
    if (position := _first_unfit(result)) is not None:
        row, col = divmod(position, result.shape[1])
        _raise_unfit(name, row, col, result[row, col])
    return result


def as_frame(data: Any, name: str) -> nw.DataFrame[Any] | None:
    """Wrap a data frame of any supported library; None for what is none.

    Parameters
    ----------
    data : object
        What the user passed.
    name : str
        The argument, as the user knows it.

    Returns
    -------
    narwhals.DataFrame or None
    """
    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = list(data.columns)
        twice = next(column for place, column in enumerate(names) if column in names[:place])
        raise InvalidDataError(
            f"{name} has {names.count(twice)} columns called {twice!r}; columns are told apart by name"
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise InvalidDataError(f"{name} is a lazy frame; collect() it first")
    return frame if isinstance(frame, nw.DataFrame) else None


def _frame_to_array(features: Any, name: str) -> Array:
    frame = as_frame(features, name)
    if frame is None:
        return np.asarray(features)
    for column, column_type in frame.schema.items():
        if not (column_type.is_numeric() or column_type == nw.Boolean):
            raise InvalidDataError(
                f"{name} must have numeric columns only; column {column!r} is {column_type}. "
                "unseen.data.align encodes categories and text."
            )
    return frame.to_numpy()


def _sparse_features(features: Any, name: str, dtype: npt.DTypeLike | None) -> CSR:
    if features.ndim != 2:
        raise InvalidDataError(f"{name} must be two-dimensional, got shape {features.shape}.")
    _refuse_non_numeric(features.dtype, name)
    check_sparse(features, name)
    refuse_long(name, features.shape)
    csr = sparse.csr_array(features)
    if csr.dtype != (wanted := np.dtype(dtype or float_dtype(csr.dtype))):
        csr = csr.astype(wanted)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    if (position := _first_unfit(csr.data)) is not None:
        row = int(np.searchsorted(csr.indptr, position, side="right")) - 1
        _raise_unfit(name, row, int(csr.indices[position]), csr.data[position])
    return csr


def _refuse_non_numeric(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind == "c":
        raise InvalidDataError(f"{name}: Complex data not supported, got dtype {dtype}.")
    if dtype.kind not in "fiubO":
        raise InvalidDataError(f"{name} must hold numbers, got dtype {dtype}.")


def _first_unfit(array: FloatArray) -> int | None:
    """Place of the first number that is not finite or whose square is not; None where there is none."""
    # A finite sum of squares proves them all and needs no mask; only a doubtful one is looked at closely.
    flat = array.ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(flat @ flat):
            return None
        bad = ~np.isfinite(np.square(flat))
    return int(np.argmax(bad)) if bad.any() else None


def _raise_unfit(name: str, row: int, col: int, value: Any) -> None:
    wanted = "numbers whose squares are finite" if np.isfinite(value) else "only finite numbers"
    hint = " Impute missing features first, for example with sklearn.impute." if np.isnan(value) else ""
    shown = "NaN" if np.isnan(value) else value
    raise InvalidDataError(f"{name} holds {shown} in row {row}, column {col}; {wanted} are accepted.{hint}")
