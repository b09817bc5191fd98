"""Ridge regression on many targets, and the regression with sparse fitted values."""

from __future__ import annotations

from typing import Any

import cvxpy
import numpy as np
import pytest
from scipy import sparse

from unseen.linalg.admm import sparse_fit_regression
from unseen.linalg.blocked import inner
from unseen.linalg.cg import column_products, conjugate_gradients
from unseen.linalg.ridge import RidgeSystem, feature_gram, ridge
from unseen.parallel import one_blas_thread

METHODS = ("primal", "dual", "cg")


def problem(n: int, d: int, *, dense: bool, dtype: Any = np.float64) -> tuple[Any, Any]:
    rng = np.random.default_rng(n + d)
    X = sparse.random_array((n, d), density=0.3, rng=rng, dtype=np.float64, format="csr")
    X.data -= 0.3
    T = rng.standard_normal((n, 4))
    return (X.toarray() if dense else X).astype(dtype), T.astype(dtype)


def optimum(X: Any, T: Any, reg: float, scale: float = 1.0) -> Any:
    A = X.toarray() if sparse.issparse(X) else X
    return np.linalg.solve(scale * A.T @ A + reg * np.eye(A.shape[1]), A.T @ T)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_every_method_solves_the_normal_equations(method: Any, dense: bool, shape: tuple[int, int]) -> None:
    X, T = problem(*shape, dense=dense)
    system = RidgeSystem(X, 0.5, scale=1.5, method=method, tol=1e-10)
    assert np.allclose(system.solve(T), optimum(X, T, 0.5, 1.5), atol=1e-8)
    assert not np.allclose(system.solve(T), optimum(X, T, 0.6, 1.5), atol=1e-8)  # the check can fail


@pytest.mark.parametrize("method", METHODS)
def test_float32_stays_float32(method: Any) -> None:
    X, T = problem(30, 10, dense=False, dtype=np.float32)
    found = RidgeSystem(X, 1.0, method=method).solve(T)
    assert found.dtype == np.float32
    assert np.allclose(found, optimum(X.astype(np.float64), T.astype(np.float64), 1.0), atol=1e-4)


def test_the_smaller_side_is_factorised_and_large_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, tall = problem(12, 40, dense=False)[0], problem(40, 12, dense=False)[0]
    assert RidgeSystem(wide, 1.0).method == "dual"
    assert RidgeSystem(tall, 1.0).method == "primal"
    monkeypatch.setattr("unseen.linalg.ridge.DIRECT_SIZE", 5)
    assert RidgeSystem(tall, 1.0).method == "cg"
    assert RidgeSystem(tall, 1.0, limit=12).method == "primal"


def test_a_start_at_the_solution_needs_no_steps() -> None:
    X, T = problem(40, 12, dense=False)
    system = RidgeSystem(X, 1.0, method="cg")
    found = system.solve(T)
    assert system.n_steps > 1
    system.solve(T, found)
    assert system.n_steps <= 1


@pytest.mark.parametrize("method", METHODS)
def test_same_bits_on_any_number_of_threads(method: Any) -> None:
    X, T = problem(300, 50, dense=False)
    with one_blas_thread():
        one, three = (RidgeSystem(X, 1.0, method=method, n_threads=n).solve(T) for n in (1, 3))
    assert np.array_equal(one, three)


@pytest.mark.parametrize("product", [column_products, inner])
def test_conjugate_gradients_solve_a_system_and_leave_a_flat_one_alone(product: Any) -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((8, 8))
    matrix, right = root @ root.T + np.eye(8), rng.standard_normal((8, 3))
    right[:, 1] = 0.0
    start = rng.standard_normal((8, 3))
    before = start.copy()
    found, steps = conjugate_gradients(
        lambda x: matrix @ x,
        right - matrix @ start,
        start=start,
        goal=1e-24,
        max_iter=200,
        product=product,
        preconditioner=1.0 / np.diag(matrix)[:, None],
    )
    assert np.allclose(found, np.linalg.solve(matrix, right), atol=1e-9)
    assert 1 < steps < 200
    assert np.array_equal(start, before)
    assert conjugate_gradients(lambda x: 0.0 * x, right, goal=0.0, max_iter=9, product=product)[1] == 0
    once, _ = conjugate_gradients(lambda x: matrix @ x, right, goal=1e-24, max_iter=1, product=product)
    assert not np.allclose(once, np.linalg.solve(matrix, right), atol=1e-3)


