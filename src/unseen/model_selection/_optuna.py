"""Search by Optuna's samplers, with sweeps reported to its pruners."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.model_selection._evaluate import SideFeatures, fit_on, iterate_splits
from unseen.model_selection._halving import takes_sweeps
from unseen.model_selection._results import ResultTable
from unseen.model_selection._scoring import Scoring, get_scorer
from unseen.model_selection._search import Candidate, GridSearch, configured, told
from unseen.parallel import one_blas_thread
from unseen.validation import check_count, check_positive, check_rng, check_verbose

__all__ = ["OptunaSearch"]

REPORTS = (1 / 9, 1 / 3, 1.0)
"""Shares of the sweeps after which a trial is judged."""
LOG_FROM = 10.0
"""Ranges whose ends differ by this factor are searched on a logarithmic scale."""


class OptunaSearch(GridSearch):
    """Choose parameters by Optuna: values that promise most are tried next, poor trials are pruned.

    Needs the extra ``unseen[tune]``. The settings of the estimator itself are the first trial where they lie
    within the space, so the choice is never worse than they are on the held-out cells. Where the estimator
    has ``max_iter`` and ``warm_start``, each trial is scored after a ninth and a third of its sweeps, and
    given up if it is worse there than half of the others. With ``n_trials`` alone the same seed gives the
    same answer; with ``timeout`` it depends on the machine.

    Parameters
    ----------
    estimator : completer
        Cloned for each trial; itself left alone.
    space : dict
        For each parameter a list of values, a range ``(low, high)`` of whole numbers or of floats (on a
        logarithmic scale where the ends differ tenfold), or a distribution of Optuna.
    n_trials : int, optional
        Trials; 50 where there is no ``timeout`` either.
    timeout : float, optional
        Seconds after which no new trial begins.
    cv, scoring, refit, verbose
        As of `GridSearch`.
    random_state : int or Generator, default=0
        Seed of the sampler.

    Attributes
    ----------
    best_params_ : dict
        Parameters of the best trial.
    best_score_ : float
        Its mean score over the splits.
    best_index_ : int
        Its position in ``results_``.
    best_estimator_ : completer
        Refitted on all cells, with ``refit=True``.
    results_ : ResultTable
        A dict for each trial: ``params``, ``score``, ``sweeps``, ``pruned``, ``place`` and ``error``.
    n_sweeps_ : int
        Sweeps of all trials.
    n_splits_ : int
        Number of splits.
    study_ : optuna.study.Study
        The study; not part of a saved model.
    scorer_ : Scorer
        What was measured.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import MatrixFactorization
    >>> from unseen.model_selection import OptunaSearch
    >>> X = np.outer(np.arange(1.0, 21.0), np.arange(1.0, 16.0)) / 50
    >>> model = MatrixFactorization(rank=1, random_state=0)
    >>> search = OptunaSearch(model, {"reg": (1e-3, 1e3)}, n_trials=5, cv=3).fit(X)
    >>> search.best_params_["reg"] < 10
    True
    """

    n_sweeps_: int

    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any],
        *,
        n_trials: int | None = None,
        timeout: float | None = None,
        cv: Any = 5,
        scoring: Scoring = "rmse",
        refit: bool = True,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.n_trials = n_trials
        self.timeout = timeout
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Run the trials and refit the best.

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
        OptunaSearch
            Itself.
        """
        optuna = _optuna()
        observations = Observations.from_any(X)
        features = SideFeatures.of(row_features, col_features)
        self.scorer_ = get_scorer(self.scoring)
        self._warn_if_values_say_nothing(observations)
        distributions = self._distributions(optuna)
        splits = list(iterate_splits(self.cv, observations))
        self.n_splits_ = len(splits)
        seed = int(check_rng(self.random_state).integers(2**31))
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.study_ = optuna.create_study(
            direction="maximize" if self.scorer_.greater_is_better else "minimize",
            sampler=optuna.samplers.TPESampler(seed=seed),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
        )
        own = self.estimator.get_params(deep=True)
        fitting = {name: own[name] for name, space in distributions.items() if _within(space, own[name])}
        self.study_.enqueue_trial(fitting)
        table: list[dict[str, Any]] = []
        n_trials = None if self.n_trials is None else check_count("n_trials", self.n_trials)
        timeout = None if self.timeout is None else check_positive("timeout", self.timeout)
        if n_trials is None and timeout is None:
            n_trials = 50

        def objective(trial: Any) -> float:
            params = {name: _suggest(trial, name, space) for name, space in distributions.items()}
            row: dict[str, Any] = {"params": params, "score": np.nan, "fold_scores": [], "sweeps": 0}
            row |= {"pruned": False, "error": None}
            table.append(row)
            start = time.perf_counter()
            try:
                return self._run(trial, params, splits, features, row, optuna.TrialPruned)
            except optuna.TrialPruned:
                row["pruned"] = True
                raise
            except Exception as error:
                row["score"], row["error"] = np.nan, told(error)
                raise optuna.TrialPruned() from error
            finally:
                row["fit_time_s"] = time.perf_counter() - start

        self.study_.optimize(
            objective, n_trials=n_trials, timeout=timeout, show_progress_bar=check_verbose(self.verbose)
        )
        self._rank(table)
        return self._take_best(observations, features)

    def _run(
        self,
        trial: Any,
        params: Candidate,
        splits: Any,
        features: SideFeatures,
        row: dict[str, Any],
        pruned: Any,
    ) -> float:
        models = [configured(self.estimator, params) for _ in splits]
        steps: tuple[float, ...] = (1.0,)
        full = 0
        if takes_sweeps(models[0]):
            full = int(models[0].get_params(deep=False)["max_iter"])
            steps = REPORTS
        done = 0
        for share in steps:
            budget = max(done + 1, round(share * full)) if full else 1
            scores = []
            for model, split in zip(models, splits, strict=True):
                if full:
                    model.set_params(warm_start=True, max_iter=budget - done)
                with warnings.catch_warnings(), one_blas_thread():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    fit_on(model, split.train, features)
                    scores.append(self.scorer_(model, split))
                row["sweeps"] += int(getattr(model, "n_iter_", 1) or 1)
            done = budget
            row["fold_scores"], row["score"] = scores, float(np.mean(scores))
            if not np.isfinite(row["score"]):
                raise ParameterError(f"{self.scorer_.name} is {row['score']}")
            trial.report(row["score"], step=budget)
            if share < 1 and trial.should_prune():
                raise pruned()
        return float(row["score"])

    def _rank(self, table: list[dict[str, Any]]) -> None:
        sign = -1.0 if self.scorer_.greater_is_better else 1.0
        whole = [row["error"] is None and not row["pruned"] for row in table]
        if not any(whole):
            first = table[0]["error"] if table else "no trial ended in time"
            raise ParameterError(f"all {len(table)} trials failed; the first: {first}")
        order = sorted(
            range(len(table)), key=lambda place: (not whole[place], sign * table[place]["score"], place)
        )
        for place, index in enumerate(order):
            table[index]["place"] = place + 1
            table[index]["score_std"] = float(np.std(table[index]["fold_scores"] or [np.nan]))
        self.results_ = ResultTable(table)
        self.n_sweeps_ = sum(row["sweeps"] for row in table)

    def _distributions(self, optuna: Any) -> dict[str, Any]:
        known = self.estimator.get_params(deep=True)
        if not self.space:
            raise ParameterError("space is empty; name at least one parameter")
        for name in self.space:
            if name not in known:
                raise ParameterError(
                    f"space names {name!r}, but {type(self.estimator).__name__} has only "
                    f"{', '.join(sorted(known))}"
                )
        return {name: _distribution(optuna, name, values) for name, values in self.space.items()}

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "study_"}


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise ParameterError("OptunaSearch needs the package optuna: pip install 'unseen[tune]'") from error
    return optuna


