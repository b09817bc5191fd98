"""Side features as models take them: arrays by position, frames by the ids of lines and names of columns."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt

from unseen.data.features import encode_columns, lines_of, refuse_repeated
from unseen.data.frames import encode_ids
from unseen.data.origin import labels_of
from unseen.data.vocabulary import Vocabulary
from unseen.exceptions import DataWarning, InvalidDataError
from unseen.typing import Array, Features
from unseen.validation import as_frame, check_features, held

__all__ = ["NamedFeatures", "in_order", "read_features"]


class NamedFeatures(NamedTuple):
    """A matrix of features, what its columns are called, and the ids of its lines, where these are known."""

    matrix: Features
    names: list[str] | None
    ids: Array | None


def read_features(
    features: Any,
    argument: str,
    *,
    entities: Vocabulary | None = None,
    length: int | None = None,
    id_name: str | None = None,
    known: list[str] | None = None,
    dtype: npt.DTypeLike | None = None,
) -> NamedFeatures:
    """Features with one line for each entity, in the order of the entities.

    Parameters
    ----------
    features : array-like, scipy.sparse or data frame
        An array is taken in its order. Lines of a frame have ids: in the column ``id_name``, or in the index
        of pandas. Text and categories become indicators.
    argument : str
        Name of the argument, for messages.
    entities : Vocabulary, optional
        The ids, where they are known: lines of a frame are matched with them. Left out for new entities,
        which come in the order of the lines.
    length : int, optional
        Number of entities.
    id_name : str, optional
        Name of the column with ids.
    known : list of str, optional
        Features that a model was fitted with; columns of a frame are matched with them by name.
    dtype : dtype, optional
        Floating type of the result.

    Returns
    -------
    NamedFeatures
    """
    frame = as_frame(features, argument)
    if frame is None:
        return NamedFeatures(held(check_features(features, length, argument, dtype=dtype)), None, None)
    own, columns = _ids_of(frame, features, argument, id_name)
    if not columns:
        raise InvalidDataError(f"{argument} has no column besides the ids.")
    n_lines = len(frame)
    if entities is None:
        if length is not None and length != n_lines:
            raise InvalidDataError(f"{argument} has {n_lines} rows, but {length} entities each need one.")
        lines, shown = np.arange(n_lines), Vocabulary(np.arange(n_lines)) if own is None else own
        if length is not None and own is not None and _is_shuffled(own.values):
            raise InvalidDataError(
                f"the index of {argument} counts its lines in another order ({own.sample()}), and the "
                f"cells have no ids to match it with: sort it by index, or give the cells ids"
            )
    elif own is None:
        held_by = _column_of_ids(frame, columns, entities)
        column = "their column" if held_by is None else f"column {held_by!r}, which holds them,"
        way = f"make {column} the index" if id_name is None else f"name {column} {id_name!r}"
        raise InvalidDataError(
            f"{argument} is a frame without ids, and the ids of the cells ({entities.sample()}) cannot be "
            f"matched with its lines: {way}, or pass an array with its lines in the order of the cells"
        )
    else:
        # Lines of a pandas frame that was cut or shuffled have numbers, which may be ids by chance.
        unnamed = id_name not in frame.columns and features.index.name is None
        held_by = _column_of_ids(frame, columns, entities) if unnamed else None
        if held_by is not None and not np.array_equal(frame[held_by].to_numpy(), own.values):
            raise InvalidDataError(
                f"{argument} has the ids of the cells ({entities.sample()}) twice, in other lines: in its "
                f"index ({own.sample()}) and in column {held_by!r}; set_index({held_by!r}) says that it is "
                f"the column, rename_axis({id_name or 'id'!r}) that it is the index"
            )
        lines, shown = lines_of(own, np.arange(n_lines), entities, "error", argument), entities
    matrix, names = encode_columns(frame, columns, lines, shown, "error", argument)
    if known is not None:
        text = [column for column in columns if column not in names]
        matrix = in_order(matrix, names, known, text, argument)
        names = known
    checked = held(check_features(matrix, None, argument, dtype=dtype))
    ids = entities.values if entities is not None else None if own is None else own.values
    return NamedFeatures(checked, names, ids)


def _ids_of(
    frame: nw.DataFrame[Any], native: Any, argument: str, id_name: str | None
) -> tuple[Vocabulary | None, list[str]]:
    """Ids of the lines of a frame, in their order, and the columns that are features."""
    columns = list(frame.columns)
    if id_name in columns:
        codes, ids = encode_ids(frame[id_name], str(id_name))
        refuse_repeated(codes, ids, str(id_name))
        return Vocabulary(ids[codes]), [column for column in columns if column != id_name]
    if frame.implementation.is_pandas():
        return labels_of(native.index, f"the index of {argument}"), columns
    return None, columns


def in_order(matrix: Features, own: list[str], known: list[str], text: list[str], argument: str) -> Features:
    """Columns as in training, by name; what training did not have is refused.

    Parameters
    ----------
    matrix : array or sparse matrix
        Features.
    own, known : list of str
        Names of its columns, and of those of training.
    text : list of str
        Columns of the table that became indicators, of which only some categories may occur here.
    argument : str
        Name of the argument or file, for messages.

    Returns
    -------
    array
        A category that does not occur here is zero, one that did not occur in training is nowhere.
    """
    place = {name: position for position, name in enumerate(own)}
    absent = [
        name
        for name in known
        if name not in place and not any(name.startswith(f"{column}=") for column in text)
    ]
    if absent:
        raise InvalidDataError(
            f"{argument} lacks {_shown(absent)}, which the model was fitted with; it has {_shown(own)}"
        )
    fitted = set(known)
    surplus = [name for name in own if name not in fitted]
    kinds = [name for name in surplus if any(name.startswith(f"{column}=") for column in text)]
    seen_text = {column for column in text if any(name.startswith(f"{column}=") for name in known)}
    foreign = [name for name in surplus if name not in kinds]
    foreign += [column for column in text if column not in seen_text]
    if foreign:
        raise InvalidDataError(
            f"{argument} has {_shown(foreign)}, which the model was not fitted with; it knows {_shown(known)}"
        )
    if kinds:
        warnings.warn(
            f"{argument} has {_shown(kinds)}, which did not occur in training; they are in no category.",
            DataWarning,
            stacklevel=4,
        )
    dense: Array = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    result = np.zeros((dense.shape[0], len(known)), dtype=dense.dtype)
    for position, name in enumerate(known):
        if name in place:
            result[:, position] = dense[:, place[name]]
    return result


def _column_of_ids(frame: nw.DataFrame[Any], columns: list[str], entities: Vocabulary) -> str | None:
    """A column with each of its values once that holds all ids of the cells."""
    is_text = entities.values.dtype.kind == "U"
    for name in columns:
        column = frame[name]
        if not (column.dtype == nw.String if is_text else column.dtype.is_integer()):
            continue
        if column.is_null().any() or column.n_unique() < len(column):
            continue
        if np.isin(entities.values, column.to_numpy()).all():
            return name
    return None


def _is_shuffled(ids: Array) -> bool:
    """Whether ids are the numbers from 0, in another order."""
    count = np.arange(ids.size)
    return ids.dtype.kind != "U" and np.array_equal(np.sort(ids), count) and not np.array_equal(ids, count)


def _shown(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
