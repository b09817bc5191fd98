"""Small targets for the tests of fits by blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen import AugmentedMF, BiasMC, MatrixFactorization, Observations

N_ROWS, N_COLS = 300, 80


def frame(*, text: bool = True, seed: int = 0, n_cells: int = 4000) -> pd.DataFrame:
    """Distinct cells with ids that are not in the order of their numbers."""
    rng = np.random.default_rng(seed)
    keys = rng.choice(N_ROWS * N_COLS, n_cells, replace=False)
    rows, cols = keys // N_COLS, keys % N_COLS
    left, right = rng.standard_normal((N_ROWS, 3)), rng.standard_normal((N_COLS, 3))
    values = 2.0 + (left[rows] * right[cols]).sum(1) + 0.1 * rng.standard_normal(n_cells)
    users: Any = np.char.add("u", rows.astype(str)) if text else 7 * rows + 3
    return pd.DataFrame({"user": users.astype(object) if text else users, "item": cols * 11, "stars": values})


NAMES = {"row": "user", "col": "item", "value": "stars"}
PAIRS = {"row": "user", "col": "item", "value": None}

MODELS = {
    "mf": (MatrixFactorization(4, reg=1.0, max_iter=4, tol=0.0, random_state=1), NAMES),
    "mf-mean": (MatrixFactorization(4, reg=1.0, center="mean", max_iter=4, tol=0.0, random_state=1), NAMES),
    "mf-no-penalty": (MatrixFactorization(4, reg=0.0, max_iter=3, tol=0.0, random_state=1), NAMES),
    "amf": (
        AugmentedMF(
            4, center="mean", cross_component="model", max_iter=4, tol=0.0, solver="als", random_state=1
        ),
        NAMES,
    ),
    "bias-mc": (BiasMC(4, alpha=0.9, reg=0.5, max_iter=4, tol=0.0, random_state=1), PAIRS),
    "bias-mc-cg": (BiasMC(4, rho=0.6, reg=0.5, cg_steps=2, max_iter=4, tol=0.0, random_state=1), PAIRS),
}


def in_memory(model: Any, data: pd.DataFrame, names: dict[str, Any]) -> Any:
    """The same estimator fitted in memory."""
    cells = Observations.from_frame(data, **names)
    return type(model)(**model.get_params()).fit(cells)
