"""``unseen fit``: learn a model from a file of cells."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli import options as o
from unseen.cli.errors import UsageError
from unseen.cli.methods import DEFAULTS, build, task_of
from unseen.cli.output import Output
from unseen.cli.tuning import seconds_of, tuned

if TYPE_CHECKING:
    from unseen.cli.sources import CellFile
    from unseen.data import Observations

__all__ = ["fit"]


def fit(
    out: Output,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV (also .gz) or Parquet, one cell a line; labels and features for multilabel, items "
            "and their features for clustering.",
        ),
    ],
    model_path: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Directory to write.")],
    method: o.OptionalMethodName = None,
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
    no_cells: Annotated[
        bool, typer.Option("--no-cells", help="Leave the cells out of the model; unseen update needs them.")
    ] = False,
    label_names: Annotated[
        Path | None, typer.Option("--label-names", metavar="FILE", help="What labels are called, one a line.")
    ] = None,
    label_correlations: Annotated[
        Path | None,
        typer.Option(
            "--label-correlations",
            metavar="FILE",
            help="How often two labels occur together elsewhere: two labels and a count a line (exmlds).",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="For clusters: two ids a line, and 1 or 0 for together or apart [all together].",
        ),
    ] = None,
    n_clusters: Annotated[int | None, typer.Option("--clusters", help="Number of clusters.")] = None,
    dask: o.Dask = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Fit Parquet from disk within this memory, as 4GiB."),
    ] = None,
    tune: Annotated[
        str | None,
        typer.Option("--tune", metavar="TIME", help="Choose settings on held-out cells for so long, as 2m."),
    ] = None,
) -> None:
    """Fit a model to the cells of DATA and save it with the ids of rows and columns."""
    from unseen.cli.feature_files import read_features
    from unseen.cli.tables import looks_extreme

    if method is None and task is None and data.is_file() and looks_extreme(data):
        task = "multilabel"
        out.note(f"{data}: read as a file of features and labels (--task multilabel), by its first line")
    if method is None and task is None and pairs is not None:
        task = "clustering"
    method = method or DEFAULTS.get(task or "", "mf")
    hyper = o.hyper_parameters(rank, reg, center, max_iter, seed, n_jobs, out.progress)
    hyper["n_clusters"] = n_clusters
    model = build(method, task, hyper, settings or [])
    refuse_to_overwrite(model_path)
    tune_s = None if tune is None else seconds_of(tune)
    if tune_s is not None and (dask is not None or memory is not None):
        raise UsageError("--tune: a fit by blocks takes settings as they are")
    if task_of(method, task) == "multilabel":
        from unseen.cli.labels import fit_labels

        refuse_options(
            "a file of features and labels needs none",
            row=row, col=col, value=value, weight=weight, sep=sep, row_features=row_features,
            col_features=col_features, id_column=id_column, tune=tune,
        )  # fmt: skip
        fit_labels(out, model, data, model_path, method, names=label_names, correlations=label_correlations)
        return
    if task_of(method, task) == "clustering":
        from unseen.cli.clusters import fit_clusters

        refuse_options(
            "clusters are made of a table of items and a list of pairs (--pairs)",
            row=row, col=col, value=value, weight=weight, row_features=row_features,
            col_features=col_features, tune=tune, dask=dask, memory=memory, label_names=label_names,
            label_correlations=label_correlations, no_header=no_header,
        )  # fmt: skip
        fit_clusters(
            out, model, data, pairs, model_path, method, id_column=id_column, sep=sep, encoding=encoding
        )
        return
    if pairs is not None:
        raise UsageError("--pairs is for the task clustering")
    if label_names is not None or label_correlations is not None:
        raise UsageError("--label-names and --label-correlations are for the task multilabel")
    if dask is not None or memory is not None:
        from unseen.cli.by_blocks import fit_by_blocks

        refuse_options("a fit by blocks reads Parquet alone", sep=sep)
        if missing is not o.Missing.ERROR:
            raise UsageError("--missing: a fit by blocks wants features of every id; only error is known")
        about = {"method": method, "task": task_of(method, task)}
        columns = {
            "row": row,
            "col": col,
            "value": value,
            "weight": weight,
            "has_values": not no_value,
            "values_optional": about["task"] != "explicit",
        }
        features = {"row_features": row_features, "col_features": col_features, "id_column": id_column}
        fit_by_blocks(
            out, model, data, model_path, about, columns, features, dask=dask, memory=memory, n_jobs=n_jobs
        )
        return
    meaning = task_of(method, task)
    file = o.cell_file(
        data,
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
    )
    cells = file.read()
    features, names = read_features(file, cells, row_features, col_features, id_column, missing.value)
    out.note(f"{data}: {cells.shape[0]:,} rows, {cells.shape[1]:,} columns, {cells.nnz:,} cells")
    found = None
    if tune_s is not None:
        given = {name for name, value in hyper.items() if value is not None}
        given |= {setting.partition("=")[0] for setting in settings or []}
        found = tuned(out, model, cells, features, meaning, tune_s, given)
    start = time.perf_counter()
    model.fit(cells, **features)
    seconds = time.perf_counter() - start
    if "verbose" in model.get_params():
        model.set_params(verbose=0)  # whoever loads the model did not ask for bars
    remember(model, method, task_of(method, task), file, cells, names)
    model.save(model_path, cells=not no_cells)
    document = {
        "command": "fit",
        "model": str(model_path),
        "method": method,
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "n_rows": cells.shape[0],
        "n_cols": cells.shape[1],
        "n_cells": cells.nnz,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "objective": model.history_[-1]["objective"] if model.history_ else None,
        "fit_time_s": seconds,
    } | ({} if found is None else {"tuned": found})
    # Models that are read off a graph have no sweeps and no objective.
    sweeps = f", {model.n_iter_} sweeps, objective {document['objective']:.6g}" if model.history_ else ""
    line = f"{type(model).__name__} fitted in {seconds:.2f} s{sweeps}; saved to {model_path}"
    out.result(document, lambda: out.say(line))


def remember(
    model: Any, method: str, task: str, file: CellFile, cells: Observations, names: dict[str, list[str]]
) -> None:
    """Leave in the model what the other commands need: names of columns, and a baseline for unknown ids."""
    from unseen import BiasModel

    row, col, value = file.columns()
    model.source_ = {
        "method": method,
        "task": task,
        "row": row,
        "col": col,
        "value": value,
        "weight": file.extra_column("weight"),
        "row_feature_names": names.get("row"),
        "col_feature_names": names.get("col"),
    }
    if task == "explicit" and not isinstance(model, BiasModel):
        model.baseline_ = BiasModel().fit(cells)


def refuse_options(reason: str, **given: Any) -> None:
    """Refuse options that the task has no use for."""
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')}: {reason}")


def refuse_to_overwrite(path: Path) -> None:
    """Find out before the fit, not after it, that the model cannot be saved there."""
    from unseen.exceptions import ModelFileError
    from unseen.model_files import why_no_place

    if reason := why_no_place(path):
        raise ModelFileError(f"--out {path}: {reason}")
