"""Fits on one machine from files, for targets that are larger than memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unseen.data import Vocabulary
from unseen.data.vocabulary import VocabularyBuilder
from unseen.distributed.base import BlockCompleter
from unseen.distributed.blocks import Triples
from unseen.distributed.features import (
    FeatureLines,
    FeatureSource,
    assemble,
    place_by_ids,
    place_by_number,
    read_lines,
)
from unseen.distributed.local_engine import LocalEngine, as_cells, as_lines, fill_blocks, record_of
from unseen.distributed.recipes import Recipe
from unseen.distributed.sizing import CHUNK_CELLS, MemoryNeed, blocks_for, local_memory, parse_bytes
from unseen.distributed.sources import Columns, Partition, coded, find_partitions, indexed, read_tables
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.validation import check_choice, check_count, check_n_jobs

__all__ = ["DiskCompleter"]


class DiskCompleter(BlockCompleter):
    """Fit an estimator to a target that does not fit into memory.

    The cells are dealt out to blocks of rows and blocks of columns in a work folder. Each half sweep
    maps one block after another into memory and solves it with the same kernels as a fit in
    memory; the objective is that of ``estimator``. Factors must fit into memory, cells need not.

    Parameters
    ----------
    estimator : MatrixFactorization, BiasMC, IMC, BiasIMC or another completer
        What to fit, with its hyper-parameters; not changed. One low-rank term, solved by ALS or, with side
        features, by alternating conjugate gradients.
    memory : str or int, default="4GiB"
        Memory that this process may use. It decides the number of blocks; a fit that cannot stay
        below it is refused before it starts.
    n_blocks : int, optional
        Blocks on each side, instead of as few as ``memory`` allows. Results depend on it in
        the last digits.
    dtype : {"float32", "float64"}, optional
        Type of values and factors; by default that of the value column, float32 without one.
    work_folder : path, optional
        Where the blocks go, 2 to 4 times the size of the cells; by default a temporary folder. It is
        removed by :meth:`close`.
    checkpoint : str, optional
        Folder for checkpoints, any address that fsspec knows.
    checkpoint_every : int, default=1
        Sweeps between two checkpoints.
    resume : bool, default=False
        Go on from the checkpoint if there is one.
    n_jobs : int, optional
        Threads; None takes all cores. The result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    shape_ : (int, int)
        Rows and columns found.
    n_cells_ : int
        Cells after merging repeated ones.
    n_blocks_ : (int, int)
        Blocks of rows and of columns.
    memory_need_ : MemoryNeed
        What the plan was expected to need.
    history_ : list of dict
        ``objective`` and ``time_s`` of each sweep.
    n_iter_ : int
        Sweeps done.
    converged_ : bool
        Whether the objective settled before ``max_iter``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from unseen import MatrixFactorization
    >>> from unseen.distributed import DiskCompleter
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"user": rng.integers(0, 50, 900), "item": rng.integers(0, 30, 900)})
    >>> frame = frame.drop_duplicates().assign(stars=1.0 * (frame.user % 3 + frame.item % 2))
    >>> fit = DiskCompleter(MatrixFactorization(3, reg=1.0, random_state=0), memory="1GiB")
    >>> fit = fit.fit(frame, row="user", col="item", value="stars")
    >>> fit.to_local().predict_entries([0], [0]).shape
    (1,)
    >>> fit.close()
    """

    memory_need_: MemoryNeed
    _engine: LocalEngine

    def __init__(
        self,
        estimator: Any,
        *,
        memory: str | int = "4GiB",
        n_blocks: int | None = None,
        dtype: str | None = None,
        work_folder: Any = None,
        checkpoint: str | None = None,
        checkpoint_every: int = 1,
        resume: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.memory = memory
        self.n_blocks = n_blocks
        self.dtype = dtype
        self.work_folder = work_folder
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _threads(self) -> int:
        return check_n_jobs(self.n_jobs)

    def _make_engine(
        self, source: Any, recipe: Recipe, columns: Columns, shape: tuple[int, int] | None
    ) -> tuple[LocalEngine, str]:
        limit = parse_bytes("memory", self.memory)
        partitions = find_partitions(source)
        n_lines = sum(partition.n_lines for partition in partitions)
        dtype = self.dtype or _value_type(partitions, columns)
        check_choice("dtype", dtype, ("float32", "float64"))
        folder = Path(tempfile.mkdtemp(prefix="unseen-", dir=self.work_folder))
        try:
            reader = _Reader(partitions, columns, shape, folder, dtype)
            shape = reader.shape
            options: dict[str, Any] = {
                "item": np.dtype(dtype).itemsize,
                "id_bytes": reader.id_bytes,
                "n_threads": self._threads(),
                "n_features": recipe.n_features(),
                "weighted": columns.weight is not None,
            }
            if self.n_blocks is None:
                n_blocks, need = blocks_for(limit, n_lines, shape, recipe.rank, **options)
            else:
                n_blocks = check_count("n_blocks", self.n_blocks)
                need = local_memory(n_lines, shape, recipe.rank, n_blocks, **options)
                if need.peak > limit:
                    raise ParameterError(
                        f"n_blocks={n_blocks} needs {need.peak / 2**30:.2f} GiB, memory={self.memory!r} is "
                        "less; more blocks or n_blocks=None would do"
                    )
            merge = recipe.merge(columns.value)
            engine = fill_blocks(reader.chunks, shape, n_blocks, merge, dtype, folder, reader.ids)
            reader.done()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.memory_need_ = need
        return engine, dtype

    def _load_features(self, engine: LocalEngine, source: FeatureSource, dtype: str) -> None:
        load_features(engine, source, dtype)

    def _vocabularies(self) -> tuple[Vocabulary | None, Vocabulary | None]:
        return self._engine.ids["row"], self._engine.ids["col"]


def _value_type(partitions: list[Partition], columns: Columns) -> str:
    """float32 where the first values are, float64 else; float32 where there are none."""
    if columns.value is None:
        return "float32"
    for table, _ in (found for partition in partitions[:1] for found in read_tables(partition, columns, 1)):
        return "float32" if str(table.schema.field(columns.value).type) == "float" else "float64"
    raise InvalidDataError("X has no cell, so there is nothing to learn from")


class _Reader:
    """Cells in chunks with indices; ids are numbered in a first pass, which leaves the numbers in a file."""

    def __init__(
        self,
        partitions: list[Partition],
        columns: Columns,
        shape: tuple[int, int] | None,
        folder: Path,
        dtype: str,
    ) -> None:
        self._partitions, self._columns = partitions, columns
        self.ids: tuple[Vocabulary | None, Vocabulary | None] = (None, None)
        self.id_bytes = 0
        self._file: Path | None = None
        if shape is None:
            shape = self._number(folder, dtype)
        self.shape = shape

    def _tables(self) -> Iterator[tuple[Any, str, int]]:
        for partition in self._partitions:
            for table, first in read_tables(partition, self._columns, CHUNK_CELLS):
                yield table, partition.name, first

    def _number(self, folder: Path, dtype: str) -> tuple[int, int]:
        builders = VocabularyBuilder("row ids"), VocabularyBuilder("column ids")
        self._file = folder / "numbered"
        with self._file.open("wb") as file:
            for table, name, first in self._tables():
                cells = coded(table, self._columns, name, first)
                rows = builders[0].add(cells.row_ids)[cells.row_codes]
                cols = builders[1].add(cells.col_ids)[cells.col_codes]
                self._record = record_of(np.int32, cells, dtype)
                as_lines(Triples(rows, cols, cells.values, cells.weights), self._record).tofile(file)
        (row_ids, row_final), (col_ids, col_final) = (builder.finish() for builder in builders)
        if not len(row_ids):
            raise InvalidDataError("X has no cell, so there is nothing to learn from")
        self.ids = row_ids, col_ids
        self._final = row_final.astype(np.int32), col_final.astype(np.int32)
        self.id_bytes = 2 * (row_ids.values.nbytes + col_ids.values.nbytes)
        return len(row_ids), len(col_ids)

    def chunks(self) -> Iterator[Triples]:
        """All cells, from the first."""
        if self._file is None:
            for table, name, first in self._tables():
                yield indexed(table, self._columns, self.shape, name, first)
            return
        with self._file.open("rb") as file:
            while True:
                lines = np.fromfile(file, dtype=self._record, count=CHUNK_CELLS)
                if not len(lines):
                    return
                cells = as_cells(lines)
                yield cells._replace(rows=self._final[0][cells.rows], cols=self._final[1][cells.cols])

    def done(self) -> None:
        """Remove the file of numbers."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            del self._final


