"""GIMC: the paper's gradient steps against L-BFGS, Nystrom features whitened or not, on Segment."""

from __future__ import annotations

from functools import partial

from papers.display import Table
from papers.experiment import Claim, Experiment, Row, Unit
from papers.gimc_classes import draw
from papers.gimc_maps import KINDS, Variant, averages, compare_maps, matching, percent

__all__ = ["EXPERIMENT"]

SEEDS = (0, 1, 2)
SIZES = (10, 20, 50)
SOLVERS = ("armijo", "lbfgs")
MAPS = {
    "Fourier": ("fourier", True),
    "Nystrom, whitened": ("nystrom", True),
    "Nystrom, M = I": ("nystrom", False),
}


def one(m: int, kind: str, seed: int) -> list[Row]:
    """All ways to learn one map."""
    shapes = [True] if kind == "fourier" else [True, False]
    variants = [Variant(solver, whiten) for whiten in shapes for solver in SOLVERS]
    return [
        {"seed": seed, "map": kind, **row}
        for row in compare_maps(draw("Segment", seed), seed, m, kind, variants)
    ]


def units(quick: bool) -> list[Unit]:
    return [
        Unit(f"m={m} {kind} seed={seed}", partial(one, m, kind, seed))
        for m in (SIZES[::2] if quick else SIZES)
        for kind in KINDS
        for seed in (SEEDS[:1] if quick else SEEDS)
    ]


def groups(rows: list[Row]) -> list[tuple[int, str, list[Row], list[list[Row]]]]:
    """m, the map, and the rows of the fixed map and of each solver."""
    found = []
    for m in sorted({row["m"] for row in rows}):
        for title, (kind, whiten) in MAPS.items():
            fixed, learned = KINDS[kind]
            here = matching(rows, m=m)
            ours = [matching(here, method=learned, whiten=whiten, solver=name) for name in SOLVERS]
            found.append((m, title, matching(here, method=fixed), ours))
    return found


def tables(rows: list[Row]) -> dict[str, Table]:
    lines = [
        [m, title, percent(fixed), *(percent(own) for own in ours)] for m, title, fixed, ours in groups(rows)
    ]
    head = ["m", "map", "fixed", "Armijo steps", "L-BFGS"]
    return {"solvers": Table.of(head, lines, "Accuracy on Segment in per cent, mean over the seeds.")}


def claims(rows: list[Row]) -> list[Claim]:
    found = groups(rows)

    def ahead(place: int, kinds: tuple[str, ...]) -> list[bool]:
        return [
            averages(ours[place])[0] > averages(fixed)[0] for _, title, fixed, ours in found if title in kinds
        ]

    why = "accuracy on Segment, mean over the seeds"
    return [
        Claim.judged("the paper's steps get a learned Fourier map ahead", ahead(0, ("Fourier",)), why),
        Claim.judged(
            "the paper's steps get a learned Nystrom map with M = I ahead", ahead(0, ("Nystrom, M = I",)), why
        ),
        Claim.ours("L-BFGS gets all maps ahead of fixed ones", ahead(1, tuple(MAPS)), why),
        Claim.ours(
            "L-BFGS is ahead of the paper's steps",
            [averages(ours[1])[0] > averages(ours[0])[0] for *_, ours in found],
            why,
        ),
    ]


EXPERIMENT = Experiment(
    name="gimc-solvers",
    paper="gimc",
    shows="algorithm 1 as printed beside our solver, for each map",
    differences="Not a table of the paper. Segment, 70 % of the rows for training, settings chosen on a "
    "fifth of these: 3 penalties and the number of steps at the width of the fixed map.",
    units=units,
    tables=tables,
    claims=claims,
    datasets=("segment",),
)
