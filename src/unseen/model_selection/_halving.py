"""Search that gives up poor candidates early: successive halving over sweeps or cells."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import delayed
from tqdm import tqdm

from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.model_selection._evaluate import SideFeatures, fit_on
from unseen.model_selection._results import ResultTable
from unseen.model_selection._scoring import Scorer, Scoring
from unseen.model_selection._search import Candidate, GridSearch, Trial, chains_of, configured, path_parameter
from unseen.model_selection._side_by_side import MappedSplit, opened, run_side_by_side
from unseen.model_selection._splits import Split, is_mirrored
from unseen.parallel import one_blas_thread
from unseen.typing import BoolArray
from unseen.validation import check_choice, check_positive, check_rng, check_verbose

__all__ = ["HalvingSearch", "takes_sweeps"]

SMALLEST_SHARE = 0.05
"""Of the training cells, in the first rung."""
LEAST_CELLS = 100_000
"""Training cells of the first rung where a budget is one of sweeps; smaller data are used whole."""
LEAST_SWEEPS = 2
"""Of a candidate, in the first rung; after one, models differ by their starts more than by their settings."""
LEAST_ROWS = 300
"""Rows by whose lists a candidate is judged in the first rung, and a third of those it is fitted to."""


def takes_sweeps(estimator: Any) -> bool:
    """Whether a fit can be stopped after some sweeps and be taken up again."""
    known = estimator.get_params(deep=False)
    return "warm_start" in known and isinstance(known.get("max_iter"), (int, np.integer))


@dataclass
class _Running:
    """Candidates on one split, with the models that wait to be taken up again."""

    split: Split | MappedSplit
    models: dict[int, Any] = field(default_factory=dict)
    sweeps: dict[int, int] = field(default_factory=dict)


class _Rung(NamedTuple):
    """What one split has to show after a rung."""

    trials: list[Trial]
    models: dict[int, Any]
    sweeps: dict[int, int]


class HalvingSearch(GridSearch):
    """Choose parameters like `GridSearch`, in a part of its time: most candidates are given up early.

    All candidates begin with a small budget; one in ``factor`` goes on with ``factor`` times as much, until
    the last few, at least two, have the full budget. A budget is a number of sweeps where the estimator has
    ``max_iter`` and ``warm_start``: models that stay are taken up where they were left, and candidates that
    differ only in the penalty start from the next larger one, with half of the first sweeps. For others it
    is a share of the training cells.

    Sweeps over many cells and lists of many rows take long, so they get a share of the rows as well: of more
    than 100,000 cells only those of some rows are trained on (of a symmetric matrix all), and where lists are
    judged, those of 300 rows or more. Rows keep all their cells, the rows of a rung are among those of
    the next, and the last rung has all. Held-out cells are never trained on.

    The best candidate is among those with the full budget, and is refitted from scratch.

    Parameters
    ----------
    estimator : completer
        Cloned for each candidate; itself left alone. Its ``max_iter`` is the full budget of sweeps.
    param_grid : dict of sequences, or list of such dicts
        Values to try, as in scikit-learn's ``ParameterGrid``.
    factor : float, default=3
        How much more the next rung gets, and of how many candidates one goes on.
    resource : {"auto", "sweeps", "cells"}, default="auto"
        What a budget is.
    timeout : float, optional
        Seconds after which no further fit begins. The best is then chosen among the candidates that came
        furthest; at least one is fitted.
    cv : int, splitter, Split or iterable of splits, default=5
        What is held out; see `cross_validate`. Pass ``split_entries(X)`` for a single split.
    scoring : str, Scorer or callable, default="rmse"
        What to choose by; see `get_scorer`.
    refit : bool, default=True
        Fit the best candidate on all cells.
    n_jobs : int or None, default=1
        Splits at a time; None for all cores.
    prefer : {"threads", "processes"}, default="threads"
        Where they run side by side; see `cross_validate`.
    verbose : int, default=0
        1 shows a progress bar.
    random_state : int or Generator, default=0
        Source of the rows that are judged in the first rungs, and of the cells where these are shares of the
        cells.

    Attributes
    ----------
    best_params_ : dict
        Parameters of the best candidate.
    best_score_ : float
        Its mean score over the splits.
    best_index_ : int
        Its position in ``results_``.
    best_estimator_ : completer
        Refitted on all cells, with ``refit=True``.
    results_ : ResultTable
        A dict for each candidate, as of `GridSearch`, with the ``rung`` that it reached and its ``sweeps``.
        Scores of candidates that were given up are those of their last rung.
    n_sweeps_ : int
        Sweeps of all fits but the last together.
    n_rungs_ : int
        Rungs.
    n_splits_ : int
        Number of splits.
    scorer_ : Scorer
        What was measured.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import MatrixFactorization
    >>> from unseen.model_selection import HalvingSearch
    >>> X = np.outer(np.arange(1.0, 21.0), np.arange(1.0, 16.0)) / 50
    >>> model = MatrixFactorization(rank=1, max_iter=27, random_state=0)
    >>> search = HalvingSearch(model, {"reg": [1e-3, 1e-1, 1e3]}, cv=3).fit(X)
    >>> search.best_params_, search.n_rungs_
    ({'reg': 0.001}, 2)
    """

    n_sweeps_: int
    n_rungs_: int

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        factor: float = 3,
        *,
        resource: str = "auto",
        timeout: float | None = None,
        cv: Any = 5,
        scoring: Scoring = "rmse",
        refit: bool = True,
        n_jobs: int | None = 1,
        prefer: str = "threads",
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            cv=cv,
            scoring=scoring,
            refit=refit,
            n_jobs=n_jobs,
            prefer=prefer,
            verbose=verbose,
        )
        self.factor = factor
        self.resource = resource
        self.timeout = timeout
        self.random_state = random_state

    def _by_sweeps(self, candidates: list[Candidate]) -> bool:
        able = takes_sweeps(self.estimator)
        if check_choice("resource", self.resource, ("auto", "sweeps", "cells")) == "auto":
            return able and not any("max_iter" in candidate for candidate in candidates)
        if self.resource == "sweeps" and not able:
            raise ParameterError(
                f"resource='sweeps', but {type(self.estimator).__name__} has no max_iter and warm_start, by "
                "which a fit could be taken up again; use 'cells'"
            )
        return self.resource == "sweeps"

    def _budgets(self, n_candidates: int, factor: float, by_sweeps: bool) -> list[float]:
        """Shares of the full budget, the last of which is one."""
        n_rungs = 1 + int(np.floor(np.log(n_candidates) / np.log(factor) + 1e-9))
        if by_sweeps:
            full = max(1.0, self.estimator.get_params(deep=False)["max_iter"] / LEAST_SWEEPS)
            n_rungs = min(n_rungs, 1 + int(np.floor(np.log(full) / np.log(factor) + 1e-9)))
        return [factor ** float(rung - n_rungs + 1) for rung in range(n_rungs)]

    def _try_all(
        self, candidates: list[Candidate], observations: Observations, features: SideFeatures
    ) -> list[list[Trial]]:
        factor = check_positive("factor", self.factor)
        if factor <= 1:
            raise ParameterError(f"factor must be above 1, got {self.factor!r}")
        by_sweeps = self._by_sweeps(candidates)
        end = np.inf
        if self.timeout is not None:
            end = time.monotonic() + check_positive("timeout", self.timeout)
        rng = check_rng(self.random_state)
        running = [_Running(split) for split in self._sent_splits(observations)]
        self.n_splits_ = len(running)
        if not running:
            raise ParameterError(f"cv={self.cv!r} gives no split")
        seeds = rng.integers(2**63, size=len(running))
        budgets = self._budgets(len(candidates), factor, by_sweeps)
        self.n_rungs_ = len(budgets)
        # Two at least are left to decide between at the full budget.
        sizes = [max(2, math.floor(len(candidates) / factor**rung + 1e-9)) for rung in range(len(budgets))]
        alive = list(range(len(candidates)))
        trials: list[list[Trial]] = [[] for _ in candidates]
        self._rungs, self._spent = [0] * len(candidates), [0] * len(candidates)
        with tqdm(total=len(budgets), desc="rungs", disable=not check_verbose(self.verbose)) as progress:
            for rung, share in enumerate(budgets):
                jobs = (
                    delayed(_one_split)(
                        self.estimator,
                        candidates,
                        alive,
                        run,
                        share,
                        factor,
                        by_sweeps,
                        int(seeds[number]),
                        end,
                        self.scorer_,
                        features,
                    )
                    for number, run in enumerate(running)
                )
                found: list[list[Trial]] = []
                for run, done in zip(running, run_side_by_side(jobs, self.n_jobs, self.prefer), strict=True):
                    run.models, run.sweeps = done.models, done.sweeps
                    found.append(done.trials)
                for index in alive:
                    tried = [trial for split in found for trial in split if trial.candidate == index]
                    if rung == 0 or not any(isinstance(trial.error, TimeoutError) for trial in tried):
                        trials[index], self._rungs[index] = tried, rung
                if rung + 1 < len(budgets):
                    alive = self._best_of(alive, trials, sizes[rung + 1])
                    for run in running:
                        run.models = {index: run.models[index] for index in alive if index in run.models}
                progress.update()
                if time.monotonic() > end:
                    break
        for run in running:
            for index, sweeps in run.sweeps.items():
                self._spent[index] += sweeps
        self.n_sweeps_ = sum(self._spent)
        return trials

    def _best_of(self, alive: list[int], trials: list[list[Trial]], count: int) -> list[int]:
        sign = -1.0 if self.scorer_.greater_is_better else 1.0
        badness = {index: sign * float(np.mean([trial.score for trial in trials[index]])) for index in alive}
        order = sorted(alive, key=lambda index: (np.isnan(badness[index]), badness[index], index))
        return sorted(order[:count])

    def _summarise(self, candidates: list[Candidate], trials: list[list[Trial]]) -> ResultTable:
        results = super()._summarise(candidates, trials)
        # Only scores of the same rung can be compared: those that went further are before the others.
        order = sorted(range(len(results)), key=lambda index: (-self._rungs[index], results[index]["place"]))
        last = max(self._rungs)
        for place, index in enumerate(order):
            results[index]["place"] = place + 1
            results[index]["rung"], results[index]["sweeps"] = self._rungs[index], self._spent[index]
        if all(results[index]["error"] for index in range(len(results)) if self._rungs[index] == last):
            raise ParameterError("all candidates of the last rung failed; see the warnings above")
        return results


def _some(n: int, share: float, rng: np.random.Generator) -> BoolArray:
    """Marks on a share of n things, those of a smaller share among those of a larger."""
    marks = np.zeros(n, dtype=np.bool_)
    marks[rng.permutation(n)[: max(1, round(share * n))]] = True
    return marks


def _of_some_rows(
    split: Split, share: float, rng: np.random.Generator, *, trains_all: bool, judges_all: bool
) -> Split:
    """The split with fewer rows that are judged, and fewer that are trained on where there are many cells.

    Rows keep all their cells: with a part of them, other settings would be best.
    """
    train, test = split
    n_rows = train.shape[0]
    order = rng.permutation(n_rows)
    counting = test if test.weights is None else test.select(test.weights > 0)
    has_test = np.diff(counting.indptr)[order] > 0
    order = np.concatenate([order[has_test], order[~has_test]])
    n_trained = n_rows
    if not trains_all and not is_mirrored(train):
        least = max(LEAST_CELLS / max(train.nnz, 1), 3 * LEAST_ROWS / n_rows)
        n_trained = math.ceil(min(1.0, max(share, least)) * n_rows)
    n_judged = n_rows if judges_all else max(LEAST_ROWS, math.ceil(share * has_test.sum()))
    trained, judged = np.zeros(n_rows, dtype=np.bool_), np.zeros(n_rows, dtype=np.bool_)
    trained[order[:n_trained]] = True
    judged[order[: min(n_judged, n_trained)]] = True
    if n_trained < n_rows:
        train = train.select(trained[train.rows])
    return Split(train, test.select(judged[test.rows]), split.rows, split.cols)


@one_blas_thread()
def _one_split(
    estimator: Any,
    candidates: list[Candidate],
    alive: list[int],
    run: _Running,
    share: float,
    factor: float,
    by_sweeps: bool,
    seed: int,
    end: float,
    scorer: Scorer,
    features: SideFeatures,
) -> _Rung:
    """Bring all candidates that are left to the budget of the rung, and score them."""
    penalty = path_parameter(estimator)
    trials: list[Trial] = []
    split, models, sweeps = opened(run.split), dict(run.models), dict(run.sweeps)
    if share < 1:
        rng = np.random.default_rng(seed)  # the same rows and cells in every rung, and more
        split = _of_some_rows(split, share, rng, trains_all=not by_sweeps, judges_all=scorer.compares_values)
    train = split.train
    if not by_sweeps and share < 1:
        train = train.select(_some(train.nnz, max(share, SMALLEST_SHARE), rng))
    chains = [[place] for place in range(len(alive))]
    sweeps_more = 0
    if by_sweeps:
        full = int(estimator.get_params(deep=False)["max_iter"])
        before_rung = round(share / factor * full) if models else 0
        sweeps_more = max(1, round(share * full) - before_rung)
        chains = chains_of([candidates[index] for index in alive], penalty)
    for chain in chains:
        before = None
        for place in chain:
            index = alive[place]
            fit_time, score, failure = np.nan, np.nan, None
            if trials and time.monotonic() > end:
                trials.append(Trial(index, np.nan, np.nan, TimeoutError("not reached in time")))
                continue
            try:
                model = models.pop(index, None)
                if by_sweeps:
                    more = sweeps_more
                    if model is None and before is not None:
                        model = copy.deepcopy(before).set_params(**{penalty: candidates[index][penalty]})
                        more = math.ceil(more / 2)  # where it starts, part of the way is gone
                    elif model is None:
                        model = configured(estimator, candidates[index])
                    model.set_params(warm_start=True, max_iter=more)
                else:
                    model = configured(estimator, candidates[index])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    fit_time = fit_on(model, train, features)
                sweeps[index] = sweeps.get(index, 0) + int(getattr(model, "n_iter_", 1) or 1)
                score = scorer(model, split)
                if not np.isfinite(score):
                    raise ParameterError(f"{scorer.name} is {score}")
                if by_sweeps:
                    models[index] = before = model
            except Exception as error:
                failure, score, before = error, np.nan, None
            trials.append(Trial(index, score, fit_time, failure))
    return _Rung(trials, models, sweeps)
