"""The toy problem of GIMC's figure 1, and one in which the features act through hidden waves.

Relative error on the unseen cells, against the truth without noise. A tenth of the seen cells chooses each
method's penalty; then the model is fitted to all of them. Random and learned maps have the same gamma and
start, and the same number of alternations over W and H.

    python -m benchmarks gimc_toy      writes benchmarks/stored/gimc_toy.json

The file is written after each model, and a run goes on where the last one ended.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._store import STORED, store
from unseen import GIMC, IMC, Fourier, MatrixFactorization
from unseen.datasets import Synthetic, make_fourier, make_gimc_toy

REGS = {
    "waves": {"MC": (0.1, 1.0, 10.0), "IMC": (0.1, 1.0, 10.0), "other": (0.01, 0.1, 1.0)},
    "figure 1": {"MC": (10.0, 30.0, 100.0), "IMC": (10.0, 100.0, 1000.0), "other": (0.3, 3.0, 30.0)},
}
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


def measure(
    model: Any, data: Synthetic, with_features: bool, regs: dict[str, tuple[float, ...]]
) -> dict[str, float]:
    """Choose the penalty on a tenth of the seen cells, fit to all, compare with the truth elsewhere."""
    seen = data.observations
    held = np.zeros(seen.nnz, dtype=bool)
    held[np.random.default_rng(0).permutation(seen.nnz)[: seen.nnz // 10]] = True
    training, validation = seen.select(~held), seen.select(held)
    tried = []
    for reg in regs.get(type_of(model), regs["other"]):
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


def settings() -> Iterator[tuple[dict[str, Any], Synthetic, Any, bool]]:
    """What is run: its name, the data, the model, and whether it takes features."""
    for share, seed in itertools.product((0.1, 0.3), (0, 1, 2)):
        data = make_fourier(density=share, random_state=seed)
        for method, (model, with_features) in models(5, 20, 0.2).items():
            yield {"toy": "waves", "share": share, "seed": seed, "method": method}, data, model, with_features
    for share in (0.05, 0.1, 0.2, 0.3):
        data = make_gimc_toy(fraction=share, random_state=0)
        chosen = models(20, 50, 0.003)
        del chosen["GIMC, armijo"]
        chosen["IMC, rank 50"] = models(50, 50, 0.003)["IMC"]
        for method, (model, with_features) in chosen.items():
            yield {"toy": "figure 1", "share": share, "seed": 0, "method": method}, data, model, with_features


def main() -> None:
    path = STORED / "gimc_toy.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    for name, data, model, with_features in settings():
        if any(name.items() <= run.items() for run in runs):
            continue
        runs.append({**name, **measure(model, data, with_features, REGS[name["toy"]])})
        print(runs[-1], flush=True)
        store("gimc_toy", {"alternations": ALTERNATIONS, "regs": REGS, "runs": runs})


if __name__ == "__main__":
    main()
