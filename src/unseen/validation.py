"""Checks on everything that a user can pass in.

Nothing below this module checks again: solvers and kernels trust what they get.
Every message names the argument, what was found and what would be accepted.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, TypeVar

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.exceptions import InvalidDataError, NotNumbersError, ParameterError, TooLargeError
from unseen.typing import CSR, Array, Features, FloatArray

__all__ = [
    "as_frame",
    "check_choice",
    "check_count",
    "check_entries",
    "check_features",
    "check_fraction",
    "check_index_pairs",
    "check_indices",
    "check_list_length",
    "check_n_jobs",
    "check_pair",
    "check_positive",
    "check_rng",
    "check_several",
    "check_sparse",
    "check_verbose",
    "float_dtype",
    "held",
    "refuse_long",
    "refuse_masked",
]

DENSE_SHARE = 0.25
"""Share of non-zeros above which features are held as a dense array."""

LONGEST_SIDE = 1 << 33
"""Rows or columns that a matrix can have: one number for each of them fills 64 GiB."""

LARGEST_COUNT = (1 << 31) - 1
"""Ranks, sweeps, samples and the like: more of them than this is a mistake."""

_T = TypeVar("_T")


def _real(name: str, value: Any, wanted: str) -> float:
    """Turn a real number into a float; anything else, NaN included, is refused."""
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be {wanted}, got {value!r} of type {type(value).__name__}.")
    if math.isnan(value):
        raise ParameterError(f"{name} must be {wanted}, got NaN.")
    return float(value)


def check_positive(name: str, value: Any, *, strict: bool = True, allow_inf: bool = False) -> float:
    """Check a number that must be positive, or non-negative when not `strict`.

    Parameters
    ----------
    name : str
        The argument, as the user knows it.
    value : object
        What the user passed.
    strict : bool, default=True
        Refuse zero.
    allow_inf : bool, default=False
        Accept infinity.

    Returns
    -------
    float

    Examples
    --------
    >>> check_positive("reg", 2)
    2.0
    >>> check_positive("reg", -1)
    Traceback (most recent call last):
        ...
    unseen.exceptions.ParameterError: reg must be a finite number > 0, got -1.
    """
    wanted = f"a{'' if allow_inf else ' finite'} number {'>' if strict else '>='} 0"
    number = _real(name, value, wanted)
    if number < 0 or (strict and number == 0) or (math.isinf(number) and not allow_inf):
        raise ParameterError(f"{name} must be {wanted}, got {value!r}.")
    return number


def check_pair(name: str, value: Any) -> tuple[float, float]:
    """Validate one number for both sides, or one for rows and one for columns.

    Parameters
    ----------
    name : str
        Argument name for the error message.
    value : object
        A number of zero or more, or two of them.

    Returns
    -------
    (float, float)

    Examples
    --------
    >>> from unseen.validation import check_pair
    >>> check_pair("reg", 2), check_pair("reg", (7, 3))
    ((2.0, 2.0), (7.0, 3.0))
    """
    pair = value if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2:
        raise ParameterError(f"{name} must be one number or two, found {value!r}")
    return check_positive(name, pair[0], strict=False), check_positive(name, pair[1], strict=False)


def check_fraction(
    name: str,
    value: Any,
    *,
    low: float = 0.0,
    high: float = 1.0,
    include_low: bool = False,
    include_high: bool = False,
) -> float:
    """Check a number in an interval, open at both ends unless told otherwise.

    Parameters
    ----------
    name : str
        The argument, as the user knows it.
    value : object
        What the user passed.
    low, high : float
        Ends of the interval.
    include_low, include_high : bool, default=False
        Whether the ends themselves are accepted.

    Returns
    -------
    float

    Examples
    --------
    >>> check_fraction("alpha", 0.9)
    0.9
    """
    wanted = f"a number in {'[' if include_low else '('}{low:g}, {high:g}{']' if include_high else ')'}"
    number = _real(name, value, wanted)
    too_low = number < low or (number == low and not include_low)
    too_high = number > high or (number == high and not include_high)
    if too_low or too_high:
        raise ParameterError(f"{name} must be {wanted}, got {value!r}.")
    return number


def check_count(name: str, value: Any, *, minimum: int = 1, maximum: int | None = LARGEST_COUNT) -> int:
    """Check a whole number from `minimum` to `maximum`.

    Parameters
    ----------
    name : str
        The argument, as the user knows it.
    value : object
        What the user passed; floats and booleans are refused.
    minimum : int, default=1
        Smallest value that is accepted.
    maximum : int or None, default=2**31 - 1
        Largest value that is accepted; None for any.

    Returns
    -------
    int

    Examples
    --------
    >>> check_count("rank", 10)
    10
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)) or value < minimum:
        raise ParameterError(
            f"{name} must be an integer >= {minimum}, got {value!r} of type {type(value).__name__}."
        )
    if maximum is not None and int(value) > maximum:
        raise ParameterError(f"{name} must be at most {maximum}, got {value!r}.")
    return int(value)


