"""Search over parameters on held-out cells."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils.parallel import delayed
from tqdm import tqdm

from unseen.data import Observations
from unseen.exceptions import DataWarning, NotFittedError, ParameterError
from unseen.model_selection._evaluate import (
    SideFeatures,
    count_splits,
    fit_on,
    iterate_splits,
)
from unseen.model_selection._results import ResultTable
from unseen.model_selection._scoring import Scorer, Scoring, get_scorer
from unseen.model_selection._side_by_side import MappedSplit, opened, run_side_by_side, sent
from unseen.model_selection._splits import Split
from unseen.parallel import one_blas_thread
from unseen.regularisers import parse_reg
from unseen.typing import FloatArray
from unseen.validation import check_verbose

__all__ = ["Candidate", "GridSearch", "Trial", "chains_of", "configured", "path_parameter", "told"]

Candidate = dict[str, Any]
Chain = list[int]
"""Positions of candidates that are fitted one after the other."""


@dataclass(frozen=True)
class Trial:
    """One candidate on one split."""

    candidate: int
    score: float
    fit_time_s: float
    error: Exception | None


class GridSearch(MetaEstimatorMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Choose parameters of a completer by their score on held-out cells, then refit on all cells.

    Candidates that differ only in ``reg`` (in the penalty that the estimator's ``path`` varies, as
    ``reg_e`` of `MixedLinear`) are fitted from the largest to the smallest, each starting from the
    one before, when the estimator has a parameter ``warm_start``. The chosen model is always
    refitted from scratch, so it can be reproduced without the search.

    Parameters
    ----------
    estimator : completer
        Cloned for each candidate; itself left alone.
    param_grid : dict of sequences, or list of such dicts
        Values to try, as in scikit-learn's ``ParameterGrid``.
    cv : int, splitter, Split or iterable of splits, default=5
        What is held out; see `cross_validate`. Pass ``split_entries(X)`` for a single split.
    scoring : str, Scorer or callable, default="rmse"
        What to choose by; see `get_scorer`. For positive-only data, whose values are all equal, use
        a ranking measure such as ``"recall@10"``.
    refit : bool, default=True
        Fit the best candidate on all cells.
    n_jobs : int or None, default=1
        Fits at a time; None for all cores. Estimators use threads of their own.
    prefer : {"threads", "processes"}, default="threads"
        Where they run side by side; see `cross_validate`.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    best_params_ : dict
        Parameters of the best candidate; the first in the grid among equals.
    best_score_ : float
        Its mean score over the splits, in the unit of the measure (an RMSE is small when good).
    best_index_ : int
        Its position in ``results_``.
    best_estimator_ : completer
        Refitted on all cells, with ``refit=True``.
    results_ : ResultTable
        A dict for each candidate: ``params``, ``score``, ``score_std``, ``fold_scores``,
        ``fit_time_s``, ``place`` (1 is best) and ``error`` (None, or what went wrong).
    scorer_ : Scorer
        What was measured.
    n_splits_ : int
        Number of splits.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import MatrixFactorization
    >>> from unseen.model_selection import GridSearch
    >>> X = np.outer(np.arange(1.0, 21.0), np.arange(1.0, 16.0)) / 50
    >>> search = GridSearch(MatrixFactorization(rank=1, random_state=0), {"reg": [1e-3, 1e3]}, cv=3)
    >>> search.fit(X).best_params_
    {'reg': 0.001}
    >>> search.predict_entries([2], [3]).shape
    (1,)
    """

    best_params_: Candidate
    best_score_: float
    best_index_: int
    best_estimator_: Any
    results_: ResultTable
    scorer_: Scorer
    n_splits_: int

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        cv: Any = 5,
        scoring: Scoring = "rmse",
        refit: bool = True,
        n_jobs: int | None = 1,
        prefer: str = "threads",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.prefer = prefer
        self.verbose = verbose

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Try all candidates and refit the best.

        Parameters
        ----------
        X : Observations, sparse matrix or dense array with NaN
            All known cells.
        y : None
            Ignored.
        row_features, col_features : array or sparse matrix, optional
            Side features, passed on to the estimator.

        Returns
        -------
        GridSearch
            Itself.
        """
        observations = Observations.from_any(X)
        features = SideFeatures.of(row_features, col_features)
        self.scorer_ = get_scorer(self.scoring)
        self._warn_if_values_say_nothing(observations)
        candidates = self._candidates()
        trials = self._try_all(candidates, observations, features)
        self.results_ = self._summarise(candidates, trials)
        return self._take_best(observations, features)

    def _take_best(self, observations: Observations, features: SideFeatures) -> Self:
        """Note the best of ``results_``, and refit it if that is wanted."""
        self.n_features_in_ = observations.shape[1]
        self.best_index_ = int(np.argmin([row["place"] for row in self.results_]))
        self.best_params_ = self.results_[self.best_index_]["params"]
        self.best_score_ = self.results_[self.best_index_]["score"]
        if self.refit:
            self.best_estimator_ = configured(self.estimator, self.best_params_)
            fit_on(self.best_estimator_, observations, features)
        elif hasattr(self, "best_estimator_"):
            del self.best_estimator_  # of an earlier fit
        return self

    # --- what the chosen model offers -------------------------------------------------------

    def predict_entries(self, rows: Any, cols: Any, **options: Any) -> FloatArray:
        """Call ``predict_entries`` of the best estimator."""
        return self._best("predict_entries")(rows, cols, **options)  # type: ignore[no-any-return]

    def predict_new(self, row_features: Any = None, col_features: Any = None, **options: Any) -> Any:
        """Call ``predict_new`` of the best estimator."""
        return self._best("predict_new")(row_features, col_features, **options)

    def predict_labels(self, rows: Any, cols: Any, **options: Any) -> Any:
        """Call ``predict_labels`` of the best estimator, where it has labels to predict."""
        return self._best("predict_labels")(rows, cols, **options)

    def fold_in(self, X_new: Any, **options: Any) -> FloatArray:
        """Call ``fold_in`` of the best estimator."""
        return self._best("fold_in")(X_new, **options)  # type: ignore[no-any-return]

    def transform(self, X: Any, **options: Any) -> FloatArray:
        """Call ``transform`` of the best estimator."""
        return self._best("transform")(X, **options)  # type: ignore[no-any-return]

    def recommend(self, rows: Any = None, k: int = 10, **options: Any) -> Any:
        """Call ``recommend`` of the best estimator."""
        return self._best("recommend")(rows, k=k, **options)

    def similar_rows(self, rows: Any, k: int = 10, **options: Any) -> Any:
        """Call ``similar_rows`` of the best estimator."""
        return self._best("similar_rows")(rows, k=k, **options)

    def similar_cols(self, cols: Any, k: int = 10, **options: Any) -> Any:
        """Call ``similar_cols`` of the best estimator."""
        return self._best("similar_cols")(cols, k=k, **options)

    def save(self, path: str | PathLike[str], **options: Any) -> None:
        """Save the best estimator; what is loaded again is that model, not the search."""
        self._best("save")(path, **options)

    def _best(self, method: str) -> Any:
        if not hasattr(self, "best_params_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit before {method}")
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                f"{method} needs a refitted model, but this {type(self).__name__} has refit=False"
            )
        return getattr(self.best_estimator_, method)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_params_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = self.estimator.__sklearn_tags__()
            tags.input_tags = inner.input_tags
            tags.non_deterministic = inner.non_deterministic
        return tags

    # --- the search ---------------------------------------------------------------------------

    def _candidates(self) -> list[Candidate]:
        candidates: list[Candidate] = list(ParameterGrid(self.param_grid))
        known = self.estimator.get_params(deep=True)
        for name in dict.fromkeys(name for candidate in candidates for name in candidate):
            if name not in known:
                raise ParameterError(
                    f"param_grid names {name!r}, but {type(self.estimator).__name__} has only "
                    f"{', '.join(sorted(known))}"
                )
        return candidates

    def _try_all(
        self, candidates: list[Candidate], observations: Observations, features: SideFeatures
    ) -> list[list[Trial]]:
        """Trials of each candidate, split by split; splits are made one at a time."""
        warm = "warm_start" in self.estimator.get_params(deep=False)
        penalty = path_parameter(self.estimator)
        chains = chains_of(candidates, penalty) if warm else [[index] for index in range(len(candidates))]
        jobs = (
            delayed(_run_chain)(self.estimator, candidates, chain, split, self.scorer_, features)
            for split in self._sent_splits(observations)
            for chain in chains
        )
        trials: list[list[Trial]] = [[] for _ in candidates]
        n_splits = count_splits(self.cv)
        total = None if n_splits is None else n_splits * len(candidates)
        with tqdm(total=total, desc="fits", disable=not check_verbose(self.verbose)) as progress:
            for chain_trials in run_side_by_side(jobs, self.n_jobs, self.prefer):
                for trial in chain_trials:
                    trials[trial.candidate].append(trial)
                progress.update(len(chain_trials))
        self.n_splits_ = len(trials[0])
        if self.n_splits_ == 0:
            raise ParameterError(f"cv={self.cv!r} gives no split")
        return trials

    def _sent_splits(self, observations: Observations) -> Iterator[Split | MappedSplit]:
        return (sent(split, observations, self.prefer) for split in iterate_splits(self.cv, observations))

    def _summarise(self, candidates: list[Candidate], trials: list[list[Trial]]) -> ResultTable:
        errors = [next((t.error for t in tried if t.error is not None), None) for tried in trials]
        n_failed = sum(error is not None and not isinstance(error, TimeoutError) for error in errors)
        if all(error is not None for error in errors):
            raise ParameterError(
                f"all {len(candidates)} candidates failed; the first, {candidates[0]}, with {told(errors[0])}"
            ) from errors[0]
        if n_failed:
            first = next(
                index
                for index, error in enumerate(errors)
                if error is not None and not isinstance(error, TimeoutError)
            )
            warnings.warn(
                f"{n_failed} of {len(candidates)} candidates failed and cannot be chosen; the first, "
                f"{candidates[first]}, with {told(errors[first])}. See `error` in results_.",
                FitFailedWarning,
                stacklevel=3,
            )
        scores = np.array([np.mean([t.score for t in tried]) for tried in trials])
        badness = np.where(np.isnan(scores), np.inf, -scores if self.scorer_.greater_is_better else scores)
        from scipy.stats import rankdata  # many modules that a fit does without

        places = rankdata(badness, method="min").astype(int)
        return ResultTable(
            {
                "params": candidates[index],
                "score": float(scores[index]),
                "score_std": float(np.std([t.score for t in tried])),
                "fold_scores": [t.score for t in tried],
                "fit_time_s": float(np.mean([t.fit_time_s for t in tried])),
                "place": int(places[index]),
                "error": told(errors[index]),
            }
            for index, tried in enumerate(trials)
        )

    def _warn_if_values_say_nothing(self, observations: Observations) -> None:
        if self.scorer_.compares_values and observations.nnz and np.ptp(observations.values) == 0:
            warnings.warn(
                f"all {observations.nnz} cells of X have the value {observations.values[0]:g}, so scoring="
                f"{self.scorer_.name!r} favours a model that predicts this everywhere; for positive-only "
                "data use a ranking measure such as 'recall@10'",
                DataWarning,
                stacklevel=3,
            )


def configured(estimator: Any, params: Candidate) -> Any:
    return clone(estimator).set_params(**clone(params, safe=False))


def path_parameter(estimator: Any) -> str:
    """Penalty along which one fit is a good start for the next."""
    return getattr(estimator, "path_parameter", "reg")


def chains_of(candidates: list[Candidate], penalty: str) -> list[Chain]:
    """Group candidates that differ only in a penalty, largest first."""
    groups: dict[tuple[Any, ...], Chain] = {}
    for index, candidate in enumerate(candidates):
        # A grid repeats the very same objects, so identity is enough and no value need be hashable.
        rest = tuple(sorted((name, id(value)) for name, value in candidate.items() if name != penalty))
        groups.setdefault((rest, penalty in candidate), []).append(index)
    return [
        sorted(group, key=lambda index: -_size(candidates[index].get(penalty, 0.0)))
        for group in groups.values()
    ]


def _size(reg: Any) -> float:
    """Place in a path; one whose size only the data tell begins it."""
    return np.inf if reg in ("auto", "spectral") else parse_reg(reg)[0]


@one_blas_thread()  # scores included
def _run_chain(
    estimator: Any,
    candidates: list[Candidate],
    chain: Chain,
    given: Split | MappedSplit,
    scorer: Scorer,
    features: SideFeatures,
) -> list[Trial]:
    """Fit and score candidates one after the other, each from the one before where there are several."""
    trials = []
    model, split = None, opened(given)
    for index in chain:
        fit_time, score, failure = np.nan, np.nan, None
        try:
            if model is None:
                model = configured(estimator, candidates[index])
                if len(chain) > 1:
                    model.set_params(warm_start=True)
            else:
                penalty = path_parameter(estimator)
                model.set_params(**{penalty: candidates[index][penalty]})
            fit_time = fit_on(model, split.train, features)
            score = scorer(model, split)
            if not np.isfinite(score):
                raise ParameterError(f"{scorer.name} is {score}")
        except Exception as error:
            failure, score, model = error, np.nan, None
        trials.append(Trial(index, score, fit_time, failure))
    return trials


def told(error: Exception | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"
