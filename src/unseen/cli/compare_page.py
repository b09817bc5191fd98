"""The page of a comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.cli.methods import METHODS
from unseen.comparison import Comparison
from unseen.comparison.result import Entry
from unseen.report import Report

__all__ = ["make_page"]


def make_page(name: str, result: Comparison) -> Report:
    """Table, intervals, costs and the recommendation."""
    facts = result.facts
    lead = (
        f"{facts['rows']:,} x {facts['cols']:,} with {facts['cells']:,} cells; {facts['repeats']} test parts "
        f"({result.split}), each {100 * facts['test_fraction']:.0f} %; seed {facts['random_state']}."
    )
    page = Report(f"Methods on {name}", lead).section("What to use")
    head, lines = result.rows()
    chosen = result.recommended()
    page.verdict(
        "Nothing to recommend" if chosen is None else f"Recommended: {chosen.method}",
        result.recommendation(),
        "bad" if chosen is None else "good",
    )
    order = [line[0] for line in lines]
    page.table(
        head,
        lines,
        caption="Mean over the test parts and half of its 95 % interval; cost of the last fit and of the "
        "choice of settings; memory of the last fit on top of the data.",
        best=None if chosen is None else order.index(chosen.method),
        mark="recommended",
    )
    if result.ranked:
        page.figures([(score_figure(result), "Scores with 95 % intervals"), (cost_figure(result), "Cost")])
    settings = [
        [entry.method, entry.estimator, "; ".join(dict.fromkeys(map(_told, entry.settings)))]
        for entry in result.entries
        if entry.error is None
    ]
    page.section(
        "Settings",
        "Chosen on a part of the training cells of each split. The test cells were scored once.",
    ).table(["method", "estimator", "chosen"], settings)
    told = [[entry.method, entry.error] for entry in result.entries if entry.error is not None]
    told += [[method, reason] for method, reason in result.left_out.items()]
    if told:
        page.section("Left out").table(["method", "reason"], told)
    return page.what_next(_commands(name, chosen))


def _commands(name: str, chosen: Entry | None) -> list[tuple[str, str]]:
    method = "" if chosen is None or chosen.method not in METHODS else f" --method {chosen.method}"
    return [
        (
            f"unseen fit {name} --out model{method}",
            "Fit a model to all cells and keep it; method and settings as above.",
        ),
        ("unseen recommend model --all", "Lists from it; unseen predict gives single cells."),
        (f"unseen diagnose {name}", "What the cells can decide at all, before you trust a prediction."),
    ]


def _told(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "none"


def score_figure(result: Comparison) -> Any:
    """Means and intervals, best on top."""
    from matplotlib.figure import Figure

    ranked, measure = result.ranked[::-1], result.measures[0]
    figure = Figure(figsize=(5.5, 0.8 + 0.4 * len(ranked)), layout="constrained")
    axes = figure.subplots()
    means = [entry.mean(measure) for entry in ranked]
    halves = np.nan_to_num([entry.half_width(measure) for entry in ranked])
    colours = ["0.55" if entry.simple else "C0" for entry in ranked]
    for place, (mean, half, colour) in enumerate(zip(means, halves, colours, strict=True)):
        axes.errorbar(mean, place, xerr=half, fmt="o", color=colour, capsize=3)
    axes.set_yticks(range(len(ranked)), [entry.method for entry in ranked])
    axes.set_xlabel(f"{measure} ({'more' if result.greater_is_better else 'less'} is better)")
    axes.margins(y=0.15)
    return figure


def cost_figure(result: Comparison) -> Any:
    """Score against seconds of a fit."""
    from matplotlib.figure import Figure

    ranked, measure = result.ranked, result.measures[0]
    figure = Figure(figsize=(5.5, 0.8 + 0.4 * max(len(ranked), 6)), layout="constrained")
    axes = figure.subplots()
    for place, entry in enumerate(ranked):
        axes.plot(
            np.mean(entry.fit_s),
            entry.mean(measure),
            "os^Dv*PX"[place // 10 % 8],
            color=f"C{place % 10}",
            label=entry.method,
        )
    axes.set_xscale("log")
    axes.set_xlabel("seconds of a fit")
    axes.set_ylabel(measure)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure
