"""Side features, put in the order of a vocabulary and turned into numbers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data.frames import encode_ids, open_frame
from unseen.data.vocabulary import Vocabulary, as_id_array
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError, UnknownIdError
from unseen.typing import CSR, Features, FloatArray
from unseen.validation import check_choice, check_features, held

__all__ = ["align", "encode_columns", "lines_of", "refuse_repeated"]

Missing = Literal["error", "zero", "mean"]


def align(
    features: Any,
    vocabulary: Vocabulary,
    id_column: str | None = None,
    *,
    missing: Missing = "error",
) -> tuple[Features, list[str]]:
    """Side features as a matrix with one row for each id of a vocabulary.

    Parameters
    ----------
    features : DataFrame, Table or mapping
        A frame of pandas, polars or pyarrow with one line for each id; or a mapping from ids to
        sequences of numbers. Numeric and boolean columns are taken as they are; text and categories
        become one indicator for each value that occurs.
    vocabulary : Vocabulary
        The ids, in the order that the matrix must have.
    id_column : str, optional
        Column of the frame that holds the ids; not used for a mapping.
    missing : {"error", "zero", "mean"}, default="error"
        What to do about ids without a line and about nulls: refuse, or fill with zero or with the
        mean of the column (for indicators, the share of each category).

    Returns
    -------
    matrix : ndarray or csr_array of shape (len(vocabulary), n_features)
        Sparse where three quarters or more of it are zeros.
    names : list of str
        Name of each feature, ``column`` or ``column=category``.

    Warns
    -----
    DataWarning
        If `features` has ids that the vocabulary does not know; they are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from unseen.data import Vocabulary
    >>> films = pd.DataFrame({"film": ["Clue", "Alien"], "year": [1985, 1979], "kind": ["fun", "fear"]})
    >>> matrix, names = align(films, Vocabulary(["Alien", "Clue"]), "film")
    >>> names
    ['year', 'kind=fear', 'kind=fun']
    >>> matrix
    array([[1.979e+03, 1.000e+00, 0.000e+00],
           [1.985e+03, 0.000e+00, 1.000e+00]])
    """
    check_choice("missing", missing, ("error", "zero", "mean"))
    if isinstance(features, Mapping):
        return _align_mapping(features, vocabulary, missing)
    frame = open_frame(features, "features")
    if id_column not in frame.columns:
        raise ParameterError(
            f"id_column={id_column!r} is not a column; features has {', '.join(map(repr, frame.columns))}."
        )
    places, own_ids = encode_ids(frame[id_column], id_column)
    refuse_repeated(places, own_ids, str(id_column))
    line_of_own = np.empty(len(own_ids), dtype=np.int64)
    line_of_own[places] = np.arange(places.size)
    lines = lines_of(own_ids, line_of_own, vocabulary, missing, stacklevel=4)
    columns = [column for column in frame.columns if column != id_column]
    if not columns:
        raise InvalidDataError(f"features has no column besides {id_column!r}.")
    return encode_columns(frame, columns, lines, vocabulary, missing)


def refuse_repeated(places: npt.NDArray[np.int64], own_ids: Vocabulary, id_column: str) -> None:
    """Refuse a column of ids in which one occurs twice."""
    if len(own_ids) < places.size:
        twice = own_ids[int(np.argmax(np.bincount(places) > 1))]
        raise InvalidDataError(f"column {id_column!r} must hold each id once; {twice.item()!r} occurs again.")


def encode_columns(
    frame: nw.DataFrame[Any],
    columns: list[str],
    lines: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    missing: Missing,
    argument: str = "",
) -> tuple[Features, list[str]]:
    """Columns of a frame as numbers and indicators, one line for each id, and their names.

    ``lines`` has the line of each id, -1 where there is none.
    """
    blocks: list[CSR] = []
    names: list[str] = []
    for column in columns:
        try:
            block, block_names = _encode(frame[column], column, lines, vocabulary, missing)
        except InvalidDataError as error:
            raise InvalidDataError(f"{argument}: {error}" if argument else str(error)) from error
        blocks.append(sparse.csr_array(block))
        names.extend(block_names)
    return held(sparse.csr_array(sparse.hstack(blocks, format="csr"))), names


def _align_mapping(
    features: Mapping[Any, Any], vocabulary: Vocabulary, missing: Missing
) -> tuple[Features, list[str]]:
    own_ids = Vocabulary(as_id_array(list(features), "features"))
    matrix = check_features(list(features.values()), len(own_ids), "features")
    assert isinstance(matrix, np.ndarray)
    lines = lines_of(own_ids, np.arange(len(own_ids)), vocabulary, missing, stacklevel=5)
    return _filled(matrix, lines, missing), [str(number) for number in range(matrix.shape[1])]


def lines_of(
    own_ids: Vocabulary,
    line_of_own: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    missing: Missing,
    argument: str = "features",
    *,
    stacklevel: int = 5,
) -> npt.NDArray[np.int64]:
    """Line of each id of the vocabulary, -1 for those without one."""
    found = own_ids.find(vocabulary.values)
    absent = vocabulary.values[found < 0].tolist()
    if absent and missing == "error":
        shown = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
        if len(absent) == len(vocabulary):
            raise UnknownIdError(
                f"{argument} has lines for {own_ids.sample()}, of which none is an id of the cells "
                f"({vocabulary.sample()}): the same ids, of the same kind, are needed on both sides"
            )
        raise UnknownIdError(
            f"{argument} has no line for {len(absent)} of {len(vocabulary)} ids: {shown}. "
            "unseen.data.align with missing='zero' or missing='mean' would fill them."
        )
    surplus = own_ids.values[~np.isin(np.arange(len(own_ids)), found)].tolist()
    if surplus:
        shown = ", ".join(map(repr, surplus[:5])) + (", ..." if len(surplus) > 5 else "")
        warnings.warn(
            f"{len(surplus)} of {len(own_ids)} ids of {argument} are none of the cells: {shown}; "
            "they are left out.",
            DataWarning,
            stacklevel=stacklevel,
        )
    return np.where(found >= 0, line_of_own[found], -1)


def _encode(
    series: nw.Series[Any],
    column: str,
    lines: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    missing: Missing,
) -> tuple[FloatArray | CSR, list[str]]:
    """One column as numbers or indicators, in the order of the vocabulary."""
    used = np.where(lines >= 0, lines, 0)
    nulls = series.is_null().to_numpy()
    is_number = series.dtype.is_numeric() or series.dtype == nw.Boolean
    if is_number:
        numbers = series.cast(nw.Float32 if series.dtype == nw.Float32 else nw.Float64).to_numpy()
        nulls = nulls | np.isnan(numbers)
    elif series.dtype not in (nw.String, nw.Categorical, nw.Enum):
        raise InvalidDataError(
            f"column {column!r} must hold numbers, booleans, text or categories, got {series.dtype}."
        )
    known = (lines >= 0) & ~nulls[used]
    if missing == "error" and not known.all():
        first = vocabulary[int(np.argmin(known))].item()
        raise InvalidDataError(
            f"column {column!r} has no value for id {first!r}; unseen.data.align with missing='zero' or "
            "missing='mean' would fill it."
        )
    lines = np.where(known, lines, -1)
    if is_number:
        infinite = known & np.isinf(numbers[used])
        if infinite.any():
            first = vocabulary[int(np.argmax(infinite))].item()
            raise InvalidDataError(f"column {column!r} is infinite for id {first!r}; finite numbers only.")
        return _filled(numbers[:, None], lines, missing), [column]
    return _indicators(series, column, lines, missing)


def _indicators(
    series: nw.Series[Any], column: str, lines: npt.NDArray[np.int64], missing: Missing
) -> tuple[CSR, list[str]]:
    entities = np.flatnonzero(lines >= 0)
    if not entities.size:
        return sparse.csr_array((lines.size, 0)), []
    codes, categories = encode_ids(series[lines[entities]], column)
    flags = sparse.csr_array((np.ones(entities.size), (entities, codes)), shape=(lines.size, len(categories)))
    if missing == "mean" and entities.size < lines.size:
        share = np.bincount(codes, minlength=len(categories)) / entities.size
        blank = sparse.csr_array((lines < 0).astype(np.float64)[:, None])
        flags = flags + blank @ sparse.csr_array(share[None, :])
    return sparse.csr_array(flags), [f"{column}={category}" for category in categories]


def _filled(matrix: FloatArray, lines: npt.NDArray[np.int64], missing: Missing) -> FloatArray:
    """Rows of a matrix by line number; line -1 is filled."""
    known = lines >= 0
    result = np.zeros((lines.size, matrix.shape[1]), dtype=matrix.dtype)
    result[known] = matrix[lines[known]]
    if missing == "mean" and known.any():
        result[~known] = result[known].mean(axis=0, dtype=np.float64)
    return result
