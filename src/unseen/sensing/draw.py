"""The part of a model that says which measurements to draw."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from unseen.data import Observations
from unseen.sensing.base import MeasurementOperator
from unseen.sensing.law import Law
from unseen.sensing.rank_one import RankOneMap
from unseen.sensing.sparse_rows import ExplicitMap, HashedMap

__all__ = ["Sensing"]


class Sensing(BaseEstimator):  # type: ignore[misc]
    """Which random measurements to add to the observed cells (AMF, section 5).

    Parameters
    ----------
    kind : {"rank_one", "hashed", "explicit"}, default="rank_one"
        Products of signs, sparse signs drawn when needed, or the same stored.
    n_rows : int, default=0
        Measurements in all.
    weight : float, default=1.0
        tau.
    gamma : float, default=0.01
        Chance of either sign in a sparse measurement.
    resample_original : bool, default=True
        Random entries on the measurements of observed cells too.
    seed : int, default=0
        Key of the draw.
    max_nonzeros : int, default=200_000_000
        Limit of "explicit".
    """

    def __init__(
        self,
        kind: str = "rank_one",
        n_rows: int = 0,
        weight: float = 1.0,
        gamma: float = 0.01,
        resample_original: bool = True,
        seed: int = 0,
        max_nonzeros: int = 200_000_000,
    ) -> None:
        self.kind = kind
        self.n_rows = n_rows
        self.weight = weight
        self.gamma = gamma
        self.resample_original = resample_original
        self.seed = seed
        self.max_nonzeros = max_nonzeros

    def law(self) -> Law:
        """The law of the draw."""
        return Law(self.n_rows, self.weight, self.gamma, self.resample_original, self.seed)

    def draw(self, cells: Observations, n_threads: int = 1) -> MeasurementOperator:
        """The map for the given cells."""
        if self.kind == "explicit":
            limit = self.max_nonzeros
            return ExplicitMap(cells, self.law(), max_nonzeros=limit, n_threads=n_threads)
        if self.kind == "hashed":
            return HashedMap(cells, self.law(), n_threads=n_threads)
        return RankOneMap(cells, self.law())
