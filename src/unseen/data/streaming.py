"""What all readers share: files that may be compressed, arrays that grow, ids that arrive in chunks."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from unseen.data.vocabulary import Vocabulary, VocabularyBuilder
from unseen.exceptions import InvalidDataError
from unseen.typing import Array

__all__ = ["GrowingArray", "IdColumn", "PathLike", "finish_ids", "open_text", "unreadable"]

PathLike: TypeAlias = str | os.PathLike[str]


def unreadable(path: PathLike, line: int | None, reason: str) -> InvalidDataError:
    """Return the error for a file that cannot be used, with the line where that is known."""
    place = f"{os.fspath(path)}, line {line}" if line is not None else os.fspath(path)
    return InvalidDataError(f"{place}: {reason}")


@contextmanager
def open_text(path: PathLike, encoding: str = "utf-8") -> Iterator[IO[str]]:
    """Open a plain or gzipped text file; damage to the file is reported with its name."""
    opener = gzip.open if Path(path).suffix == ".gz" else open
    # The same, less the mark that some programs write first.
    unmarked = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    try:
        # newline="" leaves line ends to the csv module, which must see those inside quotes.
        with opener(path, "rt", encoding=unmarked, newline="") as handle:
            yield cast(IO[str], handle)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise unreadable(path, None, f"the compressed file is damaged or cut short ({error}).") from error
    except UnicodeDecodeError as error:
        with opener(path, "rb") as raw:
            is_wide = raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        way = "its first bytes say utf-16" if is_wide else "pass the right encoding, such as latin-1"
        raise unreadable(path, None, f"not {encoding} text ({error}); {way}.") from error


class GrowingArray:
    """A one-dimensional array that arrives in chunks."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._chunks: list[Array] = []

    def append(self, chunk: Array) -> None:
        """Copy a chunk to the end."""
        self._chunks.append(np.array(chunk, dtype=self._dtype))

    def finish(self) -> Array:
        """Give up the array. Chunks are let go one by one, so that it never exists twice."""
        result = np.empty(sum(chunk.size for chunk in self._chunks), dtype=self._dtype)
        end = result.size
        while self._chunks:
            chunk = self._chunks.pop()
            result[end - chunk.size : end] = chunk
            end -= chunk.size
        return result


class IdColumn:
    """A column of ids that arrives in chunks.

    Parameters
    ----------
    vocabulary : VocabularyBuilder
        Shared where two columns name the same things.
    """

    def __init__(self, vocabulary: VocabularyBuilder) -> None:
        self._vocabulary = vocabulary
        self._codes = GrowingArray(np.int32)

    def append(self, ids: Any) -> None:
        """Take in a chunk of ids, an array or a pyarrow array."""
        if hasattr(ids, "dictionary_encode"):  # pyarrow: look up each distinct id of the chunk once
            encoded = ids if hasattr(ids, "dictionary") else ids.dictionary_encode()
            codes = self._vocabulary.add(encoded.dictionary.to_numpy(zero_copy_only=False))
            self._codes.append(codes[encoded.indices.to_numpy(zero_copy_only=False)])
        else:
            self._codes.append(self._vocabulary.add(ids))

    def finish(self, final: npt.NDArray[np.int64]) -> Array:
        """Give up the indices, renumbered to the finished vocabulary."""
        codes = self._codes.finish()
        np.take(final.astype(np.int32), codes, out=codes, mode="clip")
        return codes


def finish_ids(builder: VocabularyBuilder, *, from_text: bool) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    """Close a vocabulary; ids read from text become integers if each of them is written as one."""
    vocabulary, final = builder.finish()
    if not from_text or vocabulary.values.dtype.kind != "U":
        return vocabulary, final
    try:
        numbers = vocabulary.values.astype(np.int64)
    except (ValueError, OverflowError):
        return vocabulary, final
    if not np.array_equal(numbers.astype(np.str_), vocabulary.values):  # 007 is a name, not a number
        return vocabulary, final
    order = np.argsort(numbers)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return Vocabulary(numbers[order]), place[final]
