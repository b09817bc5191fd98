"""Fits on a Dask cluster."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from unseen.data import Vocabulary
from unseen.distributed import dask_plan as plan
from unseen.distributed.base import BlockCompleter
from unseen.distributed.blocks import Indices
from unseen.distributed.cluster import Cluster, check_room, connect
from unseen.distributed.dask_engine import DaskEngine
from unseen.distributed.dask_feature_plan import load_designs
from unseen.distributed.dask_features import DaskFeatures
from unseen.distributed.dask_plan import IdRanges
from unseen.distributed.feature_driver import FeatureEngine
from unseen.distributed.recipes import Recipe
from unseen.distributed.results import Lists, ids_between, prepare_folder, top_of, write_factors, write_lists
from unseen.distributed.sizing import BASE, MemoryNeed, cluster_memory
from unseen.distributed.sources import find_partitions
from unseen.exceptions import InvalidDataError
from unseen.state import State
from unseen.typing import Array, FloatArray
from unseen.validation import check_choice, check_count, check_positive

__all__ = ["DaskCompleter"]

CELLS_A_BLOCK = 1 << 22
MIN_BLOCKS, MAX_BLOCKS = 8, 128
"""Blocks on each side that are chosen when nobody says; a half sweep has their square as tasks."""


class DaskCompleter(BlockCompleter):
    """Fit an estimator on a Dask cluster, to a target that no single machine has to hold.

    Cells stay on the workers in blocks of rows and blocks of columns, factors are spread over
    the workers too. Each half sweep sends a worker only the factors that its blocks touch, and the
    Gram matrix of the others. The objective is that of ``estimator``, the kernels are the same, and
    sums are made in the order of the blocks: the factors are the same to the last bit for any number
    of workers. Lost workers are replaced by Dask, which computes their blocks again from the last checkpoint,
    or from the start without one.

    Parameters
    ----------
    estimator : MatrixFactorization, BiasMC, IMC, BiasIMC or another completer
        What to fit, with its hyper-parameters; not changed. One low-rank term, solved by ALS or, with side
        features, by alternating conjugate gradients.
    client : distributed.Client, optional
        Connection to the cluster; by default the current one.
    n_blocks : int, optional
        Blocks on each side. The default depends on the number of cells alone: one for every 4 million,
        from 8 to 128. Results depend on it in the last digits.
    dtype : {"float32", "float64"}, optional
        Type of values and factors; by default that of the value column, float32 without one.
    threads_per_task : int, default=1
        Threads for one block; with workers of one thread each, raise it to use more cores.
    checkpoint : str, optional
        Folder for checkpoints that all workers can reach, any address that fsspec knows.
    checkpoint_every : int, default=1
        Sweeps between two checkpoints.
    resume : bool, default=False
        Go on from the checkpoint if there is one.
    patience : float, default=30.0
        Seconds without scheduler or workers before :class:`unseen.exceptions.ClusterError` is raised.
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
        What the plan was expected to need on each worker.
    history_ : list of dict
        ``objective`` and ``time_s`` of each sweep.
    n_iter_ : int
        Sweeps done.
    converged_ : bool
        Whether the objective settled before ``max_iter``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from distributed import Client
    >>> from unseen import MatrixFactorization
    >>> from unseen.distributed import DaskCompleter
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"user": rng.integers(0, 50, 900), "item": rng.integers(0, 30, 900)})
    >>> frame = frame.drop_duplicates().assign(stars=1.0 * (frame.user % 3 + frame.item % 2))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     fit = DaskCompleter(MatrixFactorization(3, random_state=0), client=client, n_blocks=2)
    ...     model = fit.fit(frame, row="user", col="item", value="stars").to_local()
    >>> model.predict_entries([0], [0]).shape
    (1,)
    """

    memory_need_: MemoryNeed
    _engine: DaskEngine
    _ids: dict[str, IdRanges] | None

    def __init__(
        self,
        estimator: Any,
        *,
        client: Any = None,
        n_blocks: int | None = None,
        dtype: str | None = None,
        threads_per_task: int = 1,
        checkpoint: str | None = None,
        checkpoint_every: int = 1,
        resume: bool = False,
        patience: float = 30.0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.client = client
        self.n_blocks = n_blocks
        self.dtype = dtype
        self.threads_per_task = threads_per_task
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.patience = patience
        self.verbose = verbose

    def _threads(self) -> int:
        return check_count("threads_per_task", self.threads_per_task)

    def _make_engine(
        self, source: Any, recipe: Recipe, names: tuple[str, str, str | None], shape: tuple[int, int] | None
    ) -> tuple[DaskEngine, dict[str, Indices], str]:
        cluster = Cluster(connect(self.client), check_positive("patience", self.patience))
        cluster.check_workers()
        check_room(BASE, cluster.memory_limits())
        columns = recipe.columns(*names)
        token = secrets.token_hex(6)
        cluster.settle(check_count("n_blocks", self.n_blocks) if self.n_blocks else MAX_BLOCKS)
        partitions = self._partitions(cluster, source, columns.names)
        loaded = plan.load_partitions(cluster, partitions, columns, shape, token)
        cells, self._ids = loaded, None
        if shape is None:
            n_ranges = check_count("n_blocks", self.n_blocks) if self.n_blocks else MIN_BLOCKS
            cells, self._ids = plan.number_ids(cluster, loaded, n_ranges, token)
            shape = (self._ids["row"].length, self._ids["col"].length)
            if not min(shape):
                raise InvalidDataError("X has no cell, so there is nothing to learn from")
        dtype = self.dtype or _value_type(cluster, cells, columns.value, token)
        check_choice("dtype", dtype, ("float32", "float64"))
        counts = plan.cell_counts(cluster, cells, shape, token)
        n_cells = int(counts["row"].sum())
        n_blocks = self.n_blocks or int(np.clip(-(-n_cells // CELLS_A_BLOCK), MIN_BLOCKS, MAX_BLOCKS))
        bounds = plan.bounds_of(counts, shape, n_blocks)
        workers = cluster.workers()
        self.memory_need_ = cluster_memory(
            n_cells,
            shape,
            recipe.rank,
            n_blocks,
            len(workers),
            item=np.dtype(dtype).itemsize,
            threads=max(workers.values()),
            n_features=recipe.n_features(),
        )
        check_room(self.memory_need_.peak, cluster.memory_limits())
        blocks = plan.make_blocks(cluster, cells, bounds, recipe.merge(columns.value), dtype, token)
        return DaskEngine(cluster, token, blocks, bounds), bounds, dtype

    def _load_features(self, engine: DaskEngine, recipe: Recipe, dtype: str) -> tuple[FeatureEngine, State]:
        designs: dict[str, list[Any]] = {}
        params: State = {}
        token = secrets.token_hex(6)
        for side, source in recipe.features.items():
            ids = None if self._ids is None else self._ids[side]
            designs[side], found = load_designs(engine, source, recipe.side_map(side), ids, dtype, token)
            params |= {f"0.{side}_map.{name}": value for name, value in found.items()}
        return DaskFeatures(engine, designs, recipe.widths(), token), params

    def _partitions(self, cluster: Cluster, source: Any, names: list[str]) -> list[Any]:
        """Partitions to be read by workers, or futures of frames."""
        if not hasattr(source, "dask"):
            return find_partitions(source)
        missing = [name for name in names if name not in source.columns]
        if missing:
            raise InvalidDataError(
                f"X has no column {missing[0]!r}; it has {', '.join(map(repr, source.columns))}"
            )
        return list(cluster.client.compute(source[names].to_delayed()))

    def to_local(self) -> Any:
        """The fitted estimator in the memory of this process.

        Returns
        -------
        estimator
            As if ``estimator`` had been fitted in memory; it can be saved, asked and served.
        """
        self._check_fitted()
        engine = self._engine
        sides: list[FloatArray] = []
        vocabularies: list[Vocabulary | None] = []
        for side, n_rows in zip(("row", "col"), engine.shape, strict=True):
            out: FloatArray = np.empty((n_rows, self._settings.rank), dtype=self._settings.dtype)
            for number, block in enumerate(engine.blocks[side]):
                (part,) = engine.cluster.collect([block])
                out[engine.bounds[side][number] : engine.bounds[side][number + 1]] = part[0]
            sides.append(out)
            ids = None if self._ids is None else engine.cluster.collect(self._ids[side].ranges)
            vocabularies.append(
                None if ids is None else Vocabulary(np.concatenate([i for i in ids if len(i)]))
            )
        return self._recipe.fitted(
            sides[0], sides[1], self._settings, (vocabularies[0], vocabularies[1]), self._facts()
        )

    def write_factors(self, path: str, side: str = "row") -> int:
        """Write the factors of one side as Parquet files, each by the worker that holds the block.

        Parameters
        ----------
        path : str
            New or empty folder that all workers can reach, any address that fsspec knows.
        side : {"row", "col"}
            Which factors.

        Returns
        -------
        int
            Lines written: ``id`` and ``factor``, a list of numbers.
        """
        self._check_fitted()
        check_choice("side", side, ("row", "col"))
        prepare_folder(str(path))
        engine = self._engine
        token = secrets.token_hex(4)
        written = [
            engine.cluster.submit(
                number,
                _write_factors,
                block,
                *self._ids_of(side, number),
                side,
                self._settings.mean,
                str(path),
                number,
                key=f"unseen_factors-{token}-{number}",
            )
            for number, block in enumerate(engine.blocks[side])
        ]
        return sum(engine.cluster.collect(written))

    def recommend_all(self, path: str, k: int = 10, *, exclude_seen: bool = True) -> int:
        """Write the best columns of every row as Parquet files, each by a worker.

        Parameters
        ----------
        path : str
            New or empty folder that all workers can reach, any address that fsspec knows.
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
        engine = self._engine
        token = secrets.token_hex(4)
        names = self._names if not {"rank", "score"} & set(self._names) else ("row", "col")
        col_ids = [] if self._ids is None else self._ids["col"].ranges
        written = []
        for number, rows in enumerate(engine.blocks["row"]):
            cells = engine.cells["row"][number] if exclude_seen else None
            best = None
            for place, cols in enumerate(engine.blocks["col"]):
                best = engine.cluster.submit(
                    number,
                    _top,
                    rows,
                    cols,
                    int(engine.bounds["col"][place]),
                    cells,
                    k,
                    best,
                    key=f"unseen_top-{token}-{number}-{place}",
                )
            written.append(
                engine.cluster.submit(
                    number,
                    _write_lists,
                    best,
                    self._settings.mean,
                    *self._ids_of("row", number),
                    col_ids,
                    names,
                    str(path),
                    number,
                    key=f"unseen_lists-{token}-{number}",
                )
            )
        return sum(engine.cluster.collect(written))

    def _ids_of(self, side: str, number: int) -> tuple[list[Any], Indices, int, int]:
        """Ranges that hold the ids of a block, the first number of each, and the block's limits."""
        start, stop = (int(bound) for bound in self._engine.bounds[side][number : number + 2])
        if self._ids is None:
            return [], np.empty(0, np.int64), start, stop
        found = self._ids[side]
        first, last = found.first[:-1], found.first[1:]
        held = np.flatnonzero((first < stop) & (last > start))
        return [found.ranges[r] for r in held], first[held], start, stop


