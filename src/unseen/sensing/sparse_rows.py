"""Measurements with few non-zeros: single cells, and cells with random signs strewn around them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from unseen.data import Observations
from unseen.exceptions import TooLargeError
from unseen.sensing.base import MeasurementOperator
from unseen.sensing.law import CHUNK, Law, chunk_generator
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["EntriesMap", "ExplicitMap", "HashedMap", "SparseRowsMap"]

GATHERED = 1 << 22
"""Numbers gathered from the factors at a time."""


class Nonzeros(NamedTuple):
    """Non-zeros of consecutive measurements: which measurement, which cell, which value."""

    measurement: IndexArray
    row: IndexArray
    col: IndexArray
    value: FloatArray


class SparseRowsMap(MeasurementOperator):
    """Maps given by the non-zeros of their measurements, which come in groups."""

    cells: Observations

    @abstractmethod
    def groups(self) -> Iterator[Nonzeros]:
        """Non-zeros of measurements ``start`` to ``stop``, in order."""

    def forward(self, left: FloatArray, right: FloatArray) -> FloatArray:
        out = np.zeros(self.n_rows)
        step = max(1, GATHERED // max(left.shape[1], 1))
        for group in self.groups():
            for first in range(0, group.value.size, step):
                part = slice(first, first + step)
                scores = np.einsum("ij,ij->i", left[group.row[part]], right[group.col[part]])
                _add(out, group.measurement[part] - self.start, group.value[part] * scores)
        return out

    def dot(self, values: FloatArray, right: FloatArray) -> FloatArray:
        out = np.zeros((self.shape[0], right.shape[1]))
        for matrix in self._adjoints(values):
            out += matrix @ right
        return out

    def tdot(self, values: FloatArray, left: FloatArray) -> FloatArray:
        out = np.zeros((self.shape[1], left.shape[1]))
        for matrix in self._adjoints(values):
            out += matrix.T @ left
        return out

    def _adjoints(self, values: FloatArray) -> Iterator[sparse.csr_array]:
        for group in self.groups():
            weights = group.value * values[group.measurement - self.start]
            yield sparse.csr_array((weights, (group.row, group.col)), shape=self.shape)

    def of_cells(self) -> FloatArray:
        out = np.zeros(self.n_rows)
        n = self.shape[1]
        known: Array = self.cells.rows.astype(np.int64) * n + self.cells.indices
        for group in self.groups():
            wanted = group.row.astype(np.int64) * n + group.col
            place = np.minimum(np.searchsorted(known, wanted), known.size - 1)
            hit = known[place] == wanted
            target = group.value[hit] * self.cells.values[place[hit]]
            _add(out, group.measurement[hit] - self.start, target)
        return out


def _add(out: FloatArray, place: IndexArray, values: FloatArray) -> None:
    """Add values at places that rise; only the range that they cover is touched."""
    if place.size:
        low = int(place[0])
        sums = np.bincount(place - low, values)
        out[low : low + sums.size] += sums


class EntriesMap(SparseRowsMap):
    """One measurement for each observed cell: plain factorisation."""

    def __init__(self, cells: Observations, start: int = 0, stop: int | None = None) -> None:
        self.cells, self.shape = cells, cells.shape
        self.start, self.stop = start, cells.nnz if stop is None else stop

    def groups(self) -> Iterator[Nonzeros]:
        picked = np.arange(self.start, self.stop)
        yield Nonzeros(picked, self.cells.rows[picked], self.cells.indices[picked], np.ones(picked.size))

    def part(self, start: int, stop: int) -> EntriesMap:
        return EntriesMap(self.cells, start, stop)


class HashedMap(SparseRowsMap):
    """Random signs by Algorithm 1 of AMF, drawn again whenever they are needed.

    Measurement k < p0 holds a one at observed cell k. Every other entry of a measurement is +s or -s, each
    with probability gamma. A generator keyed by the seed and the chunk of measurements makes the draw, so a
    piece of the map is its range alone and is the same wherever it is drawn.
    """

    def __init__(self, cells: Observations, law: Law, start: int = 0, stop: int | None = None) -> None:
        self.cells, self.shape, self.law = cells, cells.shape, law
        self.start, self.stop = start, law.n_rows if stop is None else stop

    def groups(self) -> Iterator[Nonzeros]:
        for chunk in range(self.start // CHUNK, -(-self.stop // CHUNK)):
            yield self._clipped(self._chunk(chunk))

    def _chunk(self, chunk: int) -> Nonzeros:
        first = chunk * CHUNK
        n_rows = min(CHUNK, self.law.n_rows - first)
        d = self.shape[0] * self.shape[1]
        place, value = self._signs(chunk, n_rows * d)
        measurement, cell = first + place // d, place % d
        n_cells = self.cells.nnz
        n = self.shape[1]
        if first < n_cells:
            originals = np.arange(first, min(first + n_rows, n_cells))
            unit = self.cells.rows[originals].astype(np.int64) * n + self.cells.indices[originals]
            if self.law.resample_original:
                # A sign on the measurement's own one would change its weight.
                own = np.full(n_rows, -1, dtype=np.int64)
                own[: unit.size] = unit
                kept = cell != own[measurement - first]
            else:
                kept = measurement >= n_cells
            measurement, cell, value = measurement[kept], cell[kept], value[kept]
            measurement = np.concatenate([originals, measurement])
            cell, value = np.concatenate([unit, cell]), np.concatenate([np.ones(unit.size), value])
            order = np.argsort(measurement, kind="stable")
            measurement, cell, value = measurement[order], cell[order], value[order]
        return Nonzeros(measurement, cell // n, cell % n, value)

    def _signs(self, chunk: int, length: int) -> tuple[IndexArray, FloatArray]:
        """Places and values of the random entries of a chunk, read as one long row."""
        rng = chunk_generator(self.law.seed, chunk)
        rate = 2.0 * self.law.gamma
        found: list[Array] = []
        last = -1
        while last < length:
            # Gaps between non-zeros are geometric: no place is drawn twice, none is visited in vain.
            left = rate * (length - last)
            gaps = rng.geometric(rate, size=int(left + 4.0 * np.sqrt(left) + 16.0))
            places = last + np.cumsum(gaps, dtype=np.int64)
            found.append(places)
            last = int(places[-1])
        place = np.concatenate(found)
        place = place[place < length]
        size = self.law.sign_size
        return place, np.where(rng.random(place.size) < 0.5, -size, size)

    def _clipped(self, group: Nonzeros) -> Nonzeros:
        inside = slice(*np.searchsorted(group.measurement, [self.start, self.stop]))
        measurement, row, col, value = group
        return Nonzeros(measurement[inside], row[inside], col[inside], value[inside])

    def part(self, start: int, stop: int) -> Self:
        return type(self)(self.cells, self.law, start, stop)

    def with_seed(self, seed: int) -> Self:
        """The same law, another draw."""
        return type(self)(self.cells, replace(self.law, seed=seed), self.start, self.stop)


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
    ) -> None:
        super().__init__(cells, law, start, stop)
        m, n = self.shape
        expected = 2.0 * law.gamma * m * n * self.n_rows + cells.nnz
        if expected > max_nonzeros:
            raise TooLargeError(
                f"augmentation='explicit' would store about {expected:.3g} non-zeros "
                f"({self.n_rows:,} measurements of {m} x {n} cells, gamma={law.gamma:g}), more than "
                f"max_nonzeros={max_nonzeros:,}; use 'expected', which is their mean, 'rank_one' or 'hashed'"
            )
        self._stored = list(super().groups())

    def groups(self) -> Iterator[Nonzeros]:
        yield from self._stored
