"""Parts of the instances, and to which part a new one belongs."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse

from unseen.linalg.designs import as_design
from unseen.linalg.ridge import RidgeSystem
from unseen.multilabel.neighbours import unit_rows
from unseen.typing import CSR, Array, Features, FloatArray, IndexArray

__all__ = ["Partition", "assign", "graph_partition", "spherical_kmeans"]

Partition = Literal["kmeans", "graph"]

KMEANS_ROUNDS = 7
GRAPH_ROUNDS = 5


def assign(X: Features, directions: FloatArray, *, n_threads: int = 1) -> IndexArray:
    """Part with the largest inner product for each row; ties go to the first."""
    found: IndexArray = np.argmax(as_design(X, n_threads).dot(np.ascontiguousarray(directions.T)), axis=1)
    return found


def spherical_kmeans(
    X: Features,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    max_iter: int = KMEANS_ROUNDS,
    n_threads: int = 1,
) -> tuple[FloatArray, IndexArray]:
    """Parts of rows of length one, by the cosine with a mean direction.

    Raises the sum of cosines between rows and the directions of their parts in every round. A part
    that runs empty takes the row with the smallest cosine to its own direction.

    Parameters
    ----------
    X : array or csr_array of shape (n, d)
        Rows of length one, or zero.
    n_clusters : int
        Parts; at most n.
    rng : Generator
        Draws the rows that the directions start from.
    max_iter : int, default=7
        Limit of rounds.
    n_threads : int, default=1
        Threads.

    Returns
    -------
    directions : array of shape (n_clusters, d)
        Unit vectors.
    parts : array of shape (n,)
        Part of each row.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.96, 0.28], [0.28, 0.96]])
    >>> _, parts = spherical_kmeans(X, 2, np.random.default_rng(0))
    >>> bool(parts[0] == parts[2]), bool(parts[1] == parts[3]), bool(parts[0] == parts[1])
    (True, True, False)
    """
    design = as_design(X, n_threads)
    directions = _spread_rows(X, n_clusters, rng, n_threads)
    parts = np.full(X.shape[0], -1, dtype=np.int64)
    for _ in range(max_iter):
        cosines = design.dot(np.ascontiguousarray(directions.T))
        last, parts = parts, np.argmax(cosines, axis=1)
        own = cosines[np.arange(len(parts)), parts].astype(np.float64)
        _fill_empty(parts, own, n_clusters)
        if np.array_equal(last, parts):
            break
        directions = unit_rows(_means(X, parts, n_clusters))
    return directions, parts


def graph_partition(
    X: Features,
    Y: CSR,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    reg: float = 1.0,
    max_iter: int = GRAPH_ROUNDS,
    n_threads: int = 1,
) -> tuple[FloatArray, IndexArray]:
    """Parts that keep rows with the same labels together and that hyperplanes on the features find.

    Starts from :func:`spherical_kmeans`. Each round gives a row to the part where most of its mates
    in the graph of shared labels are, divided by the size of that part so that no part takes all,
    and then learns one hyperplane a part by ridge regression. A label counts for less the more rows
    have it. Rows belong to the part of the largest hyperplane score in the end, as new rows do.

    Parameters
    ----------
    X : array or csr_array of shape (n, d)
        Rows of length one, or zero.
    Y : csr_array of shape (n, n_labels)
        Labels.
    n_clusters : int
        Parts; at most n.
    rng : Generator
        Source of the start.
    reg : float, default=1.0
        Ridge of the hyperplanes.
    max_iter : int, default=5
        Rounds.
    n_threads : int, default=1
        Threads.

    Returns
    -------
    hyperplanes : array of shape (n_clusters, d)
        Normals; the part of x is the one with the largest inner product.
    parts : array of shape (n,)
        Part of each row.
    """
    directions, parts = spherical_kmeans(X, n_clusters, rng, n_threads=n_threads)
    if n_clusters == 1:
        return directions, parts
    counts = np.asarray(Y.sum(axis=0), dtype=np.float64).ravel()
    lengths = np.asarray(Y.sum(axis=1), dtype=np.float64).ravel()
    # Both sides of the walk row -> label -> row are averages, so head labels do not drown the rest.
    to_labels = sparse.csr_array(Y.T.astype(np.float64).multiply(1.0 / np.maximum(counts, 1.0)[:, None]))
    to_rows = sparse.csr_array(Y.astype(np.float64).multiply(1.0 / np.maximum(lengths, 1.0)[:, None]))
    system = RidgeSystem(X, reg, n_threads=n_threads)
    hyperplanes = directions
    for _ in range(max_iter):
        members = _indicator(parts, n_clusters)
        mates = to_rows @ (to_labels @ members)
        sizes = np.maximum(members.sum(axis=0), 1.0)
        wanted = np.argmax(mates / sizes, axis=1)
        wanted = np.where(lengths > 0, wanted, parts)
        targets = _indicator(wanted, n_clusters)
        centred = (targets - targets.mean(axis=0)).astype(X.dtype)
        hyperplanes = np.ascontiguousarray(system.solve(centred).T)
        scores = system.predict(np.ascontiguousarray(hyperplanes.T))
        last, parts = parts, np.argmax(scores, axis=1)
        if np.array_equal(last, parts):
            break
    return hyperplanes, parts


def _spread_rows(X: Features, n_wanted: int, rng: np.random.Generator, n_threads: int) -> FloatArray:
    """Rows drawn one after the other, the farther from those drawn before the more likely."""
    design = as_design(X, n_threads)
    chosen = [int(rng.integers(X.shape[0]))]
    farness = np.full(X.shape[0], np.inf)
    while len(chosen) < n_wanted:
        last = np.ascontiguousarray(_dense(X[[chosen[-1]]]).T)
        farness = np.minimum(farness, np.maximum(1.0 - design.dot(last)[:, 0], 0.0))
        farness[chosen] = 0.0
        total = farness.sum()
        free = np.setdiff1d(np.arange(X.shape[0]), chosen)
        chosen.append(int(rng.choice(X.shape[0], p=farness / total) if total > 0.0 else rng.choice(free)))
    return _dense(X[chosen])


def _fill_empty(parts: IndexArray, own: Array, n_clusters: int) -> None:
    sizes = np.bincount(parts, minlength=n_clusters)
    for empty in np.flatnonzero(sizes == 0):
        movable = np.where(sizes[parts] > 1, own, np.inf)
        lone = int(np.argmin(movable))
        sizes[parts[lone]] -= 1
        parts[lone], own[lone] = empty, np.inf
        sizes[empty] = 1


def _indicator(parts: IndexArray, n_clusters: int) -> FloatArray:
    members = np.zeros((len(parts), n_clusters))
    members[np.arange(len(parts)), parts] = 1.0
    return members


def _means(X: Features, parts: IndexArray, n_clusters: int) -> FloatArray:
    n = len(parts)
    members = sparse.csr_array((np.ones(n, dtype=X.dtype), parts, np.arange(n + 1)), shape=(n, n_clusters))
    return _dense(members.T.tocsr() @ X)


def _dense(matrix: Features) -> FloatArray:
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)