def _value_type(cluster: Cluster, cells: list[Any], value: str | None, token: str) -> str:
    if value is None:
        return "float32"
    kinds = cluster.collect(
        cluster.client.map(
            _dtype_of, cells, key=[f"unseen_dtype-{token}-{p}" for p in range(len(cells))], pure=False
        )
    )
    return "float32" if set(kinds) - {""} <= {"float32"} else "float64"


def _dtype_of(cells: Any) -> str:
    return "" if cells.values is None or not len(cells.values) else str(cells.values.dtype)


def _block_ids(ranges: list[Array], first: Indices, start: int, stop: int) -> Array:
    return ids_between(ranges, first, start, stop) if ranges else np.arange(start, stop)


def _write_factors(
    block: tuple[FloatArray, Any],
    ranges: list[Array],
    first: Indices,
    start: int,
    stop: int,
    side: str,
    mean: float,
    path: str,
    number: int,
) -> int:
    return write_factors(block[0], _block_ids(ranges, first, start, stop), side, mean, path, number)


def _top(
    rows: tuple[FloatArray, Any],
    cols: tuple[FloatArray, Any],
    first_col: int,
    cells: Any,
    k: int,
    so_far: Lists | None,
) -> Lists:
    return top_of(rows[0], cols[0], first_col, cells, k, so_far)


def _write_lists(
    lists: Lists,
    mean: float,
    ranges: list[Array],
    first: Indices,
    start: int,
    stop: int,
    col_ranges: list[Array],
    names: tuple[str, str],
    path: str,
    number: int,
) -> int:
    row_ids = _block_ids(ranges, first, start, stop)
    col_ids = np.concatenate([ids for ids in col_ranges if len(ids)]) if col_ranges else None
    return write_lists(lists, mean, row_ids, col_ids, names, path, number)
