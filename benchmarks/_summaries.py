"""What a suite with timings found, in one form for all: ratios, curves and bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SUMMARIES", "Bars", "Curve", "Ratio", "Summary"]

MEMORY = "peak memory over that of the leanest other library"


@dataclass(frozen=True)
class Ratio:
    """How far ahead (time of others over ours), or how much memory against others."""

    what: str
    value: float | None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def wanted(self) -> str:
        """The figure that was set beforehand."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"

    @property
    def holds(self) -> str:
        """Whether the figure is reached."""
        if self.value is None or (self.at_least is None and self.at_most is None):
            return ""
        low = self.at_least is None or self.value >= self.at_least
        return "yes" if low and (self.at_most is None or self.value <= self.at_most) else "no"


@dataclass(frozen=True)
class Curve:
    """Something against seconds (or cells), one line for each library."""

    title: str
    x: str
    y: str
    lines: dict[str, tuple[list[float], list[float]]]
    log_x: bool = True


@dataclass(frozen=True)
class Bars:
    """One number for each library."""

    title: str
    unit: str
    values: dict[str, float]


@dataclass
class Summary:
    """All of one suite."""

    title: str
    ratios: list[Ratio] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    bars: list[Bars] = field(default_factory=list)


def explicit_ratings(results: dict[str, Any]) -> Summary:
    """Ratings with biases, against cmfrec."""
    out = Summary("Ratings with biases, against cmfrec")
    for task in results["tasks"].values():
        label = task["label"]
        out.ratios.append(Ratio(f"{label}: time to cmfrec's best RMSE", task["ratio"], at_least=2.0))
        out.ratios.append(Ratio(f"{label}: {MEMORY}", task["memory_ratio"], at_most=1.1))
        out.ratios.append(Ratio(f"{label}: the same beyond imports and data", task["grown_ratio"]))
        lines = {
            name: ([r["seconds"] for r in found["runs"]], [r["rmse"] for r in found["runs"]])
            for name, found in task["systems"].items()
        }
        out.curves.append(Curve(label, "seconds", "test RMSE", lines))
        memory = {name: found["peak_mib"] for name, found in task["systems"].items()}
        out.bars.append(Bars(f"{label}, peak memory", "MiB", memory))
    return out


def implicit_feedback(results: dict[str, Any]) -> Summary:
    """Positives only, against implicit, irspack and cmfrec."""
    out = Summary("Positives only, against implicit, irspack and cmfrec")
    for name, task in _tasks(results):
        label = f"{name.replace('_', ' ')}, rank {task['rank']}"
        out.ratios.append(Ratio(f"{label}: time to within 1%", task["ratio"]["1.0%"], at_least=2.0))
        out.ratios.append(Ratio(f"{label}: top 10, against implicit", task["rank_ratio"], at_least=2.0))
        peers = [mib for key, mib in task["peak_mib"].items() if not key.startswith("unseen")]
        ours = [mib for key, mib in task["peak_mib"].items() if key.startswith("unseen")]
        out.ratios.append(Ratio(f"{label}: {MEMORY}", max(ours) / min(peers), at_most=1.1))
        best = task["best_objective"]
        lines = {
            key: (run["seconds"], [100 * (value / best - 1) + 0.01 for value in run["objective"]])
            for key, run in task["runs"].items()
        }
        out.curves.append(Curve(label, "seconds", "% above the best objective (+ 0.01)", lines))
        out.bars.append(Bars(f"{label}, peak memory", "MiB", task["peak_mib"]))
    return out


def gimc_speed(results: dict[str, Any]) -> Summary:
    """Learned maps, against PyTorch's autograd and scikit-learn."""
    out = Summary("Learned feature maps, against PyTorch's autograd; fixed ones, against scikit-learn")
    for run in results["runs"]:
        label = f"{run['data']}, m = {run['m']}"
        out.ratios.append(
            Ratio(f"{label}: one outer step", run["torch"]["seconds"] / run["unseen"]["seconds"])
        )
        memory = {name: run[name]["growth_mib"] for name in ("unseen", "torch")}
        out.bars.append(Bars(f"{label}, growth of memory", "MiB", memory))
        if "fixed" in run:
            ahead = run["fixed"]["sklearn_seconds"] / run["fixed"]["unseen_seconds"]
            out.ratios.append(Ratio(f"{label}: fixed map, against RBFSampler and Ridge", ahead))
    return out


