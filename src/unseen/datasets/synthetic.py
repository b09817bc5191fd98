"""Generators of matrices whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unseen.data import Observations
from unseen.datasets.bunches import Summarised
from unseen.datasets.sampling import draw_cells, scores
from unseen.exceptions import ParameterError
from unseen.parallel import one_blas_thread
from unseen.typing import Array, FloatArray
from unseen.validation import check_count, check_entries, check_fraction, check_positive, check_rng

__all__ = ["Synthetic", "make_fourier", "make_gimc_toy", "make_imc", "make_low_rank", "make_ratings"]


@dataclass(frozen=True, repr=False)
class Synthetic(Summarised):
    """A generated matrix: what a model may see, and what it should find.

    Attributes
    ----------
    observations : Observations
        The cells that are seen, noise included.
    row_factors, col_factors : ndarray
        The truth: the noise-free value of cell (i, j) is ``row_factors[i] @ col_factors[j]``.
    row_features, col_features : ndarray or None
        Side information.
    row_weights, col_weights : ndarray or None
        Where features explain everything: the factors are features times weights.
    noise : float
        Standard deviation of what was added to the seen cells.
    """

    observations: Observations
    row_factors: FloatArray
    col_factors: FloatArray
    row_features: FloatArray | None = None
    col_features: FloatArray | None = None
    row_weights: FloatArray | None = None
    col_weights: FloatArray | None = None
    noise: float = 0.0

    def truth(self, rows: Any, cols: Any) -> FloatArray:
        """Noise-free values of some cells.

        Parameters
        ----------
        rows, cols : array-like of int
            Indices of equal length.

        Returns
        -------
        ndarray
        """
        rows, cols = check_entries(rows, cols, self.observations.shape)
        return scores(self.row_factors, self.col_factors, rows, cols)


def make_low_rank(
    n_rows: int = 300,
    n_cols: int = 200,
    rank: int = 5,
    *,
    density: float = 0.2,
    noise: float = 0.1,
    random_state: Any = None,
) -> Synthetic:
    """Generate a matrix of low rank, seen at random cells with noise.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    rank : int, default=5
        Rank of the truth, whose entries have variance one.
    density : float, default=0.2
        Share of the cells that are seen.
    noise : float, default=0.1
        Standard deviation of Gaussian noise on the seen cells.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    Synthetic

    Examples
    --------
    >>> from unseen.datasets import make_low_rank
    >>> data = make_low_rank(100, 80, rank=3, density=0.25, noise=0.0, random_state=0)
    >>> data.observations
    Observations(100 x 80, 2,000 cells = 25%, float64)
    """
    rng = check_rng(random_state)
    n_rows, n_cols, rank = _sizes(n_rows=n_rows, n_cols=n_cols, rank=rank)
    scale = rank**-0.25  # so that a sum of `rank` products has variance one
    left, right = rng.normal(0, scale, (n_rows, rank)), rng.normal(0, scale, (n_cols, rank))
    return _observe(left, right, density, noise, rng)


@one_blas_thread()
def make_imc(
    n_rows: int = 300,
    n_cols: int = 200,
    n_row_features: int = 10,
    n_col_features: int = 8,
    rank: int = 3,
    *,
    density: float = 0.1,
    noise: float = 0.1,
    random_state: Any = None,
) -> Synthetic:
    """Generate a matrix that side features explain: A = X Z Y' + noise, with Z of low rank.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    n_row_features, n_col_features : int
        Number of Gaussian features of rows (X) and columns (Y).
    rank : int, default=3
        Rank of Z, at most the smaller number of features.
    density : float, default=0.1
        Share of the cells that are seen.
    noise : float, default=0.1
        Standard deviation of Gaussian noise; the entries of the truth have variance one, about.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    Synthetic
        ``row_weights @ col_weights.T`` is Z.

    Examples
    --------
    >>> from unseen.datasets import make_imc
    >>> data = make_imc(100, 80, 5, 4, rank=2, random_state=0)
    >>> data.row_features.shape, data.row_weights.shape
    ((100, 5), (5, 2))
    """
    rng = check_rng(random_state)
    n_rows, n_cols, rank = _sizes(n_rows=n_rows, n_cols=n_cols, rank=rank)
    d, e = _sizes(n_row_features=n_row_features, n_col_features=n_col_features)
    if rank > min(d, e):
        raise ParameterError(f"rank must be at most {min(d, e)}, the smaller number of features; got {rank}.")
    X, Y = rng.normal(size=(n_rows, d)), rng.normal(size=(n_cols, e))
    P = rng.normal(0, (d * np.sqrt(rank)) ** -0.5, (d, rank))
    Q = rng.normal(0, (e * np.sqrt(rank)) ** -0.5, (e, rank))
    return _observe(
        X @ P, Y @ Q, density, noise, rng, row_features=X, col_features=Y, row_weights=P, col_weights=Q
    )


@one_blas_thread()
def make_ratings(
    n_rows: int = 600,
    n_cols: int = 400,
    *,
    rank: int = 4,
    n_row_features: int = 8,
    n_col_features: int = 6,
    explained: float = 0.6,
    density: float = 0.05,
    noise: float = 0.4,
    random_state: Any = None,
) -> Synthetic:
    """Generate ratings from 1 to 5 that side features explain in part.

    A rating is ``3.4 + row offset + column offset + taste`` plus noise, rounded and cut to 1..5. Of
    the variance of offsets and of tastes a share `explained` is a function of the features, so rows
    without ratings can be predicted up to the rest.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    rank : int, default=4
        Rank of the tastes that features explain, and again of those they do not.
    n_row_features, n_col_features : int
        Number of features.
    explained : float, default=0.6
        Share of the variance that features explain, from 0 to 1.
    density : float, default=0.05
        Share of the cells that are seen.
    noise : float, default=0.4
        Standard deviation of noise before rounding.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    Synthetic
        `truth` gives the score before noise and rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.datasets import make_ratings
    >>> data = make_ratings(100, 80, random_state=0)
    >>> np.unique(data.observations.values)
    array([1., 2., 3., 4., 5.])
    """
    rng = check_rng(random_state)
    n_rows, n_cols, rank = _sizes(n_rows=n_rows, n_cols=n_cols, rank=rank)
    d, e = _sizes(n_row_features=n_row_features, n_col_features=n_col_features)
    share = check_fraction("explained", explained, include_low=True, include_high=True)
    X, Y = rng.normal(size=(n_rows, d)), rng.normal(size=(n_cols, e))
    scale = np.sqrt(0.7) * rank**-0.25  # tastes have variance 0.49, offsets 0.16 and 0.25

    def side(features: FloatArray, offset_size: float) -> tuple[Array, Array, Array]:
        """Offset, explained taste and own taste of each entity."""
        n, width = features.shape
        from_features = features @ rng.normal(0, width**-0.5, (width, 1 + rank))
        own = rng.normal(size=(n, 1 + rank))
        offset = offset_size * (np.sqrt(share) * from_features[:, :1] + np.sqrt(1 - share) * own[:, :1])
        # Fourth roots: a taste is a product of two sides.
        return offset, share**0.25 * scale * from_features[:, 1:], (1 - share) ** 0.25 * scale * own[:, 1:]

    row_offset, row_side, row_own = side(X, 0.4)
    col_offset, col_side, col_own = side(Y, 0.5)
    left = np.hstack([3.4 + row_offset, np.ones_like(row_offset), row_side, row_own])
    right = np.hstack([np.ones_like(col_offset), col_offset, col_side, col_own])
    data = _observe(left, right, density, noise, rng, row_features=X, col_features=Y)
    stars = np.clip(np.rint(data.observations.values), 1, 5)
    return Synthetic(**{**vars(data), "observations": data.observations.with_values(stars)})


def make_gimc_toy(
    n_rows: int = 200,
    n_cols: int = 200,
    n_features: int = 50,
    *,
    fraction: float = 0.2,
    noise_variance: float = 0.1,
    random_state: Any = None,
) -> Synthetic:
    """Generate the toy problem of goal-directed inductive matrix completion: A = X Y' + noise.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    n_features : int, default=50
        Number of features of rows and of columns, standard Gaussian.
    fraction : float, default=0.2
        Share of the cells that are seen.
    noise_variance : float, default=0.1
        Variance of the noise.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    Synthetic
        Its factors are the features themselves.

    Examples
    --------
    >>> from unseen.datasets import make_gimc_toy
    >>> make_gimc_toy(random_state=0).observations
    Observations(200 x 200, 8,000 cells = 20%, float64)
    """
    rng = check_rng(random_state)
    n_rows, n_cols, n_features = _sizes(n_rows=n_rows, n_cols=n_cols, n_features=n_features)
    noise = np.sqrt(check_positive("noise_variance", noise_variance, strict=False))
    X, Y = rng.normal(size=(n_rows, n_features)), rng.normal(size=(n_cols, n_features))
    return _observe(X, Y, fraction, noise, rng, row_features=X, col_features=Y, density_name="fraction")


@one_blas_thread()
def make_fourier(
    n_rows: int = 200,
    n_cols: int = 200,
    n_features: int = 10,
    *,
    n_waves: int = 5,
    rank: int = 5,
    frequency: float = 0.6,
    density: float = 0.1,
    noise: float = 0.1,
    random_state: Any = None,
) -> Synthetic:
    """Generate a matrix that depends on its features through hidden waves.

    ``A = f(X U) Z f(Y V)'`` with f = (cos, sin): linear models of the features see nothing, models that
    learn the directions U and V see everything.

    Parameters
    ----------
    n_rows, n_cols : int
        Size.
    n_features : int, default=10
        Number of Gaussian features of rows and of columns.
    n_waves : int, default=5
        Number of hidden directions on each side.
    rank : int, default=5
        Rank of Z, at most twice `n_waves`.
    frequency : float, default=0.6
        Standard deviation of the entries of U and V.
    density : float, default=0.1
        Share of the cells that are seen.
    noise : float, default=0.1
        Standard deviation of noise; the entries of the truth have variance one.
    random_state : int, Generator, RandomState or None
        Source of random numbers.

    Returns
    -------
    Synthetic

    Examples
    --------
    >>> from unseen.datasets import make_fourier
    >>> make_fourier(random_state=0).row_factors.shape
    (200, 5)
    """
    rng = check_rng(random_state)
    n_rows, n_cols, rank = _sizes(n_rows=n_rows, n_cols=n_cols, rank=rank)
    n_features, n_waves = _sizes(n_features=n_features, n_waves=n_waves)
    check_positive("frequency", frequency)
    if rank > 2 * n_waves:
        raise ParameterError(f"rank must be at most {2 * n_waves}, twice n_waves; got {rank}.")
    X, Y = rng.normal(size=(n_rows, n_features)), rng.normal(size=(n_cols, n_features))

    def waves(features: FloatArray) -> FloatArray:
        angles = features @ rng.normal(0, frequency, (n_features, n_waves))
        return np.hstack([np.cos(angles), np.sin(angles)]) @ rng.normal(size=(2 * n_waves, rank))

    left, right = waves(X), waves(Y)
    # Variance of all cells from two Gram matrices and two sums, without the cells.
    second = np.sum((left.T @ left) * (right.T @ right)) / (n_rows * n_cols)
    mean = left.mean(axis=0) @ right.mean(axis=0)
    left /= np.sqrt(second - mean**2)
    return _observe(left, right, density, noise, rng, row_features=X, col_features=Y)


def _sizes(**sizes: Any) -> tuple[int, ...]:
    return tuple(check_count(name, size) for name, size in sizes.items())


def _observe(
    left: FloatArray,
    right: FloatArray,
    density: float,
    noise: float,
    rng: np.random.Generator,
    *,
    density_name: str = "density",
    **extra: npt.NDArray[Any] | None,
) -> Synthetic:
    """Draw the seen cells of ``left @ right.T`` and add noise to them."""
    share = check_fraction(density_name, density, include_high=True)
    noise = check_positive("noise", noise, strict=False)
    shape = (left.shape[0], right.shape[0])
    rows, cols = draw_cells(shape, max(1, round(share * shape[0] * shape[1])), rng)
    values = scores(left, right, rows, cols) + rng.normal(0, noise, rows.size)
    seen = Observations.from_triples(rows, cols, values, shape)
    return Synthetic(seen, left, right, noise=noise, **extra)
