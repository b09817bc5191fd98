"""What is done to one block: pure functions that every engine runs.

The scores of a block of rows are ``P Q'``. On a side without features P are the coefficients, solved for row
by row (ALS) or by conjugate gradients; with features ``P = A W``, A the block's design and W the
coefficients that all rows share, whose derivatives are small sums ``A' G`` over the blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from unseen import kernels
from unseen.distributed.blocks import CellBlock
from unseen.distributed.checkpoints import Checkpoints
from unseen.linalg.blocked import BLOCK_ROWS, gram, inner, matmul, multiply_in_place
from unseen.linalg.designs import Design
from unseen.linalg.draws import ONE_STREAM_ROWS
from unseen.losses import Background, CellLoss, Quadratic
from unseen.maps import FeatureMap
from unseen.maps.base import MapParams
from unseen.parallel import one_blas_thread
from unseen.solvers.als import solve_side
from unseen.typing import Features, FloatArray

__all__ = [
    "Around",
    "BlockSums",
    "Settings",
    "Start",
    "added",
    "bound_loss",
    "design_of",
    "draw_block",
    "embed_block",
    "judge_block",
    "part_of",
    "read_block",
    "scale_block",
    "solve_block",
    "turn_block",
    "write_block",
]


@dataclass(frozen=True)
class Settings:
    """What all blocks of a fit share.

    Attributes
    ----------
    loss : Quadratic
        Meaning of stored and blank cells; blank cells are missing or pulled to zero. Weights that the
        background has by row or column are with the blocks.
    ridge : float
        Weight of the penalty on the coefficients of both sides.
    rank : int
        Columns of the factors.
    dtype : str
        Type of the factors.
    by_rows : bool
        Solve for each row by itself (ALS), instead of all coefficients of a side by conjugate gradients.
    method : {"cholesky", "cg"}
        How the small systems of ALS are solved.
    cg_steps : int
        Steps of conjugate gradients, those of small systems included.
    cg_tol : float
        For all coefficients of a side: steps end when the residual has fallen to this share of its start.
    degree_power : float
        Scale the ridge of a row without features by its number of cells (sum of weights) to this power.
    n_threads : int
        Threads for one block.
    """

    loss: Quadratic
    ridge: float
    rank: int
    dtype: str
    by_rows: bool = True
    method: Literal["cholesky", "cg"] = "cholesky"
    cg_steps: int = 3
    cg_tol: float = 1e-3
    degree_power: float = 0.0
    n_threads: int = 1

    def row_scale(self, cells: CellBlock) -> FloatArray | None:
        """Factor of the ridge of each row; None stands for ones."""
        return cells.degrees**self.degree_power if self.degree_power else None

    def ridges(self, cells: CellBlock) -> Any:
        """Ridge of each row, as a number or a column, in the type of the factors."""
        scale = self.row_scale(cells)
        kind = np.dtype(self.dtype).type
        return kind(self.ridge) if scale is None else (self.ridge * scale).astype(self.dtype)[:, None]


@dataclass(frozen=True)
class _Bound:
    """A block's cells, as a loss is bound to them."""

    block: CellBlock
    values: FloatArray

    @property
    def weights(self) -> FloatArray | None:
        return self.block.weights

    @property
    def shape(self) -> tuple[int, int]:
        return self.block.stop - self.block.start, len(self.block.touched)

    @property
    def nnz(self) -> int:
        return self.block.n_cells

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def rows(self) -> Any:
        return self.block.rows

    @property
    def indices(self) -> Any:
        return self.block.indices


def bound_loss(loss: Quadratic, block: CellBlock, dtype: npt.DTypeLike) -> CellLoss:
    """A loss bound to the values and weights of a block, with its share of the background's weights."""
    if block.own_blank is not None or block.other_blank is not None:
        plain = loss.blank()
        assert not isinstance(plain, tuple)
        local = Background(plain.weight, plain.target, block.own_blank, block.other_blank)
        loss = clone(loss).set_params(background=local)
    cells: Any = _Bound(block, block.filled(dtype))
    return CellLoss(loss, cells)


@dataclass(frozen=True)
class BlockSums:
    """A block's share of the sums that decide.

    ``gram`` is what the background needs of the factors, ``penalty`` what the ridge needs where that is
    another matrix; ``loss`` and ``squares`` (background at the stored cells) are parts of the objective.
    """

    gram: FloatArray
    penalty: FloatArray | None = None
    loss: float = 0.0
    squares: float = 0.0


def part_of(factors: FloatArray, cells: CellBlock, settings: Settings, *, free: bool = True) -> BlockSums:
    """Gram matrices of a block of factors; ``free`` says that they are coefficients too."""
    weights, scale = cells.own_blank, settings.row_scale(cells) if free else None
    square = _weighted_gram(factors, weights, settings)
    if weights is None and scale is None:
        return BlockSums(square)
    return BlockSums(square, _weighted_gram(factors, scale, settings))


