"""Penalties as a share of the one that makes everything zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unseen.linalg.designs import Design
from unseen.linalg.score_gradient import ScoreGradient
from unseen.linalg.svt import spectral_norm
from unseen.problem import Problem
from unseen.regularisers import parse_reg
from unseen.typing import FloatArray

__all__ = ["lambda_max", "resolve_reg"]


def resolve_reg(reg: Any, largest: Callable[[], float]) -> float:
    """The number that ``reg`` stands for: itself, or a share of ``largest()`` as in ``"0.1max"``."""
    number, is_share = parse_reg(reg)
    return number * largest() if is_share else number


def lambda_max(problem: Problem, rng: np.random.Generator) -> float:
    """Smallest weight of a nuclear norm on the core of the only term at which the core is zero.

    That is the spectral norm of the gradient of the data part at zero, ``2 a tau ||A||_2`` for
    positives without features; half the weight on the squared norms of two factors is the same.
    """
    (term,) = problem.terms
    state = problem.start(rng, factored_full=True)
    row, col = problem.designs(term, state)
    cells = problem.observations
    loss = problem.cell_loss
    slope = loss.grad(np.zeros_like(cells.values))
    # Taken out of the background again, where that pulls to something other than zero.
    slope = slope.astype(np.float64) + loss.blank_at * loss.blank.target
    zero = (np.zeros((cells.shape[0], 0)), np.zeros((cells.shape[1], 0)))
    scores = ScoreGradient(cells, slope, *zero, loss.blank, problem.n_threads)
    return spectral_norm(_Pulled(row, scores, col), rng)


@dataclass(frozen=True)
class _Pulled:
    """``A' G B`` as an operator."""

    row: Design
    scores: ScoreGradient
    col: Design

    @property
    def shape(self) -> tuple[int, int]:
        return self.row.shape[1], self.col.shape[1]

    def dot(self, vectors: FloatArray) -> FloatArray:
        return self.row.tdot(self.scores.dot(self.col.dot(vectors)))

    def tdot(self, vectors: FloatArray) -> FloatArray:
        return self.col.tdot(self.scores.tdot(self.row.dot(vectors)))

    def toarray(self) -> FloatArray:
        if self.shape[0] < self.shape[1]:
            return self.tdot(np.eye(self.shape[0])).T
        return self.dot(np.eye(self.shape[1]))
