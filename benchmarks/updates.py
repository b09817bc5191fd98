"""Updates beside new fits: one hundredth new cells, rows or columns, and fifty updates in a row.

python -m benchmarks updates [--size small|medium|large]
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks._store import if_measured, keep
from papers.display import markdown
from unseen import BiasMC, MatrixFactorization, Observations
from unseen.datasets import load_ml100k, make_power_law
from unseen.metrics import recall_at_k

SHARE = 0.01
UPDATES = 50


def problems(size: str) -> dict[str, tuple[Any, Observations, Observations | None]]:
    """Model, training cells and, for lists, test cells."""
    biased = MatrixFactorization(10, reg=8.0, center="joint", max_iter=100, random_state=0, n_jobs=2)
    found = {"MovieLens-100K": (biased, load_ml100k().observations, None)}
    if size != "small":
        train, test = gowalla()
        lists = BiasMC(64, alpha=0.99, reg=1.0, cg_steps=3, random_state=0, n_jobs=2)
        found["Gowalla"] = (lists, train, test)
    if size == "large":
        cells = make_power_law(200_000, 50_000, 5_000_000, exponent=0.8, random_state=0).observations
        found["4.5 million generated"] = (
            BiasMC(64, alpha=0.9, reg=1.0, cg_steps=3, random_state=0),
            cells,
            None,
        )
    return found


def gowalla() -> tuple[Observations, Observations]:
    """Training and test cells of the split that published work uses."""
    import gzip
    import os
    from pathlib import Path

    home = Path(os.environ["UNSEEN_DATA"]) / "gowalla"
    parts = []
    for name in ("train", "test"):
        rows: list[int] = []
        cols: list[int] = []
        with gzip.open(home / f"{name}.txt.gz", "rt") as lines:
            for line in lines:
                row, *places = map(int, line.split())
                rows += [row] * len(places)
                cols += places
        parts.append(Observations.from_triples(rows, cols, np.ones(len(rows)), shape=(29_858, 40_981)))
    return parts[0], parts[1]


def arriving(cells: Observations, what: str, rng: np.random.Generator) -> tuple[Observations, Observations]:
    """Cells before and after; new rows and columns come last, as they do in life."""
    n, m = cells.shape
    if what == "cells":
        later = rng.random(cells.nnz) < SHARE
        return cells.select(~later), cells.select(later)
    side = 0 if what == "rows" else 1
    order = rng.permutation(cells.shape[side])
    number = (cells.rows, cells.indices)[side]
    moved = np.argsort(order)[number]
    kept = (n, m)[side] - max(1, round(SHARE * (n, m)[side]))
    places = (moved, cells.indices) if side == 0 else (cells.rows, moved)
    before = moved < kept
    shape = (kept, m) if side == 0 else (n, kept)
    parts = []
    for some, size in ((before, shape), (~before, (n, m))):
        parts.append(Observations.from_triples(places[0][some], places[1][some], cells.values[some], size))
    return parts[0], parts[1]


def one_update(model: Any, cells: Observations, test: Observations | None, what: str) -> dict[str, Any]:
    """Seconds and objectives of an update and of a new fit, in turns."""
    rng = np.random.default_rng(0)
    before, after = arriving(cells, what, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds: dict[str, list[float]] = {"update": [], "refit": []}
        for _ in range(3):
            base = clone(model).fit(before)
            start = time.perf_counter()
            base.partial_fit(after)
            seconds["update"].append(time.perf_counter() - start)
            everything = base._training_data().cells
            start = time.perf_counter()
            new = clone(model).fit(everything)
            seconds["refit"].append(time.perf_counter() - start)
    row = {
        "update_s": min(seconds["update"]),
        "refit_s": min(seconds["refit"]),
        "share": min(seconds["update"]) / min(seconds["refit"]),
        "above": base.history_[-1]["objective"] / new.history_[-1]["objective"] - 1.0,
        "drift": base.drift_,
        "full_sweeps": base.history_[-1]["full_sweeps"],
    }
    if test is not None and what == "cells":
        found = [recall_at_k(test, *lists(one, everything), k=20) for one in (base, new)]
        row |= {"recall_update": found[0], "recall_refit": found[1]}
    return row


def lists(model: Any, seen: Observations) -> tuple[Any]:
    """Lists of 20 without what was seen."""
    ids, _ = model.recommend(np.arange(seen.shape[0]), 20, exclude=seen)
    return (ids,)


def in_a_row(model: Any, cells: Observations) -> list[dict[str, float]]:
    """Half of the cells first, then the rest in fifty updates; the drift that is told and the true one."""
    rng = np.random.default_rng(1)
    part = rng.integers(0, 2 * UPDATES, cells.nnz)
    curve = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        current = clone(model).fit(cells.select(part < UPDATES))
        for count in range(UPDATES):
            current.partial_fit(cells.select(part == UPDATES + count))
            row = {"update": count + 1, "told": current.drift_}
            if count % 10 == 9:
                new = clone(model).fit(current._training_data().cells)
                row["true"] = current.history_[-1]["objective"] / new.history_[-1]["objective"] - 1.0
            curve.append(row)
    return curve


def main(size: str = "large") -> None:
    results: dict[str, Any] = {"share": SHARE, "updates": UPDATES, "rows": [], "curves": {}}
    for name, (model, cells, test) in problems(size).items():
        for what in ("cells", "rows", "columns"):
            row = one_update(model, cells, test, what)
            results["rows"].append({"data": name, "new": what, **row})
            print(results["rows"][-1], flush=True)
        if name == "MovieLens-100K":
            results["curves"][name] = in_a_row(model, cells)
    print(keep("updates", results, size))


def tables() -> dict[str, str]:
    """What the guide shows."""
    return {"updates": if_measured("updates", _table), "updates-in-a-row": if_measured("updates", _curve)}


def _table(results: dict[str, Any]) -> str:
    header = [
        "data",
        "1 % new",
        "update, s",
        "new fit, s",
        "share",
        "objective above",
        "drift told",
        "recall@20",
    ]
    lines = []
    for row in results["rows"]:
        recall = f"{row['recall_update']:.4f} / {row['recall_refit']:.4f}" if "recall_update" in row else ""
        lines.append(
            [
                row["data"], row["new"], f"{row['update_s']:.2f}", f"{row['refit_s']:.2f}",
                f"{row['share']:.1%}", f"{row['above']:+.3%}", f"{row['drift']:.2%}", recall,
            ]
        )  # fmt: skip
    return markdown(header, lines)


def _curve(results: dict[str, Any]) -> str:
    curve = results["curves"]["MovieLens-100K"]
    picked = [row for row in curve if "true" in row]
    lines = [[str(row["update"]), f"{row['told']:.2%}", f"{row['true']:+.2%}"] for row in picked]
    return markdown(["updates", "drift told", "objective above that of a new fit"], lines)


if __name__ == "__main__":
    main()
