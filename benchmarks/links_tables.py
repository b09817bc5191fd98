"""Write the tables of docs/papers/pu_links.md from the stored results of the link suites.

python -m benchmarks links_tables
"""

from __future__ import annotations

from statistics import mean, pstdev
from typing import Any

from benchmarks._tables import stored, table, three, write_page

PAGE = "papers/pu_links.md"
BLEND = "BiasMC + shared / degree"


def by_method(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    out: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        out.setdefault(row["method"], []).append(row)
    return out


def spread(values: list[float]) -> str:
    return f"{three(mean(values))} ± {three(pstdev(values))}"


def graph_table(graph: dict[str, Any]) -> str:
    methods = by_method(graph["rows"])
    lengths = graph["rows"][0]["lengths"]

    def wins(name: str, other: str) -> str:
        if name == other:
            return ""
        ours = {row["split"]: row["fnr"] for row in methods[name]}
        counts = (
            sum(ours[row["split"]][place] < row["fnr"][place] for row in methods[other])
            for place in range(len(lengths))
        )
        return ", ".join(map(str, counts))

    rows = [
        [
            name,
            *(spread([run["fnr"][place] for run in runs]) for place in range(len(lengths))),
            wins("BiasMC", name),
            wins(BLEND, name),
        ]
        for name, runs in methods.items()
    ]
    return table(
        ["method", *(f"k = {k:,}" for k in lengths), "BiasMC below, of 5", "blend below, of 5"], rows
    )


def precision_table(graphs: dict[str, Any]) -> str:
    rows = []
    for name in by_method(graphs["ca-GrQc"]["rows"]):
        row = [name]
        for graph in graphs.values():
            runs = by_method(graph["rows"])[name]
            row += [three(mean(run["precision"][k] for run in runs)) for k in ("100", "1000")]
        rows.append(row)
    return table(["method", *(f"{graph}, first {k}" for graph in graphs for k in ("100", "1,000"))], rows)


def subset_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        [
            name,
            *(spread([run["fnr"][place] for run in runs]) for place in (0, 1)),
            three(mean(run["precision_100"] for run in runs)),
        ]
        for name, runs in by_method(rows).items()
    ]
    return table(["method", "FNR, k = test links", "FNR, k = 3 times", "precision, first 100"], lines)


def tables() -> dict[str, str]:
    """Each table of the page."""
    graphs = stored("links")["graphs"]
    return {name: graph_table(graph) for name, graph in graphs.items()} | {
        "precision": precision_table(graphs),
        "subset": subset_table(stored("links_subset")["rows"]),
    }


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
