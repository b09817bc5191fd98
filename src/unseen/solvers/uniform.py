"""Alternating least squares where every cell weighs the same, stored or blank.

    w/2 ||T - P Q'||_F^2 + reg/2 (||W||_F^2 + ||H||_F^2),      P = A W,  Q = B H,  T sparse

Nothing then depends on which cells are stored. The normal equations of W are

    w A'A W (Q'Q) + reg W = w A'T Q

and in the eigenbasis of Q'Q its columns do not meet: each is a ridge regression of its own. Those of H are
the same with the sides exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from unseen.cores import LowRank
from unseen.linalg.blocked import gram
from unseen.linalg.cg import column_products, conjugate_gradients
from unseen.linalg.designs import Design, IdentityDesign, SparseDesign, as_design
from unseen.linalg.ridge import feature_gram, spd_solver
from unseen.problem import Problem
from unseen.solvers.base import Solver, Sweep
from unseen.solvers.rules import ridge_of, why_not_uniform
from unseen.state import State
from unseen.typing import Array, FloatArray

__all__ = ["UniformALS", "closed_form"]


class UniformALS(Solver):
    """Solves for the columns' factors exactly and for the rows' by conjugate gradients, in turn.

    For one low-rank term with a ridge, where all cells weigh the same. The gram matrix of the columns'
    features is decomposed once; that of the rows' is never formed.

    Parameters
    ----------
    cg_steps : int, default=20
        Limit of conjugate gradient steps in a sweep, from the factors of the last.
    cg_tol : float, default=1e-4
        Stop the steps when the residual of every column is below this share of its right side.
    """

    judges_start = False

    def __init__(
        self, max_iter: int = 50, tol: float = 1e-5, cg_steps: int = 20, cg_tol: float = 1e-4
    ) -> None:
        super().__init__(max_iter, tol)
        self.cg_steps = cg_steps
        self.cg_tol = cg_tol

    def refuses(self, problem: Problem) -> str | None:
        if len(problem.terms) != 1 or not isinstance(problem.terms[0].core, LowRank):
            return "exactly one term with a LowRank core can be solved for here; use AlternatingCG"
        if any(a_map.learned for a_map in (problem.terms[0].row_map, problem.terms[0].col_map)):
            return "a map is to be learned; use GoalDirected or LBFGS"
        return why_not_uniform(problem)

    def _target(self, problem: Problem) -> Design:
        """The sparse matrix ``w T``."""
        cells = problem.observations
        _, linear = problem.cell_loss.normal_terms()
        data = np.broadcast_to(np.asarray(linear, dtype=cells.dtype), cells.values.shape)
        matrix = sparse.csr_array((data, cells.indices, cells.indptr), shape=cells.shape)
        return as_design(matrix, problem.n_threads)

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        term = problem.terms[0]
        row, col = problem.designs(term, state)
        target = self._target(problem)
        dtype, n_threads = problem.observations.dtype, problem.n_threads
        weight = problem.blank.weight
        regs = [ridge_of(problem, term.key(side)) for side in ("row", "col")]
        spectrum = None
        if not isinstance(col, IdentityDesign):
            matrix = col.matrix if isinstance(col, SparseDesign) else col.toarray()
            spectrum = np.linalg.eigh(feature_gram(matrix, n_threads=n_threads))
        W = state[term.key("row")]
        left = row.dot(W)
        while True:
            wanted = target.tdot(left).astype(np.float64)
            H = closed_form(col, spectrum, wanted, weight * gram(left, n_threads=n_threads), regs[1])
            right = col.dot(H).astype(dtype, copy=False)
            W, steps = self._by_cg(
                row, target.dot(right), weight * gram(right, n_threads=n_threads), W, regs[0]
            )
            left = row.dot(W)
            state = {**state, term.key("row"): W, term.key("col"): H.astype(dtype, copy=False)}
            yield Sweep(state, problem.value(state), {"cg_steps": steps})

    def _by_cg(
        self, row: Design, wanted: FloatArray, other: Array, W: FloatArray, reg: float
    ) -> tuple[FloatArray, int]:
        """Solve ``A'A W other + reg W = A' wanted``, from the W at hand."""
        values, vectors = np.linalg.eigh(other)
        rotation = vectors.astype(W.dtype)
        scale = np.maximum(values, 0.0).astype(W.dtype)
        ridge = W.dtype.type(reg)

        def data_part(block: FloatArray) -> FloatArray:
            product: FloatArray = row.tdot(row.dot(block)) * scale
            return product

        right = row.tdot(np.ascontiguousarray(wanted @ rotation))
        start = np.ascontiguousarray(W @ rotation)
        found, steps = conjugate_gradients(
            lambda block: data_part(block) + block * ridge,
            right - data_part(start) - start * ridge,
            start=start,
            goal=self.cg_tol**2 * column_products(right, right),
            max_iter=self.cg_steps,
        )
        return np.ascontiguousarray(found @ rotation.T), steps


def closed_form(
    design: Design, spectrum: tuple[Array, Array] | None, wanted: Array, other: Array, reg: float
) -> Array:
    """H with ``B'B H other + reg H = B' wanted``; ``spectrum`` is that of B'B, None for the identity."""
    if spectrum is None:
        return spd_solver(other, reg)(wanted.T).T
    # Both matrices rotated to their eigenvectors, each entry stands alone.
    values, vectors = spectrum
    other_values, other_vectors = np.linalg.eigh(other)
    target = vectors.T @ design.tdot(wanted) @ other_vectors
    solution: Array = vectors @ (target / (np.outer(values, other_values) + reg)) @ other_vectors.T
    return solution
