"""The toy problem of GIMC's figure 1, and one in which the features act through hidden waves.

Relative error on the unseen cells, against the truth without noise. A tenth of the seen cells chooses each
method's penalty; then the model is fitted to all of them. Random and learned maps have the same gamma and
start, and the same number of alternations over W and H.

    python -m benchmarks gimc_toy      writes benchmarks/stored/gimc_toy.json
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks._store import store
from unseen import GIMC, IMC, Fourier, MatrixFactorization
from unseen.datasets import Synthetic, make_fourier, make_gimc_toy

REGS = {"MC": (0.1, 1.0, 10.0), "IMC": (0.1, 1.0, 10.0), "other": (0.01, 0.1, 1.0)}
ALTERNATIONS = {"start_sweeps": 10, "max_iter": 40, "tol": 0.0}


def models(rank: int, m: int, gamma: float | str) -> dict[str, tuple[Any, bool]]:
    """Each method, and whether it takes features."""
    shared: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
    fixed, learned = (Fourier(m, gamma, learnable=flag) for flag in (False, True))
    raw: dict[str, Any] = {**shared, **ALTERNATIONS, "standardize": False}
    linear: dict[str, Any] = {**shared, "intercept": False, "standardize": False, "max_iter": 50}
    return {
        "MC": (MatrixFactorization(rank, max_iter=200, **shared), False),
        "IMC": (IMC(rank, **linear), True),
        "IMC-RFF": (GIMC(rank, row_map=fixed, col_map=fixed, **raw), True),
        "GIMC, armijo": (GIMC(rank, row_map=learned, col_map=learned, solver="armijo", **raw), True),
        "GIMC": (GIMC(rank, row_map=learned, col_map=learned, **raw), True),
    }


def fit(model: Any, data: Synthetic, cells: Any, with_features: bool) -> Any:
    sides = {"row_features": data.row_features, "col_features": data.col_features} if with_features else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(cells, **sides)


def measure(model: Any, data: Synthetic, with_features: bool) -> dict[str, float]:
    """Choose the penalty on a tenth of the seen cells, fit to all, compare with the truth elsewhere."""
    seen = data.observations
    held = np.zeros(seen.nnz, dtype=bool)
    held[np.random.default_rng(0).permutation(seen.nnz)[: seen.nnz // 10]] = True
    training, validation = seen.select(~held), seen.select(held)
    tried = []
    for reg in REGS.get(type_of(model), REGS["other"]):
        fitted = fit(model.set_params(reg=reg), data, training, with_features)
        off = fitted.predict_entries(validation.rows, validation.indices) - validation.values
        tried.append((float(off @ off), reg))
    reg = min(tried)[1]
    fitted = fit(model.set_params(reg=reg), data, seen, with_features)
    truth = data.row_factors @ data.col_factors.T
    unseen = np.ones(truth.shape, dtype=bool)
    unseen[seen.rows, seen.indices] = False
    off = (fitted.row_factors_ @ fitted.col_factors_.T - truth)[unseen]
    return {
        "reg": reg,
        "error": float(np.linalg.norm(off) / np.linalg.norm(truth[unseen])),
        "objective": float(fitted.history_[-1]["objective"]),
    }


def type_of(model: Any) -> str:
    return {"MatrixFactorization": "MC", "IMC": "IMC"}.get(type(model).__name__, "other")


def main() -> None:
    runs = []
    for share in (0.1, 0.3):
        for seed in (0, 1, 2):
            data = make_fourier(density=share, random_state=seed)
            for method, (model, with_features) in models(5, 20, 0.2).items():
                facts = {"toy": "waves", "share": share, "seed": seed, "method": method}
                runs.append({**facts, **measure(model, data, with_features)})
                print(runs[-1], flush=True)
    for share in (0.05, 0.1, 0.2, 0.3):
        data = make_gimc_toy(fraction=share, random_state=0)
        for method, (model, with_features) in models(20, 50, 0.003).items():
            if method != "GIMC, armijo":
                facts = {"toy": "figure 1", "share": share, "seed": 0, "method": method}
                runs.append({**facts, **measure(model, data, with_features)})
                print(runs[-1], flush=True)
        facts = {"toy": "figure 1", "share": share, "seed": 0, "method": "IMC, rank 50"}
        runs.append({**facts, **measure(models(50, 50, 0.003)["IMC"][0], data, True)})
        print(runs[-1], flush=True)
    store("gimc_toy", {"alternations": ALTERNATIONS, "regs": REGS, "runs": runs})


if __name__ == "__main__":
    main()
