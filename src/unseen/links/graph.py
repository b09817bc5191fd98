"""One undirected graph: how it is read, its spectrum, and which pairs are left out of lists."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from unseen.data import Observations
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.typing import CSR, FloatArray

__all__ = ["check_square", "read_links", "top_eigenpairs", "undirected", "upper_pairs"]

WEIGHTS = ((1e-12, 1e12), (1e-100, 1e100))
"""Smallest and largest weights of links, in float32 and in float64."""

DENSE_NODES = 200
"""Up to this size LAPACK finds all eigenvalues faster than Lanczos finds a few."""


def read_links(X: Any) -> Observations:
    """Cells of an adjacency matrix that are links: those that are neither zero nor NaN."""
    cells = Observations.from_any(X, duplicates="sum")
    negative = np.flatnonzero(cells.values < 0)
    if negative.size:
        place = int(negative[0])
        raise InvalidDataError(
            f"X holds {cells.values[place]} in {cells.spot(place)}; "
            "links have weights above zero (Negative values in data are not accepted)"
        )
    cells = cells if np.all(cells.values) else cells.select(cells.values != 0)
    low, high = WEIGHTS[cells.dtype.itemsize > 4]
    odd = np.flatnonzero((cells.values < low) | (cells.values > high))
    if odd.size:
        place = int(odd[0])
        raise InvalidDataError(
            f"X holds {cells.values[place]} in {cells.spot(place)}; "
            f"weights of links from {low:g} to {high:g} are accepted, which have products; rescale them"
        )
    return cells


def check_square(cells: Observations, name: str = "X") -> int:
    """Number of nodes, or an error if rows and columns are not the same nodes."""
    n, m = cells.shape
    if n != m:
        raise InvalidDataError(
            f"{name} has shape {n} x {m}; links are read from a square matrix whose rows and columns are the "
            "same nodes (for two kinds of nodes use a matrix completer such as BiasMC)"
        )
    return n


def undirected(cells: Observations) -> CSR:
    """Symmetric graph without loops; what had to be changed is said in a warning."""
    check_square(cells)
    graph: CSR = cells.csr
    loops = cells.rows == cells.indices
    if loops.any():
        warnings.warn(
            f"{int(loops.sum())} self-loops were dropped: a node is no candidate for a link to itself",
            DataWarning,
            stacklevel=4,
        )
        graph = cells.select(~loops).csr
    other: CSR = sparse.csr_array(graph.T)
    if not _equal(graph, other):
        warnings.warn(
            "X is not symmetric; links are read as undirected, with the larger of the two weights",
            DataWarning,
            stacklevel=4,
        )
        graph = sparse.csr_array(graph.maximum(other))
    if graph.nnz == 0:
        raise InvalidDataError(
            f"X ({graph.shape[0]} x {graph.shape[1]}) has no observed cell off the diagonal; "
            "at least one link between two nodes is needed (n_samples = 1 leaves none)"
        )
    graph.sort_indices()
    return graph


def _equal(left: CSR, right: CSR) -> bool:
    return (
        np.array_equal(left.indptr, right.indptr)
        and np.array_equal(left.indices, right.indices)
        and np.array_equal(left.data, right.data)
    )


def upper_pairs(cells: Observations) -> CSR:
    """Stored pairs, of either direction, as a sorted pattern above the diagonal."""
    low, high = np.minimum(cells.rows, cells.indices), np.maximum(cells.rows, cells.indices)
    keep = low < high
    ones = np.ones(int(keep.sum()), dtype=np.int8)
    pattern = sparse.csr_array((ones, (low[keep], high[keep])), shape=cells.shape)
    pattern.sum_duplicates()
    return pattern


def top_eigenpairs(
    graph: CSR, rank: int, *, which: Literal["LM", "LA"] = "LM"
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of largest magnitude ("LM") or largest value ("LA") in that order, with their vectors."""
    n = graph.shape[0]
    if rank > n:
        raise ParameterError(f"rank must be at most the number of nodes, {n}, got {rank}")
    if n <= DENSE_NODES or rank >= n - 1:
        values, vectors = np.linalg.eigh(graph.toarray().astype(np.float64))
    else:
        # A fixed start: the same graph gives the same bits each time.
        start = np.random.default_rng(0).standard_normal(n)
        values, vectors = eigsh(graph.astype(np.float64), k=rank, which=which, v0=start)
    size = np.abs(values) if which == "LM" else values
    order = np.argsort(-size, kind="stable")[:rank]
    values, vectors = values[order], vectors[:, order]
    largest = np.argmax(np.abs(vectors), axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(rank)])
    return values, vectors
