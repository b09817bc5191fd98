"""A model as the server asks it: ids in, ids out, many requests by one pass over the factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from unseen import kernels
from unseen.data import Observations
from unseen.data.ids import SeenCells, Side
from unseen.diagnostics.curvature import why_no_curvature
from unseen.exceptions import InvalidDataError, UnsupportedComposition
from unseen.parallel import one_blas_thread
from unseen.serve.approximate import QUERIES, Approximate, ColumnIndex
from unseen.serve.contributions import contributions
from unseen.serve.features import SideFeatures
from unseen.serve.limits import RequestError
from unseen.serve.names import Names
from unseen.serve.parts import Parts
from unseen.typing import FloatArray, IndexArray

__all__ = ["Served", "Wanted"]

EXAMPLES = 8
"""Rows and columns that the page proposes to begin with."""
NOT_FINITE = "predictions are not finite; are values or features far from those of training?"


@dataclass(eq=False)
class Wanted:
    """A list that is asked for, in positions of one model.

    Rows are known ones (``rows``) or one new row from ``cells`` (columns and values) and ``features``.
    """

    model: Served
    k: int
    rows: IndexArray | None = None
    cells: tuple[IndexArray, FloatArray] | None = None
    features: FloatArray | None = None
    candidates: IndexArray | None = None
    deny: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def n_rows(self) -> int:
        """Number of lists."""
        return 1 if self.rows is None else len(self.rows)


Lists = tuple[IndexArray, FloatArray]


class Served:
    """A fitted completer and what goes with it: training cells, names of ids.

    Parameters
    ----------
    model : completer
        With factors of rows and columns.
    cells : Observations, optional
        Training cells in the positions of the model: they are left out of lists, and say why.
    names : dict of dict, optional
        By side: what people call an id.
    approximate : Approximate, optional
        When lists are looked up in an index; by default all are exact.
    """

    def __init__(
        self,
        model: Any,
        cells: Observations | None = None,
        names: dict[str, dict[Any, str]] | None = None,
        approximate: Approximate | None = None,
    ) -> None:
        if not (hasattr(model, "row_factors_") and hasattr(model, "col_factors_")):
            raise InvalidDataError(
                f"a {type(model).__name__} cannot be served: only completers with factors of rows and "
                "columns can (MatrixFactorization, BiasMC, IMC and others)"
            )
        self.model = model
        self.shape = (int(model.row_factors_.shape[0]), int(model.col_factors_.shape[0]))
        values: dict[str, Any] = {}
        if cells is None and getattr(model, "training_", None) is not None:
            data = model._training_data()
            cells = data.cells
            model._hold(*data)
            values = {"row": data.row_features, "col": data.col_features}
        elif cells is not None:
            model._hold(model._read_target(cells))
        if hasattr(model, "_keep_gram"):
            model._keep_gram()
        self.cells = cells
        self.seen: SeenCells | None = getattr(model, "seen_", None)
        sides: tuple[Side, ...] = ("row", "col")
        self.features = {side: SideFeatures(model, side, values.get(side)) for side in sides}
        self._parts = Parts(model)
        names = names or {}
        self.ids: dict[Side, Names] = {
            "row": Names(getattr(model, "row_ids_", None), self.shape[0], names.get("row")),
            "col": Names(getattr(model, "col_ids_", None), self.shape[1], names.get("col")),
        }
        self.index: ColumnIndex | None = None
        self.recall: float | None = None
        """What an index found of exact lists, whether or not it is used."""
        if approximate is not None and self.shape[1] > approximate.above:
            self._make_index(approximate)

    def _make_index(self, approximate: Approximate) -> None:
        """Index the columns; it is used only where it finds enough for rows of the model."""
        index = ColumnIndex(self.model.col_factors_, n_threads=self.model._n_threads(), home=approximate.home)
        n_rows = self.shape[0]
        rows = np.random.default_rng(0).permutation(n_rows)[: min(n_rows, QUERIES)]
        with one_blas_thread():
            good = index.choose(self.model.row_factors_[rows], self._left_out(Wanted(self, 1, rows=rows)))
        self.recall = index.recall
        if good:
            self.index = index

    def retrieval(self) -> dict[str, Any]:
        """How lists are made, and what an index was measured to find of exact ones."""
        if self.recall is None:
            return {"kind": "exact"}
        kind = "exact" if self.index is None else "approximate"
        return {"kind": kind, "recall_at_10": self.recall}

    # -- facts -----------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """What a client may want to know before it asks."""
        model = self.model
        called, features = self._names_of_sides(), self.features["row"]
        return {
            "model": type(model).__name__,
            "n_rows": self.shape[0],
            "n_cols": self.shape[1],
            "row": called["row"],
            "col": called["col"],
            "n_cells": None if self.cells is None else self.cells.nnz,
            "examples": {side: self._examples(side) for side in self.ids},
            "typical": self._typical_value(),
            "knows_seen_cells": self.seen is not None,
            "explains": hasattr(type(model), "explain"),
            "spread": self.spread_of,
            "compares": self.compares,
            "row_features": features.names,
            "typical_row": None if features.spread is None else features.spread[0].tolist(),
            "new_rows_by_cells": not features.names,
        }

    @cached_property
    def degrees(self) -> dict[Side, IndexArray]:
        """Known cells of each row and column; none where the cells are not at hand."""
        if self.cells is None:
            return {}
        columns = np.bincount(self.cells.indices, minlength=self.shape[1])
        return {"row": np.diff(self.cells.indptr), "col": columns}

    def _examples(self, side: Side) -> list[dict[str, Any]]:
        """What somebody may begin with: those with most known cells, or the first."""
        degrees = self.degrees.get(side)
        best = range(self.shape[side == "col"]) if degrees is None else np.argsort(-degrees, kind="stable")
        return [self.ids[side].entry(int(position)) for position in best[:EXAMPLES]]

    def _names_of_sides(self) -> dict[str, str]:
        """What the training data calls a row and a column."""
        origin, source = getattr(self.model, "origin_", None), getattr(self.model, "source_", None) or {}
        out: dict[str, str] = {}
        for side, plain in (("row", "row"), ("col", "column")):
            name = source.get(side) or getattr(origin, side, side)
            out[side] = plain if name == side or str(name).isdecimal() else str(name)
        return out

    def _typical_value(self) -> float:
        """A value that somebody gives to what is liked: one that a tenth of the known values reach."""
        if self.cells is not None:
            return float(np.quantile(self.cells.values, 0.9, method="nearest"))
        mean = float(getattr(getattr(self.model, "offsets_", None), "mean", 0.0))
        return float(f"{mean:.2g}") if mean else 1.0

    @property
    def spread_of(self) -> Literal["values", "fits"] | None:
        """What a standard deviation is that of, where it takes no new fit: of values, or of fits as good."""
        if getattr(self.model, "_posterior", None) is not None:
            return "values"
        return "fits" if self.cells is not None and why_no_curvature(self.model) is None else None

    # -- lists -----------------------------------------------------------------------

    def lists(self, wanted: Sequence[Wanted]) -> list[Lists | Exception]:
        """The lists of many requests; an exception for a request that cannot be answered."""
        try:
            with one_blas_thread():
                return list(self._lists(wanted))
        except ValueError as error:
            if len(wanted) == 1:
                return [error]
        # Something is wrong with one of them: the others get their answers.
        return [answer for one in wanted for answer in self.lists([one])]

    def _lists(self, wanted: Sequence[Wanted]) -> list[Lists]:
        factors = self._factors(wanted)
        left_out = [self._left_out(one) for one in wanted]
        out: list[Lists | None] = [None] * len(wanted)
        everywhere = [place for place, one in enumerate(wanted) if one.candidates is None]
        if self.index is not None:  # each by itself, so that none depends on its company
            for place in everywhere:
                out[place] = self._looked_up(factors[place], left_out[place], wanted[place].k)
            everywhere = [place for place in everywhere if out[place] is None]
        alone = [[place] for place, one in enumerate(wanted) if one.candidates is not None]
        for group in [everywhere, *alone]:
            if not group:
                continue
            k = min(max(wanted[place].k for place in group), self.shape[1])
            found = self._top(
                np.vstack([factors[place] for place in group]),
                [columns for place in group for columns in left_out[place]],
                k,
                wanted[group[0]].candidates,
            )
            start = 0
            for place in group:
                one = wanted[place]
                rows = slice(start, start + one.n_rows)
                out[place] = found[0][rows, : one.k], found[1][rows, : one.k]
                start += one.n_rows
        return [answer for answer in out if answer is not None]

    def _looked_up(self, factors: FloatArray, left_out: list[IndexArray], k: int) -> Lists | None:
        assert self.index is not None
        if not np.isfinite(factors).all():
            raise RequestError(NOT_FINITE)
        found = self.index.top(factors, left_out, min(k, self.shape[1]))
        return None if found is None else self._as_data(found)

    def _as_data(self, found: Lists) -> Lists:
        """Scores of lists on the scale of the data."""
        ids, scores = found
        listed = ids >= 0
        if not np.isfinite(scores[listed]).all():
            raise RequestError(NOT_FINITE)
        scores[listed] = self.model._to_data(scores[listed])
        return ids, scores

    def _top(self, factors: FloatArray, left_out: list[IndexArray], k: int, candidates: Any) -> Lists:
        if not np.isfinite(factors).all():
            raise RequestError(NOT_FINITE)
        indptr = np.concatenate([[0], np.cumsum([len(columns) for columns in left_out])]).astype(np.int64)
        right = self.model.col_factors_
        if candidates is not None:
            right = right[candidates]
        found = kernels.topk(
            factors,
            right,
            k,
            exclude=(indptr, np.concatenate(left_out)) if indptr[-1] else None,
            col_ids=candidates,
            n_threads=self.model._n_threads(),
        )
        return self._as_data(found)

    def _factors(self, wanted: Sequence[Wanted]) -> list[FloatArray]:
        """Factors of the rows of each request; new rows with cells are folded in all at once."""
        model = self.model
        out: list[FloatArray] = [np.empty(0)] * len(wanted)
        with_cells = [place for place, one in enumerate(wanted) if one.cells is not None]
        for place, one in enumerate(wanted):
            if one.rows is not None:
                out[place] = model.row_factors_[one.rows]
            elif one.cells is None:
                out[place] = model._embed_rows(model._new_rows(None, one.features, True)[1])
        for has_features in (False, True):
            group = [place for place in with_cells if (wanted[place].features is not None) is has_features]
            if group:
                folded = self._fold_in([wanted[place] for place in group], has_features)
                for place, row in zip(group, folded, strict=True):
                    out[place] = row[None, :]
        return out

    def _fold_in(self, wanted: Sequence[Wanted], has_features: bool) -> FloatArray:
        cells = [one.cells for one in wanted if one.cells is not None]
        rows = np.repeat(np.arange(len(cells)), [len(columns) for columns, _ in cells])
        new = Observations.from_triples(
            rows,
            np.concatenate([columns for columns, _ in cells]),
            np.concatenate([values for _, values in cells]).astype(self.model.col_factors_.dtype),
            (len(cells), self.shape[1]),
        )
        features = None
        if has_features:
            features = np.vstack([one.features for one in wanted if one.features is not None])
        folded: FloatArray = self.model.fold_in(new, row_features=features, positions=True)
        return folded

    def _left_out(self, one: Wanted) -> list[IndexArray]:
        """Sorted columns that each list of a request must not have."""
        if one.rows is None:
            own = np.empty(0, dtype=np.int64) if one.cells is None else one.cells[0]
            return [np.union1d(own, one.deny)]
        found = self.model._left_out(self.seen, one.rows)
        if found is None:
            return [one.deny] * len(one.rows)
        indptr, indices = found
        parts = [indices[start:stop] for start, stop in pairwise(indptr.tolist())]
        return [np.union1d(part, one.deny) for part in parts]

    def known(self, row: int) -> list[dict[str, Any]]:
        """Known cells of a row; with their values where these are at hand."""
        if self.seen is None:
            return []
        columns = self.seen.rows(np.array([row]))[1].tolist()
        entries = [self.ids["col"].entry(column) for column in columns]
        if self.cells is None:
            return entries
        values = self.cells.csr[[row], :][:, columns].toarray()[0].tolist()
        pairs = zip(entries, values, strict=True)
        return sorted((entry | {"value": value} for entry, value in pairs), key=lambda cell: -cell["value"])

    # -- single cells ----------------------------------------------------------------

    def predict(self, rows: IndexArray, cols: IndexArray) -> FloatArray:
        """Predictions of cells."""
        out: FloatArray = self.model.predict_entries(rows, cols, positions=True)
        return out

    def spread(self, rows: IndexArray, cols: IndexArray) -> FloatArray:
        """How far predictions move over fits that are as good."""
        if self.spread_of is None:
            reason = "needs the training cells" if self.cells is None else why_no_curvature(self.model)
            raise RequestError(f"std is not known here: {reason}", "std")
        out: FloatArray = self.model.predict_entries(rows, cols, return_std=True, positions=True)[1]
        return out

    def explain(self, row: int, col: int) -> dict[str, Any]:
        """What a prediction is made of: parts, and cells of the row that pull it up or down."""
        model = self.model
        scores = model.predict_entries([row], [col], raw=True, positions=True)
        out: dict[str, Any] = {
            "prediction": float(model._to_data(scores)[0]),
            "score": float(scores[0]),
            "parts": self._parts.of(row, col, float(scores[0])),
        }
        if self.spread_of is not None:
            out["std"] = float(self.spread(np.array([row]), np.array([col]))[0])
        if self.cells is not None:
            columns, pulls = contributions(model, self.cells, row, col)
            order = np.argsort(-np.abs(pulls), kind="stable")[:20]
            out["cells"] = [self.ids["col"].entry(int(columns[t])) | {"adds": float(pulls[t])} for t in order]
        if any(one.values is not None for one in self.features.values()):
            out["features"] = self._by_features(row, col)
        return out

    def _by_features(self, row: int, col: int) -> list[dict[str, Any]]:
        """Features of the row and of the column that pull most."""
        found: list[dict[str, Any]] = []
        for side, one in self.features.items():
            picked, pulls = one.contributions(*((row, col) if side == "row" else (col, row)))
            found += [
                {"of": side, "name": one.names[place], "adds": pull}
                for place, pull in zip(picked, pulls.tolist(), strict=True)
                if pull
            ]
        return sorted(found, key=lambda entry: -abs(entry["adds"]))[:20]

    # -- neighbours and maps ---------------------------------------------------------

    def similar(self, side: Side, picked: IndexArray, k: int) -> Lists:
        """Nearest others of each, by the cosine of their factors."""
        if not self.compares:
            raise RequestError(f"a {type(self.model).__name__} has no factors to compare {side}s by")
        ask = self.model.similar_rows if side == "row" else self.model.similar_cols
        ids, scores = ask(picked, k, positions=True)
        return ids, scores

    @cached_property
    def compares(self) -> bool:
        """Whether rows and columns have factors to compare them by."""
        try:
            return all(self.model._directions(side).shape[1] for side in self.ids)
        except UnsupportedComposition:
            return False

    @cached_property
    def places(self) -> FloatArray:
        """Columns in the plane of the two directions in which their factors differ most."""
        if not self.compares:
            raise RequestError(f"a {type(self.model).__name__} has no factors to make a map of")
        factors = self.model._directions("col")
        middle = factors.mean(axis=0, dtype=np.float64)
        with one_blas_thread():
            gram = factors.T @ factors.astype(np.float64) / len(factors) - np.outer(middle, middle)
            _, vectors = np.linalg.eigh(gram)
            axes = vectors[:, ::-1][:, :2]
            axes *= np.where(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1.0, 1.0)
            flat = factors @ axes - middle @ axes
        return np.hstack([flat, np.zeros((len(flat), 2 - flat.shape[1]))])

    def columns_of_map(self, most: int) -> IndexArray:
        """Columns that a map shows: those with most cells, or spread evenly where cells are not known."""
        count = self.shape[1]
        if count <= most:
            return np.arange(count)
        degrees = self.degrees.get("col")
        if degrees is None:
            return np.linspace(0, count - 1, most).astype(np.int64)
        return np.sort(np.argsort(-degrees, kind="stable")[:most])
