"""Ids of rows and columns: from what users call them to indices, and back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.exceptions import InvalidDataError, UnknownIdError
from unseen.typing import Array, IndexArray
from unseen.validation import refuse_masked

__all__ = ["Vocabulary", "VocabularyBuilder", "as_id_array", "types_among"]


def as_id_array(ids: Any, name: str = "ids") -> Array:
    """Turn ids into a one-dimensional array of int64 or of strings; anything else is refused.

    Parameters
    ----------
    ids : array-like
        Integers or strings, not mixed.
    name : str, default="ids"
        The argument or column, as the user knows it.

    Returns
    -------
    ndarray
        Of dtype int64 (uint64 where int64 is too small) or fixed-width unicode.
    """
    refuse_masked(ids, name)
    # NumPy would turn a list of 1 and "a" into two strings.
    array = np.atleast_1d(np.asarray(ids, dtype=object if isinstance(ids, (list, tuple)) else None))
    if array.ndim != 1:
        raise InvalidDataError(f"{name} must be one-dimensional, got an array of shape {array.shape}.")
    if array.size == 0:
        return array.astype(np.str_ if array.dtype.kind == "U" else np.int64)
    if array.dtype.kind in "OT":
        array = _concrete(array, name)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.max() > np.iinfo(np.int64).max:
        return array
    if array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "U":
        return array
    hint = " Did nulls turn integers into floats?" if array.dtype.kind == "f" else ""
    raise InvalidDataError(
        f"{name} must be integers or strings, got dtype {array.dtype}, such as {array[0]!r:.60}.{hint}"
    )


def _concrete(array: Array, name: str) -> Array:
    """Give an array of Python objects a real dtype, without letting 1 become '1'."""
    kinds = {type(value) for value in array.tolist()}
    if all(issubclass(kind, str) for kind in kinds):
        for position, value in enumerate(array.tolist()):
            if value.endswith("\0"):  # which NumPy would drop: two ids would be one
                raise InvalidDataError(f"{name} has {value!r:.60} in row {position}: no id may end in NUL.")
        return array.astype(np.str_)
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        return np.array(array.tolist())
    for position, value in enumerate(array.tolist()):
        if value is None or value != value:
            raise InvalidDataError(f"{name} has a null in row {position}; an id is wanted in every row.")
    raise InvalidDataError(f"{name} must be all integers or all strings, got {types_among(array.tolist())}.")


def types_among(values: list[Any]) -> str:
    """Types of some values, each with the first that has it, as words."""
    first: dict[type, int] = {}
    for position, value in enumerate(values):
        first.setdefault(type(value), position)
    return ", ".join(f"{kind.__name__} ({values[at]!r:.60} in row {at})" for kind, at in first.items())


class Vocabulary:
    """Ordered, unique ids of the rows or the columns of a matrix.

    Parameters
    ----------
    ids : array-like of int or str
        Id of index 0, 1, ...; each may occur once.

    Attributes
    ----------
    values : ndarray
        The ids in the order of their indices, read-only.

    Examples
    --------
    >>> movies = Vocabulary(["Alien", "Brazil", "Clue"])
    >>> movies.index_of(["Clue", "Alien"])
    array([2, 0])
    >>> movies[[2, 0]].tolist()
    ['Clue', 'Alien']
    """

    def __init__(self, ids: Any) -> None:
        values = as_id_array(ids).view()
        values.flags.writeable = False
        self.values: Array = values
        repeated = self._sorted[1:] == self._sorted[:-1]
        if repeated.any():
            twice = self._sorted[int(np.argmax(repeated))]
            raise InvalidDataError(f"ids must be unique, but {twice.item()!r} occurs more than once.")

    @classmethod
    def encode(cls, ids: Any, name: str = "ids") -> tuple[Vocabulary, IndexArray]:
        """Build the sorted vocabulary of a column of ids, and the index of each of them.

        Parameters
        ----------
        ids : array-like of int or str
            Ids with repetitions.
        name : str, default="ids"
            The column, for messages.

        Returns
        -------
        vocabulary : Vocabulary
        indices : ndarray of int64

        Examples
        --------
        >>> vocabulary, indices = Vocabulary.encode(["b", "a", "b"])
        >>> vocabulary.values.tolist(), indices.tolist()
        (['a', 'b'], [1, 0, 1])
        """
        values, indices = np.unique(as_id_array(ids, name), return_inverse=True)
        return cls(values), indices.reshape(-1).astype(np.int64, copy=False)

    @cached_property
    def _order(self) -> npt.NDArray[np.intp]:
        return np.argsort(self.values, kind="stable")

    @cached_property
    def _sorted(self) -> Array:
        ordered: Array = self.values[self._order]
        return ordered

    def find(self, ids: Any) -> npt.NDArray[np.int64]:
        """Index of each id, -1 for the unknown.

        Parameters
        ----------
        ids : array-like of int or str
            Ids to look up.

        Returns
        -------
        ndarray of int64
        """
        wanted = as_id_array(ids)
        if (
            wanted.size == 0
            or len(self) == 0
            or (wanted.dtype.kind == "U") != (self.values.dtype.kind == "U")
        ):
            return np.full(wanted.size, -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        return np.where(self._sorted[place] == wanted, self._order[place], -1)

    def index_of(self, ids: Any) -> npt.NDArray[np.int64]:
        """Index of each id; an unknown id is an error.

        Parameters
        ----------
        ids : array-like of int or str
            Ids to look up.

        Returns
        -------
        ndarray of int64

        Raises
        ------
        UnknownIdError
            Names the first id that is not in the vocabulary.
        """
        indices = self.find(ids)
        unknown = indices < 0
        if unknown.any():
            first = as_id_array(ids)[int(np.argmax(unknown))].item()
            kind = "strings" if self.values.dtype.kind == "U" else "integers"
            raise UnknownIdError(
                f"id {first!r} is not in the vocabulary of {len(self)} {kind} ({self.sample()})."
            )
        return indices

    def __getitem__(self, index: Any) -> Any:
        # -1 marks "no item" in recommendations: counting from the end would turn it into a real id.
        if not isinstance(index, slice) and np.any(np.less(index, 0)):
            raise InvalidDataError("an index into a vocabulary must be >= 0; -1 stands for no id at all.")
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values.tolist())

    def __contains__(self, item: object) -> bool:
        return bool(self.find([item])[0] >= 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} ids: {self.sample()})"

    def sample(self) -> str:
        """The first ids, as they are shown."""
        shown = ", ".join(repr(value) for value in self.values[:3].tolist())
        return shown + ", ..." if len(self) > 3 else shown


class VocabularyBuilder:
    """A vocabulary that grows by chunks of ids, without a dictionary of Python objects.

    Examples
    --------
    >>> builder = VocabularyBuilder("user")
    >>> builder.add(["z", "a"]).tolist(), builder.add(["a", "m"]).tolist()
    ([0, 1], [1, 2])
    >>> vocabulary, final = builder.finish()
    >>> vocabulary.values.tolist(), final.tolist()
    (['a', 'm', 'z'], [2, 0, 1])
    """

    def __init__(self, name: str = "ids") -> None:
        self._name = name
        self._sorted: Array | None = None
        self._code: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._code)

    def add(self, ids: Any) -> npt.NDArray[np.int64]:
        """Take in a chunk of ids and return the provisional code of each (order of arrival)."""
        fresh, first, inverse = np.unique(
            as_id_array(ids, self._name), return_index=True, return_inverse=True
        )
        if fresh.size == 0:
            return np.empty(0, dtype=np.int64)
        if self._sorted is None:
            self._sorted = fresh[:0]
        if (fresh.dtype.kind == "U") != (self._sorted.dtype.kind == "U"):
            raise InvalidDataError(f"{self._name} must be all integers or all strings, got both.")
        place = np.searchsorted(self._sorted, fresh)
        known = np.zeros(fresh.size, dtype=bool)
        inside = place < len(self._sorted)
        known[inside] = self._sorted[place[inside]] == fresh[inside]
        codes = np.empty(fresh.size, dtype=np.int64)
        codes[known] = self._code[place[known]]
        new = np.flatnonzero(~known)
        arrival = new[np.argsort(first[new], kind="stable")]
        codes[arrival] = np.arange(len(self), len(self) + new.size)
        if new.size:
            merged = np.concatenate([self._sorted, fresh[new]])
            order = np.argsort(merged, kind="stable")
            self._sorted = merged[order]
            self._code = np.concatenate([self._code, codes[new]])[order]
        return codes[inverse.reshape(-1)]

    def finish(self) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
        """Return the sorted vocabulary, and the final index of every provisional code."""
        final = np.empty(len(self), dtype=np.int64)
        final[self._code] = np.arange(len(self))
        return Vocabulary(np.empty(0, np.int64) if self._sorted is None else self._sorted), final
