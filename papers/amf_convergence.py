"""AMF: error on training cells against the number of sweeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from papers.amf_methods import PAPER_REG, RANK, error, limits_of, split_of
from papers.display import Table, canvas
from papers.experiment import Claim, Experiment, Row, Unit, grouped
from unseen import AugmentedMF, MatrixFactorization
from unseen.baselines import MMMF, NMF, PMF

__all__ = ["EXPERIMENT"]

SWEEPS = (5, 10, 15, 20, 30, 40, 50, 75, 100)
SEED: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
AMF = "AMF, mean"
BUILDERS: dict[str, Callable[[int], Any]] = {
    AMF: lambda n: AugmentedMF(
        RANK, reg=PAPER_REG, center="mean", solver="linesearch", tol=0.0, max_iter=n, **SEED
    ),
    "MatrixFactorization, mean, reg 0.02": lambda n: MatrixFactorization(
        RANK, reg=PAPER_REG, center="mean", tol=0.0, max_iter=n, **SEED
    ),
    "NMF": lambda n: NMF(RANK, tol=0.0, max_iter=n, **SEED),
    "PMF": lambda n: PMF(RANK, tol=0.0, max_iter=n, **SEED),
    "MMMF": lambda n: MMMF(RANK, tol=0.0, max_iter=n, **SEED),
}


def one(name: str, data: str, sweeps: tuple[int, ...]) -> list[Row]:
    """A method ended after more and more sweeps; each run has the same start."""
    train, test = split_of(data, 0)
    limits = limits_of(train)
    rows = []
    for count in sweeps:
        model = BUILDERS[name](count).fit(train)
        labels = {"method": name, "sweeps": count}
        rows.append({**labels, "train": error(model, train, limits), "test": error(model, test, limits)})
    return rows


def units(quick: bool) -> list[Unit]:
    data, sweeps = ("filmtrust", (5, 40, 50, 100)) if quick else ("yelp-3zones", SWEEPS)
    return [Unit(name, partial(one, name, data, sweeps)) for name in BUILDERS]


def curves(rows: list[Row], key: str) -> dict[str, dict[int, float]]:
    """Errors of each method by the number of sweeps."""
    found = grouped(rows, "method").items()
    return {name: {row["sweeps"]: row[key] for row in own} for (name,), own in found}


def tables(rows: list[Row]) -> dict[str, Table]:
    counts = sorted({row["sweeps"] for row in rows})
    return {
        key: Table.of(
            [f"RMSE, {key}ing cells" if key == "train" else "RMSE, test cells", *counts],
            [
                [name, *(f"{found[count]:.4f}" for count in counts)]
                for name, found in curves(rows, key).items()
            ],
        )
        for key in ("train", "test")
    }


def claims(rows: list[Row]) -> list[Claim]:
    found = curves(rows, "train")

    def falls(name: str, start: int) -> float:
        before = found[name][start]
        return 1 - found[name][100] / before if before else 0.0

    late = {name: falls(name, 40) for name in found}
    told = ", ".join(f"{name} {share:.1%}" for name, share in late.items())
    return [
        Claim.judged(
            "AMF's error on training cells is flat after 30 to 40 sweeps", [abs(late[AMF]) < 0.01],
            f"it falls by {late[AMF]:.2%} from sweep 40 to 100",
        ),
        Claim.judged(
            "the others need more", [late[name] > 0.01 for name in ("NMF", "PMF", "MMMF")],
            f"fall from sweep 40 to 100: {told}",
        ),
        Claim.judged(
            "MMMF's error still falls at the end", [falls("MMMF", 50) > 0.01],
            f"it falls by {falls('MMMF', 50):.1%} from sweep 50 to 100",
        ),
    ]  # fmt: skip


def figures(rows: list[Row]) -> list[tuple[Any, str]]:
    figure, panels = canvas((8, 3.6), 2, sharex=True)
    for axes, key in zip(panels, ("train", "test"), strict=True):
        for place, (name, found) in enumerate(curves(rows, key).items()):
            style = "osv^D"[place] + "-"
            axes.plot(list(found), list(found.values()), style, markersize=4, label=name)
        axes.set(xlabel="sweeps", ylabel="RMSE", title=f"{key}ing cells" if key == "train" else "test cells")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return [(figure, "Error on training and on test cells against the number of sweeps.")]


EXPERIMENT = Experiment(
    name="amf-convergence",
    paper="amf",
    shows="figure of the training error against iterations",
    differences="First split of yelp-3zones, rank 10 in place of 60, one start in place of ten; errors on "
    "test cells are added. Quick: filmtrust.",
    units=units,
    tables=tables,
    claims=claims,
    figures=figures,
    datasets=("yelp-3zones", "filmtrust"),
)
