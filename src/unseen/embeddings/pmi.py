"""Pointwise mutual information on stored counts."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from unseen.typing import CSR, FloatArray

__all__ = ["shifted_pmi", "sums"]


def sums(counts: CSR) -> tuple[FloatArray, FloatArray]:
    """Row and column sums."""
    return np.asarray(counts.sum(axis=1), dtype=np.float64), np.asarray(counts.sum(axis=0), dtype=np.float64)


def shifted_pmi(counts: CSR, row_sums: FloatArray, col_sums: FloatArray, total: float, shift: float) -> CSR:
    """``max(log(counts total / (row_sum col_sum)) - log shift, 0)`` on the stored cells (ExMLDS eq. 4).

    Parameters
    ----------
    counts : CSR
        Positive where stored.
    row_sums, col_sums : arrays
        Of all counts, which may be more than the stored ones.
    total : float
    shift : float

    Returns
    -------
    CSR
        float64; only positive values are stored.
    """
    # Empty rows have no stored cell; their sum of zero must not reach the logarithm.
    log_rows, log_cols = (np.log(np.where(s > 0, s, 1.0)) for s in (row_sums, col_sums))
    values = np.log(counts.data.astype(np.float64))
    values += np.log(total / shift) if total > 0 else 0.0
    values -= np.repeat(log_rows, np.diff(counts.indptr))
    values -= log_cols[counts.indices]
    # Rounding must not decide whether independence, an exact zero, is stored.
    values[values < 1e-12] = 0.0
    # Copies: dropping zeros moves indices in place, and these are the caller's.
    result: CSR = sparse.csr_array((values, counts.indices.copy(), counts.indptr.copy()), shape=counts.shape)
    result.eliminate_zeros()
    return result
