"""What is done to one block: pure functions that every engine runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unseen import kernels
from unseen.distributed.blocks import CellBlock
from unseen.linalg.blocked import BLOCK_ROWS, gram, inner, multiply_in_place
from unseen.linalg.draws import ONE_STREAM_ROWS
from unseen.losses import CellLoss, Quadratic
from unseen.parallel import one_blas_thread
from unseen.solvers.als import solve_side
from unseen.typing import FloatArray

__all__ = ["CellSums", "Part", "Settings", "Start", "cell_sums", "draw_block", "solve_block", "turned"]


@dataclass(frozen=True)
class Settings:
    """What all blocks of a fit share.

    Attributes
    ----------
    loss : Quadratic
        Meaning of stored and blank cells; blank cells are missing or pulled to zero.
    ridge : float
        Weight of the penalty on both factors.
    rank : int
        Columns of the factors.
    dtype : str
        Type of the factors.
    mean : float
        Subtracted from the values first.
    method : {"cholesky", "cg"}
        How small systems are solved.
    cg_steps : int
        Steps of "cg".
    n_threads : int
        Threads for one block.
    cg_tol : float
        With features: steps end when the residual has fallen to this share of its start.
    """

    loss: Quadratic
    ridge: float
    rank: int
    dtype: str
    mean: float = 0.0
    method: Literal["cholesky", "cg"] = "cholesky"
    cg_steps: int = 3
    n_threads: int = 1
    cg_tol: float = 1e-3


@dataclass(frozen=True)
class BlockCells:
    """Values of the cells of a block, as a loss is bound to them."""

    values: FloatArray
    weights: None = None
    shape: tuple[int, int] = (0, 0)

    @property
    def nnz(self) -> int:
        """Number of cells."""
        return int(self.values.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype


def bound_loss(loss: Quadratic, values: FloatArray) -> CellLoss:
    """A loss bound to the values of a block."""
    cells: Any = BlockCells(values)
    return CellLoss(loss, cells)


@dataclass(frozen=True)
class Part:
    """A block's share of the sums that decide: its Gram matrix and its part of the objective."""

    gram: FloatArray
    loss: float = 0.0
    squares: float = 0.0


@dataclass(frozen=True)
class CellSums:
    """A block's share of sums over the cells."""

    n_cells: int
    n_merged: int
    total: float
    slopes: float


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


def scale_block(block: FloatArray, factor: float, cells: CellBlock | None) -> tuple[FloatArray, Part]:
    """A block of a start at its final size, and its Gram matrix; with cells, rows without one are zero."""
    with one_blas_thread():
        scaled = block * block.dtype.type(factor)
        if cells is not None:
            scaled[np.diff(cells.indptr) == 0] = 0.0
        return scaled, Part(gram(scaled))


def turned(block: FloatArray, turn: FloatArray, n_threads: int = 1) -> FloatArray:
    """A block times a small matrix."""
    with one_blas_thread():
        out = np.array(block)
        multiply_in_place(out, turn.astype(out.dtype), n_threads=n_threads)
        return out


def cell_sums(block: CellBlock, settings: Settings) -> CellSums:
    """Sums over the cells of a block, from which the mean and the size of the start follow."""
    values = block.values_less(settings.mean, settings.dtype)
    total = float(np.sum(values, dtype=np.float64))
    with one_blas_thread():
        size = bound_loss(settings.loss, values).size_at_zero()
    return CellSums(block.n_cells, block.n_merged, total, size * size * block.n_cells)


def solve_block(
    block: CellBlock,
    other: FloatArray,
    own: FloatArray | None,
    other_gram: FloatArray,
    settings: Settings,
    *,
    judge: bool,
) -> tuple[FloatArray, Part]:
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
    part : Part
    """
    dtype = np.dtype(settings.dtype)
    values = block.values_less(settings.mean, dtype)
    loss = bound_loss(settings.loss, values)
    curvature, linear = loss.normal_terms()
    out: FloatArray = np.zeros((block.stop - block.start, settings.rank), dtype=dtype)
    if own is not None:
        out[:] = own
    if not len(other):
        other = np.zeros((1, settings.rank), dtype=dtype)
    with one_blas_thread():
        solve_side(
            block.indptr,
            block.indices,
            curvature,
            linear,
            other,
            out,
            ridge=settings.ridge,
            blank=loss.blank,
            other_gram=np.array(other_gram),
            method=settings.method,
            cg_steps=settings.cg_steps,
            n_threads=settings.n_threads,
        )
        own_gram = gram(out, n_threads=settings.n_threads)
        if not judge:
            return out, Part(own_gram)
        scores = kernels.sddmm(block.indptr, block.indices, out, other, n_threads=settings.n_threads)
        squares = inner(scores, scores) if loss.blank else 0.0  # asked for by the background alone
        return out, Part(own_gram, loss.value(scores), squares)
