"""Scores of parts of the held-out cells: new and old rows, new, rare and frequent columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from unseen.metrics._frequency import thirds
from unseen.model_selection._results import ResultTable
from unseen.model_selection._scoring import Scorer, Scoring, get_scorer
from unseen.model_selection._splits import Split
from unseen.typing import BoolArray

__all__ = ["SEGMENTS", "segment_scorers", "segment_table", "segments"]

SEGMENTS = ("all", "new rows", "old rows", "new columns", "tail columns", "middle columns", "head columns")
"""Names of the parts, in the order of tables."""


def segments(split: Split) -> dict[str, Split]:
    """Cut the test part of a split by what training knows of its rows and columns.

    Rows and columns without training cells are new. The other columns are the head, the middle and the tail:
    the most frequent ones, the next and the rest, each with about a third of the training cells.

    Parameters
    ----------
    split : Split
        Training and test part.

    Returns
    -------
    dict of Split
        By the names "all", "new rows", "old rows", "new columns", "tail columns", "middle columns" and
        "head columns"; the training part is the same in each, and a test part may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen.model_selection import segments, split_rows
    >>> split = split_rows(np.ones((10, 4)), test_fraction=0.3, random_state=0)
    >>> {name: part.test.nnz for name, part in segments(split).items() if "rows" in name}
    {'new rows': 12, 'old rows': 0}
    """
    train, test = split
    in_row = np.diff(train.indptr)
    in_col = np.bincount(train.indices, minlength=train.shape[1])
    third = np.where(in_col > 0, thirds(in_col.astype(np.float64)), -1)[test.indices]
    masks: list[BoolArray] = [
        np.ones(test.nnz, dtype=np.bool_),
        in_row[test.rows] == 0,
        in_row[test.rows] > 0,
        *(third == number for number in (-1, 2, 1, 0)),
    ]
    return {
        name: Split(train, test if mask.all() else test.select(mask))
        for name, mask in zip(SEGMENTS, masks, strict=True)
    }


def segment_scorers(scoring: Scoring | Sequence[Scoring]) -> dict[str, list[Scorer]]:
    """One scorer for each measure and segment, for `cross_validate`; NaN where a segment has no cells.

    Parameters
    ----------
    scoring : str, Scorer, callable or sequence of these
        As `get_scorer` takes it.

    Returns
    -------
    dict of lists
        By segment; names of scorers end with that of the segment in brackets.

    Examples
    --------
    >>> from unseen.model_selection import segment_scorers
    >>> [scorer.name for scorer in segment_scorers("rmse")["new rows"]]
    ['rmse [new rows]']
    """
    measures = [get_scorer(one) for one in _as_list(scoring)]
    return {
        segment: [
            Scorer(
                f"{measure.name} [{segment}]",
                partial(_score_segment, measure, segment),
                measure.greater_is_better,
                measure.compares_values,
            )
            for measure in measures
        ]
        for segment in SEGMENTS
    }


def segment_table(estimator: Any, split: Split, scoring: Scoring | Sequence[Scoring] = "rmse") -> ResultTable:
    """Scores of a fitted estimator on each segment of the test part.

    Lists are made of all columns in every segment; only what counts as a hit differs.

    Parameters
    ----------
    estimator : completer
        Fitted to the training part.
    split : Split
        Training and test part.
    scoring : str, Scorer, callable or sequence of these, default="rmse"
        As `get_scorer` takes it.

    Returns
    -------
    ResultTable
        A dict for each of `segments`: ``segment``, ``n_cells`` and the scores, NaN without cells.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import BiasModel
    >>> from unseen.model_selection import segment_table, split_rows
    >>> X = np.add.outer(np.arange(10.0), np.arange(4.0))
    >>> split = split_rows(X, test_fraction=0.3, random_state=0)
    >>> table = segment_table(BiasModel().fit(split.train), split)
    >>> [line["n_cells"] for line in table][:3]
    [12, 12, 0]
    """
    measures = [get_scorer(one) for one in _as_list(scoring)]
    return ResultTable(
        {
            "segment": name,
            "n_cells": part.test.nnz,
            **{measure.name: _score(measure, estimator, part) for measure in measures},
        }
        for name, part in segments(split).items()
    )


def _as_list(scoring: Scoring | Sequence[Scoring]) -> Sequence[Scoring]:
    return [scoring] if isinstance(scoring, str) or callable(scoring) else scoring


def _score_segment(measure: Scorer, segment: str, estimator: Any, split: Split) -> float:
    return _score(measure, estimator, segments(split)[segment])


def _score(measure: Scorer, estimator: Any, split: Split) -> float:
    weights = split.test.weights
    counts = split.test.nnz > 0 and (weights is None or bool(weights.any()))
    return measure(estimator, split) if counts else float("nan")
