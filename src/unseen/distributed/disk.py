"""Fits on one machine from files, for targets that are larger than memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unseen.data import Vocabulary
from unseen.data.vocabulary import VocabularyBuilder
from unseen.distributed.base import BlockCompleter
from unseen.distributed.blocks import Indices, Triples
from unseen.distributed.feature_driver import FeatureEngine
from unseen.distributed.local_engine import LocalEngine, fill_blocks
from unseen.distributed.local_features import LocalFeatures, load_designs
from unseen.distributed.recipes import Recipe
from unseen.distributed.results import prepare_folder, top_of, write_factors, write_lists
from unseen.distributed.sizing import CHUNK_CELLS, MemoryNeed, blocks_for, local_memory, parse_bytes
from unseen.distributed.sources import Columns, Partition, coded, find_partitions, indexed, read_tables
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.state import State
from unseen.typing import Array
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
    >>> fit = DiskCompleter(MatrixFactorization(3, random_state=0), memory="1GiB")
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
        self, source: Any, recipe: Recipe, names: tuple[str, str, str | None], shape: tuple[int, int] | None
    ) -> tuple[LocalEngine, dict[str, Indices], str]:
        limit = parse_bytes("memory", self.memory)
        columns = recipe.columns(*names)
        partitions = find_partitions(source)
        n_lines = sum(partition.n_lines for partition in partitions)
        dtype = self.dtype or _value_type(partitions, columns)
        check_choice("dtype", dtype, ("float32", "float64"))
        item = np.dtype(dtype).itemsize
        folder = Path(tempfile.mkdtemp(prefix="unseen-", dir=self.work_folder))
        try:
            reader = _Reader(partitions, columns, shape, folder, dtype)
            shape = reader.shape
            options: dict[str, Any] = {
                "item": item,
                "id_bytes": reader.id_bytes,
                "n_threads": self._threads(),
                "n_features": recipe.n_features(),
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
            engine = fill_blocks(reader.chunks, shape, n_blocks, recipe.merge(columns.value), dtype, folder)
            reader.done()
        except BaseException:
            LocalEngine(folder, {"row": np.zeros(1, np.int64), "col": np.zeros(1, np.int64)}).close()
            raise
        self.memory_need_, self._ids = need, reader.ids
        return engine, engine.bounds, dtype

    def _load_features(self, engine: LocalEngine, recipe: Recipe, dtype: str) -> tuple[FeatureEngine, State]:
        params: State = {}
        for place, side in enumerate(("row", "col")):
            if side in recipe.features:
                found = load_designs(
                    engine, recipe.features[side], recipe.side_map(side), self._ids[place], dtype
                )
                params |= {f"0.{side}_map.{name}": value for name, value in found.items()}
        return LocalFeatures(engine, recipe.widths()), params

    def to_local(self) -> Any:
        """The fitted estimator in the memory of this process.

        Returns
        -------
        estimator
            As if ``estimator`` had been fitted in memory; it can be saved, asked and served.
        """
        self._check_fitted()
        rows, cols = (np.array(self._engine.factors(side)) for side in ("row", "col"))
        return self._recipe.fitted(rows, cols, self._settings, self._ids, self._facts())

    def write_factors(self, path: str, side: str = "row") -> int:
        """Write the factors of one side as Parquet files, one for each block.

        Parameters
        ----------
        path : str
            New or empty folder, any address that fsspec knows.
        side : {"row", "col"}
            Which factors.

        Returns
        -------
        int
            Lines written: ``id`` and ``factor``, a list of numbers.
        """
        self._check_fitted()
        prepare_folder(str(path))
        place = ("row", "col").index(check_choice("side", side, ("row", "col")))
        lines = [
            write_factors(
                self._engine.factors(side)[rows],
                _ids_of(self._ids[place], rows),
                side,
                self._settings.mean,
                str(path),
                number,
            )
            for number, rows in self._engine.each(side)
        ]
        return sum(lines)

    def recommend_all(self, path: str, k: int = 10, *, exclude_seen: bool = True) -> int:
        """Write the best columns of every row as Parquet files, one for each block of rows.

        Parameters
        ----------
        path : str
            New or empty folder, any address that fsspec knows.
        k : int, default=10
            Length of each list.
        exclude_seen : bool, default=True
            Leave out the cells of the target.

        Returns
        -------
        int
            Lines written: row id, rank, column id and score.
        """
        self._check_fitted()
        k = check_count("k", k)
        prepare_folder(str(path))
        engine, lines = self._engine, 0
        names = self._names if not {"rank", "score"} & set(self._names) else ("row", "col")
        col_ids = None if self._ids[1] is None else self._ids[1].values
        for number, rows in engine.each("row"):
            left = np.array(engine.factors("row")[rows])
            cells = engine.block("row", number) if exclude_seen else None
            best = None
            for _, cols in engine.each("col"):
                right = np.array(engine.factors("col")[cols])
                best = top_of(left, right, cols.start, cells, k, best, self._threads())
            assert best is not None
            row_ids = _ids_of(self._ids[0], rows)
            lines += write_lists(best, self._settings.mean, row_ids, col_ids, names, str(path), number)
        return lines


def _ids_of(vocabulary: Vocabulary | None, rows: slice) -> Array:
    return np.arange(rows.start, rows.stop) if vocabulary is None else vocabulary.values[rows]


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
        fields: list[Any] = [("row", np.int32), ("col", np.int32)]
        self._record = np.dtype(fields if self._columns.value is None else [*fields, ("value", dtype)])
        self._file = folder / "numbered"
        with self._file.open("wb") as file:
            for table, name, first in self._tables():
                cells = coded(table, self._columns, name, first)
                lines = np.empty(len(cells.row_codes), dtype=self._record)
                lines["row"] = builders[0].add(cells.row_ids)[cells.row_codes]
                lines["col"] = builders[1].add(cells.col_ids)[cells.col_codes]
                if cells.values is not None:
                    lines["value"] = cells.values
                lines.tofile(file)
        (rows, row_final), (cols, col_final) = (builder.finish() for builder in builders)
        if not len(rows):
            raise InvalidDataError("X has no cell, so there is nothing to learn from")
        self.ids = rows, cols
        self._final = row_final.astype(np.int32), col_final.astype(np.int32)
        self.id_bytes = 2 * (rows.values.nbytes + cols.values.nbytes)
        return len(rows), len(cols)

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
                values = lines["value"] if self._columns.value is not None else None
                yield Triples(self._final[0][lines["row"]], self._final[1][lines["col"]], values)

    def done(self) -> None:
        """Remove the file of numbers."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            del self._final
