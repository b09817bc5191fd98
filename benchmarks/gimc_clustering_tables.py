"""Write the tables and the plot of docs/papers/gimc_clustering.md from the stored results.

python -m benchmarks gimc_clustering_tables
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from benchmarks._tables import ROOT, stored, table, three, write_page

PAGE = "papers/gimc_clustering.md"
METHODS = ("k-means", "MCCC", "IMC-RFF", "GIMC")


def picked(runs: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    """Runs with these values."""
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def errors(runs: list[dict[str, Any]], data: str, method: str, count: int) -> list[float]:
    """Errors of a method over the draws; k-means does not see pairs."""
    found = picked(runs, data=data, method=method, count=0 if method == "k-means" else count)
    return [run["error"] for run in found]


def places(runs: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Data sets and numbers of pairs that were run."""
    return sorted({(run["data"], run["count"]) for run in runs if run["count"]})


def pair_table(runs: list[dict[str, Any]]) -> str:
    rows = []
    for data, count in places(runs):
        by_method = [errors(runs, data, method, count) for method in METHODS]
        cells = [three(mean(values)) if values else "" for values in by_method]
        rows.append([data, f"{count} n", len(by_method[-1]), *cells, wins(runs, data, count)])
    return table(["data", "pairs", "draws", *METHODS, "GIMC below IMC-RFF"], rows)


def wins(runs: list[dict[str, Any]], data: str, count: int) -> str:
    """In how many draws learning the map lowers the error."""
    fixed, learned = (
        {run["draw"]: run["error"] for run in picked(runs, data=data, method=method, count=count)}
        for method in ("IMC-RFF", "GIMC")
    )
    both = sorted(set(fixed) & set(learned))
    return f"{sum(learned[draw] < fixed[draw] for draw in both)} of {len(both)}"


def toy_table(runs: list[dict[str, Any]], toy: str) -> str:
    chosen = picked(runs, toy=toy)
    methods = list(dict.fromkeys(run["method"] for run in chosen))
    rows = []
    for share, seed in dict.fromkeys((run["share"], run["seed"]) for run in chosen):
        here = {run["method"]: run["error"] for run in picked(chosen, share=share, seed=seed)}
        rows.append([f"{100 * share:.0f} %", seed, *(three(here[method]) for method in methods)])
    return table(["seen", "seed", *methods], rows)


def tables() -> dict[str, str]:
    """Each table of the page."""
    toys = stored("gimc_toy")["runs"]
    return {
        "pairs": pair_table(stored("gimc_clustering")["runs"]),
        "waves": toy_table(toys, "waves"),
        "figure 1": toy_table(toys, "figure 1"),
    }


def plot() -> None:
    """Error against the number of pairs, one panel for each data set."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    runs = stored("gimc_clustering")["runs"]
    names = list(dict.fromkeys(data for data, _ in places(runs)))
    figure, axes = plt.subplots(1, len(names), figsize=(3.4 * len(names), 3.0), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        counts = [count for data, count in places(runs) if data == name]
        for method in METHODS:
            means = [mean(errors(runs, name, method, count)) for count in counts]
            axis.plot(counts, means, marker="o", label=method)
        axis.set(title=name, xlabel="pairs / items", xscale="log", ylim=(0, None))
        axis.set_xticks(counts, [str(count) for count in counts], minor=False)
        axis.minorticks_off()
    axes[0, 0].set_ylabel("share of pairs wrong")
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "papers" / "gimc_clustering.png", dpi=110, metadata={"Software": None})


def main() -> None:
    write_page(PAGE, tables())
    plot()


if __name__ == "__main__":
    main()
