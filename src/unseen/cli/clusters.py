"""The task clustering: a table of items and a list of pairs in, clusters by id out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.errors import UsageError
from unseen.cli.feature_files import FeatureFile
from unseen.cli.output import Output
from unseen.cli.sources import find
from unseen.cli.tables import Table
from unseen.data import Vocabulary
from unseen.exceptions import InvalidDataError, NotInductiveError, UnknownIdError
from unseen.typing import Array, BoolArray, IndexArray

__all__ = ["describe_clusters", "fit_clusters", "is_of_clusters", "predict_clusters"]

TRUE, FALSE = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no")


def is_of_clusters(model: Any) -> bool:
    """Whether a model puts items into clusters."""
    from unseen.estimators.pair_clustering import PairClusterer

    return isinstance(model, PairClusterer)


def fit_clusters(
    out: Output,
    model: Any,
    data: Path,
    pairs: Path | None,
    model_path: Path,
    method: str,
    *,
    id_column: str | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
) -> None:
    """Cluster the items of a table from known pairs, and save the model.

    Parameters
    ----------
    out : Output
        Where the result goes.
    model : PairClusterer
        Not fitted.
    data : Path
        Table with a line for each item: its id, and features.
    pairs : Path or None
        Two ids a line; a third column says 1 for pairs that belong together and 0 for pairs that do not.
    model_path : Path
        Directory to write.
    method : str
        Its name on the command line.
    id_column : str or None
        Column of ids in the table, by default the first.
    sep : str or None
        What separates fields of the pairs.
    encoding : str
        Encoding of text.
    """
    read = None if pairs is None else _read_pairs(pairs, sep, encoding)
    told = Vocabulary([]) if read is None else Vocabulary(np.unique(read[0]))
    ids, features, names, called = FeatureFile(data, id_column, encoding).of_all(told)
    known: dict[str, Any] = {}
    if read is not None:
        named, same = read
        known = {"pairs": ids[_places(ids, named, pairs)], "same": same}
    n_pairs = 0 if read is None else len(read[1])
    out.note(f"{data}: {len(ids):,} items, {features.shape[1]:,} features; {n_pairs:,} pairs")
    start = time.perf_counter()
    model.fit(features, ids=ids.values, **known)
    seconds = time.perf_counter() - start
    if "verbose" in model.get_params():
        model.set_params(verbose=0)
    model.source_ = {"method": method, "task": "clustering", "row": called, "row_feature_names": names}
    model.save(model_path)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters).tolist()
    document = {
        "command": "fit",
        "model": str(model_path),
        "method": method,
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "n_items": len(ids),
        "n_features": features.shape[1],
        "n_pairs": n_pairs,
        "cluster_sizes": sizes,
        "n_iter": model.n_iter_,
        "fit_time_s": seconds,
    }
    shown = ", ".join(f"{size:,}" for size in sizes)
    line = (
        f"{type(model).__name__} fitted in {seconds:.2f} s, clusters of {shown} items; saved to {model_path}"
    )
    out.result(document, lambda: out.say(line))


def predict_clusters(
    out: Output,
    model: Any,
    model_path: Path,
    items: Path,
    target: Path | None,
    *,
    id_column: str | None = None,
    encoding: str = "utf-8",
    defuse: bool = False,
) -> None:
    """Say to which cluster each item of a table belongs.

    Parameters
    ----------
    out : Output
        Where the result goes.
    model : PairClusterer
        Fitted.
    model_path, items : Path
        The model and the table.
    target : Path or None
        File to write; stdout by default.
    id_column : str or None
        Column of ids, by default as in training.
    encoding : str
        Encoding of text.
    defuse : bool
        As `TableWriter` takes it.
    """
    from unseen.cli.sinks import Records, TableWriter

    if not hasattr(model, "predict"):
        raise NotInductiveError(
            f"{type(model).__name__} learns nothing of features and cannot place new items"
        )
    source = getattr(model, "source_", None) or {}
    known = model.item_ids_ or Vocabulary([])
    file = FeatureFile(items, id_column, encoding)
    ids, features, _, called = file.of_all(known, source.get("row"), source.get("row_feature_names"))
    labels = model.predict(features)
    name = "item" if called.isdecimal() or called == "cluster" else called
    sink = Records() if out.json and target is None else TableWriter(target, defuse=defuse)
    with sink as writer:
        writer.write({name: ids.values, "cluster": labels})
    document: dict[str, Any] = {
        "command": "predict",
        "model": str(model_path),
        "out": None if target is None else str(target),
        "n_items": len(ids),
    }
    if isinstance(writer, Records):
        document["predictions"] = writer.lines
    done = f"{len(ids):,} items in {len(set(labels.tolist())):,} clusters"
    out.result(document, lambda: out.say(f"{done}; written to {target}") if target else out.note(done))


def describe_clusters(model: Any, model_path: Path) -> dict[str, Any]:
    """What ``unseen info`` says of such a model."""
    source = getattr(model, "source_", None) or {}
    return {
        "command": "info",
        "model": str(model_path),
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "task": "clustering",
        "n_items": len(model.labels_),
        "n_features": model.n_features_in_,
        "row_features": source.get("row_feature_names"),
        "cluster_sizes": np.bincount(model.labels_).tolist(),
        "bytes": sum(file.stat().st_size for file in model_path.iterdir() if file.is_file()),
    }


def _read_pairs(path: Path, sep: str | None, encoding: str) -> tuple[Array, BoolArray]:
    """Pairs of ids as text, and whether they belong together."""
    table = Table(path, sep, encoding=encoding).seen(None, names=["same"])
    names = table.names
    if len(names) not in (2, 3):
        raise UsageError(f"--pairs: {path} has {len(names)} columns; two ids are wanted, and perhaps 1 or 0")
    found = [[str(one) for column in part for one in column.to_pylist()]
             for part in zip(*table.batches(names), strict=True)]  # fmt: skip
    if not found or not found[0]:
        raise InvalidDataError(f"{path}: the file holds no pairs.")
    told = [one.strip().lower() for one in found[2]] if len(names) == 3 else ["1"] * len(found[0])
    for line, one in enumerate(told):
        if one not in TRUE + FALSE:
            raise InvalidDataError(
                f"{path}: pair {line} ({found[0][line]!r}, {found[1][line]!r}) has {one!r} in column "
                f"{names[2]!r}; 1 stands for together and 0 for apart"
            )
    return np.column_stack([found[0], found[1]]), np.isin(told, TRUE)


def _places(ids: Vocabulary, named: Array, path: Path | None) -> IndexArray:
    import pyarrow as pa

    places = find(ids, pa.array(named.ravel().astype(object))).reshape(named.shape)
    lost = np.argwhere(places < 0)
    if lost.size:
        line, column = lost[0]
        raise UnknownIdError(
            f"{path}: {str(named[line, column])!r} in pair {line} is no item of the table ({ids.sample()})"
        )
    return places
