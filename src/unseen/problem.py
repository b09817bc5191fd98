"""Observations, features, terms and loss as one objective.

    F = sum_stored w l(s, a) + background on blank cells + sum over terms of the penalty + penalty of S,
    S = sum_t A_t Z_t B_t',    subject to constraints on S

Instead of the cells the loss may see a linear measurement of them, l(M(S), M(A)). :class:`Problem`
evaluates F and its derivatives in the sparse-plus-Gram form; it does not know how F is minimised.
:meth:`Problem.oracle` is the same objective written naively over all n x m cells, for tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np

from unseen import kernels
from unseen.cores import Full, LowRank
from unseen.data import Observations
from unseen.exceptions import UnsupportedComposition
from unseen.kernels.providers import HostProvider, Provider
from unseen.linalg.draws import positive, random_factor
from unseen.linalg.factors import Pair, core_pair
from unseen.linalg.score_gradient import Blank, ScoreGradient
from unseen.losses import CellLoss, Loss
from unseen.regularisers import Penalty, Regulariser, Separable
from unseen.scores import GradientByScores, Scores
from unseen.sensing import Measured, MeasuredGradient, Sensing
from unseen.state import State
from unseen.terms import BoundTerm, Term
from unseen.totals import ScoreConstraint, TotalPart, total_parts
from unseen.typing import Array, Features, FloatArray
from unseen.validation import check_count

__all__ = ["BoundTerm", "Pair", "Problem", "core_pair"]

P = TypeVar("P", bound=Regulariser | ScoreConstraint)

CELLS_OF_SCORES = 1 << 18
"""Cells whose scores are made at a time where only their sum is wanted; they stay in cache."""


class Problem(Scores):
    """A composition bound to data.

    Parameters
    ----------
    observations : Observations
        Stored cells of the target.
    terms : sequence of Term
        Summands of the score matrix.
    loss : Loss
        Meaning of stored and blank cells.
    row_features, col_features : array or CSR, optional
        Validated side features in the type of the target.
    known : Pair, optional
        Factors of a part of the scores that is given and does not move.
    total : part or sequence of parts, optional
        What is asked of S as a whole: a penalty such as ``Nuclear``, a constraint such as ``ScoreBox``.
    measurement : Sensing, optional
        What the loss sees of the scores in place of the stored cells.
    n_threads : int
        Threads for all products; the result does not depend on it.
    provider : Provider, optional
        Where solvers that can do so compute; by default the CPU.
    """

    def __init__(
        self,
        observations: Observations,
        terms: Sequence[Term],
        loss: Loss,
        *,
        row_features: Features | None = None,
        col_features: Features | None = None,
        known: Pair | None = None,
        total: TotalPart | Sequence[TotalPart] | None = None,
        measurement: Sensing | None = None,
        n_threads: int = 1,
        provider: Provider | None = None,
    ) -> None:
        super().__init__(
            observations,
            terms,
            row_features=row_features,
            col_features=col_features,
            known=known,
            n_threads=n_threads,
        )
        self.provider = HostProvider(n_threads=n_threads) if provider is None else provider
        self.loss = loss.fitted(observations.values, observations.weights)
        self.total = total_parts(total)
        self.measurement = measurement
        self._degrees: dict[str, FloatArray] = {}
        self._cell_loss: CellLoss | None = None
        self._measured: Measured | None = None

    def only(self, places: Sequence[int]) -> Problem:
        """The same problem with some of its terms; designs already computed are shared.

        What is asked of the total scores is not asked of a part of them.
        """
        part = copy(self)
        part.terms = [self.terms[place] for place in places]
        part.total = ()
        return part

    def on_total(self, kind: type[P]) -> P | None:
        """The first part of this kind on the total scores."""
        return next((part for part in self.total if isinstance(part, kind)), None)

    @property
    def cell_loss(self) -> CellLoss:
        """The loss bound to the stored cells."""
        bound = self._cell_loss
        if bound is None or bound.loss is not self.loss or bound.cells is not self.observations:
            bound = self._cell_loss = CellLoss(self.loss, self.observations)
        return bound

    @property
    def blank(self) -> Blank:
        """What blank cells are pulled to."""
        return self.cell_loss.blank

    @property
    def loss_counts(self) -> bool:
        """Whether the loss of stored cells is in the objective: not where they are held exactly."""
        return not any(isinstance(part, ScoreConstraint) and part.replaces_loss for part in self.total)

    @property
    def measured(self) -> Measured:
        """The measurement bound to the cells; drawn when it is first asked for."""
        if self._measured is None:
            assert self.measurement is not None
            if self.blank or self.observations.weights is not None or not self.loss_counts:
                raise UnsupportedComposition(
                    "a loss that sees measurements sees no cells: it has no background, weights of cells or "
                    "cells that hold exactly"
                )
            linear_map = self.measurement.draw(self.observations, self.n_threads)
            self._measured = Measured(linear_map, linear_map.of_cells())
        return self._measured

    # -- states ----------------------------------------------------------------------

    def start(self, rng: np.random.Generator, *, factored_full: bool = False) -> State:
        """Starting values: random factors on the scale of the targets, full cores zero.

        With ``factored_full`` a full core between two identity maps starts as a product of
        factors with no columns instead of a dense n x m matrix of zeros.
        """
        state: State = {}
        size = self.size_of_starts()
        for term in self.terms:
            for side, a_map in (("row", term.row_map), ("col", term.col_map)):
                n_entities = self.observations.shape[0 if side == "row" else 1]
                for name, value in a_map.init(self.features_of(a_map, side), n_entities, rng).items():
                    state[term.key(f"{side}_map.{name}")] = value
            row, col = self.designs(term, state)
            dtype = self.observations.dtype
            if isinstance(term.core, LowRank):
                rank = check_count("rank", term.core.rank)
                mean = self._target_mean() if term.free and self._is_nonnegative(term) else None
                for side, design in (("row", row), ("col", col)):
                    factor = random_factor(design, rank, size, dtype, rng, n_threads=self.n_threads)
                    state[term.key(side)] = factor if mean is None else positive(factor, mean)
            elif factored_full and term.free:
                state[term.key("row")] = np.zeros((row.shape[1], 0), dtype=dtype)
                state[term.key("col")] = np.zeros((col.shape[1], 0), dtype=dtype)
            else:
                state[term.key("core")] = np.zeros((row.shape[1], col.shape[1]), dtype=dtype)
        return state

    def size_of_starts(self) -> float:
        """Mean square of the scores that a start is to have."""
        size = self.cell_loss.size_at_zero()
        # Where the loss is no distance, its slope at zero is no guess of the scores.
        return size if self.cell_loss.quadratic else min(size, 1.0)

    def _is_nonnegative(self, term: BoundTerm) -> bool:
        rule = term.reg.factored()
        return isinstance(rule, Separable) and rule.lower >= 0.0

    def _target_mean(self) -> float:
        """Mean of what scores are pulled to, blank cells included."""
        cells, blank, at = self.observations, self.blank, self.cell_loss.blank_at
        counts = cells.weights
        stored, total = (
            (cells.values.sum(dtype=np.float64), float(cells.nnz))
            if counts is None
            else (np.dot(counts.astype(np.float64), cells.values), counts.sum(dtype=np.float64))
        )
        everywhere = blank.weight * blank.total("row", cells.shape[0]) * blank.total("col", cells.shape[1])
        pull = everywhere - float(np.sum(np.broadcast_to(at, cells.nnz), dtype=np.float64))
        return float((stored + pull * blank.target) / max(total + pull, 1.0))

    def feasible(self, state: State) -> State:
        """The state with every array brought inside its bounds."""
        out = dict(state)
        for key in self.blocks(state):
            rule = self.rule(key)
            if isinstance(rule, Separable) and rule.bounded:
                # Half of a random start would sit at a lower bound of zero: mirror it first.
                inside = np.abs(state[key]) if rule.lower >= 0 else state[key]
                out[key] = np.clip(inside, rule.lower, rule.upper)
        return out

    # -- objective -------------------------------------------------------------------

    def value(
        self, state: State, pair: Pair | None = None, *, grams: tuple[FloatArray, FloatArray] | None = None
    ) -> float:
        """Objective F in float64; with what the background needs of rows and columns, if it is at hand."""
        pair = self.stacked(state) if pair is None else pair
        return self.data_value_of(pair, grams) + self.penalty(state) + self.total_value(pair)

    def total_value(self, pair: Pair) -> float:
        """Penalties of the total scores."""
        penalties = (part for part in self.total if isinstance(part, Regulariser))
        return sum(part.on_core().value_of_product(*pair) for part in penalties)

    def violation(self, state: State) -> float:
        """Largest distance of a score to where the constraints on the total scores want it."""
        pair = self.stacked(state)
        constraints = (part for part in self.total if isinstance(part, ScoreConstraint))
        found = [part.violation(pair, self.observations, self.n_threads) for part in constraints]
        return max(found, default=0.0)

    def data_value(self, state: State) -> float:
        """Objective without the penalties."""
        return self.data_value_of(self.stacked(state))

    def data_value_at(self, pair: Pair, scores: FloatArray) -> float:
        """Objective without the penalties, for factors and scores that are at hand."""
        if self.measurement is not None:
            return self._measured_value(pair)
        loss = self.cell_loss
        background = loss.blank.value(*pair, scores, loss.blank_at if loss.blank else 0.0, self.n_threads)
        return (loss.value(scores) if self.loss_counts else 0.0) + background

    def _measured_value(self, pair: Pair) -> float:
        linear_map, target = self.measured
        return self.loss.value(linear_map.forward(*pair), target)

    def data_value_of(self, pair: Pair, grams: tuple[FloatArray, FloatArray] | None = None) -> float:
        """Objective without the penalties, for factors that are at hand.

        Scores are made for some rows at a time, so that none of the size of the data is needed.
        """
        if self.measurement is not None:
            return self._measured_value(pair)
        loss, counts = self.cell_loss, self.loss_counts
        if not (counts or loss.blank):
            return 0.0
        at = loss.blank_at if loss.blank else 0.0
        stored = squares = 0.0
        for rows, cells in self._parts():
            start = self.observations.indptr[rows.start]
            indptr = self.observations.indptr[rows.start : rows.stop + 1] - start
            left, indices = pair.left[rows], self.observations.indices[cells]
            scores = kernels.sddmm(indptr, indices, left, pair.right, n_threads=self.n_threads)
            stored += loss.value(scores, cells) if counts else 0.0
            if loss.blank:
                squares += loss.blank.at_scores(scores, at if np.ndim(at) == 0 else np.asarray(at)[cells])
        if not loss.blank:
            return stored
        return stored + 0.5 * (
            loss.blank.weight * loss.blank.everywhere(*pair, self.n_threads, grams) - squares
        )

    def _parts(self) -> Iterator[tuple[slice, slice]]:
        """Rows and their cells, in parts of at most CELLS_OF_SCORES cells or one row."""
        indptr, n = self.observations.indptr, self.observations.shape[0]
        row = 0
        while row < n:
            # In the type of indptr: all of it would be converted to that of another limit.
            limit = indptr.dtype.type(min(int(indptr[row]) + CELLS_OF_SCORES, self.observations.nnz))
            end = max(row + 1, int(np.searchsorted(indptr, limit, side="right")) - 1)
            yield slice(row, end), slice(int(indptr[row]), int(indptr[end]))
            row = end

    def penalty(self, state: State) -> float:
        """Sum of the terms' penalties."""
        total = 0.0
        for term in self.terms:
            names = ("core",) if term.key("core") in state else ("row", "col")
            if isinstance(term.core, Full) and "core" not in names:  # kept as a product of factors
                factors = state[term.key("row")], state[term.key("col")]
                total += self.rule(term.key("core")).value_of_product(*factors)
            else:
                total += sum(self.rule(term.key(name)).value(state[term.key(name)]) for name in names)
        return total

    def rule(self, key: str) -> Penalty:
        """Penalty that applies to one array; none for the parameters of maps."""
        term, name = self.locate(key)
        if "_map." in name:
            return Separable()
        rule = term.reg.on_core() if isinstance(term.core, Full) else term.reg.factored()
        if isinstance(rule, Separable) and rule.degree_power:
            free = {"row": term.row_map.by_entity, "col": term.col_map.by_entity}
            if name == "core" and free["row"] == free["col"]:
                raise UnsupportedComposition(
                    "degree_scaling needs a LowRank core, or a full one between features and Identity: there "
                    "each row, or each column, of the target has coefficients of its own"
                )
            side = ("row" if free["row"] else "col") if name == "core" else name
            if free[side]:
                if side not in self._degrees:
                    self._degrees[side] = self.observations.degrees(side)
                degrees = self._degrees[side]
                return rule.scaled(degrees[None] if (name, side) == ("core", "col") else degrees[:, None])
        return rule

    def rules(self) -> Iterator[Penalty]:
        """Penalties of all arrays of all terms."""
        for term in self.terms:
            full = isinstance(term.core, Full)
            for name in ("core",) if full else ("row", "col"):
                yield self.rule(term.key(name))

    def score_gradient(self, state: State) -> GradientByScores:
        """dF/dS of the data part at ``state``."""
        pair = self.stacked(state)
        return self._gradient_at(pair, self.cell_scores(pair))

    def _gradient_at(self, pair: Pair, scores: FloatArray) -> GradientByScores:
        if self.measurement is not None:
            linear_map, target = self.measured
            slopes = self.loss.grad(linear_map.forward(*pair), target)
            return MeasuredGradient(linear_map, slopes, pair.left.dtype)
        cells = self.cell_loss.residual(scores)
        if not self.loss_counts:
            cells = cells - self.cell_loss.grad(scores)
        return ScoreGradient(self.observations, cells, *pair, self.blank, self.n_threads)

    def data_grad(self, state: State, keys: Iterable[str] | None = None) -> State:
        """Gradient of the data part with respect to the named arrays (default: all blocks)."""
        keys = list(self.blocks(state) if keys is None else keys)
        return self._pull_all(keys, self.score_gradient(state), state)

    def _pull_all(self, keys: list[str], operator: GradientByScores, state: State) -> State:
        out: State = {}
        for key in keys:
            if key in out:
                continue
            term, name = self.locate(key)
            if "_map." in name:  # one pullback gives the gradient of all params of a map
                side = name.split("_map.")[0]
                pulled = self.pull_map(term, side, operator, state)
                out |= {
                    full: value
                    for param, value in pulled.items()
                    if (full := term.key(f"{side}_map.{param}")) in keys
                }
            else:
                out[key] = self.pull(key, operator, state)
        return {key: out[key] for key in keys}

    def grad(self, state: State, keys: Iterable[str] | None = None) -> State:
        """Gradient of F, where the penalties are smooth (ridge parts only otherwise)."""
        return self._add_penalty_grad(self.data_grad(state, keys), state)

    def _add_penalty_grad(self, out: State, state: State) -> State:
        for key in out:
            if "_map." not in key:
                out[key] = out[key] + self.rule(key).grad(state[key])
        return out

    def value_and_grad(self, state: State, keys: Sequence[str]) -> tuple[float, State]:
        """:meth:`value` and :meth:`grad` in one pass over the cells."""
        pair = self.stacked(state)
        scores = self.cell_scores(pair)
        value = self.data_value_at(pair, scores) + self.penalty(state) + self.total_value(pair)
        data_grad = self._pull_all(list(keys), self._gradient_at(pair, scores), state)
        return value, self._add_penalty_grad(data_grad, state)

    def curvature_product(
        self,
        key: str,
        direction: Array,
        state: State,
        curvature: Array | float,
        other: FloatArray | None = None,
    ) -> Array:
        """Second derivative of a quadratic data part along one array, times ``direction``.

        ``curvature`` is the weight of the stored cells less that of the background.
        """
        change = self.push(key, direction, state, other)
        pair = Pair(np.ascontiguousarray(change.left), np.ascontiguousarray(change.right))
        cells = curvature * self.cell_scores(pair)
        cells = cells.astype(pair.left.dtype, copy=False)
        no_pull = replace(self.blank, target=0.0)
        operator = ScoreGradient(self.observations, cells, *pair, no_pull, self.n_threads)
        return self.pull(key, operator, state, other)

    # -- naive form, for tests -------------------------------------------------------

    def oracle(self, state: State) -> float:
        """Objective by its definition over all n x m cells."""
        n, m = self.observations.shape
        cells, blank = self.observations, self.blank
        scores = np.zeros((n, m))
        if self.known is not None:
            scores += self.known.left.astype(np.float64) @ self.known.right.T.astype(np.float64)
        penalty = 0.0
        for term in self.terms:
            row, col = (design.toarray().astype(np.float64) for design in self.designs(term, state))
            if term.key("core") in state:
                core = state[term.key("core")].astype(np.float64)
            else:
                core = state[term.key("row")].astype(np.float64) @ state[term.key("col")].T.astype(np.float64)
            scores += row @ core @ col.T
            if isinstance(term.core, Full):
                penalty += self.rule(term.key("core")).value(core)
            else:
                sides = [term.key(side) for side in ("row", "col")]
                penalty += sum(self.rule(side).value(state[side]) for side in sides)
        penalty += sum(part.on_core().value(scores) for part in self.total if isinstance(part, Regulariser))
        if self.measurement is not None:
            matrix = self.measured.matrix()
            zero_filled = cells.csr.toarray().astype(np.float64)
            return self.loss.value(matrix @ scores.ravel(), matrix @ zero_filled.ravel()) + penalty
        weight = np.full((n, m), blank.weight)
        weight *= 1.0 if blank.row_weights is None else blank.row_weights[:, None]
        weight *= 1.0 if blank.col_weights is None else blank.col_weights
        weight[cells.rows, cells.indices] = 0.0
        data = 0.5 * float(np.sum(weight * (scores - blank.target) ** 2))
        on_cells = scores[cells.rows, cells.indices]
        if not self.loss_counts:
            return data + penalty
        if cells.weights is None:
            return data + self.loss.value(on_cells, cells.values) + penalty
        return data + float(cells.weights @ self.loss.pointwise(on_cells, cells.values)) + penalty
