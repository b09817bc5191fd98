"""Alternating least squares: exact row and column solves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unseen import kernels
from unseen.linalg.balance import balancing
from unseen.linalg.blocked import gram, multiply_in_place
from unseen.losses import Quadratic
from unseen.problem import Problem
from unseen.solvers.base import CellTerms, Solver, Sweep, blank_constant, by_column, quadratic_loss
from unseen.solvers.biases import split_biases
from unseen.solvers.rules import why_not_free_factors
from unseen.state import State
from unseen.typing import FloatArray, IndexArray

__all__ = ["ALS", "solve_side"]


def solve_side(
    indptr: IndexArray,
    indices: IndexArray,
    curvature: float | FloatArray,
    linear: float | FloatArray,
    other: FloatArray,
    out: FloatArray,
    *,
    ridge: float | FloatArray,
    blank: tuple[float, float],
    other_gram: FloatArray | None = None,
    extra_offset: FloatArray | None = None,
    shift: FloatArray | None = None,
    row_values: FloatArray | None = None,
    method: Literal["cholesky", "cg"] = "cholesky",
    cg_steps: int = 3,
    n_threads: int = 1,
) -> FloatArray:
    """Row factors that minimise the objective with the other side fixed.

    Each row solves ``(w0 Q'Q + ridge I + sum c q q') p = w0 t0 Q'1 + sum d q``: the background
    over all columns through one Gram matrix (``other_gram`` if it is at hand), the stored cells on top.
    ``ridge`` may have a value for each coordinate. A ``shift`` is a part of the scores that is the same in
    all rows, one number a column: p is fitted to what it leaves. What each row has minimised is written to
    ``row_values``.
    """
    weight, target = blank
    k = other.shape[1]
    if weight == 0.0:
        base: FloatArray = np.zeros((k, k))
    else:
        base = weight * (gram(other, n_threads=n_threads) if other_gram is None else other_gram)
    base[np.diag_indices(k)] += ridge
    offset: FloatArray | None = extra_offset
    if weight * target != 0.0:
        pull = (weight * target * other.sum(axis=0, dtype=np.float64)).astype(other.dtype)
        offset = pull if extra_offset is None else extra_offset + pull
    if weight and shift is not None:
        push = (weight * gram(other, shift[:, None], n_threads=n_threads)[:, 0]).astype(other.dtype)
        offset = -push if offset is None else offset - push
    return kernels.als_solve(
        indptr,
        indices,
        curvature,
        linear,
        other,
        base.astype(other.dtype),
        offset,
        out,
        shift=shift,
        row_values=row_values,
        method=method,
        cg_steps=cg_steps,
        n_threads=n_threads,
    )


@dataclass
class _Side:
    """Factors of rows or columns and, where the composition has them, their biases."""

    factors: FloatArray
    bias: FloatArray | None
    bias_ridge: float

    def solve(self, other: _Side, cells: CellTerms, *, ridge: float, **options: Any) -> None:
        """Bring factors and bias to their optimum, the other side fixed.

        The other side's biases are a shift of the target. The own bias is one more coordinate, against ones.
        """
        if self.bias is None:
            solve_side(*cells, other.factors, self.factors, ridge=ridge, shift=other.bias, **options)
            return
        rank = self.factors.shape[1]
        table = _with_column(other.factors, 1.0)
        out = _with_column(self.factors, self.bias)
        options["other_gram"] = None  # that of the factors alone
        solve_side(
            *cells,
            table,
            out,
            ridge=np.append(np.full(rank, ridge), self.bias_ridge),
            shift=other.bias,
            **options,
        )
        self.factors[:], self.bias[:] = out[:, :rank], out[:, rank]

    def penalty(self) -> float:
        """Penalty of the biases alone."""
        if self.bias is None:
            return 0.0
        bias = self.bias.astype(np.float64)
        return 0.5 * self.bias_ridge * float(bias @ bias)


def _with_column(factors: FloatArray, column: FloatArray | float) -> FloatArray:
    n, k = factors.shape
    out: FloatArray = np.empty((n, k + 1), dtype=factors.dtype)
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
    max_iter : int, default=50
        Limit of sweeps.
    tol : float, default=1e-5
        Stop when a sweep lowers the objective by less than this share.
    method : {"cholesky", "cg"}, default="cholesky"
        How each small system is solved; "cg" takes a few warm-started steps.
    cg_steps : int, default=3
        Steps of "cg".
    """

    judges_start = False  # passes over the cells are what a sweep costs

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
        reason = why_not_free_factors(problem.only(split_biases(problem).others))
        if reason is None and not isinstance(problem.loss, Quadratic):
            reason = "the loss is not quadratic; use LBFGS"
        if reason is None and not problem.terms[split_biases(problem).others[0]].reg.factored().smooth:
            reason = "rows are solved in closed form, which needs a ridge or nuclear penalty; use CCD"
        return reason

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        cells = problem.observations
        loss = quadratic_loss(problem)
        curvature, linear = loss.normal_terms(cells.values)
        by_row = (cells.indptr, cells.indices, curvature, linear)
        in_columns = by_column(cells, curvature, linear)
        biases = split_biases(problem)
        term = problem.terms[biases.others[0]]
        ridge = term.reg.factored().ridge
        n_threads = problem.n_threads
        options: dict[str, Any] = {
            "ridge": ridge,
            "blank": problem.loss.blank(),
            "method": self.method,
            "cg_steps": self.cg_steps,
            "n_threads": n_threads,
        }
        rows, cols = (
            _Side(
                np.array(state[term.key(side)]),
                None if bias is None else np.array(state[bias.key("core")]).ravel(),
                0.0 if bias is None else bias.reg.factored().ridge,
            )
            for side, bias in (("row", biases.row), ("col", biases.col))
        )
        moved = (term.key("row"), term.key("col"))
        state = {key: value for key, value in state.items() if key not in moved}
        row_gram, col_gram = gram(rows.factors, n_threads=n_threads), None
        row_values = np.empty(cells.shape[0])
        constant = loss.normal_constant(cells.values)
        while True:
            if ridge and col_gram is not None:
                turn_rows, turn_cols, strength = balancing(row_gram, col_gram)
                for side, turn in ((rows, turn_rows), (cols, turn_cols)):
                    multiply_in_place(side.factors, turn.astype(side.factors.dtype), n_threads=n_threads)
                row_gram = np.diag(strength)
            cols.solve(rows, in_columns, other_gram=row_gram, **options)
            col_gram = gram(cols.factors, n_threads=n_threads)
            rows.solve(cols, by_row, other_gram=col_gram, row_values=row_values, **options)
            row_gram = gram(rows.factors, n_threads=n_threads)
            state = {**state, moved[0]: rows.factors, moved[1]: cols.factors}
            for bias, core in ((biases.row, rows.bias), (biases.col, cols.bias)):
                if bias is not None and core is not None:
                    state[bias.key("core")] = core[:, None] if bias is biases.row else core[None]
            # The rows were solved last: what they minimised is all but constants and the columns' penalty.
            value = float(row_values.sum()) + constant + blank_constant(problem, cols.bias)
            penalty = 0.5 * ridge * float(np.trace(col_gram)) + cols.penalty()
            yield Sweep(dict(state), value + penalty, {})
