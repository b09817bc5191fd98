"""Side features of a fit on one machine: designs in files beside the blocks of cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from unseen.data import Vocabulary
from unseen.distributed import feature_steps as steps
from unseen.distributed.checkpoints import Checkpoints
from unseen.distributed.features import (
    FeatureLines,
    FeatureSource,
    assemble,
    extent,
    map_params_of,
    mean_of,
    place_by_ids,
    place_by_number,
    read_lines,
    squares_about,
)
from unseen.distributed.local_engine import LocalEngine
from unseen.distributed.sources import Partition
from unseen.distributed.steps import Part, Settings, Start
from unseen.exceptions import ParameterError
from unseen.maps import FeatureMap
from unseen.maps.base import MapParams
from unseen.typing import FloatArray

__all__ = ["LocalFeatures", "load_designs"]

VECTORS = ("step", "residual", "direction")


def load_designs(
    engine: LocalEngine, source: FeatureSource, a_map: FeatureMap, ids: Vocabulary | None, dtype: str
) -> MapParams:
    """Write the design of each block of one side into the engine's folder; returns the map's parameters."""
    side = source.side
    _deal(engine, source, ids, dtype)
    found, extents = _reader(engine, side, "features"), []
    for number, rows in engine.each(side):
        parts = _dealt(engine, source, number, dtype)
        known = None if ids is None else ids.values[rows]
        features = assemble(parts, rows.start, rows.stop, source, known)
        np.save(_file(engine, side, number, "features"), features, allow_pickle=False)
        extents.append(extent(features))
    mean = mean_of(extents)
    squares = [squares_about(found(number), mean) for number, _ in engine.each(side)]
    params = map_params_of(a_map, extents, squares)
    for number, _ in engine.each(side):
        design = steps.design_of(found(number), a_map, params)
        np.save(_file(engine, side, number, "design"), design, allow_pickle=False)
        _file(engine, side, number, "features").unlink()
    return params


def _file(engine: LocalEngine, side: str, number: int, what: str) -> Path:
    return engine.folder / f"{side}-{number}.{what}.npy"


def _reader(engine: LocalEngine, side: str, what: str) -> Callable[[int], FloatArray]:
    def read(number: int) -> FloatArray:
        found: FloatArray = np.load(_file(engine, side, number, what), allow_pickle=False)
        return found

    return read


def _deal(engine: LocalEngine, source: FeatureSource, ids: Vocabulary | None, dtype: str) -> None:
    """Append lines of features to one file for each block."""
    bounds, length = engine.bounds[source.side], int(engine.bounds[source.side][-1])
    if source.array is not None:
        for number, rows in engine.each(source.side):
            indices = np.arange(rows.start, rows.stop)
            whole = FeatureLines(indices, source.array[rows].astype(dtype), indices, "")
            _append(engine, source, number, 0, whole, dtype)
        return
    assert source.columns is not None
    for place, partition in enumerate(source.partitions):
        if not isinstance(partition, Partition):
            raise ParameterError(
                f"{source.argument} is a dask DataFrame; a fit from disk reads frames in memory and Parquet"
            )
        for lines in read_lines(partition, source.columns, dtype):
            placed = place_by_number(lines, length) if ids is None else place_by_ids(lines, ids.values, 0)
            block = np.searchsorted(bounds, placed.ids, side="right") - 1
            order = np.argsort(block, kind="stable")
            cuts = np.searchsorted(block[order], np.arange(len(bounds)))
            for filled in map(int, np.flatnonzero(np.diff(cuts))):
                mine = placed.chosen(order[cuts[filled] : cuts[filled + 1]])
                _append(engine, source, filled, place, mine, dtype)


def _record(source: FeatureSource, dtype: str) -> np.dtype[Any]:
    places: list[Any] = [("partition", np.int32), ("line", np.int64), ("place", np.int64)]
    return np.dtype([*places, ("values", dtype, (source.n_features,))])


def _append(
    engine: LocalEngine, source: FeatureSource, number: int, partition: int, lines: FeatureLines, dtype: str
) -> None:
    records = np.empty(len(lines.ids), dtype=_record(source, dtype))
    records["partition"], records["line"] = partition, lines.lines
    records["place"], records["values"] = lines.ids, lines.values
    with (engine.folder / f"{source.side}-{number}.lines").open("ab") as file:
        records.tofile(file)


def _dealt(engine: LocalEngine, source: FeatureSource, number: int, dtype: str) -> list[FeatureLines]:
    """Lines of one block, by partition."""
    file = engine.folder / f"{source.side}-{number}.lines"
    if not file.exists():
        return []
    records = np.fromfile(file, dtype=_record(source, dtype))
    file.unlink()
    found = []
    for partition in np.unique(records["partition"]):
        mine = records[slice(*np.searchsorted(records["partition"], [partition, partition + 1]))]
        where = f"{source.argument}, {source.partitions[partition].name if source.partitions else 'array'}"
        found.append(FeatureLines(mine["place"], mine["values"], mine["line"], where))
    return found


class LocalFeatures:
    """Blocks of cells, designs and factors in a folder; one block in memory at any time.

    Parameters
    ----------
    engine : LocalEngine
        Blocks of cells and factors.
    widths : dict
        Columns of the design of each side; None for a side without features.
    """

    def __init__(self, engine: LocalEngine, widths: dict[str, int | None]) -> None:
        self.engine = engine
        self.shape = engine.shape
        self.widths = widths

    # -- what the engine does --------------------------------------------------------

    def draw(self, side: str, start: Start, settings: Settings) -> list[float]:
        """Draw a factor of a side without features; the sum of squares of each block."""
        return self.engine.draw(side, start, settings)

    def scale(self, side: str, factor: float) -> list[Part]:
        """Bring a drawn factor to its size."""
        return self.engine.scale(side, factor)

    def turn(self, side: str, turn: FloatArray, settings: Settings) -> None:
        """Multiply all blocks of a factor with a small matrix."""
        self.engine.turn(side, turn, settings)

    def write_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Write all blocks of both factors into a folder of a checkpoint."""
        self.engine.write_factors(checkpoints, folder)

    def read_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Take all blocks of both factors from a folder of a checkpoint."""
        self.engine.read_factors(checkpoints, folder)

    # -- one block -------------------------------------------------------------------

    def _design(self, side: str, number: int) -> FloatArray:
        design = _reader(self.engine, side, "design")(number)
        self.engine.bytes_moved += design.nbytes
        return design

    def _near(self, side: str, rows: slice) -> FloatArray:
        return np.array(self.engine.factors(side)[rows])

    def _around(
        self, side: str, number: int, other_gram: FloatArray, settings: Settings
    ) -> steps.Surroundings:
        cells = self.engine.block(side, number)
        other = np.take(self.engine.factors("col" if side == "row" else "row"), cells.touched, axis=0)
        self.engine.bytes_moved += cells.nbytes + other.nbytes
        return steps.Surroundings(cells, other, other_gram, settings)

    def _put(self, side: str, rows: slice, block: FloatArray) -> None:
        out = self.engine.factors(side, "r+")
        out[rows] = block

    # -- sides with features ---------------------------------------------------------

    def embed(self, side: str, coefficients: FloatArray, settings: Settings) -> list[Part]:
        """Factors of a side with features from new coefficients."""
        self.engine.need_factors(side, settings)
        parts = []
        for number, rows in self.engine.each(side):
            near, part = steps.embed_block(self._design(side, number), coefficients, settings)
            self._put(side, rows, near)
            parts.append(part)
        return parts

    def slope(self, side: str, other_gram: FloatArray, settings: Settings) -> FloatArray:
        """Derivative of the data part by the coefficients of a side."""
        return steps.added(
            steps.slope_block(
                self._around(side, number, other_gram, settings),
                self._design(side, number),
                self._near(side, rows),
            )
            for number, rows in self.engine.each(side)
        )

    def product(
        self, side: str, direction: FloatArray, other_gram: FloatArray, settings: Settings
    ) -> FloatArray:
        """Second derivative of the data part by the coefficients of a side, times a direction."""
        return steps.added(
            steps.product_block(
                self._around(side, number, other_gram, settings), self._design(side, number), direction
            )
            for number, _ in self.engine.each(side)
        )

    # -- sides without ---------------------------------------------------------------

    def begin(self, side: str, other_gram: FloatArray, settings: Settings) -> float:
        """Start conjugate gradients on a side without features; the squared residual."""
        total = 0.0
        for number, rows in self.engine.each(side):
            around = self._around(side, number, other_gram, settings)
            vectors, size = steps.begin(around, self._near(side, rows))
            self._keep(side, number, vectors)
            total += size
        return total

    def follow(self, side: str, share: float | None, other_gram: FloatArray, settings: Settings) -> float:
        """Take the next direction; its product with what the system makes of it."""
        total = 0.0
        for number, _ in self.engine.each(side):
            around = self._around(side, number, other_gram, settings)
            found, bend = steps.follow(around, self._vectors(side, number), share)
            np.save(_file(self.engine, side, number, "found"), np.stack(found), allow_pickle=False)
            total += bend
        return total

    def advance(self, side: str, length: float) -> float:
        """Go along the direction; the squared residual."""
        total, found = 0.0, _reader(self.engine, side, "found")
        for number, _ in self.engine.each(side):
            direction, product = found(number)
            vectors, size = steps.advance(self._vectors(side, number), (direction, product), length)
            self._keep(side, number, vectors)
            total += size
        return total

    def finish(self, side: str, settings: Settings) -> list[Part]:
        """Take over the steps into the factors."""
        parts = []
        for number, rows in self.engine.each(side):
            near, part = steps.finish(self._vectors(side, number), self._near(side, rows), settings)
            self._put(side, rows, near)
            parts.append(part)
        return parts

    def _keep(self, side: str, number: int, vectors: steps.Conjugate) -> None:
        for name in VECTORS:
            np.save(_file(self.engine, side, number, name), getattr(vectors, name), allow_pickle=False)

    def _vectors(self, side: str, number: int) -> steps.Conjugate:
        return steps.Conjugate(*(_reader(self.engine, side, name)(number) for name in VECTORS))

    # -- objective -------------------------------------------------------------------

    def judge(self, settings: Settings) -> tuple[float, float]:
        """Loss of all cells, and the sum of their squared scores."""
        nothing = np.zeros((0, 0))
        loss = squares = 0.0
        for number, rows in self.engine.each("row"):
            around = self._around("row", number, nothing, settings)
            part = steps.judge_block(around, self._near("row", rows))
            loss, squares = loss + part[0], squares + part[1]
        return loss, squares
