"""What lists are like apart from hits: how much of the catalogue they show, how known, how alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.docstrings import described_by
from unseen.exceptions import InvalidDataError
from unseen.metrics._lists import LISTS, checked_ids
from unseen.typing import CSR, IndexArray
from unseen.validation import check_count

__all__ = ["coverage_at_k", "diversity_at_k", "novelty_at_k"]


@described_by(LISTS)
def coverage_at_k(ids: npt.ArrayLike, n_cols: int, k: int = 5) -> float:
    """Share of all columns that are in the first k places of at least one list.

    Parameters
    ----------
    ids : array of int, shape (n, >= k)
        Columns, best first, -1 for an empty place.
    n_cols : int
        Columns that there are.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from unseen.metrics import coverage_at_k
    >>> coverage_at_k([[0, 1], [0, 2]], n_cols=6, k=2)
    0.5
    """
    listed = _listed(ids, check_count("n_cols", n_cols), k)
    return np.unique(listed[listed >= 0]).size / n_cols


@described_by(LISTS)
def novelty_at_k(ids: npt.ArrayLike, counts: npt.ArrayLike, n_rows: int, k: int = 5) -> float:
    """Mean of -log2(count / n_rows) over the places: bits that say how rarely seen the listed columns are.

    Parameters
    ----------
    ids : array of int, shape (n, >= k)
        Columns, best first, -1 for an empty place.
    counts : array of shape (n_cols,)
        In how many training rows each column is stored; one that is in none counts as one.
    n_rows : int
        Training rows.

    Returns
    -------
    float
        0 where every listed column is in every row.

    Examples
    --------
    >>> from unseen.metrics import novelty_at_k
    >>> novelty_at_k([[0, 1], [0, 2]], counts=[8, 4, 1], n_rows=8, k=2)
    1.0
    """
    seen = np.asarray(counts, dtype=np.float64)
    if seen.ndim != 1 or not np.all((seen >= 0) & (seen <= check_count("n_rows", n_rows))):
        raise InvalidDataError(f"counts must hold numbers in 0..{n_rows} (n_rows), one for each column")
    listed = _listed(ids, seen.size, k)
    if not (listed >= 0).any():
        raise InvalidDataError("ids list no column, so there is nothing to average over")
    bits = -np.log2(np.maximum(seen, 1) / n_rows)
    return float(bits[listed[listed >= 0]].mean())


@described_by(LISTS)
def diversity_at_k(ids: npt.ArrayLike, vectors: Any, k: int = 5) -> float:
    """Intra-list diversity: 1 - cosine, averaged over the pairs of a list and then over the lists.

    Parameters
    ----------
    ids : array of int, shape (n, >= k)
        Columns, best first, -1 for an empty place. Lists with fewer than two columns are left out.
    vectors : array or sparse matrix of shape (n_cols, d)
        What columns are compared by: features, factors, or the rows in which they are stored. A column of
        zeros is unlike all others.

    Returns
    -------
    float
        0 where all columns of a list point the same way, 1 where they are at right angles.

    Examples
    --------
    >>> from unseen.metrics import diversity_at_k
    >>> round(diversity_at_k([[0, 1, 2]], [[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]], k=3), 4)  # 0, 1 and 1
    0.6667
    """
    matrix: CSR = sparse.csr_array(vectors, dtype=np.float64)
    if not np.isfinite(matrix.data).all():
        raise InvalidDataError("vectors must be finite")
    norms = np.sqrt(matrix.power(2).sum(axis=1))
    unit: CSR = sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1.0)) @ matrix)
    listed = _listed(ids, unit.shape[0], k)
    lengths = (listed >= 0).sum(axis=1)
    listed, lengths = listed[lengths > 1], lengths[lengths > 1]
    if not lengths.size:
        raise InvalidDataError("ids have no list of two columns or more, so there are no pairs")
    rows, places = np.nonzero(listed >= 0)
    chosen = listed[rows, places]
    pick = sparse.csr_array((np.ones(chosen.size), (rows, chosen)), shape=(len(listed), unit.shape[0]))
    # The cosines of all pairs of a list add up to the squared length of the sum, less those with itself.
    total = sparse.csr_array(pick @ unit).power(2).sum(axis=1)
    own = pick @ (norms > 0).astype(np.float64)
    return float(np.mean(1 - (total - own) / (lengths * (lengths - 1))))


def _listed(ids: npt.ArrayLike, n_cols: int, k: int) -> IndexArray:
    given = np.asarray(ids)
    if given.ndim != 2 or not np.issubdtype(given.dtype, np.integer):
        raise InvalidDataError(
            f"ids have shape {given.shape} and dtype {given.dtype}; expected two dimensions of integers"
        )
    return checked_ids(given, n_cols, check_count("k", k))
