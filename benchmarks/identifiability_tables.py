"""Write the tables of docs/guide/diagnose.md from the stored results of the suite identifiability.

python -m benchmarks identifiability_tables
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from benchmarks._tables import stored, table, three, write_page

PAGE = "guide/diagnose.md"
MODEL = "MatrixFactorization"


def runs_of(name: str) -> list[dict[str, Any]]:
    return [run for run in stored("identifiability")["data"][name] if run["model"] == MODEL]


def measure_table(model: str) -> str:
    """Rank correlation (mean, least of all splits) and error without the least determined fifth."""
    data = {
        name: [run for run in runs if run["model"] == model]
        for name, runs in stored("identifiability")["data"].items()
    }
    first = next(iter(data.values()))
    rows = []
    for measure in first[0]["measures"]:
        row = [measure]
        for runs in data.values():
            found = [run["measures"][measure] for run in runs]
            ranks = [entry["spearman"] for entry in found]
            row += [f"{three(mean(ranks))} ({three(min(ranks))})"]
            row += [f"{mean(entry['kept_rmse']['0.8'] for entry in found):.3f}"]
        rows.append(row)
    everything = ["(all cells)"]
    for runs in data.values():
        everything += ["", f"{mean(run['rmse'] for run in runs):.3f}"]
    head = ["measure"]
    for name in data:
        head += [f"{name}: rank correlation", f"{name}: RMSE of the best 80%"]
    return table(head, [everything, *rows])


def curve_table() -> str:
    """Expected and actual error in tenths of the held-out cells, by the reported spread."""
    names = list(stored("identifiability")["data"])
    head = ["tenth"]
    for name in names:
        head += [f"{name}: expected error", f"{name}: RMSE"]
    rows = []
    for place in range(stored("identifiability")["settings"]["n_bins"]):
        row = [str(place + 1)]
        for name in names:
            points = [run["curve"][place] for run in runs_of(name)]
            row += [f"{mean(point[key] for point in points):.3f}" for key in ("reported", "rmse")]
        rows.append(row)
    return table(head, rows)


def tables() -> dict[str, str]:
    return {"measures": measure_table(MODEL), "baseline": measure_table("BiasModel"), "curve": curve_table()}


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
