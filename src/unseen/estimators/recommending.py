"""Lists: the best columns of rows, known or new, and what is similar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations
from unseen.data.ids import SeenCells, Side
from unseen.diagnostics.identify import identifiability, spread_of
from unseen.diagnostics.lists import steady_lists, within_blocks
from unseen.estimators.ids import Places, SpeaksIds
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.kernels.providers import Provider
from unseen.parallel import one_blas_thread
from unseen.typing import Array, Features, FloatArray, IndexArray
from unseen.validation import check_choice, check_list_length, check_positive

__all__ = ["Recommender"]

Lists = tuple[IndexArray, FloatArray]
"""Positions by decreasing score with -1 for none, and scores with NaN."""
UNKNOWN = ("raise", "skip", "popular")


class Recommender(SpeaksIds):
    """What can be listed from the factors of a fitted model."""

    row_factors_: FloatArray
    col_factors_: FloatArray

    def recommend(
        self,
        rows: Any = None,
        k: int = 10,
        *,
        exclude: Any = "seen",
        candidates: Any = None,
        deny: Any = None,
        cells: Any = None,
        row_features: Any = None,
        on_unknown: Literal["raise", "skip", "popular"] = "raise",
        positions: bool = False,
        as_frame: bool = False,
        determined_only: bool = False,
        max_std: float | None = None,
    ) -> Any:
        """Columns with the highest predictions for each of the given rows, or for new ones.

        A model that was fitted with ids takes and returns ids, others take and return positions.

        Parameters
        ----------
        rows : array-like of ids, or one id
            Training rows. Left out for new rows, which ``cells`` and ``row_features`` describe.
        k : int, default=10
            Length of each list.
        exclude : "seen", None, matrix, frame or Observations, default="seen"
            What is left out: the cells that the model was fitted to (of new rows those in ``cells``),
            nothing, or the stored cells of a matrix of the training rows and columns. Its ids are matched;
            those that the model does not know are ignored.
        candidates : array-like of ids, optional
            Columns that may be recommended; all by default.
        deny : array-like of ids, optional
            Columns that may not be recommended.
        cells : matrix, frame or Observations with the training columns, or dict, optional
            Known cells of new rows; see :meth:`fold_in`. A dict is one row, with a value for each id of a
            column.
        row_features : array, sparse matrix or frame, optional
            Features of new rows; see :meth:`predict_new`. With ``cells`` of the same rows, both count.
        on_unknown : {"raise", "skip", "popular"}, default="raise"
            What to do about rows that the model does not know: refuse, give them no list, or the list of the
            average of all rows. Unknown ``candidates`` and ``deny``, and ``cells`` in unknown columns, are
            ignored unless it is "raise".
        positions : bool, default=False
            Take and return positions, whatever the ids.
        as_frame : bool, default=False
            Return one table instead, in the user's library and names of columns.
        determined_only : bool, default=False
            Leave out columns that no chain of training cells connects with the row, because only a
            baseline is known there. Models with features know more, and leave out nothing.
        max_std : float, optional
            Leave out columns whose prediction moves by more than this over solutions that fit as
            well, as ``predict_entries(..., return_std=True)`` says.

        Returns
        -------
        ids : ndarray of shape (n_rows, k)
            Columns by decreasing score, ties in their order; ``k`` is at most their number. Where a
            row has fewer than ``k`` columns left, the score is NaN and the id means nothing (position -1).
            A line for each of ``rows``; of new rows in the order of their ids (``as_frame`` shows these), or
            of ``row_features`` alone.
        scores : ndarray of shape (n_rows, k)
            Predictions; NaN where there is no column.
        frame : DataFrame or Table
            With ``as_frame`` alone: row, column, ``rank`` from 1 and ``score``, without padding.
        """
        check_is_fitted(self)
        k = check_list_length(k, self.n_features_in_)
        check_choice("on_unknown", on_unknown, UNKNOWN)
        columns = self._allowed(candidates, deny, positions, on_unknown)
        if rows is None:
            if determined_only or max_std is not None:
                raise ParameterError("determined_only and max_std are for training rows, not for new ones")
            names, lists = self._lists_of_new(k, exclude, columns, cells, row_features, positions, on_unknown)
        else:
            if cells is not None or row_features is not None:
                raise ParameterError(
                    "rows= names training rows, cells= and row_features= describe new ones: one or the other"
                )
            picked = self._places(rows, "row", "rows", positions, on_unknown, UNKNOWN)
            left_out = self._exclusions(exclude, positions)
            names = self._asked(rows, picked, "row", positions)
            lists = self._lists_of(picked, k, left_out, columns, on_unknown, determined_only, max_std)
        if as_frame:
            return self._list_frame(names, lists, positions)
        return self._named(lists[0], "col", positions), lists[1]

    def similar_rows(
        self,
        rows: Any,
        k: int = 10,
        *,
        metric: Literal["cosine", "dot"] = "cosine",
        on_unknown: Literal["raise", "skip"] = "raise",
        positions: bool = False,
        as_frame: bool = False,
    ) -> Any:
        """Rows whose factors are nearest to those of the given rows.

        Parameters
        ----------
        rows : array-like of ids, or one id
            Rows to start from; positions where the model was fitted without ids.
        k : int, default=10
            Neighbours of each; the row itself is left out.
        metric : {"cosine", "dot"}, default="cosine"
            Angle between the factors, or their inner product. Means and biases are not part of it.
        on_unknown : {"raise", "skip"}, default="raise"
            Refuse unknown rows, or give them no list.
        positions : bool, default=False
            Take and return positions, whatever the ids.
        as_frame : bool, default=False
            Return a table instead: row, ``similar``, ``rank`` and ``score``.

        Returns
        -------
        ids : ndarray of shape (n_rows, k)
            Neighbours by decreasing similarity.
        similarities : ndarray of shape (n_rows, k)
            NaN where there are fewer than ``k``. Factors of length zero have cosine zero with all.
        """
        return self._similar("row", rows, k, metric, on_unknown, positions, as_frame)

    def similar_cols(
        self,
        cols: Any,
        k: int = 10,
        *,
        metric: Literal["cosine", "dot"] = "cosine",
        on_unknown: Literal["raise", "skip"] = "raise",
        positions: bool = False,
        as_frame: bool = False,
    ) -> Any:
        """Columns whose factors are nearest to those of the given columns.

        Parameters
        ----------
        cols : array-like of ids, or one id
            Columns to start from; positions where the model was fitted without ids.
        k : int, default=10
            Neighbours of each; the column itself is left out.
        metric : {"cosine", "dot"}, default="cosine"
            Angle between the factors, or their inner product. Means and biases are not part of it.
        on_unknown : {"raise", "skip"}, default="raise"
            Refuse unknown columns, or give them no list.
        positions : bool, default=False
            Take and return positions, whatever the ids.
        as_frame : bool, default=False
            Return a table instead: column, ``similar``, ``rank`` and ``score``.

        Returns
        -------
        ids : ndarray of shape (n_cols, k)
            Neighbours by decreasing similarity.
        similarities : ndarray of shape (n_cols, k)
            NaN where there are fewer than ``k``. Factors of length zero have cosine zero with all.
        """
        return self._similar("col", cols, k, metric, on_unknown, positions, as_frame)

    # -- hooks -----------------------------------------------------------------------

    def _directions(self, side: Side) -> FloatArray:
        """Factors without the coordinates that carry means and biases."""
        return self.row_factors_ if side == "row" else self.col_factors_

    def _average(self, side: Side) -> FloatArray:
        """Factors of the average row or column, for ids that the model does not know."""
        factors = self.row_factors_ if side == "row" else self.col_factors_
        mean: FloatArray = factors.mean(axis=0, dtype=np.float64).astype(factors.dtype)
        return mean

    def _left_out(self, seen: SeenCells | None, picked: IndexArray) -> tuple[IndexArray, IndexArray] | None:
        """Columns left out of the list of each row, as ``indptr`` and ``indices``."""
        return None if seen is None else seen.rows(picked)

    def _best_columns(self, picked: IndexArray, k: int, seen: SeenCells | None, columns: Any) -> Lists:
        """Best columns of training rows."""
        return self._top_columns(self.row_factors_[picked], k, self._left_out(seen, picked), columns)

    def _best_of_new(
        self, factors: FloatArray, cells: Observations | None, k: int, seen: SeenCells | None, columns: Any
    ) -> Lists:
        """Best columns of new rows, whose factors are known."""
        left_out = None if seen is None else (seen.indptr, seen.indices)
        return self._top_columns(factors, k, left_out, columns)

    # -- helpers ---------------------------------------------------------------------

    def _allowed(self, candidates: Any, deny: Any, positions: bool, on_unknown: str) -> Places | None:
        """Columns that may be listed; None for all."""
        allowed: Places | None = None
        if candidates is not None:
            found = self._places(candidates, "col", "candidates", positions, on_unknown, UNKNOWN)
            allowed = np.unique(found[found >= 0])
        if deny is not None:
            barred = self._places(deny, "col", "deny", positions, on_unknown, UNKNOWN)
            allowed = np.setdiff1d(np.arange(self.n_features_in_) if allowed is None else allowed, barred)
        return allowed

    def _exclusions(self, exclude: Any, positions: bool) -> SeenCells | None:
        """Cells that are left out of the lists of training rows."""
        if exclude is None:
            return None
        if isinstance(exclude, str):
            check_choice("exclude", exclude, ("seen",))
            return self._seen()
        flat = isinstance(exclude, (list, tuple)) and not any(np.ndim(line) for line in exclude)
        if flat or isinstance(exclude, (bool, set)):
            raise ParameterError(
                f"exclude={exclude!r:.60} is no matrix: 'seen', None, a matrix or frame of cells or "
                "Observations would be accepted; deny= leaves out columns for all rows"
            )
        cells = self._cells(exclude, "exclude", values=False)
        cells = self._matched(cells, "exclude", positions, new_rows=False)
        shape = (self._n_rows(), self.n_features_in_)
        if cells.shape != shape:
            raise InvalidDataError(
                f"exclude has shape {cells.shape}; it must have the training shape {shape}"
            )
        return SeenCells.of(cells)

    def _asked(self, ids: Any, places: Places, side: Side, positions: bool) -> Array:
        """What was asked for as an array, unknown ids included."""
        if (places >= 0).all():
            return self._named(places, side, positions)
        given = np.asarray(ids) if not isinstance(ids, (list, tuple)) else np.array(list(ids))
        return np.atleast_1d(given)

    def _lists_of(
        self,
        picked: Places,
        k: int,
        seen: SeenCells | None,
        columns: Places | None,
        on_unknown: str,
        determined_only: bool,
        max_std: float | None,
    ) -> Lists:
        known = picked >= 0
        if known.all():
            return self._listed(picked, k, seen, columns, determined_only, max_std)
        ids, scores = self._listed(picked[known], k, seen, columns, determined_only, max_std)
        all_ids = np.full((picked.size, k), -1, dtype=np.int64)
        all_scores = np.full((picked.size, k), np.nan, dtype=scores.dtype)
        all_ids[known], all_scores[known] = ids, scores
        if on_unknown == "popular":
            popular = self._top_columns(self._average("row")[None, :], k, None, columns)
            all_ids[~known], all_scores[~known] = popular
        return all_ids, all_scores

    def _lists_of_new(
        self,
        k: int,
        exclude: Any,
        columns: Places | None,
        cells: Any,
        row_features: Any,
        positions: bool,
        on_unknown: str,
    ) -> tuple[Array, Lists]:
        if cells is None and row_features is None:
            raise ParameterError("recommend needs rows=, or cells= or row_features= of new rows")
        if not (exclude is None or (isinstance(exclude, str) and exclude == "seen")):
            raise ParameterError(
                f"exclude={exclude!r:.60}: for new rows it is 'seen', which leaves out their cells, or None; "
                "deny= leaves out columns"
            )
        found, features, names = self._new_rows(cells, row_features, positions, on_unknown)
        with one_blas_thread():
            factors = self._embed_rows(features) if found is None else self._fold_in(found, features)
            seen = None
            if found is not None and exclude is not None:
                seen = SeenCells.of(self._seen_among(found))
            return names, self._best_of_new(factors, found, k, seen, columns)

    def _listed(
        self,
        picked: IndexArray,
        k: int,
        seen: SeenCells | None,
        columns: Any,
        determined_only: bool,
        max_std: float | None,
    ) -> Lists:
        """Lists of training rows, without what the data does not determine if that is asked for."""

        def top(rows: IndexArray, length: int, columns: Any) -> Lists:
            return self._best_columns(rows, length, seen, columns)

        def in_blocks(rows: IndexArray, length: int, columns: Any) -> Lists:
            spread = spread_of(self)
            if not spread.blocks_matter:
                return top(rows, length, columns)
            return within_blocks(top, spread.blocks, rows, length, columns)

        chosen = in_blocks if determined_only else top
        if max_std is None:
            return chosen(picked, k, columns)
        limit = check_positive("max_std", max_std, strict=False)

        def std(rows: IndexArray, cols: IndexArray) -> FloatArray:
            return identifiability(self, rows, cols, positions=True).std

        return steady_lists(chosen, std, limit, self.n_features_in_, picked, k, columns)

    def _top_columns(
        self,
        factors: FloatArray,
        k: int,
        left_out: tuple[IndexArray, IndexArray] | None,
        columns: IndexArray | None,
    ) -> Lists:
        right = self.col_factors_ if columns is None else np.ascontiguousarray(self.col_factors_[columns])
        found, scores = self._provider().topk(factors, right, k, exclude=left_out, col_ids=columns)
        return found, self._predictions(scores)

    def _similar(
        self,
        side: Side,
        asked: Any,
        k: int,
        metric: str,
        on_unknown: str,
        positions: bool,
        as_frame: bool,
    ) -> Any:
        check_is_fitted(self)
        check_choice("metric", metric, ("cosine", "dot"))
        places = self._places(asked, side, f"{side}s", positions, on_unknown, ("raise", "skip"))
        picked = places[places >= 0]
        directions = self._directions(side)
        k = check_list_length(k, len(directions))
        if metric == "cosine":
            length = np.linalg.norm(directions, axis=1, keepdims=True)
            directions = np.divide(directions, length, out=np.zeros_like(directions), where=length > 0)
        directions = np.ascontiguousarray(directions)
        itself = (np.arange(picked.size + 1, dtype=picked.dtype), picked)
        near = self._provider().topk(directions[picked], directions, k, exclude=itself)
        found = np.full((places.size, k), -1, dtype=np.int64)
        scores = np.full((places.size, k), np.nan, dtype=near[1].dtype)
        found[places >= 0], scores[places >= 0] = near
        if not as_frame:
            return self._named(found, side, positions), scores
        there = found >= 0
        name = self._side_names("similar", "rank", "score")[0 if side == "row" else 1]
        starts = np.repeat(self._asked(asked, places, side, positions), there.sum(axis=1))
        return self._as_frame(
            {
                name: starts,
                "similar": self._named(found[there], side, positions),
                "rank": _ranks(there),
                "score": scores[there],
            }
        )

    def _list_frame(self, names: Array, lists: Lists, positions: bool) -> Any:
        ids, scores = lists
        there = ids >= 0
        row, col = self._side_names("rank", "score")
        return self._as_frame(
            {
                row: np.repeat(names, there.sum(axis=1)),
                col: self._named(ids[there], "col", positions),
                "rank": _ranks(there),
                "score": scores[there],
            }
        )

    if TYPE_CHECKING:  # what completers have

        def _provider(self) -> Provider: ...

        def _predictions(self, scores: FloatArray) -> FloatArray: ...

        def _embed_rows(self, features: Any) -> FloatArray: ...

        def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray: ...

        def _seen_among(self, cells: Observations) -> Observations: ...

        def _new_rows(
            self, cells: Any, row_features: Any, positions: bool, on_unknown: str = "raise"
        ) -> tuple[Observations | None, Features | None, Array]: ...


def _ranks(there: Any) -> Array:
    """Places from 1 of what is there."""
    ranks: Array = np.broadcast_to(np.arange(1, there.shape[1] + 1), there.shape)[there]
    return ranks
