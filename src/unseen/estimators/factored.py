"""Fitted terms: how rows and columns that were not there are placed among the factors."""

from __future__ import annotations

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.estimators.base import Completer
from unseen.exceptions import NotInductiveError
from unseen.linalg.blocked import matmul
from unseen.linalg.designs import Design
from unseen.losses import Loss, Quadratic
from unseen.maps import Identity
from unseen.offsets import Offsets, row_biases
from unseen.problem import core_pair
from unseen.solvers.als import solve_side
from unseen.solvers.bounded_rows import solve_bounded_rows
from unseen.state import State, map_params
from unseen.terms import Term
from unseen.typing import BoolArray, Features, FloatArray

__all__ = ["FactoredCompleter"]


class FactoredCompleter(Completer):
    """Completers whose factors are those of fitted terms, stacked, with offsets at the end.

    ``state_`` holds only what embeds new rows and columns; factors of sides without features
    are in ``row_factors_`` and ``col_factors_``.
    """

    terms_: list[Term]
    loss_: Loss
    state_: State
    offsets_: Offsets
    widths_: list[int]

    def _embed_rows(self, features: Features) -> FloatArray:
        return self._embed("row", features)

    def _embed_cols(self, features: Features) -> FloatArray:
        return self._embed("col", features)

    def _embed(self, side: str, features: Features) -> FloatArray:
        count = features.shape[0]
        parts = self._term_embeddings(side, features, count)
        offsets = self.offsets_
        extra = (
            offsets.row_coordinates(count, None) if side == "row" else offsets.col_coordinates(count, None)
        )
        return np.ascontiguousarray(np.hstack([*parts, extra]), dtype=self.row_factors_.dtype)

    def _term_embeddings(self, side: str, features: Features | None, count: int) -> list[FloatArray]:
        """Each term's coordinates of new entities; zero where a term cannot speak about them."""
        parts = []
        spoken = False
        for index, (term, width) in enumerate(zip(self.terms_, self.widths_, strict=True)):
            row_map, col_map, _, _ = term.parts()
            a_map = row_map if side == "row" else col_map
            if not a_map.inductive or (a_map.needs_features and features is None):
                parts.append(np.zeros((count, width), dtype=self.row_factors_.dtype))
                continue
            spoken = True
            params = map_params(self.state_, index, side)
            design = a_map.apply(features, count, params, self._n_threads())
            parts.append(self._term_coordinates(index, side, design))
        if not spoken and features is not None:
            raise NotInductiveError(self._why_not_inductive(side))
        return parts

    def _term_coordinates(self, index: int, side: str, design: Design) -> FloatArray:
        core = self.state_.get(f"{index}.core")
        if core is None:
            return design.dot(self.state_[f"{index}.{side}"])
        other = _Width(core.shape[1 if side == "row" else 0])
        pair = core_pair(design, other, core) if side == "row" else core_pair(other, design, core)
        return pair.left if side == "row" else pair.right

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        """Solve for the free coordinates of each new row; the rest comes from its features."""
        if not isinstance(self.loss_, Quadratic):
            raise NotInductiveError("fold_in needs a quadratic loss")
        for index, term in enumerate(self.terms_):
            row_map = term.parts()[0]
            if f"{index}.core" in self.state_ and not (
                self._core_by_rows(index)
                or (row_map.inductive and (row_features is not None or not row_map.needs_features))
            ):
                raise NotInductiveError(
                    "a Full core speaks about new rows through their features alone: pass "
                    "fold_in(X_new, row_features=...), or use predict_new(row_features=...)"
                )
        offsets = self.offsets_
        biases = row_biases(cells, offsets)
        values = cells.values - np.asarray(
            Offsets(offsets.mean, biases, offsets.col).at(cells.rows, cells.indices)
        )
        residual = cells.with_values(values.astype(self.row_factors_.dtype, copy=False))
        factors = self._solve_rows(residual, row_features)
        extra = offsets.row_coordinates(cells.shape[0], biases)
        return np.ascontiguousarray(np.hstack([factors, extra]), dtype=self.row_factors_.dtype)

    def _solve_rows(self, cells: Observations, row_features: Features | None) -> FloatArray:
        loss = self.loss_
        assert isinstance(loss, Quadratic)
        total = sum(self.widths_)
        free, known = self._free_coordinates(), np.zeros((cells.shape[0], total), self.row_factors_.dtype)
        if row_features is not None or not free.all():
            known = np.hstack(self._term_embeddings("row", row_features, cells.shape[0]))
            known[:, free] = 0
        if not free.any():
            return known
        right = np.ascontiguousarray(self.col_factors_[:, :total])
        other = np.ascontiguousarray(right[:, free])
        curvature, linear = loss.normal_terms(cells.values)
        weight, target = loss.blank()
        offset = None
        if known.any():
            scores = kernels.sddmm(cells.indptr, cells.indices, known, right, n_threads=self._n_threads())
            linear = (linear - curvature * scores).astype(scores.dtype, copy=False)
            if weight:
                offset = -weight * matmul(known, right.T @ other)
        rules = [term.parts()[3].factored() for term in self.terms_]
        own = [(rule, int(part.sum())) for rule, part in zip(rules, self._per_term(free), strict=True)]
        used = [rule for rule, width in own if width]
        out = np.zeros((cells.shape[0], other.shape[1]), dtype=other.dtype)
        if all(rule.smooth for rule in used):
            solve_side(
                cells.indptr,
                cells.indices,
                curvature,
                linear,
                other,
                out,
                ridge=np.repeat([rule.ridge for rule, _ in own], [width for _, width in own]),
                blank=(weight, target),
                extra_offset=offset,
                n_threads=self._n_threads(),
            )
        elif all(rule == used[0] for rule in used):
            out = solve_bounded_rows(
                cells, curvature, linear, other, used[0], blank=(weight, target), extra_offset=offset
            )
        else:
            raise NotInductiveError(
                "fold_in cannot solve for rows under several penalties of which one is not smooth"
            )
        known[:, free] = out
        return known

    def _free_coordinates(self) -> BoolArray:
        """Coordinates that a new row's cells decide: those without features, else all factors.

        The coordinates of a full core are decided by features alone, unless it has a row for each row.
        """
        without, factored = (
            np.repeat(flags, self.widths_)
            for flags in (
                [not term.parts()[0].inductive for term in self.terms_],
                [f"{index}.core" not in self.state_ for index in range(len(self.terms_))],
            )
        )
        return without if without.any() else factored

    def _core_by_rows(self, index: int) -> bool:
        """Whether a full core has a row of its own for each row, as the biases of rows do."""
        row_map, _, _, reg = self.terms_[index].parts()
        core = self.state_[f"{index}.core"]
        return isinstance(row_map, Identity) and core.shape[0] > core.shape[1] and reg.separable() is not None

    def _per_term(self, flags: BoolArray) -> list[BoolArray]:
        return np.split(flags, np.cumsum(self.widths_)[:-1])


class _Width(Design):
    """Stands for the other side where only its width matters."""

    def __init__(self, width: int) -> None:
        self.shape = (0, width)

    def dot(self, coefficients: FloatArray) -> FloatArray:
        return coefficients

    def tdot(self, values: FloatArray) -> FloatArray:
        return values

    def toarray(self) -> FloatArray:
        return np.zeros(self.shape)
