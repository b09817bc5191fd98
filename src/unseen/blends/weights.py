"""How the weights of a blend are chosen, from scores on a held-out part."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from unseen.exceptions import ParameterError
from unseen.metrics import ndcg_at_k, precision_at_k, recall_at_k
from unseen.typing import CSR, BoolArray, FloatArray, IndexArray

__all__ = ["Lists", "Measure", "chosen_weights", "simplex_weights", "standardised"]

ROUNDS = 20
"""Models that are added, repeats included, before weights are refined."""
FACTORS = (0.5, 0.8, 1.25, 2.0)
SHORTEST = 50
"""Candidates of each model for short lists."""

_LIST_MEASURES: dict[str, Callable[..., float]] = {
    "precision": precision_at_k,
    "recall": recall_at_k,
    "ndcg": ndcg_at_k,
}


@dataclass(frozen=True)
class Measure:
    """Mean of one measure of lists at some lengths."""

    name: str
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, scoring: str) -> Measure:
        """Read a name such as ``"ndcg@10"`` or ``"precision@1,3,5"``."""
        found = re.fullmatch(r"(precision|recall|ndcg)@([1-9]\d*(?:,[1-9]\d*)*)", str(scoring))
        if found is None:
            raise ParameterError(
                f"scoring={scoring!r}; expected 'auto', 'rmse', or 'precision@k', 'recall@k', 'ndcg@k' with "
                "a number for k"
            )
        return cls(found[1], tuple(int(length) for length in found[2].split(",")))

    @property
    def k(self) -> int:
        """Longest list."""
        return max(self.lengths)

    def __call__(self, truth: CSR, ids: IndexArray) -> float:
        """Measure lists of at least ``k`` places."""
        lengths = [min(length, truth.shape[1]) for length in self.lengths]
        values = [_LIST_MEASURES[self.name](truth, ids, length) for length in lengths]
        return float(np.mean(values))


class Lists:
    """Candidates of some rows with the scores of every model, from which lists are made for any weights.

    A column that no model has among its best is no candidate.

    Parameters
    ----------
    measure : Measure
        What the lists are judged by.
    """

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self._ids: list[IndexArray] = []
        self._scores: list[FloatArray] = []
        self._truth: list[CSR] = []

    def add(self, scores: Sequence[FloatArray], barred: BoolArray | None, truth: CSR, n_best: int) -> None:
        """Take in some rows: dense scores of each model, cells that cannot be listed, and the truth."""
        stacked = np.stack(scores, axis=2).astype(np.float64)
        if barred is not None:
            stacked[barred] = -np.inf
        n_best = min(n_best, stacked.shape[1])
        best = np.argpartition(-stacked, n_best - 1, axis=1)[:, :n_best]
        ids = np.sort(best.reshape(len(best), -1), axis=1)
        repeated = np.zeros(ids.shape, dtype=bool)
        repeated[:, 1:] = ids[:, 1:] == ids[:, :-1]
        own = np.take_along_axis(stacked, ids[:, :, None], axis=1)
        own[repeated] = -np.inf
        self._ids.append(ids)
        self._scores.append(own)
        self._truth.append(truth)

    def close(self) -> Callable[[FloatArray], float]:
        """Quality of the lists as a function of the weights."""
        ids, scores = np.concatenate(self._ids), np.concatenate(self._scores)
        truth: CSR = sparse.csr_array(sparse.vstack(self._truth, format="csr"))
        out = ~np.isfinite(scores).all(axis=2)
        scores[out] = 0.0
        k = self.measure.k
        width = min(k, ids.shape[1])

        def quality(weights: FloatArray) -> float:
            total = scores @ weights
            total[out] = -np.inf
            # Candidates are by increasing number, so a stable sort breaks ties as lists do.
            order = np.argsort(-total, axis=1, kind="stable")[:, :width]
            listed = np.take_along_axis(ids, order, axis=1)
            listed[np.take_along_axis(total, order, axis=1) == -np.inf] = -1
            padded = np.full((len(listed), k), -1, dtype=np.int64)
            padded[:, :width] = listed
            return self.measure(truth, padded)

        return quality


def standardised(scores: FloatArray) -> FloatArray:
    """Scores of whole rows over their standard deviation; rows without any differences become zero."""
    spread = scores.std(axis=1, keepdims=True)
    out: FloatArray = np.divide(scores, spread, out=np.zeros_like(scores), where=spread > 0)
    return out


def chosen_weights(quality: Callable[[FloatArray], float], n_models: int) -> tuple[FloatArray, FloatArray]:
    """Weights of high quality that sum to one, and the quality of each model alone and of the blend.

    Ensemble selection with replacement (Caruana et al., 2004), then each weight is scaled in turn while that
    helps. Starts at the best single model and moves only to what is better, so the blend is never worse.
    """
    alone = np.array([quality(unit) for unit in np.eye(n_models)])
    counts = np.eye(n_models)[int(np.argmax(alone))]
    best, found = float(alone.max()), counts.copy()
    for _ in range(ROUNDS if n_models > 1 else 0):
        trials = [quality((counts + unit) / (counts.sum() + 1)) for unit in np.eye(n_models)]
        counts = counts + np.eye(n_models)[int(np.argmax(trials))]
        if max(trials) > best:
            best, found = max(trials), counts.copy()
    moved = n_models > 1
    while moved:
        moved = False
        for model in np.flatnonzero(found):
            for factor in FACTORS:
                trial = found.copy()
                trial[model] *= factor
                value = quality(trial / trial.sum())
                if value > best:
                    best, found, moved = value, trial, True
    return found / found.sum(), np.append(alone, best)


def simplex_weights(predictions: FloatArray, values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Weights, zero or larger with sum one, of the least squared error of ``predictions @ weights``."""
    errors = (predictions - values[:, None]).astype(np.float64)
    if weights is not None:
        errors *= np.sqrt(weights)[:, None]
    # On the simplex the error of the blend is the blend of the errors; a heavy row keeps the sum at one.
    heavy = 1e4 * max(float(np.linalg.norm(errors, 2)), np.finfo(float).tiny)
    system = np.vstack([errors, np.full((1, errors.shape[1]), heavy)])
    target = np.zeros(len(system))
    target[-1] = heavy
    found, _ = nnls(system, target)
    return np.asarray(found / found.sum())
