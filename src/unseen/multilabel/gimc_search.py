"""Which iterate to keep, and when to stop."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from tqdm import tqdm

from unseen import kernels
from unseen.linalg.blocked import inner, matmul
from unseen.maps import FeatureMap
from unseen.metrics import precision_at_k
from unseen.multilabel.gimc_solvers import Iterate
from unseen.typing import CSR, Features, FloatArray

__all__ = ["HeldOut", "Search", "mapped"]


def mapped(
    a_map: FeatureMap, params: dict[str, Any], X: Features, intercept: bool, n_threads: int
) -> FloatArray:
    """Mapped features of new rows."""
    phi = a_map.apply(X, X.shape[0], params, n_threads).toarray()
    if not intercept:
        return phi
    return np.hstack([phi, np.ones((len(phi), 1), dtype=phi.dtype)])


class HeldOut:
    """Rows that judge iterates: accuracy for classes, the mean of P@1, P@3 and P@5 for labels."""

    def __init__(
        self, X: Features, Y: CSR, a_map: FeatureMap, intercept: bool, multi_class: bool, n_threads: int
    ):
        self.X, self.Y, self.a_map, self.intercept = X, Y, a_map, intercept
        self.places = (1,) if multi_class else (1, 3, 5)
        self.n_threads = n_threads

    def score(self, iterate: Iterate) -> tuple[float, float]:
        """Score, and minus the squared error, which decides between equal scores."""
        phi = mapped(self.a_map, iterate.params, self.X, self.intercept, self.n_threads)
        factors = iterate.weights.label_factors.astype(phi.dtype, copy=False)
        ids, _ = kernels.topk(phi, factors, max(self.places), n_threads=self.n_threads)
        score = float(np.mean([precision_at_k(self.Y, ids, k) for k in self.places]))
        known = kernels.sddmm(self.Y.indptr, self.Y.indices, phi, factors, n_threads=self.n_threads)
        square = inner(matmul(phi, iterate.weights.gram.astype(phi.dtype), n_threads=self.n_threads), phi)
        return score, 2.0 * float(known.sum(dtype=np.float64)) - square

    def scores(self, iterate: Iterate) -> FloatArray:
        """All scores, for a calibration."""
        phi = mapped(self.a_map, iterate.params, self.X, self.intercept, self.n_threads)
        return matmul(phi, iterate.weights.label_factors.T.astype(phi.dtype), n_threads=self.n_threads)


class Search:
    """Receives iterates, keeps the best, and says when it is enough.

    Parameters
    ----------
    held_out : HeldOut or None
        Without it, the last iterate is the best: the objective never rises.
    max_iter : int
        Outer steps.
    tol : float
        Share of the objective that a step must win.
    patience : int
        Outer steps without a better score on held-out rows.
    verbose : int
        1 shows a progress bar.
    """

    def __init__(
        self, held_out: HeldOut | None, max_iter: int, tol: float, patience: int, verbose: int
    ) -> None:
        self.held_out, self.max_iter, self.tol, self.patience = held_out, max_iter, tol, patience
        self.history: list[dict[str, Any]] = []
        self.best: Iterate | None = None
        self.best_iter = 0
        self.converged = False
        self._best_score = (-np.inf, -np.inf)
        self._began = time.perf_counter()
        self._bar = tqdm(total=max_iter, disable=not verbose, desc="GIMC")

    def __call__(self, iterate: Iterate) -> bool:
        """Whether to go on."""
        number = len(self.history)
        record: dict[str, Any] = {
            "objective": iterate.objective,
            "time_s": time.perf_counter() - self._began,
            "trials": iterate.trials,
        }
        better = True
        if self.held_out is not None:
            score = self.held_out.score(iterate)
            record["validation"] = score[0]
            better = score > self._best_score
            self._best_score = max(score, self._best_score)
        if better:
            self.best, self.best_iter = iterate, number
        if number:
            self._bar.update()
            before = self.history[-1]["objective"]
            self.converged = before - iterate.objective <= self.tol * abs(before)
        self.history.append(record)
        tired = self.held_out is not None and number - self.best_iter >= self.patience
        self.converged = self.converged or tired
        done = self.converged or number >= self.max_iter
        if done:
            self._bar.close()
        return not done