def _weighted_gram(factors: FloatArray, weights: FloatArray | None, settings: Settings) -> FloatArray:
    if weights is None:
        return gram(factors, n_threads=settings.n_threads)
    scaled = factors * weights.astype(factors.dtype, copy=False)[:, None]
    return gram(scaled, factors, n_threads=settings.n_threads)


# -- random starts, rotations, checkpoints ---------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """Random numbers of a factor, of which every block can draw its own rows.

    The numbers are those of :func:`unseen.linalg.draws.standard_normal`: one stream for a short
    factor, one for every `BLOCK_ROWS` rows of a long one.
    """

    shape: tuple[int, int]
    stream: dict[str, Any] | None
    seeds: npt.NDArray[np.int64] | None

    @classmethod
    def taken_from(cls, rng: np.random.Generator, shape: tuple[int, int]) -> Start:
        """Take what a factor of this shape would take from a generator."""
        if shape[0] <= ONE_STREAM_ROWS:
            state = dict(rng.bit_generator.state)
            for first in range(0, shape[0], BLOCK_ROWS):  # moves the generator on
                rng.standard_normal((min(BLOCK_ROWS, shape[0] - first), shape[1]))
            return cls(shape, state, None)
        return cls(shape, None, rng.integers(2**63, size=-(-shape[0] // BLOCK_ROWS)))

    def rows(self, start: int, stop: int, dtype: npt.DTypeLike) -> FloatArray:
        """Rows ``start`` to ``stop`` of the factor."""
        out: FloatArray = np.empty((stop - start, self.shape[1]), dtype=dtype)
        if self.seeds is None:
            assert self.stream is not None
            rng = np.random.default_rng()
            rng.bit_generator.state = self.stream
            out[:] = rng.standard_normal((stop, self.shape[1]))[start:]
            return out
        for part in range(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS)):
            first = part * BLOCK_ROWS
            length = min(BLOCK_ROWS, self.shape[0] - first)
            drawn = np.random.default_rng(self.seeds[part]).standard_normal((length, self.shape[1]))
            low, high = max(start, first), min(stop, first + length)
            out[low - start : high - start] = drawn[low - first : high - first]
        return out


def draw_block(start: Start, first: int, last: int, dtype: str) -> tuple[FloatArray, float]:
    """A block of a random start, and its sum of squares."""
    block = start.rows(first, last, dtype)
    with one_blas_thread():
        return block, inner(block, block)


def scale_block(
    block: FloatArray, cells: CellBlock, factor: float, only_seen: bool, settings: Settings
) -> tuple[FloatArray, BlockSums]:
    """A block of a start at its final size; rows without a cell become zero if asked for."""
    with one_blas_thread():
        scaled = block * block.dtype.type(factor)
        if only_seen:
            scaled[np.diff(cells.indptr) == 0] = 0.0
        return scaled, part_of(scaled, cells, settings)


def turn_block(block: FloatArray, rotation: FloatArray, n_threads: int) -> tuple[FloatArray, None]:
    """A block times a small matrix."""
    with one_blas_thread():
        out = np.array(block)
        multiply_in_place(out, rotation.astype(out.dtype), n_threads=n_threads)
        return out, None


def write_block(block: FloatArray, checkpoints: Checkpoints, folder: str, name: str) -> str:
    """Write a block of factors into a folder of a checkpoint; the digest of its file."""
    return checkpoints.write(folder, name, np.array(block))


def read_block(
    checkpoints: Checkpoints, folder: str, name: str, digest: str | None, n_rows: int, rank: int
) -> tuple[FloatArray, None]:
    """Take a block of factors from a folder of a checkpoint."""
    return checkpoints.read(folder, name, digest, (n_rows, rank)), None


# -- rows by themselves ---------------------------------------------------------------------------


def solve_block(
    block: CellBlock,
    other: FloatArray,
    own: FloatArray | None,
    other_gram: FloatArray,
    settings: Settings,
    judge: bool,
) -> tuple[FloatArray, BlockSums]:
    """Factors of a block's rows with the other side fixed, and what the block adds to the sums.

    Parameters
    ----------
    block : CellBlock
        Cells.
    other : ndarray of shape (len(block.touched), rank)
        Factors of the touched columns, in their order.
    own : ndarray or None
        Where conjugate gradients start; not needed for exact solves.
    other_gram : ndarray of shape (rank, rank)
        Gram matrix of all columns, touched or not.
    settings : Settings
        Loss, penalty and options.
    judge : bool
        Compute the block's part of the objective too.

    Returns
    -------
    factors : ndarray of shape (stop - start, rank)
    part : BlockSums
    """
    dtype = np.dtype(settings.dtype)
    around = Around(block, other, other_gram, settings)
    loss = around.loss()
    curvature, linear = loss.normal_terms()
    out: FloatArray = np.zeros((block.stop - block.start, settings.rank), dtype=dtype)
    if own is not None:
        out[:] = own
    with one_blas_thread():
        solve_side(
            (block.indptr, block.indices, curvature, linear),
            around.lines,
            out,
            ridge=settings.ridge,
            blank=loss.blank,
            row_scale=settings.row_scale(block),
            other_gram=np.array(other_gram),
            method=settings.method,
            cg_steps=settings.cg_steps,
            n_threads=settings.n_threads,
        )
        part = part_of(out, block, settings)
        if not judge:
            return out, part
        value, squares = around.judged(loss, out)
        return out, replace(part, loss=value, squares=squares)


# -- coefficients of a side -----------------------------------------------------------------------


@dataclass(frozen=True)
class Around:
    """What stays the same while the coefficients of one side move.

    Attributes
    ----------
    cells : CellBlock
        Cells of the block.
    other : ndarray of shape (len(cells.touched), rank)
        Factors of the touched columns, in their order.
    other_gram : ndarray of shape (rank, rank)
        Gram matrix of all columns.
    settings : Settings
        Loss, penalty and options.
    """

    cells: CellBlock
    other: FloatArray
    other_gram: FloatArray
    settings: Settings

    @property
    def lines(self) -> FloatArray:
        """Factors of the touched columns; one of zeros where there is none."""
        if len(self.other):
            return self.other
        return np.zeros((1, self.settings.rank), dtype=self.settings.dtype)

    def loss(self) -> CellLoss:
        """The loss of the cells."""
        return bound_loss(self.settings.loss, self.cells, self.settings.dtype)

    def scores(self, near: FloatArray) -> FloatArray:
        """Scores of the cells for these factors of the block's rows."""
        return kernels.sddmm(
            self.cells.indptr, self.cells.indices, near, self.lines, n_threads=self.settings.n_threads
        )

    def pulled(self, on_cells: FloatArray, near: FloatArray, weight: float) -> FloatArray:
        """``(G + weight R near Q' C) Q`` with G sparse on the cells: a derivative by the block's factors."""
        cells, n_threads = self.cells, self.settings.n_threads
        out = kernels.spmm(cells.indptr, cells.indices, on_cells, self.lines, n_threads=n_threads)
        if weight:
            small = (weight * self.other_gram).astype(out.dtype)
            pull = matmul(near, small, n_threads=n_threads)
            out += pull if cells.own_blank is None else pull * cells.own_blank.astype(out.dtype)[:, None]
        return out

    def slope(self, near: FloatArray) -> FloatArray:
        """Derivative of the data part of the objective by the factors of the block."""
        loss = self.loss()
        return self.pulled(loss.residual(self.scores(near)), near, loss.blank.weight)

    def curved(self, near: FloatArray) -> FloatArray:
        """Second derivative of the data part by the factors of the block, times ``near``."""
        loss = self.loss()
        curvature, _ = loss.normal_terms()
        on_cells = (curvature * self.scores(near)).astype(near.dtype, copy=False)
        return self.pulled(on_cells, near, loss.blank.weight)

    def judged(self, loss: CellLoss, near: FloatArray) -> tuple[float, float]:
        """Loss of the cells, and the background that they take the place of, less its weight."""
        scores = self.scores(near)
        if not loss.blank:
            return loss.value(scores), 0.0
        squares = loss.blank.at_scores(scores, loss.blank_at) if loss.blank.separable else None
        return loss.value(scores), inner(scores, scores) if squares is None else squares / loss.blank.weight


def judge_block(
    cells: CellBlock, other: FloatArray, near: FloatArray, settings: Settings
) -> tuple[float, float]:
    """The block's part of the objective: its loss, and the background at its cells."""
    around = Around(cells, other, np.zeros((0, 0)), settings)
    with one_blas_thread():
        return around.judged(around.loss(), near)


def design_of(
    features: Features, a_map: FeatureMap, params: MapParams, n_threads: int
) -> tuple[Design, None]:
    """Design of a block of features."""
    return a_map.apply(features, features.shape[0], params, n_threads), None


def embed_block(
    design: Design, cells: CellBlock, coefficients: FloatArray, settings: Settings
) -> tuple[FloatArray, BlockSums]:
    """Factors of a block from its design, and their Gram matrix."""
    with one_blas_thread():
        near = design.dot(coefficients)
        return near, part_of(near, cells, settings, free=False)


def added(parts: Iterable[FloatArray]) -> FloatArray:
    """Sum of what blocks add, in their order."""
    total: FloatArray | None = None
    for part in parts:
        total = part.astype(np.float64) if total is None else total + part
    assert total is not None
    return total
