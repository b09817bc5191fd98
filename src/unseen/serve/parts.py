"""What a prediction is made of: means, what a row or a column does alone, factors together."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from unseen.estimators.explained import Explained
from unseen.typing import BoolArray

__all__ = ["Parts"]


class Parts:
    """Takes the scores of a fitted completer to pieces."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def of(self, row: int, col: int, score: float) -> dict[str, float]:
        """Pieces by name; they add up to the score."""
        if isinstance(self.model, Explained):
            from dataclasses import asdict

            return {
                name: float(value)
                for name, value in asdict(self.model.explain(row, col, positions=True)).items()
            }
        offsets = getattr(self.model, "offsets_", None)
        mean = 0.0 if offsets is None else float(offsets.mean)
        products = self.model.row_factors_[row].astype(np.float64) * self.model.col_factors_[col]
        of_row, of_col = self._biases
        # The mean is part of what rows have against ones.
        parts = {
            "mean": mean,
            "row": float(products[of_row].sum()) - mean,
            "col": float(products[of_col].sum()),
        }
        return {**parts, "factors": score - sum(parts.values())}

    @cached_property
    def _biases(self) -> tuple[BoolArray, BoolArray]:
        """Coordinates by which a row, or a column, alone moves a score: all others have the same there."""
        same_cols, same_rows = (
            np.ptp(factors, axis=0) == 0 for factors in (self.model.col_factors_, self.model.row_factors_)
        )
        return same_cols, same_rows & ~same_cols
