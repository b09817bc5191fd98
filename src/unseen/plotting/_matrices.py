"""Pictures of what a model has learned: interactions of features, and the spectrum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unseen.exceptions import InvalidDataError
from unseen.plotting._base import Display, line_styles, named, pyplot
from unseen.typing import FloatArray, IndexArray
from unseen.validation import check_count

__all__ = ["InteractionDisplay", "SpectrumDisplay"]

_ANNOTATED_CELLS = 150


class InteractionDisplay(Display):
    """Heat map of the matrix between row features and column features.

    Parameters
    ----------
    interactions : array of shape (n_row_features, n_col_features)
        Weight of each pair of features.
    row_names, col_names : sequence of str, optional
        Names of the features.

    Attributes
    ----------
    im_ : matplotlib AxesImage
        The heat map.

    Examples
    --------
    >>> from unseen.plotting import InteractionDisplay
    >>> display = InteractionDisplay([[1.0, -2.0]], row_names=["age"], col_names=["drama", "war"]).plot()
    >>> display.im_.get_clim()
    (-2.0, 2.0)
    """

    def __init__(
        self,
        interactions: npt.ArrayLike,
        *,
        row_names: Sequence[str] | None = None,
        col_names: Sequence[str] | None = None,
    ) -> None:
        self.interactions = interactions
        self.row_names = row_names
        self.col_names = col_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        row_names: Sequence[str] | None = None,
        col_names: Sequence[str] | None = None,
        max_features: int = 30,
        ax: Any = None,
    ) -> Self:
        """Draw the interactions of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator
            With ``interactions_``.
        row_names, col_names : sequence of str, optional
            Names of the features; by default those that the model knows.
        max_features : int, default=30
            At most this many features a side, those with the largest weights.

        Returns
        -------
        InteractionDisplay
            Drawn.
        """
        learned = getattr(estimator, "interactions_", None)
        if learned is None:
            raise InvalidDataError(
                f"{type(estimator).__name__} has no interactions_; expected a fitted model with row and "
                "column features, or pass the matrix to InteractionDisplay"
            )
        row_names = getattr(learned, "row_names", None) if row_names is None else row_names
        col_names = getattr(learned, "col_names", None) if col_names is None else col_names
        return cls(learned, row_names=row_names, col_names=col_names).plot(ax, max_features=max_features)

    def plot(self, ax: Any = None, *, max_features: int = 30) -> Self:
        """Draw.

        Parameters
        ----------
        max_features : int, default=30
            At most this many features a side, those with the largest weights, in their given order.

        Returns
        -------
        InteractionDisplay
            Itself.
        """
        check_count("max_features", max_features)
        weights = np.asarray(self.interactions, dtype=np.float64)
        if weights.ndim != 2 or weights.size == 0:
            raise InvalidDataError(f"interactions have shape {weights.shape}; expected a non-empty matrix")
        rows, cols = _strongest(weights, max_features), _strongest(weights.T, max_features)
        shown = weights[np.ix_(rows, cols)]
        row_labels = _labels("row_names", self.row_names, weights.shape[0], "row feature")[rows]
        col_labels = _labels("col_names", self.col_names, weights.shape[1], "column feature")[cols]
        width = min(max(0.34 * len(cols) + 3.2, 4.5), 14.0)
        height = min(max(0.28 * len(rows) + 2.2, 3.0), 12.0)
        ax = self._axes(ax, (width, height))
        limit = float(np.max(np.abs(shown))) or 1.0
        # Blue and red around white: which sign is which stays visible to the colour-blind.
        self.im_ = ax.imshow(
            shown, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="none"
        )
        ax.set_yticks(range(len(rows)), row_labels, fontsize=9)
        turn = max(map(len, col_labels)) * len(cols) > 30
        ax.set_xticks(range(len(cols)), col_labels, fontsize=9, rotation=45 if turn else 0,
                      ha="right" if turn else "center", rotation_mode="anchor")  # fmt: skip
        ax.set_xticks(np.arange(len(cols) - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=0.8)
        ax.tick_params(which="both", length=0)
        ax.figure.colorbar(self.im_, ax=ax, label="Weight", shrink=0.9)
        if shown.size <= _ANNOTATED_CELLS and len(cols) <= 12:
            self._annotate(ax, shown, limit)
        if shown.size < weights.size:
            ax.set_title(
                f"strongest {len(rows)} of {weights.shape[0]} row and {len(cols)} of {weights.shape[1]} "
                "column features",
                fontsize=9,
            )
        return self

    @staticmethod
    def _annotate(ax: Any, shown: FloatArray, limit: float) -> None:
        for (i, j), weight in np.ndenumerate(shown):
            colour = "white" if abs(weight) > 0.6 * limit else "black"
            ax.text(j, i, f"{weight + 0.0:.2g}", ha="center", va="center", fontsize=8, color=colour)


class SpectrumDisplay(Display):
    """Singular values in decreasing order, on a logarithmic scale.

    Parameters
    ----------
    singular_values : dict of str to array, or one array
        By the name for the legend.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One for each spectrum.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.plotting import SpectrumDisplay
    >>> display = SpectrumDisplay.from_factors(np.eye(4, 2), np.diag([3.0, 5.0]))
    >>> display.lines_[0].get_ydata()
    array([5., 3.])
    """

    def __init__(self, singular_values: Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> None:
        self.singular_values = singular_values

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the spectrum of the completed matrix, from its factors alone.

        Parameters
        ----------
        estimator : fitted estimator or dict of str to fitted estimator
            With ``row_factors_`` and ``col_factors_``.

        Returns
        -------
        SpectrumDisplay
            Drawn.
        """
        spectra = {
            name: _product_spectrum(model.row_factors_, model.col_factors_)
            for name, model in named(estimator, "estimators").items()
        }
        return cls(spectra).plot(ax)

    @classmethod
    def from_factors(cls, left: npt.ArrayLike, right: npt.ArrayLike, *, ax: Any = None) -> Self:
        """Draw the spectrum of ``left @ right.T`` without forming it.

        Parameters
        ----------
        left, right : array of shape (n_rows, k) and (n_cols, k)
            The factors.

        Returns
        -------
        SpectrumDisplay
            Drawn.
        """
        return cls(_product_spectrum(np.asarray(left), np.asarray(right))).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Returns
        -------
        SpectrumDisplay
            Itself.
        """
        spectra = named(self.singular_values, "singular_values")
        ax = self._axes(ax)
        self.lines_ = []
        for (name, values), style in zip(spectra.items(), line_styles(len(spectra)), strict=True):
            ordered = np.sort(np.asarray(values, dtype=np.float64))[::-1]
            # Rounding leaves tiny values where the rank has ended; they would stretch the axis for nothing.
            ordered = ordered[ordered > 1e-10 * ordered[0]] if ordered.size else ordered
            if ordered.size == 0:
                raise InvalidDataError(f"singular_values {name!r} are all zero; there is nothing to draw")
            self.lines_ += ax.plot(
                np.arange(1, ordered.size + 1), ordered, label=name or None, markersize=4, **style
            )
        ax.set_yscale("log")
        ax.set(xlabel="Component", ylabel="Singular value")
        ax.xaxis.set_major_locator(pyplot().MaxNLocator(integer=True))
        ax.grid(alpha=0.3)
        if any(spectra):
            ax.legend()
        return self


def _product_spectrum(left: FloatArray, right: FloatArray) -> FloatArray:
    """Singular values of ``left @ right.T`` through its triangular factors."""
    triangles = [np.asarray(np.linalg.qr(side.astype(np.float64), mode="r")) for side in (left, right)]
    return np.asarray(np.linalg.svd(triangles[0] @ triangles[1].T, compute_uv=False))


def _strongest(weights: FloatArray, count: int) -> IndexArray:
    """Rows with the largest norms, in their given order."""
    order = np.argsort(-np.linalg.norm(weights, axis=1), kind="stable")
    return np.sort(order[:count])


def _labels(name: str, given: Sequence[str] | None, count: int, kind: str) -> npt.NDArray[Any]:
    if given is None:
        return np.array([f"{kind} {number}" for number in range(count)], dtype=object)
    if len(given) != count:
        raise InvalidDataError(f"{name} has {len(given)} names; expected {count}")
    return np.array([str(one) for one in given], dtype=object)
