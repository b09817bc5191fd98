"""Matrices of positives that are generated part by part, for targets that no memory has to hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.datasets.scale import Keys, _distinct, _partners, _parts, _PowerLaw
from unseen.exceptions import ParameterError
from unseen.validation import check_count, check_positive, check_rng

__all__ = ["iter_scale_bipartite"]


def iter_scale_bipartite(
    n_rows: int,
    n_cols: int,
    mean_degree: float,
    n_parts: int,
    *,
    exponent: float = 2.5,
    group_size: tuple[int, int] = (20, 200),
    inside: float = 0.5,
    random_state: Any = None,
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Generate a matrix of positives in parts of consecutive rows.

    The law is that of :func:`make_scale_bipartite`; the numbers are others. Memory is that of one part,
    about 45 bytes for each of its cells, and of a few numbers for each row and column.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    mean_degree : float
        Positives of a row on average.
    n_parts : int
        Parts, of about as many rows each.
    exponent : float, default=2.5
        Exponent of the degrees on both sides, above 2.
    group_size : (int, int), default=(20, 200)
        Smallest and largest group of columns.
    inside : float, default=0.5
        Share of positives drawn inside of a row's groups.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Yields
    ------
    rows, cols : ndarray of int64
        Cells of a part, all different, in the order of the rows.

    Examples
    --------
    >>> from unseen.datasets import iter_scale_bipartite
    >>> parts = list(iter_scale_bipartite(1000, 400, 10, n_parts=4, random_state=0))
    >>> len(parts), sum(len(rows) for rows, _ in parts)
    (4, 10000)
    """
    rng = check_rng(random_state)
    n, m = check_count("n_rows", n_rows), check_count("n_cols", n_cols)
    count = round(n * check_positive("mean_degree", mean_degree))
    pieces = check_count("n_parts", n_parts)
    if not 1 <= count <= n * m // 2 or pieces > n:
        raise ParameterError(
            f"mean_degree={mean_degree!r} in n_parts={n_parts} asks for {count:,} cells; from 1 to half of "
            f"{n * m:,} in at most {n:,} parts would be accepted"
        )
    law, members, share = _parts(m, float(count), exponent, group_size, inside, rng)
    weights = _PowerLaw(n, float(count), exponent, rng).weights()
    heights = np.concatenate([[0.0], np.cumsum(weights)])
    of = rng.integers(0, members.count, (n, 2), dtype=np.int32)
    of[rng.random(n) < 0.5, 1] = -1
    edges = np.linspace(0, n, pieces + 1).astype(np.int64)
    done = np.rint(count * heights[edges] / heights[-1]).astype(np.int64)
    for start, stop, size in zip(edges[:-1], edges[1:], np.diff(done), strict=True):

        def draw(length: int, start: int = start, stop: int = stop) -> Keys:
            place = heights[start] + rng.random(length) * (heights[stop] - heights[start])
            rows = np.clip(np.searchsorted(heights, place, side="right") - 1, start, stop - 1)
            keys: Keys = (rows - start) * m + _partners(rows, of, members, law, share, rng)
            return keys

        keys = _distinct(draw, int(size), rng)
        yield start + keys // m, keys % m
