"""What fits on a cluster and from disk share."""

from __future__ import annotations

import hashlib
import warnings
from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unseen.data import Origin, Vocabulary
from unseen.data.ids import SeenCells
from unseen.distributed.checkpoints import Checkpoints
from unseen.distributed.driver import run
from unseen.distributed.engine import CELLS, FACTORS, IDS, SIDES, Engine, Held, WholeBlock
from unseen.distributed.features import FeatureSource, make_designs, open_features
from unseen.distributed.preparation import Totals, count, fit_biases, prepare
from unseen.distributed.recipes import Recipe
from unseen.distributed.results import (
    list_block,
    prepare_folder,
    stored_columns,
    write_factors,
    write_lists,
)
from unseen.distributed.sources import Columns, check_columns
from unseen.distributed.steps import Settings
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.offsets import Offsets
from unseen.solvers import Monitor
from unseen.validation import check_choice, check_count, check_list_length, check_rng

__all__ = ["BlockCompleter"]


class BlockCompleter(BaseEstimator):  # type: ignore[misc]
    """Fits an estimator block by block; see the subclasses."""

    # Defaults for subclasses that do not offer the option.
    estimator: Any = None
    n_blocks: int | None = None
    dtype: str | None = None
    checkpoint: str | None = None
    checkpoint_every: int = 1
    resume: bool = False
    verbose: int = 0

    history_: list[dict[str, Any]]
    _engine: Any

    @abstractmethod
    def _make_engine(
        self, source: Any, recipe: Recipe, columns: Columns, shape: tuple[int, int] | None
    ) -> tuple[Any, str]:
        """Blocks of the target with somebody who works on them, and the type of the factors."""

    @abstractmethod
    def _load_features(self, engine: Any, source: FeatureSource, dtype: str) -> None:
        """Let the blocks of one side hold their features."""

    @abstractmethod
    def _threads(self) -> int:
        """Threads for one block."""

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        row: str = "row",
        col: str = "col",
        value: str | None = "value",
        weight: str | None = None,
        shape: tuple[int, int] | None = None,
        row_features: Any = None,
        col_features: Any = None,
        id_column: str | None = None,
    ) -> Self:
        """Learn from cells that are read in partitions.

        Parameters
        ----------
        X : str, path, data frame or list of data frames
            Parquet file or folder (any address that fsspec knows), or frames with one cell in each
            line. On a cluster also a dask DataFrame.
        y : None
            Ignored.
        row, col : str
            Columns with the ids of rows and columns, integers or text.
        value : str or None
            Column with values; None counts every line as one.
        weight : str, optional
            Column with weights, zero or larger: how much each cell counts in the loss. Repeated cells add
            their weights and average their values by them. All cells count alike by default.
        shape : (int, int), optional
            Number of rows and columns if the ids already are indices from 0, which saves numbering them.
        row_features, col_features : str, path, data frame, list of data frames or array, optional
            Side features for ``IMC`` and ``BiasIMC``: a table like ``X`` with one column of ids, one line for
            each id, and numbers in all other columns. Ids that ``X`` does not have are left out. With
            ``shape`` also an array or a sparse matrix with one line for each index.
        id_column : str, optional
            Column of ids in tables of features; by default named as in ``X``, else the first.

        Returns
        -------
        self
        """
        check_columns((row, col, value, weight))
        if shape is not None:
            shape = (check_count("shape[0]", shape[0]), check_count("shape[1]", shape[1]))
        features = {
            side: open_features(side, given, like, id_column, shape)
            for side, given, like in (("row", row_features, row), ("col", col_features, col))
            if given is not None
        }
        recipe = Recipe(self.estimator, features)
        if self.resume and self.checkpoint is None:
            raise ParameterError("resume=True needs checkpoint=, the folder to go on from")
        self._release()
        engine, dtype = self._make_engine(X, recipe, recipe.columns(row, col, value, weight), shape)
        try:
            counted = self._count(engine, dtype, recipe.merge(value))
            settings = recipe.settings(counted, engine.shape, dtype, self._threads())
            mean = 0.0 if recipe.center == "none" else counted.mean
            if recipe.center == "biases":
                fit_biases(engine, mean, recipe.bias_reg, dtype)
            biased = recipe.center == "biases"
            size = prepare(engine, mean, biased, recipe.blank_weights, settings)
            for side, source in features.items():
                self._load_features(engine, source, dtype)
                params = make_designs(engine, side, recipe.maps[side], self._threads())
                recipe.state |= {f"0.{side}_map.{name}": found for name, found in params.items()}
            solver = recipe.model.solver_
            monitor = Monitor(
                solver.max_iter, solver.tol, verbose=self.verbose, label=type(recipe.model).__name__
            )
            coefficients = run(
                engine,
                recipe.widths(),
                settings,
                recipe.start_size(size, counted),
                check_rng(recipe.model.random_state),
                monitor,
                self._checkpoints(engine, recipe, settings, counted, mean, weight is not None),
            )
        except BaseException:
            engine.close()  # nobody could do it later
            raise
        recipe.state |= {f"0.{side}": array for side, array in coefficients.items()}
        self._engine, self._recipe, self._mean, self._names = engine, recipe, mean, (row, col)
        self._settings = settings
        self.history_, self.n_iter_ = monitor.history, len(monitor.history)
        self.converged_ = monitor.converged
        self.shape_, self.n_cells_ = engine.shape, counted.n_cells
        self.n_blocks_ = tuple(len(engine.bounds[side]) - 1 for side in SIDES)
        return self

    def _count(self, engine: Engine, dtype: str, merge: str) -> Totals:
        counted = count(engine, dtype)
        if not counted.n_cells:
            raise InvalidDataError("X has no cell, so there is nothing to learn from")
        if counted.n_merged:
            verb = "summed" if merge == "sum" else "averaged"
            warnings.warn(
                f"{counted.n_merged} of {counted.n_cells + counted.n_merged} cells repeat another one; "
                f"duplicates were {verb}.",
                DataWarning,
                stacklevel=3,
            )
        return counted

    def _checkpoints(
        self,
        engine: Engine,
        recipe: Recipe,
        settings: Settings,
        counted: Totals,
        mean: float,
        weighted: bool,
    ) -> Checkpoints | None:
        """Where checkpoints go, with all that must be the same for one to be of use."""
        if self.checkpoint is None:
            return None
        every = check_count("checkpoint_every", self.checkpoint_every)
        seed = recipe.model.random_state
        fingerprint = {
            "shape": list(engine.shape),
            "cells": counted.n_cells,
            "blocks": _digest(engine.bounds["row"], engine.bounds["col"]),
            "rank": settings.rank,
            "dtype": settings.dtype,
            "reg": settings.ridge,
            "loss": f"{type(settings.loss).__name__} {sorted(settings.loss.get_params().items())!r}",
            "mean": mean,
            "random_state": int(seed) if isinstance(seed, (int, np.integer)) else None,
        }
        if recipe.features or not settings.by_rows:
            content = [part for key in sorted(recipe.state) for part in (key.encode(), recipe.state[key])]
            fingerprint["features"] = _digest(*content)
        # Only where they are used, so that checkpoints of fits without them stay of use.
        if weighted:
            fingerprint["weights"] = counted.weight
        if recipe.center == "biases":
            fingerprint["biases"] = list(recipe.bias_reg)
        if settings.degree_power:
            fingerprint["degree_scaling"] = settings.degree_power
        if any(given is not None for given in recipe.blank_weights):
            fingerprint["background"] = _digest(
                *(given for given in recipe.blank_weights if given is not None)
            )
        return Checkpoints(str(self.checkpoint), every, bool(self.resume), fingerprint)

    # -- results ---------------------------------------------------------------------

    def to_local(self, *, seen: bool = False) -> Any:
        """The fitted estimator in the memory of this process.

        Parameters
        ----------
        seen : bool, default=False
            Also bring along which cells it was fitted to, which ``recommend`` leaves out by default. They
            must fit into memory.

        Returns
        -------
        estimator
            As if ``estimator`` had been fitted in memory; it can be saved, asked and served.
        """
        check_is_fitted(self, "history_")
        engine, recipe = self._engine, self._recipe
        factors = {side: np.array(engine.table(side)) for side in SIDES}
        offsets = Offsets(self._mean)
        if self._biased:
            row, col = (np.array(engine.table(side, "bias"))[:, 0] for side in SIDES)
            offsets = Offsets(self._mean, row, col, *recipe.bias_reg)
        facts = {"history_": self.history_, "n_iter_": self.n_iter_, "converged_": self.converged_}
        model = copy(recipe.fitted(factors, offsets, self._vocabularies(), facts))
        model.origin_ = Origin(*self._names)
        model.seen_ = None
        if seen:
            parts = engine.each("row", stored_columns, CELLS)
            counts = np.concatenate([part[0] for part in parts])
            model.seen_ = SeenCells(
                np.concatenate([[0], np.cumsum(counts)]),
                np.concatenate([part[1] for part in parts]),
                engine.shape[1],
            )
        return model

    @abstractmethod
    def _vocabularies(self) -> tuple[Vocabulary | None, Vocabulary | None]:
        """Ids of rows and columns; None where ids are indices."""

    @property
    def _biased(self) -> bool:
        return bool(self._recipe.center == "biases")

    def write_factors(self, path: str, side: str = "row") -> int:
        """Write the factors of one side as Parquet files, one for each block, by whoever holds it.

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
        check_is_fitted(self, "history_")
        check_choice("side", side, SIDES)
        prepare_folder(str(path))
        bias = Held("bias") if self._biased else None
        numbers = list(range(len(self._engine.bounds[side]) - 1))
        args = (FACTORS, bias, IDS, side, self._mean, str(path), numbers)
        return sum(self._engine.each(side, write_factors, *args))

    def recommend_all(self, path: str, k: int = 10, *, exclude_seen: bool = True) -> int:
        """Write the best columns of every row as Parquet files, one for each block of rows.

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
        check_is_fitted(self, "history_")
        engine = self._engine
        k = check_list_length(k, int(engine.bounds["col"][-1]))
        prepare_folder(str(path))
        names = self._names if not {"rank", "score"} & set(self._names) else ("row", "col")
        seen, best = CELLS if exclude_seen else None, None
        for number, first in enumerate(engine.bounds["col"][:-1].tolist()):
            biases = (Held("bias"), WholeBlock("col", number, "bias")) if self._biased else (None, None)
            sides = (FACTORS, biases[0], WholeBlock("col", number), biases[1])
            limits = (first, k, self._mean, self._threads())
            engine.each("row", list_block, *sides, seen, best, *limits, keep="lists", wait=False)
            best = Held("lists")
        numbers = list(range(len(engine.bounds["row"]) - 1))
        ids = (IDS, engine.all_ids("col"))
        lines: int = sum(engine.each("row", write_lists, best, *ids, names, str(path), numbers))
        engine.drop("row", "lists")
        return lines

    def close(self) -> None:
        """Let go of blocks and factors, on workers and on disk; what was written stays."""
        self._release()

    def _release(self) -> None:
        engine = self.__dict__.pop("_engine", None)
        if engine is not None:
            engine.close()


def _digest(*parts: Any) -> str:
    content = b"".join(part if isinstance(part, bytes) else part.tobytes() for part in parts)
    return hashlib.sha256(content).hexdigest()[:16]
