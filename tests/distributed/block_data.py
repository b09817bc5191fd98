"""Small targets for the tests of fits by blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from unseen import IMC, AugmentedMF, BiasIMC, BiasMC, MatrixFactorization, Observations

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
    "mf": (MatrixFactorization(4, reg=1.0, max_iter=4, tol=0.0, random_state=1, center="none"), NAMES),
    "mf-mean": (MatrixFactorization(4, reg=1.0, center="mean", max_iter=4, tol=0.0, random_state=1), NAMES),
    "mf-no-penalty": (
        MatrixFactorization(4, reg=0.0, max_iter=3, tol=0.0, random_state=1, center="none"),
        NAMES,
    ),
    "amf": (
        AugmentedMF(
            4,
            reg=0.02,
            center="mean",
            cross_component="model",
            max_iter=4,
            tol=0.0,
            solver="als",
            random_state=1,
        ),
        NAMES,
    ),
    "bias-mc": (BiasMC(4, alpha=0.9, reg=0.5, max_iter=4, tol=0.0, random_state=1, cg_steps=None), PAIRS),
    "bias-mc-cg": (BiasMC(4, rho=0.6, reg=0.5, cg_steps=2, max_iter=4, tol=0.0, random_state=1), PAIRS),
}


WITH_FEATURES = {
    "imc": (IMC(3, reg=0.3, center="mean", max_iter=3, tol=0.0, random_state=1), NAMES),
    "imc-plain": (
        IMC(
            3, reg=0.1, intercept=False, standardize=False, max_iter=3, tol=0.0, random_state=1, center="none"
        ),
        NAMES,
    ),
    "bias-imc": (BiasIMC(3, alpha=0.9, reg=0.3, cg_steps=6, max_iter=3, tol=0.0, random_state=1), PAIRS),
}


def side_features(data: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Tables of features of rows and columns, lines in no order, with one id that the cells do not have."""
    tables = {}
    for seed, (side, name, count) in enumerate((("row", "user", 6), ("col", "item", 4))):
        rng = np.random.default_rng(seed)
        ids = np.unique(data[name].to_numpy())
        ids = np.append(ids, "zz" if ids.dtype == object else 10**6).astype(ids.dtype)
        numbers = rng.standard_normal((len(ids), count)) * np.arange(1, count + 1) + np.arange(count)
        table = pd.DataFrame({name: ids} | {f"{side}{place}": numbers[:, place] for place in range(count)})
        tables[f"{side}_features"] = table.sample(frac=1.0, random_state=seed)
    return tables


def in_memory(
    model: Any, data: pd.DataFrame, names: dict[str, Any], features: dict[str, pd.DataFrame] | None = None
) -> Any:
    """The same estimator fitted in memory; tables of features are put into the order of the ids."""
    cells = Observations.from_frame(data, **names)
    ids = {"row_features": cells.row_ids, "col_features": cells.col_ids}
    arrays = {
        argument: table.set_index(table.columns[0]).loc[ids[argument].values.tolist()]
        for argument, table in (features or {}).items()
    }
    return clone(model).fit(cells, **arrays)


def disk(model: Any, **options: Any) -> Any:
    """A completer that works from files, in three blocks."""
    from unseen.distributed import DiskCompleter

    return DiskCompleter(model, **{"n_blocks": 3, "dtype": "float64", **options})


def cluster_of(n_workers: int, **options: Any) -> Any:
    """A Dask cluster on this machine, in threads unless processes are asked for."""
    from distributed import LocalCluster

    settings = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    return LocalCluster(n_workers=n_workers, **{**settings, **options})
