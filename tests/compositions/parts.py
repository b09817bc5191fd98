"""What compositions are made of: every exported map, core, loss, penalty and solver, and small data."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import sparse

from unseen import (
    L1,
    Background,
    Biased,
    Box,
    Constant,
    Fourier,
    Full,
    Given,
    Identity,
    Logistic,
    LowRank,
    NonNegative,
    Nuclear,
    Nystrom,
    Observations,
    Ridge,
    Shifted,
    Squared,
    Standardized,
    Tanh,
    Term,
    Whitened,
    WithOnes,
)
from unseen.losses import Loss
from unseen.maps import IdentityWithOnes
from unseen.problem import Problem
from unseen.regularisers import Regulariser
from unseen.solvers import (
    ALS,
    CCD,
    LBFGS,
    AlternatingCG,
    AlternatingLineSearch,
    AugmentedALS,
    BlockProx,
    BoxedADMM,
    GoalDirected,
    LowRankProx,
    ProxGradient,
)

N, M, D = 14, 11, 4


class RowLasso(Regulariser):
    """``reg sum_i ||z_i||``: rows of an array vanish as a whole."""

    def __init__(self, reg: float = 1.0) -> None:
        self.reg = reg

    def value(self, z: Any) -> float:
        return self.reg * float(np.linalg.norm(z, axis=1).sum())

    def prox(self, z: Any, step: float) -> Any:
        length = np.linalg.norm(z, axis=1, keepdims=True)
        return z * np.maximum(1.0 - step * self.reg / np.maximum(length, 1e-300), 0.0).astype(z.dtype)


class Huber(Loss):
    """Quadratic near zero, linear beyond ``width``."""

    centred = True

    def __init__(self, width: float = 1.0) -> None:
        self.width = width

    def pointwise(self, scores: Any, values: Any) -> Any:
        far = np.abs(scores.astype(np.float64) - values)
        near = np.minimum(far, self.width)
        return near * (far - 0.5 * near)

    def grad(self, scores: Any, values: Any) -> Any:
        return np.clip(scores - values, -self.width, self.width)


class Poisson(Loss):
    """``exp(s) - a s`` on stored cells; blank cells are pulled to a low rate."""

    def pointwise(self, scores: Any, values: Any) -> Any:
        return np.exp(scores.astype(np.float64)) - values * scores

    def grad(self, scores: Any, values: Any) -> Any:
        return np.exp(scores) - values

    def blank(self) -> Any:
        return 0.3, -1.0

    def link(self, scores: Any) -> Any:
        return np.exp(scores)


def popular(weight: float = 0.4, target: float = 0.0) -> Background:
    """A background with weights of rows and columns."""
    rng = np.random.default_rng(7)
    return Background(
        weight, target, row_weights=rng.uniform(0.2, 2.0, N), col_weights=rng.uniform(0, 2.0, M)
    )


MAPS: dict[str, tuple[Any, Any]] = {
    "identity": (Identity(), Identity()),
    "given": (Given(), Given(standardize=True)),
    "given-identity": (Given(), Identity()),
    "ones": (WithOnes(standardize=True), WithOnes()),
    "bias": (Identity(), Constant()),
    "shared": (IdentityWithOnes(), Given(standardize=True)),
    "fourier": (Fourier(3), Standardized(Fourier(2, gamma=0.5))),
    "nystrom": (Standardized(Nystrom(4)), Nystrom(3, whiten=False)),
    "learned-fourier": (Fourier(3, learnable=True), Standardized(Fourier(2, gamma=0.5, learnable=True))),
    "learned-nystrom": (Nystrom(4, learnable=True), Nystrom(3, learnable=True, whiten=False)),
    "learned-tanh": (Tanh(3), Identity()),
    "whitened": (Whitened(WithOnes(standardize=True)), Whitened()),
}
CORES = {"lowrank": LowRank(3), "full": Full()}
LOSSES: dict[str, Loss] = {
    "squared": Squared(),
    "background": Squared(weight=1.5, background=Background(0.4, 0.7)),
    "popular": Squared(background=popular()),
    "popular-target": Squared(background=popular(0.5, 0.6)),
    "biased": Biased(0.8),
    "shifted": Shifted(0.3),
    "logistic": Logistic(),
    "huber": Huber(0.7),
    "poisson": Poisson(),
}
REGULARISERS: dict[str, Regulariser] = {
    "ridge": Ridge(0.3),
    "degrees": Ridge(0.2, degree_scaling=0.6),
    "nuclear": Nuclear(0.3),
    "l1": L1(0.2),
    "box": Box(-0.5, 0.8, reg=0.1),
    "nonnegative": NonNegative(0.1),
    "rows": RowLasso(0.2),
}
CELLS = ("plain", "weighted")
SOLVERS = {
    "als": ALS(),
    "als-cg": ALS(method="cg", cg_steps=4),
    "augmented-als": AugmentedALS(),
    "ccd": CCD(),
    "cg": AlternatingCG(),
    "lowrank-prox": LowRankProx(),
    "block-prox": BlockProx(),
    "prox": ProxGradient(),
    "lbfgs": LBFGS(),
    "goal": GoalDirected(start_sweeps=2),
    "linesearch": AlternatingLineSearch(),
    "boxed": BoxedADMM(),
}
QUADRATIC = ("squared", "background", "popular", "popular-target", "biased", "shifted")
POPULAR = ("popular", "popular-target")
LEARNED = tuple(name for name in MAPS if name.startswith("learned"))

Case = tuple[str, str, str, str, str]


def undefined(maps: str, core: str, reg: str) -> bool:
    """Degrees scale what belongs to single rows or columns; a full core over features has no such thing."""
    sides = [m.by_entity for m in MAPS[maps]]
    return reg == "degrees" and core == "full" and sides[0] == sides[1]


GRID: list[Case] = [
    case
    for case in itertools.product(MAPS, CORES, LOSSES, REGULARISERS, CELLS)
    if not undefined(case[0], case[1], case[3])
]


def make_cells(
    loss: str, cells: str, rng: np.random.Generator, shape: tuple[int, int] = (N, M)
) -> Observations:
    """Small data that suits a loss; weights have a zero among them."""
    stored = rng.random(shape) < 0.4
    values = np.where(stored, rng.standard_normal(shape) + 0.5, np.nan)
    if loss in ("biased", "shifted"):
        values = np.where(stored, 1.0, np.nan)
    if loss == "logistic":
        values = np.where(stored, values > 0.5, np.nan)
    if loss == "poisson":
        values = np.where(stored, np.abs(values).round(), np.nan)
    weights = None
    if cells == "weighted":
        weights = rng.uniform(0.1, 2.0, shape) * (rng.random(shape) < 0.8)
    return Observations.from_dense(values, weights=weights)


def make_features(rng: np.random.Generator, n: int = N, m: int = M) -> tuple[Any, Any]:
    """Dense features of rows, sparse ones of columns."""
    rows = rng.standard_normal((n, D)) + 1.0
    cols = sparse.csr_array(rng.standard_normal((m, D)) * (rng.random((m, D)) < 0.7))
    return rows, cols


def make_problem(maps: str, core: str, loss: str, reg: str, cells: str = "plain", seed: int = 0) -> Problem:
    """A problem of one term."""
    rng = np.random.default_rng(seed)
    observations = make_cells(loss, cells, rng)
    rows, cols = make_features(rng)
    term = Term(*MAPS[maps], CORES[core], REGULARISERS[reg])
    return Problem(observations, [term], LOSSES[loss], row_features=rows, col_features=cols)


def random_state(problem: Problem, seed: int = 1) -> dict[str, Any]:
    """Arrays inside every bound of the list, at order-one scale."""
    rng = np.random.default_rng(seed)
    state = problem.start(rng)
    for key in problem.blocks(state):
        state[key] = rng.uniform(0.05, 0.75, state[key].shape)
    return state


def covering(cases: list[Case], seed: int = 0) -> list[Case]:
    """Few cases in which every pair of choices that occurs together does so at least once."""
    order = np.random.default_rng(seed).permutation(len(cases))
    seen: set[Any] = set()
    chosen = []
    for number in order:
        pairs = set(itertools.combinations(enumerate(cases[number]), 2))
        if not pairs <= seen:
            seen |= pairs
            chosen.append(cases[number])
    return chosen
