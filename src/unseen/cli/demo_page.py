"""The demonstration's results as a page with tables and plots."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from unseen import __version__
from unseen.cli.demo_tasks import NOISE_FLOOR, Outcome, Scale, TaskResult
from unseen.metrics import precision_at_k
from unseen.plotting import ConvergenceDisplay, PrecisionCurveDisplay, PredictionDisplay
from unseen.report import Kind, Report
from unseen.typing import FloatArray

__all__ = ["NEXT", "make_page", "surroundings"]

NEXT = (
    (
        "unseen compare ratings.csv",
        "What applies to a file of your own, in words: a line for each known cell.",
    ),
    ("unseen fit ratings.csv --out model", "Fit what was recommended, and keep it."),
    ("unseen serve model", "Look into it in the browser: predictions, lists, neighbours."),
)
BAR, BEST_BAR = "#9db7cc", "#0072B2"


def make_page(tasks: Sequence[TaskResult], scale: Scale, seed: int, seconds: float) -> Report:
    """Put the results of all tasks on one page."""
    page = Report(
        "unseen: a demonstration",
        "Real data that comes with scikit-learn, then generated ratings and likes of which the truth is "
        "known. Settings are chosen on training cells only; every number below is measured on cells that no "
        "model and no search has seen.",
    )
    for task in tasks:
        page.section(task.name, task.question, f"{task.data}.")
        page.figures(task.pictures, wide=True)
        page.verdict(*_verdict(task))
        measures = list(task.outcomes[0].scores)
        rows = [
            [o.method, *(o.scores[measure] for measure in measures), o.settings or "-", f"{o.seconds:.1f}"]
            for o in task.outcomes
        ]
        headers = ["Method", *measures, "Chosen settings", "Seconds"]
        page.table(headers, rows, best=task.outcomes.index(task.best()))
        page.figures(_pictures(task))
    page.what_next(NEXT)
    page.section("How it was run", f"Everything together took {seconds:.1f} seconds.")
    page.table(["", ""], [[name, str(value)] for name, value in surroundings(seed).items()])
    settings = {
        "folds of the search": scale.folds,
        "reg tried for low-rank terms": scale.taste_regs,
        "reg tried for features": scale.feature_regs,
        "reg tried for the photograph": scale.picture_regs,
        "alpha tried for the biased loss": scale.alphas,
    }
    page.table(["Setting", "Values"], [[name, _listed(value)] for name, value in settings.items()])
    return page


def surroundings(seed: int) -> dict[str, Any]:
    """What one needs to know to get the same numbers again."""
    packages = {"unseen": __version__}
    for name in ("numpy", "scipy", "scikit-learn", "matplotlib"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "seed": seed,
        **packages,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "kernels": _kernels(),
    }


def _kernels() -> str:
    native = "unseen.kernels._native" in sys.modules
    return "compiled" if native else "NumPy (the compiled ones are not installed)"


def _verdict(task: TaskResult) -> tuple[str, str, Kind]:
    """What came out, from the numbers: a word, a sentence and how good that is."""
    first, best = task.outcomes[0], task.best()
    before, after = first.scores[task.measure], best.scores[task.measure]
    if task.measure == "RMSE":
        change = f"{1 - after / before:.0%} less than for {first.method.lower()} ({before:.3f})"
    else:
        change = f"{after / before:.1f} times that of {first.method.lower()} ({before:.3f})"
    others = "".join(
        f" By {measure} it is {rival.method.lower()} ({rival.scores[measure]:.3f} against {own:.3f})."
        for measure, own in best.scores.items()
        if (rival := _best_by(task, measure)).scores[measure] != own
    )
    facts = "".join(f" The {name} is {value:.3f}." for name, value in task.facts.items())
    return f"Best: {best.method}", f"{task.measure} {after:.3f}, {change}.{others}{facts}", "good"


def _best_by(task: TaskResult, measure: str) -> Outcome:
    sign = -1.0 if measure in ("RMSE", "MAE") else 1.0
    return max(task.outcomes, key=lambda outcome: sign * outcome.scores[measure])


def _pictures(task: TaskResult) -> list[tuple[Any, str]]:
    best = task.best()
    if task.pictures:
        return [
            (
                _bars(task),
                "Root mean squared error on what was hidden, with 95% intervals; smaller is better.",
            )
        ]
    if task.measure != "RMSE":
        lengths = list(range(1, 11))
        scores = {
            outcome.method: [precision_at_k(task.truth, outcome.predicted, k) for k in lengths]
            for outcome in task.outcomes
        }
        curve = PrecisionCurveDisplay(lengths, scores, ylabel="Precision")
        convergence = ConvergenceDisplay.from_estimator(best.model, ax=_axes())
        return [
            (curve.plot(_axes()).figure_, "Share of true hidden positives among the first k of each list."),
            (convergence.figure_, f"Objective of the chosen model ({best.method}), sweep by sweep."),
        ]
    shown = PredictionDisplay.from_predictions(task.truth, best.predicted, ax=_axes())
    return [
        (_bars(task), "Root mean squared error on what was held out, with 95% intervals; smaller is better."),
        (
            shown.figure_,
            f"{best.method}: predictions against true values. On the dashed line is right.",
        ),
    ]


def _bars(task: TaskResult) -> Any:
    """One bar for each method."""
    ax = _axes()
    names = [outcome.method for outcome in task.outcomes]
    errors = [outcome.scores["RMSE"] for outcome in task.outcomes]
    spread = [1.96 * _standard_error(task.truth, outcome.predicted) for outcome in task.outcomes]
    colours = [BEST_BAR if outcome is task.best() else BAR for outcome in task.outcomes]
    places = np.arange(len(names))[::-1]
    ax.barh(
        places, errors, xerr=spread, color=colours, height=0.62, error_kw={"ecolor": "#333333", "capsize": 3}
    )
    for place, error, width in zip(places, errors, spread, strict=True):
        ax.text(error + width + 0.012, place, f"{error:.3f}", va="center", fontsize=9)
    if NOISE_FLOOR in task.facts:
        floor = task.facts[NOISE_FLOOR]
        ax.axvline(floor, color="#D55E00", linestyle="--", linewidth=1.2)
        ax.text(floor + 0.012, len(names) - 0.42, "noise floor", color="#D55E00", fontsize=9, va="bottom")
    ax.set_yticks(places, names)
    ax.set(xlabel="RMSE", xlim=(0, 1.14 * (max(errors) + max(spread))), ylim=(-0.6, len(names) - 0.1))
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure


def _standard_error(truth: FloatArray, predicted: FloatArray) -> float:
    """Standard error of a root mean squared error, by the delta method."""
    squares = (np.asarray(truth) - predicted) ** 2
    return float(squares.std() / (2 * np.sqrt(squares.mean() * squares.size)))


def _axes() -> Any:
    """Axes on a figure of their own, without pyplot: nothing is left open and no screen is needed."""
    from matplotlib.figure import Figure

    return Figure(figsize=(6.0, 4.2), layout="constrained").subplots()


def _listed(value: Any) -> str:
    return ", ".join(f"{entry:g}" for entry in value) if isinstance(value, tuple) else str(value)
