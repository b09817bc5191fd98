"""GIMC: the toy of figure 1 with width, penalty and number of sweeps chosen on held-out cells, three seeds.

A tenth of the seen cells judges every setting; then each method is fitted once to all of them. Fixed and
learned maps choose among the same nine widths and penalties; sweeps that move a map end where the held-out
cells were predicted best.
"""

from __future__ import annotations

from functools import partial
from statistics import mean
from typing import Any

import numpy as np

from papers.display import Table, canvas, three
from papers.exmlds_contenders import Setting, grid
from papers.experiment import Claim, Experiment, Row, Unit, grouped, take_out
from papers.gimc_toy import ALTERNATIONS, COLOURS, REGS
from unseen import GIMC, IMC, Fourier, MatrixFactorization, Observations
from unseen.datasets import Synthetic, make_gimc_toy

__all__ = ["EXPERIMENT"]

SEEDS = (0, 1, 2)
OWN = REGS["figure 1"]
WIDTHS = (0.0003, 0.001, 0.003)
MAPS = grid(gamma=WIDTHS, reg=OWN["other"])
METHODS: dict[str, tuple[Setting, ...]] = {
    "MC": grid(reg=OWN["MC"]),
    "IMC": grid(reg=OWN["IMC"]),
    "IMC-RFF": MAPS,
    "GIMC": MAPS,
}
SHOWN = (0.05, 0.1)


