"""Write the tables of docs/papers/gimc.md from the stored results of the gimc_* suites.

python -m benchmarks gimc_tables
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from benchmarks._tables import STORED, stored, table, write_page

PAGE = "papers/gimc.md"
TITLES = {
    "segment": "Segment",
    "covtype": "Covtype",
    "letter": "Letter",
    "bibtex": "Bibtex",
    "delicious": "Delicious",
}


def pick(runs: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    """Runs with these facts or settings."""
    return [
        run
        for run in runs
        if all(run.get(key, run["settings"].get(key)) == value for key, value in wanted.items())
    ]


def percent(runs: list[dict[str, Any]]) -> str:
    """Mean over the seeds, in per cent; several measures side by side."""
    if not runs:
        return "not run"
    columns = zip(*(run["test"] for run in runs), strict=True)
    return " / ".join(f"{100 * mean(column):.1f}" for column in columns)


def comparison(runs: list[dict[str, Any]], names: tuple[str, ...]) -> str:
    rows = []
    for name in names:
        here = pick(runs, data=name)
        for m in sorted({run["m"] for run in here if run["m"] is not None}):
            for fixed, learned in (("IMC-RFF", "GIMC-LFF"), ("IMC-NYS", "GIMC-LNYS")):
                rows.append(
                    [
                        TITLES[name],
                        m,
                        "Fourier" if fixed == "IMC-RFF" else "Nystrom",
                        percent(pick(here, m=m, method=fixed)),
                        percent(pick(here, m=m, method=learned, solver="lbfgs", whiten=True)),
                        percent(pick(here, method="ridge")),
                        *([percent(pick(here, method="LEML"))] if name in ("bibtex", "delicious") else []),
                    ]
                )
    head = ["data", "m", "map", "fixed", "learned", "ridge on the features"]
    return table(head if len(rows[0]) == 6 else [*head, "LEML, rank 50"], rows)


def solver_table(runs: list[dict[str, Any]]) -> str:
    rows = []
    here = pick(runs, data="segment")
    for m in sorted({run["m"] for run in here if run["m"] is not None}):
        for method, whiten in (("GIMC-LFF", True), ("GIMC-LNYS", True), ("GIMC-LNYS", False)):
            name = "Fourier" if method == "GIMC-LFF" else "Nystrom, whitened" if whiten else "Nystrom, M = I"
            cells = [
                percent(pick(here, m=m, method=method, whiten=whiten, solver=s)) for s in ("armijo", "lbfgs")
            ]
            fixed = "IMC-RFF" if method == "GIMC-LFF" else "IMC-NYS"
            rows.append([m, name, percent(pick(here, m=m, method=fixed)), *cells])
    return table(["m", "map", "fixed", "Armijo steps", "L-BFGS"], rows)


def speed_table() -> str:
    if not (STORED / "gimc_speed.json").exists():
        return "Not measured yet."
    rows = []
    for run in stored("gimc_speed")["runs"]:
        ours, theirs = run["unseen"], run["torch"]
        rows.append(
            [
                run["data"],
                run["m"],
                f"{ours['seconds']:.3f}",
                f"{theirs['seconds']:.3f}",
                f"{theirs['seconds'] / ours['seconds']:.1f}",
                f"{ours['growth_mib']:.0f}",
                f"{theirs['growth_mib']:.0f}",
            ]
        )
    head = ["data", "m", "step, s", "autograd, s", "ratio", "memory, MiB", "autograd, MiB"]
    return table(head, rows)


def tables() -> dict[str, str]:
    """Each table of the page."""
    runs = stored("gimc_classify")["runs"]
    return {
        "classes": comparison(runs, ("segment", "covtype", "letter")),
        "labels": comparison(runs, ("bibtex", "delicious")),
        "solvers": solver_table(runs),
        "speed": speed_table(),
    }


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
