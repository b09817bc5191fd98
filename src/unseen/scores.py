"""From learned arrays to scores and back: terms bound to features.

    S = sum_t A_t Z_t B_t'

:class:`Scores` turns a state into factors of S, changes of arrays into changes of S (``push``) and
derivatives by S into derivatives by arrays (``pull``). What the scores are good for is the problem's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.exceptions import InvalidDataError
from unseen.linalg.blocked import matmul
from unseen.linalg.designs import Design
from unseen.linalg.factors import Pair, core_pair
from unseen.linalg.score_gradient import ScoreGradient
from unseen.maps import FeatureMap
from unseen.maps.joined import Seen, history_of
from unseen.sensing import MeasuredGradient
from unseen.state import State, map_params
from unseen.terms import BoundTerm, Term
from unseen.typing import Array, Features, FloatArray

__all__ = ["GradientByScores", "Scores"]

GradientByScores: TypeAlias = ScoreGradient | MeasuredGradient


class Scores:
    """Terms bound to the rows and columns of a target.

    Parameters
    ----------
    observations : Observations
        Stored cells of the target.
    terms : sequence of Term
        Summands of the score matrix.
    row_features, col_features : array or CSR, optional
        Validated side features in the type of the target.
    known : Pair, optional
        Factors of a part of the scores that is given and does not move.
    n_threads : int
        Threads for all products; the result does not depend on it.
    """

    def __init__(
        self,
        observations: Observations,
        terms: Sequence[Term],
        *,
        row_features: Features | None = None,
        col_features: Features | None = None,
        known: Pair | None = None,
        n_threads: int = 1,
    ) -> None:
        self.observations = observations
        self.known = known
        self.terms = [BoundTerm(place, *term.parts()) for place, term in enumerate(terms)]
        self.features = {"row": row_features, "col": col_features}
        self.n_threads = n_threads
        self._fixed_designs: dict[tuple[int, str], Design] = {}
        self._last_designs: dict[tuple[int, str], tuple[State, Design]] = {}
        for term in self.terms:
            for side, a_map in (("row", term.row_map), ("col", term.col_map)):
                if a_map.needs_features and self.features[side] is None:
                    raise InvalidDataError(
                        f"{type(a_map).__name__} needs {side}_features, and none were given; "
                        f"pass {side}_features=, or use Identity() on that side"
                    )

    def blocks(self, state: State) -> list[str]:
        """Names of the arrays that a solver may move."""
        keys = []
        for term in self.terms:
            keys += [term.key(name) for name in ("row", "col", "core") if term.key(name) in state]
            for side, a_map in (("row", term.row_map), ("col", term.col_map)):
                keys += [term.key(f"{side}_map.{name}") for name in a_map.learned]
        return keys

    def designs(self, term: BoundTerm, state: State) -> tuple[Design, Design]:
        """Design matrices of a term; those of fixed maps are computed once.

        Of a learned map the last design is kept, and serves for as long as its params are the same
        arrays: a state's arrays must be replaced, never written into.
        """
        return self._design(term, "row", state), self._design(term, "col", state)

    def _design(self, term: BoundTerm, side: str, state: State) -> Design:
        a_map = term.row_map if side == "row" else term.col_map
        key = (term.place, side)
        if key in self._fixed_designs:
            return self._fixed_designs[key]
        n_entities = self.observations.shape[0 if side == "row" else 1]
        params = map_params(state, term.place, side)
        if a_map.learned and key in self._last_designs:
            last, design = self._last_designs[key]
            if all(last[name] is params[name] for name in a_map.learned):
                return design
        design = a_map.apply(self.features_of(a_map, side), n_entities, params, self.n_threads)
        if a_map.learned:
            self._last_designs[key] = (params, design)
        else:
            self._fixed_designs[key] = design
        return design

    def features_of(self, a_map: FeatureMap, side: str) -> Features | None:
        """What a map of one side gets: the features, and the observed cells for maps that read them."""
        features, cells = self.features[side], self.observations
        if not a_map.reads_cells:
            return features
        return Seen(features, history_of(cells, cells.weights, side, cells.dtype))  # type: ignore[return-value]

    def pair(self, term: BoundTerm, state: State) -> Pair:
        """Factors ``P, Q`` of one term's scores; a full core goes to its narrower side."""
        row, col = self.designs(term, state)
        if term.key("core") in state:
            return core_pair(row, col, state[term.key("core")])
        return Pair(row.dot(state[term.key("row")]), col.dot(state[term.key("col")]))

    def stacked(self, state: State) -> Pair:
        """Factors of the total score matrix."""
        pairs = [self.pair(term, state) for term in self.terms]
        pairs += [] if self.known is None else [self.known]
        if len(pairs) == 1:
            return Pair(np.ascontiguousarray(pairs[0].left), np.ascontiguousarray(pairs[0].right))
        return Pair(np.hstack([p.left for p in pairs]), np.hstack([p.right for p in pairs]))

    def cell_scores(self, pair: Pair) -> FloatArray:
        """Scores of the stored cells."""
        pattern = self.observations
        return kernels.sddmm(pattern.indptr, pattern.indices, *pair, n_threads=self.n_threads)

    def other_side(self, key: str, state: State) -> FloatArray | None:
        """What stays the same while a factor moves: the product of the other side; None for other arrays."""
        term, name = self.locate(key)
        if name not in ("row", "col"):
            return None
        row, col = self.designs(term, state)
        return col.dot(state[term.key("col")]) if name == "row" else row.dot(state[term.key("row")])

    def push(self, key: str, direction: Array, state: State, other: FloatArray | None = None) -> Pair:
        """Factors of the change of the scores when one array (not a map's) moves along ``direction``.

        ``other`` is :meth:`other_side` where it is at hand.
        """
        term, name = self.locate(key)
        row, col = self.designs(term, state)
        if name == "core":
            return core_pair(row, col, direction)
        other = self.other_side(key, state) if other is None else other
        assert other is not None
        return Pair(row.dot(direction), other) if name == "row" else Pair(other, col.dot(direction))

    def pull(
        self, key: str, operator: GradientByScores, state: State, other: FloatArray | None = None
    ) -> Array:
        """Adjoint of :meth:`push`: from a derivative by the scores to one by the array ``key``."""
        term, name = self.locate(key)
        row, col = self.designs(term, state)
        if name in ("row", "col"):
            other = self.other_side(key, state) if other is None else other
            assert other is not None
            return row.tdot(operator.dot(other)) if name == "row" else col.tdot(operator.tdot(other))
        if name == "core":
            dtype = operator.dtype
            if row.shape[1] <= col.shape[1]:
                return col.tdot(operator.tdot(row.toarray().astype(dtype, copy=False))).T
            return row.tdot(operator.dot(col.toarray().astype(dtype, copy=False)))
        side, param = name.split("_map.")
        return self.pull_map(term, side, operator, state)[param]

    def pull_map(self, term: BoundTerm, side: str, operator: GradientByScores, state: State) -> State:
        """Gradient of the learned params of one map, by their names in the map."""
        row, col = self.designs(term, state)
        core = state.get(term.key("core"))
        if side == "row":
            if core is None:
                grad = matmul(operator.dot(col.dot(state[term.key("col")])), state[term.key("row")].T)
            else:
                grad = operator.dot(col.dot(core.T))
            a_map, design = term.row_map, row
        else:
            if core is None:
                grad = matmul(operator.tdot(row.dot(state[term.key("row")])), state[term.key("col")].T)
            else:
                grad = operator.tdot(row.dot(core))
            a_map, design = term.col_map, col
        params = map_params(state, term.place, side)
        return a_map.pullback(self.features[side], params, design, grad, self.n_threads)

    def locate(self, key: str) -> tuple[BoundTerm, str]:
        """The term that an array belongs to, and its name there."""
        index, name = key.split(".", 1)
        return next(term for term in self.terms if term.place == int(index)), name
