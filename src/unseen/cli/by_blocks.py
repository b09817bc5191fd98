"""Fits of files that are larger than memory, and work on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.errors import UsageError
from unseen.cli.output import Output
from unseen.cli.sources import CellFile
from unseen.cli.tables import is_parquet
from unseen.exceptions import ClusterError
from unseen.typing import FloatArray, IndexArray

__all__ = ["cluster_client", "fit_by_blocks", "lists_on_cluster"]


@contextmanager
def cluster_client(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address; "local" starts a cluster on this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise UsageError(f"--dask {address}: dask is not installed; pip install 'unseen[dask]'") from error
    if address == "local":
        with (
            LocalCluster(threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ClusterError(f"--dask {address}: no scheduler answers there ({error})") from error
    with client:
        yield client


def fit_by_blocks(
    out: Output,
    model: Any,
    data: Path,
    model_path: Path,
    about: dict[str, Any],
    columns: dict[str, Any],
    features: dict[str, Any],
    *,
    dask: str | None,
    memory: str | None,
    n_jobs: int | None,
) -> None:
    """Fit a method to Parquet files block by block and save it as any other model.

    Parameters
    ----------
    out : Output
        Where the result goes.
    model : estimator
        Not fitted.
    data, model_path : Path
        Parquet file or folder, and the directory to write.
    about : dict
        ``method`` and ``task``.
    columns : dict
        Options that name the columns, as `CellFile` takes them, and ``weight`` where cells have weights.
    features : dict
        ``row_features`` and ``col_features``, Parquet files or folders or None, and their ``id_column``.
    dask : str or None
        Address of a scheduler, or "local".
    memory : str or None
        Memory for a fit from disk.
    n_jobs : int or None
        Threads of a fit from disk.
    """
    from unseen.distributed import DaskCompleter, DiskCompleter

    if dask is not None and memory is not None:
        raise UsageError("--dask and --memory exclude each other: workers have limits of their own")
    named = {option: given for option, given in columns.items() if option != "weight"}
    row, col, value = CellFile(_first_file(data), **named).columns()
    names = {"row": row, "col": col, "value": value, "weight": columns.get("weight")}
    for name in ("row_features", "col_features"):
        if features[name] is not None:
            _first_file(features[name])
            features[name] = str(features[name])
    start = time.perf_counter()
    if "verbose" in model.get_params():
        model.set_params(verbose=0)
    if dask is None:
        fit: Any = DiskCompleter(model, memory=memory or "4GiB", n_jobs=n_jobs, verbose=out.progress)
        try:
            fit.fit(str(data), **names, **features)
            fitted = fit.to_local()
        finally:
            fit.close()
    else:
        with cluster_client(dask) as client:
            fit = DaskCompleter(model, client=client, verbose=out.progress)
            fitted = fit.fit(str(data), **names, **features).to_local()
    seconds = time.perf_counter() - start
    fitted.source_ = {
        **about,
        **names,
        "row_feature_names": fitted.row_feature_names_,
        "col_feature_names": fitted.col_feature_names_,
    }
    fitted.save(model_path)
    document = {
        "command": "fit",
        "model": str(model_path),
        "method": about["method"],
        "estimator": type(fitted).__name__,
        "params": fitted.get_params(),
        "n_rows": fit.shape_[0],
        "n_cols": fit.shape_[1],
        "n_cells": fit.n_cells_,
        "n_blocks": fit.n_blocks_,
        "expected_memory_bytes": fit.memory_need_.peak,
        "n_iter": fit.n_iter_,
        "converged": fit.converged_,
        "objective": fit.history_[-1]["objective"],
        "fit_time_s": seconds,
    }
    line = (
        f"{type(fitted).__name__} fitted in {seconds:.2f} s by {fit.n_blocks_[0]} x {fit.n_blocks_[1]} "
        f"blocks, {fit.n_iter_} sweeps, objective {document['objective']:.6g}; saved to {model_path}"
    )
    out.result(document, lambda: out.say(line))


def _first_file(data: Path) -> Path:
    """A Parquet file that shows the names of the columns."""
    if data.is_dir():
        found = sorted(path for path in data.rglob("*") if is_parquet(path) and path.name[0] not in "._")
        if found:
            return found[0]
    if not data.exists() or data.is_dir() or not is_parquet(data):
        raise UsageError(f"{data}: fits by blocks read Parquet, a file (.parquet, .pq) or a folder of them")
    return data


def _best(
    left: FloatArray, right: FloatArray, k: int, exclude: Any, ids: IndexArray | None
) -> tuple[IndexArray, FloatArray]:
    from unseen import kernels

    return kernels.topk(left, right, k, exclude=exclude, col_ids=ids)


def lists_on_cluster(
    client: Any, model: Any, parts: list[IndexArray], k: int, left_out: Any, allowed: IndexArray | None
) -> Iterator[tuple[IndexArray, IndexArray, FloatArray]]:
    """Best columns for parts of the rows, in their order; a few parts are on the way at any time."""
    if getattr(model, "cross_component", "model") != "model" or not hasattr(model, "row_factors_"):
        raise UsageError(f"--dask: lists of {type(model).__name__} are not plain products of factors")
    right, ids = model.col_factors_, None
    if allowed is not None:
        ids = np.unique(allowed)
        right = np.ascontiguousarray(right[ids])
    held = client.scatter(right, broadcast=True)
    window = 2 * sum(client.nthreads().values()) + 1
    waiting: list[Any] = []
    place = 0
    for part in parts:
        while len(waiting) < window and place < len(parts):
            rows = parts[place]
            exclude = None
            if left_out is not None:
                known = left_out.csr[rows]
                exclude = (known.indptr, known.indices)
            left = np.ascontiguousarray(model.row_factors_[rows])
            waiting.append(client.submit(_best, left, held, k, exclude, ids, pure=False))
            place += 1
        yield (part, *waiting.pop(0).result())
