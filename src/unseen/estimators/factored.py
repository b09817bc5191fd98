"""Fitted terms: how rows and columns that were not there are placed among the factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations
from unseen.data.ids import Side
from unseen.estimators.base import Completer
from unseen.estimators.ids import Places
from unseen.estimators.informed import bias_of_features
from unseen.estimators.refreshing import as_cols, mirrored
from unseen.exceptions import NotInductiveError
from unseen.linalg.designs import Design
from unseen.losses import Loss, blank_of, cells_that_count
from unseen.maps import History, Identity, Joined
from unseen.offsets import Offsets, row_biases
from unseen.problem import Pair, core_pair
from unseen.solvers.rows import Background, FreeTerm, on_used_columns, solve_rows
from unseen.state import State, map_params
from unseen.terms import Term
from unseen.typing import Array, Features, FloatArray

__all__ = ["FactoredCompleter"]


def _has_classes(model: Any) -> bool:
    """Whether the values of a fitted model are classes."""
    return hasattr(model, "loss_") and model.loss_.classes is not None


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
        weights = getattr(self, "informed_", {}).get(side)
        biases = None if weights is None else bias_of_features(weights, features)
        extra = (
            offsets.row_coordinates(count, biases)
            if side == "row"
            else offsets.col_coordinates(count, biases)
        )
        return np.ascontiguousarray(np.hstack([*parts, extra]), dtype=self.row_factors_.dtype)

    def _term_embeddings(self, side: str, features: Features | None, count: int) -> list[FloatArray]:
        """Each term's coordinates of new entities; zero where a term cannot speak about them."""
        parts = []
        spoken = False
        for index, (term, width) in enumerate(zip(self.terms_, self.widths_, strict=True)):
            row_map, col_map, _, _ = term.parts()
            a_map = row_map if side == "row" else col_map
            if isinstance(a_map, Joined | History):
                raise NotInductiveError(
                    f"{type(a_map).__name__} speaks about new {side}s only where the model averages; "
                    "use solver=Gibbs()"
                )
            if not a_map.inductive or (a_map.needs_features and features is None):
                parts.append(np.zeros((count, width), dtype=self.row_factors_.dtype))
                continue
            spoken = True
            params = map_params(self.state_, index, side)
            design = a_map.apply(features, count, params, self._n_threads())
            parts.append(self._term_coordinates(index, side, design, self.state_))
        if not spoken and features is not None:
            raise NotInductiveError(self._why_not_inductive(side))
        return parts

    def _term_coordinates(self, index: int, side: str, design: Design, state: State) -> FloatArray:
        core = state.get(f"{index}.core")
        if core is None:
            return design.dot(state[f"{index}.{side}"])
        other = _Width(core.shape[1 if side == "row" else 0])
        pair = core_pair(design, other, core) if side == "row" else core_pair(other, design, core)
        return pair.left if side == "row" else pair.right

    def _directions(self, side: Side) -> FloatArray:
        return super()._directions(side)[:, : sum(self.widths_)]

    def _to_data(self, scores: FloatArray) -> FloatArray:
        return self.loss_.link(scores)

    @available_if(_has_classes)  # type: ignore[untyped-decorator]
    def predict_proba(self, rows: Any, cols: Any, *, positions: bool = False) -> FloatArray:
        """Probability of each class of single cells, where values are classes.

        Parameters
        ----------
        rows, cols : array-like of ids, of equal length
            Rows and columns; positions where the model was fitted without ids.
        positions : bool, default=False
            Take positions, whatever the ids.

        Returns
        -------
        ndarray of shape (len(rows), n_classes)
            The columns are those of ``levels_``: for :class:`Logistic` the chances of zero and of non-zero.
            Models of measured values have no classes and lack this method.
        """
        check_is_fitted(self)
        return self._probabilities_at(*self._pairs(rows, cols, positions))

    def _probabilities_at(self, i: Places, j: Places) -> FloatArray:
        """Probability of each class of cells by position."""
        return self.loss_.probabilities(self._predict_entries(i, j))

    @property
    def levels_(self) -> Array:
        """Values of cells, in the order of ``predict_proba``; there where values are classes."""
        if not _has_classes(self):
            raise AttributeError(f"{type(self).__name__} has no levels_: its values are no classes")
        return np.array(self.loss_.classes)

    def _ranks_cells(self) -> bool:
        return bool(blank_of(self.loss_))

    def _deviance(self, scores: FloatArray, held: Observations) -> float:
        if getattr(self, "clip_", None) is not None or blank_of(self.loss_):
            return super()._deviance(scores, held)
        return self.loss_.deviance(scores, held.values, held.weights)

    # -- rows from their cells -------------------------------------------------------

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        """Solve for the free coordinates of each new row; the rest comes from its features."""
        if blank_of(self.loss_).row_weights is not None:
            raise NotInductiveError("the background has row_weights, and none are known for new rows")
        for index, term in enumerate(self.terms_):
            if (
                f"{index}.core" in self.state_
                and not term.parts()[0].inductive
                and not self._core_by_rows(index)
            ):
                raise NotInductiveError(
                    "a Full core without row_features has a row for each training row and none for others"
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
        """Coordinates of rows: those of terms with features by these, the others by the cells."""
        total = sum(self.widths_)
        free = np.repeat([not term.parts()[0].inductive for term in self.terms_], self.widths_)
        known = np.zeros((cells.shape[0], total), self.row_factors_.dtype)
        if not free.all():
            known = np.hstack(self._term_embeddings("row", row_features, cells.shape[0]))
            known[:, free] = 0
        if not free.any():
            return known
        blank = blank_of(self.loss_)
        if blank:
            right = np.ascontiguousarray(self.col_factors_[:, :total])
        else:  # no other columns than those with cells say anything
            cells, columns = on_used_columns(cells_that_count(cells))
            right = np.ascontiguousarray(self.col_factors_[columns, :total])
        terms = [
            FreeTerm(np.ascontiguousarray(right[:, part]), term.parts()[3].factored())
            for term, part in zip(self.terms_, self._columns(), strict=True)
            if not term.parts()[0].inductive and part.stop > part.start
        ]
        fixed = Pair(known, right) if known.any() else None
        background = None
        if blank and self._kept_gram is not None and self._kept_gram[0] is self.col_factors_:
            gram = self._kept_gram[1]
            background = Background(gram[np.ix_(free, free)], gram[:, free].astype(right.dtype))
        known[:, free] = solve_rows(
            cells, self.loss_, terms, fixed, background=background, n_threads=self._n_threads()
        )
        return known

    _kept_gram: tuple[FloatArray, FloatArray] | None = None

    def _keep_gram(self) -> None:
        """Keep what fold-in needs of all columns: for whoever folds in often and changes no factors."""
        blank = blank_of(self.loss_)
        if blank:
            right = self.col_factors_[:, : sum(self.widths_)]
            self._kept_gram = self.col_factors_, blank.gram("col", right, self._n_threads())

    def _mirrored(self) -> FactoredCompleter:
        twin: FactoredCompleter = mirrored(self)
        return twin

    def _as_cols(self, factors: FloatArray) -> FloatArray:
        return as_cols(factors, self.offsets_)

    def _columns(self) -> list[slice]:
        """Columns of the factors that belong to each term."""
        ends = np.cumsum(self.widths_)
        return [slice(int(end - width), int(end)) for end, width in zip(ends, self.widths_, strict=True)]

    def _core_by_rows(self, index: int) -> bool:
        """Whether a full core has a row of its own for each row, as the biases of rows do."""
        row_map, _, _, reg = self.terms_[index].parts()
        core = self.state_[f"{index}.core"]
        return isinstance(row_map, Identity) and core.shape[0] > core.shape[1] and not reg.spectral


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
