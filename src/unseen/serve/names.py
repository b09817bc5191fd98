"""Ids as they come over the network, and what people call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unseen.data import Vocabulary
from unseen.serve.limits import RequestError
from unseen.typing import IndexArray

__all__ = ["Names", "as_number"]


class Names:
    """Ids of one side of a model, and names for some of them.

    Parameters
    ----------
    vocabulary : Vocabulary or None
        None where the model knows positions alone; then these are the ids.
    count : int
        Number of entities.
    names : dict, optional
        Name of each id that has one.
    """

    def __init__(self, vocabulary: Vocabulary | None, count: int, names: dict[Any, str] | None) -> None:
        self.vocabulary = vocabulary
        self.count = count
        self.names = {str(own): name for own, name in (names or {}).items()}

    def __getitem__(self, position: int) -> Any:
        return position if self.vocabulary is None else self.vocabulary.values[position].item()

    def index(self, asked: Sequence[Any], field: str) -> IndexArray:
        """Position of each id; one that is not known is an error.

        Text that is written like a whole number finds that number, and the other way round.
        """
        found = self.find(asked)
        if (found < 0).any():
            place = int(np.argmax(found < 0))
            where = field if field in ("row", "col") else f"{field}[{place}]"
            shown = repr(asked[place])
            raise RequestError(f"{where}: {shown[:60]} is not known to the model", where, 404)
        return found

    def find(self, asked: Sequence[Any]) -> IndexArray:
        """Position of each id, -1 for those that are not known."""
        if self.vocabulary is None:
            numbers = [as_number(one) for one in asked]
            known = [-1 if number is None or not 0 <= number < self.count else number for number in numbers]
            return np.array(known, dtype=np.int64)
        text = self.vocabulary.values.dtype.kind == "U"
        keys = [str(one) if text else as_number(one) for one in asked]
        # No id ends in a zero character: NumPy would drop it.
        usable = [place for place, key in enumerate(keys) if key is not None and not str(key).endswith("\0")]
        found = np.full(len(keys), -1, dtype=np.int64)
        if usable:
            found[usable] = self.vocabulary.find([keys[place] for place in usable])
        return found

    def search(self, words: str, most: int) -> list[dict[str, Any]]:
        """Ids whose text or name has these words in it: those that begin with them first."""
        wanted = words.casefold().strip()
        begins: list[int] = []
        contains: list[int] = []
        for position in range(self.count):
            own = self[position]
            texts = [str(own).casefold(), self.names.get(str(own), "").casefold()]
            if any(text.startswith(wanted) for text in texts):
                begins.append(position)
            elif len(contains) < most and any(wanted in text for text in texts):
                contains.append(position)
            if len(begins) >= most:
                break
        return [self.entry(position) for position in (begins + contains)[:most]]

    def entry(self, position: int) -> dict[str, Any]:
        """An id with its name, where it has one."""
        own = self[position]
        name = self.names.get(str(own))
        return {"id": own} if name is None else {"id": own, "name": name}


def as_number(asked: Any) -> int | None:
    """A whole number of 63 bits, from a number or the text of one."""
    if isinstance(asked, str):
        digits = asked.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18 or str(int(asked)) != asked:
            return None
        asked = int(asked)
    return asked if -(2**63) <= asked < 2**63 else None
