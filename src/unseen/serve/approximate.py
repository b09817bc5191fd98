"""Lists from an approximate index of the columns, whose recall is measured before it is used."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unseen import kernels
from unseen.exceptions import ParameterError
from unseen.typing import FloatArray, IndexArray

__all__ = ["Approximate", "ColumnIndex"]

RECALL = 0.99
"""Share of an exact list of ten that the index must find."""
MARGIN = 0.25
"""Part of what it may miss that it misses at most on the rows by which its reach is chosen."""
LENGTH = 10
QUERIES = 512
"""Rows whose lists are compared; one half chooses how far the index looks, the other is told."""
REACHES = (64, 128, 256, 512, 1024, 2048)
LONGEST = 2048
"""Columns that one walk gives at most; longer lists, or with more left out, are exact."""
CONNECTIVITY = 32


@dataclass(frozen=True)
class Approximate:
    """When lists are looked up in an index.

    Attributes
    ----------
    above : int
        Columns of a model above which an index is made; at or below it lists are exact.
    home : Path, optional
        Directory where workers share an index; without it each makes its own.
    n_threads : int, optional
        Threads that make it; those of the model by default.
    """

    above: int
    home: Path | None = None
    n_threads: int | None = None


class ColumnIndex:
    """Finds nearly all of the columns with the largest inner products, by a walk in a graph (usearch).

    The graph holds the factors with 16 bits; what it finds is scored again by the factors themselves, so that
    scores and order are exact, and a list lacks a column at worst. If it finds fewer than were asked for,
    nothing is returned and an exact pass is due.

    Parameters
    ----------
    factors : array of shape (m, rank)
    n_threads : int
        Threads that make the index.
    home : Path, optional
        Directory where an index is kept under a name made from what is in it, and shared.

    Attributes
    ----------
    recall : float
        Share of exact lists of ten that was found, over rows that did not choose the reach.
    reach : int
        Columns that a walk keeps in view.
    """

    def __init__(self, factors: FloatArray, *, n_threads: int = 1, home: Path | None = None) -> None:
        self.factors = factors
        self.recall, self.reach = 0.0, 0
        self._index = _made(factors, n_threads) if home is None else _shared(factors, n_threads, home)

    def choose(self, queries: FloatArray, left_out: list[IndexArray]) -> bool:
        """Take the least reach that finds enough of exact lists; whether there is one.

        Parameters
        ----------
        queries : array of shape (q, rank)
            Factors of rows.
        left_out : list of ndarray
            Sorted columns that the list of each must not have.
        """
        k = min(LENGTH, len(self.factors))
        indptr = np.concatenate([[0], np.cumsum([len(columns) for columns in left_out])]).astype(np.int64)
        exact, _ = kernels.topk(
            queries,
            self.factors,
            k,
            exclude=(indptr, np.concatenate(left_out)) if indptr[-1] else None,
        )
        for self.reach in REACHES:
            shares = np.array(
                [
                    self._share(line, query[None, :], columns, k)
                    for line, query, columns in zip(exact, queries, left_out, strict=True)
                ]
            )
            self.recall = float(shares[1::2].mean()) if len(shares) > 1 else float(shares.mean())
            if 1.0 - shares[::2].mean() <= MARGIN * (1.0 - RECALL) and self.recall >= RECALL:
                return True
        return False

    def _share(self, exact: IndexArray, query: FloatArray, columns: IndexArray, k: int) -> float:
        wanted = exact[exact >= 0]
        found = self.top(query, [columns], k)
        return 1.0 if found is None or not len(wanted) else float(np.isin(wanted, found[0]).mean())

    def top(
        self, queries: FloatArray, left_out: list[IndexArray], k: int
    ) -> tuple[IndexArray, FloatArray] | None:
        """Lists of the k best columns of each query, as an exact pass gives them; None where that is due."""
        ids = np.full((len(queries), k), -1, dtype=np.int64)
        scores = np.full((len(queries), k), np.nan, dtype=np.result_type(queries, self.factors))
        for place, (query, columns) in enumerate(zip(queries, left_out, strict=True)):
            # Of so many, those that are left out cannot be more than what is beyond k.
            width = min(k + len(columns), len(self.factors))
            if width > LONGEST:
                return None
            found = self._walk(query, width)
            kept = found[~np.isin(found, columns)]
            if len(kept) < min(k, len(self.factors) - len(columns)):
                return None
            values = self.factors[kept] @ query
            order = np.lexsort((kept, -values))[:k]
            ids[place, : len(order)], scores[place, : len(order)] = kept[order], values[order]
        return ids, scores

    def _walk(self, query: FloatArray, width: int) -> IndexArray:
        self._index.expansion_search = max(self.reach, width)
        found: IndexArray = self._index.search(query.astype(np.float32), width, threads=1).keys
        return found.astype(np.int64)


def _empty(rank: int) -> Any:
    try:
        from usearch.index import Index
    except ImportError as error:
        raise ParameterError(
            "an approximate index needs the package usearch: pip install 'unseen[ann]'; "
            "exact lists need nothing"
        ) from error
    return Index(ndim=rank, metric="ip", dtype="f16", connectivity=CONNECTIVITY)


def _made(factors: FloatArray, n_threads: int) -> Any:
    # Inner products of a row are told apart as well when all are divided by the same; 16 bits hold the rest.
    scale = float(np.abs(factors).max(initial=0.0)) or 1.0
    index = _empty(factors.shape[1])
    index.add(np.arange(len(factors)), np.asarray(factors / scale, dtype=np.float32), threads=n_threads)
    return index


def _shared(factors: FloatArray, n_threads: int, home: Path) -> Any:
    """An index as a view of a file, which the first of all workers writes."""
    digest = hashlib.sha256(np.ascontiguousarray(factors).data).hexdigest()[:32]
    path = home / f"{digest}.usearch"
    with _alone(home):
        if not path.exists():
            new = home / f".{secrets.token_hex(8)}"
            _made(factors, n_threads).save(str(new))
            os.replace(new, path)
        index = _empty(factors.shape[1])
        index.view(str(path))
        for other in home.glob("*.usearch"):
            if other != path:  # whoever still looks into it keeps it
                with contextlib.suppress(OSError):
                    other.unlink()
    return index


@contextlib.contextmanager
def _alone(home: Path) -> Any:
    """The only one to make an index here."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        yield
        return
    handle = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
