"""Low-rank linear classifiers of many labels."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from unseen.exceptions import ConvergenceWarning, DivergedError, ParameterError
from unseen.linalg.blocked import gram, inner
from unseen.linalg.centred_ridge import column_cg, spd_solver
from unseen.linalg.designs import Design, as_design
from unseen.multilabel.base import FactoredClassifier
from unseen.typing import CSR, Array, Features, FloatArray
from unseen.validation import check_count, check_features, check_positive, check_rng

__all__ = ["LEML"]


class LEML(FactoredClassifier):
    """Low-rank linear multi-label model with squared loss over all entries (GIMC section on baselines).

    min over W, H   1/2 ||Y - X W H' F'||_F^2 + reg/2 (||W||_F^2 + ||H||_F^2)

    W is n_features x rank. Without label features F is the identity and H is n_labels x rank; with them
    (LEML-IMC) H is n_label_features x rank. H has a closed form, W is found by conjugate gradients in
    the basis where its rank columns do not meet. X W H' is never formed.

    Parameters
    ----------
    rank : int, default=100
        Columns of W and H.
    reg : float, default=1.0
        Weight of the penalty.
    label_features : array or sparse matrix of shape (n_labels, q), int or None, default=None
        Features of the labels. A number takes that many singular vectors of Y itself.
    scale : bool, default=True
        Multiply singular vectors by their singular values. Without it all of them would only rotate
        H, and say nothing.
    max_iter : int, default=30
        Limit of sweeps.
    tol : float, default=1e-4
        Stop when a sweep lowers the objective by less than this share.
    cg_steps : int, default=20
        Limit of conjugate-gradient steps in a sweep, from the W of the last.
    threshold : float, default=0.5
        Score above which ``predict`` gives a label.
    random_state : int or Generator, optional
        Seed of the start.
    n_jobs : int, optional
        Threads; None takes all cores. The result does not depend on it.
    verbose : int, default=0
        Accepted for symmetry; fits are short.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features, rank)
        W.
    label_factors_ : ndarray of shape (n_labels, rank)
        H, or F H.
    history_ : list of dict
        ``objective``, ``time_s`` and ``cg_steps`` of each sweep.
    n_iter_ : int
        Sweeps done.
    converged_ : bool
        Whether the objective settled before ``max_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import LEML
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> Y = (X @ np.random.default_rng(1).normal(size=(4, 6)) > 1).astype(int)
    >>> LEML(3, reg=0.1, random_state=0).fit(X, Y).predict_topk(X, k=2)[0].shape
    (50, 2)
    """

    coef_: FloatArray
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        rank: int = 100,
        *,
        reg: float = 1.0,
        label_features: Any = None,
        scale: bool = True,
        max_iter: int = 30,
        tol: float = 1e-4,
        cg_steps: int = 20,
        threshold: float = 0.5,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.reg = reg
        self.label_features = label_features
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.cg_steps = cg_steps
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Features, Y: CSR) -> None:
        rank, reg = check_count("rank", self.rank), check_positive("reg", self.reg)
        max_iter, cg_steps = check_count("max_iter", self.max_iter), check_count("cg_steps", self.cg_steps)
        tol = check_positive("tol", self.tol, strict=False)
        rng, n_threads = check_rng(self.random_state), self._n_threads()
        rows, labels = as_design(X, n_threads), as_design(Y, n_threads)
        side = self._label_side(Y, rng)
        outer = None if side is None else np.linalg.eigh(_gram_of(side))
        W = rng.standard_normal((X.shape[1], rank)).astype(X.dtype) / X.dtype.type(np.sqrt(X.shape[1]))
        began, self.history_, self.converged_ = time.perf_counter(), [], False
        P = rows.dot(W)
        for sweep in range(1, max_iter + 1):
            B = gram(P, n_threads=n_threads)
            wanted = labels.tdot(P).astype(np.float64)
            H, right = _label_step(side, outer, wanted, B, reg)
            H, right = H.astype(X.dtype), right.astype(X.dtype)
            W, steps = _feature_step(
                rows, labels.dot(right), gram(right, n_threads=n_threads), W, reg, cg_steps
            )
            P = rows.dot(W)
            objective = _value(Y.nnz, labels, P, right, reg, W, H, n_threads)
            if not np.isfinite(objective):
                raise DivergedError(f"the objective became {objective} in sweep {sweep}")
            self.history_.append(
                {"objective": objective, "time_s": time.perf_counter() - began, "cg_steps": steps}
            )
            if sweep > 1 and (before := self.history_[-2]["objective"]) - objective <= tol * abs(before):
                self.converged_ = True
                break
        self.n_iter_ = len(self.history_)
        if not self.converged_:
            warnings.warn(
                f"LEML did {max_iter} sweeps and the objective still falls; raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.coef_, self.label_factors_ = W, np.ascontiguousarray(right)

    def _label_side(self, Y: CSR, rng: np.random.Generator) -> Features | None:
        """Features of the labels."""
        if self.label_features is None:
            return None
        if isinstance(self.label_features, (int, np.integer)) and not isinstance(self.label_features, bool):
            return _singular_vectors(Y, check_count("label_features", self.label_features), self.scale, rng)
        features = check_features(self.label_features, None, "label_features", dtype=Y.dtype)
        if features.shape[0] != Y.shape[1]:
            raise ParameterError(
                f"label_features has {features.shape[0]} rows and Y has {Y.shape[1]} labels; one row for each"
            )
        return features

    def _embed(self, X: Features) -> FloatArray:
        return as_design(X, self._n_threads()).dot(self.coef_.astype(X.dtype, copy=False))


def _gram_of(side: Features) -> Array:
    if sparse.issparse(side):
        return np.asarray((side.T @ side).toarray(), dtype=np.float64)
    return gram(np.asarray(side))


def _label_step(
    side: Features | None, outer: Any, wanted: Array, B: Array, reg: float
) -> tuple[Array, Array]:
    """H and the right factors F H; ``wanted`` is Y'P and B is P'P."""
    if side is None:
        H = spd_solver(B, reg)(wanted.T).T
        return H, H
    # F'F H B + reg H = F'Y'P: both matrices turned to their eigenvectors, each entry stands alone.
    values, vectors = outer
    inner_values, inner_vectors = np.linalg.eigh(B)
    target = vectors.T @ np.asarray(side.T @ wanted) @ inner_vectors
    H = vectors @ (target / (np.outer(values, inner_values) + reg)) @ inner_vectors.T
    return H, np.asarray(side @ H)


def _feature_step(
    rows: Design, wanted: FloatArray, S: Array, W: FloatArray, reg: float, cg_steps: int
) -> tuple[FloatArray, int]:
    """Solve X'X W S + reg W = X' wanted, with S = H'H, from the W at hand."""
    values, vectors = np.linalg.eigh(S)
    kind = W.dtype
    turn = vectors.astype(kind)
    right = rows.tdot(np.ascontiguousarray(wanted @ turn))
    scale = np.maximum(values, 0.0).astype(kind)
    turned, steps = column_cg(
        lambda block: rows.tdot(rows.dot(block)) * scale,
        right,
        np.full(len(scale), reg, dtype=kind),
        np.ascontiguousarray(W @ turn),
        tol=1e-4,
        max_iter=cg_steps,
    )
    return np.ascontiguousarray(turned @ turn.T), steps


