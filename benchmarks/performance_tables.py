"""Write the tables of docs/performance.md from the stored results of the suites with timings.

python -m benchmarks performance_tables
"""

from __future__ import annotations

from typing import Any

from benchmarks._tables import stored, table, write_page

PAGE = "performance.md"
SLACK = "1.0%"


def seconds(value: float | None) -> str:
    """Seconds, or a dash where the objective was not reached."""
    return "–" if value is None else f"{value:.2f}"


def time_table(task: dict[str, Any]) -> str:
    """Seconds to within some shares of the best objective, memory and ranking, for each library."""
    shares = list(task["time_to"])
    rows = [
        [
            name,
            *(seconds(task["time_to"][share][name]) for share in shares),
            f"{task['peak_mib'][name]:.0f}",
            seconds(task["rank_seconds"].get(name)),
        ]
        for name in task["runs"]
    ]
    return table(["library", *(f"to {share}" for share in shares), "MiB", "top 10, s"], rows)


def ratio_table(results: dict[str, Any]) -> str:
    rows = []
    for name, label in (("power_law", "200,000 x 50,000, rank 64"), ("hepph", "ca-HepPh, rank 50")):
        task = results[name]
        ratios = [f"{r:.1f}" if (r := task["ratio"][share]) else "only unseen" for share in task["ratio"]]
        peers = min(mib for key, mib in task["peak_mib"].items() if not key.startswith("unseen"))
        ours = max(mib for key, mib in task["peak_mib"].items() if key.startswith("unseen"))
        rows.append([label, *ratios, f"{ours / peers:.2f}", f"{task['rank_ratio']:.1f}"])
    shares = results["hepph"]["ratio"]
    return table(["data", *(f"to {share}" for share in shares), "memory", "top 10 v implicit"], rows)


def scale_table(results: dict[str, Any]) -> str:
    rows = [
        [
            solver,
            f"{run['cells']:,}",
            run["rank"],
            run["sweeps"],
            f"{run['generate_s']:.0f}",
            f"{run['fit_s']:.0f}",
            f"{run['peak_gib']:.1f}",
            f"{run['hit_rate']:.4f}",
            f"{run['popularity_hit_rate']:.4f}",
        ]
        for solver, run in results.items()
        if solver != "environment"
    ]
    head = ["solver", "cells", "rank", "sweeps", "generate, s", "fit, s", "peak GiB", "hit rate", "popular"]
    return table(head, rows)


def tables() -> dict[str, str]:
    """Each table of the page."""
    feedback = stored("implicit_feedback")
    return {
        "feedback ratios": ratio_table(feedback),
        "feedback large": time_table(feedback["power_law"]),
        "feedback small": time_table(feedback["hepph"]),
        "scale": scale_table(stored("scale")),
    }


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
