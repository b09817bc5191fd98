"""What the data can decide, and how errors grow with the spread of predictions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from unseen.data import Observations
from unseen.diagnostics import Diagnosis, diagnose, identifiability
from unseen.exceptions import InvalidDataError
from unseen.plotting._base import Display, line_styles, pyplot, thinned
from unseen.plotting._blocks import BlockStructureDisplay
from unseen.typing import FloatArray, IndexArray
from unseen.validation import check_count

__all__ = ["DiagnosisDisplay", "SpreadDisplay"]


class DiagnosisDisplay(Display):
    """Blocks of the known cells, and how many cells rows and columns have.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of the data.
    blocks : BlockStructureDisplay
        Picture of the blocks.
    row_cells, col_cells : array of int
        Known cells of each row and column.

    Attributes
    ----------
    axes_ : array of matplotlib Axes, shape (2,)
        Where it was drawn.
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.plotting import DiagnosisDisplay
    >>> X = sparse.block_diag([sparse.random_array((30, 20), density=0.5, rng=0), [[1.0]]])
    >>> len(DiagnosisDisplay.from_observations(X, rank=2).diagnosis.blocks)
    2
    """

    def __init__(
        self,
        diagnosis: Diagnosis,
        blocks: BlockStructureDisplay,
        row_cells: IndexArray,
        col_cells: IndexArray,
    ) -> None:
        self.diagnosis = diagnosis
        self.blocks = blocks
        self.row_cells = row_cells
        self.col_cells = col_cells

    @classmethod
    def from_observations(
        cls,
        X: Any,
        rank: int = 10,
        *,
        diagnosis: Diagnosis | None = None,
        max_pixels: int = 400,
        axes: Any = None,
    ) -> Self:
        """Diagnose a matrix and draw.

        Parameters
        ----------
        X : Observations, sparse matrix or dense array with NaN
            The known cells.
        rank : int, default=10
            Rank of the model that one has in mind.
        diagnosis : Diagnosis, optional
            Of ``X``, where it is at hand.
        max_pixels : int, default=400
            Largest height and width of the picture of the blocks.
        axes : two matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        DiagnosisDisplay
            Drawn.
        """
        cells = Observations.from_any(X)
        diagnosis = diagnose(cells, rank) if diagnosis is None else diagnosis
        display = cls(
            diagnosis,
            BlockStructureDisplay.of(cells, max_pixels),
            np.diff(cells.indptr),
            np.bincount(cells.indices, minlength=cells.shape[1]),
        )
        return display.plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : two matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        DiagnosisDisplay
            Itself.
        """
        if axes is None:
            _, axes = pyplot().subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
        self.axes_ = axes
        first, second = axes
        self._axes(first)
        self.blocks.plot(first)
        styles = line_styles(2)
        for name, degree, style in zip(
            ("rows", "columns"), (self.row_cells, self.col_cells), styles, strict=True
        ):
            ordered = np.sort(degree)
            share = 1.0 - np.arange(ordered.size) / ordered.size
            shown = thinned(ordered)
            second.step(ordered[shown], share[shown], where="pre", label=name, **{**style, "marker": "None"})
        rank = self.diagnosis.whole.rank
        second.axvline(rank, color="#777777", linewidth=1.0)
        second.annotate(
            f"rank {rank}", (rank, 1.0), (4, -2), textcoords="offset points", va="top", fontsize=8
        )
        second.set(xlabel="Known cells, at least", ylabel="Share", ylim=(0, 1.02))
        second.set_xscale("symlog", linthresh=1.0)
        second.set_xlim(left=0)
        whole = self.diagnosis.whole
        second.set_title(
            f"{whole.per_freedom:.3g} cells for each degree of freedom,\n"
            f"{whole.per_needed:.3g} times r(n+m)ln(nm)",
            fontsize=9,
        )
        second.legend(frameon=False)
        return self


class SpreadDisplay(Display):
    """Error on held-out cells against the reported spread; a rising line is what one wants.

    Parameters
    ----------
    reported : array of shape (n_bins,)
        Root mean square of the expected error in each bin of cells, the best determined first.
    actual : array of shape (n_bins,)
        Root mean squared error there.
    correlation : float
        Rank correlation of spread and absolute error over all cells.

    Examples
    --------
    >>> from unseen import MatrixFactorization
    >>> from unseen.datasets import make_ratings
    >>> from unseen.model_selection import split_entries
    >>> from unseen.plotting import SpreadDisplay
    >>> train, test = split_entries(make_ratings(random_state=0).observations, random_state=0)
    >>> model = MatrixFactorization(3, center="biases", reg=3.0, random_state=0).fit(train)
    >>> SpreadDisplay.from_estimator(model, test).actual.shape
    (10,)
    """

    def __init__(self, reported: FloatArray, actual: FloatArray, correlation: float) -> None:
        self.reported = reported
        self.actual = actual
        self.correlation = correlation

    @classmethod
    def from_estimator(cls, model: Any, X_test: Any, *, n_bins: int = 10, ax: Any = None) -> Self:
        """Ask a model about held-out cells and draw.

        Parameters
        ----------
        model : completer
            Fitted.
        X_test : Observations, sparse matrix or dense array with NaN
            Cells that it was not fitted to, of the same shape.
        n_bins : int, default=10
            Groups of cells, by the reported spread.

        Returns
        -------
        SpreadDisplay
            Drawn.
        """
        from scipy.stats import rankdata

        n_bins = check_count("n_bins", n_bins)
        test = Observations.from_any(X_test)
        if test.nnz < n_bins:
            raise InvalidDataError(f"X_test has {test.nnz} cells; {n_bins} bins need at least as many")
        found = identifiability(model, test.rows, test.indices, positions=True)
        error = np.abs(found.prediction - test.values).astype(np.float64)
        bins = np.array_split(np.argsort(found.std, kind="stable"), n_bins)
        reported, actual = (
            np.array([np.sqrt(np.mean(values[part] ** 2)) for part in bins])
            for values in (found.error, error)
        )
        ranks = [rankdata(values) for values in (found.std, error)]
        flat = any(np.ptp(rank) == 0 for rank in ranks)
        correlation = 0.0 if flat else float(np.corrcoef(ranks[0], ranks[1])[0, 1])
        return cls(reported, actual, correlation).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Returns
        -------
        SpreadDisplay
            Itself.
        """
        ax = self._axes(ax)
        ax.plot(self.reported, self.actual, **line_styles(1)[0])
        both = np.concatenate([self.reported, self.actual])
        ends = (float(both.min()), float(both.max()))
        ax.plot(ends, ends, color="#777777", linestyle="--", linewidth=1.0, zorder=0)
        ax.set(xlabel="Expected error", ylabel="Error on held-out cells (RMSE)")
        ax.set_title(f"Rank correlation of spread and error {self.correlation:.2f}", fontsize=9)
        return self
