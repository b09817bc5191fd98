"""PU: recovery from positives of which nine in ten are hidden, as the number of rows grows."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from statistics import mean
from typing import Any

import numpy as np
from scipy import sparse

from papers.display import Table, canvas, log_axis, three
from papers.experiment import Claim, Experiment, Row, Unit, about, grouped
from unseen import BiasMC, Observations, ShiftMC
from unseen.datasets import make_positives
from unseen.typing import FloatArray

__all__ = ["EXPERIMENT"]

RHO, GROUPS, SEEDS = 0.9, 10, 2
RANK = 10
"""Of the paper's matrix U U'."""
LARGEST_OF_PAPER = 1000
"""Rows up to which that matrix is run."""
ALPHAS = (0.5, 0.75, 0.9, 0.95, 0.975, 0.99)
CUTS = ("half", "midpoint", "prior")


def scores(model: Any) -> FloatArray:
    """All predictions of a small model."""
    product: FloatArray = model.row_factors_ @ model.col_factors_.T
    return product


def seen_of(positives: Any, rng: np.random.Generator) -> Observations:
    """One in ten of the positives of a small matrix."""
    return Observations.from_any(
        sparse.csr_array((positives & (rng.random(positives.shape) < 1 - RHO)) * 1.0)
    )


def orthogonal(n: int, rng: np.random.Generator) -> FloatArray:
    """The paper's matrix U U', U an orthonormal basis of Gaussian columns."""
    U = np.linalg.qr(rng.standard_normal((n, RANK)))[0]
    product: FloatArray = U @ U.T
    return product


def probabilities(n: int, seed: int) -> list[Row]:
    """Mean squared error to probabilities of 0.9 inside groups and 0.1 across."""
    data = make_positives(n, n, n_groups=GROUPS, inside=0.9, across=0.1, rho=RHO, random_state=seed)
    truth = data.row_factors @ data.col_factors.T
    return [{"kind": "probabilities", "n": n, "seed": seed, **to_probabilities(data.observations, truth)}]


def scaled(n: int, seed: int) -> list[Row]:
    """The same as the paper has it: positives drawn with the chances of U U' scaled to 0 .. 1."""
    rng = np.random.default_rng(seed)
    M = orthogonal(n, rng)
    truth = (M - M.min()) / (M.max() - M.min())
    observations = seen_of(rng.random((n, n)) < truth, rng)
    return [{"kind": "scaled", "n": n, "seed": seed, **to_probabilities(observations, truth)}]


def to_probabilities(observations: Observations, truth: FloatArray) -> dict[str, float]:
    """Mean squared errors of all methods."""
    n = len(truth)
    seen = observations.nnz / n**2
    noise = 2 * np.sqrt(n * seen * (1 - seen))  # norm of what sampling adds to the seen matrix
    shifted = scores(ShiftMC(None, rho=RHO, bound="none", reg=2 * noise / (1 - RHO)).fit(observations))
    direct = [
        scores(ShiftMC(None, rho=0.0, bound="none", reg=2 * noise * share).fit(observations))
        for share in (0.25, 0.5, 1.0)
    ]
    return {
        "shift": float(np.mean((shifted - truth) ** 2)),
        "shift_clipped": float(np.mean((np.clip(shifted, 0, 1) - truth) ** 2)),
        "direct": min(float(np.mean((values - truth) ** 2)) for values in direct),
        "constant": float(np.var(truth)),
    }


def labels(n: int, seed: int) -> list[Row]:
    """Share of wrong cells where a cell is positive exactly inside its group."""
    data = make_positives(n, n, n_groups=GROUPS, inside=1.0, across=0.0, rho=RHO, random_state=seed)
    truth = data.positives.toarray() != 0
    errors = to_labels(data.observations, truth, GROUPS + 1, seed)
    return [{"kind": "labels", "n": n, "seed": seed, "errors": errors}]


def median(n: int, seed: int) -> list[Row]:
    """The same as the paper has it: the larger half of U U' is positive."""
    rng = np.random.default_rng(seed)
    M = orthogonal(n, rng)
    truth = np.median(M) < M
    errors = to_labels(seen_of(truth, rng), truth, RANK + 1, seed)
    return [{"kind": "median", "n": n, "seed": seed, "errors": errors, "constant": float(truth.mean())}]


