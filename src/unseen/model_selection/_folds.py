"""Folds: every cell, row or column is held out once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.model_selection._splits import Split, by_mask, units_of
from unseen.typing import IndexArray
from unseen.validation import check_count, check_rng

__all__ = ["Folds", "KFoldBoth", "KFoldCols", "KFoldEntries", "KFoldRows"]


class Folds:
    """What scikit-learn asks of every splitter."""

    n_splits: int

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored; here for scikit-learn's habit.

        Returns
        -------
        int
            ``n_splits``.
        """
        return self.n_splits


class KFoldEntries(Folds):
    """Split the cells into folds of equal size; each fold is the test part once.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2.
    shuffle : bool, default=True
        Deal the cells at random. Otherwise folds are consecutive cells in row order, which holds out
        whole runs of rows.
    random_state : None, int, Generator or RandomState
        Source of the draw.
    symmetric : bool, default=False
        Keep (i, j) and (j, i) of a square matrix in the same fold.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import KFoldEntries
    >>> folds = KFoldEntries(3, random_state=0)
    >>> [test.nnz for train, test in folds.split(np.ones((3, 4)))]
    [4, 4, 4]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = None, symmetric: bool = False
    ) -> None:
        self.n_splits = check_count("n_splits", n_splits, minimum=2)
        self.shuffle = shuffle
        self.random_state = random_state
        self.symmetric = symmetric

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield one split for each fold; only one is in memory at a time.

        Parameters
        ----------
        X : Observations, sparse matrix or dense array with NaN
            What to split.
        y, groups : object
            Ignored; here for scikit-learn's habit.

        Yields
        ------
        Split
            With parts ``train`` and ``test``.
        """
        observations = Observations.from_any(X)
        units = units_of(observations, self.symmetric)
        n_units = int(units.max()) + 1 if units.size else 0
        if n_units < self.n_splits:
            raise ParameterError(f"n_splits={self.n_splits} but there are only {n_units} cells to deal out")
        fold_of = np.arange(n_units) * self.n_splits // n_units
        if self.shuffle:
            fold_of = check_rng(self.random_state).permutation(fold_of)
        for fold in range(self.n_splits):
            yield by_mask(observations, (fold_of == fold)[units])

    def __repr__(self) -> str:
        return (
            f"KFoldEntries(n_splits={self.n_splits}, shuffle={self.shuffle}, "
            f"random_state={self.random_state!r}, symmetric={self.symmetric})"
        )


class _GroupFolds(Folds):
    """Folds of whole rows, of whole columns, or of both at once."""

    sides: tuple[str, ...] = ()

    def __init__(self, n_splits: int = 5, *, random_state: Any = None) -> None:
        self.n_splits = check_count("n_splits", n_splits, minimum=2)
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield one split for each fold; only one is in memory at a time.

        Parameters
        ----------
        X : Observations, sparse matrix or dense array with NaN
            What to split.
        y, groups : object
            Ignored; here for scikit-learn's habit.

        Yields
        ------
        Split
            With parts ``train`` and ``test``, and the held-out ``rows`` or ``cols``.
        """
        observations = Observations.from_any(X)
        rng = check_rng(self.random_state)
        group_of = {"rows": observations.rows, "cols": observations.indices}
        size = dict(zip(("rows", "cols"), observations.shape, strict=True))
        dealt = {side: self._dealt(group_of[side], size[side], side, rng) for side in self.sides}
        for fold in range(self.n_splits):
            held_out = {side: dealt[side][group_of[side]] == fold for side in self.sides}
            test = np.logical_and.reduce(list(held_out.values()))
            train = ~np.logical_or.reduce(list(held_out.values()))
            if not test.any() or not train.any():
                raise InvalidDataError(
                    f"fold {fold} of {self.n_splits} has no {'training' if test.any() else 'test'} cells; "
                    "ask for fewer folds or another random_state"
                )
            names = {side: np.flatnonzero(dealt[side] == fold) for side in self.sides}
            yield Split(observations.select(train), observations.select(test), **names)

    def _dealt(self, group_of_cell: IndexArray, n_groups: int, side: str, rng: Any) -> IndexArray:
        """Fold of each row or column; -1 where it has no cells."""
        filled = np.flatnonzero(np.bincount(group_of_cell, minlength=n_groups))
        if filled.size < self.n_splits:
            raise ParameterError(f"n_splits={self.n_splits} but only {filled.size} {side} have cells")
        fold_of = np.full(n_groups, -1)
        fold_of[rng.permutation(filled)] = np.arange(filled.size) * self.n_splits // filled.size
        return fold_of

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_splits={self.n_splits}, random_state={self.random_state!r})"


class KFoldRows(_GroupFolds):
    """Deal whole rows into folds; each fold is the test part once, as rows that are new.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2.
    random_state : None, int, Generator or RandomState
        Source of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import KFoldRows
    >>> [len(split.rows) for split in KFoldRows(3, random_state=0).split(np.ones((7, 4)))]
    [3, 2, 2]
    """

    sides = ("rows",)


class KFoldCols(_GroupFolds):
    """Deal whole columns into folds; see `KFoldRows`.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2.
    random_state : None, int, Generator or RandomState
        Source of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import KFoldCols
    >>> [split.test.nnz for split in KFoldCols(2, random_state=0).split(np.ones((7, 4)))]
    [14, 14]
    """

    sides = ("cols",)


class KFoldBoth(_GroupFolds):
    """Deal rows and columns into folds; test cells have a row and a column of the same fold.

    Training cells have neither a held-out row nor a held-out column, as in `split_both`. Cells with one of
    the two are in no part of that fold, so most cells are never tested.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2.
    random_state : None, int, Generator or RandomState
        Source of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import KFoldBoth
    >>> [(train.nnz, test.nnz) for train, test in KFoldBoth(2, random_state=0).split(np.ones((6, 4)))]
    [(6, 6), (6, 6)]
    """

    sides = ("rows", "cols")
