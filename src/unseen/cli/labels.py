"""The task multilabel: files of features with labels in, ranked labels and their measures out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from unseen.cli.errors import UsageError
from unseen.cli.output import Output
from unseen.cli.sources import CellFile
from unseen.data import read_extreme
from unseen.data.streaming import open_text
from unseen.exceptions import InvalidDataError, UnknownIdError
from unseen.typing import CSR

__all__ = [
    "LABEL_MEASURES",
    "fit_labels",
    "is_model_of_labels",
    "is_of_labels",
    "predict_labels",
    "score_labels",
]

LABEL_MEASURES = tuple(f"{name}@{k}" for name in ("precision", "ndcg", "psp") for k in (1, 3, 5))
"""What is measured when nothing else is asked for."""
ROWS_AT_A_TIME = 1 << 14


def is_of_labels(model: Any) -> bool:
    """Whether a model gives labels to rows of features."""
    from unseen.multilabel import MultiLabelClassifier

    return isinstance(model, MultiLabelClassifier)


def is_model_of_labels(path: Path) -> bool:
    """Whether a directory holds such a model, without loading its arrays."""
    import json

    import unseen
    from unseen.multilabel import MultiLabelClassifier

    manifest = path / "manifest.json"
    if not manifest.is_file():
        return False
    try:
        name = json.loads(manifest.read_text(encoding="utf-8"))["model"]["$estimator"]
    except (ValueError, KeyError, TypeError):
        return False  # loading it will say what is wrong
    found = getattr(unseen, str(name), None)
    return isinstance(found, type) and issubclass(found, MultiLabelClassifier)


def fit_labels(
    out: Output,
    model: Any,
    data: Path,
    model_path: Path,
    method: str,
    *,
    names: Path | None = None,
    correlations: Path | None = None,
) -> None:
    """Fit a multi-label classifier to a file and save it.

    Parameters
    ----------
    out : Output
        Where the result goes.
    model : MultiLabelClassifier
        Not fitted.
    data : Path
        Features and labels, in the sparse text of extreme classification.
    model_path : Path
        Directory to write.
    method : str
        Its name on the command line.
    names : Path or None
        What labels are called, one in each line.
    correlations : Path or None
        Two labels and a count in each line.
    """
    X, Y = read_extreme(data)
    called = None if names is None else _read_names(names, Y.shape[1])
    if correlations is not None:
        if "label_correlations" not in model.get_params():
            raise UsageError(f"--label-correlations: {method} has no use for them; exmlds has")
        model.set_params(label_correlations=_read_correlations(correlations, called, Y.shape[1]))
    out.note(
        f"{data}: {X.shape[0]:,} rows, {X.shape[1]:,} features, {Y.shape[1]:,} labels, {Y.nnz:,} positives"
    )
    start = time.perf_counter()
    model.fit(X, Y)
    seconds = time.perf_counter() - start
    if called is not None:
        model.classes_ = np.array(called)
    model.source_ = {
        "method": method,
        "task": "multilabel",
        "n_rows": X.shape[0],
        "label_counts": np.bincount(Y.indices, minlength=Y.shape[1]),
    }
    model.save(model_path)
    document = {
        "command": "fit",
        "model": str(model_path),
        "method": method,
        "estimator": type(model).__name__,
        "params": {name: value for name, value in model.get_params().items() if name != "label_correlations"},
        "n_rows": X.shape[0],
        "n_features": X.shape[1],
        "n_labels": Y.shape[1],
        "n_positives": Y.nnz,
        "fit_time_s": seconds,
    }
    line = f"{type(model).__name__} fitted in {seconds:.2f} s; saved to {model_path}"
    out.result(document, lambda: out.say(line))


def predict_labels(
    out: Output,
    model: Any,
    model_path: Path,
    rows: Path,
    target: Path | None,
    k: int,
    *,
    defuse: bool = False,
) -> None:
    """List the best labels of each row of a file.

    Parameters
    ----------
    out : Output
        Where the result goes.
    model : MultiLabelClassifier
        Fitted.
    model_path, rows : Path
        The model and the file of features.
    target : Path or None
        File to write; stdout by default.
    k : int
        Labels for each row.
    defuse : bool
        As `TableWriter` takes it.
    """
    from unseen.cli.sinks import Records, TableWriter

    X, _ = _read_like_training(out, model, rows)
    sink = Records() if out.json and target is None else TableWriter(target, defuse=defuse)
    with sink as writer:
        for start in range(0, X.shape[0], ROWS_AT_A_TIME):
            labels, scores = model.predict_topk(X[start : start + ROWS_AT_A_TIME], k)
            numbers = np.repeat(np.arange(start, start + len(labels)), labels.shape[1])
            ranks = np.tile(np.arange(1, labels.shape[1] + 1), len(labels))
            kept = ~np.isnan(scores.ravel())
            writer.write(
                {
                    "row": numbers[kept],
                    "rank": ranks[kept],
                    "label": labels.ravel()[kept],
                    "score": scores.ravel()[kept],
                }
            )
    document: dict[str, Any] = {
        "command": "predict",
        "model": str(model_path),
        "out": None if target is None else str(target),
        "n_rows": X.shape[0],
        "n_lines": writer.n_lines,
    }
    if isinstance(writer, Records):
        document["predictions"] = writer.lines
    done = f"{writer.n_lines:,} labels for {X.shape[0]:,} rows"
    out.result(document, lambda: out.say(f"{done}; written to {target}") if target else out.note(done))


def score_labels(out: Output, model: Any, model_path: Path, test: Path, names: list[str]) -> None:
    """Measure the ranked labels of a model on a file of test rows.

    Parameters
    ----------
    out : Output
        Where the scores go.
    model : MultiLabelClassifier
        Fitted.
    model_path, test : Path
        The model and the test file.
    names : list of str
        Measures as ``name@K`` with precision, ndcg, recall, psp or psndcg; none for those of
        `LABEL_MEASURES`.
    """
    measures = [_measure(name) for name in names or LABEL_MEASURES]
    X, Y = _read_like_training(out, model, test)
    longest = max(k for _, _, k in measures)
    start = time.perf_counter()
    ids, _ = model.predict_topk(X, longest, positions=True)
    seconds = time.perf_counter() - start
    propensities = None
    if any(kind.startswith("ps") for _, kind, _ in measures):
        propensities = _propensities(model, Y.shape[1])
    scores = {name: _score(kind, Y, ids, k, propensities) for name, kind, k in measures}
    document = {
        "command": "evaluate",
        "model": str(model_path),
        "estimator": type(model).__name__,
        "test": str(test),
        "n_rows": Y.shape[0],
        "n_positives": Y.nnz,
        "scores": scores,
        "predict_time_s": seconds,
    }
    title = f"{type(model).__name__} on {Y.shape[0]:,} rows"
    out.result(document, lambda: out.table(["measure", "value"], list(scores.items()), title=title))


def _read_like_training(out: Output, model: Any, path: Path) -> tuple[CSR, CSR]:
    """Features in the columns that the model knows; labels in at least as many columns as it knows."""
    X, Y = read_extreme(path)
    known = model.n_features_in_
    if X.shape[1] > known:
        lost = int(np.count_nonzero(X.indices >= known))
        out.note(
            f"{path}: {X.shape[1]:,} features, the model knows {known:,}; "
            f"{lost:,} values of unknown features are left out"
        )
        X = sparse.csr_array(X[:, :known])
    elif X.shape[1] < known:
        out.note(f"{path}: {X.shape[1]:,} features, the model knows {known:,}; the others count as zero")
        X = _wider(X, known)
    if Y.shape[1] > model.n_labels_:
        out.note(f"{path}: {Y.shape[1]:,} labels, the model knows {model.n_labels_:,}; the others are misses")
    return X, _wider(Y, max(model.n_labels_, Y.shape[1]))


def _read_names(path: Path, n_labels: int) -> list[str]:
    with open_text(path) as handle:
        names = [line.strip() for line in handle]
    names = names[:-1] if names and not names[-1] else names
    if len(names) != n_labels or len(set(names)) < len(names):
        raise InvalidDataError(
            f"{path}: expected {n_labels} different names of labels, one a line, found {len(names)} lines, "
            f"{len(set(names))} of them different"
        )
    return names


def _read_correlations(path: Path, names: list[str] | None, n_labels: int) -> CSR:
    """Symmetric counts; labels by name where there are names, else by number."""
    cells = CellFile(path).seen(None).read()
    assert cells.row_ids is not None
    assert cells.col_ids is not None
    places = {str(name): place for place, name in enumerate(range(n_labels) if names is None else names)}
    unknown = [id for ids in (cells.row_ids, cells.col_ids) for id in ids if str(id) not in places]
    if unknown:
        raise UnknownIdError(f"{path}: {unknown[0]!r} is not one of the {n_labels} labels")
    left, right = (
        np.array([places[str(id)] for id in ids], dtype=np.int64) for ids in (cells.row_ids, cells.col_ids)
    )
    i, j = left[cells.rows], right[cells.indices]
    once = sparse.csr_array((cells.values, (np.minimum(i, j), np.maximum(i, j))), shape=(n_labels, n_labels))
    upper = sparse.triu(once, 1)
    return sparse.csr_array(once + upper.T)


def _wider(matrix: CSR, n_cols: int) -> CSR:
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], n_cols))


def _measure(name: str) -> tuple[str, str, int]:
    kind, _, k = name.partition("@")
    if kind not in ("precision", "ndcg", "recall", "psp", "psndcg") or not k.isdecimal() or int(k) < 1:
        raise UsageError(
            f"--metrics {name}: labels are measured by precision@K, recall@K, ndcg@K, psp@K or psndcg@K"
        )
    return name, kind, int(k)


def _propensities(model: Any, n_labels: int) -> Any:
    from unseen.metrics import label_propensities

    source = getattr(model, "source_", None) or {}
    if "label_counts" not in source:
        raise InvalidDataError(
            "psp needs how often labels were seen in training, which only `unseen fit` leaves in a model; "
            "--metrics precision@1,ndcg@5 needs nothing"
        )
    counts = np.zeros(n_labels, dtype=np.int64)
    counts[: len(source["label_counts"])] = source["label_counts"]
    return label_propensities(counts, source["n_rows"])


def _score(kind: str, Y: CSR, ids: Any, k: int, propensities: Any) -> float:
    from unseen import metrics

    if kind in ("psp", "psndcg"):
        weighted = (
            metrics.propensity_scored_precision_at_k if kind == "psp" else metrics.propensity_scored_ndcg_at_k
        )
        return float(weighted(Y, ids, propensities, k))
    plain = {"precision": metrics.precision_at_k, "ndcg": metrics.ndcg_at_k, "recall": metrics.recall_at_k}
    return float(plain[kind](Y, ids, k))
