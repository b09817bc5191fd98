"""The few loops over stored cells that decide how fast everything else is.

Every function here runs in native code where the extension module is available and in a NumPy twin
(:mod:`unseen.kernels.reference`) where it is not. ``UNSEEN_KERNELS=reference`` in the environment
asks for the twins; ``UNSEEN_ISA=baseline|avx2|avx512`` picks an instruction set for the native code.

Arrays may be float32 or float64; one float64 array makes the whole call float64. Results have the
same bits for every number of threads.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from unseen.exceptions import ParameterError
from unseen.kernels import _arguments as args
from unseen.kernels._provider import MODULE as _kernels
from unseen.kernels._provider import NAME as _name
from unseen.kernels.cooccurrence import cooccurrence
from unseen.kernels.devices import check_device, check_memory, get_provider, provider_for
from unseen.kernels.draws import als_draw, normals, signs
from unseen.kernels.labels import MarginDual, RowGroups, label_splits, linear_duals, margin_sweep
from unseen.kernels.plan import plan
from unseen.kernels.providers import HostProvider
from unseen.kernels.skip_gram import joint_sweep, sgns_sweep
from unseen.typing import FloatArray, IndexArray
from unseen.validation import check_choice, check_count

__all__ = [
    "MarginDual",
    "RowGroups",
    "als_draw",
    "als_solve",
    "ccd_sweep",
    "check_device",
    "check_memory",
    "cooccurrence",
    "get_provider",
    "gram",
    "isa",
    "joint_sweep",
    "label_splits",
    "linear_duals",
    "margin_sweep",
    "normals",
    "plan",
    "programs",
    "provider",
    "provider_for",
    "sddmm",
    "sgns_sweep",
    "signs",
    "spmm",
    "spmm_t",
    "topk",
]

MOST_STEPS = 1_000_000


def provider() -> str:
    """Say who computes: ``"native"`` or ``"reference"``."""
    return _name


def isa() -> str:
    """Instruction set of the native code (``"baseline"``, ``"avx2"``, ``"avx512"``), or ``"numpy"``."""
    return str(_kernels.isa())


def programs() -> list[Any]:
    """Sources of the device code and the options that NVRTC compiles them with.

    Returns
    -------
    list of Program
        Each has a ``name``, a ``source``, ``options`` and the names of its ``kernels``.

    Examples
    --------
    >>> from unseen.kernels import programs
    >>> programs()[0].kernels[0]
    'small'
    """
    return HostProvider.programs()


def gram(dense: FloatArray, *, n_threads: int = 1) -> FloatArray:
    """Gram matrix of the columns, with float64 sums.

    Parameters
    ----------
    dense : array of shape (n, k)
    n_threads : int

    Returns
    -------
    array of shape (k, k)
        ``dense' dense`` in the dtype of ``dense``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import gram
    >>> gram(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]])
    """
    dense = args.dense("dense", dense, args.common_float(dense))
    result: FloatArray = _kernels.gram(dense, args.threads(n_threads, dense.size * dense.shape[1]))
    return result


def sddmm(
    indptr: IndexArray, indices: IndexArray, left: FloatArray, right: FloatArray, *, n_threads: int = 1
) -> FloatArray:
    """Scores of the stored cells, ``left[i] . right[j]``.

    Parameters
    ----------
    indptr, indices : arrays
        CSR pattern with ``len(left)`` rows.
    left, right : arrays of shape (n, k) and (m, k)
    n_threads : int

    Returns
    -------
    array of shape (nnz,)

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import sddmm
    >>> sddmm(np.array([0, 1, 2]), np.array([1, 0]), np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 2.])
    """
    dtype = args.common_float(left, right)
    left, right = args.dense("left", left, dtype), args.dense("right", right, dtype)
    args.same_rank(left=left, right=right)
    indptr, indices = args.pattern(indptr, indices, len(left), len(right))
    result: FloatArray = _kernels.sddmm(
        indptr, indices, left, right, args.threads(n_threads, indices.size * left.shape[1])
    )
    return result


def spmm(
    indptr: IndexArray,
    indices: IndexArray,
    data: FloatArray | float,
    dense: FloatArray,
    *,
    n_threads: int = 1,
) -> FloatArray:
    """CSR matrix times a tall dense one.

    Parameters
    ----------
    indptr, indices : arrays
        CSR pattern.
    data : array of shape (nnz,) or float
        Stored values; a float stands for the same value everywhere.
    dense : array of shape (m, k)
    n_threads : int

    Returns
    -------
    array of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import spmm
    >>> spmm(np.array([0, 2]), np.array([0, 1]), np.array([1.0, 10.0]), np.array([[1.0], [2.0]]))
    array([[21.]])
    """
    dtype = args.common_float(data, dense)
    dense = args.dense("dense", dense, dtype)
    indptr, indices = args.pattern(indptr, indices, None, len(dense))
    data = args.on_cells("data", data, len(indices), dtype)
    result: FloatArray = _kernels.spmm(
        indptr,
        indices,
        data,
        dense,
        args.threads(n_threads, indices.size * dense.shape[1]),
    )
    return result


def spmm_t(
    indptr: IndexArray,
    indices: IndexArray,
    data: FloatArray | float,
    dense: FloatArray,
    n_cols: int,
    *,
    n_threads: int = 1,
) -> FloatArray:
    """Transposed CSR matrix times a tall dense one.

    Parameters
    ----------
    indptr, indices : arrays
        CSR pattern with ``len(dense)`` rows.
    data : array of shape (nnz,) or float
        Stored values; a float stands for the same value everywhere.
    dense : array of shape (n, k)
    n_cols : int
        Number of columns of the CSR matrix.
    n_threads : int

    Returns
    -------
    array of shape (n_cols, k)

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import spmm_t
    >>> spmm_t(np.array([0, 2]), np.array([0, 2]), np.array([1.0, 10.0]), np.array([[2.0]]), 3)
    array([[ 2.],
           [ 0.],
           [20.]])
    """
    dtype = args.common_float(data, dense)
    dense = args.dense("dense", dense, dtype)
    n_cols = check_count("n_cols", n_cols, minimum=0)
    if n_cols * dense.shape[1] > args.MOST_NUMBERS:
        raise ParameterError(
            f"n_cols={n_cols} rows of {dense.shape[1]} numbers are more than can be told apart"
        )
    indptr, indices = args.pattern(indptr, indices, len(dense), n_cols)
    data = args.on_cells("data", data, len(indices), dtype)
    result: FloatArray = _kernels.spmm_t(
        indptr, indices, data, dense, n_cols, args.threads(n_threads, indices.size * dense.shape[1])
    )
    return result


def als_solve(
    indptr: IndexArray,
    indices: IndexArray,
    curvature: FloatArray | float,
    linear: FloatArray | float,
    other: FloatArray,
    gram: FloatArray,
    offset: FloatArray | None,
    out: FloatArray,
    *,
    ridge: FloatArray | None = None,
    gram_scale: FloatArray | None = None,
    shift: FloatArray | None = None,
    row_values: FloatArray | None = None,
    method: Literal["cholesky", "cg"] = "cholesky",
    cg_steps: int = 3,
    n_threads: int = 1,
    module: Any = _kernels,
) -> FloatArray:
    """Solve the normal equations of every row against fixed factors of the other side.

    Row i solves ``(base_i + sum_j curvature_ij q_j q_j') out[i] = offset_i + sum_j linear_ij q_j`` with
    ``base_i = gram_scale[i] gram + ridge[i] I``, ``q_j = other[j]`` and j over the stored cells of row i;
    with a ``shift``, ``linear_ij`` stands for ``linear_ij - curvature_ij shift[j]``, so that out is fitted
    to what ``shift`` leaves.
    A row whose matrix is not positive definite gets the least-squares solution of least norm.

    Parameters
    ----------
    indptr, indices : arrays
        CSR pattern with ``len(out)`` rows.
    curvature, linear : arrays of shape (nnz,) or float
    other : array of shape (m, k)
    gram : array of shape (k, k)
        Symmetric.
    offset : None, array of shape (k,) or (n, k)
    out : array of shape (n, k)
        Written in place; the start of ``"cg"``. Its dtype is that of the computation.
    ridge : None or array of shape (n,)
    gram_scale : None or array of shape (n,)
        Factor of ``gram`` in each row, zero or larger; one by default.
    shift : None or array of shape (m,)
        Part of the scores that is known beforehand, one value a column.
    row_values : None or float64 array of shape (n,)
        Written in place: what each row minimises, at its solution ``x = out[i]``, that is
        ``1/2 x'base_i x - offset_i . x + sum_j (curvature_ij s_j^2 / 2 - linear_ij s_j)``
        with the scores ``s_j = q_j . x + shift[j]``. Nearly free here, a pass over all cells elsewhere.
    method : {"cholesky", "cg"}
        ``"cg"`` takes at most ``cg_steps`` conjugate-gradient steps from the incoming ``out``, with
        ``gram + ridge[i] I`` as preconditioner, and stops early when nothing is left to improve.
    cg_steps : int
    n_threads : int
    module : module
        Who computes: the one that is loaded, or its twins.

    Returns
    -------
    array of shape (n, k)
        ``out``.

    Examples
    --------
    One observed value of 4 for one row, with a ridge of 1: (1 + 1) x = 4.

    >>> import numpy as np
    >>> from unseen.kernels import als_solve
    >>> one = np.ones((1, 1))
    >>> als_solve(np.array([0, 1]), np.array([0]), 1.0, np.array([4.0]), one, one, None, np.zeros((1, 1)))
    array([[2.]])
    """
    dtype = args.common_float(out)
    other = args.dense("other", other, dtype)
    rank = other.shape[1]
    out = args.in_place("out", out, dtype, (*np.shape(out)[:1], rank))
    if (cg_steps := check_count("cg_steps", cg_steps, minimum=0)) > MOST_STEPS:
        raise ParameterError(f"cg_steps must be at most {MOST_STEPS}, got {cg_steps}")
    indptr, indices = args.pattern(indptr, indices, len(out), len(other))
    gram = args.dense("gram", gram, dtype)
    if gram.shape != (rank, rank):
        raise ParameterError(f"gram must have shape {(rank, rank)}, got {gram.shape}")
    if offset is not None:
        offset = args.dense("offset", np.atleast_2d(offset), dtype)
        if offset.shape[0] not in (1, len(out)) or offset.shape[1] != rank:
            raise ParameterError(f"offset must have shape {(rank,)} or {out.shape}, got {offset.shape}")
    if ridge is not None:
        ridge = args.dense("ridge", ridge, dtype, ndim=1)
        if len(ridge) != len(out):
            raise ParameterError(f"ridge must have {len(out)} values, one a row; got {len(ridge)}")
    if gram_scale is not None:
        gram_scale = args.dense("gram_scale", gram_scale, dtype, ndim=1)
        if len(gram_scale) != len(out):
            raise ParameterError(f"gram_scale must have {len(out)} values, one a row; got {len(gram_scale)}")
    if shift is not None:
        shift = args.dense("shift", shift, dtype, ndim=1)
        if len(shift) != len(other):
            raise ParameterError(f"shift must have {len(other)} values, one a row of other; got {len(shift)}")
    if row_values is not None:
        row_values = args.in_place("row_values", row_values, np.dtype(np.float64), (len(out),))
    check_choice("method", method, ("cholesky", "cg"))
    curvature = args.on_cells("curvature", curvature, len(indices), dtype)
    linear = args.on_cells("linear", linear, len(indices), dtype)
    n_threads = args.threads(n_threads, rank * (len(indices) + out.size))
    module.als_solve(
        indptr,
        indices,
        curvature,
        linear,
        other,
        gram,
        offset,
        out,
        ridge,
        shift,
        row_values,
        method,
        cg_steps,
        n_threads,
        gram_scale,
    )
    return out


def ccd_sweep(
    indptr: IndexArray,
    indices: IndexArray,
    csc_indptr: IndexArray,
    csc_indices: IndexArray,
    csc_order: IndexArray,
    curvature: FloatArray | float,
    linear: FloatArray | float,
    scores: FloatArray,
    left: FloatArray,
    right: FloatArray,
    *,
    background: float = 0.0,
    target: float = 0.0,
    reg: float = 0.0,
    l1: float = 0.0,
    lower: float = -np.inf,
    upper: float = np.inf,
    inner: int = 1,
    n_threads: int = 1,
) -> None:
    """One sweep of cyclic coordinate descent, component by component (CCD++), in place.

    Minimises, with s_ij = left[i] . right[j] and every entry of the factors in [lower, upper]::

        sum_stored [ c_ij/2 s_ij^2 - d_ij s_ij ] + background/2 ||L R'||_F^2 - background target (L'1).(R'1)
            + reg/2 (||L||^2 + ||R||^2) + l1 (|L|_1 + |R|_1)

    Each coordinate is set to its exact minimiser, so the objective never increases.

    Parameters
    ----------
    indptr, indices : arrays
        CSR pattern with ``len(left)`` rows.
    csc_indptr, csc_indices, csc_order : arrays
        The same pattern by columns; cell t of the CSC order is cell ``csc_order[t]`` of the CSR order.
    curvature, linear : arrays of shape (nnz,) in CSR order, or float
        c and d above.
    scores : array of shape (nnz,)
        s on the stored cells, on entry and on exit.
    left, right : arrays of shape (n, k) and (m, k)
    background, target, reg, l1, lower, upper : float
    inner : int
        Passes over each component before the next.
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import ccd_sweep
    >>> one, zero = np.array([0, 1]), np.array([0])
    >>> left, right, scores = np.ones((1, 1)), np.ones((1, 1)), np.ones(1)
    >>> ccd_sweep(one, zero, one, zero, zero, 1.0, 6.0, scores, left, right)
    >>> scores
    array([6.])
    """
    dtype = args.common_float(left)
    left, right = args.table("left", left, dtype), args.table("right", right, dtype)
    args.same_rank(left=left, right=right)
    indptr, indices = args.pattern(indptr, indices, len(left), len(right))
    csc_indptr, csc_indices = args.pattern(csc_indptr, csc_indices, len(right), len(left))
    csc_order = args.indices_of("csc_order", csc_order)
    if len({len(indices), len(csc_indices), len(csc_order)}) > 1:
        raise ParameterError("the CSR and the CSC pattern must have the same number of cells")
    args.within("csc_order", csc_order, len(indices))
    if (inner := check_count("inner", inner)) > MOST_STEPS:
        raise ParameterError(f"inner must be at most {MOST_STEPS}, got {inner}")
    limits = {
        "background": background,
        "target": target,
        "reg": reg,
        "l1": l1,
        "lower": lower,
        "upper": upper,
    }
    settings = [args.number(name, value) for name, value in limits.items()]
    index = np.result_type(indptr, csc_indptr)
    patterns = (indptr, indices, csc_indptr, csc_indices, csc_order)
    scores = args.in_place("scores", scores, dtype, (len(indices),))
    n_threads = args.threads(n_threads, 4 * len(indices))  # threads meet after every component
    _kernels.ccd_sweep(
        *(np.ascontiguousarray(array, dtype=index) for array in patterns),
        args.on_cells("curvature", curvature, len(indices), dtype),
        args.on_cells("linear", linear, len(indices), dtype),
        scores, left, right,
        *settings, inner, n_threads,
    )  # fmt: skip


def topk(
    left: FloatArray,
    right: FloatArray,
    k: int,
    *,
    exclude: tuple[IndexArray, IndexArray] | None = None,
    col_ids: IndexArray | None = None,
    n_threads: int = 1,
    module: Any = _kernels,
) -> tuple[IndexArray, FloatArray]:
    """Best columns of every row of ``left @ right.T``, which is never stored.

    Parameters
    ----------
    left, right : arrays of shape (q, rank) and (m, rank)
    k : int
        Columns wanted for each row.
    exclude : None or (indptr, indices)
        CSR pattern over the q rows with sorted column ids that must not be returned.
    col_ids : None or int64 array of shape (m,)
        Increasing id of each row of ``right``; None counts from 0.
    n_threads : int
    module : module
        Who computes: the one that is loaded, or its twins.

    Returns
    -------
    ids : int64 array of shape (q, k)
        By decreasing score, ties by increasing id; -1 where no column is left.
    scores : array of shape (q, k)
        NaN where no column is left. A NaN score is never among the best.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import topk
    >>> ids, scores = topk(np.ones((1, 1)), np.array([[1.0], [3.0], [2.0]]), 2)
    >>> ids
    array([[1, 2]])
    >>> scores
    array([[3., 2.]])
    """
    dtype = args.common_float(left, right)
    left, right = args.dense("left", left, dtype), args.dense("right", right, dtype)
    args.same_rank(left=left, right=right)
    if check_count("k", k, minimum=0) > args.LONGEST_LIST or k * len(left) > args.MOST_NUMBERS:
        raise ParameterError(f"k must be at most {args.LONGEST_LIST}, got {k} for {len(left)} rows")
    if exclude is not None:
        exclude = args.pattern(*args.two_arrays("exclude", exclude), len(left))
        args.sorted_rows("exclude", *exclude)
    if col_ids is None:
        col_ids = np.arange(len(right), dtype=np.int64)
    else:
        col_ids = np.ascontiguousarray(args.indices_of("col_ids", col_ids), dtype=np.int64)
        if col_ids.shape != (len(right),) or np.any(col_ids[1:] <= col_ids[:-1]):
            raise ParameterError(f"col_ids must have {len(right)} increasing values, one a column")
    n_threads = args.threads(n_threads, left.size * right.shape[0])
    ids, scores = module.topk(left, right, k, exclude, col_ids, n_threads)
    # The module counts in "long long"; the same numbers under the name that NumPy prints.
    return ids.view(np.int64), scores
