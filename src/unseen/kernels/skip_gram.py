"""Stochastic gradient steps on pairs of rows."""

from __future__ import annotations

import numpy as np

from unseen.exceptions import ParameterError
from unseen.kernels import _arguments as args
from unseen.kernels import _provider, reference_embeddings
from unseen.typing import FloatArray, IndexArray
from unseen.validation import check_choice

__all__ = ["joint_sweep", "sgns_sweep"]

_kernels = _provider.module(reference_embeddings)


def sgns_sweep(
    words: FloatArray,
    contexts: FloatArray,
    centers: IndexArray,
    positives: IndexArray,
    negatives: IndexArray,
    *,
    first_rate: float,
    last_rate: float,
    n_threads: int = 1,
) -> None:
    """Skip-gram steps with given negatives, in place and in the order of the pairs.

    A pair (c, p) with negatives q ascends ``log s(w_c . v_p) + sum_q log s(-w_c . v_q)``, s the logistic
    function, w a row of ``words`` and v of ``contexts``. Context rows move one after the other, the word
    once at the end. The rate goes linearly from first to last.

    Parameters
    ----------
    words, contexts : arrays of shape (n, r) and (m, r)
        Written in place. The same array stands for one shared table; a row is then never its own target.
    centers, positives : integer arrays of shape (p,)
    negatives : integer array of shape (p, q)
    first_rate, last_rate : float
    n_threads : int
        More than one writes without locks, and the result varies from run to run.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.kernels import sgns_sweep
    >>> words, contexts = np.ones((1, 1)), np.zeros((1, 1))
    >>> zero, none = np.zeros(1, dtype=int), np.zeros((1, 0), dtype=int)
    >>> sgns_sweep(words, contexts, zero, zero, none, first_rate=1.0, last_rate=1.0)
    >>> float(contexts[0, 0])
    0.5
    """
    dtype = args.common_float(words)
    args.table("words", words, dtype)
    args.table("contexts", contexts, dtype)
    args.same_rank(words=words, contexts=contexts)
    centers = args.within("centers", args.indices_of("centers", centers), len(words))
    positives = args.within("positives", args.indices_of("positives", positives), len(contexts))
    negatives = args.within("negatives", args.indices_of("negatives", negatives, 2), len(contexts))
    if not len(centers) == len(positives) == len(negatives):
        raise ParameterError("centers, positives and negatives must have one entry or row a pair")
    first_rate, last_rate = args.number("first_rate", first_rate), args.number("last_rate", last_rate)
    n_threads = args.threads(n_threads, args.WORK_A_THREAD * args.MOST_THREADS)
    index = np.result_type(np.int32, centers, positives, negatives)
    _kernels.sgns(
        words, contexts,
        *(np.ascontiguousarray(a, dtype=index) for a in (centers, positives, negatives)),
        first_rate, last_rate, n_threads,
    )  # fmt: skip


def joint_sweep(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    regressor: FloatArray,
    squares: FloatArray,
    visits: IndexArray,
    positives: IndexArray,
    negatives: IndexArray,
    *,
    gamma: float = 1.0,
    negative_weight: float = 1.0,
    rate: float = 0.1,
    reg: FloatArray | float = 0.0,
    cosine: bool = True,
    n_threads: int = 1,
) -> None:
    """AdaGrad steps on a regressor ``z = V'x``, touching only features of the rows visited; in place.

    Visiting row i ascends, with K the cosine or the inner product of embeddings,

        sum_p log s(gamma K_ip) + negative_weight sum_q log s(-gamma K_iq)

    All gradients of a visit are taken at the same V; then the features of i, of its positives and of
    its negatives step in this order. Each step of an entry of V is pulled to zero by ``reg`` times the entry.

    Parameters
    ----------
    indptr, indices, values : arrays
        Features, CSR.
    regressor, squares : arrays of shape (d, r)
        V and AdaGrad's sums of squares; written in place.
    visits : integer array of shape (v,)
    positives, negatives : integer arrays of shape (v, p) and (v, q)
    gamma, negative_weight, rate : float
    reg : float or array of shape (d,)
    cosine : bool
    n_threads : int
        More than one writes without locks, and the result varies from run to run.

    Examples
    --------
    Two rows with one feature each turn towards each other.

    >>> import numpy as np
    >>> from unseen.kernels import joint_sweep
    >>> V, squares = np.eye(2), np.zeros((2, 2))
    >>> some = np.array([0, 1, 2]), np.array([0, 1]), np.ones(2)
    >>> none = np.zeros((1, 0), dtype=int)
    >>> joint_sweep(*some, V, squares, np.array([0]), np.array([[1]]), none)
    >>> bool(V[0] @ V[1] > 0)
    True
    """
    dtype = args.common_float(regressor)
    args.table("regressor", regressor, dtype)
    args.in_place("squares", squares, dtype, regressor.shape)
    indptr, indices = args.pattern(indptr, indices, None, len(regressor))
    values = args.dense("values", values, dtype, ndim=1)
    if len(values) != len(indices):
        raise ParameterError(f"values must have {len(indices)} entries, one a cell; got {len(values)}")
    n_rows = len(indptr) - 1
    visits = args.within("visits", args.indices_of("visits", visits), n_rows)
    positives = args.within("positives", args.indices_of("positives", positives, 2), n_rows)
    negatives = args.within("negatives", args.indices_of("negatives", negatives, 2), n_rows)
    if not len(visits) == len(positives) == len(negatives):
        raise ParameterError("visits, positives and negatives must have one entry or row a visit")
    if np.ndim(reg) and np.shape(reg) != (len(regressor),):
        raise ParameterError(f"reg must be one number or have {len(regressor)}, one a feature")
    steps = {"gamma": gamma, "negative_weight": negative_weight, "rate": rate}
    settings = [args.number(name, value) for name, value in steps.items()]
    n_threads = args.threads(n_threads, args.WORK_A_THREAD * args.MOST_THREADS)
    reg = args.dense("reg", np.broadcast_to(reg, len(regressor)), dtype, ndim=1)
    index = np.result_type(indptr, visits, positives, negatives)
    whole = [np.ascontiguousarray(a, dtype=index) for a in (indptr, indices, visits, positives, negatives)]
    cosine = check_choice("cosine", cosine, (True, False))
    _kernels.joint(
        *whole[:2], values, regressor, squares, *whole[2:], reg, *settings, cosine, n_threads,
    )  # fmt: skip
