"""Fits by blocks: overhead of a cluster, a target larger than memory, killed workers, and Spark beside them.

python -m benchmarks.distributed [overhead] [disk] [kill] [spark] [--small] runs some of the parts.
Large files go to a temporary folder, which is removed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._peers import run_child
from benchmarks._store import STORED, peak_memory_gib, store, stored

CELLS = {"n_rows": 200_000, "n_cols": 50_000, "mean_degree": 100.0, "n_parts": 16}
SMALL_CELLS = {"n_rows": 5_000, "n_cols": 2_000, "mean_degree": 40.0, "n_parts": 4}
LARGE = {"n_rows": 2_000_000, "n_cols": 500_000, "mean_degree": 100.5, "n_parts": 100}
SMALL_LARGE = {"n_rows": 40_000, "n_cols": 10_000, "mean_degree": 50.0, "n_parts": 10}
RANK, SWEEPS, REG, BLOCKS = 32, 5, 1.0, 4
TIMED_SWEEPS = 10
SPARK_REG = 0.1
PARTS = ("overhead", "disk", "kill", "spark")


def write_cells(folder: Path, *, n_rows: int, n_cols: int, mean_degree: float, n_parts: int) -> int:
    """A Parquet target with values of a planted model of rank 8 and noise, part by part."""
    import pyarrow as pa
    from pyarrow import parquet

    from unseen.datasets import iter_scale_bipartite

    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal((n, 8)).astype(np.float32) for n in (n_rows, n_cols))
    folder.mkdir(parents=True)
    total = 0
    parts = iter_scale_bipartite(n_rows, n_cols, mean_degree, n_parts, random_state=0)
    for number, (rows, cols) in enumerate(parts):
        noise = 0.3 * rng.standard_normal(len(rows), dtype=np.float32)
        values = np.einsum("ij,ij->i", left[rows], right[cols]) + noise
        table = pa.table({"row": rows.astype(np.int32), "col": cols.astype(np.int32), "value": values})
        parquet.write_table(table, folder / f"part-{number:04d}.parquet")
        total += len(rows)
    return total


def model_of(rank: int = RANK, sweeps: int = SWEEPS, reg: float = REG) -> Any:
    from unseen import MatrixFactorization

    return MatrixFactorization(rank, reg=reg, max_iter=sweeps, tol=0.0, random_state=0, center="none")


def sweep_seconds(*histories: list[dict[str, Any]]) -> float:
    """Median seconds of a sweep, the first one of each fit left out: it has no balancing."""
    return float(
        np.median(np.concatenate([np.diff([e["time_s"] for e in history]) for history in histories]))
    )


def local_cluster(n_workers: int, **options: Any) -> Any:
    from distributed import LocalCluster

    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50, "memory_limit": 0}
    return LocalCluster(n_workers=n_workers, processes=True, **{**settings, **options})


# -- overhead ---------------------------------------------------------------------------------


def overhead(small: bool, work: Path) -> dict[str, Any]:
    """A sweep on 2 workers of 1 thread against one in memory with 2 threads; bytes that were sent."""
    import pandas as pd
    from distributed import Client

    from unseen import Observations
    from unseen.distributed import DaskCompleter

    size = SMALL_CELLS if small else CELLS
    shape = (size["n_rows"], size["n_cols"])
    cells = work / "cells"
    count = write_cells(cells, **size)  # type: ignore[arg-type]
    frame = pd.read_parquet(cells)
    target = Observations.from_triples(frame.row.values, frame.col.values, frame.value.values, shape)
    del frame

    # Before and after the cluster's turn, since the speed of a machine drifts.
    in_memory = []

    def fit_in_memory() -> float:
        model = model_of(sweeps=TIMED_SWEEPS)
        model.n_jobs = 2
        start = time.perf_counter()
        in_memory.append(model.fit(target))
        return time.perf_counter() - start

    memory_fit_s = fit_in_memory()
    with local_cluster(2) as cluster, Client(cluster) as client:
        start = time.perf_counter()
        fit = DaskCompleter(model_of(sweeps=TIMED_SWEEPS), client=client, n_blocks=BLOCKS)
        fit.fit(str(cells), shape=shape)
        dask_fit_s = time.perf_counter() - start
        objective = fit.history_[-1]["objective"]
        # Counting takes time: in a fit of its own.
        counted = DaskCompleter(model_of(sweeps=3), client=client, n_blocks=BLOCKS)
        sent: list[int] = []
        watch(counted, client, sent)
        counted.fit(str(cells), shape=shape)
        expected = expected_bytes(counted)
    fit_in_memory()
    ours = sweep_seconds(fit.history_)
    theirs = sweep_seconds(*(model.history_ for model in in_memory))
    return {
        "cells": count,
        "shape": shape,
        "rank": RANK,
        "sweeps": TIMED_SWEEPS,
        "blocks": BLOCKS,
        "memory_sweep_s": theirs,
        "memory_fit_s": memory_fit_s,
        "dask_sweep_s": ours,
        "dask_fit_s": dask_fit_s,
        "ratio": ours / theirs,
        "objective_difference": objective / in_memory[0].history_[-1]["objective"] - 1.0,
        "bytes_sent": {
            side: int(np.median(sent[place + 2 :: 2])) for place, side in ((0, "col"), (1, "row"))
        },
        "bytes_expected": expected,
        "seconds_a_cell": theirs * 2 / count,
    }


def watch(fit: Any, client: Any, sent: list[int]) -> None:
    """Note the bytes that workers received in each half sweep."""
    from unseen.distributed.steps import solve_block

    make = fit._make_engine

    def received(dask_worker: Any) -> int:
        return sum(int(entry["total"]) for entry in dask_worker.transfer_incoming_log)

    def making(*args: Any) -> Any:
        made = make(*args)
        engine, each = made[0], made[0].each

        def working(side: str, function: Any, *inner: Any, **options: Any) -> Any:
            if function is not solve_block:
                return each(side, function, *inner, **options)
            before = sum(client.run(received).values())
            parts = each(side, function, *inner, **options)
            sent.append(sum(client.run(received).values()) - before)
            return parts

        engine.each = working
        return made

    fit._make_engine = making


def expected_bytes(fit: Any) -> dict[str, int]:
    """Bytes of a half sweep by the formula: factors that are touched on another worker than they are on."""
    return {side: fit._engine.bytes_to_send(side, fit._settings) for side in ("col", "row")}


# -- from disk --------------------------------------------------------------------------------


def disk(small: bool, work: Path) -> dict[str, Any]:
    """A target of 200 million cells within 4 GiB, in a process of its own."""
    size = SMALL_LARGE if small else LARGE
    cells = work / "large"
    start = time.perf_counter()
    child("write_cells", folder=str(cells), **size)
    generated = time.perf_counter() - start
    memory = "600MiB" if small else "4GiB"
    facts = child("fit_from_disk", cells=str(cells), work=str(work), memory=memory, n_jobs=2)
    return {**facts, "shape": (size["n_rows"], size["n_cols"]), "generate_s": generated}


def fit_from_disk(cells: str, work: str, memory: str, n_jobs: int) -> dict[str, Any]:
    """Fit and measure; called in a process of its own."""
    from unseen.distributed import DiskCompleter
    from unseen.distributed.sizing import parse_bytes
    from unseen.distributed.steps import solve_block

    start = time.perf_counter()
    fit = DiskCompleter(model_of(sweeps=2), memory=memory, work_folder=work, n_jobs=n_jobs, verbose=0)
    moved: list[int] = []
    make = fit._make_engine

    def making(*args: Any) -> Any:
        made = make(*args)
        engine, each = made[0], made[0].each
        planned.append(time.perf_counter() - start)

        def working(side: str, function: Any, *inner: Any, **options: Any) -> Any:
            before = engine.bytes_moved
            parts = each(side, function, *inner, **options)
            if function is solve_block:
                moved.append(engine.bytes_moved - before)
            return parts

        engine.each = working
        return made

    planned: list[float] = []
    fit._make_engine = making  # type: ignore[method-assign]
    fit.fit(cells)
    seconds = [entry["time_s"] for entry in fit.history_]
    touched = {
        side: sum(len(fit._engine.held(side, b, "cells").touched) for b in range(fit.n_blocks_[place]))
        for place, side in enumerate(("row", "col"))
    }
    # Cells by index and value, touched columns by number and factor, own rows by place and factor.
    expected = {
        side: fit.n_cells_ * 8 + touched[side] * (8 + RANK * 4) + fit.shape_[place] * (4 + RANK * 4)
        for place, side in enumerate(("row", "col"))
    }
    facts = {
        "cells": fit.n_cells_,
        "rank": RANK,
        "blocks": fit.n_blocks_,
        "limit_bytes": parse_bytes("memory", memory),
        "expected_peak_bytes": fit.memory_need_.peak,
        "peak_gib": peak_memory_gib(),
        "plan_s": planned[0],
        "sweep_s": [seconds[0], *np.diff(seconds).tolist()],
        "objective": [entry["objective"] for entry in fit.history_],
        "bytes_moved": {"col": moved[-2], "row": moved[-1]},
        "bytes_expected": expected,
    }
    fit.close()
    return facts


def child(function: str, **arguments: Any) -> Any:
    """Run a function of this file in a new process and take what it returns."""
    code = (
        "import json, warnings; from pathlib import Path; import benchmarks.distributed as b\n"
        "warnings.simplefilter('ignore')\n"
        f"arguments = {arguments!r}\n"
        "arguments = {k: Path(v) if k == 'folder' else v for k, v in arguments.items()}\n"
        f"print(json.dumps(b.{function}(**arguments)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


# -- killed workers ---------------------------------------------------------------------------


def kill(small: bool, work: Path) -> dict[str, Any]:
    """Fits in which a random worker is killed by its own process id at a random time."""
    from distributed import Client

    from unseen.distributed import DaskCompleter

    cells = work / "kill"
    write_cells(cells, **SMALL_CELLS)  # type: ignore[arg-type]
    shape = (SMALL_CELLS["n_rows"], SMALL_CELLS["n_cols"])
    runs = 2 if small else 20
    rng = random.Random(0)
    results = []

    def fitted(client: Any, checkpoint: str | None) -> tuple[Any, float]:
        start = time.perf_counter()
        fit = DaskCompleter(model_of(8, 8), client=client, n_blocks=4, checkpoint=checkpoint)
        factors = fit.fit(str(cells), shape=shape).to_local().row_factors_
        return factors, time.perf_counter() - start

    with local_cluster(3) as cluster, Client(cluster) as client:
        fitted(client, None)  # a first fit pays for what workers import
        expected, calm_s = fitted(client, None)
    for run in range(runs):
        # A cluster for each run: who is killed may not come back, and the next run should have three workers.
        with local_cluster(3) as cluster, Client(cluster) as client:
            fitted(client, None)
            victim, delay = rng.choice(list(client.run(os.getpid).values())), rng.uniform(0.1, 0.9) * calm_s
            timer = threading.Timer(delay, os.kill, (victim, signal.SIGKILL))
            timer.start()
            checkpoint = str(work / f"states-{run}") if run % 2 else None
            factors, seconds = fitted(client, checkpoint)
            killed = timer.finished.is_set()  # while the fit went on
            timer.join()
        results.append(
            {
                "delay_s": delay,
                "seconds": seconds,
                "checkpoint": checkpoint is not None,
                "killed": killed,
                "equal": bool(np.array_equal(factors, expected)),
            }
        )
        print(results[-1], flush=True)
    return {"calm_s": calm_s, "runs": results}


# -- Spark ------------------------------------------------------------------------------------


def spark(small: bool, work: Path) -> dict[str, Any]:
    """Spark's ALS in local mode on the same cells and cores."""
    import pandas as pd
    from distributed import Client

    from unseen.distributed import DaskCompleter

    size = SMALL_CELLS if small else CELLS
    shape = (size["n_rows"], size["n_cols"])
    cells = work / "spark-cells"
    count = write_cells(cells, **size)  # type: ignore[arg-type]
    folder = work / "spark"
    folder.mkdir()
    # Spark multiplies its penalty with the cells of each row; this is ours for a row of mean length.
    # It is small, so that what both minimise is the error on the cells.
    reg = SPARK_REG / size["mean_degree"]
    request = {
        "cells": str(cells),
        "work": str(folder),
        "rank": RANK,
        "sweeps": [1, 1, SWEEPS],  # the first fit also pays for what is compiled and loaded
        "reg": reg,
        "blocks": BLOCKS,
        "cores": 2,
        "memory": "8g",
    }
    theirs = run_child("pyspark", Path(__file__).parent / "_spark_child.py", request, n_threads=2)["seconds"]
    frame = pd.read_parquet(cells)
    spark_rmse = rmse(frame, *(spark_factors(folder / f"{side}-factors", n)
                               for side, n in zip(("row", "col"), shape, strict=True)))  # fmt: skip
    with local_cluster(2) as cluster, Client(cluster) as client:
        ours = {}
        for sweeps in (1, 1, SWEEPS):
            start = time.perf_counter()
            fit = DaskCompleter(model_of(sweeps=sweeps, reg=SPARK_REG), client=client, n_blocks=BLOCKS)
            fit.fit(str(cells), shape=shape)
            ours[str(sweeps)] = time.perf_counter() - start
        local = fit.to_local()
    return {
        "cells": count,
        "shape": shape,
        "rank": RANK,
        "sweeps": SWEEPS,
        "reg": SPARK_REG,
        "spark_reg": reg,
        "spark_s": theirs,
        "unseen_s": ours,
        "spark_sweep_s": (theirs[str(SWEEPS)] - theirs["1"]) / (SWEEPS - 1),
        "unseen_sweep_s": (ours[str(SWEEPS)] - ours["1"]) / (SWEEPS - 1),
        "spark_rmse": spark_rmse,
        "unseen_rmse": rmse(frame, local.row_factors_, local.col_factors_),
    }


