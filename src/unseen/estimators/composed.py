"""The one ``fit``: every completer that is a composition of terms, loss and solver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from unseen import kernels
from unseen.data import Observations
from unseen.data.feature_frames import read_features
from unseen.data.merging import Merged
from unseen.estimators.averaged import AveragedCompleter
from unseen.estimators.informed import weights_of_features
from unseen.estimators.refreshing import absorb
from unseen.estimators.revived import grown, revived
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.losses import Loss, blank_of, cells_that_count, without
from unseen.offsets import Offsets, fit_offsets
from unseen.parallel import one_blas_thread
from unseen.problem import Problem
from unseen.sensing import Sensing
from unseen.settings import check_settings
from unseen.solvers import Gibbs, Monitor, Solver, choose_solver
from unseen.solvers.posterior import Draws
from unseen.state import State
from unseen.terms import Term
from unseen.totals import TotalPart, total_parts
from unseen.typing import Features
from unseen.validation import (
    check_choice,
    check_count,
    check_fraction,
    check_pair,
    check_positive,
    check_rng,
)

__all__ = ["Bound", "ComposedCompleter", "Composition"]


@dataclass(frozen=True)
class Composition:
    """What an estimator is made of; a solver of None is chosen by the composition.

    ``total`` is what is asked of all scores, ``measurement`` what the loss sees of them instead of cells.
    It unpacks to terms, loss and solver.
    """

    terms: list[Term]
    loss: Loss
    solver: Solver | None
    total: TotalPart | Sequence[TotalPart] | None = None
    measurement: Sensing | None = None

    def __iter__(self) -> Iterator[Any]:
        yield from (self.terms, self.loss, self.solver)


class Bound(NamedTuple):
    """A composition bound to data: what is minimised and by whom, what was subtracted and held out before."""

    problem: Problem
    terms: list[Term]
    solver: Solver
    offsets: Offsets
    held_out: Observations | None


class ComposedCompleter(AveragedCompleter):
    """Completers that minimise one objective of terms, loss and regularisers."""

    centers: ClassVar[tuple[str, ...]] = ("none", "mean", "biases")
    """What ``center`` may be. Under "joint" the biases are terms, and only the mean is subtracted; under
    "informed" features give biases to new rows and columns too."""

    # Defaults for subclasses that do not offer the option.
    max_iter: int = 50
    tol: float = 1e-5
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    center: str = "none"
    bias_reg: float | tuple[float, float] = 5.0
    validation_fraction: float | None = None
    patience: int = 5
    warm_start: bool = False
    solver_: Any

    _sweeps_chosen: bool = False
    """Whether the number of sweeps was chosen, so that an end before the objective settles is meant."""
    _draws: Draws | None = None
    """Where a chain goes on."""

    @abstractmethod
    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        """Parts of the model, from the hyper-parameters."""

    # -- fitting ---------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        row_features: Any = None,
        col_features: Any = None,
    ) -> Self:
        """Learn from the stored cells of ``X``.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations of shape (n_rows, n_cols)
            Target.
        y : None
            Ignored; there for scikit-learn.
        row_features : array, sparse matrix or frame of shape (n_rows, d), optional
            Features of the rows. Arrays are taken in the order of the rows. Where ``X`` has ids, lines of a
            frame are matched by id, which is the column named as in the frame of ``X``, or the index of
            pandas; text and categories become indicators.
        col_features : array, sparse matrix or frame of shape (n_cols, d'), optional
            Features of the columns, likewise.

        Returns
        -------
        self
        """
        check_settings(self)
        cells = self._read_target(X)
        self._refuse_empty(cells)
        features: dict[str, Features | None] = {"row": None, "col": None}
        names: dict[str, list[str] | None] = {"row": None, "col": None}
        for side, given, length in zip(
            ("row", "col"), (row_features, col_features), cells.shape, strict=True
        ):
            if given is not None:
                read = read_features(
                    given,
                    f"{side}_features",
                    entities=cells.row_ids if side == "row" else cells.col_ids,
                    length=length,
                    id_name=cells.id_name(side),
                    dtype=cells.dtype,
                )
                features[side], names[side] = read.matrix, read.names
        with one_blas_thread():
            self._fit_validated(cells, features)
        self._inform(cells, features)
        self._remember(cells, features["row"], features["col"])
        for side, checked in features.items():
            setattr(self, f"n_{side}_features_in_", None if checked is None else checked.shape[1])
        self.row_feature_names_, self.col_feature_names_ = names["row"], names["col"]
        return self

    def _absorb(self, merged: Merged, features: dict[str, Features | None]) -> None:
        absorb(self, merged, features)

    def _inform(self, cells: Observations, features: dict[str, Features | None]) -> None:
        """Under "informed", what features say about the biases of new rows and columns."""
        self.informed_ = {}
        for side, biases in (("row", self.offsets_.row), ("col", self.offsets_.col)):
            own = features[side]
            if self.center == "informed" and own is not None and biases is not None:
                counts = cells.degrees(side).astype(np.float64)
                self.informed_[side] = weights_of_features(biases.astype(np.float64), counts, own)

    def _refuse_empty(self, cells: Observations) -> None:
        if cells.nnz == 0 or not (cells.weights is None or cells.weights.any()):
            raise InvalidDataError(
                f"X ({cells.shape[0]} x {cells.shape[1]}) has no observed cell, so there is nothing to learn "
                "from; at least one stored value that is not NaN is needed"
            )

    def _bind(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> Bound:
        """The problem that a fit solves, with everything set that the parameters leave to the data."""
        center = check_choice("center", self.center, self.centers)
        bias_reg = check_pair("bias_reg", self.bias_reg)
        composition = self._compose(features["row"] is not None, features["col"] is not None)
        terms = [clone(term) for term in composition.terms]
        loss = clone(composition.loss).fitted(cells.values, cells.weights)
        reason = None if center == "none" else loss.why_not_centred()
        if reason is not None:
            raise ParameterError(f"center={center!r}: {reason}")
        training, held_out = self._hold_out(cells, loss, rng)
        subtracted = {"joint": "mean", "informed": "biases"}.get(center, center)
        offsets = fit_offsets(training, subtracted, bias_reg, n_threads=self._n_threads())
        residual = _subtract(training, offsets)
        problem = Problem(
            residual,
            terms,
            loss,
            row_features=features["row"],
            col_features=features["col"],
            total=[clone(part) for part in total_parts(composition.total)],
            measurement=None if composition.measurement is None else clone(composition.measurement),
            n_threads=self._n_threads(),
            provider=self._provider(),
        )
        solver = choose_solver(problem) if composition.solver is None else clone(composition.solver)
        if not solver.averages:
            solver.set_params(
                max_iter=check_count("max_iter", self.max_iter),
                tol=check_positive("tol", self.tol, strict=False),
            )
        elif held_out is not None:
            raise ParameterError(
                f"validation_fraction={self.validation_fraction!r}: {type(solver).__name__} averages over "
                "all its sweeps, and none of them is the best; leave it None"
            )
        self._tune(problem, solver, rng)
        return Bound(problem, terms, solver, offsets, held_out)

    def _fit_validated(self, cells: Observations, features: dict[str, Features | None]) -> None:
        rng = check_rng(self.random_state)
        if not self._counts_blanks(self._compose(*(given is not None for given in features.values())).loss):
            cells = cells_that_count(cells)  # no other says anything: not which are held out, nor a start
        self._choose(cells, features, rng)
        problem, terms, solver, offsets, held_out = self._bind(cells, features, rng)
        if self._draws is not None and isinstance(solver, Gibbs):
            solver.resume(self._draws)
        monitor = Monitor(
            solver.max_iter,
            solver.tol,
            verbose=self.verbose,
            label=type(self).__name__,
            validate=None if held_out is None else _validator(problem, offsets, held_out),
            patience=check_count("patience", self.patience),
            warn=not self._sweeps_chosen,
        )
        state = solver.solve(problem, self._start(problem, solver, rng), rng, monitor)
        self.terms_, self.loss_, self.offsets_, self.solver_ = terms, problem.loss, offsets, solver
        if hasattr(self, "device"):
            self.device_ = problem.provider.label
        if isinstance(solver, Gibbs):
            self._keep_mean(solver)
            self._keep_levels(problem.observations)
            self.state_ = {key: value for key, value in state.items() if "_map." in key}
        else:
            self._keep(problem, state)
        self.history_, self.n_iter_ = monitor.history, len(monitor.history)
        self.converged_ = monitor.converged or self._sweeps_chosen
        self.certificate_ = solver.certificate(problem, state, rng)
        if self.certificate_ is not None:
            self.history_[-1]["gap"] = self.certificate_.gap

    def _choose(
        self, cells: Observations, features: dict[str, Features | None], rng: np.random.Generator
    ) -> None:
        """Choose on held-out cells what the parameters leave to them, before anything is bound."""

    def _counts_blanks(self, loss: Loss) -> bool:
        """Whether blank cells count in a fit, to which cells of weight zero do not belong."""
        return bool(blank_of(loss))

    def _tune(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> None:
        """Set what the parameters leave to the data, on the copies that belong to this fit."""

    def _hold_out(
        self, cells: Observations, loss: Loss, rng: np.random.Generator
    ) -> tuple[Observations, Observations | None]:
        """Training cells and held-out ones, which say nothing in training: not even that they are blank."""
        if self.validation_fraction is None:
            return cells, None
        share = check_fraction("validation_fraction", self.validation_fraction)
        count = round(share * cells.nnz)
        if count == 0 or count == cells.nnz:
            raise InvalidDataError(
                f"validation_fraction={share} of {cells.nnz} cells leaves none for "
                f"{'validation' if count == 0 else 'training'}"
            )
        mask = np.zeros(cells.nnz, dtype=bool)
        mask[rng.permutation(cells.nnz)[:count]] = True
        return without(cells, mask, self._counts_blanks(loss)), cells.select(mask)

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        warm = self.warm_start and not solver.averages and hasattr(self, "row_factors_")
        previous = self._full_state(problem) if warm else {}
        if warm and grown(problem, previous):
            return previous
        state = problem.start(rng, factored_full=solver.factored_full)
        if not warm:
            return state
        if solver.factored_full:  # the width of factored cores is free
            return {**state, **previous}
        same = all(key in state and state[key].shape == value.shape for key, value in previous.items())
        return revived(problem, previous, state) if same else state

    def _keep(self, problem: Problem, state: State) -> None:
        """Store factors; of the state, only what embeds new rows and columns."""
        pair = problem.stacked(state)
        dtype = pair.left.dtype
        n, m = problem.observations.shape
        offsets = self.offsets_
        rows = np.hstack([pair.left, offsets.row_coordinates(n, offsets.row)]) if offsets.width else pair.left
        cols = (
            np.hstack([pair.right, offsets.col_coordinates(m, offsets.col)]) if offsets.width else pair.right
        )
        self.row_factors_ = np.ascontiguousarray(rows, dtype=dtype)
        self.col_factors_ = np.ascontiguousarray(cols, dtype=dtype)
        self.widths_ = [int(problem.pair(term, state).left.shape[1]) for term in problem.terms]
        self.state_ = {key: value for key, value in state.items() if not _in_factors(problem, key)}

    def _full_state(self, problem: Problem) -> State:
        """The state of the last fit, factors of identity sides read from the stacked factors."""
        if len(problem.terms) != len(self.widths_):
            raise InvalidDataError(f"{len(problem.terms)} terms cannot go on from {len(self.widths_)}")
        state = dict(self.state_)
        start = 0
        for term, width in zip(problem.terms, self.widths_, strict=True):
            part = slice(start, start + width)
            for side, factors in (("row", self.row_factors_), ("col", self.col_factors_)):
                key = term.key(side)
                if _in_factors(problem, key) and term.key("core") not in state:
                    state[key] = np.ascontiguousarray(factors[:, part])
            start += width
        return state


def _in_factors(problem: Problem, key: str) -> bool:
    """Whether an array can be read off the stacked factors: those of sides without features."""
    index, name = key.split(".", 1)
    term = problem.terms[int(index)]
    return (name == "row" and not term.row_map.inductive) or (name == "col" and not term.col_map.inductive)


def _subtract(cells: Observations, offsets: Offsets) -> Observations:
    return cells if offsets.width == 0 else cells.with_values(offsets.removed(cells))


def _validator(problem: Problem, offsets: Offsets, held_out: Observations) -> Callable[[State], float]:
    """Deviance of the loss on held-out cells as a function of the state."""
    target = _subtract(held_out, offsets)

    def error(state: State) -> float:
        pair = problem.stacked(state)
        scores = kernels.sddmm(target.indptr, target.indices, *pair, n_threads=problem.n_threads)
        return problem.loss.deviance(scores, target.values, target.weights)

    return error
