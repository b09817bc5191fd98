"""Scores of a saved model on test cells, and of a method by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import unseen
from unseen.cli.errors import UsageError
from unseen.cli.link_scoring import refuse_common_links, score_links
from unseen.cli.lists import exclusions
from unseen.cli.methods import MEASURES, task_of
from unseen.cli.output import Output
from unseen.cli.sources import is_of_links, like_training, training_ids, within_training
from unseen.data import Observations
from unseen.exceptions import InvalidDataError
from unseen.model_selection import KFoldEntries, Split, cross_validate, get_scorer

__all__ = ["score_method", "score_model"]


def score_model(
    out: Output,
    model_path: Path,
    test_path: Path,
    names: list[str],
    *,
    columns: dict[str, Any],
    exclude: Path | None,
    unknown: str,
    list_length: int | None,
) -> None:
    """Score a saved model on a file of test cells.

    Parameters
    ----------
    out : Output
        Where the scores go.
    model_path, test_path : Path
        The model and the cells.
    names : list of str
        Measures; none for those of the task, for links the list of all pairs.
    columns : dict
        How to read the cells, as `like_training` takes it.
    exclude : Path or None
        Training cells, for the measures that rank; needed for links.
    unknown : {"error", "skip"}
        What to do about ids that the model does not know.
    list_length : int or None
        Longest list of pairs, for links.
    """
    model = unseen.load(model_path)
    source = getattr(model, "source_", None) or {}
    if columns["value"] is None and source.get("value", "") is None:  # fitted to pairs without values
        columns = {**columns, "has_values": False}
    links = is_of_links(model)
    as_list = links and not names
    if as_list and exclude is None:
        raise UsageError("--exclude is needed for a model of links: the file that it was fitted to")
    if list_length is not None and not as_list:
        raise UsageError("--list-length is for models of links, scored without --metrics")
    if links and columns["weight"] is not None:
        raise UsageError(f"--weight {columns['weight']}: links have no weights, each line is one")
    cells = like_training(model, test_path, **columns, links=links, weighted=not links).read()
    ids = training_ids(model, "row"), training_ids(model, "col")
    test, n_lost = within_training(cells, *ids, test_path, unknown, links=links)
    if exclude is None:
        train = test.select(np.zeros(test.nnz, dtype=bool))
    else:
        how = {name: columns[name] for name in ("row", "col", "sep", "header", "encoding", "wide")}
        train = exclusions(model, exclude, **how)
    if as_list:
        about = {"model": str(model_path), "test": str(test_path), "n_skipped": n_lost}
        refuse_common_links(train, test, ids[0], test_path)
        score_links(out, model, train, test, list_length, about)
        return
    names = names or list(MEASURES[task_of(source.get("method"))])
    parts = Split(train, test)
    scores = {name: get_scorer(name)(model, parts) for name in names}
    document = {
        "command": "evaluate",
        "model": str(model_path),
        "test": str(test_path),
        "n_cells": test.nnz,
        "n_skipped": n_lost,
        "scores": scores,
    }
    title = f"{type(model).__name__} on {test.nnz:,} cells" + (f", {n_lost:,} left out" if n_lost else "")
    out.result(document, lambda: out.table(["measure", "value"], list(scores.items()), title=title))


def score_method(
    out: Output,
    model: Any,
    cells: Observations,
    features: dict[str, Any],
    names: list[str],
    split: str,
    folds: int,
    seed: int,
) -> None:
    """Score a method by cross-validation, with its settings as they are."""
    cv = KFoldEntries(folds, random_state=seed) if split == "entries" else RowFolds(folds, seed)
    results = cross_validate(model, cells, cv=cv, scoring=names, verbose=out.progress, **features)
    spread = [(name, results.mean(name), float(np.std(results.column(name)))) for name in names]
    document = {
        "command": "evaluate",
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "split": split,
        "folds": list(results),
        "scores": {name: {"mean": mean, "std": std} for name, mean, std in spread},
        "fit_time_s": results.mean("fit_time_s"),
    }
    held_out = "cells" if split == "entries" else "whole rows"
    title = f"{type(model).__name__}, {folds} folds of {held_out}, {cells.nnz:,} cells"
    out.result(document, lambda: out.table(["measure", "mean", "std"], spread, title=title))


class RowFolds:
    """Deals the rows that have cells into folds; each fold is the test part once.

    Parameters
    ----------
    n_splits : int
        Folds.
    seed : int
        Seed of the deal.
    """

    def __init__(self, n_splits: int, seed: int) -> None:
        self.n_splits, self.seed = n_splits, seed

    def get_n_splits(self) -> int:
        """Number of folds."""
        return self.n_splits

    def split(self, cells: Observations) -> Iterator[Split]:
        """Yield one split for each fold."""
        rows = np.flatnonzero(np.diff(cells.indptr))
        if len(rows) < self.n_splits:
            raise InvalidDataError(f"{len(rows)} rows have cells, too few for {self.n_splits} folds of rows")
        dealt = np.random.default_rng(self.seed).permutation(rows)
        for held_out in np.array_split(dealt, self.n_splits):
            is_held_out = np.zeros(cells.shape[0], dtype=bool)
            is_held_out[held_out] = True
            mask = is_held_out[cells.rows]
            yield Split(cells.select(~mask), cells.select(mask), np.sort(held_out))
