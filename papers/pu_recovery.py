"""PU: recovery from positives of which nine in ten are hidden, as the number of rows grows."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from statistics import mean
from typing import Any

import numpy as np

from papers.display import Table, canvas, log_axis, three
from papers.experiment import Claim, Experiment, Row, Unit, grouped
from unseen import BiasMC, ShiftMC
from unseen.datasets import make_positives
from unseen.typing import FloatArray

__all__ = ["EXPERIMENT"]

RHO, GROUPS, SEEDS = 0.9, 10, 2
ALPHAS = (0.5, 0.75, 0.9, 0.95, 0.975, 0.99)
CUTS = ("half", "midpoint", "prior")


def scores(model: Any) -> FloatArray:
    """All predictions of a small model."""
    product: FloatArray = model.row_factors_ @ model.col_factors_.T
    return product


def probabilities(n: int, seed: int) -> list[Row]:
    """Mean squared error to probabilities of 0.9 inside groups and 0.1 across."""
    data = make_positives(n, n, n_groups=GROUPS, inside=0.9, across=0.1, rho=RHO, random_state=seed)
    truth = data.row_factors @ data.col_factors.T
    seen = data.observations.nnz / n**2
    noise = 2 * np.sqrt(n * seen * (1 - seen))  # norm of what sampling adds to the seen matrix
    shifted = scores(ShiftMC(None, rho=RHO, bound="none", reg=2 * noise / (1 - RHO)).fit(data.observations))
    direct = [
        scores(ShiftMC(None, rho=0.0, bound="none", reg=2 * noise * share).fit(data.observations))
        for share in (0.25, 0.5, 1.0)
    ]
    errors = {
        "shift": float(np.mean((shifted - truth) ** 2)),
        "shift_clipped": float(np.mean((np.clip(shifted, 0, 1) - truth) ** 2)),
        "direct": min(float(np.mean((values - truth) ** 2)) for values in direct),
        "constant": float(np.var(truth)),
    }
    return [{"kind": "probabilities", "n": n, "seed": seed, **errors}]


def labels(n: int, seed: int) -> list[Row]:
    """Share of wrong cells where a cell is positive exactly inside its group."""
    data = make_positives(n, n, n_groups=GROUPS, inside=1.0, across=0.0, rho=RHO, random_state=seed)
    truth = data.positives.toarray() != 0
    errors: dict[str, dict[str, float]] = {cut: {} for cut in CUTS}
    for alpha in ALPHAS:
        model = BiasMC(
            GROUPS + 1, alpha=alpha, reg="0.1max", init="svd", max_iter=12, random_state=seed, cg_steps=None
        )
        values = scores(model.fit(data.observations))
        seen = alpha * (1 - RHO)
        level = seen / (seen + (1 - alpha) * RHO)
        prior = np.quantile(values, 1 - truth.mean())
        for name, cut in zip(CUTS, (0.5, level / 2, prior), strict=True):
            errors[name][str(alpha)] = float(np.mean((values > cut) != truth))
    return [{"kind": "labels", "n": n, "seed": seed, "errors": errors}]


def units(quick: bool) -> list[Unit]:
    sizes = (250, 500) if quick else (250, 500, 1000, 2000)
    return [
        Unit(f"{task.__name__} n={n} seed={seed}", partial(task, n, seed))
        for n in sizes
        for seed in range(1 if quick else SEEDS)
        for task in (probabilities, labels)
    ]


def tables(rows: list[Row]) -> dict[str, Table]:
    keys = ("shift", "shift_clipped", "direct", "constant")
    first = [
        [n, *(three(mean(row[key] for row in own)) for key in keys)]
        for (kind, n), own in grouped(rows, "kind", "n").items()
        if kind == "probabilities"
    ]
    second = [
        [n, cut, *(three(mean(row["errors"][cut][str(alpha)] for row in own)) for alpha in ALPHAS)]
        for (kind, n), own in grouped(rows, "kind", "n").items()
        if kind == "labels"
        for cut in CUTS
    ]
    return {
        "probabilities": Table.of(["n", "ShiftMC", "ShiftMC, clipped", "direct", "constant"], first),
        "labels": Table.of(["n", "cut", *(f"alpha {alpha}" for alpha in ALPHAS)], second),
    }


def claims(rows: list[Row]) -> list[Claim]:
    def averages(kind: str, read: Any) -> list[float]:
        return [mean(read(r) for r in own) for (k, _), own in grouped(rows, "kind", "n").items() if k == kind]

    shifted = averages("probabilities", lambda row: row["shift"])
    direct = averages("probabilities", lambda row: row["direct"])
    weighted = averages("labels", lambda row: row["errors"]["half"]["0.95"])
    plain = averages("labels", lambda row: row["errors"]["half"]["0.5"])
    best = averages("labels", lambda row: min(row["errors"]["half"].values()))
    return [
        Claim.judged(
            "ShiftMC's error falls with n, and it is below that without the shift",
            [after < before for before, after in pairwise(shifted)]
            + [with_shift < without for with_shift, without in zip(shifted, direct, strict=True)],
            "mean squared error to the probabilities",
        ),
        Claim.judged(
            "weights (1 + rho)/2 beat equal weights",
            [a < b for a, b in zip(weighted, plain, strict=True)],
            "share of wrong cells, cut at one half",
        ),
        Claim.judged(
            "(1 + rho)/2 is the best weight",
            [a <= b for a, b in zip(weighted, best, strict=True)],
            "larger weights are compared too",
        ),
    ]


def figures(rows: list[Row]) -> list[tuple[Any, str]]:
    figure, (left, right) = canvas((8, 3.2), 2)
    groups = grouped(rows, "kind", "n")
    sizes = [n for kind, n in groups if kind == "probabilities"]
    for key, label in (("shift", "ShiftMC"), ("direct", "without the shift"), ("constant", "constant")):
        means = [mean(row[key] for row in groups["probabilities", n]) for n in sizes]
        left.plot(sizes, means, "o-", label=label)
    left.set(xlabel="n", ylabel="mean squared error", ylim=(0, None))
    log_axis(left, sizes)
    left.legend(frameon=False)
    for n in [n for kind, n in groups if kind == "labels"]:
        own = groups["labels", n]
        errors = [mean(row["errors"]["half"][str(alpha)] for row in own) for alpha in ALPHAS]
        right.plot([1 - alpha for alpha in ALPHAS], errors, "o-", label=f"n = {n}")
    right.set(xlabel="1 - alpha", ylabel="share of wrong cells", xscale="log")
    right.legend(frameon=False)
    return [(figure, "Left: error against n. Right: wrong cells against the weight, cut at one half.")]


EXPERIMENT = Experiment(
    name="pu-recovery",
    paper="pu",
    shows="synthetic recovery against n and alpha",
    differences="Ten groups instead of the paper's unnamed low-rank matrix; rho = 0.9; two seeds.",
    units=units,
    tables=tables,
    claims=claims,
    figures=figures,
)
