"""GIMC: how maps are compared on classes and on labels, with every choice made on held-out training rows.

Training rows are split anew for each seed. A fifth of them judges settings:

- fixed maps (IMC-RFF, IMC-NYS): gamma and reg from grids; the chosen model is fitted again to all rows;
- learned maps: the gamma of the fixed map, reg from a grid, and the number of steps, which is then made
  with all training rows;
- linear models: reg from a grid, and with sparse features whether rows get length one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from papers.display import canvas, log_axis
from papers.experiment import Row, Unit
from unseen import LEML, GIMCClassifier, RidgeOvA
from unseen.metrics import precision_at_k

__all__ = [
    "KINDS",
    "SEEDS",
    "Split",
    "Variant",
    "averages",
    "compare_maps",
    "comparisons",
    "draw_against_m",
    "map_units",
    "matching",
    "percent",
]

SEEDS = (0, 1, 2)

GAMMAS = ("0.03median", "0.1median", "0.3median", "median", "3median")
FIXED_REGS = (1e-3, 1e-2, 0.1, 1.0, 10.0)
LEARNED_REGS = (0.01, 0.1, 1.0)
PLAIN_REGS = (1e-5, 1e-3, 0.1)
"""Features that are not whitened are small: the same fit needs a smaller penalty."""
RIDGE_REGS = (0.01, 0.1, 1.0, 10.0, 100.0)
LEML_REGS = (0.1, 0.5, 2.0, 8.0, 32.0)
VALIDATION = 0.2
KINDS = {"fourier": ("IMC-RFF", "GIMC-LFF"), "nystrom": ("IMC-NYS", "GIMC-LNYS")}
"""Maps, with the names of the models that hold them fixed and learn them."""
COLOURS = {"fourier": "C0", "nystrom": "C1"}


@dataclass(frozen=True)
class Split:
    """Training and test rows."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


@dataclass(frozen=True)
class Variant:
    """A way to learn the map: solver, Nystrom features whitened or not, gamma and reg to choose from.

    Without `gammas` the width is that of the fixed map.
    """

    solver: str = "lbfgs"
    whiten: bool = True
    gammas: tuple[str, ...] = ()
    regs: tuple[float, ...] = ()


def quality(model: Any, X: Any, Y: Any) -> list[float]:
    """Accuracy for classes; P@1, P@3 and P@5 for labels."""
    if getattr(Y, "ndim", 2) == 1:
        return [float(model.score(X, Y))]
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            X = X if step == "passthrough" else step.transform(X)
        model = model.steps[-1][1]
    ids, _ = model.predict_topk(X, 5)
    return [float(precision_at_k(Y, ids, k)) for k in (1, 3, 5)]


def best_on_validation(make: Callable[..., Any], grid: Sequence[Row], split: Split, seed: int) -> Row:
    """Settings with the highest mean quality on held-out training rows; the first of equals."""
    X, Y = split.X, split.Y
    order = np.random.default_rng(100 + seed).permutation(X.shape[0])
    cut = round(VALIDATION * len(order))
    held, kept = np.sort(order[:cut]), np.sort(order[cut:])
    scores = [
        float(np.mean(quality(make(**settings).fit(X[kept], Y[kept]), X[held], Y[held]))) for settings in grid
    ]
    return grid[int(np.argmax(scores))]


def with_constant(X: Any) -> Any:
    """Features with a column of ones, since LEML has no intercept."""
    parts: Any = [X, np.ones((X.shape[0], 1), dtype=X.dtype)]
    return sparse.csr_array(sparse.hstack(parts, format="csr"))


def linear_rows(split: Split, seed: int) -> list[Row]:
    """Ridge on the features themselves, and for labels LEML."""
    dense = not sparse.issparse(split.X)

    def ridge(unit_rows: bool, reg: float) -> Any:
        scaler = StandardScaler() if dense else Normalizer() if unit_rows else "passthrough"
        return make_pipeline(scaler, RidgeOvA(reg, fit_intercept=True, n_jobs=1))

    def leml(unit_rows: bool, reg: float) -> Any:
        model = LEML(50, reg=reg, max_iter=20, random_state=seed, n_jobs=1, intercept=False)
        scaler = Normalizer() if unit_rows else "passthrough"
        return make_pipeline(scaler, FunctionTransformer(with_constant, accept_sparse=True), model)

    models: list[tuple[str, Callable[..., Any], tuple[float, ...]]] = [("ridge", ridge, RIDGE_REGS)]
    if not dense:
        models.append(("LEML", leml, LEML_REGS))
    rows = []
    for method, make, regs in models:
        began = time.perf_counter()
        scalings = (True,) if dense else (True, False)
        grid = [{"unit_rows": unit, "reg": reg} for unit in scalings for reg in regs]
        settings = best_on_validation(make, grid, split, seed)
        model = make(**settings).fit(split.X, split.Y)
        rows.append(_row(method, None, settings, began, model, split))
    return rows


def compare_maps(split: Split, seed: int, m: int, kind: str, variants: Sequence[Variant]) -> list[Row]:
    """The fixed map, then each way to learn it."""

    def fixed(**settings: Any) -> GIMCClassifier:
        return GIMCClassifier(m, map=kind, learn_map=False, random_state=seed, n_jobs=1, **settings)

    began = time.perf_counter()
    grid = [{"gamma": gamma, "reg": reg} for gamma in GAMMAS for reg in FIXED_REGS]
    chosen = best_on_validation(fixed, grid, split, seed)
    model = fixed(**chosen).fit(split.X, split.Y)
    rows = [_row(KINDS[kind][0], m, chosen, began, model, split)]
    for variant in variants:
        began = time.perf_counter()
        settings, learned = _learned(split, seed, m, kind, variant, chosen["gamma"])
        rows.append(_row(KINDS[kind][1], m, settings, began, learned, split))
    return rows


