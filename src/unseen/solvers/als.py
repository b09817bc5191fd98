"""Alternating least squares: exact row and column solves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from unseen import kernels
from unseen.linalg.balance import balancing
from unseen.linalg.blocked import gram, multiply_in_place
from unseen.losses import Quadratic
from unseen.problem import Pair, Problem
from unseen.solvers.base import Solver, Sweep, quadratic_loss
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
    ridge: float,
    blank: tuple[float, float],
    other_gram: FloatArray | None = None,
    extra_offset: FloatArray | None = None,
    method: Literal["cholesky", "cg"] = "cholesky",
    cg_steps: int = 3,
    n_threads: int = 1,
) -> FloatArray:
    """Row factors that minimise the objective with the other side fixed.

    Each row solves ``(w0 Q'Q + ridge I + sum c q q') p = w0 t0 Q'1 + sum d q``: the background
    over all columns through one Gram matrix (``other_gram`` if it is at hand), the stored cells on top.
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
    return kernels.als_solve(
        indptr,
        indices,
        curvature,
        linear,
        other,
        base.astype(other.dtype),
        offset,
        out,
        method=method,
        cg_steps=cg_steps,
        n_threads=n_threads,
    )


class ALS(Solver):
    """Alternating least squares for one term without features.

    Columns first, then rows, so that the rows of the result are exactly what
    ``fold_in`` of the same cells gives. Between sweeps the factors are balanced, which keeps
    their product and lowers the penalty. The objective never rises.

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
        reason = why_not_free_factors(problem)
        if reason is None and not isinstance(problem.loss, Quadratic):
            reason = "the loss is not quadratic; use LBFGS"
        if reason is None and not problem.terms[0].reg.factored().smooth:
            reason = "rows are solved in closed form, which needs a ridge or nuclear penalty; use CCD"
        return reason

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        cells = problem.observations
        curvature, linear = quadratic_loss(problem).normal_terms(cells.values)
        csc = cells.csc
        # One number serves both orders; an array is brought into column order once.
        curvature_csc, linear_csc = (
            value if np.ndim(value) == 0 else np.asarray(value)[csc.order] for value in (curvature, linear)
        )
        ridge = problem.terms[0].reg.factored().ridge
        n_threads = problem.n_threads
        options: dict[str, Any] = {
            "ridge": ridge,
            "blank": problem.loss.blank(),
            "method": self.method,
            "cg_steps": self.cg_steps,
            "n_threads": n_threads,
        }
        rows, cols = np.array(state["0.row"]), np.array(state["0.col"])
        state = {key: value for key, value in state.items() if key not in ("0.row", "0.col")}
        row_gram, col_gram = gram(rows, n_threads=n_threads), None
        while True:
            if ridge and col_gram is not None:
                turn_rows, turn_cols, strength = balancing(row_gram, col_gram)
                multiply_in_place(rows, turn_rows.astype(rows.dtype), n_threads=n_threads)
                multiply_in_place(cols, turn_cols.astype(cols.dtype), n_threads=n_threads)
                row_gram = np.diag(strength)
            solve_side(
                csc.indptr,
                csc.indices,
                curvature_csc,
                linear_csc,
                rows,
                cols,
                other_gram=row_gram,
                **options,
            )
            col_gram = gram(cols, n_threads=n_threads)
            solve_side(
                cells.indptr,
                cells.indices,
                curvature,
                linear,
                cols,
                rows,
                other_gram=col_gram,
                **options,
            )
            row_gram = gram(rows, n_threads=n_threads)
            pair = Pair(rows, cols)
            data = problem.data_value_at(pair, problem.cell_scores(pair), (row_gram, col_gram))
            penalty = 0.5 * ridge * float(np.trace(row_gram) + np.trace(col_gram))
            yield Sweep({**state, "0.row": rows, "0.col": cols}, data + penalty, {})
