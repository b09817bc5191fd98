"""Fitting and scoring over splits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import delayed
from tqdm import tqdm

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.metrics._lists import contains
from unseen.model_selection._folds import KFoldEntries
from unseen.model_selection._results import ResultTable
from unseen.model_selection._scoring import Scorer, Scoring, get_scorer
from unseen.model_selection._side_by_side import MappedSplit, opened, run_side_by_side, sent
from unseen.model_selection._splits import Split, is_mirrored
from unseen.parallel import one_blas_thread
from unseen.validation import check_verbose

__all__ = [
    "SideFeatures",
    "count_splits",
    "cross_validate",
    "fit_on",
    "iterate_splits",
    "refuse_leak",
]


@dataclass(frozen=True)
class SideFeatures:
    """Row and column features of one problem; what is None is not passed on."""

    given: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, row_features: Any, col_features: Any) -> SideFeatures:
        """Keep those that are there."""
        both = {"row_features": row_features, "col_features": col_features}
        return cls({name: value for name, value in both.items() if value is not None})


def cross_validate(
    estimator: Any,
    X: Any,
    *,
    cv: Any = 5,
    scoring: Scoring | Sequence[Scoring] = "rmse",
    row_features: Any = None,
    col_features: Any = None,
    n_jobs: int | None = 1,
    prefer: str = "threads",
    verbose: int = 0,
) -> ResultTable:
    """Fit on the training part and score on the test part of each split.

    Parameters
    ----------
    estimator : completer
        Cloned for each split; itself left alone.
    X : Observations, sparse matrix or dense array with NaN
        All known cells.
    cv : int, splitter, Split or iterable of splits, default=5
        A number deals the cells into that many folds, always the same ones, with mirrored cells of a
        symmetric matrix kept together. A splitter has ``split(X)``. Splits are `Split` objects or
        pairs of training and test `Observations`; for cold starts, a list of `split_rows` results.
    scoring : str, Scorer, callable or sequence of these, default="rmse"
        What to measure; see `get_scorer`.
    row_features, col_features : array or sparse matrix, optional
        Side features, passed on to ``fit``.
    n_jobs : int or None, default=1
        Splits at a time; None for all cores. Estimators use threads of their own.
    prefer : {"threads", "processes"}, default="threads"
        Where they run side by side. Processes are for estimators that spend their time in Python; the cells
        and features are a memory map that all of them read, none gets a copy.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    ResultTable
        A dict for each split: ``split``, ``n_train``, ``n_test`` (cells), ``fit_time_s``,
        ``score_time_s`` and each score under its name. ``mean("rmse")`` averages, ``to_frame()``
        makes a table.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import BiasModel
    >>> from unseen.model_selection import cross_validate
    >>> X = np.add.outer(np.arange(8.0), np.arange(6.0))
    >>> results = cross_validate(BiasModel(), X, cv=3, scoring=["rmse", "mae"])
    >>> len(results), bool(results.mean("rmse") < X.std())
    (3, True)
    """
    observations = Observations.from_any(X)
    features = SideFeatures.of(row_features, col_features)
    measures = [scoring] if isinstance(scoring, str) or callable(scoring) else scoring
    scorers = [get_scorer(measure) for measure in measures]
    if not scorers:
        raise ParameterError("scoring is empty; expected at least one measure")
    jobs = (
        delayed(_fit_and_score)(estimator, number, sent(split, observations, prefer), scorers, features)
        for number, split in enumerate(iterate_splits(cv, observations))
    )
    outcomes = run_side_by_side(jobs, n_jobs, prefer)
    results = ResultTable(
        tqdm(outcomes, total=count_splits(cv), desc="splits", disable=not check_verbose(verbose))
    )
    if not results:
        raise ParameterError(f"cv={cv!r} gives no split")
    return results


def iterate_splits(cv: Any, observations: Observations) -> Iterator[Split]:
    """Yield checked splits for whatever `cv` is."""
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        cv = KFoldEntries(int(cv), random_state=0, symmetric=is_mirrored(observations))
    splits = [cv] if isinstance(cv, Split) else cv.split(observations) if hasattr(cv, "split") else cv
    if not isinstance(splits, Iterable):
        raise ParameterError(
            f"cv={cv!r}; expected a number of folds, an object with split(X), a Split "
            "or an iterable of splits"
        )
    for number, parts in enumerate(splits):
        split = _as_split(parts, number)
        refuse_leak(split, observations.shape, number)
        yield split


def count_splits(cv: Any) -> int | None:
    """Number of splits where it is known in advance."""
    if isinstance(cv, (int, np.integer)):
        return int(cv)
    if isinstance(cv, Split):
        return 1
    if hasattr(cv, "get_n_splits"):
        return int(cv.get_n_splits())
    return len(cv) if hasattr(cv, "__len__") else None


def fit_on(estimator: Any, observations: Observations, features: SideFeatures) -> float:
    """Fit in place and give the seconds it took."""
    start = time.perf_counter()
    estimator.fit(observations, **features.given)
    return time.perf_counter() - start


@one_blas_thread()  # for the scores too, or they would depend on how many run side by side
def _fit_and_score(
    estimator: Any,
    number: int,
    given: Split | MappedSplit,
    scorers: Sequence[Scorer],
    features: SideFeatures,
) -> dict[str, Any]:
    model, split = clone(estimator), opened(given)
    fit_time = fit_on(model, split.train, features)
    start = time.perf_counter()
    scores = {scorer.name: scorer(model, split) for scorer in scorers}
    return {
        "split": number,
        "n_train": split.train.nnz,
        "n_test": split.test.nnz,
        "fit_time_s": fit_time,
        "score_time_s": time.perf_counter() - start,
        **scores,
    }


def _as_split(parts: Any, number: int) -> Split:
    if isinstance(parts, Split):
        return parts
    if isinstance(parts, tuple) and len(parts) == 2 and all(isinstance(part, Observations) for part in parts):
        return Split(*parts)
    raise ParameterError(
        f"cv: split {number} is a {type(parts).__name__}; expected a Split or a pair of training and test "
        "Observations"
    )


def refuse_leak(split: Split, shape: tuple[int, int], number: int) -> None:
    """A test cell that is also in training would make every score look better than it is."""
    train, test = split
    if train.shape != shape or test.shape != shape:
        raise InvalidDataError(
            f"cv: split {number} has parts of shape {train.shape} and {test.shape}; X has shape {shape}"
        )
    leaked = np.flatnonzero(contains(train.csr, test.rows, test.indices))
    if leaked.size:
        raise InvalidDataError(
            f"cv: split {number} leaks: {leaked.size} test cells are also in training, first "
            f"{test.spot(int(leaked[0]))}"
        )
