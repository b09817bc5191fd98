"""Regression with few large fitted values, by the alternating direction method of multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen.linalg.blocked import inner
from unseen.linalg.ridge import RidgeSystem
from unseen.typing import Features, FloatArray

__all__ = ["AdmmResult", "sparse_fit_regression"]


@dataclass(frozen=True)
class AdmmResult:
    """What :func:`sparse_fit_regression` found.

    Attributes
    ----------
    coefficients : array of shape (d, r)
        V.
    objectives : list of float
        Value of the objective at V after each round.
    primal, dual : list of float
        Boyd's residuals after each round, relative to their scales.
    converged : bool
        Whether both fell below the tolerance.
    """

    coefficients: FloatArray
    objectives: list[float]
    primal: list[float]
    dual: list[float]
    converged: bool


def sparse_fit_regression(
    X: Features,
    targets: FloatArray,
    reg: float,
    l1: float,
    *,
    rho: float = 1.0,
    tol: float = 1e-4,
    max_iter: int = 100,
    n_threads: int = 1,
) -> AdmmResult:
    """Minimise ``1/2 ||T - X V||^2 + reg/2 ||V||^2 + l1 ||X V||_1``.

    The fitted values are split off as ``Q = X V`` with a scaled dual B::

        V <- ((1 + rho) X'X + reg I)^-1 X' (T + rho (Q - B))
        Q <- soft(X V + B, l1 / rho)
        B <- B + X V - Q

    Q and B start at zero. Rounds end when ``||X V - Q||`` is below `tol` times the larger of
    ``||X V||`` and ``||Q||``, and ``rho ||X'(Q - Q_old)||`` below `tol` times ``rho ||X'B||``.

    Parameters
    ----------
    X : array or csr_array of shape (n, d)
        Features.
    targets : array of shape (n, r)
        T.
    reg, l1 : float
        Weights of the penalties. Without `l1` this is ridge, solved once.
    rho : float, default=1.0
        Weight of the split.
    tol : float, default=1e-4
        Tolerance.
    max_iter : int, default=100
        Limit of rounds.
    n_threads : int, default=1
        Threads.

    Returns
    -------
    AdmmResult

    Examples
    --------
    >>> import numpy as np
    >>> found = sparse_fit_regression(np.eye(2), np.array([[2.0], [0.1]]), reg=0.0, l1=1.0)
    >>> found.coefficients.round(3).ravel().tolist()
    [1.0, 0.0]
    """
    if l1 == 0.0:
        system = RidgeSystem(X, reg, n_threads=n_threads)
        coefficients = system.solve(targets)
        value = _objective(targets, system.predict(coefficients), coefficients, reg, 0.0)
        return AdmmResult(coefficients, [value], [0.0], [0.0], True)
    # Without a ridge the features may be dependent; a trace of one keeps the factor from breaking down.
    system = RidgeSystem(X, max(reg, 1e-10), scale=1.0 + rho, n_threads=n_threads)
    split = np.zeros_like(targets)
    dual = np.zeros_like(targets)
    current: FloatArray | None = None
    objectives: list[float] = []
    primal_path: list[float] = []
    dual_path: list[float] = []
    converged = False
    kind = targets.dtype.type
    for _ in range(max_iter):
        current = coefficients = system.solve(targets + kind(rho) * (split - dual), current)
        fitted = system.predict(coefficients)
        moved = fitted + dual
        last, split = split, np.sign(moved) * np.maximum(np.abs(moved) - kind(l1 / rho), kind(0.0))
        dual = moved - split
        off = _norm(fitted - split) / max(_norm(fitted), _norm(split), 1e-30)
        drift = rho * _norm(system.project(split - last)) / max(rho * _norm(system.project(dual)), 1e-30)
        objectives.append(_objective(targets, fitted, coefficients, reg, l1))
        primal_path.append(off)
        dual_path.append(drift)
        if off <= tol and drift <= tol:
            converged = True
            break
    assert current is not None
    return AdmmResult(current, objectives, primal_path, dual_path, converged)


def _norm(values: FloatArray) -> float:
    return float(np.sqrt(inner(values, values)))


def _objective(
    targets: FloatArray, fitted: FloatArray, coefficients: FloatArray, reg: float, l1: float
) -> float:
    miss = targets - fitted
    value = 0.5 * inner(miss, miss) + 0.5 * reg * inner(coefficients, coefficients)
    return value + (l1 * float(np.abs(fitted).sum(dtype=np.float64)) if l1 else 0.0)
