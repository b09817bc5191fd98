"""First models: accuracy on MovieLens-100K, optimality, exact recovery, memory at scale."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks._store import peak_memory_gib, store
from unseen import IMC, BiasModel, MatrixFactorization, SoftImpute
from unseen.datasets import load_ml100k, make_gimc_toy, make_imc, make_power_law
from unseen.metrics import mae, rmse
from unseen.model_selection import GridSearch, split_entries


def movielens_folds(
    names: tuple[str, ...] = ("BiasModel", "MatrixFactorization", "SoftImpute"),
) -> dict[str, Any]:
    """RMSE and MAE on u1..u5, clipped to 1..5, settings chosen on a tenth of each training fold."""
    data = load_ml100k()
    fold = data.cells["fold"]
    searches = {
        "BiasModel": (BiasModel(), {"reg": [1.0, 3.0, 5.0, 10.0]}),
        "MatrixFactorization": (
            MatrixFactorization(10, center="biases", random_state=0, max_iter=40, tol=1e-4, reg=1.0),
            {"reg": [10.0, 12.0, 14.0, 16.0]},
        ),
        "SoftImpute": (
            SoftImpute(center="biases", max_iter=100, tol=1e-5, random_state=0, reg=1.0, max_rank=None),
            {"reg": [8.0, 10.0, 12.0, 14.0]},
        ),
    }
    out: dict[str, Any] = {}
    for name in names:
        model, grid = searches[name]
        rows = []
        for k in range(1, 6):
            train, test = data.observations.select(fold != k), data.observations.select(fold == k)
            inside = split_entries(train, test_fraction=0.1, random_state=k)
            search = GridSearch(clone(model), grid, cv=inside).fit(train)
            predicted = np.clip(search.predict_entries(test.rows, test.indices, positions=True), 1.0, 5.0)
            rows.append(
                {
                    "fold": k,
                    "rmse": float(rmse(test.values, predicted)),
                    "mae": float(mae(test.values, predicted)),
                    "chosen": search.best_params_,
                }
            )
        out[name] = {
            "rmse": float(np.mean([row["rmse"] for row in rows])),
            "mae": float(np.mean([row["mae"] for row in rows])),
            "folds": rows,
        }
    return out


def soft_impute_against_cvxpy(seed: int = 0) -> dict[str, Any]:
    """A 300 x 200 nuclear-norm problem: our objective, a conic solver's, and a dual bound of our own."""
    import cvxpy as cp

    rng = np.random.default_rng(seed)
    full = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 200)) + 0.5 * rng.standard_normal(
        (300, 200)
    )
    seen, reg = rng.random(full.shape) < 0.3, 8.0
    filled = np.where(seen, full, 0.0)
    model = SoftImpute(reg, tol=1e-12, max_iter=3000, max_rank=None, center="none").fit(
        np.where(seen, full, np.nan)
    )
    ours = model.history_[-1]["objective"]
    z = cp.Variable(full.shape)
    fit = 0.5 * cp.sum_squares(cp.multiply(seen.astype(float), z - filled))
    problem = cp.Problem(cp.Minimize(fit + reg * cp.normNuc(z)))
    problem.solve(solver=cp.SCS, eps_abs=1e-7, eps_rel=1e-7, max_iters=20_000)
    residual = np.where(seen, full - model.row_factors_ @ model.col_factors_.T, 0.0)
    dual = residual * min(1.0, reg / np.linalg.norm(residual, 2))
    bound = float(np.sum(dual * filled) - 0.5 * np.sum(dual**2))
    return {
        "ours": ours,
        "cvxpy": float(problem.value),
        "relative_to_cvxpy": float((ours - problem.value) / problem.value),
        "relative_duality_gap": (ours - bound) / ours,
        "rank": model.rank_,
        "steps": model.n_iter_,
    }


def imc_recovery() -> dict[str, Any]:
    """Noiseless rank-5 matrix, 1000 x 1000, 50 exact features a side, 2% observed."""
    data = make_imc(1000, 1000, 50, 50, rank=5, density=0.02, noise=0.0, random_state=0)
    model = IMC(5, reg=1e-5, random_state=0, max_iter=100, tol=1e-9, center="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    truth = data.row_factors @ data.col_factors.T
    error = np.linalg.norm(model.row_factors_ @ model.col_factors_.T - truth) / np.linalg.norm(truth)
    return {"relative_error": float(error), "sweeps": model.n_iter_}


def gimc_toy(seeds: tuple[int, ...] = (0, 1, 2)) -> dict[str, Any]:
    """Toy of the GIMC paper, rank 50: relative error on unobserved cells, 20% observed."""
    errors = []
    for seed in seeds:
        data = make_gimc_toy(fraction=0.2, random_state=seed)
        model = IMC(50, reg=0.01, random_state=seed, max_iter=30, center="none")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
        truth = data.row_factors @ data.col_factors.T
        hidden = np.ones(truth.shape, dtype=bool)
        hidden[data.observations.rows, data.observations.indices] = False
        difference = (model.row_factors_ @ model.col_factors_.T - truth)[hidden]
        errors.append(float(np.linalg.norm(difference) / np.linalg.norm(truth[hidden])))
    return {"relative_error": errors}


def large_fit() -> dict[str, Any]:
    """2,000,000 x 500,000 with 20 million cells, rank 16, 3 sweeps; run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks.foundation import _large_fit; _large_fit()"],
        check=True,
        capture_output=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _large_fit() -> None:
    data = make_power_law(2_000_000, 500_000, 20_000_000, exponent=0.6, random_state=0)
    before = peak_memory_gib()
    start = time.perf_counter()
    model = MatrixFactorization(16, reg=1.0, max_iter=3, tol=0.0, random_state=0, center="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.observations)
    print(
        json.dumps(
            {
                "cells": int(data.observations.nnz),
                "dtype": str(data.observations.dtype),
                "peak_gib": peak_memory_gib(),
                "peak_gib_before_fit": before,
                "fit_seconds": time.perf_counter() - start,
                "objectives": [entry["objective"] for entry in model.history_],
            }
        )
    )


def main() -> None:
    results = {
        task.__name__: task()
        for task in (movielens_folds, soft_impute_against_cvxpy, imc_recovery, gimc_toy, large_fit)
    }
    print(json.dumps(results, indent=1))
    print(store("foundation", results))


if __name__ == "__main__":
    main()
