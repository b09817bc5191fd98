"""Low-rank linear classifiers of many labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from unseen.cores import LowRank
from unseen.data import Observations
from unseen.data.pattern import Pattern
from unseen.exceptions import ParameterError
from unseen.linalg.designs import as_design
from unseen.losses import Background, Squared
from unseen.maps import Given, Identity
from unseen.multilabel.kinds import FactoredClassifier, WeightedClassifier
from unseen.multilabel.scaling import scaled_by, with_ones
from unseen.problem import Problem
from unseen.regularisers import Ridge
from unseen.solvers import Monitor
from unseen.solvers.uniform import UniformALS
from unseen.terms import Term
from unseen.typing import CSR, Features, FloatArray
from unseen.validation import check_count, check_features, check_positive, check_rng

__all__ = ["LEML"]


class LEML(WeightedClassifier, FactoredClassifier):
    """Low-rank linear multi-label model with squared loss over all entries (GIMC section on baselines).

    min over W, H   1/2 ||Y - X W H' F'||_F^2 + reg/2 (||W||_F^2 + ||H||_F^2)

    W is n_features x rank. Without label features F is the identity and H is n_labels x rank; with them
    (LEML-IMC) H is n_label_features x rank. This is :class:`IMC` with a background: every entry counts,
    and those without a label are zeros. H has a closed form, W is found by conjugate gradients in the
    basis where its rank columns do not meet. X W H' is never formed. With ``sample_weight`` the squared
    errors of a row count as often as its weight says.

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
    intercept : bool, default=True
        Append a constant to the features. Its row of W is penalised like the others; the labels' offsets
        are that row times H' (F').
    max_iter : int, default=30
        Limit of sweeps.
    tol : float, default=1e-4
        Stop when a sweep lowers the objective by less than this share. Conjugate gradients stop at this share
        of their right side, and at 1e-4 at most.
    cg_steps : int, default=20
        Limit of conjugate-gradient steps in a sweep, from the W of the last.
    random_state : int or Generator, optional
        Seed of the start.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features, rank)
        W.
    intercept_ : ndarray of shape (rank,)
        Row of W of the constant; zeros without ``intercept``.
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
    intercept_: FloatArray
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        rank: int = 100,
        *,
        reg: float = 1.0,
        label_features: Any = None,
        scale: bool = True,
        intercept: bool = True,
        max_iter: int = 30,
        tol: float = 1e-4,
        cg_steps: int = 20,
        threshold: float = 0.5,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.reg = reg
        self.label_features = label_features
        self.scale = scale
        self.intercept = intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cg_steps = cg_steps
        self.threshold = threshold
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Features, Y: CSR, weights: FloatArray | None = None) -> None:
        rank, reg = check_count("rank", self.rank), check_positive("reg", self.reg)
        max_iter, cg_steps = check_count("max_iter", self.max_iter), check_count("cg_steps", self.cg_steps)
        tol = check_positive("tol", self.tol, strict=False)
        rng = check_rng(self.random_state)
        d = X.shape[1]
        rows = with_ones(X) if self.intercept else X
        if weights is not None:  # of both sides of the squared errors, hence the roots
            roots = np.sqrt(weights)
            rows, Y = scaled_by(rows, roots), sparse.csr_array(scaled_by(Y, roots))
        side = self._label_side(Y, rng)
        term = Term(Given(), Identity() if side is None else Given(), LowRank(rank), Ridge(reg))
        problem = Problem(
            Observations(Pattern(Y.indptr, Y.indices, Y.shape), Y.data),
            [term],
            Squared(background=Background()),
            row_features=rows,
            col_features=side,
            n_threads=self._n_threads(),
        )
        W = rng.standard_normal((d, rank)).astype(X.dtype) / X.dtype.type(np.sqrt(d))
        if self.intercept:
            W = np.vstack([W, np.zeros((1, rank), dtype=X.dtype)])
        n_sides = Y.shape[1] if side is None else side.shape[1]
        start = {"0.row": W, "0.col": np.broadcast_to(X.dtype.type(0), (n_sides, rank))}
        monitor = Monitor(max_iter, tol, verbose=self.verbose, label="LEML")
        state = UniformALS(cg_steps=cg_steps, cg_tol=min(1e-4, tol)).solve(problem, start, rng, monitor)
        self.history_, self.n_iter_ = monitor.history, len(monitor.history)
        self.converged_ = monitor.converged
        self.coef_, self.intercept_ = state["0.row"][:d], state["0.row"][d:].sum(axis=0)
        self.label_factors_ = np.ascontiguousarray(problem.pair(problem.terms[0], state).right)

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
        left = as_design(X, self._n_threads()).dot(self.coef_.astype(X.dtype, copy=False))
        return left + self.intercept_.astype(X.dtype, copy=False) if self.intercept else left


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