def _value(
    n_ones: int,
    labels: Design,
    P: FloatArray,
    right: FloatArray,
    reg: float,
    W: FloatArray,
    H: Array,
    n_threads: int,
) -> float:
    cross = inner(labels.dot(right), P)
    square = inner(gram(P, n_threads=n_threads), gram(right, n_threads=n_threads))
    return 0.5 * (n_ones - 2.0 * cross + square) + 0.5 * reg * (inner(W, W) + inner(H, H))


def _singular_vectors(Y: CSR, count: int, scale: bool, rng: np.random.Generator) -> FloatArray:
    """Leading right singular vectors of Y (eigenvectors of Y'Y), times their singular values."""
    if count >= min(Y.shape):
        raise ParameterError(
            f"label_features={count} singular vectors were asked for; Y of shape {Y.shape} has fewer than "
            f"{min(Y.shape)} that can be computed without forming it"
        )
    _, values, vectors = svds(Y.astype(np.float64), k=count, v0=rng.standard_normal(min(Y.shape)))
    order = np.argsort(-values)
    side = vectors[order].T * (values[order] if scale else 1.0)
    side *= np.where(side[np.abs(side).argmax(axis=0), np.arange(count)] < 0, -1.0, 1.0)
    return np.ascontiguousarray(side, dtype=Y.dtype)
