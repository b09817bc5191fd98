"""From scores to probabilities, fitted on rows that the model has not seen."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import expit, logsumexp, softmax

from unseen.typing import CSR, Array, FloatArray

__all__ = ["Calibration", "chances", "fit_chances"]

Calibration: TypeAlias = tuple[float, ...]
"""Temperature of a softmax, or slope and offset of a logistic curve."""

MAX_CELLS = 2_000_000
"""Cells that the sigmoid is fitted on; of more, some rows are taken at even distances."""


def fit_chances(
    scores: FloatArray, labels: CSR, multi_class: bool, weights: FloatArray | None = None
) -> Calibration:
    """How scores become probabilities, from rows that the model has not seen.

    Parameters
    ----------
    scores : array of shape (n, n_labels)
        Scores of these rows.
    labels : csr_array of shape (n, n_labels)
        Their labels.
    multi_class : bool
        Whether each row has one class.
    weights : array of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    Calibration
    """
    if multi_class:
        return (fit_temperature(scores, labels.indices, weights),)
    return fit_sigmoid(scores, labels, weights)


def chances(scores: FloatArray, calibration: Calibration) -> FloatArray:
    """Probabilities of classes, or of labels."""
    wide = scores.astype(np.float64)
    if len(calibration) == 1:
        found: FloatArray = softmax(calibration[0] * wide, axis=1)
    else:
        slope, offset = calibration
        found = expit(slope * wide + offset)
    return found.astype(scores.dtype, copy=False)


def fit_temperature(scores: FloatArray, codes: Array, weights: FloatArray | None = None) -> float:
    """The b > 0 for which softmax(b scores) gives the true classes the highest likelihood."""
    wide = scores.astype(np.float64)
    true = wide[np.arange(len(codes)), codes]

    def loss(log_b: float) -> float:
        b = float(np.exp(log_b))
        return float(np.average(logsumexp(b * wide, axis=1) - b * true, weights=weights))

    from scipy.optimize import minimize_scalar  # many modules that other methods do without

    found = minimize_scalar(loss, bounds=(np.log(1e-2), np.log(1e3)), method="bounded")
    return float(np.exp(found.x))


def fit_sigmoid(scores: FloatArray, labels: CSR, weights: FloatArray | None = None) -> tuple[float, float]:
    """Slope and offset of one logistic curve for all labels, by likelihood.

    Targets are pulled a little from 0 and 1, as Platt does, so that separable data has an answer.
    """
    n_rows = max(1, min(len(scores), MAX_CELLS // max(scores.shape[1], 1)))
    rows = np.arange(n_rows) * len(scores) // n_rows
    s = scores[rows].astype(np.float64).ravel()
    positive = sparse.csr_array(labels[rows]).toarray().ravel() > 0
    share = np.ones(n_rows) if weights is None else weights[rows].astype(np.float64)
    w = np.repeat(share / share.mean(), scores.shape[1])
    n_positive = float(w[positive].sum())
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (w.sum() - n_positive + 2))

    def loss(vector: Array) -> tuple[float, Array]:
        z = vector[0] * s + vector[1]
        error = w * (expit(z) - target)
        value = float(np.mean(w * (np.logaddexp(0.0, z) - target * z)))
        return value, np.array([np.mean(error * s), np.mean(error)])

    level = min(max(float(np.average(target, weights=w)), 1e-6), 1 - 1e-6)
    start = np.array([1.0, np.log(level / (1 - level))])
    from scipy.optimize import minimize

    slope, offset = minimize(loss, start, jac=True, method="L-BFGS-B").x
    # A curve that falls would turn the ranking around: no such thing is learned from noise.
    return max(float(slope), 1e-6), float(offset)
