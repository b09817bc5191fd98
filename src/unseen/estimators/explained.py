"""Reading an answer: which features interact, and what a prediction is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unseen.data import Vocabulary
from unseen.estimators.composed import ComposedCompleter
from unseen.exceptions import NotInductiveError
from unseen.linalg.designs import as_design
from unseen.parallel import one_blas_thread
from unseen.state import map_params
from unseen.typing import Array, FloatArray
from unseen.validation import check_count

__all__ = ["Explained", "Explanation", "Interaction", "Interactions"]

MAX_CELLS = 50_000_000
"""Entries up to which interactions are written out."""


class Interaction(NamedTuple):
    """Weight of the product of a row feature and a column feature; ``"1"`` is the constant."""

    row_feature: str
    col_feature: str
    weight: float


@dataclass(frozen=True)
class Interactions:
    """The matrix between row features and column features, in the units of the features.

    A cell is predicted as ``[x 1] matrix [y 1]'`` (plus what no feature explains): the last
    column holds the effects of row features alone, the last row those of column features, the
    corner the constant.

    Attributes
    ----------
    matrix : ndarray of shape (n_row_features + 1, n_col_features + 1)
        Weights.
    row_names, col_names : list of str
        Names of the features, the last of which is ``"1"``.
    """

    matrix: FloatArray
    row_names: list[str]
    col_names: list[str]

    def top(self, k: int | None = None, *, one_sided: bool = False) -> list[Interaction]:
        """Weights that are not zero, by decreasing size.

        Parameters
        ----------
        k : int, optional
            At most this many.
        one_sided : bool, default=False
            Also the effects of one side alone and the constant.

        Returns
        -------
        list of Interaction
        """
        shown = self.matrix if one_sided else self.matrix[:-1, :-1]
        rows, cols = np.nonzero(shown)
        order = np.argsort(-np.abs(shown[rows, cols]), kind="stable")
        order = order if k is None else order[: check_count("k", k)]
        return [
            Interaction(self.row_names[rows[t]], self.col_names[cols[t]], float(shown[rows[t], cols[t]]))
            for t in order
        ]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.matrix, dtype=dtype)


@dataclass(frozen=True)
class Explanation:
    """Parts of one prediction; they add up to it.

    Effects are measured from an entity whose features are at their mean (at zero where features
    are not centred).

    Attributes
    ----------
    constant : float
        Prediction for an average row and an average column, the mean of the cells included.
    row, col : float
        What the row, and the column, adds alone: by its features and by its bias, where the model has one.
    bilinear : float
        What their interaction adds.
    low_rank : float
        What no feature explains.
    """

    constant: float
    row: float
    col: float
    bilinear: float
    low_rank: float

    @property
    def prediction(self) -> float:
        """Sum of the parts."""
        return self.constant + self.row + self.col + self.bilinear + self.low_rank


class Explained(ComposedCompleter):
    """Completers whose first term is a full core between the features of rows and columns."""

    @property
    @one_blas_thread()
    def interactions_(self) -> Interactions:
        """Weights of pairs of features, in the units of the features."""
        check_is_fitted(self)
        sides = [self._units(side) for side in ("row", "col")]
        (row_units, row_names), (col_units, col_names) = sides
        if len(row_names) * len(col_names) > MAX_CELLS:
            raise NotInductiveError(
                f"{len(row_names)} x {len(col_names)} interactions are too many to write out"
            )
        matrix = row_units @ self.state_["0.core"].astype(np.float64) @ col_units.T
        matrix[-1, -1] += self.offsets_.mean
        return Interactions(matrix, row_names, col_names)

    @one_blas_thread()
    def explain(self, row: Any, col: Any, *, positions: bool = False) -> Explanation:
        """Split the prediction of a training cell.

        Parameters
        ----------
        row, col : int or str
            Id of a row and of a column; positions where the model was fitted without ids.
        positions : bool, default=False
            Take positions, whatever the ids.

        Returns
        -------
        Explanation
            Constant, row-only, column-only, bilinear and low-rank part.
        """
        check_is_fitted(self)
        (i,), (j,) = self._places(row, "row", "row", positions), self._places(col, "col", "col", positions)
        total = float(self.row_factors_[i].astype(np.float64) @ self.col_factors_[j])
        if "0.core" not in self.state_:
            offset = float(np.asarray(self.offsets_.at(np.array([i]), np.array([j]))).ravel()[0])
            return Explanation(offset, 0.0, 0.0, 0.0, total - offset)
        width = self.widths_[0]
        left, right = (
            factors[k, :width].astype(np.float64)
            for factors, k in ((self.row_factors_, i), (self.col_factors_, j))
        )
        left0, right0 = (self._origin(side) for side in ("row", "col"))
        offsets = self.offsets_
        row_offset = 0.0 if offsets.row is None else float(offsets.row[i])
        col_offset = 0.0 if offsets.col is None else float(offsets.col[j])
        parts = {
            "constant": float(left0 @ right0) + offsets.mean,
            "row": float((left - left0) @ right0) + row_offset,
            "col": float(left0 @ (right - right0)) + col_offset,
            "bilinear": float((left - left0) @ (right - right0)),
        }
        return Explanation(**parts, low_rank=total - sum(parts.values()))

    def _origin(self, side: str) -> FloatArray:
        """Coordinates, in the first term's factors, of an entity with average features."""
        core = self.state_["0.core"]
        row_map, col_map, *_ = self.terms_[0].parts()
        a_map = row_map if side == "row" else col_map
        width = core.shape[0 if side == "row" else 1]
        origin = a_map.origin(map_params(self.state_, 0, side), width)
        coordinates = self._term_coordinates(0, side, as_design(origin.astype(np.float64)), self.state_)
        return np.asarray(coordinates[0], dtype=np.float64)

    def _units(self, side: str) -> tuple[FloatArray, list[str]]:
        """Matrix from core coordinates to the units of the features and a constant, with their names."""
        if "0.core" not in self.state_:
            raise NotInductiveError(f"{type(self).__name__} was fitted without features: nothing interacts")
        row_map, col_map, *_ = self.terms_[0].parts()
        a_map = row_map if side == "row" else col_map
        width = self.state_["0.core"].shape[0 if side == "row" else 1]
        units = a_map.units(map_params(self.state_, 0, side), width)
        if units is not None:
            names = self._feature_names(side, units.shape[0] - 1)
            return units, [*names, "1"]
        n_entities = (self.row_factors_ if side == "row" else self.col_factors_).shape[0]
        ids: Vocabulary | None = self.row_ids_ if side == "row" else self.col_ids_
        names = [str(k) for k in (range(n_entities) if ids is None else ids.values)]
        units = np.zeros((n_entities + 1, width))
        np.fill_diagonal(units, 1.0)
        return units, [*names, "1"]

    def _feature_names(self, side: str, count: int) -> Sequence[str]:
        source = getattr(self, "source_", None) or {}
        known = getattr(self, f"{side}_feature_names_", None) or source.get(f"{side}_feature_names")
        return known if known is not None and len(known) == count else [f"{side}{k}" for k in range(count)]
