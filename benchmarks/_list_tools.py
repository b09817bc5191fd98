"""What the parts of ``benchmarks.lists`` share."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._store import STORED, peak_memory_gib
from unseen import Observations
from unseen.datasets import load_ml100k
from unseen.metrics import ndcg_at_k, recall_at_k, stratified_recall_at_k
from unseen.model_selection import GridSearch, Split

JUDGED = 2000
"""Rows of Gowalla by whose held-out cells settings are chosen."""
HELD_OUT = 0.2


class Spent:
    """Seconds and processor seconds of a block."""

    def __enter__(self) -> Spent:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start[0]
        self.cpu_seconds = time.process_time() - self._start[1]

    def told(self) -> dict[str, float]:
        """Both, and the most memory that the process has held so far."""
        return {
            "seconds": round(self.seconds, 2),
            "cpu_seconds": round(self.cpu_seconds, 2),
            "peak_gib": round(peak_memory_gib(), 2),
        }


def stored_parts() -> dict[str, Any]:
    """Parts that are stored."""
    path = STORED / "lists.json"
    return dict(json.loads(path.read_text())["results"]) if path.exists() else {}


def judged_split(train: Observations, seed: int) -> Split:
    """A fifth of the cells of some rows, held out of the training cells."""
    rng = np.random.default_rng(seed)
    degrees = np.diff(train.indptr)
    rows = rng.choice(np.flatnonzero(degrees >= 5), JUDGED, replace=False)
    held = np.zeros(train.nnz, dtype=bool)
    for row in rows:
        cells = np.arange(train.indptr[row], train.indptr[row + 1])
        held[rng.choice(cells, round(HELD_OUT * cells.size), replace=False)] = True
    return Split(train.select(~held), train.select(held))


def each_row_split(train: Observations, seed: int) -> Split:
    """A fifth of the cells of every row, at least one, held out like the test cells; some rows are judged."""
    rng = np.random.default_rng(seed)
    degrees = np.diff(train.indptr)
    # The first cells of each row in a random order.
    order = np.lexsort((rng.random(train.nnz), train.rows))
    turn = np.arange(train.nnz) - train.indptr[train.rows]
    held = np.zeros(train.nnz, dtype=bool)
    held[order] = turn < np.maximum(1, np.round(HELD_OUT * degrees))[train.rows]
    judged = np.zeros(train.shape[0], dtype=bool)
    judged[rng.choice(np.flatnonzero(degrees >= 5), JUDGED, replace=False)] = True
    return Split(train.select(~held), train.select(held & judged[train.rows]))


def measured(model: Any, split: Split) -> dict[str, float]:
    """All measures of the lists for rows with held-out cells, training cells left out."""
    rows = np.flatnonzero(np.diff(split.test.indptr))
    ids, _ = model.recommend(rows, k=20, exclude=split.train, positions=True)
    truth = split.test.csr[rows]
    counts = np.bincount(split.train.indices, minlength=split.train.shape[1])
    return {
        "recall@20": recall_at_k(truth, ids, 20),
        "ndcg@20": ndcg_at_k(truth, ids, 20),
        "stratified_recall@20": stratified_recall_at_k(truth, ids, counts, 20),
    }


def better(model: Any, split: Split) -> float:
    """What settings are chosen by: the mean of recall and NDCG."""
    found = measured(model, split)
    return (found["recall@20"] + found["ndcg@20"]) / 2


def chosen(model: Any, grid: Any, split: Split) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Settings by the held-out cells, and what was found for each."""
    search = GridSearch(model, grid, cv=split, scoring=better, refit=False)
    search.fit(split.train)
    tried = [{"params": row["params"], "score": row["score"]} for row in search.results_]
    return dict(search.best_params_), tried


def liked_cells(load: Callable[[], Any] = load_ml100k) -> Observations:
    """Ratings in the upper part of the scale (of five stars: 4 and 5), as positives."""
    cells = load().observations
    low, high = float(cells.values.min()), float(cells.values.max())
    cells = cells.select(cells.values >= low + 0.75 * (high - low))
    return cells.with_values(np.ones(cells.nnz))
