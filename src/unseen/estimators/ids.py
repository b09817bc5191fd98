"""How models speak: ids where they were fitted with ids, positions elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from unseen.data import Observations, Origin, Vocabulary
from unseen.data.ids import SeenCells, Side, cells_like, find_ids, named, onto
from unseen.data.origin import make_frame
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.typing import Array, IndexArray
from unseen.validation import check_choice, check_indices

__all__ = ["SpeaksIds"]

Places = npt.NDArray[np.int64]


class SpeaksIds:
    """Translation between what a user calls rows and columns and where a model has them."""

    row_ids_: Vocabulary | None
    col_ids_: Vocabulary | None
    origin_: Origin | None
    seen_: SeenCells | None
    n_features_in_: int

    def _name(self, cells: Observations) -> None:
        """Take names, and which cells there are, from the training cells."""
        self.row_ids_, self.col_ids_ = cells.row_ids, cells.col_ids
        self.origin_ = cells.origin
        self.n_features_in_ = cells.shape[1]

    @property
    def feature_names_in_(self) -> Array:
        """Ids of the columns, where they are text: the names of the columns of a frame, for one."""
        found: Vocabulary | None = getattr(self, "col_ids_", None)
        if found is None or found.values.dtype.kind != "U":
            raise AttributeError(f"{type(self).__name__} was not fitted to columns with names")
        names: Array = found.values.astype(object)
        return names

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the training columns, if they had none.

        Returns
        -------
        ndarray of str
            Ids of the columns, or x0, x1 and so on.
        """
        check_is_fitted(self)
        ids = getattr(self, "col_ids_", None)
        if ids is not None and ids.values.dtype.kind != "U" and input_features is None:
            return np.array([str(name) for name in ids.values], dtype=object)
        names: Array = np.asarray(_check_feature_names_in(self, input_features), dtype=object)
        return names

    def _n_rows(self) -> int:
        return int(self.row_factors_.shape[0])  # type: ignore[attr-defined]

    def _ids(self, side: Side, positions: bool) -> Vocabulary | None:
        """What one side is called; None where positions are spoken."""
        return None if positions else getattr(self, f"{side}_ids_", None)

    def _length(self, side: Side) -> int:
        return self._n_rows() if side == "row" else int(self.n_features_in_)

    def _places(
        self,
        ids: Any,
        side: Side,
        argument: str,
        positions: bool,
        on_unknown: str = "raise",
        accepted: tuple[str, ...] = ("raise",),
    ) -> Places:
        """Positions of ids, -1 for unknown ones where these are let pass."""
        check_choice("on_unknown", on_unknown, accepted)
        return find_ids(
            ids,
            self._ids(side, positions),
            self._length(side),
            argument,
            side,
            on_unknown=on_unknown,
            accepted=accepted,
        )

    def _pairs(
        self,
        rows: Any,
        cols: Any,
        positions: bool,
        on_unknown: str = "raise",
        accepted: tuple[str, ...] = ("raise",),
    ) -> tuple[Places, Places]:
        """Positions of pairs of rows and columns."""
        i = self._places(rows, "row", "rows", positions, on_unknown, accepted)
        j = self._places(cols, "col", "cols", positions, on_unknown, accepted)
        if i.shape != j.shape:
            raise InvalidDataError(f"rows and cols must have the same length, got {i.size} and {j.size}.")
        return i, j

    def _named(self, places: IndexArray, side: Side, positions: bool) -> Array:
        return named(places, self._ids(side, positions))

    def _cells(self, X: Any, argument: str, *, values: bool = True) -> Observations:
        """Cells that a user gives to a fitted model, in any form."""
        if isinstance(X, Mapping):
            return self._one_row(X, argument)
        return cells_like(X, getattr(self, "origin_", None), argument, values=values)

    def _one_row(self, known: Mapping[Any, Any], argument: str) -> Observations:
        """A row from what is known of it: a value for each id, or position, of a column."""
        try:
            values = np.array(list(known.values()), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidDataError(
                f"{argument} must map columns to numbers, as in {{{next(iter(known))!r}: 4.0}}, for one new "
                "row; several rows come as a frame, a matrix or Observations"
            ) from error
        cols, ids, width = list(known), self._ids("col", False), self._length("col")
        if ids is None or not known:
            places = check_indices(argument, cols, width)
        else:
            ids, places, width = Vocabulary(cols), np.arange(len(cols)), len(cols)
        return Observations.from_triples(np.zeros_like(places), places, values, shape=(1, width), col_ids=ids)

    def _matched(
        self,
        cells: Observations,
        argument: str,
        positions: bool,
        *,
        new_rows: bool,
        on_unknown: str | None = None,
    ) -> Observations:
        """Cells in the order of the training columns, and of the training rows unless they are new ones.

        ``on_unknown`` is what the user said about unknown ids, where there is a choice.
        """
        if positions:
            return cells.with_ids(cells.row_ids if new_rows else None, None)
        unknown: Any = "some" if not new_rows else "raise" if on_unknown in (None, "raise") else "skip"
        accepted = ("raise",) if on_unknown is None else ("raise", "skip")
        cells = onto(
            cells,
            "col",
            self._ids("col", False),
            self._length("col"),
            argument,
            unknown=unknown,
            accepted=accepted,
        )
        if new_rows:
            return cells
        return onto(cells, "row", self._ids("row", False), self._length("row"), argument, unknown=unknown)

    def _side_names(self, *others: str) -> tuple[str, str]:
        """Names of the columns of rows and columns in a frame, as the user has them where they are free."""
        origin = getattr(self, "origin_", None) or Origin()
        row, col = origin.row, origin.col
        return ("row", "col") if row == col or {row, col} & set(others) else (row, col)

    def _as_frame(self, columns: dict[str, Array]) -> Any:
        """A frame of the user's library."""
        origin = getattr(self, "origin_", None)
        return make_frame(columns, None if origin is None else origin.backend)

    def _seen(self) -> SeenCells:
        """Which cells the model was fitted to."""
        seen: SeenCells | None = getattr(self, "seen_", None)
        if seen is None:
            raise ParameterError(
                f"exclude='seen': this {type(self).__name__} does not hold which cells it was fitted to (it "
                "was saved with seen=False, or brought here by to_local()); pass these cells as exclude=, or "
                "exclude=None to list them too"
            )
        return seen
