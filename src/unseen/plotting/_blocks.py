"""Which cells of a matrix are known, by connected block."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from unseen.data import Observations
from unseen.diagnostics import find_blocks
from unseen.exceptions import InvalidDataError
from unseen.plotting._base import Display, pyplot
from unseen.typing import FloatArray, IndexArray
from unseen.validation import check_count

__all__ = ["BlockStructureDisplay"]

_OUTLINED_BLOCKS = 50


class BlockStructureDisplay(Display):
    """Density of known cells, rows and columns sorted by connected block and by number of cells.

    Two cells are connected when they share a row or a column. Blocks that are not connected say
    nothing about each other: no method without side information can relate them. The matrix is
    aggregated to an image of bounded size, so its own size does not matter.

    Parameters
    ----------
    density : array of shape (height, width)
        Share of known cells in each pixel.
    shape : tuple of int
        Shape of the matrix.
    block_ends : array of shape (n_blocks, 2)
        Row and column, after sorting, at which each block ends; largest block first.
    block_cells : array of shape (n_blocks,)
        Known cells of each block.

    Attributes
    ----------
    im_ : matplotlib AxesImage
        The image.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.plotting import BlockStructureDisplay
    >>> X = sparse.block_diag([sparse.random_array((30, 20), density=0.5, rng=0), [[1.0]]])
    >>> BlockStructureDisplay.from_observations(X).block_cells
    array([300,   1])
    """

    def __init__(
        self, density: FloatArray, shape: tuple[int, int], block_ends: IndexArray, block_cells: IndexArray
    ) -> None:
        self.density = density
        self.shape = shape
        self.block_ends = block_ends
        self.block_cells = block_cells

    @classmethod
    def from_observations(cls, X: Any, *, max_pixels: int = 400, ax: Any = None) -> Self:
        """Find the blocks of a matrix and draw.

        Parameters
        ----------
        X : Observations, sparse matrix or dense array with NaN
            The known cells.
        max_pixels : int, default=400
            Largest height and width of the image.

        Returns
        -------
        BlockStructureDisplay
            Drawn.
        """
        return cls.of(Observations.from_any(X), max_pixels).plot(ax)

    @classmethod
    def of(cls, observations: Observations, max_pixels: int = 400) -> Self:
        """Find the blocks of a matrix without drawing yet.

        Parameters
        ----------
        observations : Observations
            The known cells.
        max_pixels : int, default=400
            Largest height and width of the image.

        Returns
        -------
        BlockStructureDisplay
            Not drawn.
        """
        check_count("max_pixels", max_pixels)
        if observations.nnz == 0:
            raise InvalidDataError("X has no known cells; there is nothing to draw")
        row_place, col_place, block_ends, block_cells = _sorted_by_block(observations)
        n_rows, n_cols = observations.shape
        height, width = min(n_rows, max_pixels), min(n_cols, max_pixels)
        pixel_row = row_place[observations.rows] * height // n_rows
        pixel_col = col_place[observations.indices] * width // n_cols
        counts = np.bincount(pixel_row * width + pixel_col, minlength=height * width).reshape(height, width)
        row_share = np.bincount(np.arange(n_rows) * height // n_rows, minlength=height)
        col_share = np.bincount(np.arange(n_cols) * width // n_cols, minlength=width)
        density = counts / np.multiply.outer(row_share, col_share)
        return cls(density, observations.shape, block_ends, block_cells)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Returns
        -------
        BlockStructureDisplay
            Itself.
        """
        plt = pyplot()
        colours = plt.matplotlib.colors
        # The palest fifth of the scale would drown in the white of unknown cells.
        shades = colours.ListedColormap(plt.get_cmap("viridis_r")(np.linspace(0.2, 1.0, 256)))
        n_rows, n_cols = self.shape
        ratio = float(np.clip(n_rows / n_cols, 0.6, 1.2))
        ax = self._axes(ax, (5.8, 4.6 * ratio + 0.8))
        known = self.density[self.density > 0]
        low, high = float(known.min()), float(known.max())
        norm = colours.LogNorm(low, high) if high > 10 * low else colours.Normalize(0.0, high)
        self.im_ = ax.imshow(
            np.ma.masked_equal(self.density, 0.0),
            extent=(0, n_cols, n_rows, 0),
            cmap=shades,
            norm=norm,
            aspect="auto",
            interpolation="none",
        )
        self._outline(ax)
        ax.set(xlabel="Columns", ylabel="Rows")
        ax.ticklabel_format(style="plain")
        ax.locator_params(nbins=5)
        ax.figure.colorbar(self.im_, ax=ax, label="Share of cells known")
        title = f"{n_rows:,} x {n_cols:,} with {self.block_cells.sum():,} known cells\n"
        if len(self.block_cells) == 1:
            title += "one connected block"
        else:
            percent = 100 * self.block_cells[0] / self.block_cells.sum()
            title += (
                f"{len(self.block_cells):,} connected blocks, the largest with {percent:.3g}% of the cells"
            )
        ax.set_title(title, fontsize=9)
        return self

    def _outline(self, ax: Any) -> None:
        """Frame the blocks that are large enough to see."""
        if len(self.block_cells) == 1:
            return
        patches = pyplot().matplotlib.patches
        starts = np.vstack([[0, 0], self.block_ends[:-1]])
        sizes = self.block_ends - starts
        visible = np.flatnonzero(np.all(sizes >= np.array(self.shape) / 200, axis=1))
        for block in visible[:_OUTLINED_BLOCKS]:
            (top, left), (height, width) = starts[block], sizes[block]
            ax.add_patch(
                patches.Rectangle((left, top), width, height, fill=False, edgecolor="#D55E00", linewidth=1.2)
            )


def _sorted_by_block(
    observations: Observations,
) -> tuple[IndexArray, IndexArray, IndexArray, IndexArray]:
    """New place of each row and column, where each block ends, and its number of cells.

    Blocks come by decreasing number of cells, rows and columns in them by decreasing number of
    cells, those without cells last.
    """
    blocks = find_blocks(observations)
    n_blocks = len(blocks)
    places = []
    for block, degree in (
        (blocks.row_block, np.diff(observations.indptr)),
        (blocks.col_block, np.bincount(observations.indices, minlength=observations.shape[1])),
    ):
        order = np.lexsort((-degree, np.where(block < 0, n_blocks, block)))
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        places.append(place)
    ends = np.stack([np.cumsum(blocks.n_rows), np.cumsum(blocks.n_cols)], axis=1)
    return places[0], places[1], ends, blocks.n_cells