def check_list_length(k: Any, length: int) -> int:
    """Check how many places a list is to have: never more than there is to list.

    Parameters
    ----------
    k : object
        What the user passed.
    length : int
        What there is to list.

    Returns
    -------
    int

    Examples
    --------
    >>> check_list_length(10, 3)
    3
    """
    return min(check_count("k", k, maximum=None), length)


def check_verbose(value: Any) -> bool:
    """Check whether a progress bar is wanted: 0 or False for none, 1 or True (or a larger number) for one.

    Parameters
    ----------
    value : object
        What the user passed.

    Returns
    -------
    bool

    Examples
    --------
    >>> check_verbose(1)
    True
    """
    if not isinstance(value, (numbers.Integral, np.bool_)) or value < 0:
        raise ParameterError(f"verbose must be 0 (silent) or 1 (a progress bar), got {value!r}.")
    return bool(value)


def check_several(name: str, value: Any, wanted: str) -> list[Any]:
    """Check that a value is a sequence of things, as a list.

    Parameters
    ----------
    name : str
        The argument, as the user knows it.
    value : object
        What the user passed.
    wanted : str
        What would be accepted, in words.

    Returns
    -------
    list

    Examples
    --------
    >>> check_several("weights", (1.0, 2.0), "two numbers")
    [1.0, 2.0]
    """
    # Not any iterable: some never end, and others are empty when they are read again.
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Collection):
        raise ParameterError(f"{name} must be {wanted}, got {value!r}.")
    return list(value)


def check_choice(name: str, value: _T, options: Sequence[_T]) -> _T:
    """Check that a value is one of a few options.

    Parameters
    ----------
    name : str
        The argument, as the user knows it.
    value : object
        What the user passed.
    options : sequence
        What is accepted.

    Returns
    -------
    object
        The value itself.

    Examples
    --------
    >>> check_choice("solver", "als", ("als", "ccd"))
    'als'
    """
    # Comparing types as well keeps 1 from passing for True, and arrays from answering with arrays.
    if not any(type(value) is type(option) and value == option for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise ParameterError(f"{name} must be one of {listed}; got {value!r}.")
    return value


def check_n_jobs(n_jobs: Any) -> int:
    """Turn `n_jobs` into a number of threads.

    Parameters
    ----------
    n_jobs : int or None
        A number of threads; None or -1 means every core that this process may use.

    Returns
    -------
    int

    Examples
    --------
    >>> check_n_jobs(2)
    2
    """
    if n_jobs is None or (type(n_jobs) is not bool and isinstance(n_jobs, numbers.Integral) and n_jobs == -1):
        if hasattr(os, "sched_getaffinity"):
            return max(1, len(os.sched_getaffinity(0)))
        return os.cpu_count() or 1
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, (bool, np.bool_)) or n_jobs < 1:
        raise ParameterError(f"n_jobs must be an integer >= 1, or None or -1 for all cores; got {n_jobs!r}.")
    return int(n_jobs)


def check_rng(random_state: Any) -> np.random.Generator:
    """Turn `random_state` into a generator.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A seed, or a source of random numbers. A `Generator` is used as it is, so its state moves on;
        a `RandomState` gives the seed; None takes fresh entropy.

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> int(check_rng(0).integers(100)) == int(check_rng(0).integers(100))
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, (bool, np.bool_))
    if random_state is None or (is_seed and random_state >= 0):
        return np.random.default_rng(random_state)
    raise ParameterError(
        "random_state must be None, an integer >= 0, a numpy Generator or a RandomState; "
        f"got {random_state!r}."
    )


def check_entries(
    rows: Any, cols: Any, shape: tuple[int, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Check pairs of row and column indices.

    Parameters
    ----------
    rows, cols : array-like of int
        Indices from 0, one-dimensional and of equal length; a single integer counts as length one.
    shape : tuple of int
        Number of rows and columns.

    Returns
    -------
    rows, cols : ndarray of int64

    Examples
    --------
    >>> check_entries([0, 1], [2, 0], (2, 3))
    (array([0, 1]), array([2, 0]))
    """
    checked = (check_indices("rows", rows, shape[0]), check_indices("cols", cols, shape[1]))
    if checked[0].shape != checked[1].shape:
        raise InvalidDataError(
            f"rows and cols must have the same length, got {checked[0].size} and {checked[1].size}."
        )
    return checked


