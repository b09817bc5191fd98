"""Pointwise mutual information on stored counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.typing import CSR, FloatArray

__all__ = ["row_sums", "shifted_pmi", "sums"]

CELLS_AT_ONCE, ROWS_AT_ONCE = 1 << 18, 1024
"""What is worked on in float64 at a time: a few megabytes."""


def sums(counts: CSR) -> tuple[FloatArray, FloatArray]:
    """Row and column sums."""
    return np.asarray(counts.sum(axis=1), dtype=np.float64), np.asarray(counts.sum(axis=0), dtype=np.float64)


def row_sums(counts: CSR) -> FloatArray:
    """Row sums alone, without a copy of all counts in float64."""
    totals: FloatArray = np.empty(counts.shape[0])
    for first in range(0, counts.shape[0], ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        totals[rows] = counts[rows].sum(axis=1)
    return totals


def shifted_pmi(
    counts: CSR,
    row_sums: FloatArray,
    col_sums: FloatArray,
    total: float,
    shift: float,
    *,
    dtype: npt.DTypeLike = np.float64,
    overwrite: bool = False,
) -> CSR:
    """``max(log(counts total / (row_sum col_sum)) - log shift, 0)`` on the stored cells (ExMLDS eq. 4).

    Parameters
    ----------
    counts : CSR
        Positive where stored.
    row_sums, col_sums : arrays
        Of all counts, which may be more than the stored ones.
    total : float
    shift : float
    dtype : dtype
        Of the result; computed in float64 whatever it is.
    overwrite : bool
        Whether the result may use the arrays of `counts`, which is of no use then.

    Returns
    -------
    CSR
        Only positive values are stored.
    """
    # Empty rows have no stored cell; their sum of zero must not reach the logarithm.
    log_rows, log_cols = (np.log(np.where(s > 0, s, 1.0)) for s in (row_sums, col_sums))
    constant = np.log(total / shift) if total > 0 else 0.0
    values = np.empty(counts.nnz, dtype=dtype)
    for first in range(0, counts.nnz, CELLS_AT_ONCE):
        cells = slice(first, first + CELLS_AT_ONCE)
        part = np.log(counts.data[cells].astype(np.float64))
        part += constant
        places = np.arange(first, first + part.size)
        part -= log_rows[np.searchsorted(counts.indptr, places, side="right") - 1]
        part -= log_cols[counts.indices[cells]]
        # Rounding must not decide whether independence, an exact zero, is stored.
        part[part < 1e-12] = 0.0
        values[cells] = part
    indices, indptr = counts.indices, counts.indptr
    if not overwrite:  # dropping zeros moves indices in place
        indices, indptr = indices.copy(), indptr.copy()
    result: CSR = sparse.csr_array((values, indices, indptr), shape=counts.shape)
    result.eliminate_zeros()
    return result
