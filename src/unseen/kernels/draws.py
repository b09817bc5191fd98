"""Random numbers by counter, and rows drawn from their Gaussian conditionals."""

from __future__ import annotations

import math

import numpy as np

from unseen.exceptions import ParameterError
from unseen.kernels import _arguments as args
from unseen.kernels._provider import MODULE as _kernels
from unseen.typing import FloatArray, IndexArray
from unseen.validation import check_count

__all__ = ["als_draw", "normals", "signs"]

MOST_COLUMNS = 1 << 24
"""Of random numbers: what is left of a counter."""
FLOATS = (np.float32, np.float64, np.dtype(np.float32), np.dtype(np.float64))


def normals(
    shape: tuple[int, int],
    seed: int,
    sweep: int,
    block: int,
    *,
    first_row: int = 0,
    dtype: type[np.floating] = np.float64,
    n_threads: int = 1,
) -> FloatArray:
    """Standard normal numbers that depend on seed, sweep, block, row and column alone.

    Whoever asks for a row gets the same numbers, with any number of threads and whatever other rows are
    asked for: Philox 4x32 with a counter made of these, and the transformation of Box and Muller.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns; columns up to 2**24.
    seed : int
        Up to 64 bits.
    sweep, block : int
        Up to 32 bits each: where in a chain the numbers are for.
    first_row : int
        Number of the first row.
    dtype : type
        float32 or float64.
    n_threads : int

    Returns
    -------
    array of this shape

    Examples
    --------
    >>> from unseen.kernels import normals
    >>> both, last = normals((3, 2), seed=0, sweep=1, block=0), normals((1, 2), 0, 1, 0, first_row=2)
    >>> bool((both[2] == last[0]).all())
    True
    """
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise ParameterError(f"shape must be two numbers, got {shape!r}")
    limits = {"seed": seed, "sweep": sweep, "block": block, "first_row": first_row}
    for (name, value), bits in zip(limits.items(), (64, 32, 32, 62), strict=True):
        if check_count(name, value, minimum=0, maximum=None) >> bits:
            raise ParameterError(f"{name} must be below 2**{bits}, got {value}")
    n_rows, n_cols = (check_count("shape", side, minimum=0, maximum=None) for side in shape)
    if n_cols > MOST_COLUMNS or n_rows * n_cols > args.MOST_NUMBERS:
        raise ParameterError(f"shape must have up to 2**24 columns and 2**40 numbers, got {shape}")
    if not any(dtype is kind for kind in FLOATS):
        raise ParameterError(f"dtype must be float32 or float64, got {dtype!r}")
    out: FloatArray = np.empty((n_rows, n_cols), dtype=dtype)
    _kernels.normals(seed, sweep, block, first_row, out, args.threads(n_threads, 20 * out.size))
    return out


