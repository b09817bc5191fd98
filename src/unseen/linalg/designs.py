"""Design matrices: what a feature map turns features into.

A design knows its own layout, so no solver asks whether it is sparse. The identity (no
features) is a design too; its products cost nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.linalg.blocked import gram, matmul
from unseen.typing import CSR, Features, FloatArray, IndexArray

__all__ = ["CentredDesign", "DenseDesign", "Design", "IdentityDesign", "SparseDesign", "as_design"]


class Design(ABC):
    """A matrix with one row for each entity, seen only through its products."""

    shape: tuple[int, int]

    @abstractmethod
    def dot(self, coefficients: FloatArray) -> FloatArray:
        """``A @ coefficients``; may be the argument itself, so treat it as read-only."""

    @abstractmethod
    def tdot(self, values: FloatArray) -> FloatArray:
        """``A.T @ values``."""

    @abstractmethod
    def toarray(self) -> FloatArray:
        """The matrix in full; for tests and for designs known to be narrow."""


class IdentityDesign(Design):
    """The n x n identity: each entity has a row of coefficients of its own."""

    def __init__(self, n_entities: int) -> None:
        self.shape = (n_entities, n_entities)

    def dot(self, coefficients: FloatArray) -> FloatArray:
        return coefficients

    def tdot(self, values: FloatArray) -> FloatArray:
        return values

    def toarray(self) -> FloatArray:
        return np.eye(self.shape[0])


class DenseDesign(Design):
    """A dense design; products run over fixed row blocks."""

    def __init__(self, matrix: FloatArray, n_threads: int = 1) -> None:
        self.matrix = np.ascontiguousarray(matrix)
        self.shape = (matrix.shape[0], matrix.shape[1])
        self._n_threads = n_threads

    def dot(self, coefficients: FloatArray) -> FloatArray:
        return matmul(self.matrix, coefficients, n_threads=self._n_threads)

    def tdot(self, values: FloatArray) -> FloatArray:
        product = gram(self.matrix, values, n_threads=self._n_threads)
        return product.astype(values.dtype, copy=False)

    def toarray(self) -> FloatArray:
        return self.matrix


class SparseDesign(Design):
    """A CSR design; products go through the native kernels."""

    def __init__(self, matrix: CSR, n_threads: int = 1) -> None:
        self.matrix = matrix
        self.shape = (matrix.shape[0], matrix.shape[1])
        self._n_threads = n_threads

    def dot(self, coefficients: FloatArray) -> FloatArray:
        a = self.matrix
        data = a.data.astype(coefficients.dtype, copy=False)
        return kernels.spmm(
            a.indptr, a.indices, data, np.ascontiguousarray(coefficients), n_threads=self._n_threads
        )

    def tdot(self, values: FloatArray) -> FloatArray:
        a = self.matrix
        data = a.data.astype(values.dtype, copy=False)
        return kernels.spmm_t(
            a.indptr, a.indices, data, np.ascontiguousarray(values), a.shape[1], n_threads=self._n_threads
        )

    def toarray(self) -> FloatArray:
        dense: FloatArray = self.matrix.toarray()
        return dense


class CentredDesign(Design):
    """Sparse columns less a number each, ``A - 1 s'``, with A left as it is.

    Centring would fill a sparse matrix in; as a correction of rank one it costs one number a column.
    """

    def __init__(self, base: SparseDesign, shift: FloatArray) -> None:
        self.base = base
        self.shift = shift
        self.shape = base.shape

    def dot(self, coefficients: FloatArray) -> FloatArray:
        out = self.base.dot(coefficients)
        out -= (self.shift @ coefficients.astype(np.float64)).astype(out.dtype)
        return out

    def tdot(self, values: FloatArray) -> FloatArray:
        out = self.base.tdot(values)
        sums = values.sum(axis=0, dtype=np.float64)
        out -= (self.shift[:, None] * sums).astype(out.dtype)
        return out

    def toarray(self) -> FloatArray:
        dense: FloatArray = self.base.toarray() - self.shift.astype(self.dtype)
        return dense

    # Maps that stand behind the centring take such a design in place of features.

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.base.matrix.dtype

    def __getitem__(self, rows: slice | IndexArray) -> CentredDesign:
        return CentredDesign(SparseDesign(sparse.csr_array(self.base.matrix[rows])), self.shift)

    def squared_norms(self) -> FloatArray:
        """Squared length of each row."""
        a = self.base.matrix
        own = np.asarray(a.multiply(a).sum(axis=1), dtype=np.float64).ravel()
        along = self.base.dot(self.shift[:, None].astype(self.dtype))[:, 0]
        norms: FloatArray = own - 2.0 * along + float(self.shift @ self.shift)
        return np.maximum(norms, 0.0).astype(self.dtype, copy=False)


def as_design(matrix: Features | Design, n_threads: int = 1) -> Design:
    """Wrap a dense or CSR matrix; a design stays what it is."""
    if isinstance(matrix, Design):
        return matrix
    if sparse.issparse(matrix):
        return SparseDesign(sparse.csr_array(matrix), n_threads)
    return DenseDesign(np.asarray(matrix), n_threads)