def _distribution(optuna: Any, name: str, values: Any) -> Any:
    kinds = optuna.distributions
    if isinstance(values, kinds.BaseDistribution):
        return values
    if isinstance(values, tuple) and len(values) == 2:
        low, high = values
        numbers = all(isinstance(end, (int, float, np.integer, np.floating)) for end in values)
        if numbers and low < high:
            log = bool(low > 0 and high / low >= LOG_FROM)
            whole = all(isinstance(end, (int, np.integer)) for end in values)
            if whole:
                return kinds.IntDistribution(int(low), int(high), log=log)
            return kinds.FloatDistribution(float(low), float(high), log=log)
    elif isinstance(values, (list, np.ndarray)) and len(values):
        return _Choices(list(values))
    raise ParameterError(
        f"space: {name!r} is {values!r}; expected a list of values, a range (low, high), or a distribution "
        "of Optuna"
    )


class _Choices:
    """Values of any kind, which Optuna knows by their place."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


def _suggest(trial: Any, name: str, space: Any) -> Any:
    if isinstance(space, _Choices):
        return space.values[trial.suggest_categorical(name, list(range(len(space.values))))]
    suggest = {"IntDistribution": trial.suggest_int, "FloatDistribution": trial.suggest_float}
    kind = type(space).__name__
    if kind in suggest:
        return suggest[kind](name, space.low, space.high, step=space.step, log=space.log)
    return trial.suggest_categorical(name, space.choices)


def _within(space: Any, value: Any) -> bool:
    """Whether the estimator's own setting can be the first trial."""
    if isinstance(space, _Choices) or isinstance(value, (bool, str)) or value is None:
        return False
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None or not isinstance(value, (int, float)):
        return False
    return bool(low <= value <= high)
