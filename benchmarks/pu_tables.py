"""Write the tables of docs/papers/pu.md from the stored results of the pu_* suites.

python -m benchmarks pu_tables
"""

from __future__ import annotations

from collections import defaultdict
from statistics import mean
from typing import Any

from benchmarks._tables import stored, table, three, write_page

PAGE = "papers/pu.md"


def grouped(runs: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Runs with the same values of some keys, in order of appearance."""
    out: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        out[tuple(run[key] for key in keys)].append(run)
    return out


def alpha_table(results: dict[str, Any]) -> str:
    rows = []
    for (setting, rho), runs in grouped(results["runs"], "setting", "rho").items():

        def average(key: str, runs: list[dict[str, Any]] = runs) -> float:
            return mean(run[key] for run in runs)

        lost = 1 - average("recall_chosen") / average("recall_best")
        recalls = [three(average(f"recall_{key}")) for key in ("chosen", "best", "theory", "half")]
        estimates = [f"{average('rho_estimated'):.2f}", f"{average('alpha_chosen'):.3f}"]
        rows.append([setting, rho, *estimates, *recalls, f"{100 * lost:.1f} %"])
    head = ["data", "rho", "rho_", "alpha_", "auto", "best", "(1 + rho)/2", "1/2", "lost"]
    return table(head, rows)


def probability_table(results: dict[str, Any]) -> str:
    rows = []
    for (n,), runs in grouped(results["probabilities"], "n").items():
        keys = ("shift", "shift_clipped", "direct", "constant")
        rows.append([n, *(three(mean(run[key] for run in runs)) for key in keys)])
    return table(["n", "ShiftMC", "ShiftMC, clipped", "direct", "constant"], rows)


def label_table(results: dict[str, Any]) -> str:
    rows = []
    for (n,), runs in grouped(results["labels"], "n").items():
        for cut in ("half", "midpoint", "prior"):
            errors = [run["errors"][cut] for run in runs]
            rows.append([n, cut, *(three(mean(error[alpha] for error in errors)) for alpha in errors[0])])
    return table(["n", "cut", *(f"alpha {alpha}" for alpha in results["labels"][0]["errors"]["half"])], rows)


def clustering_table(results: dict[str, Any]) -> str:
    rows = []
    keys = ("data", "whiten", "reg")
    for (data, whiten, reg), runs in grouped(results["runs"], *keys).items():
        row = [data, "orthonormal" if whiten else "standardised", reg]
        for method in ("unweighted", "weighted"):
            chosen = [run for run in runs if run["method"] == method]
            row += [
                three(mean(run[key] for run in chosen)) for key in ("cut_at_half", "cut_at_prior", "clusters")
            ]
        rows.append(row)
    measures = ("cut at 1/2", "cut at prior", "clusters")
    head = [
        "data",
        "features",
        "reg",
        *(f"MC-inductive, {m}" for m in measures),
        *(f"PU, {m}" for m in measures),
    ]
    return table(head, rows)


def tables() -> dict[str, str]:
    """Each table of the page."""
    synthetic = stored("pu_synthetic")
    return {
        "alpha": alpha_table(stored("pu_alpha")),
        "probabilities": probability_table(synthetic),
        "labels": label_table(synthetic),
        "clustering": clustering_table(stored("pu_clustering")),
    }


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
