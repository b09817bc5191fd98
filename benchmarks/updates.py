"""Updates beside new fits: one hundredth new cells, rows or columns, and fifty updates in a row.

python -m benchmarks updates [--size small|medium|large], or only some data and parts, which take the place of
what is stored of them: python -m benchmarks.updates large Gowalla cells lists-cells curve

Times are those of the processor, on one thread: they hold where something else runs beside.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import unseen
from benchmarks._peers import run_child
from benchmarks._store import STORED, if_measured, keep, stored
from papers.display import markdown
from unseen import BiasMC, MatrixFactorization, Observations
from unseen.data.merging import merge_cells
from unseen.datasets import load_ml100k, make_power_law
from unseen.metrics import recall_at_k

SHARE = 0.01
N_THREADS = 1
"""Of updates and of new fits; several would wait for each other where anything else runs."""
UPDATES = 50
LARGE = 1_000_000
"""Cells above which things are timed twice, elsewhere three times."""
SEEDS = {"MovieLens-100K": 20, "Gowalla": 4}
"""Draws of the new cells and of the start for lists; on other data three."""
JUDGED = 20_000
"""Rows whose lists are looked at, at the most."""
HELD_OUT = 0.1
"""Cells that lists are judged by, where the data has no test cells of its own."""
CHILD = Path(__file__).parent / "_update_child.py"


Problem = tuple[str, Any, Observations, Observations]


def problems(size: str, only: str) -> Iterator[Problem]:
    """Name, model, training cells and test cells."""
    if only in "MovieLens-100K":
        biased = MatrixFactorization(
            10, reg=8.0, center="joint", max_iter=100, random_state=0, n_jobs=N_THREADS
        )
        yield "MovieLens-100K", biased, *held_out(load_ml100k().observations)
    if size != "small" and only in "Gowalla":
        lists = BiasMC(64, alpha=0.99, reg=1.0, cg_steps=3, random_state=0, n_jobs=N_THREADS)
        yield "Gowalla", lists, *gowalla()
    if size == "large" and only in "generated":
        cells = make_power_law(200_000, 50_000, 5_000_000, exponent=0.8, random_state=0).observations
        model = BiasMC(64, alpha=0.9, reg=1.0, cg_steps=3, random_state=0, n_jobs=N_THREADS)
        yield f"{cells.nnz / 1e6:.1f} million generated", model, *held_out(cells)


def held_out(cells: Observations) -> tuple[Observations, Observations]:
    """Training and test cells."""
    test = np.random.default_rng(2).random(cells.nnz) < HELD_OUT
    return cells.select(~test), cells.select(test)


def gowalla() -> tuple[Observations, Observations]:
    """Training and test cells of the split that published work uses."""
    import gzip
    import os

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


def arriving(
    cells: Observations, what: str, rng: np.random.Generator, test: Observations
) -> tuple[Observations, Observations, Observations]:
    """Cells before and after, and test cells; new rows and columns come last, as they do in life."""
    n, m = cells.shape
    if what == "cells":
        later = rng.random(cells.nnz) < SHARE
        return cells.select(~later), cells.select(later), test
    side = 0 if what == "rows" else 1
    moved = np.argsort(rng.permutation(cells.shape[side]))
    kept = (n, m)[side] - max(1, round(SHARE * (n, m)[side]))

    def placed(part: Observations, mask: Any, size: tuple[int, int]) -> Observations:
        places = [part.rows, part.indices]
        places[side] = moved[places[side]]
        return Observations.from_triples(places[0][mask], places[1][mask], part.values[mask], size)

    before = moved[(cells.rows, cells.indices)[side]] < kept
    return (
        placed(cells, before, (kept, m) if side == 0 else (n, kept)),
        placed(cells, ~before, (n, m)),
        placed(test, slice(None), (n, m)),
    )


def one_update(model: Any, cells: Observations, what: str) -> dict[str, Any]:
    """Processor seconds and objectives of an update and of a new fit, in turns."""
    before, after, _ = arriving(cells, what, np.random.default_rng(0), cells)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home:
        warnings.simplefilter("ignore")
        seconds: dict[str, list[float]] = {"update": [], "refit": []}
        clone(model).fit(before).save(Path(home) / "base", cells=True)
        for _ in range(2 if cells.nnz > LARGE else 3):
            base = unseen.load(Path(home) / "base")
            start = time.process_time()
            base.partial_fit(after)
            seconds["update"].append(time.process_time() - start)
            everything = base._training_data().cells
            start = time.process_time()
            new = clone(model).fit(everything)
            seconds["refit"].append(time.process_time() - start)
        row = {
            "update_s": min(seconds["update"]),
            "refit_s": min(seconds["refit"]),
            "share": min(seconds["update"]) / min(seconds["refit"]),
            "above": base.history_[-1]["objective"] / new.history_[-1]["objective"] - 1.0,
            "drift": base.drift_,
            "full_sweeps": base.history_[-1]["full_sweeps"],
        }
        row["n_sweeps"] = new.n_iter_
    return row


def judged(model: Any, cells: Observations, test: Observations, what: str, seeds: int) -> dict[str, Any]:
    """Recall@20 of updated models, of new fits from the same seed, and of new fits from another."""
    found: dict[str, list[float]] = {"update": [], "refit": [], "other": []}
    for seed in range(seeds):
        before, after, wanted = arriving(cells, what, np.random.default_rng(seed), test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            updated = clone(model).set_params(random_state=seed).fit(before).partial_fit(after)
            everything = updated._training_data().cells
            fits = [clone(model).set_params(random_state=one).fit(everything) for one in (seed, 1000 + seed)]
        rows = np.random.default_rng(0).permutation(test.shape[0])[:JUDGED]
        for name, one in zip(found, (updated, *fits), strict=True):
            found[name].append(recall_at_k(wanted.csr[rows], lists(one, everything, rows), k=20))
        print(what, seed, {name: values[-1] for name, values in found.items()}, flush=True)
    return found


def by_implicit(model: BiasMC, cells: Observations, what: str, n_sweeps: int) -> dict[str, Any]:
    """The same update by implicit, which minimises the same."""
    before, later, _ = arriving(cells, what, np.random.default_rng(0), cells)
    after = merge_cells(before, later).cells
    with tempfile.TemporaryDirectory() as home:
        paths = {}
        for name, part in (("before", before), ("after", after)):
            paths[name] = str(Path(home) / f"{name}.npz")
            np.savez(paths[name], indptr=part.indptr, indices=part.indices, shape=part.shape)
        request = {
            **paths, "alpha": model.alpha, "lam": model.reg, "rank": model.rank, "n_sweeps": n_sweeps,
            "n_threads": N_THREADS,
        }  # fmt: skip
        return run_child("implicit", CHILD, request, n_threads=N_THREADS)


def lists(model: Any, seen: Observations, rows: Any) -> Any:
    """Lists of 20 without what was seen."""
    ids, scores = model.recommend(rows, 20, exclude=seen, positions=True)
    return np.where(np.isnan(scores), -1, ids)


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


KINDS = ("cells", "rows", "columns")
PARTS = (*KINDS, "implicit", "lists", "curve")


def main(size: str = "large", only: str = "", *parts: str) -> None:
    before = stored("updates") if size == "large" and (STORED / "updates.json").exists() else {}
    rows: dict[tuple[str, str], Any] = {(row["data"], row["new"]): row for row in before.get("rows", [])}
    found: dict[str, Any] = {name: before.get(name, {}) for name in ("curves", "lists")}
    for name, model, cells, test in problems(size, only):
        for part in parts or PARTS:
            if part in KINDS:
                rows.setdefault((name, part), {"data": name, "new": part}).update(
                    one_update(model, cells, part)
                )
                print(rows[name, part], flush=True)
            elif part == "implicit":
                for what in KINDS if isinstance(model, BiasMC) else ():
                    row = rows[name, what]
                    row["implicit"] = by_implicit(model, cells, what, row["n_sweeps"])
            elif part == "curve":
                found["curves"][name] = in_a_row(model, cells)
            else:
                _, _, one = part.partition("-")
                for what in (one,) if one else KINDS:
                    seeds = SEEDS.get(name, 3)
                    found["lists"].setdefault(name, {})[what] = judged(model, cells, test, what, seeds)
            results = {"share": SHARE, "updates": UPDATES, "n_threads": N_THREADS}
            keep("updates", {**results, "rows": list(rows.values()), **found}, size)


def tables() -> dict[str, str]:
    """What the guide shows."""
    made = {"updates": _table, "updates-lists": _lists, "updates-in-a-row": _curve}
    return {name: if_measured("updates", make) for name, make in made.items()}


def _table(results: dict[str, Any]) -> str:
    header = ["data", "1 % new", "update, s", "new fit, s", "share", "objective above", "drift told"]
    lines = []
    for row in results["rows"]:
        lines.append([row["data"], row["new"], *_times(row), f"{row['drift']:.2%}"])
        if "implicit" in row:
            lines.append(["", "by implicit", *_times(row["implicit"]), ""])
    return markdown(header, lines)


def _times(row: dict[str, Any]) -> list[str]:
    return [f"{row['update_s']:.2f}", f"{row['refit_s']:.2f}", f"{row['share']:.1%}", f"{row['above']:+.3%}"]


def _lists(results: dict[str, Any]) -> str:
    header = ["data", "1 % new", "draws", "updated", "new fit", "updated, less", "another seed, less"]
    lines = []
    for name, parts in results["lists"].items():
        for what, found in parts.items():
            updated, refit, other = (np.array(found[kind]) for kind in ("update", "refit", "other"))
            means = [f"{values.mean():.4f}" for values in (updated, refit)]
            losses = [_loss(refit, values) for values in (updated, other)]
            lines.append([name, what, str(len(refit)), *means, *losses])
    return markdown(header, lines)


def _loss(refit: Any, values: Any) -> str:
    """Share of the recall that is lost in the mean, its standard error, and the largest of one draw."""
    loss = (refit - values) / refit.mean()
    return f"{loss.mean():+.1%} +- {loss.std(ddof=1) / np.sqrt(len(loss)):.1%} (most {loss.max():+.1%})"


def _curve(results: dict[str, Any]) -> str:
    curves = results["curves"]
    header = ["updates", *(f"{name}: {what}" for name in curves for what in ("told", "above"))]
    picked = [[row for row in curve if "true" in row] for curve in curves.values()]
    lines = [
        [str(rows[0]["update"]), *(f"{row[what]:+.2%}" for row in rows for what in ("told", "true"))]
        for rows in zip(*picked, strict=True)
    ]
    return markdown(header, lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
