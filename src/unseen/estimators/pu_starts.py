"""Starting factors from the leading singular vectors of the positives."""

from __future__ import annotations

import numpy as np

from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import Triplets, thresholded_svd
from unseen.problem import Problem
from unseen.regularisers import Separable
from unseen.state import State
from unseen.typing import FloatArray

__all__ = ["nonnegative_start", "svd_start"]

START_TOL = 1e-2
"""Relative residual of singular vectors that only serve as a start."""


def svd_start(problem: Problem, state: State, rng: np.random.Generator) -> State:
    """Balanced factors of the truncated SVD of the targets; components that it lacks stay as they are."""
    found = _leading(problem, state["0.row"].shape[1], rng)
    root = np.sqrt(found.s)
    out = {**state, "0.row": state["0.row"].copy(), "0.col": state["0.col"].copy()}
    out["0.row"][:, : found.s.size] = found.u * root
    out["0.col"][:, : found.s.size] = found.v * root
    return out


def nonnegative_start(problem: Problem, state: State, rng: np.random.Generator) -> State:
    """Non-negative split of the leading triplets (as in NNDSVD), within the bounds of the factors.

    Of each pair of singular vectors the heavier of the two parts of equal sign is kept. A little noise
    lifts exact zeros, which coordinate descent could leave only one factor at a time.
    """
    found = _leading(problem, state["0.row"].shape[1], rng)
    rule = problem.terms[0].reg.factored()
    assert isinstance(rule, Separable)
    out = dict(state)
    left, right = _heavier_parts(found)
    for key, part in (("0.row", left), ("0.col", right)):
        start = np.abs(state[key])
        noise = (0.01 * rule.upper * rng.random(start.shape)).astype(start.dtype)
        start[:, : part.shape[1]] = part
        out[key] = np.clip(start + noise, rule.lower, rule.upper)
    return out


def _leading(problem: Problem, rank: int, rng: np.random.Generator) -> Triplets:
    cells = problem.observations
    _, target = problem.cell_loss.stored()
    values = np.broadcast_to(target, cells.values.shape).astype(cells.dtype)
    if cells.weights is not None:
        values = np.where(cells.weights > 0, values, values.dtype.type(0))
    empty = [np.zeros((size, 0), dtype=cells.dtype) for size in cells.shape]
    operator = LowRankPlusSparse(cells, values, empty[0], empty[1], problem.n_threads)
    return thresholded_svd(operator, 0.0, rng=rng, tol=START_TOL, max_rank=rank)


def _heavier_parts(found: Triplets) -> tuple[FloatArray, FloatArray]:
    parts = [(np.maximum(sign * found.u, 0), np.maximum(sign * found.v, 0)) for sign in (1, -1)]
    lengths = [[np.linalg.norm(side, axis=0) for side in pair] for pair in parts]
    products = [left * right for left, right in lengths]
    first = products[0] >= products[1]
    left, right = (np.where(first, parts[0][side], parts[1][side]) for side in (0, 1))
    sizes = [np.where(first, lengths[0][side], lengths[1][side]) for side in (0, 1)]
    scale = np.sqrt(found.s * np.where(first, products[0], products[1]))
    return (
        left * np.divide(scale, sizes[0], out=np.zeros_like(scale), where=sizes[0] > 0),
        right * np.divide(scale, sizes[1], out=np.zeros_like(scale), where=sizes[1] > 0),
    )
