"""Write the tables and the figure of docs/papers/mixed.md from the stored results of the mixed_* suites.

python -m benchmarks mixed_tables
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers" / "mixed.md"
FIGURE = ROOT / "docs" / "papers" / "mixed_curves.svg"
STORED = ROOT / "benchmarks" / "stored"
Entries = list[dict[str, Any]]


def load(name: str) -> Entries:
    path = STORED / f"{name}.json"
    return json.loads(path.read_text())["results"] if path.exists() else []


def table(header: list[str], lines: list[list[str]]) -> str:
    if not lines:
        return "*Not measured yet.*"
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def names_of(entries: Entries) -> list[str]:
    return list(dict.fromkeys(entry["method"] for entry in entries))


def mean(values: Iterable[float], full: int) -> str:
    """Mean and spread; the number of runs where some are missing."""
    found = list(values)
    if not found:
        return ""
    spread = f" ± {np.std(found):.4f}" if len(found) > 1 else ""
    return f"{np.mean(found):.4f}{spread}" + (f" ({len(found)})" if len(found) < full else "")


def settings() -> str:
    lines = []
    for entry in load("mixed_settings"):
        if entry["method"].startswith(("MixedLinear", "DirtyIMC, intercept")):
            tried = ", ".join(f"{float(value):g}: {error:.4f}" for value, error in entry["tried"].items())
            lines.append([entry["method"].split(", center")[0], f"{entry['rate']:.0%}", entry["center"],
                          f"{entry['value']:g}", str(entry["sweeps"]), tried])  # fmt: skip
    return table(
        ["", "removed", "center", "penalty / scale", "sweeps", "held-out RMSE along the walk"], lines
    )


def rates() -> str:
    entries = load("mixed_rates")
    shares = sorted({entry["rate"] for entry in entries})
    lines = [
        [name, *(mean((e["ratio"] for e in entries if (e["method"], e["rate"]) == (name, rate)), 4)
                 for rate in shares)]
        for name in sorted(names_of(entries), key=_order)
    ]  # fmt: skip
    paper = {0.2: 0.276, 0.3: 0.279, 0.4: 0.284, 0.5: 0.292}
    lines.append(["paper, its own method", *(f"{paper[rate]:.3f}" for rate in shares)])
    return table(["ratio on removed cells", *(f"{rate:.0%}" for rate in shares)], lines)


def _order(name: str) -> tuple[int, str]:
    first = ("MixedLinear soft", "MixedLinear hard", "BiasModel")
    return (first.index(name), "") if name in first else (len(first), name)


def sweeps() -> str:
    lines = [
        [str(e["sweep"]), f"{e['validation']:.4f}", str(e["rank"]), f"{e['feasibility']:.3f}"]
        for e in load("mixed_sweeps")
        if e["sweep"] in (1, 2, 4, 6, 8, 10, 15, 20, 25, 30)
    ]
    return table(["sweep", "held-out RMSE", "rank of E", "‖P(E - M)‖ / ‖P(M)‖"], lines)


def folds() -> str:
    entries = load("mixed_folds")
    lines = [
        [
            name,
            *(mean((e[key] for e in entries if e["method"] == name), 5) for key in ("rmse", "mae", "ratio")),
        ]
        for name in sorted(names_of(entries), key=_order)
    ]
    return table(["mean of u1 to u5", "RMSE", "MAE", "ratio"], lines)


def cold() -> str:
    entries = load("mixed_cold")
    lines = [
        [name, *(mean((e[key] for e in entries if (e["method"], e["side"]) == (name, side)), 4)
                 for side in ("row", "col") for key in ("rmse", "mae"))]
        for name in sorted(names_of(entries), key=lambda name: name.startswith("cmfrec"))
    ]  # fmt: skip
    return table(["", "users: RMSE", "MAE", "movies: RMSE", "MAE"], lines)


def few() -> str:
    entries = load("mixed_synthetic_few")
    seeds = sorted({entry["seed"] for entry in entries})
    lines = []
    for name in names_of(entries):
        mine = {entry["seed"]: entry for entry in entries if entry["method"] == name}
        found = [
            f"{np.mean([e[key] for e in mine.values()]):.2f}" if all(key in e for e in mine.values()) else ""
            for key in ("nonzero_precision", "nonzero_recall", "precision", "recall")
        ]
        lines.append([name, *(f"{mine[s]['ratio']:.4f}" for s in seeds), *found])
    floors = {entry["seed"]: entry["floor"] for entry in entries}
    if lines:
        lines.append(["noise floor", *(f"{floors[s]:.4f}" for s in seeds), *[""] * 4])
    header = ["not zero: precision", "recall", "large: precision", "recall"]
    return table(["ratio", *(f"seed {s}" for s in seeds), *header], lines)


def drugs() -> str:
    entries = load("mixed_synthetic_drugs")
    shares = sorted({entry["rate"] for entry in entries})
    lines = [
        [name, *(mean((e["ratio"] for e in entries if (e["method"], e["rate"]) == (name, rate)), 4)
                 for rate in shares)]
        for name in names_of(entries)
    ]  # fmt: skip
    if lines:
        paper = {0.2: 0.201, 0.3: 0.219, 0.4: 0.225, 0.5: 0.240}
        lines.append(["paper, its own method, other data", *(f"{paper[rate]:.3f}" for rate in shares)])
    return table(["ratio", *(f"{rate:.0%}" for rate in shares)], lines)


def curves() -> str:
    entries = load("mixed_synthetic_curves")
    shares = sorted({entry["rate"] for entry in entries})
    lines = []
    for sim in dict.fromkeys(entry["sim"] for entry in entries):
        mine = [entry for entry in entries if entry["sim"] == sim]
        for name in names_of(mine):
            of = [e for e in mine if e["method"] == name]
            lines.append(
                [sim, name, *(f"{np.mean([e['ratio'] for e in of if e['rate'] == r]):.4f}" for r in shares)]
            )
        lines.append(
            [
                sim,
                "noise floor",
                *(f"{np.mean([e['floor'] for e in mine if e['rate'] == r]):.4f}" for r in shares),
            ]
        )
    return table(["", "ratio", *(f"{rate:.0%}" for rate in shares)], lines)


def curve_support() -> str:
    entries = [entry for entry in load("mixed_synthetic_curves") if "precision" in entry]
    shares = sorted({entry["rate"] for entry in entries})
    lines = []
    for name in names_of(entries):
        cells = []
        for rate in shares:
            mine = [e for e in entries if (e["method"], e["rate"]) == (name, rate)]
            cells.append(
                " / ".join(
                    f"{np.mean([e[k] for e in mine]):.2f}" for k in ("nonzero_precision", "nonzero_recall")
                )
            )
        lines.append([name, *cells])
    return table(["sim 1: precision / recall", *(f"{rate:.0%}" for rate in shares)], lines)


def scale() -> str:
    lines = [
        [entry["method"], str(entry["n_iter"]), f"{entry['seconds']:.0f}", f"{entry['peak_gib']:.2f}",
         f"{entry['peak_gib_of_data']:.2f}", str(entry.get("largest_rank") or ""),
         f"{entry['relative_gap']:.1e}"]
        for entry in load("mixed_scale")
    ]  # fmt: skip
    header = ["", "steps", "seconds", "peak GiB", "of it data and libraries", "largest rank", "relative gap"]
    return table(header, lines)


def scale_dense() -> str:
    path = STORED / "mixed_scale.json"
    if not path.exists():
        return "*Not measured yet.*"
    dense = json.loads(path.read_text())["dense"]
    n, m = dense["shape"]
    line = [f"{n} x {m}", f"{dense['cells']:,}", str(dense["n_iter"]), f"{dense['seconds']:.1f}",
            f"{dense['seconds_dense']:.0f}", f"{dense['seconds_dense'] / dense['seconds']:.0f}"]  # fmt: skip
    return table(["SoftImpute", "cells", "steps", "seconds", "by dense SVD", "times faster"], [line])


def figure() -> None:
    """Error against the missing rate for the three set-ups."""
    entries = load("mixed_synthetic_curves")
    if not entries:
        return
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "mixed"
    from matplotlib import pyplot as plt

    sims = list(dict.fromkeys(entry["sim"] for entry in entries))
    shares = sorted({entry["rate"] for entry in entries})
    drawing, axes = plt.subplots(1, len(sims), figsize=(10, 3.2), sharey=True, layout="constrained")
    for ax, sim in zip(axes, sims, strict=True):
        mine = [entry for entry in entries if entry["sim"] == sim]
        for name in names_of(mine):
            heights = [
                np.mean([e["ratio"] for e in mine if (e["method"], e["rate"]) == (name, r)]) for r in shares
            ]
            ax.plot(shares, heights, marker=".", label=name)
        floor = [np.mean([e["floor"] for e in mine if e["rate"] == r]) for r in shares]
        ax.plot(shares, floor, color="grey", linestyle=":", label="noise floor")
        ax.set(title=sim, xlabel="share of cells missing", yscale="log")
    axes[0].set_ylabel("relative error on missing cells")
    axes[-1].legend(fontsize="x-small")
    drawing.savefig(FIGURE, metadata={"Date": None})


TABLES: dict[str, Callable[[], str]] = {
    make.__name__: make
    for make in (settings, rates, sweeps, folds, cold, few, drugs, curves, curve_support, scale, scale_dense)
}


def filled(text: str) -> str:
    """A page with its tables as the stored results have them."""
    for name, make in TABLES.items():
        pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.S)
        text = pattern.sub(lambda found, make=make: f"{found[1]}\n{make()}\n\n{found[2]}", text)
    return text


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text()))
    figure()


if __name__ == "__main__":
    main()
