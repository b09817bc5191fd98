"""Measurements with few non-zeros: single cells, and cells with random signs strewn around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.data import Observations
from unseen.exceptions import TooLargeError
from unseen.sensing.base import MeasurementOperator
from unseen.sensing.law import MOST_DRAWS, Law
from unseen.typing import CSR, FloatArray

__all__ = ["EntriesMap", "ExplicitMap", "HashedMap"]

STRETCH = 1 << 18
"""Scores that are computed at a time, and non-zeros that are held: more where one row has more cells."""

LONGEST = (1 << 31) - 1
"""Cells of the longest stretch."""

GATHERED = 1 << 22
"""Numbers gathered from the factors at a time."""


class EntriesMap(MeasurementOperator):
    """One measurement for each observed cell: plain factorisation."""

    def __init__(self, cells: Observations, start: int = 0, stop: int | None = None) -> None:
        self.cells, self.shape = cells, cells.shape
        self.start, self.stop = start, cells.nnz if stop is None else stop

    def part(self, start: int, stop: int) -> EntriesMap:
        return EntriesMap(self.cells, start, stop)

    def forward(self, left: FloatArray, right: FloatArray) -> FloatArray:
        out = np.empty(self.n_rows)
        step = max(1, GATHERED // max(left.shape[1], 1))
        for first in range(self.start, self.stop, step):
            picked = slice(first, min(first + step, self.stop))
            scores = np.einsum("ij,ij->i", left[self.cells.rows[picked]], right[self.cells.indices[picked]])
            out[picked.start - self.start : picked.stop - self.start] = scores
        return out

    def dot(self, values: FloatArray, right: FloatArray) -> FloatArray:
        found: FloatArray = self._adjoint(values) @ right
        return found

    def tdot(self, values: FloatArray, left: FloatArray) -> FloatArray:
        found: FloatArray = self._adjoint(values).T @ left
        return found

    def _adjoint(self, values: FloatArray) -> CSR:
        picked = slice(self.start, self.stop)
        return sparse.csr_array(
            (values, (self.cells.rows[picked], self.cells.indices[picked])), shape=self.shape
        )

    def of_cells(self) -> FloatArray:
        return self.cells.values[self.start : self.stop].astype(np.float64)


class Piece(NamedTuple):
    """Random signs of some measurements on a stretch of rows, one column a cell."""

    measurements: slice
    signs: CSR


class HashedMap(MeasurementOperator):
    """Random signs by Algorithm 1 of AMF, drawn again whenever they are needed.

    Measurement k < p0 holds a one at observed cell k. Every other entry of a measurement is +s or -s, each
    with probability gamma. The numbers belong to seed, measurement and stretch of rows
    (:func:`unseen.kernels.signs`), so a piece of the map is its range alone, the same wherever it is drawn.

    Where the signs of all measurements together hit each cell many times, scores are computed for a stretch
    of rows at a time, and a product with the map is one of a sparse matrix and a vector. Where there are
    fewer signs than cells, only the scores that are hit are computed.
    """

    def __init__(
        self, cells: Observations, law: Law, start: int = 0, stop: int | None = None, *, n_threads: int = 1
    ) -> None:
        self.cells, self.shape, self.law, self.n_threads = cells, cells.shape, law, n_threads
        self.start, self.stop = start, law.n_rows if stop is None else stop
        first, last = (min(limit, cells.nnz) for limit in (self.start, self.stop))
        self.own = EntriesMap(cells, first, last)
        self._check_size()

    def _check_size(self) -> None:
        expected = self._expected_nonzeros()
        if expected > MOST_DRAWS:
            raise TooLargeError(
                f"augmentation='hashed' would draw about {expected:.3g} random signs in each pass "
                f"({self._sizes()}), more than {MOST_DRAWS:.0e}; use 'expected', which is their mean"
            )

    @property
    def _few(self) -> bool:
        """Whether there are fewer signs than cells; the same for all parts of a map."""
        return 2.0 * self.law.gamma * self.law.n_rows < 1.0

    def _expected_nonzeros(self) -> float:
        m, n = self.shape
        return 2.0 * self.law.gamma * m * n * self.n_rows

    def _sizes(self) -> str:
        m, n = self.shape
        return f"{self.n_rows:,} measurements of {m:,} x {n:,} cells, gamma={self.law.gamma:g}"

    def part(self, start: int, stop: int) -> Self:
        return type(self)(self.cells, self.law, start, stop, n_threads=self.n_threads)

    def with_seed(self, seed: int) -> Self:
        """The same law, another draw."""
        law = replace(self.law, seed=seed)
        return type(self)(self.cells, law, self.start, self.stop, n_threads=self.n_threads)

    def stretches(self) -> Iterator[tuple[slice, Iterator[Piece]]]:
        """Rows of the matrix, and the pieces that hold the signs on them."""
        m, n = self.shape
        n_rows = max(1, (LONGEST if self._few else STRETCH) // n)
        for block, first in enumerate(range(0, m, n_rows)):
            rows = slice(first, min(first + n_rows, m))
            yield rows, self._pieces(block, rows)

    def _pieces(self, block: int, rows: slice) -> Iterator[Piece]:
        law, n = self.law, self.shape[1]
        length = (rows.stop - rows.start) * n
        rate = 2.0 * law.gamma
        held_at_once = STRETCH if self._few else max(STRETCH, length)
        step = max(1, int(held_at_once / (rate * length + 1.0)))
        begin = self.start if law.resample_original else max(self.start, min(self.cells.nnz, self.stop))
        for first in range(begin, self.stop, step):
            last = min(first + step, self.stop)
            # A sign on the measurement's own one would change its weight.
            own = np.full(last - first, -1, dtype=np.int64)
            held = slice(min(first, self.cells.nnz), min(last, self.cells.nnz))
            cell = (self.cells.rows[held].astype(np.int64) - rows.start) * n + self.cells.indices[held]
            own[: cell.size] = np.where((cell >= 0) & (cell < length), cell, -1)
            indptr, indices, values = kernels.signs(
                own,
                length,
                rate,
                law.sign_size,
                law.seed,
                block=block,
                first_row=first,
                n_threads=self.n_threads,
            )
            matrix = sparse.csr_array((values, indices, indptr), shape=(last - first, length))
            yield Piece(slice(first - self.start, last - self.start), matrix)

    def forward(self, left: FloatArray, right: FloatArray) -> FloatArray:
        out = np.zeros(self.n_rows)
        out[: self.own.n_rows] = self.own.forward(left, right)
        for rows, pieces in self.stretches():
            if not self._few:
                scores: FloatArray = (left[rows].astype(np.float64) @ right.T).ravel()
            for part, signs in pieces:
                if self._few:
                    row, col = np.divmod(signs.indices, self.shape[1])
                    hit = np.einsum("ij,ij->i", left[rows][row], right[col])
                    out[part] += _scaled(signs, hit).sum(axis=1)
                else:
                    out[part] += signs @ scores
        return out

    def dot(self, values: FloatArray, right: FloatArray) -> FloatArray:
        out = self.own.dot(values[: self.own.n_rows], right).astype(np.float64)
        for rows, slopes in self._slopes(values):
            out[rows] += slopes @ right
        return out

    def tdot(self, values: FloatArray, left: FloatArray) -> FloatArray:
        out = self.own.tdot(values[: self.own.n_rows], left).astype(np.float64)
        for rows, slopes in self._slopes(values):
            out += slopes.T @ left[rows]
        return out

    def _slopes(self, values: FloatArray) -> Iterator[tuple[slice, FloatArray | CSR]]:
        """The adjoint's random part, a stretch of rows at a time."""
        for rows, pieces in self.stretches():
            shape = (rows.stop - rows.start, self.shape[1])
            if self._few:
                for part, signs in pieces:
                    weights = signs.data * np.repeat(values[part], np.diff(signs.indptr))
                    yield rows, sparse.csr_array((weights, np.divmod(signs.indices, shape[1])), shape=shape)
            else:
                slopes = np.zeros(shape[0] * shape[1])
                for part, signs in pieces:
                    slopes += signs.T @ values[part]
                yield rows, slopes.reshape(shape)

    def of_cells(self) -> FloatArray:
        out = np.zeros(self.n_rows)
        out[: self.own.n_rows] = self.own.of_cells()
        n = self.shape[1]
        for rows, pieces in self.stretches():
            here = slice(*np.searchsorted(self.cells.rows, [rows.start, rows.stop]))
            known = (self.cells.rows[here].astype(np.int64) - rows.start) * n + self.cells.indices[here]
            values = self.cells.values[here].astype(np.float64)
            if not self._few:
                filled = np.zeros((rows.stop - rows.start) * n)
                filled[known] = values
            for part, signs in pieces:
                if self._few:
                    place = np.minimum(np.searchsorted(known, signs.indices), max(known.size - 1, 0))
                    hit = np.where(known[place] == signs.indices, values[place], 0.0) if known.size else 0.0
                    out[part] += _scaled(signs, hit).sum(axis=1)
                else:
                    out[part] += signs @ filled
        return out


