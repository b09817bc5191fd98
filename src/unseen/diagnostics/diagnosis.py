"""``diagnose``: whether there is enough data, spread well enough, to complete a matrix."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from itertools import islice
from typing import Any

import numpy as np

from unseen.data import Observations
from unseen.diagnostics.blocks import Blocks, find_blocks
from unseen.diagnostics.probe import Isometry, probe_isometry
from unseen.diagnostics.verdict import make_verdict
from unseen.exceptions import InvalidDataError
from unseen.losses import cells_that_count
from unseen.parallel import one_blas_thread
from unseen.typing import IndexArray
from unseen.validation import check_count, check_n_jobs, check_rng

__all__ = ["BlockSize", "Degrees", "Diagnosis", "diagnose"]

LISTED_BLOCKS = 10


@dataclass(frozen=True)
class BlockSize:
    """Size of a block, or of the whole matrix, against what a rank needs.

    Attributes
    ----------
    n_rows, n_cols, n_cells : int
        Size.
    rank : int
        The rank asked about, or the smaller side where that is less.
    freedom : int
        Degrees of freedom of a matrix of that rank, r (n + m - r).
    needed : float
        r (n + m) ln(n m), the order at which completion is safe when cells are spread evenly.
    """

    n_rows: int
    n_cols: int
    n_cells: int
    rank: int
    freedom: int
    needed: float

    @classmethod
    def of(cls, n_rows: int, n_cols: int, n_cells: int, rank: int) -> BlockSize:
        """Count for a block of known size.

        Parameters
        ----------
        n_rows, n_cols, n_cells : int
            Size.
        rank : int
            Rank; a block cannot have more than its smaller side.

        Returns
        -------
        BlockSize
            The size and what it is to be compared with.
        """
        rank = min(rank, n_rows, n_cols)
        total = n_rows + n_cols
        needed = rank * total * float(np.log(n_rows) + np.log(n_cols))
        return cls(n_rows, n_cols, n_cells, rank, rank * (total - rank), needed)

    @property
    def per_freedom(self) -> float:
        """Known cells for each degree of freedom; below 1 many matrices fit exactly."""
        return self.n_cells / self.freedom

    @property
    def per_needed(self) -> float:
        """Known cells against r (n + m) ln(n m); infinite for a single cell."""
        return self.n_cells / self.needed if self.needed else float("inf")


@dataclass(frozen=True)
class Degrees:
    """Known cells of the rows, or of the columns.

    Attributes
    ----------
    n : int
        Rows or columns.
    n_empty : int
        Those without a cell.
    n_below_rank : int
        Those with fewer cells than the rank, the empty ones included: their factors are decided by
        the penalty in part.
    quantiles : dict
        ``min``, ``10%``, ``50%``, ``90%`` and ``max`` of the number of cells.
    mean : float
        Mean number of cells.
    """

    n: int
    n_empty: int
    n_below_rank: int
    quantiles: dict[str, int]
    mean: float

    @classmethod
    def of(cls, degree: IndexArray, rank: int) -> Degrees:
        """Count.

        Parameters
        ----------
        degree : array of int
            Known cells of each row or column.
        rank : int
            Rank asked about.

        Returns
        -------
        Degrees
            The table.
        """
        values = np.quantile(degree, (0, 0.1, 0.5, 0.9, 1), method="lower").tolist()
        return cls(
            degree.size,
            int(np.count_nonzero(degree == 0)),
            int(np.count_nonzero(degree < rank)),
            dict(zip(("min", "10%", "50%", "90%", "max"), map(int, values), strict=True)),
            float(degree.mean()),
        )


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What :func:`diagnose` found. ``print`` shows it; notebooks show tables.

    Attributes
    ----------
    whole : BlockSize
        The matrix as a whole.
    blocks : Blocks
        Connected blocks, largest first.
    block_sizes : list of BlockSize
        The largest blocks against what the rank needs.
    rows, cols : Degrees
        Tables of the number of cells.
    across : float
        Share of all cells of the matrix whose row and column lie in different blocks, or have no
        cell at all.
    across_unknown : float
        The same among the cells that are not known.
    n_values : int
        1 if all known values are equal, else 2 (there are at least so many).
    isometry : Isometry
        How evenly the known cells see matrices of this rank.
    verdict : list of str
        What follows, in plain words.
    """

    whole: BlockSize
    blocks: Blocks
    block_sizes: list[BlockSize]
    rows: Degrees
    cols: Degrees
    across: float
    across_unknown: float
    n_values: int
    isometry: Isometry
    verdict: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Give everything but the block of each single row and column, as plain Python values.

        Returns
        -------
        dict
            Can be written as JSON; an infinite ratio is None.
        """
        return {
            "whole": _size(self.whole),
            "n_blocks": len(self.blocks),
            "blocks": [_size(size) for size in self.block_sizes],
            "rows": asdict(self.rows),
            "cols": asdict(self.cols),
            "across": self.across,
            "across_unknown": self.across_unknown,
            "all_values_equal": self.n_values == 1,
            "isometry": asdict(self.isometry),
            "verdict": list(self.verdict),
        }

    def tables(self) -> list[tuple[str, list[str], list[list[Any]]]]:
        """Give the tables that are shown.

        Returns
        -------
        list of (title, headers, rows)
            In the order in which they are shown.
        """
        head = ["", "rows", "columns", "cells", "rank", "cells / freedom", "cells / r(n+m)ln(nm)"]
        sizes = [("all", self.whole)]
        if len(self.blocks) > 1:
            sizes += [(f"block {number}", size) for number, size in enumerate(self.block_sizes, 1)]
        lines = [
            [name, s.n_rows, s.n_cols, s.n_cells, s.rank, float(s.per_freedom), float(s.per_needed)]
            for name, s in sizes
        ]
        degrees = [
            [name, d.n, d.n_empty, d.n_below_rank, *d.quantiles.values(), d.mean]
            for name, d in (("rows", self.rows), ("columns", self.cols))
        ]
        probe = self.isometry
        return [
            ("Cells against what the rank needs", head, lines),
            (
                "Cells of rows and columns",
                ["", "number", "empty", f"below rank {self.whole.rank}", *self.rows.quantiles, "mean"],
                degrees,
            ),
            (
                f"Isometry: seen against true size of {probe.n_draws} random matrices (1 is ideal)",
                ["mean", "std", "lowest", "highest", "worst case"],
                [[probe.mean, probe.std, probe.low, probe.high, probe.worst]],
            ),
        ]

    def __str__(self) -> str:
        """Text with tables and verdict."""
        n_blocks = len(self.blocks)
        lines = [
            f"{self.whole.n_rows:,} x {self.whole.n_cols:,}, {self.whole.n_cells:,} known cells, "
            f"{n_blocks:,} connected block{'s' if n_blocks > 1 else ''}"
        ]
        for title, head, rows in self.tables():
            cells = [head, *([_shown(value) for value in row] for row in rows)]
            widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
            lines += ["", title]
            lines += [
                "  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip()
                for row in cells
            ]
        if n_blocks > len(self.block_sizes):
            lines.insert(1, f"(the {len(self.block_sizes)} largest are listed)")
        return "\n".join([*lines, "", *self.verdict])

    def __repr__(self) -> str:
        """First sentence of the verdict."""
        return f"Diagnosis({self.verdict[0]!r})"

    def _repr_html_(self) -> str:
        """Tables and verdict for notebooks."""
        parts = [f"<p>{escape(sentence)}</p>" for sentence in self.verdict]
        for title, head, rows in self.tables():
            header = "".join(f"<th>{escape(name)}</th>" for name in head)
            body = "".join(
                "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row) + "</tr>"
                for row in rows
            )
            parts.append(
                f"<table><caption>{escape(title)}</caption><thead><tr>{header}</tr></thead>"
                f"<tbody>{body}</tbody></table>"
            )
        return "\n".join(parts)


def diagnose(
    X: Any, rank: int = 10, *, n_probes: int = 10, random_state: Any = 0, n_jobs: int | None = None
) -> Diagnosis:
    """Say whether the known cells of a matrix can decide the unknown ones.

    Finds the connected blocks, counts cells against the degrees of freedom r (n + m - r) of a
    matrix of the given rank and against r (n + m) ln(n m), for the whole matrix and for each large
    block, and probes how evenly random matrices of that rank are seen. Memory is O(cells).

    Parameters
    ----------
    X : array with NaN, sparse matrix or Observations
        Every stored cell is known, stored zeros included.
    rank : int, default=10
        Rank of the model that one has in mind.
    n_probes : int, default=10
        Random matrices of the isometry probe, each at O(cells rank).
    random_state : int or Generator, default=0
        Seed of the probe.
    n_jobs : int, optional
        Threads; None takes all cores. The result does not depend on it.

    Returns
    -------
    Diagnosis
        Counts, tables and a verdict in plain words.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.diagnostics import diagnose
    >>> X = sparse.block_diag([sparse.random_array((30, 20), density=0.5, rng=0), [[1.0]]])
    >>> found = diagnose(X, rank=2)
    >>> len(found.blocks)
    2
    >>> print(found.verdict[-1])
    14% of the unknown cells ...
    """
    rank = check_count("rank", rank)
    n_probes = check_count("n_probes", n_probes)
    rng, n_threads = check_rng(random_state), check_n_jobs(n_jobs)
    cells = cells_that_count(Observations.from_any(X))
    n, m = cells.shape
    if cells.nnz == 0:
        raise InvalidDataError(
            f"X ({n} x {m}) has no known cell; at least one stored value that is not NaN is needed"
        )
    blocks = find_blocks(cells)
    row_degree = np.diff(cells.indptr).astype(np.int64)
    col_degree = np.bincount(cells.indices, minlength=m).astype(np.int64)
    whole = BlockSize.of(n, m, cells.nnz, rank)
    sizes = zip(blocks.n_rows, blocks.n_cols, blocks.n_cells, strict=True)
    listed = [BlockSize.of(int(a), int(b), int(c), rank) for a, b, c in islice(sizes, LISTED_BLOCKS)]
    # Python integers: a matrix of millions by millions has more cells than 64 bits can square.
    inside = sum(int(a) * int(b) for a, b in zip(blocks.n_rows, blocks.n_cols, strict=True))
    outside = n * m - inside
    unknown = n * m - cells.nnz
    rows, cols = Degrees.of(row_degree, whole.rank), Degrees.of(col_degree, whole.rank)
    with one_blas_thread():
        isometry = probe_isometry(cells, whole.rank, n_probes, outside > 0, rng, n_threads)
    n_values = 1 if cells.values.min() == cells.values.max() else 2
    across_unknown = outside / unknown if unknown else 0.0
    verdict = make_verdict(
        rank,
        whole.rank,
        (whole.n_cells, whole.freedom, whole.needed),
        len(blocks),
        int(blocks.n_cells[0]),
        (rows.n_empty, cols.n_empty),
        (rows.n_below_rank / n, cols.n_below_rank / m),
        across_unknown,
        float(cells.values[0]) if n_values == 1 else None,
    )
    return Diagnosis(
        whole, blocks, listed, rows, cols, outside / (n * m), across_unknown, n_values, isometry, verdict
    )


def _size(size: BlockSize) -> dict[str, Any]:
    ratios = {"per_freedom": size.per_freedom, "per_needed": size.per_needed}
    return {**asdict(size), **{name: value if np.isfinite(value) else None for name, value in ratios.items()}}


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
