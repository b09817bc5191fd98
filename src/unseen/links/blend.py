"""Several models of one graph as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.links.base import NeighbourLinks
from unseen.links.neighbours import CommonNeighbors
from unseen.links.spectral import TruncatedSVDLinks
from unseen.typing import CSR, Features, FloatArray, IndexArray
from unseen.validation import check_positive, check_several

__all__ = ["BlendedLinks"]

ROWS_AT_A_TIME = 1024
"""Rows of the other direction of a model whose scores have one."""


class BlendedLinks(NeighbourLinks):
    """Weighted sum of the scores of several models.

    A factor model sees which groups of nodes belong together, shared neighbours see single
    links: together they order pairs better than each alone.

    Parameters
    ----------
    models : sequence of completers, optional
        Fitted to the same graph, each as a copy. A model that is not symmetric is averaged over
        both directions. By default `TruncatedSVDLinks` and `CommonNeighbors` with degree power 1.
    weights : sequence of float, optional
        One for each model, zero or larger; all one by default. Scores are not rescaled.
    n_jobs : int, optional
        Threads for products; all cores by default. Results do not depend on it.

    Attributes
    ----------
    models_ : list of estimators
        The fitted models.
    weights_ : list of float
        Their weights.
    graph_ : csr_array
        The symmetric training graph.
    history_ : list of dict
        Empty; each model of ``models_`` has its own.
    n_iter_ : int
        1.
    converged_ : bool
        True.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.links import BlendedLinks, CommonNeighbors, Katz
    >>> graph = sparse.csr_array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> blend = BlendedLinks([CommonNeighbors(), Katz(0.1, length=2)], weights=[1.0, 10.0])
    >>> blend.fit(graph).predict_entries([0], [2]).round(6)
    array([2.2])
    """

    def __init__(
        self,
        models: Sequence[Any] | None = None,
        *,
        weights: Sequence[float] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.models = models
        self.weights = weights
        self.n_jobs = n_jobs

    def _fit_graph(self, graph: CSR) -> None:
        models = (
            [TruncatedSVDLinks(2), CommonNeighbors(degree_power=1.0)]
            if self.models is None
            else check_several("models", self.models, "completers")
        )
        wrong = [model for model in models if not hasattr(model, "recommend") or isinstance(model, type)]
        if wrong:
            raise ParameterError(f"models must be completers, got {wrong[0]!r}")
        weights = (
            [1.0] * len(models)
            if self.weights is None
            else check_several("weights", self.weights, "one number for each model")
        )
        if not models or len(weights) != len(models):
            raise ParameterError(
                f"weights has {len(weights)} numbers for {len(models)} models; one for each of at least one "
                "model is needed"
            )
        self.weights_ = [check_positive("weights", weight, strict=False) for weight in weights]
        self.graph_ = graph
        self.models_ = [clone(model).fit(graph) for model in models]

    def _scores_from(self, links: CSR) -> FloatArray:
        raise AssertionError("blends score rows and links apart")

    def _scores_at(self, picked: IndexArray) -> FloatArray:
        return self._sum([_rows_of(model, picked) for model in self.models_])

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        return self._sum([model.transform(cells, positions=True) for model in self.models_])

    def _sum(self, parts: list[FloatArray]) -> FloatArray:
        total: FloatArray = np.zeros_like(parts[0])
        for weight, part in zip(self.weights_, parts, strict=True):
            total += part.dtype.type(weight) * part
        return total


def _rows_of(model: Any, rows: Any) -> FloatArray:
    """Symmetric scores of whole rows, of any completer."""
    if hasattr(model, "score_rows"):
        scores: FloatArray = model.score_rows(rows, positions=True)
        if getattr(model, "symmetric_scores", False):
            return scores
        every = np.arange(model.n_features_in_)
        for start in range(0, every.size, ROWS_AT_A_TIME):
            part = every[start : start + ROWS_AT_A_TIME]
            back = model.score_rows(part, positions=True)[:, rows]
            scores[:, part] = (scores[:, part] + back.T) * scores.dtype.type(0.5)
        return scores
    left, right = model.row_factors_, model.col_factors_
    forward: FloatArray = left[rows] @ right.T
    if getattr(model, "symmetric_scores", False):
        return forward
    both: FloatArray = (forward + right[rows] @ left.T) * forward.dtype.type(0.5)
    return both