def exmlds_speed(results: dict[str, Any]) -> Summary:
    """Many labels, against omikuji and napkinXC."""
    out = Summary("Many labels, against SLEEC, omikuji and napkinXC")
    for data in dict.fromkeys(run["data"] for run in results["runs"]):
        runs: dict[str, dict[str, Any]] = {}
        for run in results["runs"]:
            if (
                run["data"] == data
                and run["fit_s"] < runs.get(run["method"], {"fit_s": float("inf")})["fit_s"]
            ):
                runs[run["method"]] = run
        for method in ("SLEEC", "omikuji", "napkinXC"):
            if method not in runs:
                continue  # SLEEC is not run where it takes minutes
            ahead = runs[method]["fit_s"] / runs["ExMLDS1"]["fit_s"]
            out.ratios.append(Ratio(f"{data}: fit of ExMLDS1, against {method}", ahead))
        lines = {name: ([run["fit_s"]], [run["precision"][0]]) for name, run in runs.items()}
        out.curves.append(Curve(str(data), "seconds of the fit", "P@1", lines))
        memory = {name: run["memory_mib"] for name, run in runs.items()}
        out.bars.append(Bars(f"{data}, peak memory", "MiB", memory))
    return out


def sklearn_peers(results: dict[str, Any]) -> Summary:
    """Non-negative factors and one-vs-rest, against scikit-learn."""
    out = Summary("Non-negative factors and one classifier a label, against scikit-learn")
    for label, task in results["nmf"].items():
        out.ratios.append(Ratio(f"NMF, {label}: time to within 1%", task["ratio"]["1.0%"]))
        lines = {name: (run["seconds"], run["objective"]) for name, run in task["runs"].items()}
        out.curves.append(Curve(f"NMF, {label}", "seconds", "objective", lines))
        memory = {name: run["peak_mib"] for name, run in task["runs"].items()}
        out.bars.append(Bars(f"NMF, {label}, peak memory", "MiB", memory))
    for label, task in results["labels"].items():
        points = " and ".join(f"{run['precision_at_1']:.1f}" for run in task["runs"].values())
        out.ratios.append(Ratio(f"One-vs-rest, {label}: fit (P@1 {points})", task["ratio"]))
    return out


def off_a_line(costs: list[float]) -> float:
    """Distance, as a share, of the farthest size from the line through zero that is nearest to all sizes.

    Examples
    --------
    >>> off_a_line([1.0, 1.2, 1.5])
    0.2
    """
    return (max(costs) - min(costs)) / (max(costs) + min(costs))


def growth(results: dict[str, Any]) -> Summary:
    """Cost against the number of cells."""
    out = Summary("Seconds of a sweep against the number of cells")
    costs = [row["microseconds_a_cell"] for row in results["rows"]]
    out.ratios.append(Ratio("dearest cell over cheapest, over all sizes", max(costs) / min(costs)))
    out.ratios.append(Ratio("largest distance from one line, as a share", off_a_line(costs), at_most=0.2))
    cells = [float(row["cells"]) for row in results["rows"]]
    lines = {"unseen": (cells, [row["sweep_s"] for row in results["rows"]])}
    out.curves.append(Curve("One sweep", "cells", "seconds", lines))
    return out


def _tasks(results: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, task) for name, task in results.items() if name != "environment")


SUMMARIES: dict[str, Callable[[dict[str, Any]], Summary]] = {
    function.__name__: function
    for function in (explicit_ratings, implicit_feedback, gimc_speed, exmlds_speed, sklearn_peers, growth)
}
"""Suites with timings, in the order of the page."""
