"""Tables of docs/guide/distributed.md, from the stored results of the suites on fits by blocks."""

from __future__ import annotations

from typing import Any

from benchmarks._store import STORED, stored
from papers.display import markdown
from unseen.distributed import cluster_memory, local_memory

GIB = 2**30


def gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size < 100 * GIB else f"{size / GIB:,.0f} GiB"


def overhead_table(run: dict[str, Any]) -> str:
    rows = [
        ["seconds a sweep in memory, 2 threads", f"{run['memory_sweep_s']:.2f}"],
        ["seconds a sweep on 2 workers of 1 thread", f"{run['dask_sweep_s']:.2f}"],
        ["ratio", f"{run['ratio']:.2f}"],
        ["relative difference of the objectives", f"{abs(run['objective_difference']):.1e}"],
    ]
    for side, name in (("col", "columns"), ("row", "rows")):
        sent, expected = run["bytes_sent"][side], run["bytes_expected"][side]
        rows.append([f"MB sent for {name}, measured / formula", f"{sent / 1e6:.1f} / {expected / 1e6:.1f}"])
    return markdown([f"{run['cells']:,} cells, rank {run['rank']}", ""], rows)


def disk_table(run: dict[str, Any]) -> str:
    rows = [
        ["limit", gib(run["limit_bytes"])],
        ["peak memory, expected", gib(run["expected_peak_bytes"])],
        ["peak memory, measured", f"{run['peak_gib']:.1f} GiB"],
        ["blocks", " x ".join(map(str, run["blocks"]))],
        ["seconds to deal the cells out to blocks", f"{run['plan_s']:.0f}"],
        ["seconds of each sweep", ", ".join(f"{s:.0f}" for s in run["sweep_s"])],
    ]
    for side, name in (("col", "columns"), ("row", "rows")):
        moved, expected = run["bytes_moved"][side], run["bytes_expected"][side]
        rows.append([f"GB moved for {name}, measured / formula", f"{moved / 1e9:.2f} / {expected / 1e9:.2f}"])
    return markdown([f"{run['cells']:,} cells, rank {run['rank']}", ""], rows)


def features_table(run: dict[str, Any]) -> str:
    rows = [
        ["seconds a sweep in memory, 2 threads", f"{run['memory_sweep_s']:.2f}"],
        ["seconds a sweep from disk, 2 threads", f"{run['disk_sweep_s']:.2f}"],
        ["seconds a sweep on 2 workers of 1 thread", f"{run['dask_sweep_s']:.2f}"],
        ["steps of conjugate gradients a sweep", f"{run['steps_a_sweep']:.0f}"],
        ["relative difference of the objectives", f"{run['objective_difference']:.1e}"],
    ]
    head = f"{run['cells']:,} cells, {run['features']} features on each side, rank {run['rank']}"
    return markdown([head, ""], rows)


def spark_table(run: dict[str, Any]) -> str:
    last = str(run["sweeps"])
    rows = [
        [
            title,
            f"{run[f'{name}_s'][last]:.1f}",
            f"{run[f'{name}_sweep_s']:.2f}",
            f"{run[f'{name}_rmse']:.4f}",
        ]
        for name, title in (("spark", "Spark 3.5, local[2]"), ("unseen", "DaskCompleter, 2 workers"))
    ]
    return markdown(["", f"seconds, {last} sweeps", "seconds a sweep", "training RMSE"], rows)


def kill_table(run: dict[str, Any]) -> str:
    rows = []
    for kept, name in ((False, "no"), (True, "after every sweep")):
        runs = [entry for entry in run["runs"] if entry["checkpoint"] is kept]
        if runs:
            seconds = sorted(entry["seconds"] for entry in runs)
            rows.append(
                [
                    name,
                    len(runs),
                    sum(entry["killed"] for entry in runs),
                    sum(entry["equal"] for entry in runs),
                    f"{seconds[len(seconds) // 2]:.1f} (undisturbed {run['calm_s']:.1f})",
                ]
            )
    return markdown(["checkpoints", "fits", "worker killed", "equal to the last bit", "median seconds"], rows)


def sizing_table() -> str:
    """What the formulas give for some targets; no measurement."""
    rows = []
    for n_cells, shape, n_workers in (
        (10**8, (10**6, 10**5), 4),
        (10**9, (10**7, 10**6), 16),
        (10**10, (10**8, 10**6), 64),
        (10**11, (10**9, 10**7), 256),
    ):
        n_blocks = 4 * n_workers
        here = local_memory(n_cells, shape, 32, max(64, n_blocks)).peak
        there = cluster_memory(n_cells, shape, 32, n_blocks, n_workers).peak
        rows.append(
            [f"{n_cells:.0e}", " x ".join(f"{n:.0e}" for n in shape), gib(here), n_workers, gib(there)]
        )
    return markdown(["cells", "rows x columns", "from disk", "workers", "each worker"], rows)


def cost_table(run: dict[str, Any]) -> str:
    """10^11 cells on a stated cluster, from the seconds that a cell takes on one core."""
    cells, n_rows, n_cols, workers, cores, network = 10**11, 10**9, 10**7, 256, 16, 1.25e9
    width = 32 * 4
    compute = run["seconds_a_cell"] * cells / (workers * cores)
    # A row of 100 cells that are spread over the column blocks of all workers touches this many of them.
    spread = workers * (1.0 - (1.0 - 1.0 / workers) ** (cells / n_rows))
    to_cols, to_rows = n_rows * spread * width, min(n_cols * workers, cells) * width
    move = (to_cols + to_rows) / (workers * network)
    need = cluster_memory(cells, (n_rows, n_cols), 32, 4 * workers, workers).peak
    rows = [
        ["compute", f"{compute:.0f} s", f"{run['seconds_a_cell'] * 1e9:.0f} ns a cell and sweep on one core"],
        [
            "network",
            f"{move:.0f} s",
            f"{to_cols / 1e12:.1f} TB columns, {to_rows / 1e12:.1f} TB rows",
        ],
        ["memory of a worker", gib(need), "by the formula below"],
    ]
    return markdown(["10^11 cells, 10^9 x 10^7, rank 32", "each sweep", "from"], rows)


def tables() -> dict[str, str]:
    """Each table of the page."""
    results = stored("distributed") if (STORED / "distributed.json").exists() else {}
    makers = {"overhead": overhead_table, "disk": disk_table, "spark": spark_table, "kill": kill_table}
    found = {name: maker(results[name]) for name, maker in makers.items() if name in results}
    found |= {name: "Not measured yet." for name in makers if name not in results}
    found["cost"] = cost_table(results["overhead"]) if "overhead" in results else "Not measured yet."
    has_features = (STORED / "distributed_features.json").exists()
    found["features"] = (
        features_table(stored("distributed_features")) if has_features else "Not measured yet."
    )
    return found | {"sizing": sizing_table()}
