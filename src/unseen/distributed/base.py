"""What fits on a cluster and from disk share."""

from __future__ import annotations

import hashlib
import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unseen.distributed.blocks import Indices
from unseen.distributed.checkpoints import Checkpoints
from unseen.distributed.driver import Engine, centred, run, totals
from unseen.distributed.feature_driver import FeatureEngine, run_with_features
from unseen.distributed.features import open_features
from unseen.distributed.recipes import Recipe
from unseen.distributed.sources import check_columns
from unseen.distributed.steps import Settings
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.solvers import Monitor
from unseen.state import State
from unseen.validation import check_count, check_rng

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
        self, source: Any, recipe: Recipe, names: tuple[str, str, str | None], shape: tuple[int, int] | None
    ) -> tuple[Engine, dict[str, Indices], str]:
        """Blocks of the target, where they begin and the type of the factors."""

    @abstractmethod
    def _load_features(self, engine: Any, recipe: Recipe, dtype: str) -> tuple[FeatureEngine, State]:
        """Designs of the sides with features beside the blocks, and the parameters of their maps."""

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
        shape : (int, int), optional
            Number of rows and columns if the ids already are indices from 0, which saves numbering them.
        row_features, col_features : str, path, data frame, list of data frames or array, optional
            Side features for ``IMC`` and ``BiasIMC``: a table like ``X`` with one column of ids, one line for
            each id, and numbers in all other columns. Ids that ``X`` does not have are left out. With
            ``shape`` also an array with one line for each index.
        id_column : str, optional
            Column of ids in tables of features; by default named as in ``X``, else the first.

        Returns
        -------
        self
        """
        check_columns((row, col, value))
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
        engine, bounds, dtype = self._make_engine(X, recipe, (row, col, value), shape)
        try:
            counted = totals(engine.sums(recipe.first_settings(dtype, self._threads())))
            if not counted.n_cells:
                raise InvalidDataError("X has no cell, so there is nothing to learn from")
            if counted.n_merged:
                verb = "summed" if recipe.merge(value) == "sum" else "averaged"
                warnings.warn(
                    f"{counted.n_merged} of {counted.n_cells + counted.n_merged} cells repeat another one; "
                    f"duplicates were {verb}.",
                    DataWarning,
                    stacklevel=2,
                )
            settings = recipe.settings(counted, engine.shape, dtype, self._threads())
            settings, counted = centred(engine, settings, recipe.center)
            solver = recipe.model.solver_
            monitor = Monitor(
                solver.max_iter, solver.tol, verbose=self.verbose, label=type(recipe.model).__name__
            )
            size, rng = recipe.start_size(counted), check_rng(recipe.model.random_state)
            if recipe.by_coefficients:
                with_features, params = self._load_features(engine, recipe, dtype)
                checkpoints = self._checkpoints(settings, bounds, counted.n_cells, recipe.model, params)
                found = run_with_features(with_features, settings, size, rng, monitor, checkpoints)
                recipe.state = params | {f"0.{side}": array for side, array in found.items()}
            else:
                checkpoints = self._checkpoints(settings, bounds, counted.n_cells, recipe.model)
                run(engine, settings, size, rng, monitor, checkpoints)
        except BaseException:
            engine.close()  # nobody could do it later
            raise
        self._engine, self._recipe, self._settings = engine, recipe, settings
        self._names = (row, col)
        self.history_, self.n_iter_ = monitor.history, len(monitor.history)
        self.converged_ = monitor.converged
        self.shape_, self.n_cells_ = engine.shape, counted.n_cells
        self.n_blocks_ = tuple(len(bounds[side]) - 1 for side in ("row", "col"))
        return self

    def _checkpoints(
        self,
        settings: Settings,
        bounds: dict[str, Indices],
        n_cells: int,
        model: Any,
        params: State | None = None,
    ) -> Checkpoints | None:
        if self.checkpoint is None:
            return None
        every = check_count("checkpoint_every", self.checkpoint_every)
        digest = hashlib.sha256(np.concatenate([bounds["row"], bounds["col"]]).tobytes()).hexdigest()
        seed = model.random_state
        fingerprint = {
            "shape": [int(bounds["row"][-1]), int(bounds["col"][-1])],
            "cells": n_cells,
            "blocks": digest[:16],
            "rank": settings.rank,
            "dtype": settings.dtype,
            "reg": settings.ridge,
            "loss": f"{type(settings.loss).__name__} {sorted(settings.loss.get_params().items())!r}",
            "mean": settings.mean,
            "random_state": int(seed) if isinstance(seed, (int, np.integer)) else None,
        }
        if params is not None:
            content = b"".join(key.encode() + params[key].tobytes() for key in sorted(params))
            fingerprint["features"] = hashlib.sha256(content).hexdigest()[:16]
        return Checkpoints(str(self.checkpoint), every, bool(self.resume), fingerprint)

    @abstractmethod
    def to_local(self) -> Any:
        """The fitted estimator in the memory of this process.

        Returns
        -------
        estimator
            As if ``estimator`` had been fitted in memory; it can be saved, asked and served.
        """

    def _check_fitted(self) -> None:
        check_is_fitted(self, "history_")

    def _facts(self) -> dict[str, Any]:
        return {"history_": self.history_, "n_iter_": self.n_iter_, "converged_": self.converged_}

    def close(self) -> None:
        """Let go of blocks and factors, on workers and on disk; what was written stays."""
        self._release()

    def _release(self) -> None:
        engine = self.__dict__.pop("_engine", None)
        if engine is not None:
            engine.close()