def signs(
    skip: IndexArray,
    length: int,
    rate: float,
    size: float,
    seed: int,
    *,
    block: int = 0,
    first_row: int = 0,
    n_threads: int = 1,
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Random signs on few cells of each row, which depend on seed, block, row and cell alone.

    Every cell is ``size`` or ``-size``, each with probability ``rate / 2``, and else nothing. Gaps between
    cells are geometric, so what is not there costs nothing.

    Parameters
    ----------
    skip : integer array of shape (n,)
        A cell of each row that gets no sign, or -1.
    length : int
        Cells of a row, below 2**31.
    rate : float
        Share of cells with a sign, above 0 and up to 1.
    size : float
    seed : int
        Up to 64 bits.
    block : int
        Up to 32 bits: which stretch of a longer row the cells are.
    first_row : int
        Number of the first row.
    n_threads : int

    Returns
    -------
    indptr, indices, values
        A CSR matrix of shape (n, length).

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import signs
    >>> indptr, cells, values = signs(np.array([-1, 2]), 4, 1.0, 0.5, seed=0)
    >>> indptr, cells
    (array([0, 4, 7], dtype=int32), array([0, 1, 2, 3, 0, 1, 3], dtype=int32))
    """
    for name, value, bits in (
        ("length", length, 31),
        ("seed", seed, 64),
        ("block", block, 32),
        ("first_row", first_row, 62),
    ):
        if check_count(name, value, minimum=0, maximum=None) >> bits:
            raise ParameterError(f"{name} must be below 2**{bits}, got {value}")
    rate, size = args.number("rate", rate), args.number("size", size)
    if not 0 < rate <= 1:
        raise ParameterError(f"rate must lie above 0 and not above 1, got {rate}")
    skip = np.clip(args.indices_of("skip", skip), -1, length).astype(np.int32)
    mean = rate * length
    room = math.ceil(mean + 4.0 * math.sqrt(mean)) + 8
    threads = args.threads(n_threads, int(50 * mean * skip.size))
    while True:
        room = min(room, length)
        wide = np.int32 if room * skip.size < 1 << 31 else np.int64
        indptr: IndexArray = np.empty(skip.size + 1, dtype=wide)
        indices: IndexArray = np.empty(room * skip.size, dtype=wide)
        values: FloatArray = np.empty(indices.size)
        given = (seed, block, first_row, length, rate, size, skip.astype(wide, copy=False))
        most = _kernels.signs(*given, indptr, indices, values, threads)
        if most <= room:
            return indptr, indices[: indptr[-1]], values[: indptr[-1]]
        room = most


def als_draw(
    indptr: IndexArray,
    indices: IndexArray,
    curvature: FloatArray | float,
    linear: FloatArray | float,
    other: FloatArray,
    precision: FloatArray,
    noise: FloatArray,
    out: FloatArray,
    *,
    offset: FloatArray | None = None,
    shift: FloatArray | None = None,
    means: FloatArray | None = None,
    sizes: FloatArray | None = None,
    n_threads: int = 1,
) -> FloatArray:
    """Draw every row from its Gaussian conditional, factors of the other side fixed.

    Row i is distributed as N(A^-1 b, A^-1) with ``A = precision + sum_j curvature_ij q_j q_j'`` and
    ``b = offset_i + sum_j linear_ij q_j``, where ``q_j = other[j]`` and j runs over the stored cells of
    the row: with A = U'U it is ``A^-1 b + U^-1 noise_i``. With a ``shift``, ``linear_ij`` stands for
    ``linear_ij - curvature_ij shift[j]``.

    Parameters
    ----------
    indptr, indices : arrays
        CSR pattern with ``len(out)`` rows.
    curvature, linear : arrays of shape (nnz,) or float
        Precision of each cell, and precision times target.
    other : array of shape (m, k)
    precision : array of shape (k, k)
        Of the prior; symmetric and positive definite. A row without it becomes NaN.
    noise : array of shape (n, k)
        Standard normal numbers; zeros give the means.
    out : array of shape (n, k)
        Written in place. Its dtype is that of the computation.
    offset : None or array of shape (n, k) or (1, k)
        Precision of the prior times its mean.
    shift : None or array of shape (m,)
        Part of the scores that is known beforehand, one value a column.
    means : None or array of shape (n, k)
        Written in place: ``A^-1 b`` of each row.
    sizes : None or float64 array of shape (k, k + 1)
        Written in place: what the cells say of the sizes of the columns of ``out``. Of columns that are ``d``
        times as large they have the log density ``d @ sizes[:, -1] - d @ sizes[:, :-1] @ d / 2``, up to a
        constant: with s the products of a row and a factor, one for each coordinate, sums of
        ``curvature s s'`` and of ``linear s`` over the cells.
    n_threads : int

    Returns
    -------
    array of shape (n, k)
        ``out``.

    Examples
    --------
    One cell of value 4 and precision 1, and a prior N(0, 1): the mean is 2.

    >>> import numpy as np
    >>> from unseen.kernels import als_draw
    >>> one = np.ones((1, 1))
    >>> als_draw(np.array([0, 1]), np.array([0]), 1.0, 4.0, one, one, np.zeros((1, 1)), np.zeros((1, 1)))
    array([[2.]])
    """
    dtype = args.common_float(out)
    out = args.table("out", out, dtype)
    other = args.dense("other", other, dtype)
    args.same_rank(other=other, out=out)
    indptr, indices = args.pattern(indptr, indices, len(out), len(other))
    rank = out.shape[1]

    def shaped(name: str, array: FloatArray, *shape: int) -> FloatArray:
        found = args.dense(name, array, dtype, ndim=len(shape))
        if found.shape != shape:
            raise ParameterError(f"{name} must have shape {shape}, got {found.shape}")
        return found

    work = indices.size * out.shape[1] * out.shape[1] + out.size * out.shape[1] * out.shape[1] // 3
    _kernels.als_draw(
        indptr,
        indices,
        args.on_cells("curvature", curvature, len(indices), dtype),
        args.on_cells("linear", linear, len(indices), dtype),
        other,
        shaped("precision", precision, rank, rank),
        None if offset is None else shaped("offset", offset, 1 if len(offset) == 1 else len(out), rank),
        None if shift is None else shaped("shift", shift, len(other)),
        shaped("noise", noise, *out.shape),
        out,
        None if means is None else args.in_place("means", means, dtype, out.shape),
        None if sizes is None else args.in_place("sizes", sizes, np.dtype(np.float64), (rank, rank + 1)),
        args.threads(n_threads, work),
    )
    return out
