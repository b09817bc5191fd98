"""One ridge regression for each label."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.linalg.designs import as_design
from unseen.linalg.ridge import ridge
from unseen.multilabel.kinds import WeightedClassifier
from unseen.typing import CSR, Features, FloatArray
from unseen.validation import check_positive

__all__ = ["RidgeOvA"]

FACTOR_LIMIT = 6000
"""Largest matrix that is factorised: one factor serves all labels, so a larger one than usual pays."""


class RidgeOvA(WeightedClassifier):
    """One ridge regression for each label, all from one factorisation (GIMC eq. 12 with Phi = X).

    min over W, b   1/2 ||Y - X W - 1 b'||_F^2 + reg/2 ||W||_F^2

    With ``sample_weight`` the squared errors of a row count as often as its weight says.

    Solved through the d x d normal equations, through their n x n dual when there are more features
    than rows, or by conjugate gradients when both are large. Simple, and often hard to beat.

    Parameters
    ----------
    reg : float, default=1.0
        Weight of the penalty, on the scale of the squared length of a feature column.
    fit_intercept : bool, default=False
        Learn an offset for each label, without penalty.
    tol : float, default=1e-6
        Relative residual at which conjugate gradients stop.
    max_iter : int, default=200
        Limit of their steps.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features, n_labels)
        W.
    intercept_ : ndarray of shape (n_labels,)
        b; zeros without ``fit_intercept``.
    n_labels_ : int
        Number of labels.
    classes_ : ndarray
        Class names for a one-dimensional target, else the label numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import RidgeOvA
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    >>> Y = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]])
    >>> ids, scores = RidgeOvA(reg=0.1).fit(X, Y).predict_topk([[1.0, 0.2]], k=2)
    >>> ids
    array([[0, 1]])
    """

    coef_: FloatArray
    intercept_: FloatArray

    def __init__(
        self,
        reg: float = 1.0,
        *,
        fit_intercept: bool = False,
        threshold: float = 0.5,
        tol: float = 1e-6,
        max_iter: int = 200,
        calibrate: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.reg = reg
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.calibrate = calibrate
        self.n_jobs = n_jobs

    def _fit(self, X: Features, Y: CSR, weights: FloatArray | None = None) -> None:
        reg = check_positive("reg", self.reg, strict=False)
        self.coef_, self.intercept_ = ridge(
            X,
            Y,
            reg,
            intercept=bool(self.fit_intercept),
            limit=FACTOR_LIMIT,
            tol=check_positive("tol", self.tol),
            max_iter=int(check_positive("max_iter", self.max_iter)),
            weights=weights,
            n_threads=self._n_threads(),
        )
        self.history_: list[dict[str, Any]] = []
        self.n_iter_ = 1

    def _scores(self, X: Features) -> FloatArray:
        scores = as_design(X, self._n_threads()).dot(self.coef_)
        if self.intercept_.any():
            scores = scores + self.intercept_
        return np.asarray(scores)
