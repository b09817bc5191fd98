"""The one ``fit``: every completer that is a composition of terms, loss and solver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from unseen import kernels
from unseen.cores import Full
from unseen.data import Observations
from unseen.estimators.base import Completer
from unseen.exceptions import InvalidDataError, NotInductiveError
from unseen.linalg.blocked import matmul
from unseen.linalg.designs import Design
from unseen.losses import Loss, Quadratic
from unseen.offsets import Offsets, fit_offsets, row_biases
from unseen.parallel import one_blas_thread
from unseen.problem import Problem, core_pair
from unseen.solvers import Monitor, ProxGradient, Solver, choose_solver
from unseen.solvers.als import solve_side
from unseen.state import State, map_params
from unseen.terms import Term
from unseen.typing import BoolArray, Features, FloatArray
from unseen.validation import (
    check_choice,
    check_count,
    check_features,
    check_fraction,
    check_positive,
    check_rng,
)

__all__ = ["ComposedCompleter", "Composition"]


class Composition(NamedTuple):
    """What an estimator is made of; a solver of None is chosen by the composition."""

    terms: list[Term]
    loss: Loss
    solver: Solver | None


class ComposedCompleter(Completer):
    """Completers that minimise one objective of terms, loss and regularisers."""

    terms_: list[Term]
    loss_: Loss
    state_: State
    offsets_: Offsets

    # Defaults for subclasses that do not offer the option.
    max_iter: int = 50
    tol: float = 1e-5
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    center: str = "none"
    bias_reg: float = 5.0
    validation_fraction: float | None = None
    patience: int = 5
    warm_start: bool = False

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
        row_features : array or sparse matrix of shape (n_rows, d), optional
            Features of the rows.
        col_features : array or sparse matrix of shape (n_cols, d'), optional
            Features of the columns.

        Returns
        -------
        self
        """
        cells = self._read_target(X)
        self._refuse_empty(cells)
        features: dict[str, Features | None] = {"row": None, "col": None}
        for side, given, length in zip(
            ("row", "col"), (row_features, col_features), cells.shape, strict=True
        ):
            if given is not None:
                features[side] = check_features(given, length, f"{side}_features", dtype=cells.dtype)
        with one_blas_thread():
            self._fit_validated(cells, features)
        self.row_ids_, self.col_ids_ = cells.row_ids, cells.col_ids
        self.n_features_in_ = cells.shape[1]
        for side, checked in features.items():
            setattr(self, f"n_{side}_features_in_", None if checked is None else checked.shape[1])
        return self

    def _refuse_empty(self, cells: Observations) -> None:
        if cells.nnz == 0:
            raise InvalidDataError(
                f"X ({cells.shape[0]} x {cells.shape[1]}) has no observed cell, so there is nothing to learn "
                "from; at least one stored value that is not NaN is needed"
            )

    def _fit_validated(self, cells: Observations, features: dict[str, Features | None]) -> None:
        rng = check_rng(self.random_state)
        center = check_choice("center", self.center, ("none", "mean", "biases"))
        bias_reg = check_positive("bias_reg", self.bias_reg, strict=False)
        training, held_out = self._hold_out(cells, rng)
        offsets = fit_offsets(training, center, (bias_reg, bias_reg))
        residual = _subtract(training, offsets)
        composition = self._compose(features["row"] is not None, features["col"] is not None)
        terms = [clone(term) for term in composition.terms]
        loss = clone(composition.loss)
        problem = Problem(
            residual,
            terms,
            loss,
            row_features=features["row"],
            col_features=features["col"],
            n_threads=self._n_threads(),
        )
        solver = choose_solver(problem) if composition.solver is None else clone(composition.solver)
        solver.set_params(
            max_iter=check_count("max_iter", self.max_iter),
            tol=check_positive("tol", self.tol, strict=False),
        )
        state = self._start(problem, solver, rng)
        monitor = Monitor(
            solver.max_iter,
            solver.tol,
            verbose=self.verbose,
            label=type(self).__name__,
            validate=None if held_out is None else _validator(problem, offsets, held_out),
            patience=check_count("patience", self.patience),
        )
        state = solver.solve(problem, state, rng, monitor)
        self.terms_, self.loss_, self.offsets_, self.solver_ = terms, loss, offsets, solver
        self._keep(problem, state)
        self.history_, self.n_iter_ = monitor.history, len(monitor.history)
        self.converged_ = monitor.converged

    def _hold_out(
        self, cells: Observations, rng: np.random.Generator
    ) -> tuple[Observations, Observations | None]:
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
        return cells.select(~mask), cells.select(mask)

    def _start(self, problem: Problem, solver: Solver, rng: np.random.Generator) -> State:
        state = problem.start(rng, factored_full=solver.factored_full)
        if not (self.warm_start and hasattr(self, "row_factors_")):
            return state
        previous = self._full_state(problem)
        if solver.factored_full:  # the width of factored cores is free
            return {**state, **previous}
        same = all(key in state and state[key].shape == value.shape for key, value in previous.items())
        return _revived(problem, previous, state) if same else state

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

    # -- new rows and columns --------------------------------------------------------

    def _embed_rows(self, features: Features) -> FloatArray:
        return self._embed("row", features)

    def _embed_cols(self, features: Features) -> FloatArray:
        return self._embed("col", features)

    def _embed(self, side: str, features: Features) -> FloatArray:
        parts = self._term_embeddings(side, features)
        count = features.shape[0]
        offsets = self.offsets_
        extra = (
            offsets.row_coordinates(count, None) if side == "row" else offsets.col_coordinates(count, None)
        )
        return np.ascontiguousarray(np.hstack([*parts, extra]), dtype=self.row_factors_.dtype)

    def _term_embeddings(self, side: str, features: Features) -> list[FloatArray]:
        """Each term's coordinates of new entities; zero where a term cannot speak about them."""
        parts = []
        spoken = False
        for index, (term, width) in enumerate(zip(self.terms_, self.widths_, strict=True)):
            row_map, col_map, _, _ = term.parts()
            a_map = row_map if side == "row" else col_map
            if not a_map.inductive:
                parts.append(np.zeros((features.shape[0], width), dtype=self.row_factors_.dtype))
                continue
            spoken = True
            params = map_params(self.state_, index, side)
            design = a_map.apply(features, features.shape[0], params, self._n_threads())
            parts.append(self._term_coordinates(index, side, design))
        if not spoken:
            raise NotInductiveError(self._why_not_inductive(side))
        return parts

    def _term_coordinates(self, index: int, side: str, design: Design) -> FloatArray:
        core = self.state_.get(f"{index}.core")
        if core is None:
            return design.dot(self.state_[f"{index}.{side}"])
        other = _Width(core.shape[1 if side == "row" else 0])
        pair = core_pair(design, other, core) if side == "row" else core_pair(other, design, core)
        return pair.left if side == "row" else pair.right

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        """Solve for the free coordinates of each new row; the rest comes from its features."""
        if not isinstance(self.loss_, Quadratic):
            raise NotInductiveError("fold_in needs a quadratic loss")
        if any(
            isinstance(term.parts()[2], Full) and f"{t}.core" in self.state_
            for t, term in enumerate(self.terms_)
        ):
            raise NotInductiveError(
                "fold_in needs factored terms; a Full core speaks about new rows through their features: "
                "use predict_new(row_features=...)"
            )
        offsets = self.offsets_
        biases = row_biases(cells, offsets)
        values = cells.values - np.asarray(
            Offsets(offsets.mean, biases, offsets.col).at(cells.rows, cells.indices)
        )
        residual = cells.with_values(values.astype(self.row_factors_.dtype, copy=False))
        factors = self._solve_rows(residual, row_features)
        extra = offsets.row_coordinates(cells.shape[0], biases)
        return np.ascontiguousarray(np.hstack([factors, extra]), dtype=self.row_factors_.dtype)

    def _solve_rows(self, cells: Observations, row_features: Features | None) -> FloatArray:
        loss = self.loss_
        assert isinstance(loss, Quadratic)
        total = sum(self.widths_)
        free, known = self._free_coordinates(), np.zeros((cells.shape[0], total), self.row_factors_.dtype)
        if row_features is not None:
            known = np.hstack(self._term_embeddings("row", row_features))
            known[:, free] = 0
        right = np.ascontiguousarray(self.col_factors_[:, :total])
        other = np.ascontiguousarray(right[:, free])
        curvature, linear = loss.normal_terms(cells.values)
        weight, target = loss.blank()
        offset = None
        if known.any():
            scores = kernels.sddmm(cells.indptr, cells.indices, known, right, n_threads=self._n_threads())
            linear = (linear - curvature * scores).astype(scores.dtype, copy=False)
            if weight:
                offset = -weight * matmul(known, right.T @ other)
        rules = [term.parts()[3].factored() for term in self.terms_]
        rule = rules[int(np.argmax([bool(part.any()) for part in self._per_term(free)]))]
        out = np.zeros((cells.shape[0], other.shape[1]), dtype=other.dtype)
        if rule.smooth:
            solve_side(
                cells.indptr,
                cells.indices,
                curvature,
                linear,
                other,
                out,
                ridge=rule.ridge,
                blank=(weight, target),
                extra_offset=offset,
                n_threads=self._n_threads(),
            )
        else:
            out = self._solve_rows_by_prox(cells, other)
        known[:, free] = out
        return known

    def _solve_rows_by_prox(self, cells: Observations, other: FloatArray) -> FloatArray:
        """Rows under bounds or an L1 penalty, columns held fixed."""
        problem = Problem(cells, self.terms_, self.loss_, n_threads=self._n_threads())
        state = {"0.row": np.zeros((cells.shape[0], other.shape[1]), dtype=other.dtype), "0.col": other}
        solver = ProxGradient()
        state = problem.feasible(state)
        step, value = 1.0, problem.value(state)
        for _ in range(500):
            state, step = solver.step(problem, state, "0.row", step)
            last, value = value, problem.value(state)
            if last - value <= 1e-9 * abs(last):
                break
        return state["0.row"]

    def _free_coordinates(self) -> BoolArray:
        """Coordinates that a new row's cells decide: those without features, or all if there are none."""
        free = np.zeros(sum(self.widths_), dtype=bool)
        start = 0
        for term, width in zip(self.terms_, self.widths_, strict=True):
            if not term.parts()[0].inductive:
                free[start : start + width] = True
            start += width
        return free if free.any() else ~free

    def _per_term(self, flags: BoolArray) -> list[BoolArray]:
        return np.split(flags, np.cumsum(self.widths_)[:-1])


