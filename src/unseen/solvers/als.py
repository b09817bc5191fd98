"""Alternating least squares: exact row and column solves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from unseen.data import Observations
from unseen.kernels.providers import Cells, HostProvider, Provider
from unseen.linalg.balance import balancing
from unseen.linalg.blocked import gram, multiply_in_place
from unseen.linalg.score_gradient import Blank
from unseen.problem import Problem
from unseen.regularisers import Separable
from unseen.solvers.base import CellTerms, Solver, Sweep, blank_constant, by_column
from unseen.solvers.biases import split_biases
from unseen.solvers.rules import why_not_free_factors
from unseen.state import State
from unseen.typing import FloatArray, IndexArray

__all__ = ["ALS", "Side", "sides_of", "solve_side", "value_by_rows", "with_sides"]


def solve_side(
    cells: CellTerms | Cells,
    other: FloatArray,
    out: FloatArray,
    *,
    ridge: float | FloatArray,
    blank: Blank,
    row_scale: FloatArray | None = None,
    other_gram: FloatArray | None = None,
    extra_offset: FloatArray | None = None,
    shift: FloatArray | None = None,
    row_values: FloatArray | None = None,
    method: Literal["cholesky", "cg"] = "cholesky",
    cg_steps: int = 3,
    n_threads: int = 1,
    provider: Provider | None = None,
) -> FloatArray:
    """Row factors that minimise the objective with the other side fixed.

    Each row solves ``(w r_i Q'CQ + f_i ridge I + sum c q q') p = w t r_i Q'C1 + sum d q``: the background
    over all columns through one Gram matrix (``other_gram`` = Q'CQ if it is at hand), the stored cells on
    top. ``ridge`` may have a value for each coordinate, ``row_scale`` holds f_i. A ``shift`` is a part of
    the scores that is the same in all rows, one number a column: p is fitted to what it leaves. What
    each row has minimised is written to ``row_values``. With a ``provider`` the cells are a pattern there,
    and all arrays of the size of a side live there too.
    """
    place = HostProvider(n_threads=n_threads) if provider is None else provider
    if isinstance(cells, tuple):
        cells = place.pattern(*cells, n_cols=len(other))
    k = other.shape[1]
    stretch: FloatArray | None = None
    per_row = row_scale is not None or blank.row_weights is not None
    if per_row and np.ndim(ridge) and not np.all(ridge == np.asarray(ridge)[0]):
        # One number a row multiplies the whole ridge: coordinates in which all ridges are one.
        stretch = place.asarray(1.0 / np.sqrt(np.asarray(ridge)), other.dtype)
        other = other * stretch
        out[:] = out / stretch
        ridge, other_gram = 1.0, None
        extra_offset = None if extra_offset is None else extra_offset * stretch
    if not blank:
        base: FloatArray = np.zeros((k, k))
    else:
        square = blank.gram("col", other, n_threads) if other_gram is None else other_gram
        base = blank.weight * square
    ridges: FloatArray | None = None
    if per_row:
        scale = place.xp.ones(len(out)) if row_scale is None else row_scale
        ridges = (float(np.max(ridge)) * scale).astype(other.dtype)
    else:
        diagonal = np.diag(np.broadcast_to(np.asarray(ridge, dtype=np.float64), k))
        base = base + (diagonal if isinstance(base, np.ndarray) else place.asarray(diagonal))
    offset: FloatArray | None = None
    if blank.weight * blank.target != 0.0:
        offset = (blank.weight * blank.target * blank.sums("col", other)).astype(other.dtype)
    if blank and shift is not None:
        weighted = shift if blank.col_weights is None else shift * blank.col_weights.astype(shift.dtype)
        push = (blank.weight * gram(other, weighted[:, None], n_threads=n_threads)[:, 0]).astype(other.dtype)
        offset = -push if offset is None else offset - push
    if offset is not None and blank.row_weights is not None:
        offset = place.xp.outer(blank.row_weights.astype(other.dtype), offset)
    if extra_offset is not None:
        offset = extra_offset if offset is None else extra_offset + offset
    place.als_solve(
        cells,
        other,
        base.astype(other.dtype),
        offset,
        out,
        ridge=ridges,
        gram_scale=None if not blank or blank.row_weights is None else blank.row_weights,
        shift=shift,
        row_values=row_values,
        method=method,
        cg_steps=cg_steps,
        definite=bool(np.min(ridge) > 0.0),
    )
    if stretch is not None:
        out *= stretch
    return out


@dataclass
class Side:
    """Factors of rows or columns and, where the composition has them, their biases."""

    factors: FloatArray
    bias: FloatArray | None
    rule: Separable
    bias_rule: Separable | None
    blank: Blank
    """With the rows of this side as its rows."""
    place: Provider
    """Where the factors live; scales and weights of rows live there too, the bias's rule does not."""

    @property
    def row_scale(self) -> FloatArray | None:
        """Factors of the ridge of each row; the bias has the same."""
        return None if self.rule.scale is None else self.rule.scale.ravel()

    def gram(self, n_threads: int) -> FloatArray:
        """Gram matrix that the background needs."""
        return self.blank.gram("row", self.factors, n_threads)

    def penalty_gram(self, background: FloatArray, n_threads: int) -> FloatArray:
        """Gram matrix whose trace is the penalty; that of the background where they are the same."""
        if self.rule.scale is None:
            plain = not (self.blank and self.blank.row_weights is not None)
            return background if plain else gram(self.factors, n_threads=n_threads)
        scaled = self.factors * self.rule.scale.astype(self.factors.dtype, copy=False)
        return gram(scaled, self.factors, n_threads=n_threads)

    def solve(self, other: Side, cells: CellTerms | Cells, **options: Any) -> None:
        """Bring factors and bias to their optimum, the other side fixed.

        The other side's biases are a shift of the target. The own bias is one more coordinate, against ones.
        """
        options |= {"blank": self.blank, "row_scale": self.row_scale, "shift": other.bias}
        if self.bias is None:
            solve_side(cells, other.factors, self.factors, ridge=self.rule.ridge, **options)
            return
        assert self.bias_rule is not None
        rank = self.factors.shape[1]
        table = self._with_column(other.factors, 1.0)
        out = self._with_column(self.factors, self.bias)
        options["other_gram"] = None  # that of the factors alone
        ridge = np.append(np.full(rank, self.rule.ridge), self.bias_rule.ridge)
        solve_side(cells, table, out, ridge=ridge, **options)
        self.factors[:], self.bias[:] = out[:, :rank], out[:, rank]

    def part(self, picked: IndexArray) -> Side:
        """Some of the rows of this side, copied."""
        rules = [
            rule if rule is None or rule.scale is None else replace(rule, scale=rule.scale.ravel()[picked])
            for rule in (self.rule, self.bias_rule)
        ]
        weights = self.blank.row_weights
        assert rules[0] is not None
        return Side(
            self.factors[picked],
            None if self.bias is None else self.bias[picked],
            rules[0],
            rules[1],
            self.blank if weights is None else replace(self.blank, row_weights=weights[picked]),
            self.place,
        )

    def put(self, picked: IndexArray, part: Side) -> None:
        """Take over what :meth:`part` has become."""
        self.factors[picked] = part.factors
        if self.bias is not None:
            self.bias[picked] = part.bias

    def penalty(self) -> float:
        """Penalty of the biases alone."""
        if self.bias is None or self.bias_rule is None:
            return 0.0
        scale = self.bias_rule.scale
        rule = replace(self.bias_rule, scale=None if scale is None else scale.ravel())
        return rule.value(self.place.to_host(self.bias))

    def _with_column(self, factors: FloatArray, column: FloatArray | float) -> FloatArray:
        n, k = factors.shape
        out: FloatArray = self.place.xp.empty((n, k + 1), dtype=factors.dtype)
        out[:, :k], out[:, k] = factors, column
        return out


class ALS(Solver):
    """Alternating least squares for one term without features, and biases beside it.

    Columns first, then rows, so that the rows of the result are exactly what
    ``fold_in`` of the same cells gives. Between sweeps the factors are balanced, which keeps
    their product and lowers the penalty. The objective never rises.

    A bias of the rows is ``Term(Identity(), Constant(), Full(), Ridge(r))``, one of the columns its
    mirror image. A row's bias is solved for together with its factors.

    Parameters
    ----------
    method : {"cholesky", "cg"}, default="cholesky"
        How each small system is solved; "cg" takes a few warm-started steps.
    cg_steps : int, default=3
        Steps of "cg".
    """

    judges_start = False  # passes over the cells are what a sweep costs
    on_device = True

    def __init__(
        self,
        max_iter: int = 50,
        tol: float = 1e-5,
        method: Literal["cholesky", "cg"] = "cholesky",
        cg_steps: int = 3,
    ) -> None:
        super().__init__(max_iter, tol)
        self.method = method
        self.cg_steps = cg_steps

    def refuses(self, problem: Problem) -> str | None:
        biases = split_biases(problem)
        reason = why_not_free_factors(problem.only(biases.others))
        if reason is None and not problem.cell_loss.quadratic:
            reason = "the loss is not quadratic; use LBFGS"
        if reason is None and not all(rule.quadratic for rule in problem.rules()):
            reason = "rows are solved in closed form, which needs a ridge or nuclear penalty; use CCD"
        if reason is None:
            reason = _why_not_scaled(problem)
        return reason

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        cells = problem.observations
        loss = problem.cell_loss
        curvature, linear = loss.normal_terms()
        place, n_threads = problem.provider, problem.n_threads
        term = problem.terms[split_biases(problem).others[0]]
        place.reserve(_bytes_needed(cells, state[term.key("row")], curvature, linear))
        by_row = place.pattern(
            cells.indptr,
            cells.indices,
            curvature,
            linear,
            n_cols=cells.shape[1],
            by_column=lambda: by_column(cells, curvature, linear),
        )
        in_columns = by_row.transposed
        options: dict[str, Any] = {
            "method": self.method,
            "cg_steps": self.cg_steps,
            "n_threads": n_threads,
            "provider": place,
        }
        rows, cols = sides_of(problem, state, place)
        row_gram, col_gram = rows.gram(n_threads), None
        col_penalty: FloatArray | None = None
        row_values = place.xp.empty(cells.shape[0])
        constant = loss.normal_constant()
        plain = rows.rule.scale is None and cols.rule.scale is None and not rows.blank.separable
        turns = plain and place.copies_tables and bool(rows.blank) and rows.bias is None and cols.bias is None
        while True:
            if rows.rule.ridge and col_gram is not None and col_penalty is not None:
                squares = (rows.penalty_gram(row_gram, n_threads), col_penalty)
                rotations = balancing(*map(place.to_host, squares))
                for side, rotation in zip((rows, cols), rotations[:2], strict=True):
                    multiply_in_place(side.factors, rotation.astype(side.factors.dtype), n_threads=n_threads)
                row_gram = np.diag(rotations[2]) if plain else rows.gram(n_threads)
            cols.solve(rows, in_columns, other_gram=row_gram, **options)
            col_gram = cols.gram(n_threads)
            col_penalty = cols.penalty_gram(col_gram, n_threads)
            if turns:
                col_gram, col_penalty = _turned(rows, cols, col_gram, n_threads)
            rows.solve(cols, by_row, other_gram=col_gram, row_values=row_values, **options)
            row_gram = rows.gram(n_threads)
            state = with_sides(problem, state, rows, cols)
            yield Sweep(dict(state), value_by_rows(problem, row_values, cols, col_penalty, constant), {})


def value_by_rows(
    problem: Problem, row_values: FloatArray, cols: Side, col_penalty: FloatArray, constant: float
) -> float:
    """The objective, from what the rows minimised when they were solved last.

    That is all of it but constants, of which the loss has told its own, and the penalty of the columns, of
    which ``col_penalty`` is the Gram matrix.
    """
    col_bias = None if cols.bias is None else cols.place.to_host(cols.bias)
    value = float(row_values.sum()) + constant + blank_constant(problem, col_bias)
    return value + 0.5 * cols.rule.ridge * float(np.trace(col_penalty)) + cols.penalty()


def _turned(rows: Side, cols: Side, col_gram: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Turn both sides so that the Gram matrix of the columns is diagonal, and give what it is then."""
    values, vectors = np.linalg.eigh(col_gram)
    for side in (rows, cols):
        multiply_in_place(side.factors, vectors.astype(side.factors.dtype), n_threads=n_threads)
    turned: FloatArray = np.diag(values)
    return turned, turned


def _bytes_needed(
    cells: Observations, start: FloatArray, curvature: float | FloatArray, linear: float | FloatArray
) -> float:
    """Most memory that a fit takes where it runs: both orders of the cells, factors, a table and a start."""
    n, m = cells.shape
    by_cell = sum(start.itemsize for part in (curvature, linear) if np.ndim(part))
    width = start.itemsize * start.shape[1]
    return float(cells.nnz * (8 + 2 * by_cell) + (n + m + 2 * max(n, m)) * width + 24 * (n + m))


def _blank_at(blank: Blank, place: Provider) -> Blank:
    """The background with its weights where the factors live."""
    rows, cols = (None if w is None else place.asarray(w) for w in (blank.row_weights, blank.col_weights))
    return replace(blank, row_weights=rows, col_weights=cols)


def _scale_at(rule: Separable, place: Provider) -> Separable:
    return rule if rule.scale is None else replace(rule, scale=place.asarray(rule.scale))


def sides_of(problem: Problem, state: State, place: Provider) -> tuple[Side, Side]:
    """Copies of the factors of rows and columns at a provider, with what a solve needs to know of them."""
    biases, blank = split_biases(problem), _blank_at(problem.blank, place)
    term = problem.terms[biases.others[0]]
    rows, cols = (
        Side(
            place.copy(state[term.key(side)]),
            None if bias is None else place.copy(state[bias.key("core")]).ravel(),
            _scale_at(_ridge(problem, term.key(side)), place),
            None if bias is None else _ridge(problem, bias.key("core")),
            blank if side == "row" else blank.transposed,
            place,
        )
        for side, bias in (("row", biases.row), ("col", biases.col))
    )
    return rows, cols


def with_sides(problem: Problem, state: State, rows: Side, cols: Side) -> State:
    """The state with the factors and biases of both sides."""
    biases = split_biases(problem)
    term = problem.terms[biases.others[0]]
    out = {**state, term.key("row"): rows.factors, term.key("col"): cols.factors}
    for bias, core in ((biases.row, rows.bias), (biases.col, cols.bias)):
        if bias is not None and core is not None:
            out[bias.key("core")] = core[:, None] if bias is biases.row else core[None]
    return out


def _ridge(problem: Problem, key: str) -> Separable:
    rule = problem.rule(key)
    assert isinstance(rule, Separable)
    return rule


def _why_not_scaled(problem: Problem) -> str | None:
    """A reason where the ridges of a row do not share one factor."""
    rules = [rule for rule in problem.rules() if isinstance(rule, Separable)]
    scaled = any(rule.degree_power for rule in rules)
    if scaled and len({rule.degree_power for rule in rules}) > 1:
        return "factors and biases need the same degree_scaling; use AlternatingCG"
    per_row = scaled or problem.blank.row_weights is not None
    ridges = {rule.ridge for rule in rules}
    if per_row and len(ridges) > 1 and 0.0 in ridges:
        return "one of several ridges is zero where rows are scaled one by one; use AlternatingCG"
    return None
