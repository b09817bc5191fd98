"""Rows of features seen through a map whose parameters move.

What a solver needs of a map, in blocks of rows: features at the current point or a step away from
it, and the way back from a derivative by the features. Products with X are made once a direction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from unseen.linalg.blocked import gram, in_blocks
from unseen.linalg.designs import DenseDesign, SparseDesign, as_design
from unseen.maps import FeatureMap, Fourier, Nystrom
from unseen.maps.base import MapParams, moved
from unseen.maps.kernel_width import squared_norms
from unseen.typing import Array, Features, FloatArray

__all__ = ["BLOCK_ROWS", "MappedRows", "mapped_rows"]

BLOCK_ROWS = 1024
"""Rows of a block: a product with some hundred columns runs at full speed, and stays in cache."""


class MappedRows(ABC):
    """Rows of features, a map, and where its parameters are.

    Parameters
    ----------
    X : array or csr_array
        Features, scaled.
    a_map : FeatureMap
        The map.
    params : dict
        Where to begin.
    n_threads : int
        Threads.
    """

    def __init__(self, X: Features, a_map: FeatureMap, params: MapParams, n_threads: int) -> None:
        self.X, self.a_map, self.n_threads = X, a_map, n_threads
        self.n_rows = X.shape[0]
        self.dtype = X.dtype
        self.move_to(params)

    width: int
    """Columns of the mapped features."""
    params: MapParams
    """The current point."""
    direction: MapParams
    """Where steps lead."""

    @abstractmethod
    def move_to(self, params: MapParams) -> None:
        """Take other parameters as the current point."""

    @abstractmethod
    def aim(self, direction: MapParams) -> None:
        """Prepare for steps along ``direction``."""

    @abstractmethod
    def advance(self, step: float) -> None:
        """Make the point a step along the direction the current one."""

    @abstractmethod
    def fill(self, rows: slice, step: float, out: FloatArray) -> None:
        """Write the mapped features of some rows, ``step`` along the direction."""

    @abstractmethod
    def take_slope(self, rows: slice, phi: FloatArray, slope: FloatArray) -> None:
        """Receive the derivative by the features of some rows; may write over ``slope``."""

    @abstractmethod
    def pulled(self) -> MapParams:
        """Gradient of the parameters, when every row's slope was taken."""