class _Width(Design):
    """Stands for the other side where only its width matters."""

    def __init__(self, width: int) -> None:
        self.shape = (0, width)

    def dot(self, coefficients: FloatArray) -> FloatArray:
        return coefficients

    def tdot(self, values: FloatArray) -> FloatArray:
        return values

    def toarray(self) -> FloatArray:
        return np.zeros(self.shape)


def _in_factors(problem: Problem, key: str) -> bool:
    """Whether an array can be read off the stacked factors: those of sides without features."""
    index, name = key.split(".", 1)
    term = problem.terms[int(index)]
    return (name == "row" and not term.row_map.inductive) or (name == "col" and not term.col_map.inductive)


def _revived(problem: Problem, previous: State, fresh: State) -> State:
    """The previous state, with components that had shrunk to nothing replaced by fresh ones.

    Zero factors are a stationary point: a fit with less penalty would never leave them.
    """
    out = {**fresh, **previous}
    for term in problem.terms:
        row, col = term.key("row"), term.key("col")
        if row not in previous or col not in previous:
            continue
        strength, usual = (
            np.linalg.norm(state[row], axis=0) * np.linalg.norm(state[col], axis=0)
            for state in (previous, fresh)
        )
        dead = strength < 0.01 * np.median(usual)
        for key in (row, col):
            out[key] = np.where(dead, fresh[key], previous[key])
    return out


def _subtract(cells: Observations, offsets: Offsets) -> Observations:
    if offsets.width == 0:
        return cells
    residual = cells.values - np.asarray(offsets.at(cells.rows, cells.indices))
    return cells.with_values(residual.astype(cells.dtype, copy=False))


def _validator(problem: Problem, offsets: Offsets, held_out: Observations) -> Callable[[State], float]:
    """Root mean squared error on held-out cells as a function of the state."""
    target = _subtract(held_out, offsets)

    def error(state: State) -> float:
        pair = problem.stacked(state)
        scores = kernels.sddmm(target.indptr, target.indices, *pair, n_threads=problem.n_threads)
        difference = scores.astype(np.float64) - target.values
        return float(np.sqrt(np.mean(difference * difference)))

    return error
