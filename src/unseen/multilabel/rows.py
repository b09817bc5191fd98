"""Rows of features scaled to length one."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from unseen.multilabel.neighbours import unit_rows
from unseen.typing import CSR, Features

__all__ = ["scaled_rows"]


def scaled_rows(X: Features) -> Features:
    """Rows of Euclidean length one; rows of zeros stay as they are.

    Parameters
    ----------
    X : array or csr_array of shape (n, d)
        Features.

    Returns
    -------
    array or csr_array of shape (n, d)
        A copy, of the same type.

    Examples
    --------
    >>> import numpy as np
    >>> scaled_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if not sparse.issparse(X):
        return unit_rows(np.asarray(X))
    csr = sparse.csr_array(X)
    counts = np.diff(csr.indptr)
    rows = np.repeat(np.arange(csr.shape[0]), counts)
    squares = np.bincount(rows, weights=np.square(csr.data, dtype=np.float64), minlength=csr.shape[0])
    lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0)).astype(csr.dtype)
    scaled: CSR = sparse.csr_array((csr.data / lengths[rows], csr.indices, csr.indptr), shape=csr.shape)
    return scaled