def to_labels(observations: Observations, truth: Any, rank: int, seed: int) -> dict[str, dict[str, float]]:
    """Shares of wrong cells by cut and alpha."""
    errors: dict[str, dict[str, float]] = {cut: {} for cut in CUTS}
    for alpha in ALPHAS:
        model = BiasMC(
            rank, alpha=alpha, reg="0.1max", init="svd", max_iter=12, random_state=seed, cg_steps=None
        )
        values = scores(model.fit(observations))
        seen = alpha * (1 - RHO)
        level = seen / (seen + (1 - alpha) * RHO)
        prior = np.quantile(values, 1 - truth.mean())
        for name, cut in zip(CUTS, (0.5, level / 2, prior), strict=True):
            errors[name][str(alpha)] = float(np.mean((values > cut) != truth))
    return errors


def units(quick: bool) -> list[Unit]:
    sizes = (250, 500) if quick else (250, 500, 1000, 2000)
    return [
        Unit(f"{task.__name__} n={n} seed={seed}", partial(task, n, seed))
        for n in sizes
        for seed in range(1 if quick else SEEDS)
        for task in (probabilities, labels, *((scaled, median) if n <= LARGEST_OF_PAPER else ()))
    ]


def tables(rows: list[Row]) -> dict[str, Table]:
    keys = ("shift", "shift_clipped", "direct", "constant")
    head = ["n", "ShiftMC", "ShiftMC, clipped", "direct", "constant"]
    made = {}
    for kind, digits in (("probabilities", three), ("scaled", "{:.5f}".format)):
        found = {n: own for (k, n), own in grouped(rows, "kind", "n").items() if k == kind}
        lines = [[n, *(digits(mean(row[key] for row in own)) for key in keys)] for n, own in found.items()]
        made[kind] = Table.of(head, lines)
    for kind in ("labels", "median"):
        lines = [
            [n, cut, *(three(mean(row["errors"][cut][str(alpha)] for row in own)) for alpha in ALPHAS)]
            for (k, n), own in grouped(rows, "kind", "n").items()
            if k == kind
            for cut in CUTS
        ]
        made[kind] = Table.of(["n", "cut", *(f"alpha {alpha}" for alpha in ALPHAS)], lines)
    return made


def claims(rows: list[Row]) -> list[Claim]:
    def averages(kind: str, read: Any) -> list[float]:
        return [mean(read(r) for r in own) for (k, _), own in grouped(rows, "kind", "n").items() if k == kind]

    shifted = averages("probabilities", lambda row: row["shift"])
    direct = averages("probabilities", lambda row: row["direct"])
    weighted = averages("labels", lambda row: row["errors"]["half"]["0.95"])
    plain = averages("labels", lambda row: row["errors"]["half"]["0.5"])
    best = averages("labels", lambda row: min(row["errors"]["half"].values()))
    paper = {
        key: averages("scaled", lambda row, key=key: row[key]) for key in ("shift", "direct", "constant")
    }
    halves = {
        str(alpha): averages("median", lambda row, alpha=alpha: row["errors"]["midpoint"][str(alpha)])
        for alpha in ALPHAS
    }
    sizes = [n for kind, n in grouped(rows, "kind", "n") if kind == "scaled"]
    slopes = {
        "ShiftMC": slope(sizes, paper["shift"]),
        "BiasMC": slope(sizes, halves["0.95"]),
    }
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
        Claim.judged(
            "on U U' scaled to 0 .. 1, ShiftMC's error falls with n and is below that without the shift",
            [after < before for before, after in pairwise(paper["shift"])]
            + [a < b for a, b in zip(paper["shift"], paper["direct"], strict=True)],
            "figure 1 (a); mean squared error to the probabilities",
        ),
        Claim.ours(
            "there, ShiftMC is below predicting the mean",
            [a < b for a, b in zip(paper["shift"], paper["constant"], strict=True)],
            "the paper shows no such row",
        ),
        Claim.judged(
            "on the larger half of U U', BiasMC's error falls with n",
            [after < before for before, after in pairwise(halves["0.95"])],
            "figure 1 (b); cut at the midpoint, alpha (1 + rho)/2",
        ),
        Claim.judged(
            "(1 + rho)/2 is the best weight on U U'",
            [a <= min(values) for a, *values in zip(halves["0.95"], *halves.values(), strict=True)],
            "figure 1 (b); cut at the midpoint",
        ),
        Claim.judged(
            "both errors fall like 1/n on U U'",
            [about(-value, 1.0) for value in slopes.values()],
            "slope of the logarithms within a factor of two of -1: "
            + ", ".join(f"{name} {value:.2f}" for name, value in slopes.items()),
        ),
    ]


def slope(sizes: list[int], errors: list[float]) -> float:
    """Of the logarithm of the error against that of n."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0]) if len(sizes) > 1 else float("nan")


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
    differences="The paper's matrix U U' of rank 10, and ten groups beside it; rho = 0.9; two seeds.",
    units=units,
    tables=tables,
    claims=claims,
    figures=figures,
)
