"""Classifiers on rows of their own: splits of trees of labels, and linear ones by their duals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from unseen.exceptions import ParameterError
from unseen.kernels import _arguments as args
from unseen.kernels import _provider, reference_labels
from unseen.typing import CSR, Array, FloatArray, IndexArray
from unseen.validation import check_count

__all__ = ["MarginDual", "RowGroups", "label_splits", "linear_duals", "margin_sweep"]

MOST_PASSES = 1_000_000
"""More is no solution but a loop without an end."""

_kernels = _provider.module(reference_labels)


class RowGroups(NamedTuple):
    """Rows of several groups, one group after the other.

    Attributes
    ----------
    starts : integer array of shape (n_groups + 1,)
        Where the rows of each group begin, and the end.
    rows : integer array
        Numbers of rows.
    """

    starts: IndexArray
    rows: IndexArray


class MarginDual(NamedTuple):
    """Dual variables of the multi-label margin loss, and the sums of rows that they make.

    Attributes
    ----------
    slots : integer array of shape (n + 1,)
        Where the slots of each row begin.
    active : integer array, one for each slot
        Labels in use: those of the row first, in order, then others; -1 where there is none.
    alpha : float64 array, one for each slot
        Dual variables.
    sums : array of shape (n_features, n_labels)
        ``sum_i a_ik x_i``, with minus for labels that a row does not have.
    """

    slots: IndexArray
    active: IndexArray
    alpha: FloatArray
    sums: FloatArray

    @classmethod
    def start(cls, X: CSR, Y: CSR, room: int) -> MarginDual:
        """Zero, with room for so many labels of each row besides its own."""
        wide = (
            max(X.indices.dtype.itemsize, Y.indices.dtype.itemsize) > 4
            or Y.nnz + room * len(Y.indptr) > np.iinfo(np.int32).max
        )
        index = np.int64 if wide else np.int32
        sizes = np.diff(Y.indptr)
        slots: IndexArray = np.concatenate([[0], np.cumsum(sizes + room)]).astype(index)
        active: IndexArray = np.full(slots[-1], -1, dtype=index)
        active[np.arange(Y.nnz) + room * np.repeat(np.arange(Y.shape[0]), sizes)] = Y.indices
        sums = np.zeros((X.shape[1], Y.shape[1]), dtype=args.common_float(X.data))
        return cls(slots, active, np.zeros(len(active)), sums)


def label_splits(
    X: CSR,
    gains: CSR,
    groups: RowGroups,
    sides: Array,
    *,
    C: float = 1.0,
    tol: float = 0.01,
    max_passes: int = 50,
    max_rounds: int = 50,
    n_threads: int = 1,
) -> FloatArray:
    """Split each group of rows in two by their labels, with sparse weights that find the sides.

    First, in turns: each side ranks labels by the sum of its rows' gains, and each row goes to the side
    whose ranking gives it the larger ``sum_l gain_l / log2(1 + rank_l)``. Ties keep their side, equal labels
    rank by number. Then, with n rows of which n_side are on a side, coordinate descent on

        |w|_1 + sum_i C n / n_side(i) log(1 + exp(-side_i w.x_i))

    Groups whose rows all end up on one side get weights of zero.

    Parameters
    ----------
    X : csr_array of shape (n, d)
    gains : csr_array of shape (n, n_labels)
    groups : RowGroups
    sides : int8 array, one for each of the groups' rows
        1 or -1. Where to start; holds in the end where ``w.x`` is above 1e-6.
    C, tol : float
        `tol` is a share of the largest violation of optimality at the start.
    max_passes, max_rounds : int
    n_threads : int

    Returns
    -------
    array of shape (n_groups, d)
        Weights.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen.kernels.labels import RowGroups, label_splits
    >>> X = sparse.csr_array(np.repeat(np.eye(2), 2, axis=0))
    >>> sides = np.array([1, 1, -1, 1], dtype=np.int8)
    >>> w = label_splits(X, X, RowGroups(np.array([0, 4]), np.arange(4)), sides, C=10.0)
    >>> sides.tolist(), bool(w[0, 0] > 0 > w[0, 1])
    ([1, 1, -1, -1], True)
    """
    _check_rows(X=X, gains=gains)
    dtype = args.common_float(X.data, gains.data)
    n_rows = X.shape[0]
    if gains.shape[0] != n_rows:
        raise ParameterError(f"X has {n_rows} rows and gains {gains.shape[0]}")
    cells, worth, own = _patterns(X, gains, groups)
    args.in_place("sides", sides, np.dtype(np.int8), own[1].shape)
    weights = np.empty((len(own[0]) - 1, X.shape[1]), dtype=dtype)
    settings = [args.number("C", C), args.number("tol", tol)]
    limits = [
        check_count("max_passes", max_passes, maximum=MOST_PASSES),
        check_count("max_rounds", max_rounds, maximum=MOST_PASSES),
    ]
    work = len(own[1]) * max(len(cells[1]) // max(n_rows, 1), 1) * 10
    _kernels.label_splits(
        *cells, _numbers_of("X", X, cells, dtype), *worth,
        _numbers_of("gains", gains, worth, dtype), *own, sides, weights, *settings, *limits,
        gains.shape[1], args.threads(n_threads, work),
    )  # fmt: skip
    return weights


def linear_duals(
    X: CSR,
    groups: RowGroups,
    signs: Array,
    *,
    alpha: FloatArray | None = None,
    C: tuple[float, float] = (1.0, 1.0),
    margins: tuple[float, float] = (1.0, 1.0),
    l1: float = 0.0,
    squared: bool = True,
    tol: float = 0.01,
    max_passes: int = 100,
    seed: int = 0,
    n_threads: int = 1,
) -> FloatArray:
    """Learn a linear classifier of the rows of each group, by coordinate descent in the dual.

    With ``h(z) = max(0, z)``, or its square, minimises for each group

        1/2 ||w||^2 + l1 ||w||_1 + sum_i C_i h(margin_i - sign_i w.x_i)

    by steps in a of the dual ``-1/2 ||w(a)||^2 + sum_i margin_i a_i (- a_i^2 / (4 C_i))``, where w(a) is
    ``sum_i a_i sign_i x_i`` shrunk by `l1`, and a is between 0 and C (and beyond for the square). Rows are
    visited in an order drawn from `seed`; those that stay at a bound are left out until others are solved.

    Parameters
    ----------
    X : csr_array of shape (n, d)
    groups : RowGroups
    signs : int8 array, one for each of the groups' rows
        1 or -1.
    alpha : float64 array, one for each of the groups' rows, optional
        Where to start; holds the solution in the end.
    C, margins : pairs of float
        Of positive and of negative rows.
    l1 : float
    squared : bool
    tol : float
        Largest violation of optimality in the dual that is accepted.
    max_passes, seed : int
    n_threads : int

    Returns
    -------
    array of shape (n_groups, d)
        Weights.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen.kernels.labels import RowGroups, linear_duals
    >>> X = sparse.csr_array(np.eye(2))
    >>> group = RowGroups(np.array([0, 2]), np.arange(2))
    >>> linear_duals(X, group, np.array([1, -1], dtype=np.int8), squared=False, C=(0.5, 9.0)).tolist()
    [[0.5, -1.0]]
    """
    _check_rows(X=X)
    dtype = args.common_float(X.data)
    cells, _, own = _patterns(X, X, groups)
    args.in_place("signs", signs, np.dtype(np.int8), own[1].shape)
    alpha = np.zeros(len(own[1])) if alpha is None else alpha
    args.in_place("alpha", alpha, np.dtype(np.float64), own[1].shape)
    weights = np.empty((len(own[0]) - 1, X.shape[1]), dtype=dtype)
    settings = [*_pair("C", C), *_pair("margins", margins), args.number("l1", l1), args.number("tol", tol)]
    if not isinstance(squared, (bool, np.bool_)):
        raise ParameterError(f"squared must be True or False, got {squared!r}")
    work = len(own[1]) * max(len(cells[1]) // max(X.shape[0], 1), 1) * 10
    _kernels.linear_duals(
        *cells, _numbers_of("X", X, cells, dtype), *own, signs, alpha, weights, *settings,
        bool(squared), check_count("max_passes", max_passes, maximum=MOST_PASSES),
        check_count("seed", seed, minimum=0), args.threads(n_threads, work),
    )  # fmt: skip
    return weights


def margin_sweep(
    X: CSR,
    Y: CSR,
    visits: IndexArray,
    state: MarginDual,
    costs: FloatArray,
    *,
    l1: float = 0.0,
    n_candidates: int = 1,
    feature_share: float = 1.0,
    label_share: float = 1.0,
    seed: int = 0,
) -> FloatArray:
    """Visit rows and improve the dual of the multi-label margin loss over the labels that each uses.

    The primal, with z = Wx and w_k the sums of label k shrunk by `l1`, is::

        sum_k (1/2 |w_k|^2 + l1 |w_k|_1) + sum_i C_i max(0, 1 + max_{k not in y_i} z_ik - min_{k in y_i} z_ik)

    and the dual ``sum of a of own labels - 1/2 sum_k |w_k(a)|^2`` over a >= 0 with the same sum over own
    labels and over others in each row, at most C_i. A visit adds the labels that violate the margin
    most to those in use, moves their dual variables to the maximum of a parabola below the dual, and drops
    what is zero.

    One thread works, since rows share the weights.

    Parameters
    ----------
    X : csr_array of shape (n, d)
    Y : csr_array of shape (n, n_labels)
        Stored cells are labels.
    visits : integer array
        Rows in the order in which they are visited.
    state : MarginDual
        Changed in place.
    costs : float64 array of shape (n,)
        C of each row.
    l1 : float
    n_candidates : int
        Labels that a visit adds at most.
    feature_share, label_share : float
        Below 1, the search for violators draws features in proportion to their size, so many with
        replacement as this share of a row's, or looks at one part of the labels only.
    seed : int

    Returns
    -------
    float64 array of shape (n,)
        What each row contributes to the gap between primal and dual, as it was when the row was visited; zero
        for others. Of the labels that were looked at, where the search draws.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from unseen.kernels.labels import MarginDual, margin_sweep
    >>> X = sparse.csr_array(np.eye(2))
    >>> state = MarginDual.start(X, X, room=1)
    >>> gaps = margin_sweep(X, X, np.arange(2), state, np.full(2, 9.0))
    >>> state.sums.tolist(), gaps.tolist()
    ([[0.5, -0.5], [-0.5, 0.5]], [9.0, 9.0])
    """
    _check_rows(X=X, Y=Y)
    dtype = args.common_float(X.data)
    n_rows = X.shape[0]
    if Y.shape[0] != n_rows:
        raise ParameterError(f"X has {n_rows} rows and Y {Y.shape[0]}")
    if not isinstance(state, MarginDual) or getattr(state.active, "dtype", None) not in (np.int32, np.int64):
        raise ParameterError("state must be a MarginDual")
    active = state.active
    index = active.dtype
    cells, labels = (args.pattern(part.indptr, part.indices, n_rows, part.shape[1]) for part in (X, Y))
    args.in_place("active", active, index, (active.size,))
    args.in_place("alpha", state.alpha, np.dtype(np.float64), active.shape)
    args.in_place("sums", state.sums, dtype, (X.shape[1], Y.shape[1]))
    slots = args.indices_of("slots", state.slots)
    sizes = np.diff(labels[0])
    if (
        slots.shape != (n_rows + 1,)
        or slots[0] != 0
        or slots[-1] != len(active)
        or np.any(np.diff(slots) < sizes)
        or not np.array_equal(
            active[np.arange(len(labels[1])) + np.repeat(slots[:-1] - labels[0][:-1], sizes)], labels[1]
        )
        or active.min(initial=-1) < -1
        or active.max(initial=-1) >= Y.shape[1]
    ):
        raise ParameterError("the dual variables were not started with this Y")
    visits = args.within("visits", args.indices_of("visits", visits), n_rows)
    costs = args.dense("costs", costs, np.dtype(np.float64), ndim=1)
    if len(costs) != n_rows:
        raise ParameterError(f"costs must have {n_rows} values, one a row; got {len(costs)}")
    gaps = np.zeros(n_rows)
    _kernels.margin_sweep(
        *(part.astype(index, copy=False) for part in cells), _numbers_of("X", X, cells, dtype),
        *(part.astype(index, copy=False) for part in labels), visits.astype(index), slots.astype(index),
        active, state.alpha, state.sums, costs, gaps,
        args.number("l1", l1), args.number("feature_share", feature_share),
        args.number("label_share", label_share), check_count("n_candidates", n_candidates),
        check_count("seed", seed, minimum=0), 1,
    )  # fmt: skip
    return gaps


def _check_rows(**matrices: Any) -> None:
    """Refuse what is no CSR matrix."""
    for name, matrix in matrices.items():
        if not isinstance(matrix, (sparse.csr_array, sparse.csr_matrix)) or matrix.ndim != 2:
            raise ParameterError(f"{name} must be a CSR matrix, got {type(matrix).__name__}")


def _numbers_of(name: str, matrix: CSR, cells: tuple[IndexArray, IndexArray], dtype: Any) -> FloatArray:
    """Values of a matrix, as many as its pattern has cells."""
    found = args.dense(name, matrix.data, dtype, ndim=1)
    if len(found) != len(cells[1]):
        raise ParameterError(f"{name} has {len(cells[1])} cells and {len(found)} values")
    return found


def _pair(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ParameterError(f"{name} must be a pair of numbers, got {value!r}")
    return args.number(name, value[0]), args.number(name, value[1])


def _patterns(X: CSR, gains: CSR, groups: RowGroups) -> list[tuple[IndexArray, IndexArray]]:
    """Patterns of both matrices and of the groups, in one width."""
    if not isinstance(groups, RowGroups):
        raise ParameterError(f"groups must be RowGroups, got {type(groups).__name__}")
    n_rows = X.shape[0]
    found = [
        args.pattern(X.indptr, X.indices, n_rows, X.shape[1]),
        args.pattern(gains.indptr, gains.indices, n_rows, gains.shape[1]),
        args.pattern(groups.starts, groups.rows, None, n_rows),
    ]
    width = np.result_type(*(part.dtype for pair in found for part in pair))
    return [
        (indptr.astype(width, copy=False), indices.astype(width, copy=False)) for indptr, indices in found
    ]
