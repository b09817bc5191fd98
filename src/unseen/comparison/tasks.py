"""What differs between the tasks: splits, how settings are chosen, and what is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from unseen import metrics
from unseen.comparison.candidates import Candidate
from unseen.comparison.outer_splits import splitter
from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.links import link_curve
from unseen.links.graph import upper_pairs
from unseen.model_selection import GridSearch, HalvingSearch, Scorer, Split, get_scorer, make_scorer
from unseen.model_selection._evaluate import refuse_leak
from unseen.model_selection._halving import takes_sweeps
from unseen.model_selection._time_splits import cell_times
from unseen.typing import CSR, Features, IndexArray
from unseen.validation import check_features

__all__ = ["Task", "make_task"]

HALVED_FROM = 6
"""Candidates from which on most are given up after a few sweeps, where a fit can be taken up again."""


class Task(ABC):
    """One kind of data and question."""

    measures: list[str]
    greater_is_better: bool
    sides: set[str]
    facts: dict[str, Any]

    @abstractmethod
    def parts(self, repeats: int) -> Iterator[Any]:
        """Training and test parts, with the split of the training part."""

    @abstractmethod
    def choose(self, model: Any, candidate: Candidate, parts: Any) -> dict[str, Any]:
        """Settings for one training part; sees nothing else."""

    @abstractmethod
    def fit(self, model: Any, candidate: Candidate, parts: Any) -> None:
        """Fit to the whole training part."""

    @abstractmethod
    def score(self, model: Any, parts: Any) -> dict[str, float]:
        """Measures on the test part."""


def make_task(task: str, X: Any, y: Any, **options: Any) -> Task:
    """The task of a name, with its data."""
    if task == "multilabel":
        return LabelTask(X, y, **options)
    if y is not None:
        raise ParameterError(f"y is for the task 'multilabel'; the task is {task!r}")
    return CellTask(task, X, **options)


def found_links(model: Any, split: Split) -> float:
    """Share of the held-out links in a list as long as their number."""
    pairs = np.column_stack(upper_pairs(split.test).nonzero())
    curve = link_curve(model, pairs, train=split.train, k=len(pairs), positions=True)
    return float(1.0 - curve.fnr[len(pairs) - 1])


LINKS_FOUND: Scorer = make_scorer(found_links, name="links found")


class CellTask(Task):
    """Cells of a matrix: values, positives or links."""

    MEASURES: ClassVar[dict[str, list[str | Scorer]]] = {
        "explicit": ["rmse", "mae"],
        "positive": ["ndcg@10", "recall@10", "precision@10", "stratified_recall@10"],
        "links": [LINKS_FOUND],
    }

    def __init__(
        self,
        task: str,
        X: Any,
        *,
        split: str,
        row_features: Any,
        col_features: Any,
        times: Any,
        repeats: int,
        test_fraction: float,
        seed: int,
    ) -> None:
        self.cells = Observations.from_any(X)
        if times is not None:
            if split != "time":
                raise ParameterError(f"times are given, but split={split!r}; pass split='time'")
            self.cells = self.cells.with_times(cell_times(self.cells, times))
        if task == "positive":
            self._refuse_values()
        if task == "links":
            if split != "entries" or row_features is not None or col_features is not None:
                raise ParameterError("links are compared on held-out links, without features")
            if self.cells.weights is not None:
                raise InvalidDataError("links have no weights: each is found or missed")
            if self.cells.shape[0] != self.cells.shape[1]:
                raise InvalidDataError(
                    f"X is {self.cells.shape[0]} x {self.cells.shape[1]}; links need a square matrix"
                )
        self.scorers = [get_scorer(measure) for measure in self.MEASURES[task]]
        self.measures = [scorer.name for scorer in self.scorers]
        self.greater_is_better = self.scorers[0].greater_is_better
        self.features = {"row": row_features, "col": col_features}
        self.sides = {side for side, given in self.features.items() if given is not None}
        self.facts = {
            "rows": self.cells.shape[0],
            "cols": self.cells.shape[1],
            "cells": self.cells.nnz,
            "features": sorted(self.sides),
        }
        self._splitter = splitter(
            split,
            self.cells,
            repeats=repeats,
            test_fraction=test_fraction,
            seed=seed,
            symmetric=task == "links",
        )

    def _refuse_values(self) -> None:
        """Refuse what is no list of positives; some methods would take all that is stored for one."""
        strange = ~np.isin(self.cells.values, (0, 1))
        if not strange.any():
            return
        at = int(np.argmax(strange))
        raise InvalidDataError(
            f"X has the value {self.cells.values[at]:g} in {self.cells.spot(at)}; positives are ones. Without"
            " a column of values each line counts one: Observations.from_frame(frame, row=, col=), or "
            "--no-value on the command line"
        )

    def parts(self, repeats: int) -> Iterator[tuple[Split, Split]]:
        for number, (outer, inner) in enumerate(self._splitter.repeats(repeats)):
            refuse_leak(outer, self.cells.shape, number)
            refuse_leak(inner, self.cells.shape, number)
            refuse_leak(Split(inner.train, outer.test), self.cells.shape, number)
            refuse_leak(Split(inner.test, outer.test), self.cells.shape, number)
            yield outer, inner

    def _given(self, candidate: Candidate) -> dict[str, Any]:
        if candidate.features == "none":
            return {}
        return {f"{side}_features": self.features[side] for side in self.sides}

    def choose(self, model: Any, candidate: Candidate, parts: tuple[Split, Split]) -> dict[str, Any]:
        if not candidate.grid:
            return {}
        outer, inner = parts
        n_candidates = len(ParameterGrid(dict(candidate.grid)))
        halve = n_candidates >= HALVED_FROM and takes_sweeps(model)
        kind = HalvingSearch if halve else GridSearch
        search = kind(model, dict(candidate.grid), cv=inner, scoring=self.scorers[0], refit=False)
        search.fit(outer.train, **self._given(candidate))
        return dict(search.best_params_)

    def fit(self, model: Any, candidate: Candidate, parts: tuple[Split, Split]) -> None:
        model.fit(parts[0].train, **self._given(candidate))

    def score(self, model: Any, parts: tuple[Split, Split]) -> dict[str, float]:
        return {scorer.name: scorer(model, parts[0]) for scorer in self.scorers}


@dataclass(frozen=True)
class LabelParts:
    """Rows for training, of these some to choose settings on, and rows for the test."""

    train: IndexArray
    choice: IndexArray
    test: IndexArray


class LabelTask(Task):
    """Features and labels of rows."""

    LIST_LENGTHS: ClassVar[tuple[int, ...]] = (1, 3, 5)

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        split: str,
        row_features: Any,
        col_features: Any,
        times: Any,
        repeats: int,
        test_fraction: float,
        seed: int,
    ) -> None:
        if y is None:
            raise ParameterError("the task 'multilabel' needs y, the labels of the rows of X")
        if split not in ("entries", "rows") or times is not None:
            raise ParameterError(f"split={split!r}: rows are held out in the task 'multilabel'")
        if row_features is not None or col_features is not None:
            raise ParameterError("the features of the task 'multilabel' are X")
        self.Y: CSR = sparse.csr_array(y)
        self.X: Features = check_features(X, self.Y.shape[0], "X")
        self.test_fraction, self.seed = test_fraction, seed
        self.measures = [f"precision@{k}" for k in self.LIST_LENGTHS]
        self.greater_is_better, self.sides = True, set()
        self.facts = {"rows": self.X.shape[0], "cols": self.Y.shape[1], "cells": int(self.Y.nnz)}

    def parts(self, repeats: int) -> Iterator[LabelParts]:
        n = self.X.shape[0]
        n_test = max(1, round(self.test_fraction * n))
        n_choice = max(1, round(self.test_fraction * (n - n_test)))
        if n - n_test - n_choice < 1:
            raise InvalidDataError(f"{n} rows are too few for test_fraction={self.test_fraction}")
        for number in range(repeats):
            order = np.random.default_rng(self.seed + number).permutation(n)
            test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
            choice = np.sort(order[n_test : n_test + n_choice])
            yield LabelParts(train, choice, test)

    def choose(self, model: Any, candidate: Candidate, parts: LabelParts) -> dict[str, Any]:
        if not candidate.grid:
            return {}
        rest = np.setdiff1d(parts.train, parts.choice)
        best: tuple[float, dict[str, Any]] | None = None
        for settings in ParameterGrid(dict(candidate.grid)):
            trial = clone(model).set_params(**settings).fit(self.X[rest], self.Y[rest])
            value = self._precisions(trial, parts.choice)[self.measures[0]]
            if best is None or value > best[0]:
                best = value, settings
        assert best is not None
        return best[1]

    def fit(self, model: Any, candidate: Candidate, parts: LabelParts) -> None:
        model.fit(self.X[parts.train], self.Y[parts.train])

    def score(self, model: Any, parts: LabelParts) -> dict[str, float]:
        return self._precisions(model, parts.test)

    def _precisions(self, model: Any, rows: IndexArray) -> dict[str, float]:
        ids, _ = model.predict_topk(self.X[rows], k=max(self.LIST_LENGTHS), positions=True)
        labels = self.Y[rows]
        return {
            f"precision@{k}": float(metrics.precision_at_k(labels, ids, min(k, labels.shape[1])))
            for k in self.LIST_LENGTHS
        }
