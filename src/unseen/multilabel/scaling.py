"""Features brought to a scale on which one kernel width fits all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from unseen.typing import Features, FloatArray

__all__ = ["FeatureScaling", "learn_scaling"]


@dataclass
class FeatureScaling:
    """How features are scaled.

    Attributes
    ----------
    unit_rows : bool
        Divide each row by its length; for sparse features, which must not be centred.
    centre, scale : ndarray or None
        Subtracted from the columns, then divided by; for dense features.
    """

    unit_rows: bool
    centre: FloatArray | None
    scale: FloatArray | None

    def apply(self, X: Features) -> Features:
        """Scaled features; a new array unless there is nothing to do."""
        if self.unit_rows:
            csr = sparse.csr_array(X)
            squares = np.asarray(csr.multiply(csr).sum(axis=1), dtype=np.float64).ravel()
            lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
            data = csr.data / np.repeat(lengths, np.diff(csr.indptr)).astype(csr.dtype)
            return sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)
        if self.centre is None or self.scale is None:
            return X
        dense = np.asarray(X.toarray() if sparse.issparse(X) else X)
        out: FloatArray = dense - self.centre.astype(dense.dtype, copy=False)
        out /= self.scale.astype(dense.dtype, copy=False)
        return out


def learn_scaling(X: Features, standardize: bool) -> FeatureScaling:
    """Unit rows for sparse features; columns of mean zero and variance one for dense ones."""
    if not standardize:
        return FeatureScaling(False, None, None)
    if sparse.issparse(X):
        return FeatureScaling(True, None, None)
    dense = np.asarray(X)
    centre = dense.mean(axis=0, dtype=np.float64)
    spread = dense.std(axis=0, dtype=np.float64)
    # A constant column carries nothing; what rounding left of its spread must not blow it up.
    constant = spread <= 1e-10 * np.maximum(np.abs(centre), 1.0)
    return FeatureScaling(False, centre, np.where(constant, 1.0, spread))