def _learned(split: Split, seed: int, m: int, kind: str, variant: Variant, gamma: str) -> tuple[Row, Any]:
    """The settings that held-out rows choose, and the model that makes as many steps with all rows."""
    regs = variant.regs or (LEARNED_REGS if variant.whiten else PLAIN_REGS)
    found = []
    for width in variant.gammas or (gamma,):
        for reg in regs:
            settings: Row = {"gamma": width, "reg": reg, "solver": variant.solver, "whiten": variant.whiten}
            common: Row = {**settings, "map": kind, "random_state": seed, "n_jobs": 1}
            trial = GIMCClassifier(m, max_iter=100, patience=15, validation_fraction=VALIDATION, **common)
            trial.fit(split.X, split.Y)
            settings["best_iter"] = trial.best_iter_
            settings["validation"] = trial.history_[trial.best_iter_]["validation"]
            found.append((settings, common))
    settings, common = max(found, key=lambda item: float(item[0]["validation"]))
    steps: Row = {"max_iter": settings["best_iter"]} if settings["best_iter"] else {"learn_map": False}
    model = GIMCClassifier(m, tol=0.0, validation_fraction=None, **steps, **common)
    return settings, model.fit(split.X, split.Y)


def _row(method: str, m: int | None, settings: Row, began: float, model: Any, split: Split) -> Row:
    return {
        "method": method,
        "m": m,
        "settings": settings,
        "test": quality(model, split.X_test, split.Y_test),
        "seconds": round(time.perf_counter() - began, 1),
    }


def map_units(
    draw: Callable[[str, int], Split],
    sizes: Mapping[str, Sequence[int]],
    seeds: Sequence[int],
    fourier: Variant | None = None,
) -> list[Unit]:
    """Linear models of each split, and a fixed map beside the learned one for each size and kind of map.

    Nystrom features are also learned as in the paper, not whitened.
    """
    variants = {"fourier": [fourier or Variant()], "nystrom": [Variant(), Variant(whiten=False)]}

    def linear(name: str, seed: int) -> list[Row]:
        return [{"data": name, "seed": seed, **row} for row in linear_rows(draw(name, seed), seed)]

    def maps(name: str, m: int, kind: str, seed: int) -> list[Row]:
        rows = compare_maps(draw(name, seed), seed, m, kind, variants[kind])
        return [{"data": name, "seed": seed, **row} for row in rows]

    return [
        unit
        for name, several in sizes.items()
        for seed in seeds
        for unit in (
            Unit(f"{name} linear seed={seed}", partial(linear, name, seed)),
            *(
                Unit(f"{name} m={m} {kind} seed={seed}", partial(maps, name, m, kind, seed))
                for m in several
                for kind in KINDS
            ),
        )
    ]


def comparisons(rows: list[Row]) -> list[tuple[str, int, str, list[Row], list[Row], list[Row]]]:
    """Data, m, map, and the rows of the fixed map, of the learned one, and of that with M = I."""
    found = []
    for name in dict.fromkeys(row["data"] for row in rows):
        here = matching(rows, data=name)
        for m in sorted({row["m"] for row in here if row["m"] is not None}):
            for kind, (fixed, learned) in KINDS.items():
                ours = matching(here, m=m, method=learned, solver="lbfgs")
                learned_rows, plain = (matching(ours, whiten=flag) for flag in (True, False))
                if learned_rows:
                    fixed_rows = matching(here, m=m, method=fixed)
                    found.append((name, m, kind, fixed_rows, learned_rows, plain))
    return found


def matching(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """Rows with these facts or settings."""
    return [
        row
        for row in rows
        if all(row.get(key, row["settings"].get(key)) == value for key, value in wanted.items())
    ]


def averages(rows: Sequence[Row]) -> list[float]:
    """Each measure in per cent, mean over the seeds."""
    return [100 * mean(column) for column in zip(*(row["test"] for row in rows), strict=True)]


def percent(rows: Sequence[Row]) -> str:
    """Averages side by side."""
    return " / ".join(f"{value:.1f}" for value in averages(rows)) if rows else "not run"


def draw_against_m(rows: list[Row], place: int, label: str) -> Any:
    """One panel for each data set; fixed maps dashed, linear models as level lines.

    Parameters
    ----------
    rows : list of dict
        Results.
    place : int
        Which of the measures.
    label : str
        What it is.

    Returns
    -------
    matplotlib.figure.Figure
        The drawing.
    """
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, panels = canvas((3.2 * len(names) + 1.6, 3.2), len(names))
    for axes, name in zip(panels, names, strict=True):
        here = matching(rows, data=name)
        sizes = sorted({row["m"] for row in here if row["m"] is not None})
        for kind, methods in KINDS.items():
            for method, style, learned in zip(methods, ("s--", "o-"), (False, True), strict=True):
                wanted = {"solver": "lbfgs", "whiten": True} if learned else {}
                own = {m: matching(here, method=method, m=m, **wanted) for m in sizes}
                own = {m: found for m, found in own.items() if found}
                values = [averages(found)[place] for found in own.values()]
                axes.plot(list(own), values, style, color=COLOURS[kind], label=method)
        for method, colour in (("ridge", "0.4"), ("LEML", "0.7")):
            found = matching(here, method=method)
            if found:
                axes.axhline(averages(found)[place], color=colour, linestyle=":", label=method)
        axes.set(title=name, xlabel="m")
        log_axis(axes, sizes)
        axes.margins(x=0.1)
    panels[0].set_ylabel(label)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure
