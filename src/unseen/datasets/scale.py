"""Graphs and bipartite matrices of millions of nodes, with planted groups as the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data import Observations
from unseen.datasets.bunches import Summarised
from unseen.exceptions import ParameterError
from unseen.typing import CSR, FloatArray
from unseen.validation import check_count, check_fraction, check_positive, check_rng

__all__ = ["ScaleData", "make_scale_bipartite", "make_scale_graph"]

CHUNK = 1 << 22
"""Pairs drawn at a time, which bounds all temporaries of drawing."""
MAX_ROUNDS = 60

Keys = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.int64]
Groups = npt.NDArray[np.int32]


@dataclass(frozen=True, repr=False)
class ScaleData(Summarised):
    """A large generated matrix of positives.

    Attributes
    ----------
    observations : Observations
        Ones (float32) where there is a link; symmetric for a graph.
    held_out : ndarray of int32, shape (n_held_out, 2)
        Links that were taken out at random; for a graph each pair once, i < j.
    row_groups, col_groups : ndarray of int32, shape (n, 2)
        The groups of each row and column, -1 where there is no second one.
    """

    observations: Observations
    held_out: npt.NDArray[np.int32]
    row_groups: Groups
    col_groups: Groups


class _PowerLaw:
    """Nodes drawn with power-law weights ``(i + i0)^(-1/(g-1))``, in closed form; order is shuffled."""

    def __init__(self, n: int, total: float, exponent: float, rng: np.random.Generator) -> None:
        self.n = n
        self._power = (exponent - 2.0) / (exponent - 1.0)
        self._offset = self._find_offset(total)
        self._label = rng.permutation(n)

    def _span(self, offset: float) -> tuple[float, float]:
        return offset**self._power, float(self.n + offset) ** self._power

    def _find_offset(self, total: float) -> float:
        """i0 such that the largest expected degree is the square root of the sum of degrees."""
        low, high = 1e-9, float(self.n)
        for _ in range(100):
            middle = np.sqrt(low * high)
            start, stop = self._span(middle)
            first = float(1.0 + middle) ** self._power
            largest = total * (first - start) / (stop - start)
            low, high = (middle, high) if largest > np.sqrt(total) else (low, middle)
        return float(high)

    def draw(self, uniform: FloatArray) -> Nodes:
        """Nodes from uniform numbers, by the inverse of the distribution function."""
        start, stop = self._span(self._offset)
        place = (start + uniform * (stop - start)) ** (1.0 / self._power) - self._offset
        return np.asarray(self._label[np.clip(place, 0, self.n - 1).astype(np.int64)])

    def weights(self) -> FloatArray:
        """Probability of each node."""
        edges = (np.arange(self.n + 1) + self._offset) ** self._power
        out = np.empty(self.n)
        out[self._label] = np.diff(edges) / (edges[-1] - edges[0])
        return out


class _Members:
    """Groups of nodes; draws a member by weight."""

    def __init__(
        self, law: _PowerLaw, sizes: tuple[int, int], second: float, rng: np.random.Generator
    ) -> None:
        self.of: Groups = np.full((law.n, 2), -1, dtype=np.int32)
        orders, lengths, count = [], [], 0
        # Everybody is in a group of the first round, some are in one of the second.
        for turn, share in enumerate((1.0, second)):
            order = rng.permutation(law.n)[: round(share * law.n)]
            cut = _group_sizes(order.size, sizes, rng)
            self.of[order, turn] = np.repeat(np.arange(count, count + cut.size), cut)
            orders.append(order)
            lengths.append(cut)
            count += cut.size
        self.count = count
        self._order = np.concatenate(orders)
        self._bounds = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        self._heights = np.concatenate([[0.0], np.cumsum(law.weights()[self._order])])

    def draw(self, groups: Groups, uniform: FloatArray) -> Nodes:
        """A member of each of the given groups."""
        low, high = (self._heights[self._bounds[groups + step]] for step in (0, 1))
        place = np.searchsorted(self._heights, low + uniform * (high - low), side="right") - 1
        return np.asarray(self._order[np.clip(place, self._bounds[groups], self._bounds[groups + 1] - 1)])


def _group_sizes(n: int, sizes: tuple[int, int], rng: np.random.Generator) -> Nodes:
    """Sizes that add up to n, log-uniform between the limits (the last one may be cut short)."""
    low, high = sizes
    drawn = np.exp(rng.uniform(np.log(low), np.log(high + 1), n // low + 1)).astype(np.int64)
    ends = np.minimum(np.cumsum(drawn), n)
    return np.diff(np.concatenate([[0], np.unique(ends)])) if n else np.empty(0, dtype=np.int64)


def make_scale_graph(
    n_nodes: int,
    mean_degree: float,
    *,
    exponent: float = 2.5,
    group_size: tuple[int, int] = (20, 200),
    inside: float = 0.5,
    held_out: float = 0.02,
    random_state: Any = None,
) -> ScaleData:
    """Generate an undirected graph with power-law degrees and planted groups.

    Each node is in one or two groups. A link starts at a node drawn by its expected degree
    ``c (i + i0)^(-1/(exponent - 1))``, the largest of which is about the square root of their
    sum; it ends at a member of one of its groups with probability `inside`, else anywhere, again
    by expected degree. Loops are dropped, links drawn twice count once and are replaced, so nodes
    with more links than their groups can take have fewer of them inside. Memory grows with the
    links: about 45 bytes for each while generating, 16 afterwards.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.
    mean_degree : float
        Links of a node on average, held-out ones included; 2,000,000 nodes with 42 have the size
        of a large social network.
    exponent : float, default=2.5
        Exponent g of the degrees, above 2.
    group_size : (int, int), default=(20, 200)
        Smallest and largest group, sizes are log-uniform between them.
    inside : float, default=0.5
        Share of links drawn inside of groups.
    held_out : float, default=0.02
        Share of links taken out at random, to measure what a model finds.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    ScaleData

    Examples
    --------
    >>> from unseen.datasets import make_scale_graph
    >>> data = make_scale_graph(1000, 10, random_state=0)
    >>> data.observations.nnz // 2 + len(data.held_out)
    5000
    """
    rng = check_rng(random_state)
    n = check_count("n_nodes", n_nodes, minimum=2)
    count = round(n * check_positive("mean_degree", mean_degree) / 2)
    _check_room(count, n * (n - 1) // 2, "mean_degree")
    law, members, share = _parts(n, 2.0 * count, exponent, group_size, inside, rng)

    def draw(size: int) -> Keys:
        first = law.draw(rng.random(size))
        second = _partners(first, members.of, members, law, share, rng)
        low, high = np.minimum(first, second), np.maximum(first, second)
        keys: Keys = (low * n + high)[low < high]
        return keys

    kept, hidden = _held_out(_distinct(draw, count, rng), n, held_out, rng)
    graph = _mirrored(kept, n)
    return ScaleData(Observations.from_sparse(graph), hidden, members.of, members.of)


def make_scale_bipartite(
    n_rows: int,
    n_cols: int,
    mean_degree: float,
    *,
    exponent: float = 2.5,
    group_size: tuple[int, int] = (20, 200),
    inside: float = 0.5,
    held_out: float = 0.02,
    random_state: Any = None,
) -> ScaleData:
    """Generate a matrix of positives with power-law rows and columns and planted groups.

    As `make_scale_graph`, with two kinds of nodes: columns are cut into groups, and each row
    prefers one or two of them.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    mean_degree : float
        Positives of a row on average, held-out ones included.
    exponent : float, default=2.5
        Exponent g of the degrees on both sides, above 2.
    group_size : (int, int), default=(20, 200)
        Smallest and largest group of columns.
    inside : float, default=0.5
        Share of positives drawn inside of a row's groups.
    held_out : float, default=0.02
        Share of positives taken out at random.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    ScaleData

    Examples
    --------
    >>> from unseen.datasets import make_scale_bipartite
    >>> make_scale_bipartite(1000, 400, 10, held_out=0.0, random_state=0).observations
    Observations(1,000 x 400, 10,000 cells = 2.5%, float32)
    """
    rng = check_rng(random_state)
    n, m = check_count("n_rows", n_rows), check_count("n_cols", n_cols)
    count = round(n * check_positive("mean_degree", mean_degree))
    _check_room(count, n * m, "mean_degree")
    law, members, share = _parts(m, float(count), exponent, group_size, inside, rng)
    rows = _PowerLaw(n, float(count), exponent, rng)
    of: Groups = rng.integers(0, members.count, (n, 2), dtype=np.int32)
    of[rng.random(n) < 0.5, 1] = -1

    def draw(size: int) -> Keys:
        first = rows.draw(rng.random(size))
        keys: Keys = first * m + _partners(first, of, members, law, share, rng)
        return keys

    kept, hidden = _held_out(_distinct(draw, count, rng), m, held_out, rng)
    matrix = _csr(kept, (n, m))
    return ScaleData(Observations.from_sparse(matrix), hidden, of, members.of)


def _parts(
    n: int, total: float, exponent: float, group_size: Any, inside: float, rng: np.random.Generator
) -> tuple[_PowerLaw, _Members, float]:
    g = check_positive("exponent", exponent)
    if g <= 2.0:
        raise ParameterError(f"exponent must be above 2, so that degrees have a mean, got {exponent!r}")
    if len(group_size) != 2:
        raise ParameterError(f"group_size must be two numbers, smallest and largest, got {group_size!r}")
    low, high = (check_count("group_size", size, minimum=2) for size in group_size)
    if low > high:
        raise ParameterError(f"group_size must be (smallest, largest), got {group_size!r}")
    share = check_fraction("inside", inside, include_low=True, include_high=True)
    law = _PowerLaw(n, total, g, rng)
    return law, _Members(law, (low, high), 0.5, rng), share


def _check_room(count: int, room: int, name: str) -> None:
    if count < 1 or 2 * count > room:
        raise ParameterError(
            f"{name} asks for {count:,} links; from 1 to half of all {room:,} pairs would be accepted"
        )


def _partners(
    first: Nodes, of: Groups, members: _Members, law: _PowerLaw, inside: float, rng: np.random.Generator
) -> Nodes:
    """The other end of each link: in one of the first's groups, or anywhere."""
    own = of[first]
    group = np.where((own[:, 1] >= 0) & (rng.random(first.size) < 0.5), own[:, 1], own[:, 0])
    second = law.draw(rng.random(first.size))
    at_home = np.flatnonzero(rng.random(first.size) < inside)
    second[at_home] = members.draw(group[at_home], rng.random(at_home.size))
    return second


