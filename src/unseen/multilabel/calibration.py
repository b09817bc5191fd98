"""From scores to probabilities, fitted on rows that the model has not seen."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import expit, logsumexp, softmax

from unseen.typing import CSR, Array, FloatArray

__all__ = ["fit_sigmoid", "fit_temperature", "sigmoid", "tempered"]

MAX_CELLS = 2_000_000
"""Cells that the sigmoid is fitted on; more are sampled by rows."""


def fit_temperature(scores: FloatArray, codes: Array) -> float:
    """The b > 0 for which softmax(b scores) gives the true classes the highest likelihood."""
    wide = scores.astype(np.float64)
    true = wide[np.arange(len(codes)), codes]

    def loss(log_b: float) -> float:
        b = float(np.exp(log_b))
        return float(np.mean(logsumexp(b * wide, axis=1) - b * true))

    from scipy.optimize import minimize_scalar  # many modules that other methods do without

    found = minimize_scalar(loss, bounds=(np.log(1e-2), np.log(1e3)), method="bounded")
    return float(np.exp(found.x))


def tempered(scores: FloatArray, b: float) -> FloatArray:
    """Probabilities of classes."""
    probabilities: FloatArray = softmax(b * scores.astype(np.float64), axis=1)
    return probabilities.astype(scores.dtype, copy=False)


def fit_sigmoid(scores: FloatArray, labels: CSR) -> tuple[float, float]:
    """Slope and offset of one logistic curve for all labels, by likelihood.

    Targets are pulled a little from 0 and 1, as Platt does, so that separable data has an answer.
    """
    rows = max(1, min(len(scores), MAX_CELLS // max(scores.shape[1], 1)))
    s = scores[:rows].astype(np.float64).ravel()
    positive = sparse.csr_array(labels[:rows]).toarray().ravel() > 0
    n_positive = int(positive.sum())
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (len(s) - n_positive + 2))

    def loss(vector: Array) -> tuple[float, Array]:
        z = vector[0] * s + vector[1]
        error = expit(z) - target
        value = float(np.mean(np.logaddexp(0.0, z) - target * z))
        return value, np.array([np.mean(error * s), np.mean(error)])

    share = min(max(float(target.mean()), 1e-6), 1 - 1e-6)
    start = np.array([1.0, np.log(share / (1 - share))])
    from scipy.optimize import minimize

    slope, offset = minimize(loss, start, jac=True, method="L-BFGS-B").x
    # A curve that falls would turn the ranking around: no such thing is learned from noise.
    return max(float(slope), 1e-6), float(offset)


def sigmoid(scores: FloatArray, slope: float, offset: float) -> FloatArray:
    """Probabilities of labels."""
    probabilities: FloatArray = expit(slope * scores.astype(np.float64) + offset)
    return probabilities.astype(scores.dtype, copy=False)
