"""Recovery from positives of which nine in ten are hidden, as the number of rows grows.

Two settings of the PU paper's synthetic experiment, rho = 0.9 and ten groups.

- Probabilities: a cell is positive with probability 0.9 inside its group and 0.1 across; what is wanted is
  the matrix of probabilities. Mean squared error of ShiftMC without bounds, of the same
  singular value thresholding without the shift at its best threshold ("direct"), of the best constant.
- Labels: a cell is positive exactly inside its group; what is wanted is the 0/1 matrix. Share of
  wrong cells of BiasMC at several weights, cut at one half and at the midpoint.

    python -m benchmarks pu_synthetic      writes benchmarks/stored/pu_synthetic.json
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks._store import store
from unseen import BiasMC, ShiftMC
from unseen.datasets import make_positives

RHO = 0.9
GROUPS = 10
SIZES = (250, 500, 1000, 2000)
ALPHAS = (0.5, 0.75, 0.9, 0.95, 0.975, 0.99)
SEEDS = 2


def scores(model: Any) -> np.ndarray:
    return model.row_factors_ @ model.col_factors_.T


def probabilities(n: int, seed: int) -> dict[str, Any]:
    data = make_positives(n, n, n_groups=GROUPS, inside=0.9, across=0.1, rho=RHO, random_state=seed)
    truth = data.row_factors @ data.col_factors.T
    seen = data.observations.nnz / n**2
    noise = 2 * np.sqrt(n * seen * (1 - seen))  # norm of what sampling adds to the seen matrix
    shifted = scores(ShiftMC(None, rho=RHO, bound="none", reg=2 * noise / (1 - RHO)).fit(data.observations))
    bounded = np.clip(shifted, 0, 1)
    direct = [
        scores(ShiftMC(None, rho=0.0, bound="none", reg=2 * noise * share).fit(data.observations))
        for share in (0.25, 0.5, 1.0)
    ]
    return {
        "n": n,
        "seed": seed,
        "shift": float(np.mean((shifted - truth) ** 2)),
        "shift_clipped": float(np.mean((bounded - truth) ** 2)),
        "direct": min(float(np.mean((values - truth) ** 2)) for values in direct),
        "constant": float(np.var(truth)),
    }


def labels(n: int, seed: int) -> dict[str, Any]:
    data = make_positives(n, n, n_groups=GROUPS, inside=1.0, across=0.0, rho=RHO, random_state=seed)
    truth = data.positives.toarray() != 0
    errors: dict[str, dict[str, float]] = {"half": {}, "midpoint": {}, "prior": {}}
    for alpha in ALPHAS:
        model = BiasMC(GROUPS + 1, alpha=alpha, reg="0.1max", init="svd", max_iter=12, random_state=seed)
        model.fit(data.observations)
        values = scores(model)
        seen = alpha * (1 - RHO)
        level = seen / (seen + (1 - alpha) * RHO)
        prior = np.quantile(values, 1 - truth.mean())
        for name, cut in (("half", 0.5), ("midpoint", level / 2), ("prior", prior)):
            errors[name][str(alpha)] = float(np.mean((values > cut) != truth))
    return {"n": n, "seed": seed, "all_negative": float(truth.mean()), "errors": errors}


def main() -> None:
    results: dict[str, Any] = {"rho": RHO, "groups": GROUPS, "probabilities": [], "labels": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in SIZES:
            for seed in range(SEEDS):
                for name, task in (("probabilities", probabilities), ("labels", labels)):
                    results[name].append(task(n, seed))
                    print(name, results[name][-1], flush=True)
    store("pu_synthetic", results)


if __name__ == "__main__":
    main()
