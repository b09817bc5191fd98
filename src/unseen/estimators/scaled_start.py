"""Starting factors of a partly observed matrix from singular vectors of its cells.

With r_ij what rough biases leave of the observed cells, w_ij their weights, d_i and e_j the sums of these
over a row and a column, the matrix  S_ij = w_ij r_ij / sqrt((d_i + s)(e_j + s))  (zero where nothing is
observed) weighs rows and columns by what is known about them. Steps of subspace iteration on S cost a
fraction of a sweep of alternating least squares, and from random factors the first sweeps do little else.
"""

from __future__ import annotations

import numpy as np

from unseen import kernels
from unseen.linalg.blocked import gram, matmul
from unseen.linalg.draws import standard_normal
from unseen.problem import Problem
from unseen.solvers.biases import split_biases
from unseen.state import State
from unseen.typing import Array, FloatArray

__all__ = ["scaled_svd_start"]

STEPS, OVERSAMPLING = 3, 10
SHRINK = 5.0
"""Cells that rows and columns are treated as having besides their own."""


def scaled_svd_start(problem: Problem, state: State, rng: np.random.Generator) -> State:
    """Factors along the leading singular vectors of the scaled cells, of the same size as those in ``state``.

    Components beyond the rank of the cells stay as they are.
    """
    biases = split_biases(problem)
    term = problem.terms[biases.others[0]]
    keys = term.key("row"), term.key("col")
    rank = state[keys[0]].shape[1]
    cells, n_threads = problem.observations, problem.n_threads
    n, m = cells.shape
    pattern = (cells.indptr, cells.indices)
    sizes = cells.degrees("row"), cells.degrees("col")
    scales = [(1.0 / np.sqrt(size + SHRINK)).astype(cells.dtype)[:, None] for size in sizes]
    values = cells.values
    if biases.row is not None or biases.col is not None:
        values = _without_biases(problem, values, (biases.row is not None, biases.col is not None), sizes)
    values = _weighted(problem, values)

    # Blocks are scaled in place: nobody needs them after the product.
    def dot(block: FloatArray) -> FloatArray:
        block *= scales[1]
        image = kernels.spmm(*pattern, values, block, n_threads=n_threads)
        image *= scales[0]
        return image

    def tdot(block: FloatArray) -> FloatArray:
        block *= scales[0]
        image = kernels.spmm_t(*pattern, values, block, m, n_threads=n_threads)
        image *= scales[1]
        return image

    width = min(rank + OVERSAMPLING, n, m)
    left = dot(standard_normal((m, width), cells.dtype, rng, n_threads=n_threads))
    for _ in range(STEPS):
        right = tdot(_orthonormal(left, n_threads))
        left = dot(_orthonormal(right, n_threads))
    # S is about Q Q'S with Q the basis of the left block; Q'S = (S'Q)' is small in one direction.
    basis = _orthonormal(left, n_threads)
    right = tdot(basis.copy())
    squares, turn = np.linalg.eigh(gram(right, n_threads=n_threads))
    kept = np.flatnonzero(squares > 1e-10 * max(float(squares[-1]), np.finfo(float).tiny))[::-1][:rank]
    if not kept.size:
        return state
    strength = squares[kept] ** 0.25
    turns = turn[:, kept] * strength, turn[:, kept] / strength
    out = dict(state)
    for key, block, own, scale in zip(keys, (basis, right), turns, scales, strict=True):
        found = scale * matmul(block, own.astype(cells.dtype), n_threads=n_threads)
        found *= cells.dtype.type(_size(state[key]) / _size(found))
        out[key] = state[key].copy()
        out[key][:, : kept.size] = found
    return out


def _without_biases(
    problem: Problem, values: FloatArray, wanted: tuple[bool, bool], sizes: tuple[Array, Array]
) -> FloatArray:
    """What one pass of shrunken means, of columns and then of rows, leaves of the values."""
    cells, n_threads = problem.observations, problem.n_threads
    n, m = cells.shape
    pattern = (cells.indptr, cells.indices)
    row, col = np.zeros((n, 2), dtype=cells.dtype), np.zeros((m, 2), dtype=cells.dtype)
    row[:, 1] = col[:, 0] = 1.0  # (b_i, 1) . (1, c_j)
    if wanted[1]:
        sums = kernels.spmm_t(*pattern, _weighted(problem, values), row[:, 1:], m, n_threads=n_threads)
        col[:, 1] = sums[:, 0] / (sizes[1] + SHRINK)
    if wanted[0]:
        counts = 1.0 if cells.weights is None else cells.weights
        sums = kernels.spmm(*pattern, _weighted(problem, values), col[:, :1], n_threads=n_threads)
        sums -= kernels.spmm(*pattern, counts, col[:, 1:], n_threads=n_threads)
        row[:, 0] = sums[:, 0] / (sizes[0] + SHRINK)
    scores = kernels.sddmm(*pattern, row, col, n_threads=n_threads)
    return np.subtract(values, scores, out=scores)


def _weighted(problem: Problem, values: FloatArray) -> FloatArray:
    weights = problem.observations.weights
    return values if weights is None else weights * values


def _orthonormal(block: FloatArray, n_threads: int) -> FloatArray:
    """A basis of the columns; directions that are not there become zero."""
    values, vectors = np.linalg.eigh(gram(block, n_threads=n_threads))
    kept = values > 1e-10 * max(float(values[-1]), np.finfo(float).tiny)
    inverse = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return matmul(block, (vectors * inverse).astype(block.dtype), n_threads=n_threads)


def _size(factors: FloatArray) -> float:
    return float(np.linalg.norm(factors)) or 1.0
