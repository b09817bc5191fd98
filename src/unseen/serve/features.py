"""Features of rows and columns: by name, what is usual, and which of them pull a prediction up or down."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from unseen.data.ids import Side
from unseen.exceptions import NotInductiveError
from unseen.parallel import one_blas_thread
from unseen.serve.limits import RequestError
from unseen.typing import Features, FloatArray, IndexArray

__all__ = ["SideFeatures"]

MOST = 100
"""Features that are looked at one by one; of more, those furthest from their means."""


class SideFeatures:
    """Features of the rows (or columns) of a model.

    Parameters
    ----------
    model : completer
        Fitted.
    side : {"row", "col"}
    values : array or sparse matrix of shape (n, d), optional
        Those of the training data, where they are at hand.
    """

    def __init__(self, model: Any, side: Side, values: Features | None = None) -> None:
        self.model, self.side, self.values = model, side, values

    @cached_property
    def names(self) -> list[str]:
        """By position; none where the model was fitted without."""
        count = getattr(self.model, f"n_{self.side}_features_in_", None) or 0
        source = getattr(self.model, "source_", None) or {}
        name = f"{self.side}_feature_names"
        known = getattr(self.model, f"{name}_", None) or source.get(name)
        if known and len(known) == count:
            return list(known)
        return [f"{self.side}{place}" for place in range(count)]

    def line(self, given: dict[str, Any]) -> FloatArray:
        """One line in the order of the model from values by name; a category is the one of its columns."""
        field = f"{self.side}_features"
        if not self.names:
            raise RequestError(f"the model was fitted without {field}", field)
        place = {name: position for position, name in enumerate(self.names)}
        line = np.full((1, len(self.names)), np.nan)
        for name, value in given.items():
            group = [position for other, position in place.items() if other.startswith(f"{name}=")]
            if isinstance(value, str) and group:
                if f"{name}={value}" not in place:
                    raise RequestError(f"{name} has no category of this name in the model", f"{field}.{name}")
                line[0, group] = 0.0
                line[0, place[f"{name}={value}"]] = 1.0
            elif name not in place or isinstance(value, str):
                wanted = "a number" if name in place else "one of the features " + ", ".join(self.names[:10])
                raise RequestError(f"{field}.{name}: {wanted} is accepted", f"{field}.{name}")
            else:
                line[0, place[name]] = value
        missing = [name for name, value in zip(self.names, line[0], strict=True) if np.isnan(value)]
        if missing:
            raise RequestError(f"{field} lacks " + ", ".join(missing[:10]), field)
        return line

    @cached_property
    def spread(self) -> tuple[FloatArray, FloatArray] | None:
        """Means and standard deviations over the training data, where it is at hand."""
        values = self.values
        if values is None:
            return None
        squares = values.multiply(values) if sparse.issparse(values) else np.square(values, dtype=np.float64)
        mean, square = (np.asarray(part.mean(axis=0), dtype=np.float64).ravel() for part in (values, squares))
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    def contributions(self, position: int, other: int) -> tuple[IndexArray, FloatArray]:
        """Features of one entity, and what each adds to its score with one of the other side.

        That is how far the score falls if the feature has its mean over the training data instead. Biases
        that were learned from cells are left out. Nothing is returned where features do not speak.

        Parameters
        ----------
        position, other : int
            Entity of this side and of the other one.

        Returns
        -------
        features : ndarray of int64
        adds : ndarray of float64
        """
        if self.values is None or self.spread is None:
            return np.empty(0, dtype=np.int64), np.zeros(0)
        mean, deviation = self.spread
        line = self.values[[position]]
        own = np.asarray(line.toarray() if sparse.issparse(line) else line, dtype=np.float64)[0]
        far = np.abs(own - mean) / np.where(deviation > 0.0, deviation, 1.0)
        picked = np.sort(np.argsort(-far, kind="stable")[:MOST])
        # Line 0 is the entity, line t + 1 has the mean of the t-th feature.
        lines = np.repeat(own[None, :], len(picked) + 1, axis=0)
        lines[np.arange(1, len(lines)), picked] = mean[picked]
        model = self.model
        embed = model._embed_rows if self.side == "row" else model._embed_cols
        fixed = model.col_factors_ if self.side == "row" else model.row_factors_
        width = fixed.shape[1] - model.offsets_.width
        try:
            with one_blas_thread():
                scores = embed(lines)[:, :width].astype(np.float64) @ fixed[other, :width].astype(np.float64)
        except NotInductiveError:
            return picked[:0], np.zeros(0)
        return picked, scores[0] - scores[1:]