def check_index_pairs(name: str, pairs: Any, shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Check pairs of indices, given as an array with two columns.

    Parameters
    ----------
    name : str
        The argument, as the user knows it.
    pairs : array-like of int, shape (n_pairs, 2)
        What the user passed.
    shape : tuple of int
        What the first and the second of each pair must stay below.

    Returns
    -------
    ndarray of int64, shape (n_pairs, 2)

    Examples
    --------
    >>> check_index_pairs("pairs", [[0, 2]], (2, 3))
    array([[0, 2]])
    """
    refuse_masked(pairs, name)
    given = np.asarray(pairs)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise InvalidDataError(
            f"{name} must be integers of shape (n_pairs, 2), got {given.dtype} of shape {given.shape}."
        )
    bad = ((given < 0) | (given >= np.array(shape))).any(axis=1)
    if bad.any():
        place = int(np.argmax(bad))
        first, second = given[place].tolist()
        raise InvalidDataError(
            f"{name}[{place}] is ({first}, {second}), outside of 0..{shape[0] - 1} and 0..{shape[1] - 1}."
        )
    return given.astype(np.int64, copy=False)


def check_indices(name: str, values: Any, length: int) -> npt.NDArray[np.int64]:
    """Check indices from 0 into something of a length; a single integer counts as an array of one.

    Parameters
    ----------
    name : str
        The argument, as the user knows it.
    values : array-like of int
        What the user passed.
    length : int
        What they must stay below.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> check_indices("rows", 2, 3)
    array([2])
    """
    refuse_masked(values, name)
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1:
        raise InvalidDataError(f"{name} must be one-dimensional, got an array of shape {array.shape}.")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidDataError(f"{name} must hold integers, got dtype {array.dtype}.")
    bad = (array < 0) | (array >= length)
    if bad.any():
        first = int(np.argmax(bad))
        raise InvalidDataError(f"{name}[{first}] is {array[first]}, outside of 0..{length - 1}.")
    return array.astype(np.int64, copy=False)


def float_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The floating type that data of some type is kept in: float32 stays, all else becomes float64.

    Parameters
    ----------
    dtype : dtype
        Type of the data as it came.

    Returns
    -------
    numpy.dtype

    Examples
    --------
    >>> float_dtype(np.int8)
    dtype('float64')
    """
    return np.dtype(np.float32) if np.dtype(dtype) == np.float32 else np.dtype(np.float64)


def check_sparse(matrix: Any, name: str) -> None:
    """Refuse a sparse matrix that points outside of itself: native code of any library would follow it.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        Of any format.
    name : str
        The argument, as the user knows it.
    """
    try:
        if matrix.format in ("csr", "csc"):
            matrix.check_format(full_check=True)
            if np.any(matrix.indptr[1:] < matrix.indptr[:-1]):  # a last entry below zero passes for no entry
                raise ValueError("indptr must not decrease")
        elif matrix.format == "coo":
            for indices, length in zip(matrix.coords, matrix.shape, strict=True):
                if indices.size and not 0 <= indices.min() <= indices.max() < length:
                    raise ValueError(f"an index is outside of 0..{length - 1}")
        elif matrix.format == "bsr":
            matrix.check_format(full_check=True)
        elif matrix.format == "lil":
            if any(len(cols) != len(values) for cols, values in zip(matrix.rows, matrix.data, strict=True)):
                raise ValueError("a row has other numbers of indices than of values")
            if any(cols and not 0 <= min(cols) <= max(cols) < matrix.shape[1] for cols in matrix.rows):
                raise ValueError(f"an index is outside of 0..{matrix.shape[1] - 1}")
        elif matrix.format == "dok":
            length, width = matrix.shape
            if any(not (0 <= row < length and 0 <= col < width) for row, col in matrix.keys()):  # noqa: SIM118
                raise ValueError(f"a key is outside of {length} x {width}")
    except ValueError as error:
        raise InvalidDataError(f"{name} is not a valid sparse matrix: {error}.") from error


def refuse_long(name: str, shape: tuple[int, ...]) -> None:
    """Refuse a matrix with a side for which this machine has no array."""
    longest = min(LONGEST_SIDE, _memory() // 8)
    if max(shape, default=0) > longest:
        raise TooLargeError(
            f"{name} has shape {tuple(shape)}; a side of at most {longest} is accepted, a number for each of "
            "which fits into memory. Observations.from_frame numbers only the ids that occur."
        )


@cache
def _memory() -> int:
    """Bytes of memory of this machine; without an end where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


def refuse_masked(values: Any, name: str, hint: str = "fill in or leave out what is masked") -> None:
    """Refuse arrays with a mask, which would be lost: what it hides must not count."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InvalidDataError(f"{name} is a masked array with masked entries; {hint}.")


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
