"""Splits by time: the latest cells, the last cells of each row, and folds that walk forward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.model_selection._folds import Folds
from unseen.model_selection._splits import Split, by_mask, part_size
from unseen.typing import Array
from unseen.validation import check_count, check_fraction

__all__ = ["ForwardTime", "cell_times", "split_last", "split_time"]


def split_time(X: Any, times: Any = None, *, test_fraction: float = 0.2, cutoff: Any = None) -> Split:
    """Hold out the latest cells.

    Cells of one moment stay together, so no training cell is as late as the earliest test cell;
    the test part can therefore be a little larger than asked.

    Parameters
    ----------
    X : Observations, sparse matrix or dense array with NaN
        What to split. Its times decide: ``Observations.from_frame(frame, ..., time=)`` or
        ``from_triples(..., times=)`` keeps them with the cells.
    times : Observations or sparse matrix, optional
        When each cell arose, where `X` does not say: the times of a matrix with the same cells, or its values
        if it has no times. A bare array is refused: nothing shows that its order is that of the cells.
    test_fraction : float, default=0.2
        Share of the cells for the test part.
    cutoff : number or datetime, optional
        Hold out cells from this moment on, instead of a share.

    Returns
    -------
    Split
        With parts ``train`` and ``test``.

    Examples
    --------
    >>> from unseen import Observations
    >>> from unseen.model_selection import split_time
    >>> X = Observations.from_triples(
    ...     [0, 0, 1, 1], [0, 1, 0, 1], [5.0, 3.0, 4.0, 1.0], times=[2021, 2024, 2022, 2020]
    ... )
    >>> split_time(X, test_fraction=0.25).test.values
    array([3.])
    """
    observations = Observations.from_any(X)
    moments = cell_times(observations, times)
    if cutoff is None:
        fraction = check_fraction("test_fraction", test_fraction)
        n_test = part_size(observations.nnz, fraction, "cells")
        cutoff = np.sort(moments)[observations.nnz - n_test]
    elif moments.dtype.kind == "M":
        cutoff = np.datetime64(cutoff)
    held_out = np.asarray(moments >= cutoff)
    if held_out.all() or not held_out.any():
        raise InvalidDataError(
            f"times run from {moments.min()} to {moments.max()}, so a cut at {cutoff} leaves "
            f"{'no training' if held_out.all() else 'no test'} cells; choose another cutoff or test_fraction"
        )
    return by_mask(observations, held_out)


def split_last(X: Any, n: int = 1, *, times: Any = None) -> Split:
    """Hold out the last cells of each row.

    Rows with no more than `n` cells stay in training as a whole. Of cells of one moment the one with
    the larger column counts as later.

    Parameters
    ----------
    X : Observations, sparse matrix or dense array with NaN
        What to split. Its times decide, as in `split_time`.
    n : int, default=1
        Cells of each row for the test part.
    times : Observations or sparse matrix, optional
        When each cell arose, where `X` does not say; see `split_time`.

    Returns
    -------
    Split
        With parts ``train`` and ``test``.

    Examples
    --------
    >>> from unseen import Observations
    >>> from unseen.model_selection import split_last
    >>> X = Observations.from_triples(
    ...     [0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [5.0, 3.0, 4.0, 1.0, 2.0], times=[1, 2, 9, 8, 7]
    ... )
    >>> split_last(X).test.values
    array([3., 4.])
    """
    observations = Observations.from_any(X)
    count = check_count("n", n)
    moments = cell_times(observations, times)
    order = np.lexsort((moments, observations.rows))  # stable, and cells stand in column order
    lengths = np.diff(observations.indptr)
    from_end = np.repeat(observations.indptr[1:], lengths) - np.arange(observations.nnz)
    held_out = np.empty(observations.nnz, dtype=np.bool_)
    held_out[order] = (from_end <= count) & (np.repeat(lengths, lengths) > count)
    if not held_out.any():
        raise InvalidDataError(
            f"no row has more than n={count} cells (the longest has {int(lengths.max())}), so there is "
            "nothing to hold out; choose a smaller n"
        )
    return by_mask(observations, held_out)


class ForwardTime(Folds):
    """Walk forward through time: each window of the latest cells is predicted from all before it.

    The latest ``test_fraction`` of the cells is cut into windows of about equal size. Cells of one moment
    stay together; no training cell is as late as the earliest test cell of its split.

    Parameters
    ----------
    n_splits : int, default=5
        Windows.
    test_fraction : float, default=0.2
        Share of the cells in all windows together.

    Examples
    --------
    >>> from unseen import Observations
    >>> from unseen.model_selection import ForwardTime
    >>> X = Observations.from_triples([0] * 10, range(10), range(10), times=range(10))
    >>> for train, test in ForwardTime(2, test_fraction=0.4).split(X):
    ...     print(train.times.max(), test.times.tolist())
    5 [6, 7]
    7 [8, 9]
    """

    def __init__(self, n_splits: int = 5, *, test_fraction: float = 0.2) -> None:
        self.n_splits = check_count("n_splits", n_splits)
        self.test_fraction = check_fraction("test_fraction", test_fraction)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield one split for each window, the earliest first.

        Parameters
        ----------
        X : Observations
            With times.
        y, groups : object
            Ignored; here for scikit-learn's habit.

        Yields
        ------
        Split
            With parts ``train`` and ``test``.
        """
        observations = Observations.from_any(X)
        moments = cell_times(observations)
        ordered = np.sort(moments)
        late = part_size(ordered.size, self.test_fraction, "cells")
        starts = ordered.size - late + np.arange(self.n_splits) * late // self.n_splits
        cuts = ordered[starts]
        if np.any(cuts[1:] == cuts[:-1]) or cuts[0] == ordered[0]:
            raise InvalidDataError(
                f"the latest {late} cells have too few different moments for {self.n_splits} windows with "
                "something before each; ask for fewer windows or a smaller test_fraction"
            )
        for number, cut in enumerate(cuts):
            before, window = moments < cut, moments >= cut
            if number + 1 < self.n_splits:
                window &= moments < cuts[number + 1]
            yield Split(observations.select(before), observations.select(window))

    def __repr__(self) -> str:
        return f"ForwardTime(n_splits={self.n_splits}, test_fraction={self.test_fraction})"


def cell_times(observations: Observations, times: Any = None) -> Array:
    """When each cell arose: as the cells say themselves, or as another matrix with the same cells does.

    The times of that matrix count, or its values where it has none.
    """
    way = (
        "give times to the cells: Observations.from_frame(frame, row=, col=, value=, time=), "
        "from_triples(..., times=), or with_times(times) in the order of X.values"
    )
    if times is None:
        if observations.times is None:
            raise InvalidDataError(f"X says nothing about times; {way}")
        return observations.times
    if not (sparse.issparse(times) or isinstance(times, Observations)):
        raise ParameterError(
            f"times is a {type(times).__name__}, whose order nobody can check against the cells of X; {way}, "
            "or pass times as Observations with the same cells"
        )
    given = Observations.from_any(times)
    same = given.shape == observations.shape and np.array_equal(given.indptr, observations.indptr)
    if not same or not np.array_equal(given.indices, observations.indices):
        raise InvalidDataError(
            f"times store {given.nnz} cells of a {given.shape} matrix that are not the "
            f"{observations.nnz} cells of X, which is {observations.shape}"
        )
    for side, mine, theirs in (
        ("row", observations.row_ids, given.row_ids),
        ("column", observations.col_ids, given.col_ids),
    ):
        if mine is not None and theirs is not None and mine != theirs:
            raise InvalidDataError(f"times have other {side} ids than X: {theirs!r} in place of {mine!r}")
    return given.values if given.times is None else given.times
