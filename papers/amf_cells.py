"""AMF: known cells against the number of measurements that recovery asks for, and connected blocks."""

from __future__ import annotations

import math
from functools import partial

from papers.amf_methods import LOADERS
from papers.display import Table
from papers.experiment import Claim, Experiment, Row, Unit, about
from unseen.diagnostics import find_blocks

__all__ = ["EXPERIMENT"]

RANK = 10
PUBLISHED = {
    "MovieLens-1M": (6_040, 3_952, 1_000_209),
    "Netflix": (480_189, 17_770, 100_480_507),
    "Yahoo! Music (KDD Cup 2011)": (1_000_990, 624_961, 262_810_175),
    "Dianping": (8_361, 11_392, 210_382),
}
"""Rows, columns and cells of matrices that are not at hand."""


def row_of(name: str, shape: tuple[int, int], cells: int, blocks: int | None) -> Row:
    n, m = shape
    return {"data": name, "rows": n, "cols": m, "cells": cells, "blocks": blocks,
            "wanted": math.ceil(RANK * (n + m) * math.log(n * m))}  # fmt: skip


def loaded(name: str) -> list[Row]:
    """Counts of a matrix."""
    cells = LOADERS[name]().observations
    return [row_of(name, cells.shape, cells.nnz, len(find_blocks(cells)))]


def published() -> list[Row]:
    """The same from published counts."""
    return [row_of(name, (n, m), cells, None) for name, (n, m, cells) in PUBLISHED.items()]


def units(quick: bool) -> list[Unit]:
    return [Unit(name, partial(loaded, name)) for name in LOADERS] + [Unit("published counts", published)]


def tables(rows: list[Row]) -> dict[str, Table]:
    lines = [
        [
            row["data"],
            f"{row['rows']:,}",
            f"{row['cols']:,}",
            f"{row['cells']:,}",
            f"{row['wanted']:,}",
            f"{row['cells'] / row['wanted']:.3f}",
            "" if row["blocks"] is None else row["blocks"],
        ]
        for row in rows
    ]
    head = ["matrix", "rows", "columns", "cells", "r (n + m) ln(nm), r = 10", "share", "blocks"]
    return {"table 1": Table.of(head, lines, "The paper's table is lost.")}


def claims(rows: list[Row]) -> list[Claim]:
    yelp = next(row for row in rows if row["data"] == "yelp-2013")
    times = yelp["wanted"] / yelp["cells"]
    return [
        Claim.untested("the figures of Table 1", "the table is lost"),
        Claim.judged(
            "no rating matrix has as many cells as recovery asks for",
            [row["cells"] < row["wanted"] for row in rows],
            "r (n + m) ln(nm) at r = 10",
        ),
        Claim.judged(
            "Yelp falls short by two orders of magnitude",
            [about(times, 100)],
            f"by a factor of {times:.0f}; within a factor of two of 100",
        ),
        Claim.judged("Yelp has 53 connected blocks", [yelp["blocks"] == 53], f"{yelp['blocks']} were found"),
    ]


EXPERIMENT = Experiment(
    name="amf-cells",
    paper="amf",
    shows="Table 1, cells against the number that recovery asks for",
    differences="Counted anew; of matrices that are not at hand from published counts.",
    units=units,
    tables=tables,
    claims=claims,
    datasets=tuple(LOADERS),
)