@pytest.mark.parametrize("cells_at_once", [1 << 20, 700])
def test_gram_of_short_and_of_long_rows(cells_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unseen.linalg.ridge.CELLS_AT_ONCE", cells_at_once)
    rng = np.random.default_rng(0)
    for density in (0.02, 0.9):
        X = sparse.random_array((500, 60), density=density, rng=rng, format="csr")
        found = feature_gram(X)
        assert np.allclose(found, X.toarray().T @ X.toarray())
        assert np.array_equal(found, found.T)  # the Cholesky factor is taken from either triangle


def convex_solution(X: Any, T: Any, reg: float, l1: float) -> float:
    V = cvxpy.Variable((X.shape[1], T.shape[1]))
    fitted = X @ V
    value = (
        0.5 * cvxpy.sum_squares(T - fitted)
        + 0.5 * reg * cvxpy.sum_squares(V)
        + l1 * cvxpy.sum(cvxpy.abs(fitted))
    )
    return float(cvxpy.Problem(cvxpy.Minimize(value)).solve(solver="CLARABEL"))


def test_admm_reaches_the_optimum_of_a_convex_solver() -> None:
    X, T = problem(15, 6, dense=True)
    found = sparse_fit_regression(X, T, reg=0.3, l1=0.4, tol=1e-7, max_iter=3000)
    best = convex_solution(X, T, 0.3, 0.4)
    assert found.converged
    assert found.objectives[-1] == pytest.approx(best, rel=1e-5)
    ridge = sparse_fit_regression(X, T, reg=0.3, l1=0.0)
    fitted = X @ ridge.coefficients
    miss = 0.5 * np.sum((T - fitted) ** 2) + 0.15 * np.sum(ridge.coefficients**2) + 0.4 * np.abs(fitted).sum()
    assert miss > best * (1 + 1e-4)  # ridge is not the optimum of this objective


def test_admm_residuals_fall_and_the_cap_is_told() -> None:
    X, T = problem(30, 8, dense=False)
    found = sparse_fit_regression(X, T, reg=1.0, l1=0.1, max_iter=1000)
    assert found.converged
    assert found.primal[-1] <= 1e-4
    assert found.dual[-1] <= 1e-4
    assert not sparse_fit_regression(X, T, reg=1.0, l1=0.1, max_iter=2).converged


def test_a_large_l1_makes_all_fitted_values_small() -> None:
    X, T = problem(30, 8, dense=False)
    mild = sparse_fit_regression(X, T, reg=1.0, l1=0.01).coefficients
    strong = sparse_fit_regression(X, T, reg=1.0, l1=10.0).coefficients
    assert np.abs(X @ strong).max() < 1e-2 < np.abs(X @ mild).max()


@pytest.mark.parametrize("intercept", [False, True])
def test_features_far_from_zero_lose_little_in_float32(intercept: bool) -> None:
    """A Gram matrix in float32 keeps nothing of what tells such rows apart."""
    rng = np.random.default_rng(0)
    X = (1000.0 + rng.standard_normal((2000, 12))).astype(np.float32)
    Y = (X - 1000.0) @ rng.standard_normal((12, 3))
    found, offsets = ridge(X, Y, 1.0, intercept=intercept)
    best, best_offsets = ridge(X.astype(np.float64), Y, 1.0, intercept=intercept)
    gap = (X.astype(np.float64) - 1000.0) @ (found - best)
    assert np.abs(gap).max() < 0.01 * np.abs(Y).max()
    assert (offsets != 0).any() == (best_offsets != 0).any() == intercept