def _distinct(draw: Callable[[int], Keys], count: int, rng: np.random.Generator) -> Keys:
    """``count`` different keys, sorted; duplicates are replaced by fresh draws."""
    keys: Keys = np.empty(0, dtype=np.int64)
    fresh = 0.9  # share of draws that are new; each round learns it from the last one
    for _ in range(MAX_ROUNDS):
        missing = count - keys.size
        if missing <= 0:
            break
        wanted = int(1.02 * missing / fresh) + 1000
        known = keys.size
        parts = [keys, *(draw(min(CHUNK, wanted - done)) for done in range(0, wanted, CHUNK))]
        keys = np.concatenate(parts)
        del parts
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        fresh = max((keys.size - known) / wanted, 0.05)
    if keys.size < count:
        raise ParameterError(
            f"only {keys.size:,} different links were found of {count:,}; fewer links, larger groups or a "
            "smaller share inside are needed"
        )
    if keys.size > count:
        surplus = rng.choice(keys.size, keys.size - count, replace=False, shuffle=False)
        keep = np.ones(keys.size, dtype=bool)
        keep[surplus] = False
        keys = keys[keep]
    return keys


def _held_out(
    keys: Keys, width: int, share: float, rng: np.random.Generator
) -> tuple[Keys, npt.NDArray[np.int32]]:
    hidden = check_fraction("held_out", share, include_low=True)
    taken = rng.random(keys.size) < hidden
    rows, cols = np.divmod(keys[taken], width)
    return keys[~taken], np.column_stack([rows, cols]).astype(np.int32)


def _csr(keys: Keys, shape: tuple[int, int]) -> CSR:
    """Ones at sorted keys ``row * n_cols + col``."""
    bounds = np.searchsorted(keys, np.arange(shape[0] + 1, dtype=np.int64) * shape[1])
    indices = (keys % shape[1]).astype(np.int32)
    ones = np.ones(keys.size, dtype=np.float32)
    return sparse.csr_array((ones, indices, bounds.astype(np.int32)), shape=shape)


def _mirrored(keys: Keys, n: int) -> CSR:
    """Symmetric matrix of the pairs i < j; each row is its lower part, then its upper part."""
    upper = _csr(keys, (n, n))
    lower: CSR = upper.T.tocsr()
    indptr = upper.indptr + lower.indptr
    indices = np.empty(2 * keys.size, dtype=np.int32)
    for part, shift in ((lower, upper.indptr[:-1]), (upper, lower.indptr[1:])):
        # Entry t of row i moves by the entries of the other part that come before it.
        place = np.repeat(shift, np.diff(part.indptr))
        place += np.arange(keys.size, dtype=place.dtype)
        indices[place] = part.indices
    return sparse.csr_array((np.ones(indices.size, dtype=np.float32), indices, indptr), shape=(n, n))
