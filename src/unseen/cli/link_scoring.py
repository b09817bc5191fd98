"""Scores of a model of links: all pairs in one list, and how soon the held-out links come up."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.output import Output
from unseen.cli.sources import CellFile, within_training
from unseen.data import Observations, Vocabulary
from unseen.exceptions import InvalidDataError
from unseen.links import link_curve
from unseen.links.graph import upper_pairs
from unseen.model_selection import split_entries

__all__ = ["refuse_common_links", "score_link_method", "score_links"]

MULTIPLES = (1, 3, 15)
"""Lists that are reported, as multiples of the number of test links."""
HEADS = (100, 1000)
"""Lists that somebody could look through; their precision is reported."""


def score_link_method(
    out: Output,
    model: Any,
    file: CellFile,
    held_out: Path | float,
    *,
    list_length: int | None,
    seed: int,
    unknown: str,
) -> None:
    """Fit a method to a graph and score it on held-out links.

    Parameters
    ----------
    out : Output
        Where the scores go.
    model : completer
        Not fitted.
    file : CellFile
        Of links.
    held_out : Path or float
        File of the links to be found, or the share of those of the graph that is held out.
    list_length : int or None
        Longest list; 15 times the test links by default.
    seed : int
        Seed of the draw.
    unknown : {"error", "skip"}
        What to do about test links of nodes that are not in the graph.
    """
    graph = file.read()
    about: dict[str, Any] = {
        "data": str(file.path),
        "test": None,
        "test_fraction": None,
        "n_skipped": 0,
        "seed": seed,
    }
    if isinstance(held_out, Path):
        assert graph.row_ids is not None
        ids = graph.row_ids
        links = replace(file, path=held_out).seen(None).read()
        test, about["n_skipped"] = within_training(links, ids, ids, held_out, unknown, links=True)
        refuse_common_links(graph, test, ids, held_out)
        train, about["test"] = graph, str(held_out)
    else:
        train, test = split_entries(graph, test_fraction=held_out, random_state=seed, symmetric=True)
        about["test_fraction"] = held_out
    start = time.perf_counter()
    model.fit(train)
    about = {**about, "params": model.get_params(), "fit_time_s": time.perf_counter() - start}
    score_links(out, model, train, test, list_length, about)


def score_links(
    out: Output,
    model: Any,
    train: Observations,
    test: Observations,
    list_length: int | None,
    about: dict[str, Any],
) -> None:
    """Rank all pairs that are not linked in `train` and report when those of `test` come up."""
    pairs = np.column_stack(upper_pairs(test).nonzero())
    if not len(pairs):
        raise InvalidDataError("no test link is left to be found.")
    known, n = upper_pairs(train).nnz, train.shape[0]
    n_candidates = n * (n - 1) // 2 - known
    longest = list_length or MULTIPLES[-1] * len(pairs)
    wanted = {len(pairs), longest, *(m * len(pairs) for m in MULTIPLES if m * len(pairs) < longest)}
    lengths = sorted({min(length, n_candidates) for length in wanted})
    start = time.perf_counter()
    n_jobs = model.get_params().get("n_jobs")
    curve = link_curve(model, pairs, train=train, k=lengths[-1], n_jobs=n_jobs, positions=True)
    lists = [
        {
            "length": length,
            "fnr": float(curve.fnr[length - 1]),
            "fpr": float(curve.fpr[length - 1]),
            "precision": float(curve.precision[length - 1]),
        }
        for length in lengths
    ]
    document = {
        "command": "evaluate",
        "estimator": type(model).__name__,
        **about,
        "n_nodes": n,
        "n_train": known,
        "n_test": len(pairs),
        "n_candidates": n_candidates,
        "lists": lists,
        "precision": {str(k): float(curve.precision[k - 1]) for k in HEADS if k <= lengths[-1]},
        "rank_time_s": time.perf_counter() - start,
    }
    heads = [
        (k, float(curve.fnr[k - 1]), float(curve.fpr[k - 1]), float(curve.precision[k - 1]))
        for k in HEADS
        if k <= lengths[-1] and k not in lengths
    ]
    lines = sorted([*heads, *(tuple(entry.values()) for entry in lists)])
    title = f"{type(model).__name__}, {len(pairs):,} test links among {n_candidates:,} pairs"
    out.result(document, lambda: out.table(["list", "fnr", "fpr", "precision"], lines, title=title))


def refuse_common_links(train: Observations, test: Observations, ids: Vocabulary, path: Path) -> None:
    """A link that was there in training is none to be found."""
    common = upper_pairs(train).multiply(upper_pairs(test)).tocoo()
    if common.nnz:
        i, j = ids[[int(place[0]) for place in common.coords]].tolist()
        raise InvalidDataError(f"{path}: {common.nnz} test links are training links too: {i!r}, {j!r}, ...")
