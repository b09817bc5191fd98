"""PU: link prediction on 500 nodes of ca-GrQc, for the baselines that hold every cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from papers.display import Table, three
from papers.experiment import Claim, Experiment, Row, Unit, grouped
from papers.pu_links import graph_of, spread
from unseen import BiasMC, ShiftMC
from unseen.baselines import LowDensityNMF, OneBitMC
from unseen.datasets import load_ca_grqc
from unseen.links import CommonNeighbors, Katz, TruncatedSVDLinks, link_curve

__all__ = ["EXPERIMENT"]

N_NODES = 500
RANK = 20
METHODS: dict[str, tuple[Callable[..., Any], list[dict[str, Any]]]] = {
    "BiasMC": (
        lambda **s: BiasMC(RANK, max_iter=30, cg_steps=None, random_state=0, **s),
        [{"alpha": a, "reg": r} for a in (0.9, 0.99) for r in (0.3, 1.0)],
    ),
    "OneBitMC": (
        lambda **s: OneBitMC(RANK, max_iter=100, tol=1e-4, random_state=0, **s),
        [{"reg": r} for r in (1.0, 3.0, 10.0)],
    ),
    "LowDensityNMF": (
        lambda **s: LowDensityNMF(RANK, random_state=0, **s),
        [{"reg": r, "class_prior": None} for r in (0.003, 0.01, 0.03, 0.1)],
    ),
    "Common Neighbors": (lambda **s: CommonNeighbors(), [{}]),
    "Katz": (lambda **s: Katz(), [{}]),
    "SVD": (lambda **s: TruncatedSVDLinks(RANK), [{}]),
}


SHIFTED: dict[str, tuple[Callable[..., Any], list[dict[str, Any]]]] = {
    "ShiftMC-relax": (
        lambda **s: ShiftMC(RANK, bound="relaxed", random_state=0, **s),
        [{"rho": rho, "reg": reg} for rho in (0.5, 0.9) for reg in ("0.03max", "0.1max")],
    ),
}
"""The paper's other method, in parts of its own."""


def edges_of_subset() -> Any:
    """Edges among the first 500 nodes of a breadth-first walk from the node with most links."""
    graph = load_ca_grqc().observations.csr
    start = int(np.argmax(np.diff(graph.indptr)))
    nodes = np.sort(breadth_first_order(graph, start, directed=False)[0][:N_NODES])
    part = graph[nodes][:, nodes].tocoo()
    upper = part.row < part.col
    return np.column_stack([part.row[upper], part.col[upper]]).astype(np.int64)


def run_split(number: int, methods: dict[str, Any] = METHODS) -> list[Row]:
    """Methods on one split, settings chosen on a fifth of the training edges."""
    edges = edges_of_subset()
    order = np.random.default_rng(number).permutation(len(edges))
    half = (len(edges) + 1) // 2
    train_edges, test = edges[order[:half]], edges[order[half:]]
    n_val = half // 5
    val, rest = train_edges[:n_val], train_edges[n_val:]
    inner, train = graph_of(rest, N_NODES), graph_of(train_edges, N_NODES)
    rows: list[Row] = []
    for name, (build, settings) in methods.items():
        errors = [0.0]
        if len(settings) > 1:
            errors = [
                float(
                    link_curve(build(**s).fit(inner), val, train=inner, k=5 * n_val, positions=True).fnr[-1]
                )
                for s in settings
            ]
        setting = settings[int(np.argmin(errors))]
        curve = link_curve(build(**setting).fit(train), test, train=train, k=3 * len(test), positions=True)
        row = {
            "method": name,
            "split": number,
            "setting": setting,
            "fnr": [float(curve.fnr[m * len(test) - 1]) for m in (1, 3)],
            "precision_100": float(curve.precision[99]),
        }
        rows.append(row)
    return rows


def units(quick: bool) -> list[Unit]:
    splits = range(1 if quick else 5)
    return [
        *(Unit(f"split={number}", partial(run_split, number)) for number in splits),
        *(Unit(f"ShiftMC-relax split={number}", partial(run_split, number, SHIFTED)) for number in splits),
    ]


def tables(rows: list[Row]) -> dict[str, Table]:
    lines = [
        [
            name,
            *(spread([run["fnr"][place] for run in runs]) for place in (0, 1)),
            three(mean(run["precision_100"] for run in runs)),
        ]
        for (name,), runs in grouped(rows, "method").items()
    ]
    head = ["method", "FNR, k = test links", "FNR, k = 3 times", "precision, first 100"]
    return {"subset": Table.of(head, lines)}


def claims(rows: list[Row]) -> list[Claim]:
    def below(method: str, others: tuple[str, ...]) -> list[bool]:
        cases = []
        for own in grouped(rows, "split").values():
            fnr = {row["method"]: row["fnr"][0] for row in own}
            cases += [fnr[method] < fnr[other] for other in others if {method, other} <= set(fnr)]
        return cases

    where = "500 nodes, lists as long as the number of test links"
    rivals = ("Common Neighbors", "Katz", "SVD")
    return [
        Claim.judged(
            "BiasMC misses fewer links than one-bit completion and low-density factorisation",
            below("BiasMC", ("OneBitMC", "LowDensityNMF")),
            where,
        ),
        Claim.judged(
            "ShiftMC-relax misses fewer links than common neighbours, Katz and SVD (figure 1)",
            below("ShiftMC-relax", rivals),
            where,
        ),
    ]


EXPERIMENT = Experiment(
    name="pu-links-subset",
    paper="pu",
    shows="link prediction with the baselines that hold every cell",
    differences="500 nodes of ca-GrQc instead of all: one-bit completion and low-density factorisation "
    "are dense.",
    units=units,
    tables=tables,
    claims=claims,
    datasets=("ca-GrQc",),
)
