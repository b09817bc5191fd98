"""Write the tables of docs/papers/pu.md from the stored results of the pu_* suites.

python -m benchmarks pu_tables
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "papers" / "pu.md"
STORED = Path(__file__).parent / "stored"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def grouped(runs: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Runs with the same values of some keys, in order of appearance."""
    out: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        out[tuple(run[key] for key in keys)].append(run)
    return out


def three(value: float) -> str:
    """Three digits after the point, the zero before it left out."""
    return f"{value:.3f}".removeprefix("0")


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


TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "alpha": ("pu_alpha", alpha_table),
    "probabilities": ("pu_synthetic", probability_table),
    "labels": ("pu_synthetic", label_table),
    "clustering": ("pu_clustering", clustering_table),
}


def filled(page: str) -> str:
    """The page with every marked table replaced by the stored results."""
    for name, (stored, make) in TABLES.items():
        text = make(json.loads((STORED / f"{stored}.json").read_text(encoding="utf-8")))
        marked = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", flags=re.DOTALL)
        page, count = marked.subn(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
        assert count == 1, f"{PAGE.name} must have one place for the table {name!r}"
    return page


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote the tables of {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