def _scaled(signs: CSR, factor: FloatArray | float) -> CSR:
    """The same pattern with its values multiplied."""
    return sparse.csr_array((signs.data * factor, signs.indices, signs.indptr), shape=signs.shape)


class ExplicitMap(HashedMap):
    """The draw of :class:`HashedMap`, stored. For small matrices and for checks."""

    def __init__(
        self,
        cells: Observations,
        law: Law,
        start: int = 0,
        stop: int | None = None,
        *,
        max_nonzeros: int = 200_000_000,
        n_threads: int = 1,
    ) -> None:
        self.max_nonzeros = max_nonzeros
        super().__init__(cells, law, start, stop, n_threads=n_threads)
        self._stored = [(rows, list(pieces)) for rows, pieces in super().stretches()]

    def _check_size(self) -> None:
        expected = self._expected_nonzeros() + self.cells.nnz
        if expected > self.max_nonzeros:
            raise TooLargeError(
                f"augmentation='explicit' would store about {expected:.3g} non-zeros ({self._sizes()}), "
                f"more than max_nonzeros={self.max_nonzeros:,}; use 'expected', which is their mean, "
                "'rank_one' or 'hashed'"
            )

    def part(self, start: int, stop: int) -> Self:
        limits = {"max_nonzeros": self.max_nonzeros, "n_threads": self.n_threads}
        return type(self)(self.cells, self.law, start, stop, **limits)

    def stretches(self) -> Iterator[tuple[slice, Iterator[Piece]]]:
        for rows, pieces in self._stored:
            yield rows, iter(pieces)
