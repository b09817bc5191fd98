"""AMF: processor time of a sweep against the number of measurements (c0), whole and cut into shards.

A sweep is one step of U and one of V by the pure functions that Map-Reduce needs. Every call of a shard is
timed; what a cluster with a processor for each shard would wait for is the slowest shard of each reduction.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from papers.amf_methods import RANK
from papers.display import Table, canvas, log_axis
from papers.experiment import Claim, Experiment, Row, Unit, about, grouped
from unseen import Observations
from unseen.datasets import load_ml100k
from unseen.sensing import HashedMap, Law, SampledFit, col_step, residuals, row_step, split
from unseen.sensing.law import n_constraints
from unseen.typing import FloatArray

__all__ = ["EXPERIMENT"]

C0 = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
SHARDS = (1, 16, 64)
BLOCK = (150, 100)
TURNS = 5
REG = 0.02


def block() -> Observations:
    """Ratings of the users and movies of MovieLens-100K that have most, less their mean."""
    cells = load_ml100k().observations
    users = np.argsort(-np.diff(cells.indptr), kind="stable")[: BLOCK[0]]
    movies = np.argsort(-np.diff(cells.csc.indptr), kind="stable")[: BLOCK[1]]
    part = Observations.from_sparse(cells.csr[users][:, movies])
    return part.with_values(part.values - part.values.mean())


class Clock:
    """A ``map`` that notes the processor seconds of each shard."""

    def __init__(self) -> None:
        self.work = self.longest = 0.0

    def __call__(self, job: Callable[..., Any], *parts: Any) -> list[Any]:
        """Apply the job to the shards one by one."""
        results, taken = [], []
        for arguments in zip(*parts, strict=True):
            start = time.process_time()
            results.append(job(*arguments))
            taken.append(time.process_time() - start)
        self.work += sum(taken)
        self.longest += max(taken)
        return results


def one(c0: float) -> list[Row]:
    """Medians over some sweeps, for each number of shards."""
    cells = block()
    p = n_constraints(cells.shape, cells.nnz, RANK, c0)
    fit = SampledFit(HashedMap(cells, Law(p)))
    rows = []
    for count in SHARDS:
        shards = split(fit, count)
        rng = np.random.default_rng(0)
        left: FloatArray
        right: FloatArray
        left, right = (rng.standard_normal((size, RANK)) / RANK for size in cells.shape)
        kept = residuals(shards, left, right)
        work, longest = [], []
        for _ in range(TURNS):
            clock = Clock()
            taken = row_step(shards, kept, left, right, REG, mapper=clock)
            left, kept = taken.factor, taken.residuals
            taken = col_step(shards, kept, left, right, REG, mapper=clock)
            right, kept = taken.factor, taken.residuals
            work.append(clock.work)
            longest.append(clock.longest)
        facts = {"c0": c0, "shards": count, "measurements": p, "cells": cells.nnz}
        rows.append({**facts, "work_s": float(np.median(work)), "longest_s": float(np.median(longest))})
    return rows


def units(quick: bool) -> list[Unit]:
    return [Unit(f"c0={c0}", partial(one, c0)) for c0 in (C0[1:4:2] if quick else C0)]


def tables(rows: list[Row]) -> dict[str, Table]:
    lines = [
        [
            f"{c0:g}",
            f"{own[0]['measurements']:,}",
            f"{1e3 * own[0]['work_s']:.1f}",
            *(f"{1e3 * row['longest_s']:.1f}" for row in own[1:]),
        ]
        for (c0,), own in grouped(rows, "c0").items()
    ]
    head = [
        "c0",
        "measurements",
        "one process, ms",
        *(f"slowest of {count} shards, ms" for count in SHARDS[1:]),
    ]
    return {"time": Table.of(head, lines, "Processor time of a sweep, median.")}


def claims(rows: list[Row]) -> list[Claim]:
    found = {(row["c0"], row["shards"]): row["longest_s"] for row in rows}
    low, high = min(row["c0"] for row in rows), max(row["c0"] for row in rows)
    why = f"block of {BLOCK[0]} x {BLOCK[1]} cells of MovieLens-100K, signs drawn anew"
    cores = SHARDS[-1]
    return [
        Claim.judged(
            "time is flat up to c0 = 1 and rises after it",
            [
                about(found[1.0, count], found[low, count], 1.5)
                and found[high, count] > 1.5 * found[1.0, count]
                for count in (1, cores)
            ],
            f"{why}; one process, and the slowest of {cores} shards for the paper's {cores} cores",
        ),
        Claim.ours(
            "shards cut the time that is waited for in proportion",
            [about(found[1.0, 1] / found[1.0, count], count) for count in SHARDS[1:]],
            f"{why}; within a factor of two, without the time to send factors",
        ),
    ]


def figures(rows: list[Row]) -> list[tuple[Any, str]]:
    figure, (axes,) = canvas((5.4, 3.2))
    for (count,), own in grouped(rows, "shards").items():
        name = "one process" if count == 1 else f"slowest of {count} shards"
        axes.plot([row["c0"] for row in own], [1e3 * row["longest_s"] for row in own], "o-", label=name)
    log_axis(axes, [row["c0"] for row in rows if row["shards"] == 1])
    axes.set_yscale("log")
    axes.set(xlabel="c0", ylabel="a sweep, ms")
    axes.legend(frameon=False)
    return [(figure, "Processor time of a sweep against the number of measurements.")]


EXPERIMENT = Experiment(
    name="amf-time",
    paper="amf",
    shows="time against c0, and what shards wait for",
    differences="The paper's figure is of 64 cores and whole matrices. Here a block of MovieLens-100K, one "
    "processor, on which shards take turns; communication is not in it.",
    units=units,
    tables=tables,
    claims=claims,
    figures=figures,
    datasets=("ml100k",),
)
