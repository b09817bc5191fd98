"""``unseen evaluate``: how good a model is on test cells, or a method by cross-validation."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.methods import MEASURES, build, task_of
from unseen.cli.output import Output

__all__ = ["evaluate"]


class SplitBy(StrEnum):
    """What is held out."""

    ENTRIES = "entries"
    ROWS = "rows"
    COLS = "cols"
    BOTH = "both"
    TIME = "time"


class Unknown(StrEnum):
    """What to do about test cells of ids that the model does not know."""

    ERROR = "error"
    SKIP = "skip"


def evaluate(
    out: Output,
    source: Annotated[
        Path, typer.Argument(metavar="MODEL|DATA", help="A model; with --method a file of cells.")
    ],
    test: Annotated[
        Path | None, typer.Argument(metavar="[TEST]", help="File of test cells for a model.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="rmse, mae, relative_error, auc, precision@K, recall@K, ndcg@K, map@K, mrr@K, hit_rate@K, "
            "coverage@K, novelty@K, diversity@K, stratified_recall@K, psp@K [by the task].",
        ),
    ] = None,
    method: o.OptionalMethodName = None,
    split: Annotated[
        SplitBy,
        typer.Option(
            help="Hold out single cells, whole rows, columns or both (cold starts), or what came last."
        ),
    ] = SplitBy.ENTRIES,
    time: o.Time = None,
    by_segment: Annotated[
        bool, typer.Option("--segments", help="Also score new and old rows, rare and frequent columns.")
    ] = False,
    folds: Annotated[int | None, typer.Option(help="Test parts: folds, or windows of time [5].")] = None,
    test_links: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Links to be found (task links).")
    ] = None,
    test_fraction: Annotated[
        float | None, typer.Option(help="Share of the links to hold out instead (task links) [0.5].")
    ] = None,
    list_length: Annotated[
        int | None, typer.Option(min=1, help="Longest list of pairs (task links) [15 times the test links].")
    ] = None,
    unknown: Annotated[Unknown, typer.Option(help="Test cells of ids that the model does not know.")] = (
        Unknown.ERROR
    ),
    exclude: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA", help="Training cells, left out of lists (@K) [those that the model holds]."
        ),
    ] = None,
    task: o.Task = None,
    row: o.Row = None,
    col: o.Col = None,
    value: o.Value = None,
    weight: o.Weight = None,
    no_value: o.NoValue = False,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
    wide: o.Wide = False,
    edges: o.EdgeList = o.Edges.NO,
    row_features: o.RowFeatures = None,
    col_features: o.ColFeatures = None,
    id_column: o.IdColumn = None,
    missing: o.MissingFeatures = o.Missing.ERROR,
    rank: o.Rank = None,
    reg: o.Reg = None,
    center: o.Center = None,
    max_iter: o.MaxIter = None,
    seed: o.Seed = 0,
    n_jobs: o.NJobs = None,
    settings: o.Settings = None,
) -> None:
    """Score a saved MODEL on TEST cells, or a --method on DATA by cross-validation.

    With the task links, all pairs of nodes are ranked in one list against held-out links.
    """
    import unseen
    from unseen.cli.feature_files import read_features
    from unseen.cli.labels import is_model_of_labels, score_labels
    from unseen.cli.link_scoring import score_link_method
    from unseen.cli.scoring import score_method, score_model
    from unseen.model_selection import get_scorer
    from unseen.validation import check_count

    names = [name.strip() for name in (metrics or "").split(",") if name.strip()]
    meaning = task_of(method, task)
    if method is not None and meaning == "multilabel":
        raise UsageError(f"--method {method}: fit it first, then unseen evaluate MODEL TEST")
    if meaning == "clustering":
        raise UsageError(f"--method {method}: clusters have no cells to predict; unseen fit, then predict")
    if method is None and test is not None and is_model_of_labels(source):
        score_labels(out, unseen.load(source), source, test, names)
        return
    for name in names:
        get_scorer(name)
    if method is None or meaning != "links":
        for option, given in (("--test", test_links), ("--test-fraction", test_fraction)):
            if given is not None:
                raise UsageError(f"{option} is for methods of the task links")
    if (split is SplitBy.TIME) != (time is not None):
        raise UsageError("--split time and --time, the column with when each cell arose, go together")
    if method is None:
        if split is not SplitBy.ENTRIES:
            raise UsageError(f"--split {split.value} is for a --method on DATA")
        if test is None:
            raise UsageError("TEST is needed to score a model, or --method to cross-validate on DATA")
        columns = {
            "row": row,
            "col": col,
            "value": value,
            "weight": weight,
            "has_values": not no_value,
            "sep": sep,
            "header": o.has_header(no_header),
            "encoding": encoding,
            "wide": wide,
        }
        score_model(
            out,
            source,
            test,
            names,
            columns=columns,
            exclude=exclude,
            unknown=unknown.value,
            list_length=list_length,
            by_segment=by_segment,
        )
        return
    if test is not None:
        raise UsageError(
            "--method works on one file; leave TEST out, or --method (for links there is --test)"
        )
    if meaning != "links" and list_length is not None:
        raise UsageError("--list-length is for the task links")
    model = build(
        method, task, o.hyper_parameters(rank, reg, center, max_iter, seed, n_jobs, 0), settings or []
    )
    file = o.cell_file(
        source,
        row,
        col,
        value,
        no_value,
        sep,
        no_header,
        edges,
        task=meaning,
        weight=weight,
        encoding=encoding,
        wide=wide,
        time=time,
    )
    if meaning == "links":
        if (
            names
            or by_segment
            or folds is not None
            or split is not SplitBy.ENTRIES
            or row_features
            or col_features
        ):
            raise UsageError(
                "--task links ranks pairs: no --metrics, --segments, --folds, --split or features with it"
            )
        if test_links is not None and test_fraction is not None:
            raise UsageError("--test and --test-fraction exclude each other")
        held_out = test_links or (0.5 if test_fraction is None else test_fraction)
        score_link_method(
            out, model, file, held_out, list_length=list_length, seed=seed, unknown=unknown.value
        )
        return
    cells = file.read()
    features, _ = read_features(file, cells, row_features, col_features, id_column, missing.value)
    names = names or list(MEASURES[meaning])
    score_method(
        out,
        model,
        cells,
        features,
        names,
        split.value,
        check_count("--folds", 5 if folds is None else folds, minimum=2),
        seed,
        by_segment=by_segment,
    )
