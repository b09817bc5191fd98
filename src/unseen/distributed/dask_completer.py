"""Fits on a Dask cluster."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from unseen.data import Vocabulary
from unseen.distributed import dask_plan as plan
from unseen.distributed.base import BlockCompleter
from unseen.distributed.cluster import Cluster, check_room, connect
from unseen.distributed.dask_engine import DaskEngine, IdRanges
from unseen.distributed.engine import SIDES
from unseen.distributed.features import FeatureSource
from unseen.distributed.recipes import Recipe
from unseen.distributed.sizing import BASE, MemoryNeed, cluster_memory
from unseen.distributed.sources import Columns, find_partitions
from unseen.exceptions import InvalidDataError
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
    ...     fit = DaskCompleter(MatrixFactorization(3, reg=1.0, random_state=0), client=client, n_blocks=2)
    ...     model = fit.fit(frame, row="user", col="item", value="stars").to_local()
    >>> model.predict_entries([0], [0]).shape
    (1,)
    """

    memory_need_: MemoryNeed
    _engine: DaskEngine

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
        self, source: Any, recipe: Recipe, columns: Columns, shape: tuple[int, int] | None
    ) -> tuple[DaskEngine, str]:
        cluster = Cluster(connect(self.client), check_positive("patience", self.patience))
        cluster.check_workers()
        check_room(BASE, cluster.memory_limits())
        token = secrets.token_hex(6)
        cluster.settle(check_count("n_blocks", self.n_blocks) if self.n_blocks else MAX_BLOCKS)
        partitions = self._partitions(cluster, source, columns.names)
        cells = plan.load_partitions(cluster, partitions, columns, shape, token)
        ids: dict[str, IdRanges] | None = None
        if shape is None:
            n_ranges = check_count("n_blocks", self.n_blocks) if self.n_blocks else MIN_BLOCKS
            cells, ids = plan.number_ids(cluster, cells, n_ranges, token)
            shape = (ids["row"].length, ids["col"].length)
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
            weighted=columns.weight is not None,
        )
        check_room(self.memory_need_.peak, cluster.memory_limits())
        blocks = plan.make_blocks(cluster, cells, bounds, recipe.merge(columns.value), dtype, token)
        return DaskEngine(cluster, token, blocks, bounds, ids), dtype

    def _load_features(self, engine: DaskEngine, source: FeatureSource, dtype: str) -> None:
        plan.load_features(engine, source, dtype, secrets.token_hex(6))

    def _vocabularies(self) -> tuple[Vocabulary | None, Vocabulary | None]:
        engine = self._engine
        if engine.ids is None:
            return None, None
        row, col = (engine.cluster.collect(engine.ids[side].ranges) for side in SIDES)
        return tuple(Vocabulary(np.concatenate([part for part in ids if len(part)])) for ids in (row, col))  # type: ignore[return-value]

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
