"""Features as a classifier wants them: scaled columns, rows of length one, a constant column."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from unseen.exceptions import DataWarning
from unseen.multilabel.neighbours import unit_rows
from unseen.typing import CSR, Features, FloatArray

__all__ = [
    "FeatureScaling",
    "learn_scaling",
    "scaled_by",
    "scaled_rows",
    "unit_csr",
    "warn_of_parallel_rows",
    "with_ones",
]

MOSTLY_ZERO = 0.1
"""Share of non-zeros up to which features are taken as counts or words, whose zeros must stay."""
PARALLEL = 0.9
"""Mean cosine of two rows from which on scaling them to length one leaves little to tell them apart."""


@dataclass
class FeatureScaling:
    """How features are scaled.

    Attributes
    ----------
    unit_rows : bool
        Divide each row by its length; for features that are mostly zeros, which must not be centred.
    centre, scale : ndarray or None
        Subtracted from the columns, then divided by; for others.
    """

    unit_rows: bool
    centre: FloatArray | None
    scale: FloatArray | None

    def apply(self, X: Features) -> Features:
        """Scaled features; a new array unless there is nothing to do."""
        if self.unit_rows:
            return unit_csr(sparse.csr_array(X))
        if self.centre is None or self.scale is None:
            return X
        dense = np.asarray(X.toarray() if sparse.issparse(X) else X)
        out: FloatArray = dense - self.centre.astype(dense.dtype, copy=False)
        out /= self.scale.astype(dense.dtype, copy=False)
        return out


def learn_scaling(X: Features, standardize: bool) -> FeatureScaling:
    """Unit rows where few numbers are not zero; columns of mean zero and variance one otherwise.

    Numbers decide, not the format that they came in.
    """
    if not standardize:
        return FeatureScaling(False, None, None)
    filled = X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)
    if filled <= MOSTLY_ZERO * X.shape[0] * X.shape[1]:
        return FeatureScaling(True, None, None)
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X)
    centre = dense.mean(axis=0, dtype=np.float64)
    spread = dense.std(axis=0, dtype=np.float64)
    # A constant column carries nothing; what rounding left of its spread must not blow it up.
    constant = spread <= 1e-10 * np.maximum(np.abs(centre), 1.0)
    return FeatureScaling(False, centre, np.where(constant, 1.0, spread))


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
    return unit_csr(sparse.csr_array(X))


def _squares(X: Features) -> FloatArray:
    """Squared lengths of the rows."""
    if not sparse.issparse(X):
        dense: FloatArray = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        return dense
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    weights = np.square(X.data, dtype=np.float64)
    return np.bincount(rows, weights, minlength=X.shape[0]).astype(np.float64, copy=False)


def unit_csr(csr: CSR) -> CSR:
    """The same for a sparse matrix; the pattern is shared."""
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    squares = _squares(csr)
    lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0)).astype(csr.dtype)
    scaled: CSR = sparse.csr_array((csr.data / lengths[rows], csr.indices, csr.indptr), shape=csr.shape)
    return scaled


def warn_of_parallel_rows(X: Features) -> None:
    """Say that rows which are scaled to length one will look alike, as those of large raw numbers do."""
    if X.shape[0] < 2:
        return
    lengths = np.sqrt(_squares(X))
    shares = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0) / X.shape[0]
    mean = X.T @ shares.astype(X.dtype)
    cosine = float(np.sum(np.square(mean, dtype=np.float64)))
    if cosine > PARALLEL:
        warnings.warn(
            f"rows of X point nearly the same way (mean cosine {cosine:.3g}), so that scaling them to length "
            "one leaves little to tell them apart: standardise the features, or pass normalize=False",
            DataWarning,
            stacklevel=4,
        )


def scaled_by(X: Features, factors: FloatArray) -> Features:
    """Rows times one number each."""
    factors = factors.astype(X.dtype, copy=False)
    if not sparse.issparse(X):
        return np.asarray(X) * factors[:, None]
    csr = sparse.csr_array(X)
    return sparse.csr_array(
        (csr.data * np.repeat(factors, np.diff(csr.indptr)), csr.indices, csr.indptr), shape=csr.shape
    )


def with_ones(X: Features) -> Features:
    """Features and a constant column."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X, sparse.csr_array(ones)], format="csr"))
    return np.hstack([X, ones])
