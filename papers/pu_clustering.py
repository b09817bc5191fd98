"""PU: clustering Mushroom and Segment from 100 pairs that belong together.

Pairs are drawn uniformly from all pairs of one class. "unweighted" is the same model with equal weights
on known and unknown pairs (MC-inductive); the clusters are told only their number.
"""

from __future__ import annotations

from functools import partial
from statistics import mean
from typing import Any

import numpy as np

from papers.display import Table, three
from papers.experiment import Claim, Experiment, Row, Unit, grouped
from unseen import PUClustering
from unseen.datasets import load_mushroom, load_segment
from unseen.metrics import pair_error
from unseen.typing import Array, IndexArray

__all__ = ["EXPERIMENT"]

N_PAIRS = 100
SEEDS = (10, 11, 12, 13)
SAMPLE = 20_000
LOADERS = {"Segment": load_segment, "Mushroom": load_mushroom}


def draw_pairs(y: Array, rng: np.random.Generator) -> IndexArray:
    """Uniform over unordered pairs of one class, none twice."""
    found: set[tuple[int, int]] = set()
    while len(found) < N_PAIRS:
        i, j = sorted(int(item) for item in rng.integers(0, len(y), 2))
        if i < j and y[i] == y[j]:
            found.add((i, j))
    return np.array(sorted(found))


def errors_of(X: Any, y: Array, pairs: IndexArray, seed: int, **params: Any) -> dict[str, float]:
    """Wrong cells of the same-class matrix at two cuts, and the pair error of the clusters."""
    k = int(y.max()) + 1
    model = PUClustering(k, random_state=seed, max_iter=150, tol=1e-4, **params).fit(X, pairs=pairs)
    i, j = np.random.default_rng(1000 + seed).integers(0, len(y), (2, SAMPLE))
    scores = model.completer_.predict_entries(i, j) + model.completer_.predict_entries(j, i)
    truth = y[i] == y[j]
    return {
        "cut_at_prior": float(np.mean((scores > np.quantile(scores, 1 - 1 / k)) != truth)),
        "cut_at_half": float(np.mean((scores > 1.0) != truth)),
        "clusters": pair_error(y, model.labels_),
    }


def one(name: str, seed: int) -> list[Row]:
    """All variants on one draw of pairs."""
    data = LOADERS[name]()
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    pairs = draw_pairs(data.y, np.random.default_rng(seed))
    rows = []
    for whiten in (False, True):
        for method, alpha in (("weighted", None), ("unweighted", 0.5)):
            for reg in ("0.02max", "0.3max"):
                facts = {"data": name, "seed": seed, "whiten": whiten, "method": method, "reg": reg}
                errors = errors_of(X, data.y, pairs, seed, whiten=whiten, alpha=alpha, reg=reg)
                rows.append({**facts, **errors})
    return rows


def units(quick: bool) -> list[Unit]:
    return [
        Unit(f"{name} seed={seed}", partial(one, name, seed))
        for name in LOADERS
        for seed in SEEDS[: 1 if quick else None]
    ]


def tables(rows: list[Row]) -> dict[str, Table]:
    measures = ("cut_at_half", "cut_at_prior", "clusters")
    lines = []
    for (data, whiten, reg), own in grouped(rows, "data", "whiten", "reg").items():
        line = [data, "orthonormal" if whiten else "standardised", reg]
        for method in ("unweighted", "weighted"):
            chosen = [row for row in own if row["method"] == method]
            line += [three(mean(row[key] for row in chosen)) for key in measures]
        lines.append(line)
    shown = ("cut at 1/2", "cut at prior", "clusters")
    head = ["data", "features", "reg", *(f"{m}, {s}" for m in ("MC-inductive", "PU") for s in shown)]
    return {"clustering": Table.of(head, lines)}


def claims(rows: list[Row]) -> list[Claim]:
    cases = []
    for own in grouped(rows, "data", "whiten", "reg").values():
        weighted, plain = (
            mean(row["clusters"] for row in own if row["method"] == method)
            for method in ("weighted", "unweighted")
        )
        cases.append(weighted < plain)
    where = "pair error of the clusters, mean over draws"
    errors = [
        mean(row["clusters"] for row in own)
        for (method, *_), own in grouped(rows, "method", "data", "whiten", "reg").items()
        if method == "weighted"
    ]
    return [
        Claim.judged("weighting known pairs beats treating unknown pairs as different", cases, where),
        Claim.judged(
            "the error is under 10 % with 100 pairs",
            [error < 0.1 for error in errors],
            f"{where}; both sets, two forms of the features, two penalties",
        ),
    ]


EXPERIMENT = Experiment(
    name="pu-clustering",
    paper="pu",
    shows="clustering from 100 positive pairs",
    differences="Error of the labels beside that of the matrix, which the paper reports; four draws.",
    units=units,
    tables=tables,
    claims=claims,
    datasets=("mushroom", "segment"),
)
