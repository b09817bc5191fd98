"""A term: row map x core x column map, with a regulariser on the core."""

from __future__ import annotations

from typing import NamedTuple

from sklearn.base import BaseEstimator

from unseen.cores import Core, Full, LowRank
from unseen.maps import Constant, FeatureMap, Identity
from unseen.regularisers import Regulariser, Ridge

__all__ = ["BoundTerm", "Term"]


class Term(BaseEstimator):  # type: ignore[misc]
    """One summand ``A Z B'`` of the score matrix.

    Parameters
    ----------
    row_map, col_map : FeatureMap, optional
        Maps that make the designs A and B; no features (:class:`Identity`) by default.
    core : Core, optional
        ``LowRank(k)`` (default) or ``Full()``.
    reg : Regulariser, optional
        Penalty on the core; ``Ridge(1.0)`` by default.

    Examples
    --------
    >>> from unseen import Term, Given, LowRank, Nuclear
    >>> Term(Given(), Given(), LowRank(5), Nuclear(0.1))
    Term(col_map=Given(), core=LowRank(rank=5), reg=Nuclear(reg=0.1), row_map=Given())
    """

    def __init__(
        self,
        row_map: FeatureMap | None = None,
        col_map: FeatureMap | None = None,
        core: Core | None = None,
        reg: Regulariser | None = None,
    ) -> None:
        self.row_map = row_map
        self.col_map = col_map
        self.core = core
        self.reg = reg

    def parts(self) -> tuple[FeatureMap, FeatureMap, Core, Regulariser]:
        """The four parts with defaults filled in."""
        return (
            Identity() if self.row_map is None else self.row_map,
            Identity() if self.col_map is None else self.col_map,
            LowRank() if self.core is None else self.core,
            Ridge() if self.reg is None else self.reg,
        )


class BoundTerm(NamedTuple):
    """A term with its defaults filled in and its place in the problem."""

    place: int
    row_map: FeatureMap
    col_map: FeatureMap
    core: Core
    reg: Regulariser

    def key(self, name: str) -> str:
        """Name of one of the term's arrays in a state."""
        return f"{self.place}.{name}"

    @property
    def free(self) -> bool:
        """Whether neither side has features."""
        return not (self.row_map.inductive or self.col_map.inductive)

    @property
    def bias_side(self) -> str | None:
        """``"row"`` for a bias of each row with a ridge, ``"col"`` for one of each column, None for others.

        A bias of the rows is a full core between :class:`Identity` and :class:`Constant`: one number for
        each row, the same in every column.
        """
        numbers = self.reg.separable()
        if not isinstance(self.core, Full) or numbers is None or not numbers.smooth:
            return None
        kinds = (type(self.row_map), type(self.col_map))
        return {(Identity, Constant): "row", (Constant, Identity): "col"}.get(kinds)
