"""Maps that see an entity only through products of its features with the columns of one matrix."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from unseen.linalg.blocked import matmul
from unseen.linalg.designs import DenseDesign, Design, as_design
from unseen.maps.base import DesignPath, FeatureMap, MapParams, moved
from unseen.maps.kernel_width import squared_norms
from unseen.typing import Array, Features, FloatArray

__all__ = ["ProductMap"]


class ProductMap(FeatureMap):
    """Base of maps ``phi(x) = h(x'U, ||x||^2) M`` with a matrix U made of the params and a fixed M.

    A subclass says what U, h and its derivative are. Products are linear in U, so two products with X serve
    every step along a direction, and the derivative goes back to U through one more. All of it can be done
    for some rows at a time; see :class:`~unseen.maps.rows.MovingRows`.
    """

    needs_norms = False
    """Whether h needs the squared lengths of the rows."""

    @abstractmethod
    def matrix(self, params: MapParams) -> FloatArray:
        """U of shape (d, m), linear in the learned params."""

    @abstractmethod
    def bare(
        self,
        products: FloatArray,
        params: MapParams,
        norms: FloatArray | None,
        n_threads: int = 1,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """What h makes of rows with these products, in ``out`` if given; may write over ``products``."""

    @abstractmethod
    def bare_slopes(self, bare: FloatArray, grad: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Derivative by the products (up to a factor for :meth:`gathered`), given that by ``bare``."""

    @abstractmethod
    def gathered(self, pulled: FloatArray, totals: FloatArray, params: MapParams) -> MapParams:
        """Gradient of the params from ``X' slopes`` and the sums of the slopes over the rows."""

    def mixing(self, params: MapParams) -> Array | None:
        """M, or None for the identity."""
        return params.get("mixing")

    def norms(self, features: Features) -> FloatArray | None:
        """Squared lengths of the rows, where they are needed."""
        return squared_norms(features).astype(features.dtype, copy=False) if self.needs_norms else None

    # -- all rows at once ------------------------------------------------------------

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        assert features is not None
        products = as_design(features, n_threads).dot(self.matrix(params))
        return self._design(self.bare(products, params, self.norms(features), n_threads), params, n_threads)

    def pullback(
        self, features: Features | None, params: MapParams, design: Design, grad: Array, n_threads: int = 1
    ) -> MapParams:
        assert features is not None
        X, mixing = as_design(features, n_threads), self.mixing(params)
        if isinstance(design, _MixedDesign):
            bare = design.bare
        elif mixing is None:
            bare = design.toarray()
        else:
            bare = self.bare(X.dot(self.matrix(params)), params, self.norms(features), n_threads)
        if mixing is not None:
            grad = matmul(grad, np.ascontiguousarray(mixing.T), n_threads=n_threads)
        slopes = self.bare_slopes(bare, grad)
        return self.gathered(X.tdot(slopes), slopes.sum(axis=0, dtype=np.float64), params)

    def path(
        self, features: Features, params: MapParams, direction: MapParams, n_threads: int = 1
    ) -> DesignPath:
        X, norms = as_design(features, n_threads), self.norms(features)
        products, change = (X.dot(self.matrix(part)) for part in (params, direction))

        def at(step: float) -> Design:
            trial = products + products.dtype.type(step) * change
            there = moved(params, direction, step)
            return self._design(self.bare(trial, there, norms, n_threads), params, n_threads)

        return at

    def _design(self, bare: FloatArray, params: MapParams, n_threads: int) -> Design:
        mixing = self.mixing(params)
        if mixing is None:
            return DenseDesign(bare, n_threads)
        mixed = matmul(bare, mixing, n_threads=n_threads)
        return _MixedDesign(mixed, bare, n_threads) if self.learned else DenseDesign(mixed, n_threads)


class _MixedDesign(DenseDesign):
    """A mixed design that remembers the bare one, which the gradient needs."""

    def __init__(self, matrix: FloatArray, bare: FloatArray, n_threads: int = 1) -> None:
        super().__init__(matrix, n_threads)
        self.bare = bare
