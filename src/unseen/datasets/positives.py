"""Positive-only data whose hidden positives are known, and large sparse patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data import Observations
from unseen.datasets.bunches import Summarised
from unseen.datasets.sampling import scores
from unseen.datasets.synthetic import Synthetic
from unseen.exceptions import ParameterError
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, FloatArray, SparseLike
from unseen.validation import check_choice, check_count, check_fraction, check_positive, check_rng

__all__ = ["Positives", "hide_labels", "make_positives", "make_power_law"]

_BLOCK_CELLS = 1 << 20


@dataclass(frozen=True, repr=False)
class Positives(Summarised):
    """Generated positive-unlabelled data.

    Attributes
    ----------
    observations : Observations
        Ones for the positives that are seen.
    positives : csr_array
        Ones for all positives, seen and hidden.
    rho : float
        Probability that a positive is hidden.
    row_factors, col_factors : ndarray
        ``row_factors[i] @ col_factors[j]`` is the probability that cell (i, j) is positive (with
        groups), or what is compared with `threshold` to decide it (with a rank).
    threshold : float or None
        With a rank, a cell is positive where its score is above.
    row_groups, col_groups : ndarray or None
        With groups, the group of each row and column.
    row_features, col_features : ndarray or None
        Rotated factors with noise and columns that say nothing, if features were asked for.
    """

    observations: Observations
    positives: CSR
    rho: float
    row_factors: FloatArray
    col_factors: FloatArray
    threshold: float | None = None
    row_groups: npt.NDArray[np.int64] | None = None
    col_groups: npt.NDArray[np.int64] | None = None
    row_features: FloatArray | None = None
    col_features: FloatArray | None = None

    @property
    def hidden(self) -> CSR:
        """The positives that are not seen."""
        rest = sparse.csr_array(self.positives - self.observations.csr)
        rest.eliminate_zeros()
        return rest


@one_blas_thread()
def make_positives(
    n_rows: int = 300,
    n_cols: int = 300,
    *,
    n_groups: int | None = None,
    rank: int | None = None,
    rho: float = 0.5,
    inside: float = 0.9,
    across: float = 0.1,
    class_prior: float = 0.1,
    n_features: int | None = None,
    feature_noise: float = 0.1,
    random_state: Any = None,
) -> Positives:
    """Generate positives of which a share `rho` is hidden.

    Give either `n_groups` (rows and columns fall into groups; a cell is positive with probability
    `inside` where the groups agree, else `across`) or `rank` (a cell is positive where a Gaussian
    matrix of that rank is among its largest entries). Cells are drawn in blocks of rows: memory grows
    with the positives, not with the size.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    n_groups : int, optional
        Number of groups, by default 10 if `rank` is not given.
    rank : int, optional
        Rank of the score.
    rho : float, default=0.5
        Probability that a positive is hidden, below 1.
    inside, across : float
        Probabilities of a positive with groups; 1 and 0 make the positives exactly of low rank.
    class_prior : float, default=0.1
        Share of positives, with a rank.
    n_features : int, optional
        Number of side features for rows and for columns, at least the number of groups or the rank.
    feature_noise : float, default=0.1
        Standard deviation of noise in the features.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    Positives

    Examples
    --------
    >>> from unseen.datasets import make_positives
    >>> data = make_positives(100, 80, n_groups=4, inside=1.0, across=0.0, rho=0.5, random_state=0)
    >>> int(data.hidden.nnz) + data.observations.nnz == data.positives.nnz
    True
    """
    rng = check_rng(random_state)
    n_rows, n_cols = check_count("n_rows", n_rows), check_count("n_cols", n_cols)
    rho = check_fraction("rho", rho, include_low=True)
    if n_groups is not None and rank is not None:
        raise ParameterError("give either n_groups or rank, not both.")
    groups: list[npt.NDArray[np.int64]] | list[None] = [None, None]
    threshold = None
    if rank is None:
        width = check_count("n_groups", 10 if n_groups is None else n_groups)
        high = check_fraction("inside", inside, include_low=True, include_high=True)
        low = check_fraction("across", across, include_low=True, include_high=True)
        groups = [rng.integers(0, width, n_rows), rng.integers(0, width, n_cols)]
        left = np.eye(width)[groups[0]]
        right = ((high - low) * np.eye(width) + low)[groups[1]]
        informative = (left, np.eye(width)[groups[1]])
    else:
        width = check_count("rank", rank)
        left, right = rng.normal(size=(n_rows, width)), rng.normal(size=(n_cols, width))
        prior = check_fraction("class_prior", class_prior)
        sample = scores(left, right, rng.integers(0, n_rows, 200_000), rng.integers(0, n_cols, 200_000))
        threshold = float(np.quantile(sample, 1 - prior))
        informative = (left, right)
    positives = _draw_positives(left, right, threshold, rng)
    features = [_features(side, n_features, feature_noise, rng) for side in informative]
    return Positives(
        observations=Observations.from_sparse(hide_labels(positives, rho, rng)),
        positives=positives,
        rho=rho,
        row_factors=left,
        col_factors=right,
        threshold=threshold,
        row_groups=groups[0],
        col_groups=groups[1],
        row_features=features[0],
        col_features=features[1],
    )


def _draw_positives(
    left: FloatArray, right: FloatArray, threshold: float | None, rng: np.random.Generator
) -> CSR:
    n_rows, n_cols = left.shape[0], right.shape[0]
    step = max(1, _BLOCK_CELLS // n_cols)
    blocks = []
    for start in range(0, n_rows, step):
        block = left[start : start + step] @ right.T
        limit = rng.random(block.shape) if threshold is None else threshold
        blocks.append(sparse.csr_array((block > limit).astype(np.float64)))
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def _features(
    side: FloatArray, n_features: int | None, noise: float, rng: np.random.Generator
) -> FloatArray | None:
    if n_features is None:
        return None
    if check_count("n_features", n_features) < side.shape[1]:
        raise ParameterError(f"n_features must be at least {side.shape[1]}, got {n_features}.")
    noise = check_positive("feature_noise", noise, strict=False)
    empty = rng.normal(size=(side.shape[0], n_features - side.shape[1]))
    rotation = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    noisy = np.hstack([side, empty]) + noise * rng.normal(size=(side.shape[0], n_features))
    rotated: FloatArray = noisy @ rotation
    return rotated


def hide_labels(Y: SparseLike, fraction: float, random_state: Any = None) -> CSR:
    """Take away a share of the non-zero entries, each with the same probability.

    Parameters
    ----------
    Y : scipy.sparse matrix or array
        Labels.
    fraction : float
        Share of the non-zero entries to hide, from 0 to 1.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    csr_array
        Of the same shape, with ``round(fraction * nnz)`` entries fewer. `Y` is left as it was.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.datasets import hide_labels
    >>> hide_labels(sparse.eye_array(10), 0.8, random_state=0).nnz
    2
    """
    share = check_fraction("fraction", fraction, include_low=True, include_high=True)
    rng = check_rng(random_state)
    seen = sparse.csr_array(Y, copy=True)
    seen.sum_duplicates()
    seen.eliminate_zeros()
    seen.data[rng.permutation(seen.nnz)[: round(share * seen.nnz)]] = 0
    seen.eliminate_zeros()
    return seen


def make_power_law(
    n_rows: int,
    n_cols: int,
    n_cells: int,
    *,
    exponent: float = 0.8,
    rank: int = 0,
    noise: float = 0.1,
    shuffle: bool = True,
    dtype: npt.DTypeLike = np.float32,
    random_state: Any = None,
) -> Synthetic:
    """Generate a large sparse matrix whose rows and columns have power-law popularity.

    Time and memory grow with the cells: tens of millions are fine.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    n_cells : int
        Number of cells drawn. Cells drawn twice count once, so that somewhat fewer are stored.
    exponent : float, default=0.8
        The k-th most popular row or column is drawn with probability proportional to k**-exponent.
    rank : int, default=0
        Rank of the values, which get variance one plus noise; 0 makes all values one.
    noise : float, default=0.1
        Standard deviation of noise, if there is a rank.
    shuffle : bool, default=True
        Otherwise low indices are the popular ones, which flatters caches.
    dtype : {float32, float64}, default=float32
        Type of the values.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    Synthetic

    Examples
    --------
    >>> from unseen.datasets import make_power_law
    >>> make_power_law(1000, 500, 5000, random_state=0).observations.nnz < 5000
    True
    """
    rng = check_rng(random_state)
    n_rows, n_cols = check_count("n_rows", n_rows), check_count("n_cols", n_cols)
    n_cells, rank = check_count("n_cells", n_cells), check_count("rank", rank, minimum=0)
    power = check_positive("exponent", exponent, strict=False)
    kind = np.dtype(dtype)
    check_choice("dtype", kind.name, ("float32", "float64"))
    keys = _popular(n_rows, n_cells, power, shuffle, rng) * n_cols
    keys += _popular(n_cols, n_cells, power, shuffle, rng)
    keys.sort()
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    rows, cols = np.divmod(keys, n_cols)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
    del keys
    width = max(rank, 1)
    if rank:
        left, right = (rng.normal(0, rank**-0.25, (n, rank)).astype(kind) for n in (n_rows, n_cols))
        values = scores(left, right, rows, cols)
        sigma = check_positive("noise", noise, strict=False)
        values += (sigma * rng.standard_normal(rows.size)).astype(kind)
    else:
        left, right = np.ones((n_rows, width), kind), np.ones((n_cols, width), kind)
        values = np.ones(rows.size, kind)
    pattern = sparse.csr_array((values, cols, indptr), shape=(n_rows, n_cols))
    return Synthetic(Observations.from_sparse(pattern), left, right, noise=noise if rank else 0.0)


def _popular(
    n: int, count: int, exponent: float, shuffle: bool, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw indices with power-law probabilities, by inverting the distribution function."""
    heights = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -exponent)
    drawn: npt.NDArray[np.int64] = np.searchsorted(heights, rng.random(count) * heights[-1], side="right")
    np.minimum(drawn, n - 1, out=drawn)  # a product may round up to the last height
    if shuffle:
        drawn = rng.permutation(n)[drawn]
    return drawn
