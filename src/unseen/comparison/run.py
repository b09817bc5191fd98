"""Fit, choose and score each candidate on the same splits."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from unseen.comparison.candidates import TITLES, Candidate, applicable
from unseen.comparison.cost import measured
from unseen.comparison.result import Comparison, Entry
from unseen.comparison.tasks import Task, make_task
from unseen.exceptions import ConvergenceWarning
from unseen.validation import check_choice, check_count, check_fraction, check_verbose

__all__ = ["compare"]


def compare(
    X: Any,
    y: Any = None,
    *,
    task: str = "explicit",
    methods: Sequence[str] | None = None,
    split: str = "entries",
    row_features: Any = None,
    col_features: Any = None,
    times: Any = None,
    repeats: int = 5,
    test_fraction: float = 0.2,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Comparison:
    """Compare methods on one's own data.

    The cells are split several times. Each method chooses its settings on a part of the training
    cells, is fitted again to all of them, and is scored once on the test cells, which nothing before has
    seen. Simple baselines are always among the methods.

    Parameters
    ----------
    X : Observations, sparse matrix or dense array with NaN
        Cells; for the task "multilabel" the features of the rows.
    y : sparse matrix or array, optional
        Labels, for the task "multilabel".
    task : {"explicit", "positive", "links", "multilabel"}, default="explicit"
        What the cells mean.
    methods : sequence of str, optional
        Names from ``CANDIDATES``; by default all that apply.
    split : {"entries", "rows", "cols", "both", "time"}, default="entries"
        What is held out: cells, whole rows, columns or both (cold starts), or what came last, by the times
        that `X` carries.
    row_features, col_features : array or sparse matrix, optional
        Side features; methods without a use for them are fitted without.
    times : Observations or sparse matrix, optional
        When each cell arose, where `X` does not say: times, or else values, of a matrix with its cells.
    repeats : int, default=5
        Number of test parts.
    test_fraction : float, default=0.2
        Share that is held out.
    random_state : int, default=0
        Seed of splits and models.
    n_jobs : int or None
        Threads of each fit.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    Comparison
        Scores, costs and a recommendation in words.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.comparison import compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> found = compare(X, methods=["mf"], repeats=2)
    >>> found.recommended().method
    'mf'
    """
    check_count("repeats", repeats)
    check_fraction("test_fraction", test_fraction)
    check_choice("task", task, ("explicit", "positive", "links", "multilabel"))
    work = make_task(
        task,
        X,
        y,
        split=split,
        row_features=row_features,
        col_features=col_features,
        times=times,
        repeats=repeats,
        test_fraction=test_fraction,
        seed=random_state,
    )
    chosen, left_out = applicable(task, work.sides, methods)
    entries = {
        name: Entry(name, item.estimator, item.simple, title=TITLES.get(name, item.estimator))
        for name, item in chosen.items()
    }
    with tqdm(total=repeats * len(chosen), desc="compare", disable=not check_verbose(verbose)) as bar:
        for parts in work.parts(repeats):
            for name, candidate in chosen.items():
                bar.set_postfix_str(name)
                if entries[name].error is None:
                    _try(entries[name], candidate, work, parts, random_state, n_jobs)
                bar.update()
    facts = {**work.facts, "repeats": repeats, "test_fraction": test_fraction, "random_state": random_state}
    greater = work.greater_is_better
    return Comparison(task, split, work.measures, greater, list(entries.values()), left_out, facts)


def _try(entry: Entry, candidate: Candidate, work: Task, parts: Any, seed: int, n_jobs: int | None) -> None:
    """One method on one split; what goes wrong is told in its entry."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # settings that do badly are not chosen
            model = candidate.make(seed, n_jobs)
            with measured() as search:
                settings = work.choose(model, candidate, parts)
            model.set_params(**settings)
            with measured() as cost:
                work.fit(model, candidate, parts)
            scores = work.score(model, parts)
    except Exception as error:
        entry.error = f"{type(error).__name__}: {error}"
        return
    for measure, value in scores.items():
        entry.scores.setdefault(measure, []).append(value)
    entry.settings.append(settings)
    entry.fit_s.append(cost.seconds)
    entry.search_s.append(search.seconds)
    entry.mib.append(cost.mib)
