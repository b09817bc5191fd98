"""Side features by blocks: a sweep of IMC in memory, from disk and on two workers.

python -m benchmarks.distributed_features [--small]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._store import store
from benchmarks.distributed import local_cluster, sweep_seconds, write_cells

SIZE = {"n_rows": 20_000, "n_cols": 5_000, "mean_degree": 100.0, "n_parts": 4}
SMALL = {"n_rows": 2_000, "n_cols": 500, "mean_degree": 20.0, "n_parts": 2}
RANK, SWEEPS, FEATURES, BLOCKS = 16, 4, 50, 2


def write_features(path: Path, length: int, seed: int, name: str) -> None:
    """A Parquet table of random features in four row groups."""
    import pandas as pd

    numbers = np.random.default_rng(seed).standard_normal((length, FEATURES))
    table = pd.DataFrame(numbers.astype(np.float32), columns=[f"x{place}" for place in range(FEATURES)])
    table.assign(**{name: np.arange(length)}).to_parquet(path, row_group_size=-(-length // 4))


def measure(size: dict[str, Any], work: Path) -> dict[str, Any]:
    import pandas as pd
    from distributed import Client

    from unseen import IMC, Observations
    from unseen.distributed import DaskCompleter, DiskCompleter

    shape = (size["n_rows"], size["n_cols"])
    cells = work / "cells"
    count = write_cells(cells, **size)
    files = {f"{side}_features": work / f"{side}.parquet" for side in ("row", "col")}
    for seed, (side, length) in enumerate(zip(("row", "col"), shape, strict=True)):
        write_features(files[f"{side}_features"], length, seed, side)
    model = IMC(RANK, reg=1.0, max_iter=SWEEPS, tol=0.0, random_state=0, n_jobs=2, center="none")
    frame = pd.read_parquet(cells)
    target = Observations.from_triples(frame.row.values, frame.col.values, frame.value.values, shape)
    arrays = {
        name: pd.read_parquet(path).iloc[:, :FEATURES].to_numpy(np.float32) for name, path in files.items()
    }
    model.fit(target, **arrays)
    tables: dict[str, Any] = {name: str(path) for name, path in files.items()}
    start = time.perf_counter()
    disk = DiskCompleter(model, n_blocks=BLOCKS, n_jobs=2).fit(str(cells), shape=shape, **tables)
    disk_s = time.perf_counter() - start
    disk.close()
    with local_cluster(2) as cluster, Client(cluster) as client:
        start = time.perf_counter()
        dask = DaskCompleter(model, client=client, n_blocks=BLOCKS)
        dask.fit(str(cells), shape=shape, **tables)
        dask_s = time.perf_counter() - start
    objective = model.history_[-1]["objective"]
    return {
        "cells": count,
        "shape": shape,
        "rank": RANK,
        "features": FEATURES,
        "blocks": BLOCKS,
        "steps_a_sweep": float(np.mean([entry["cg_steps"] for entry in model.history_])),
        "memory_sweep_s": sweep_seconds(model.history_),
        "disk_sweep_s": sweep_seconds(disk.history_),
        "dask_sweep_s": sweep_seconds(dask.history_),
        "disk_fit_s": disk_s,
        "dask_fit_s": dask_s,
        "objective_difference": max(
            abs(fit.history_[-1]["objective"] / objective - 1.0) for fit in (disk, dask)
        ),
        "disk_equals_dask": disk.history_[-1]["objective"] == dask.history_[-1]["objective"],
    }


def main(small: bool = False) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="unseen-features-") as work:
        found = measure(SMALL if small else SIZE, Path(work))
    print(json.dumps(found, indent=1))
    if not small:
        print(store("distributed_features", found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a short run that stores nothing")
    main(parser.parse_args().small)
