"""How well a fitted completer does on the held-out part of a split."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from unseen import metrics
from unseen.data import Observations
from unseen.data.ids import by_position
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.model_selection._splits import Split
from unseen.typing import IndexArray

__all__ = ["Scorer", "Scoring", "get_scorer", "make_scorer"]

ScoreFunction = Callable[[Any, Split], float]


@dataclass(frozen=True)
class Scorer:
    """A named measure with its direction.

    Attributes
    ----------
    name : str
        Under which results are listed.
    function : callable
        Takes a fitted estimator and a `Split`, gives a float.
    greater_is_better : bool
        Direction.
    compares_values : bool
        Whether predicted values of held-out cells are compared with the true ones.
    """

    name: str
    function: ScoreFunction
    greater_is_better: bool
    compares_values: bool = False

    def __call__(self, estimator: Any, split: Split) -> float:
        """Score a fitted estimator on the test part of a split."""
        weights = split.test.weights
        if split.test.nnz == 0 or not (weights is None or weights.any()):
            raise InvalidDataError(f"the test part has no cells that count, so {self.name} is undefined")
        return float(self.function(estimator, split))


Scoring = str | Scorer | ScoreFunction

_ERRORS: dict[str, Callable[..., float]] = {
    "rmse": metrics.rmse,
    "mae": metrics.mae,
    "relative_error": metrics.relative_error,
}
_RANKINGS: dict[str, Callable[..., float]] = {
    "precision": metrics.precision_at_k,
    "recall": metrics.recall_at_k,
    "ndcg": metrics.ndcg_at_k,
    "map": metrics.map_at_k,
    "mrr": metrics.mrr_at_k,
    "hit_rate": metrics.hit_rate_at_k,
}
_LISTED = ("coverage", "novelty", "diversity", "stratified_recall", "psp")
_ACCEPTED = "'rmse', 'mae', 'relative_error', 'auc', or with a number for k " + ", ".join(
    f"'{name}@k'" for name in (*_RANKINGS, *_LISTED)
)


def make_scorer(
    function: ScoreFunction, *, greater_is_better: bool = True, name: str | None = None
) -> Scorer:
    """Make a scorer of a function.

    Parameters
    ----------
    function : callable
        Called as ``function(estimator, split)`` with the fitted estimator and a `Split`.
    greater_is_better : bool, default=True
        Direction.
    name : str, optional
        Under which results are listed; by default the name of the function.

    Returns
    -------
    Scorer
        To pass as ``scoring``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import make_scorer
    >>> def clipped_rmse(estimator, split):
    ...     predicted = estimator.predict_entries(split.test.rows, split.test.indices, positions=True)
    ...     return np.sqrt(np.mean((np.clip(predicted, 1, 5) - split.test.values) ** 2))
    >>> make_scorer(clipped_rmse, greater_is_better=False).name
    'clipped_rmse'
    """
    return Scorer(name or str(getattr(function, "__name__", "score")), function, greater_is_better)


def get_scorer(scoring: Scoring) -> Scorer:
    """Find the scorer that a name or function stands for.

    Parameters
    ----------
    scoring : str, Scorer or callable
        ``"rmse"``, ``"mae"``, ``"relative_error"``: errors of the held-out values, smaller is better.
        ``"auc"``: held-out non-zeros should score above held-out zeros.
        ``"precision@10"``, ``"recall@10"``, ``"ndcg@10"``, ``"map@10"``, ``"mrr@10"``, ``"hit_rate@10"``
        (any number): lists by ``recommend`` for the rows with held-out cells, training cells excluded,
        held-out non-zeros relevant.
        ``"coverage@10"``, ``"novelty@10"``, ``"diversity@10"``: what the same lists are like, by the training
        cells; for diversity, columns are alike that are stored in the same training rows.
        ``"stratified_recall@10"``, ``"psp@10"``: recall and precision in which hits on columns that are rare
        in training count more (`stratified_recall_at_k`, `propensity_scored_precision_at_k`).
        A function is called as ``function(estimator, split)``; greater is better.
        Held-out cells count by their weights in errors and in ``"auc"``; those of weight zero are left
        out of lists.

    Returns
    -------
    Scorer
        With name and direction.

    Examples
    --------
    >>> from unseen.model_selection import get_scorer
    >>> get_scorer("ndcg@10").greater_is_better
    True
    """
    if isinstance(scoring, Scorer):
        return scoring
    if callable(scoring):
        return make_scorer(scoring)
    if not isinstance(scoring, str):
        raise ParameterError(f"scoring={scoring!r}; expected a name ({_ACCEPTED}) or a function")
    if scoring in _ERRORS:
        return Scorer(scoring, partial(_value_error, _ERRORS[scoring]), False, compares_values=True)
    if scoring == "auc":
        return Scorer(scoring, _auc, True)
    ranking = re.fullmatch(r"(\w+)@([1-9]\d*)", scoring)
    if ranking is not None and ranking[1] in _LISTED:
        return Scorer(scoring, partial(_list_measure, ranking[1], int(ranking[2])), True)
    if ranking is None or ranking[1] not in _RANKINGS:
        raise ParameterError(f"scoring={scoring!r}; expected {_ACCEPTED}, or a function")
    return Scorer(scoring, partial(_ranking, _RANKINGS[ranking[1]], int(ranking[2])), True)


def _predicted(estimator: Any, split: Split) -> Any:
    return estimator.predict_entries(split.test.rows, split.test.indices, **by_position(estimator))


def _value_error(metric: Callable[..., float], estimator: Any, split: Split) -> float:
    return metric(split.test, _predicted(estimator, split))


def _auc(estimator: Any, split: Split) -> float:
    return metrics.auc(split.test.values != 0, _predicted(estimator, split), sample_weight=split.test.weights)


def _ranking(metric: Callable[..., float], k: int, estimator: Any, split: Split) -> float:
    test, rows, ids = _lists(k, estimator, split)
    return metric(test.csr[rows], ids, min(k, test.shape[1]))


def _list_measure(name: str, k: int, estimator: Any, split: Split) -> float:
    pattern = split.train.csr.astype(bool, copy=True)
    pattern.data[:] = True
    test, rows, ids = _lists(k, estimator, split)
    n_rows, n_cols = pattern.shape
    k = min(k, n_cols)
    if name == "coverage":
        return metrics.coverage_at_k(ids, n_cols, k)
    if name == "diversity":
        return metrics.diversity_at_k(ids, pattern.T, k)
    counts = np.bincount(pattern.indices, minlength=n_cols)
    if name == "novelty":
        return metrics.novelty_at_k(ids, counts, n_rows, k)
    if name == "stratified_recall":
        return metrics.stratified_recall_at_k(test.csr[rows], ids, counts, k)
    rarity = metrics.label_propensities(counts, n_rows)
    return metrics.propensity_scored_precision_at_k(test.csr[rows], ids, rarity, k)


def _lists(k: int, estimator: Any, split: Split) -> tuple[Observations, IndexArray, IndexArray]:
    """The cells that count, the rows that have some, and lists for these without training cells."""
    train, test = split
    if test.weights is not None:
        silent = test.select(test.weights == 0)
        test = test.select(test.weights > 0)
        # Neither relevant nor a miss, so they are no candidates.
        rows, cols = (
            np.concatenate(parts) for parts in ((train.rows, silent.rows), (train.indices, silent.indices))
        )
        train = Observations.from_triples(rows, cols, np.ones(rows.size), train.shape)
    rows = np.flatnonzero(np.diff(test.indptr))
    ids, _ = estimator.recommend(rows, k=k, exclude=train, **by_position(estimator))
    return test, rows, ids