# -- features -------------------------------------------------------------------------------


def load_features(engine: LocalEngine, source: FeatureSource, dtype: str) -> None:
    """Let each block of one side hold its features: lines are dealt out to a file for each block first."""
    side = source.side
    if source.array is None:
        _deal(engine, source, dtype)
    for number, rows in engine.blocks(side):
        if source.array is not None:
            features: Any = source.array[rows].astype(dtype)
        else:
            known = None if engine.ids[side] is None else engine.held(side, number, "ids")
            features = assemble(_dealt(engine, source, number, dtype), rows.start, rows.stop, source, known)
        engine.keep(side, number, "features", features)


def _deal(engine: LocalEngine, source: FeatureSource, dtype: str) -> None:
    """Append lines of features to one file for each block."""
    bounds, ids = engine.bounds[source.side], engine.all_ids(source.side)
    assert source.columns is not None
    for place, partition in enumerate(source.partitions):
        if not isinstance(partition, Partition):
            raise ParameterError(
                f"{source.argument} is a dask DataFrame; a fit from disk reads frames in memory and Parquet"
            )
        for lines in read_lines(partition, source.columns, dtype):
            placed = place_by_number(lines, int(bounds[-1])) if ids is None else place_by_ids(lines, ids, 0)
            block = np.searchsorted(bounds, placed.ids, side="right") - 1
            order = np.argsort(block, kind="stable")
            cuts = np.searchsorted(block[order], np.arange(len(bounds)))
            for filled in map(int, np.flatnonzero(np.diff(cuts))):
                mine = placed.chosen(order[cuts[filled] : cuts[filled + 1]])
                records = np.empty(len(mine.ids), dtype=_feature_record(source, dtype))
                records["partition"], records["line"] = place, mine.lines
                records["place"], records["values"] = mine.ids, mine.values
                with _lines_file(engine, source, filled).open("ab") as file:
                    records.tofile(file)


def _lines_file(engine: LocalEngine, source: FeatureSource, number: int) -> Path:
    return engine.folder / f"{source.side}-{number}.lines"


def _feature_record(source: FeatureSource, dtype: str) -> np.dtype[Any]:
    places: list[Any] = [("partition", np.int32), ("line", np.int64), ("place", np.int64)]
    return np.dtype([*places, ("values", dtype, (source.n_features,))])


def _dealt(engine: LocalEngine, source: FeatureSource, number: int, dtype: str) -> list[FeatureLines]:
    """Lines of one block, by partition."""
    file = _lines_file(engine, source, number)
    if not file.exists():
        return []
    records = np.fromfile(file, dtype=_feature_record(source, dtype))
    file.unlink()
    found = []
    for partition in np.unique(records["partition"]):
        mine = records[slice(*np.searchsorted(records["partition"], [partition, partition + 1]))]
        where = f"{source.argument}, {source.partitions[partition].name}"
        found.append(FeatureLines(mine["place"], mine["values"], mine["line"], where))
    return found
