"""Ratios of all suites with timings, and one page with plots.

    python -m benchmarks bench               the page from stored results; nothing is run
    python -m benchmarks bench --size small  run the suites first: small, medium or large

The page is ``benchmarks/results/SIZE.html``. A suite that cannot run here (data or another library is not at
hand) is named and left out.
"""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path
from typing import Any

from benchmarks._store import RESULTS, STORED
from benchmarks._summaries import SUMMARIES, Bars, Curve, Ratio, Summary
from papers.display import canvas

WIDTH, HEIGHT = 5.6, 3.6


def run_suites(size: str, names: list[str] | None = None) -> dict[str, str]:
    """Run each suite; what went wrong, by name."""
    failed = {}
    for name in SUMMARIES if names is None else names:
        print(f"== {name}, {size}", flush=True)
        began = time.perf_counter()
        try:
            importlib.import_module(f"benchmarks.{name}").main(size=size)
        except Exception as error:  # one missing library must not lose the other suites
            lines = str(error).strip().splitlines()
            failed[name] = lines[-1] if lines else type(error).__name__
            print(f"   left out: {failed[name]}")
        print(f"   {time.perf_counter() - began:.0f} s", flush=True)
    return failed


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Results of the suites that have some in a folder."""
    paths = {name: folder / f"{name}.json" for name in SUMMARIES}
    return {name: json.loads(path.read_text("utf-8")) for name, path in paths.items() if path.exists()}


def page(found: dict[str, dict[str, Any]], failed: dict[str, str], size: str) -> str:
    """The page as HTML."""
    from unseen.report import Report

    summaries = {name: SUMMARIES[name](results) for name, results in found.items()}
    report = Report(
        "Benchmarks", f"Size: {size}. Ratios of time are that of the quickest other library over ours."
    )
    rows = [
        [summary.title if place == 0 else "", ratio.what, shown(ratio.value), *judged(ratio, size)]
        for summary in summaries.values()
        for place, ratio in enumerate(summary.ratios)
    ]
    missing = [f"{name}: {failed.get(name, 'not measured yet')}" for name in SUMMARIES if name not in found]
    report.section("Ratios", *missing)
    report.table(["suite", "what", "ratio", "wanted", "reached"], rows)
    for name, summary in summaries.items():
        report.section(summary.title, environment(found[name]))
        report.figures(figures(summary))
    return report.html()


def judged(ratio: Ratio, size: str) -> tuple[str, str]:
    """The figure wanted and whether it is reached; small runs are mostly set-up and are not judged."""
    return ("", "") if size == "small" else (ratio.wanted, ratio.holds)


def shown(value: float | None) -> str:
    return "not reached" if value is None else f"{value:.2f}"


def environment(results: dict[str, Any]) -> str:
    versions = results.get("environment", {})
    return ", ".join(f"{name} {value}" for name, value in versions.items())


def figures(summary: Summary) -> list[tuple[Any, str]]:
    """Plots of a suite, each with a sentence that says what it shows."""
    found = [(draw_curve(curve), f"{curve.title}: {curve.y} against {curve.x}") for curve in summary.curves]
    return found + [(draw_bars(bars), f"{bars.title}, {bars.unit}") for bars in summary.bars]


def draw_curve(curve: Curve) -> Any:
    figure, (axes,) = canvas((WIDTH, HEIGHT))
    values = []
    for place, (label, (x, y)) in enumerate(curve.lines.items()):
        order = sorted(range(len(x)), key=x.__getitem__)
        style = "-" if label.startswith("unseen") else "--"
        marker = "osD^v<>pX"[place % 9]
        axes.plot([x[i] for i in order], [y[i] for i in order], style, marker=marker, ms=4, label=label)
        values += y
    if curve.log_x:
        axes.set_xscale("log")
    if min(values) > 0 and max(values) > 20 * min(values):
        axes.set_yscale("log")
    axes.set(xlabel=curve.x, ylabel=curve.y, title=curve.title)
    if len(curve.lines) > 1:
        axes.legend(fontsize=7)
    return figure


def draw_bars(bars: Bars) -> Any:
    figure, (axes,) = canvas((WIDTH, 0.9 + 0.32 * len(bars.values)))
    names = list(bars.values)[::-1]
    colours = ["C0" if name.startswith(("unseen", "ExMLDS", "SLEEC")) else "0.6" for name in names]
    drawn = axes.barh(names, [bars.values[name] for name in names], color=colours)
    axes.bar_label(drawn, fmt="%.0f", padding=3, fontsize=8)
    axes.margins(x=0.15)
    axes.set(xlabel=bars.unit, title=bars.title)
    return figure


def main(size: str | None = None) -> None:
    failed = {} if size is None else run_suites(size)
    found = read(STORED if size in (None, "large") else RESULTS / size)
    for name, results in found.items():
        summary = SUMMARIES[name](results)
        print(f"\n{summary.title}")
        for ratio in summary.ratios:
            wanted, holds = judged(ratio, size or "stored results")
            note = f"   ({wanted}: {holds})" if holds else ""
            print(f"  {shown(ratio.value):>11s}  {ratio.what}{note}")
    for name, reason in failed.items():
        print(f"\n{name} was left out: {reason}")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{size or 'stored'}.html"
    path.write_text(page(found, failed, size or "stored results"), encoding="utf-8")
    print(f"\nwrote {path.relative_to(RESULTS.parent.parent)}")


if __name__ == "__main__":
    main()
