"""Write the tables of docs/papers/pu_links.md from the stored results of the link suites.

python -m benchmarks links_tables
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "papers" / "pu_links.md"
STORED = Path(__file__).parent / "stored"
BLEND = "BiasMC + shared / degree"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def by_method(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    out: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        out.setdefault(row["method"], []).append(row)
    return out


def three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


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


def filled(page: str) -> str:
    """The page with every marked table replaced by the stored results."""
    graphs = json.loads((STORED / "links.json").read_text(encoding="utf-8"))["graphs"]
    subset = json.loads((STORED / "links_subset.json").read_text(encoding="utf-8"))["rows"]
    tables = {name: graph_table(graph) for name, graph in graphs.items()}
    tables |= {"precision": precision_table(graphs), "subset": subset_table(subset)}
    for name, text in tables.items():
        marked = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", flags=re.DOTALL)
        page, count = marked.subn(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
        assert count == 1, f"{PAGE.name} must have one place for the table {name!r}"
    return page


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote the tables of {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
