"""A chain of any sum of terms: each factor and core in turn, given all others.

Given the rest a factor or a core x is normal with mean A^-1 b and covariance A^-1, where
``A = prior + alpha J'WJ`` and J takes x to the scores of the cells. Where each row or column of the target
has coefficients of its own they are drawn one by one. Elsewhere x solves the system of perturbed data and
prior means: these have noise of covariance A, so the solution has covariance A^-1, and no matrix is formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.cores import LowRank
from unseen.linalg.blocked import inner
from unseen.linalg.cg import conjugate_gradients
from unseen.linalg.designs import IdentityDesign
from unseen.linalg.score_gradient import Blank, ScoreGradient
from unseen.problem import Problem
from unseen.regularisers import Separable
from unseen.solvers.gibbs_cells import cells_of
from unseen.solvers.gibbs_chain import CELLS, START_FALL, check_size
from unseen.solvers.gibbs_noise import NoiseKept
from unseen.solvers.gibbs_prior import SidePrior
from unseen.solvers.posterior import SideSamples
from unseen.solvers.term_posterior import TermPosterior
from unseen.state import State
from unseen.terms import BoundTerm
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["KeptTerms", "TermChain", "why_not_terms"]

BLOCKS = 64
"""Blocks of random numbers from here on: three for each array."""
CG_STEPS, CG_TOL = 200, 1e-6
NARROW = 64
"""Columns of a full core up to which its rows are drawn one by one."""


def why_not_terms(problem: Problem) -> str | None:
    """A reason where terms cannot be drawn in turn, or None."""
    if problem.known is not None:
        return "a part of the scores is given"
    if problem.provider.device != "cpu":
        return "sums of terms are drawn on the CPU; use device='cpu'"
    for term in problem.terms:
        if term.row_map.learned or term.col_map.learned:
            return "a map is to be learned, and only coefficients of fixed ones are drawn"
        if not isinstance(term.core, LowRank) and term.free:
            return "a Full core between Identity maps has a number of its own for each cell; use LowRank(k)"
    for rule in problem.rules():
        if not isinstance(rule, Separable) or not rule.quadratic:
            return "a Gaussian prior is a ridge; use Ridge on all terms"
    return None


class _Block:
    """One array of a chain with its prior."""

    def __init__(self, problem: Problem, term: BoundTerm, name: str, state: State, *, diagonal: bool) -> None:
        self.term, self.name, self.key = term, name, term.key(name)
        row, col = problem.designs(term, state)
        value = state[self.key]
        self.side: str | None = None
        """Whose rows are drawn one by one."""
        if name == "core":
            if isinstance(row, IdentityDesign) and col.shape[1] <= NARROW:
                self.side = "row"
            elif isinstance(col, IdentityDesign) and row.shape[1] <= NARROW:
                self.side = "col"
            self.rate = 1.0
        else:
            if isinstance(row if name == "row" else col, IdentityDesign):
                self.side = name
            # Coefficients of features are apart from each other: none is their mean.
            self.prior = SidePrior(value.shape[1], diagonal=diagonal, centred=self.side is None)

    def learn(self, value: FloatArray, rng: np.random.Generator) -> None:
        """Draw the prior given the array."""
        if self.name == "core":
            squares = float(np.sum(value.astype(np.float64) ** 2))
            self.rate = float(rng.gamma(1.0 + 0.5 * value.size, 1.0 / (1.0 + 0.5 * squares)))
        else:
            self.prior.draw(value, lambda *_: value, rng)

    def moments(self, width: int) -> tuple[Array, Array]:
        """Mean and precision of a row of the array, as it is drawn or solved for."""
        if self.name == "core":
            return np.zeros(width), self.rate * np.eye(width)
        return self.prior.mean, self.prior.precision


class TermChain:
    """State of a chain, and one sweep of it. Values are in units of their standard deviation."""

    def __init__(
        self,
        problem: Problem,
        state: State,
        rng: np.random.Generator,
        *,
        diagonal: bool,
        varying: bool = True,
    ) -> None:
        self.problem, self.rng, self.place = problem, rng, problem.provider
        self.cells = problem.observations
        self.seed, self.number = int(rng.integers(2**63)), 0
        self.model = cells_of(problem, varying=varying)
        self.scale = self.model.scale
        self.state = dict(state)
        self.blocks: list[_Block] = []
        for term in problem.terms:
            low_rank = isinstance(term.core, LowRank)
            for name in ("col", "row") if low_rank else ("core",):
                key = term.key(name)
                start = self.state[key]
                if low_rank:
                    falling = START_FALL ** np.arange(start.shape[1]) / np.sqrt(self.scale)
                    start = (start * falling).astype(start.dtype)
                self.state[key] = start
                self.blocks.append(_Block(problem, term, name, self.state, diagonal=diagonal))
        self.parts = {term.place: self._part(term) for term in problem.terms}
        """Scores of the stored cells by terms."""

    @property
    def widths(self) -> list[int]:
        """Columns of the factors of one sample, by terms."""
        return [int(self.problem.pair(term, self.state).left.shape[1]) for term in self.problem.terms]

    def _part(self, term: BoundTerm) -> FloatArray:
        return self.problem.cell_scores(self.problem.pair(term, self.state))

    @property
    def scores(self) -> FloatArray:
        """Scores of the stored cells."""
        total: FloatArray = sum(self.parts.values())  # type: ignore[assignment]
        return total

    def normals(self, shape: tuple[int, int], block: int) -> FloatArray:
        """Normal numbers of this sweep for one block of what is drawn."""
        found: FloatArray = self.place.normals(shape, self.seed, self.number, block, self.cells.dtype.type)
        return found

    def sweep(self) -> float:
        """Draw everything once; the objective afterwards, in the units of the data."""
        self.number += 1
        before = self.scores if self.number > 1 else None
        self.model.draw(before, lambda shape: self.normals(shape, CELLS), self.rng)
        for place, block in enumerate(self.blocks):
            block.learn(self.state[block.key], self.rng)
            others = self.scores - self.parts[block.term.place]
            drawn = (
                self._solved(block, BLOCKS + 3 * place)
                if block.side is None
                else self._by_row(block, others, BLOCKS + 3 * place)
            )
            self.state = {**self.state, block.key: drawn}
            self.parts[block.term.place] = self._part(block.term)
        return self.model.objective(self.scores)

    def facts(self) -> dict[str, Any]:
        """What a line of the history says of the cells."""
        return self.model.facts()

    def _by_row(self, block: _Block, others: FloatArray, numbers: int) -> FloatArray:
        """Rows of the array drawn one by one."""
        cells = self.model.of_targets(others)
        pattern = cells if block.side == "row" else cells.transposed
        value = self.state[block.key]
        table = self._table(block)
        if block.name == "core" and block.side == "col":
            value = value.T
        mean, precision = block.moments(value.shape[1])
        n, k = value.shape
        out: FloatArray = np.empty((n, k), dtype=value.dtype)
        self.place.als_draw(
            pattern,
            np.ascontiguousarray(table),
            precision,
            self.normals((n, k), numbers),
            out,
            scale=self.model.alpha,
            offset=(mean @ precision)[None],
        )
        return np.ascontiguousarray(out.T) if block.name == "core" and block.side == "col" else out

    def _table(self, block: _Block) -> FloatArray:
        """What the rows of the array are multiplied with."""
        if block.name != "core":
            found = self.problem.other_side(block.key, self.state)
            assert found is not None
            return found
        row, col = self.problem.designs(block.term, self.state)
        dense: FloatArray = (col if block.side == "row" else row).toarray().astype(self.cells.dtype)
        return dense

    def _solved(self, block: _Block, numbers: int) -> FloatArray:
        """The array from perturbed data and prior means, by conjugate gradients."""
        problem, key, alpha = self.problem, block.key, self.model.alpha
        value, weights = self.state[key], self.model.curvature
        mean, precision = block.moments(value.shape[1])
        lower = np.linalg.cholesky(precision)
        other = problem.other_side(key, self.state)
        away = weights * (self.model.target - self.scores)
        noise = self.normals((self.cells.nnz, 1), numbers).ravel()
        pushed = alpha * away + np.sqrt(alpha * weights) * noise
        pair = problem.push(key, value, self.state, other)
        operator = ScoreGradient(
            self.cells, pushed.astype(value.dtype), *pair, Blank(), n_threads=problem.n_threads
        )
        residual = problem.pull(key, operator, self.state, other).astype(np.float64)
        residual += (mean - value) @ precision + self.normals(value.shape, numbers + 1) @ lower.T

        def curved(direction: Array) -> Array:
            small = np.ascontiguousarray(direction.astype(value.dtype))
            product = problem.curvature_product(key, small, self.state, weights, other)
            return np.asarray(alpha * product.astype(np.float64) + direction @ precision)

        step, _ = conjugate_gradients(
            curved, residual, goal=CG_TOL**2 * inner(residual, residual), max_iter=CG_STEPS, product=inner
        )
        return np.ascontiguousarray((value + step).astype(value.dtype))

    def scores_at(self, rows: IndexArray, cols: IndexArray) -> Array:
        """Scores of single cells."""
        left, right = self.problem.stacked(self.state)
        return np.asarray(np.einsum("ij,ij->i", left[rows], right[cols], dtype=np.float64) * self.scale)


class KeptTerms:
    """Samples on the way."""

    def __init__(self, chain: TermChain, n_samples: int) -> None:
        self.chain = chain
        coefficients = sum(chain.state[block.key].size for block in chain.blocks if block.side is None)
        width, total = sum(chain.widths), sum(chain.cells.shape)
        check_size(n_samples, (width * total + coefficients) * chain.cells.dtype.itemsize, width, total)
        self.pairs: list[tuple[FloatArray, FloatArray]] = []
        self.noise: list[float] = []
        self.thresholds: list[Array] = []
        self.learned: dict[str, list[Array]] = {block.key: [] for block in chain.blocks}
        self.priors: list[tuple[Array, Array]] = []
        self.varying = NoiseKept(chain.model.varying)

    def add(self) -> None:
        """Keep where the chain is."""
        chain = self.chain
        self.noise.append(chain.model.alpha / chain.scale**2)
        if chain.model.thresholds is not None:
            self.thresholds.append(chain.model.thresholds)
        self.varying.add()
        left, right = chain.problem.stacked(chain.state)
        self.pairs.append((left.copy(), right.copy()))
        for block in chain.blocks:
            self.learned[block.key].append(chain.state[block.key])
        self.priors.append(self._of_rows())

    def _of_rows(self) -> tuple[Array, Array]:
        """Mean and precision of the coordinates that rows have of their own, in the order of the terms."""
        found = []
        for term in self.chain.problem.terms:
            for block in self.chain.blocks:
                length, width = self.chain.state[block.key].shape
                if block.term is not term or term.row_map.inductive or block.name == "col":
                    continue
                if block.name == "row" or length > width:  # a core is on its narrower side
                    found.append(block.moments(width))
        mean = np.concatenate([mean for mean, _ in found]) if found else np.zeros(0)
        precision, start = np.zeros((len(mean), len(mean))), 0
        for own, square in found:
            part = slice(start, start + len(own))
            precision[part, part] = square
            start = part.stop
        return mean, precision

    def posterior(self) -> tuple[TermPosterior, FloatArray, FloatArray]:
        """All of it, and the factors of the mean."""
        chain = self.chain
        kept = {
            block.key: np.stack(self.learned[block.key])
            for block in chain.blocks
            if block.name == "core" or not _free(block.term, block.name)
        }
        posterior = TermPosterior(
            np.array(self.noise),
            chain.widths,
            kept,
            SideSamples(
                np.stack([mean for mean, _ in self.priors]), np.stack([square for _, square in self.priors])
            ),
            chain.scale,
            np.stack(self.thresholds) if self.thresholds else None,
            self.varying.samples(),
        )
        rows, cols = (np.stack(found) for found in zip(*self.pairs, strict=True))
        return posterior, posterior.stacked("row", rows), posterior.stacked("col", cols)


def _free(term: BoundTerm, name: str) -> bool:
    return not (term.row_map if name == "row" else term.col_map).inductive