class _ByProducts(MappedRows):
    """Maps that see a row only through its products with the columns of one matrix U (d x m)."""

    name: str

    def _matrix(self, params: MapParams) -> FloatArray:
        return params[self.name]

    def move_to(self, params: MapParams) -> None:
        self.params = params
        self.change: FloatArray | None = None
        self.products = np.empty((0, 0), dtype=self.dtype)  # frees the old ones before the new are made
        self.products = multiply(self.X, self._matrix(params), self.n_threads)
        self.m = self.products.shape[1]
        self.direction = {}

    def aim(self, direction: MapParams) -> None:
        self.direction = direction
        self.change = None
        self.change = multiply(self.X, self._matrix(direction), self.n_threads)

    def advance(self, step: float) -> None:
        assert self.change is not None
        self.params = moved(self.params, self.direction, step)
        length = self.dtype.type(step)
        for start in range(0, self.n_rows, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            self.products[rows] += length * self.change[rows]

    def _trial(self, rows: slice, step: float) -> FloatArray:
        if step == 0.0:
            return self.products[rows]
        assert self.change is not None
        trial = self.change[rows] * self.dtype.type(step)
        trial += self.products[rows]
        return trial

    def _slopes(self) -> FloatArray:
        # The changes of the last direction are spent by now: the slopes take their place.
        if self.change is None:
            self.change = np.empty_like(self.products)
        return self.change


class FourierRows(_ByProducts):
    """Cosines and sines of the products (GIMC eq. 6)."""

    name = "projections"

    def move_to(self, params: MapParams) -> None:
        super().move_to(params)
        self.width = 2 * self.m

    def fill(self, rows: slice, step: float, out: FloatArray) -> None:
        angles = self._trial(rows, step)
        m = self.m
        np.cos(angles, out=out[:, :m])
        np.sin(angles, out=out[:, m : 2 * m])
        out[:, : 2 * m] *= self.dtype.type(m**-0.5)

    def take_slope(self, rows: slice, phi: FloatArray, slope: FloatArray) -> None:
        m = self.m
        # The derivative of a cosine is minus the sine beside it, and both carry the same scale.
        slope[:, m : 2 * m] *= phi[:, :m]
        slope[:, :m] *= phi[:, m : 2 * m]
        np.subtract(slope[:, m : 2 * m], slope[:, :m], out=self._slopes()[rows])

    def pulled(self) -> MapParams:
        return {self.name: multiply_transposed(self.X, self._slopes(), self.n_threads)}


class NystromRows(_ByProducts):
    """Gaussian similarities to landmarks, mixed by a fixed matrix (GIMC eqs. 7 and 8)."""

    name = "landmarks"

    def __init__(self, X: Features, a_map: FeatureMap, params: MapParams, n_threads: int) -> None:
        self.norms = squared_norms(X).astype(X.dtype, copy=False)
        self.gamma = float(params["gamma"])
        mixing = params.get("mixing")
        self.mixing = None if mixing is None else np.ascontiguousarray(mixing, dtype=X.dtype)
        super().__init__(X, a_map, params, n_threads)

    def _matrix(self, params: MapParams) -> FloatArray:
        return np.ascontiguousarray(params[self.name].T)

    def move_to(self, params: MapParams) -> None:
        super().move_to(params)
        self.width = self.m if self.mixing is None else self.mixing.shape[1]

    def _similarities(self, rows: slice, step: float) -> FloatArray:
        landmarks = (
            self.params[self.name] if step == 0.0 else moved(self.params, self.direction, step)[self.name]
        )
        distances = self._trial(rows, step) * self.dtype.type(-2.0)
        distances += self.norms[rows, None]
        distances += squared_norms(landmarks)[None, :].astype(self.dtype, copy=False)
        np.maximum(distances, 0.0, out=distances)
        distances *= self.dtype.type(-self.gamma)
        return np.exp(distances, out=distances)

    def fill(self, rows: slice, step: float, out: FloatArray) -> None:
        similarities = self._similarities(rows, step)
        out[:, : self.width] = similarities if self.mixing is None else similarities @ self.mixing

    def take_slope(self, rows: slice, phi: FloatArray, slope: FloatArray) -> None:
        slope = slope[:, : self.width]
        similarities = phi[:, : self.width] if self.mixing is None else self._similarities(rows, 0.0)
        by_similarity = slope if self.mixing is None else slope @ self.mixing.T
        np.multiply(similarities, by_similarity, out=self._slopes()[rows])

    def pulled(self) -> MapParams:
        weights = self._slopes()
        # d k(x, u) / d u = 2 gamma k(x, u) (x - u)
        total = weights.sum(axis=0, dtype=np.float64)
        pulled = (
            multiply_transposed(self.X, weights, self.n_threads).T - total[:, None] * self.params[self.name]
        )
        return {self.name: (2.0 * self.gamma * pulled).astype(self.dtype, copy=False)}


class OtherRows(MappedRows):
    """Any feature map, through its own methods."""

    def move_to(self, params: MapParams) -> None:
        self.params, self.direction = params, {}
        one = self.X[: min(1, self.n_rows)]
        self.width = self.a_map.apply(one, one.shape[0], params).shape[1]
        self.parts: dict[int, MapParams] = {}

    def aim(self, direction: MapParams) -> None:
        self.direction = direction

    def advance(self, step: float) -> None:
        self.params = moved(self.params, self.direction, step)

    def fill(self, rows: slice, step: float, out: FloatArray) -> None:
        part = self.X[rows]
        params = self.params if step == 0.0 else moved(self.params, self.direction, step)
        out[:, : self.width] = self.a_map.apply(part, part.shape[0], params).toarray()

    def take_slope(self, rows: slice, phi: FloatArray, slope: FloatArray) -> None:
        part = self.X[rows]
        design = self.a_map.apply(part, part.shape[0], self.params)
        wanted = np.ascontiguousarray(slope[:, : self.width])
        self.parts[rows.start] = self.a_map.pullback(part, self.params, design, wanted)

    def pulled(self) -> MapParams:
        out: MapParams = {}
        for name in self.a_map.learned:
            total = sum(self.parts[start][name].astype(np.float64) for start in sorted(self.parts))
            out[name] = np.asarray(total).astype(self.params[name].dtype)
        self.parts = {}
        return out


def mapped_rows(X: Features, a_map: FeatureMap, params: MapParams, n_threads: int) -> MappedRows:
    """The quickest form that there is for a map."""
    for kind, form in ((Fourier, FourierRows), (Nystrom, NystromRows)):
        if type(a_map) is kind:
            return form(X, a_map, params, n_threads)
    return OtherRows(X, a_map, params, n_threads)


def multiply(X: Features, matrix: Array, n_threads: int) -> FloatArray:
    """``X @ matrix`` in the dtype of X, by blocks of rows."""
    matrix = np.ascontiguousarray(matrix, dtype=X.dtype)
    design = as_design(X, n_threads)
    if isinstance(design, SparseDesign):
        return design.dot(matrix)
    dense = design.toarray()
    out: FloatArray = np.empty((X.shape[0], matrix.shape[1]), dtype=X.dtype)

    def task(rows: slice) -> None:
        np.matmul(dense[rows], matrix, out=out[rows])

    for _ in in_blocks(task, X.shape[0], n_threads, block_rows=BLOCK_ROWS):
        pass
    return out


def multiply_transposed(X: Features, values: FloatArray, n_threads: int) -> FloatArray:
    """``X.T @ values`` in the dtype of X; sums of blocks in float64."""
    design = as_design(X, n_threads)
    if isinstance(design, DenseDesign):
        product = gram(design.toarray(), values, n_threads=n_threads, block_rows=BLOCK_ROWS)
        return product.astype(X.dtype, copy=False)
    return design.tdot(values)
