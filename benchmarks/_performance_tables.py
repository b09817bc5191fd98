"""Tables of docs/performance.md, from the stored results of the suites with timings."""

from __future__ import annotations

from typing import Any

from benchmarks._store import if_measured, stored
from benchmarks._summaries import off_a_line
from papers.display import markdown

SHOWN = (1, 2, 4, 8, 15)
"""Numbers of sweeps of which the error is shown."""


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
    return markdown(["library", *(f"to {share}" for share in shares), "MiB", "top 10, s"], rows)


def ratio_table(results: dict[str, Any]) -> str:
    rows = []
    for name, label in (("power_law", "200,000 x 50,000, rank 64"), ("hepph", "ca-HepPh, rank 50")):
        task = results[name]
        ratios = [f"{r:.1f}" if (r := task["ratio"][share]) else "only unseen" for share in task["ratio"]]
        peers = min(mib for key, mib in task["peak_mib"].items() if not key.startswith("unseen"))
        ours = max(mib for key, mib in task["peak_mib"].items() if key.startswith("unseen"))
        rows.append([label, *ratios, f"{ours / peers:.2f}", f"{task['rank_ratio']:.1f}"])
    shares = results["hepph"]["ratio"]
    return markdown(["data", *(f"to {share}" for share in shares), "memory", "top 10 v implicit"], rows)


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
    return markdown(head, rows)


def ratings_ratio_table(results: dict[str, Any]) -> str:
    """Time and memory against cmfrec on each data set."""
    rows = []
    for task in results["tasks"].values():
        chosen = ", ".join(f"{found['reg']:g}" for found in task["systems"].values())
        ratio = f"{task['ratio']:.1f}" if task["ratio"] else "not reached"
        memory = [f"{task[name]:.2f}" for name in ("memory_ratio", "grown_ratio")]
        rows.append([task["label"], f"{task['target_rmse']:.4f}", ratio, *memory, chosen])
    names = ", ".join(next(iter(results["tasks"].values()))["systems"])
    head = ["data", "target RMSE", "time", "peak memory", "memory beyond imports and data"]
    return markdown([*head, f"reg of {names}"], rows)


def error(rmse: float) -> str:
    """A test error on a scale of a few stars, or that the fit left it altogether."""
    return f"{rmse:.4f}" if rmse < 100.0 else "diverged"


def ratings_table(results: dict[str, Any]) -> str:
    """Test error after some sweeps, and the time of the whole fit."""
    rows = [
        [
            task["label"],
            name,
            *(
                f"{error(run['rmse'])} ({run['seconds']:.2f})"
                for run in found["runs"]
                if run["sweeps"] in SHOWN
            ),
            seconds(task["seconds"][name]),
            f"{found['peak_mib']:.0f}",
        ]
        for task in results["tasks"].values()
        for name, found in task["systems"].items()
    ]
    head = [f"{n} sweeps" if n > 1 else "1 sweep" for n in SHOWN]
    return markdown(["data", "library", *head, "s to target", "MiB"], rows)


def growth_table(results: dict[str, Any]) -> str:
    """Seconds of a sweep, in all and for each cell."""
    rows = [
        [
            f"{row['cells']:,}",
            f"{row['sweep_s']:.2f}",
            f"{row['microseconds_a_cell']:.3f}",
            f"{row['peak_gib']:.2f}",
        ]
        for row in results["rows"]
    ]
    costs = [row["microseconds_a_cell"] for row in results["rows"]]
    text = markdown(["cells", "s a sweep", "microseconds a cell", "peak GiB"], rows)
    spread = f"The dearest cell costs {max(costs) / min(costs):.2f} times the cheapest"
    return f"{text}\n\n{spread}; one line through zero is within {off_a_line(costs):.0%} of all sizes."


def sweeps_table(results: dict[str, Any]) -> str:
    """A sweep beside one gather of all factors."""
    rows = [
        [
            run["kind"],
            run["rank"],
            run["threads"],
            f"{1e3 * run['gather_s']:.0f}",
            f"{1e3 * run['sweep_s']:.0f}",
            f"{run['ratio']:.2f}",
        ]
        for run in results["measured"]
    ]
    shape = f"{results['rows']:,} x {results['columns']:,}, {results['cells'] / 1e6:.2f} million cells"
    return markdown([shape, "rank", "threads", "gather, ms", "sweep, ms", "ratio"], rows)


def sklearn_table(results: dict[str, Any]) -> str:
    """Seconds of both libraries, the ratio, and their memory."""

    def peaks(task: dict[str, Any]) -> list[str]:
        return [f"{task['runs'][name]['peak_mib']:.0f}" for name in ("unseen", "sklearn")]

    rows = []
    for label, task in results["nmf"].items():
        for share, times in task["time_to"].items():
            ratio = task["ratio"][share]
            shown = f"{ratio:.2f}" if ratio else "–"
            cells = [seconds(times["unseen"]), seconds(times["sklearn"]), shown]
            rows.append([f"NMF, {label}, to {share}", *cells, *peaks(task)])
    for label, task in results["labels"].items():
        runs = [task["runs"][name] for name in ("unseen", "sklearn")]
        cells = [f"{run['fit_s']:.2f} (P@1 {run['precision_at_1']:.2f})" for run in runs]
        rows.append([f"one-vs-rest, {label}", *cells, f"{task['ratio']:.2f}", *peaks(task)])
    return markdown(
        ["task", "unseen, s", "scikit-learn, s", "ratio", "unseen, MiB", "scikit-learn, MiB"], rows
    )


def tuning_table(results: dict[str, Any]) -> str:
    """Two commits side by side."""
    rows = [
        [job, f"{before:.3g}", f"{after:.3g}", f"{before / after:.2f}"]
        for job, before, after in results["jobs"]
    ]
    return markdown(["what, seconds where nothing else is said", "before", "after", "times less"], rows)


def tables() -> dict[str, str]:
    """Each table of the page."""
    feedback = stored("implicit_feedback")
    return {
        "ratings ratios": if_measured("explicit_ratings", ratings_ratio_table),
        "ratings": if_measured("explicit_ratings", ratings_table),
        "growth": if_measured("growth", growth_table),
        "sweeps": if_measured("sweeps", sweeps_table),
        "sklearn": if_measured("sklearn_peers", sklearn_table),
        "tuning": if_measured("base_head", tuning_table),
        "feedback ratios": ratio_table(feedback),
        "feedback large": time_table(feedback["power_law"]),
        "feedback small": time_table(feedback["hepph"]),
        "scale": scale_table(stored("scale")),
    }