def spark_factors(path: Path, length: int) -> Any:
    import pandas as pd

    frame = pd.read_parquet(path)
    out = np.zeros((length, RANK), dtype=np.float32)
    out[frame["id"].to_numpy()] = np.stack(frame["features"].to_list())
    return out


def rmse(frame: Any, left: Any, right: Any) -> float:
    """Root mean squared error on the training cells."""
    rows, cols, values = (frame[name].to_numpy() for name in ("row", "col", "value"))
    total = 0.0
    for start in range(0, len(rows), 1 << 20):
        part = slice(start, start + (1 << 20))
        scores = np.einsum("ij,ij->i", left[rows[part]], right[cols[part]])
        total += float(np.sum((scores - values[part]).astype(np.float64) ** 2))
    return float(np.sqrt(total / len(rows)))


def main(names: tuple[str, ...] = PARTS, small: bool = False) -> None:
    warnings.simplefilter("ignore")
    suite = "distributed_small" if small else "distributed"
    results = {}
    if (STORED / f"{suite}.json").exists():
        results = {key: value for key, value in stored(suite).items() if key != "environment"}
    for name in names:
        with tempfile.TemporaryDirectory(prefix="unseen-bench-") as work:
            results[name] = globals()[name](small, Path(work))
        print(name, json.dumps(results[name], indent=1))
        if not small:
            print(store(suite, results))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="a short run that stores nothing")
    arguments = parser.parse_args()
    main(tuple(arguments.names), arguments.small)
