"""Rows of features seen through a map whose params move, some rows at a time.

What a solver needs of a map when the design of all rows would be too large: designs of a block of rows at
the current params or a step away from them, and the way back from a derivative by the design. Products
with X are made once a direction.
"""

from __future__ import annotations

import numpy as np

from unseen.linalg.blocked import gram, in_blocks
from unseen.linalg.designs import DenseDesign, SparseDesign, as_design
from unseen.maps.base import FeatureMap, MapParams, moved
from unseen.maps.products import ProductMap
from unseen.typing import Array, Features, FloatArray

__all__ = ["BLOCK_ROWS", "MovingRows", "ProductRows", "moving_rows"]

BLOCK_ROWS = 1024
"""Rows of a block: a product with some hundred columns runs at full speed, and stays in cache."""


class MovingRows:
    """Rows of features, any map, and where its params are.

    Parameters
    ----------
    X : array or csr_array
        Features.
    a_map : FeatureMap
        The map.
    params : dict
        Where to begin.
    n_threads : int
        Threads.

    Attributes
    ----------
    width : int
        Columns of the design.
    params, direction : dict
        The current point, and where steps lead.
    """

    def __init__(self, X: Features, a_map: FeatureMap, params: MapParams, n_threads: int) -> None:
        self.X, self.a_map, self.n_threads = X, a_map, n_threads
        self.n_rows, self.dtype = X.shape[0], X.dtype
        one = X[: min(1, self.n_rows)]
        self.width: int = a_map.apply(one, one.shape[0], params).shape[1]
        self._parts: dict[int, MapParams] = {}
        self.move_to(params)

    def move_to(self, params: MapParams) -> None:
        """Take other params as the current point."""
        self.params = params
        self.direction: MapParams = {}

    def aim(self, direction: MapParams) -> None:
        """Prepare for steps along ``direction``."""
        self.direction = direction

    def advance(self, step: float) -> None:
        """Make the point a step along the direction the current one."""
        self.params = self._at(step)

    def fill(self, rows: slice, step: float, out: FloatArray) -> None:
        """Write the design of some rows, ``step`` along the direction."""
        part = self.X[rows]
        out[:] = self.a_map.apply(part, part.shape[0], self._at(step)).toarray()

    def take_slope(self, rows: slice, design: FloatArray, slope: FloatArray) -> None:
        """Receive the derivative by the design of some rows."""
        part = self.X[rows]
        own = self.a_map.apply(part, part.shape[0], self.params)
        self._parts[rows.start] = self.a_map.pullback(part, self.params, own, np.ascontiguousarray(slope))

    def pulled(self) -> MapParams:
        """Gradient of the params, when every row's slope was taken."""
        out: MapParams = {}
        for name in self.a_map.learned:
            total = sum(self._parts[start][name].astype(np.float64) for start in sorted(self._parts))
            out[name] = np.asarray(total).astype(self.params[name].dtype)
        self._parts = {}
        return out

    def _at(self, step: float) -> MapParams:
        return self.params if step == 0.0 else moved(self.params, self.direction, step)


class ProductRows(MovingRows):
    """The same for maps that see a row only through its products with the columns of one matrix."""

    a_map: ProductMap

    def __init__(self, X: Features, a_map: ProductMap, params: MapParams, n_threads: int) -> None:
        self._norms = a_map.norms(X)
        mixing = a_map.mixing(params)
        self._mixing = None if mixing is None else np.ascontiguousarray(mixing, dtype=X.dtype)
        super().__init__(X, a_map, params, n_threads)

    def move_to(self, params: MapParams) -> None:
        super().move_to(params)
        self._change: FloatArray | None = None
        self._products = np.empty((0, 0), dtype=self.dtype)  # frees the old ones before the new are made
        self._products = self._multiply(self.a_map.matrix(params))

    def aim(self, direction: MapParams) -> None:
        super().aim(direction)
        self._change = None
        self._change = self._multiply(self.a_map.matrix(direction))

    def advance(self, step: float) -> None:
        super().advance(step)
        assert self._change is not None
        length = self.dtype.type(step)
        for start in range(0, self.n_rows, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            self._products[rows] += length * self._change[rows]

    def _bare(self, rows: slice, step: float, out: FloatArray | None = None) -> FloatArray:
        if step == 0.0:
            products = self._products[rows].copy()
        else:
            assert self._change is not None
            products = self._change[rows] * self.dtype.type(step)
            products += self._products[rows]
        norms = None if self._norms is None else self._norms[rows]
        return self.a_map.bare(products, self._at(step), norms, out=out)

    def fill(self, rows: slice, step: float, out: FloatArray) -> None:
        if self._mixing is None:
            self._bare(rows, step, out)
        else:
            out[:] = self._bare(rows, step) @ self._mixing

    def take_slope(self, rows: slice, design: FloatArray, slope: FloatArray) -> None:
        if self._change is None:
            self._change = np.empty_like(self._products)
        bare = design
        if self._mixing is not None:
            bare, slope = self._bare(rows, 0.0), slope @ self._mixing.T
        # The changes of the last direction are spent by now: the slopes take their place.
        self.a_map.bare_slopes(bare, slope, out=self._change[rows])

    def pulled(self) -> MapParams:
        slopes = self._change
        assert slopes is not None
        X = as_design(self.X, self.n_threads)
        if isinstance(X, DenseDesign):
            product = gram(X.toarray(), slopes, n_threads=self.n_threads, block_rows=BLOCK_ROWS)
            pulled = product.astype(self.dtype, copy=False)
        else:
            pulled = X.tdot(slopes)
        return self.a_map.gathered(pulled, slopes.sum(axis=0, dtype=np.float64), self.params)

    def _multiply(self, matrix: Array) -> FloatArray:
        """``X @ matrix`` in the type of X; dense rows in smaller blocks than usual, which do much each."""
        matrix = np.ascontiguousarray(matrix, dtype=self.dtype)
        X = as_design(self.X, self.n_threads)
        if isinstance(X, SparseDesign):
            return X.dot(matrix)
        dense = X.toarray()
        out: FloatArray = np.empty((self.n_rows, matrix.shape[1]), dtype=self.dtype)

        def task(rows: slice) -> None:
            np.matmul(dense[rows], matrix, out=out[rows])

        for _ in in_blocks(task, self.n_rows, self.n_threads, block_rows=BLOCK_ROWS):
            pass
        return out


def moving_rows(X: Features, a_map: FeatureMap, params: MapParams, n_threads: int) -> MovingRows:
    """The quickest form that there is for a map."""
    if isinstance(a_map, ProductMap):
        return ProductRows(X, a_map, params, n_threads)
    return MovingRows(X, a_map, params, n_threads)
