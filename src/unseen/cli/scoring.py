"""Scores of a saved model on test cells, and of a method by cross-validation."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import unseen
from unseen.cli.errors import UsageError
from unseen.cli.link_scoring import refuse_common_links, score_links
from unseen.cli.lists import exclusions, seen_cells
from unseen.cli.methods import MEASURES, task_of
from unseen.cli.output import Output
from unseen.cli.sources import is_of_links, like_training, training_ids, within_training
from unseen.data import Observations
from unseen.exceptions import DataWarning
from unseen.metrics._lists import contains
from unseen.model_selection import (
    ForwardTime,
    KFoldBoth,
    KFoldCols,
    KFoldEntries,
    KFoldRows,
    ResultTable,
    Split,
    cross_validate,
    get_scorer,
    make_scorer,
    segment_scorers,
    segment_table,
    segments,
)

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
    by_segment: bool = False,
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
    by_segment : bool
        Also score parts of the test cells, by what the training cells know of them.
    """
    model = unseen.load(model_path)
    source = getattr(model, "source_", None) or {}
    if columns["value"] is None and source.get("value", "") is None:  # fitted to pairs without values
        columns = {**columns, "has_values": False}
    links = is_of_links(model)
    as_list = links and not names
    holds_cells = getattr(model, "seen_", None) is not None
    if by_segment and (links or (exclude is None and not holds_cells)):
        raise UsageError(
            "--segments needs --exclude, the cells that the model was fitted to, and is not for links"
        )
    if as_list and exclude is None:
        raise UsageError("--exclude is needed for a model of links: the file that it was fitted to")
    if list_length is not None and not as_list:
        raise UsageError("--list-length is for models of links, scored without --metrics")
    if links and columns["weight"] is not None:
        raise UsageError(f"--weight {columns['weight']}: links have no weights, each line is one")
    cells = like_training(model, test_path, **columns, links=links, weighted=not links).read()
    ids = training_ids(model, "row"), training_ids(model, "col")
    test, n_lost = within_training(cells, *ids, test_path, unknown, links=links)
    known = 0
    if exclude is None and holds_cells and not links:
        seen = seen_cells(model)
        train = without(seen, test)
        known = seen.nnz - train.nnz
    elif exclude is None:
        train = test.select(np.zeros(test.nnz, dtype=bool))
    else:
        how = {name: columns[name] for name in ("row", "col", "sep", "header", "encoding", "wide")}
        train = exclusions(model, exclude, **how)
    if known:
        warnings.warn(
            f"{test_path}: the model was fitted to {known:,} of these {test.nnz:,} cells; how well it knows "
            "them again says little about others",
            DataWarning,
            stacklevel=2,
        )
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
        "n_fitted": known,
        "scores": scores,
    }
    found = segment_table(model, parts, names) if by_segment else ResultTable()
    document["segments"] = list(found)
    title = f"{type(model).__name__} on {test.nnz:,} cells" + (f", {n_lost:,} left out" if n_lost else "")

    def show() -> None:
        out.table(["measure", "value"], list(scores.items()), title=title)
        if found:
            show_segments(out, list(found), names)

    out.result(document, show)


def without(cells: Observations, others: Observations) -> Observations:
    """Cells that are not among others: what is tested may come up in lists."""
    return cells.select(~contains(others.csr, cells.rows, cells.indices))


def show_segments(out: Output, lines: list[dict[str, Any]], names: list[str]) -> None:
    """A table with a line for each segment."""
    table = [[line["segment"], line["n_cells"], *(float(line[name]) for name in names)] for line in lines]
    out.table(["segment", "cells", *names], table)


def score_method(
    out: Output,
    model: Any,
    cells: Observations,
    features: dict[str, Any],
    names: list[str],
    split: str,
    folds: int,
    seed: int,
    *,
    by_segment: bool = False,
) -> None:
    """Score a method on held-out parts, with its settings as they are."""
    cv, held_out = _folds(split, folds, seed)
    names = [get_scorer(name).name for name in names]
    scorers = segment_scorers(names) if by_segment else {"all": [get_scorer(name) for name in names]}
    asked = [scorer for several in scorers.values() for scorer in several]
    if by_segment:
        asked += [make_scorer(partial(_n_cells, name), name=f"cells [{name}]") for name in scorers]
    results = cross_validate(model, cells, cv=cv, scoring=asked, verbose=out.progress, **features)
    whole = dict(zip(names, (scorer.name for scorer in scorers["all"]), strict=True))
    spread = [(name, results.mean(own), float(np.std(results.column(own)))) for name, own in whole.items()]
    found = [
        {
            "segment": segment,
            "n_cells": int(sum(results.column(f"cells [{segment}]"))),
            **{name: _mean_of_known(results.column(f"{name} [{segment}]")) for name in names},
        }
        for segment in (scorers if by_segment else ())
    ]
    document = {
        "command": "evaluate",
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "split": split,
        "folds": list(results),
        "scores": {name: {"mean": mean, "std": std} for name, mean, std in spread},
        "segments": found,
        "fit_time_s": results.mean("fit_time_s"),
    }
    title = f"{type(model).__name__}, {folds} {held_out}, {cells.nnz:,} cells"

    def show() -> None:
        out.table(["measure", "mean", "std"], spread, title=title)
        if found:
            show_segments(out, found, names)

    out.result(document, show)


def _n_cells(segment: str, model: Any, split: Split) -> float:
    return float(segments(split)[segment].test.nnz)


def _mean_of_known(values: list[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _folds(split: str, folds: int, seed: int) -> tuple[Any, str]:
    """What deals the cells, and what its parts are called."""
    if split == "time":
        return ForwardTime(folds), "windows of time, each predicted from what was before"
    kinds: dict[str, tuple[Any, str]] = {
        "entries": (KFoldEntries, "folds of cells"),
        "rows": (KFoldRows, "folds of whole rows"),
        "cols": (KFoldCols, "folds of whole columns"),
        "both": (KFoldBoth, "folds of rows and columns"),
    }
    kind, told = kinds[split]
    return kind(folds, random_state=seed), told