def build(method: str, n: int, setting: Setting) -> Any:
    """A model that has not been fitted; ranks and features go with n, as in gimc-toy."""
    rank, shared = n // 10, {"random_state": 0, "n_jobs": 1, "center": "none", "reg": setting["reg"]}
    if method == "MC":
        return MatrixFactorization(rank, max_iter=200, **shared)
    if method == "IMC":
        return IMC(rank, intercept=False, standardize=False, max_iter=50, **shared)
    a_map = Fourier(n // 4, setting["gamma"], learnable=method == "GIMC")
    return GIMC(rank, row_map=a_map, col_map=a_map, standardize=False, **{**ALTERNATIONS, **shared})


def one(method: str, share: float, seed: int, n: int) -> list[Row]:
    """One method on one draw."""
    data = make_gimc_toy(n, n, n // 4, fraction=share, random_state=seed)
    seen = data.observations
    sides = {} if method == "MC" else {"row_features": data.row_features, "col_features": data.col_features}
    order = np.random.default_rng(0).permutation(seen.nnz)
    training, held_out = take_out(seen, order[: seen.nnz // 10])
    tried = []
    for place, setting in enumerate(METHODS[method]):
        if method == "GIMC":
            error, sweeps = along(build(method, n, setting), training, held_out, sides)
        else:
            error, sweeps = off(build(method, n, setting).fit(training, **sides), held_out), None
        tried.append((error, place, sweeps))
    _, place, sweeps = min(tried)
    chosen = METHODS[method][place]
    model = build(method, n, chosen)
    if sweeps is not None:
        model.set_params(max_iter=sweeps)
    model.fit(seen, **sides)
    facts = {"method": method, "share": share, "seed": seed, "setting": chosen, "sweeps": sweeps}
    return [{**facts, "error": against_truth(model, data)}]


def along(model: Any, training: Observations, held_out: Observations, sides: Row) -> tuple[float, int]:
    """Error on held-out cells after each of some numbers of sweeps, each going on from the last."""
    best, total = (np.inf, 1), 0
    for more in (3, 7, 20):
        model.set_params(max_iter=more, warm_start=total > 0).fit(training, **sides)
        total += more
        best = min(best, (off(model, held_out), total))
    return best


def off(model: Any, cells: Observations) -> float:
    """Squared error."""
    away = model.predict_entries(cells.rows, cells.indices, positions=True) - cells.values
    return float(away @ away)


def against_truth(model: Any, data: Synthetic) -> float:
    """Relative error on the unseen cells, without the noise."""
    truth = data.row_factors @ data.col_factors.T
    hidden = np.ones(truth.shape, dtype=bool)
    hidden[data.observations.rows, data.observations.indices] = False
    away = (model.row_factors_ @ model.col_factors_.T - truth)[hidden]
    return float(np.linalg.norm(away) / np.linalg.norm(truth[hidden]))


def units(quick: bool) -> list[Unit]:
    return [
        Unit(f"{method} seen={share} seed={seed}", partial(one, method, share, seed, 100 if quick else 200))
        for method in METHODS
        for share in (SHOWN[1:2] if quick else SHOWN)
        for seed in (SEEDS[:1] if quick else SEEDS)
    ]


def errors(rows: list[Row]) -> dict[float, dict[str, list[float]]]:
    """Errors over the seeds, by share and method."""
    return {
        share: {method: [row["error"] for row in own] for (method,), own in grouped(draws, "method").items()}
        for (share,), draws in sorted(grouped(rows, "share").items())
    }


def tables(rows: list[Row]) -> dict[str, Table]:
    lines = [
        [
            f"{100 * share:.0f} %",
            *(f"{three(mean(own[m]))} ± {three(float(np.std(own[m])))}" for m in METHODS),
        ]
        for share, own in errors(rows).items()
    ]
    chosen = [
        [f"{100 * share:.0f} %", *("; ".join(dict.fromkeys(map(_told, by[m,]))) for m in METHODS)]
        for (share,), draws in sorted(grouped(rows, "share").items())
        for by in [grouped(draws, "method")]
    ]
    return {
        "chosen toy": Table.of(
            ["seen", *METHODS], lines, "Relative error on unseen cells, over three seeds."
        ),
        "settings": Table.of(["seen", *METHODS], chosen, "Width and penalty, and sweeps that move the map."),
    }


def _told(row: Row) -> str:
    numbers = [f"{value:g}" for value in row["setting"].values()]
    return ", ".join([*numbers, *([] if row["sweeps"] is None else [f"{row['sweeps']} sweeps"])])


def claims(rows: list[Row]) -> list[Claim]:
    means = [{method: mean(own[method]) for method in own} for own in errors(rows).values()]
    why = "figure 1, every setting chosen on held-out cells, mean over three seeds, one case a share"
    return [
        Claim.judged("so chosen, features help: IMC is below MC", [e["IMC"] < e["MC"] for e in means], why),
        Claim.judged(
            "so chosen, a learned map is clearly best: GIMC is below IMC and IMC-RFF",
            [e["GIMC"] < e[other] for e in means for other in ("IMC", "IMC-RFF")],
            why,
        ),
        Claim.judged(
            "so chosen, random features are level with linear ones or better",
            [e["IMC-RFF"] <= e["IMC"] for e in means],
            why,
        ),
        Claim.ours(
            "so chosen, learning the map lowers the error: GIMC is below IMC-RFF",
            [e["GIMC"] < e["IMC-RFF"] for e in means],
            why,
        ),
    ]


def figures(rows: list[Row]) -> list[tuple[Any, str]]:
    found = errors(rows)
    figure, (axes,) = canvas((4.6, 3.4))
    for method in METHODS:
        axes.plot(
            [100 * share for share in found],
            [mean(own[method]) for own in found.values()],
            "o-",
            color=COLOURS[method],
            label=method,
        )
    axes.set(xlabel="cells seen, %", ylabel="relative error on unseen cells", ylim=(0, None))
    axes.legend(frameon=False)
    return [(figure, "Error against the share of seen cells, settings chosen on held-out cells.")]


EXPERIMENT = Experiment(
    name="gimc-chosen",
    paper="gimc",
    shows="figure 1 with width, penalty and number of sweeps chosen on held-out cells",
    differences="As in gimc-toy; three widths beside the penalties there, three seeds, L-BFGS for the maps.",
    units=units,
    tables=tables,
    claims=claims,
    figures=figures,
)
