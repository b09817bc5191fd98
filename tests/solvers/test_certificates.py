"""Convex answers against a conic solver, and certificates that are true upper bounds."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from unseen import DirtyIMC, Maxide, MixedLinear, Observations, SoftImpute, SparseBilinear
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import spectral_bounds
from unseen.problem import Problem
from unseen.solvers import Certificate
from unseen.solvers.certificates import certify

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::unseen.exceptions.DataWarning"),
]

KINDS = ("plain", "deficient", "constant", "row-only")
REG, REG_E, RHO = 0.7, 1.5, 5.0


def instance(kind: str, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    n, m, p, q = 13, 10, 4, 3
    X, Y = rng.standard_normal((n, p)), rng.standard_normal((m, q))
    if kind == "deficient":
        X[:, 1], Y[:, 2] = X[:, 0], Y[:, 0] - Y[:, 1]
    if kind == "constant":
        X[:, 2] = 3.0
    full = X @ rng.standard_normal((p, q)) @ Y.T + 1.0 + 0.1 * rng.standard_normal((n, m))
    full += 0.5 * rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))
    target = np.where(rng.random((n, m)) < 0.55, full, np.nan)
    features = {"row_features": X}
    if kind != "row-only":
        features["col_features"] = Y
    return target, features


def design(features: np.ndarray | None, n: int) -> np.ndarray:
    """Standardised features and a constant; the identity and a constant without features."""
    if features is None:
        return np.hstack([np.eye(n), np.ones((n, 1))])
    spread = features.std(axis=0)
    varies = spread > 1e-12
    scaled = np.where(varies, (features - features.mean(axis=0)) / np.where(varies, spread, 1.0), 0.0)
    return np.hstack([scaled, np.ones((n, 1))])


def basis(features: np.ndarray | None, n: int) -> np.ndarray:
    if features is None:
        return np.eye(n)
    u, s, _ = np.linalg.svd(design(features, n), full_matrices=False)
    return u[:, s > 1e-8 * s[0]]


def optimum(objective: Any, constraints: Any = ()) -> float:
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return float(problem.value)


def reference(name: str, target: np.ndarray, features: dict[str, np.ndarray]) -> float:
    n, m = target.shape
    seen = (~np.isnan(target)).astype(float)
    M = np.nan_to_num(target)
    sides = (features.get("row_features"), n), (features.get("col_features"), m)
    Xa, Ya = (design(*side) for side in sides)
    A, B = (basis(*side) for side in sides)
    G = cp.Variable((Xa.shape[1], Ya.shape[1]))
    Z, E = cp.Variable((A.shape[1], B.shape[1])), cp.Variable((n, m))

    def fit(scores: Any) -> Any:
        return 0.5 * cp.sum_squares(cp.multiply(seen, scores) - M)

    mixed = 0.5 * cp.sum_squares(Xa @ G @ Ya.T - E) + REG * cp.sum(cp.abs(G)) + REG_E * cp.normNuc(E)
    if name in ("hard", "admm"):
        return optimum(mixed, [cp.multiply(seen, E) == M])
    return {
        "soft": lambda: optimum(mixed + RHO * fit(E)),
        "soft-free": lambda: optimum(
            0.5 * cp.sum_squares(Xa @ G @ Ya.T - E)
            + REG * (cp.sum(cp.abs(G[:-1])) + cp.sum(cp.abs(G[-1, :-1])))
            + REG_E * cp.normNuc(E)
            + RHO * fit(E)
        ),
        "maxide": lambda: optimum(fit(A @ Z @ B.T) + REG * cp.normNuc(Z)),
        "dirty": lambda: optimum(fit(A @ Z @ B.T + E) + REG * cp.normNuc(Z) + REG_E * cp.normNuc(E)),
        "bilinear": lambda: optimum(fit(Xa @ G @ Ya.T) + REG * cp.sum(cp.abs(G))),
        "bilinear-free": lambda: optimum(
            fit(Xa @ G @ Ya.T) + REG * (cp.sum(cp.abs(G[:-1])) + cp.sum(cp.abs(G[-1, :-1])))
        ),
        "soft-impute": lambda: optimum(fit(E) + REG_E * cp.normNuc(E)),
    }[name]()


LONG = {"max_iter": 6000, "random_state": 0}
PLAIN = {"center": "none", "max_rank": None}
MODELS = {
    "hard": MixedLinear(REG, REG_E, constraint="hard", **PLAIN, tol=1e-6, **LONG),
    "admm": MixedLinear(REG, REG_E, constraint="hard", **PLAIN, solver="admm", tol=1e-6, **LONG),
    "soft": MixedLinear(REG, REG_E, **PLAIN, constraint="soft", rho=RHO, tol=1e-13, **LONG),
    "soft-free": MixedLinear(
        REG, REG_E, **PLAIN, constraint="soft", rho=RHO, penalize_intercept=False, tol=1e-13, **LONG
    ),
    "maxide": Maxide(REG, center="none", tol=1e-14, **LONG),
    "dirty": DirtyIMC(REG, REG_E, **PLAIN, tol=1e-14, **LONG),
    "bilinear": SparseBilinear(REG, center="none", tol=1e-14, **LONG),
    "bilinear-free": SparseBilinear(REG, center="none", penalize_intercept=False, tol=1e-14, **LONG),
    "soft-impute": SoftImpute(REG_E, **PLAIN, tol=1e-14, **LONG),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_optimal_and_certified(name: str, kind: str) -> None:
    from sklearn.base import clone

    target, features = instance(kind, seed=KINDS.index(kind))
    if name == "soft-impute":
        features = {}
    best = reference(name, target, features)
    model = clone(MODELS[name]).fit(target, **features)
    certificate = model.certificate_
    assert isinstance(certificate, Certificate)
    assert certificate.exact
    assert abs(certificate.objective - best) <= 1e-6 * best
    assert certificate.bound <= best * (1 + 1e-8)
    assert certificate.relative_gap < 1e-3
    assert model.history_[-1]["gap"] == certificate.gap
    assert all("residual" in entry for entry in model.history_)
    # A fit that is stopped early is certified as well: worse, and still bounded from below.
    early = clone(MODELS[name]).set_params(max_iter=2).fit(target, **features).certificate_
    assert early.gap > certificate.gap
    assert early.bound <= best * (1 + 1e-8)
    assert early.objective >= best * (1 - 1e-8)


def test_any_point_is_certified(rng: np.random.Generator) -> None:
    """The bound holds for points that no solver made, and a wrong bound would be seen."""
    target, _ = instance("plain", 3)
    best = reference("soft-impute", target, {})
    model = SoftImpute(REG_E, max_rank=None, center="none").fit(target)
    problem = Problem(Observations.from_dense(target), model.terms_, model.loss_)
    for scale in (0.0, 0.1, 1.0, 10.0):
        state = {"0.row": scale * rng.standard_normal((13, 3)), "0.col": rng.standard_normal((10, 3))}
        certificate = certify(problem, state, rng)
        assert certificate is not None
        assert certificate.bound <= best * (1 + 1e-9)
        np.testing.assert_allclose(certificate.objective, problem.oracle(state), rtol=1e-10)
    # Control: the same bound with twice the penalty is a bound for another problem, not for this one.
    heavier = (
        SoftImpute(2 * REG_E, tol=1e-12, max_iter=3000, max_rank=None, center="none").fit(target).certificate_
    )
    assert heavier.bound > best


def test_distance_on_observed_cells_is_bounded() -> None:
    target, features = instance("plain", 1)
    exact = MODELS["soft"].fit(target, **features)
    rough = MixedLinear(REG, REG_E, **PLAIN, constraint="soft", rho=RHO, max_iter=3).fit(target, **features)
    rows, cols = np.nonzero(~np.isnan(target))
    apart = rough.predict_entries(rows, cols) - exact.predict_entries(rows, cols)
    rms = float(np.sqrt(np.mean(apart**2)))
    assert 0 < rms <= rough.certificate_.cell_rms


def test_models_that_are_not_convex_have_no_certificate() -> None:
    from unseen import MatrixFactorization

    target, _ = instance("plain", 0)
    assert MatrixFactorization(2, random_state=0, reg=1.0, center="none").fit(target).certificate_ is None


@pytest.mark.parametrize("seed", range(3))
def test_spectral_bounds_hold_where_the_matrix_is_large(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = rng.random((700, 600)) < 0.02
    cells = Observations.from_dense(np.where(seen, rng.standard_normal(seen.shape), np.nan))
    left = 0.05 * rng.standard_normal((700, 3))
    operator = LowRankPlusSparse(cells, cells.values, left, rng.standard_normal((600, 3)))
    exact = float(np.linalg.norm(operator.toarray(), 2))
    lower, upper, sure = spectral_bounds(operator, rng)
    assert not sure
    assert lower <= exact * (1 + 1e-9)
    assert exact <= upper <= 1.02 * exact
    # Control: after two steps the estimate is below the truth and only the theorem's margin covers it.
    lower, upper, _ = spectral_bounds(operator, rng, n_steps=2)
    assert lower < 0.999 * exact <= upper
