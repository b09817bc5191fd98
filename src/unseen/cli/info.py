"""``unseen info``: what a saved model is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unseen.cli import options as o
from unseen.cli.output import Output

__all__ = ["info"]


def info(out: Output, model_path: o.OptionalModelPath = None) -> None:
    """Say what a saved model is: method, settings, sizes, ids and how the fit went; or what computes here."""
    if model_path is None:
        describe_machine(out)
        return
    import unseen
    from unseen.cli.clusters import describe_clusters, is_of_clusters
    from unseen.cli.labels import is_of_labels
    from unseen.cli.sources import training_ids

    model = unseen.load(model_path)
    if is_of_labels(model):
        describe_labels(out, model, model_path)
        return
    if is_of_clusters(model):
        show_document(out, describe_clusters(model, model_path))
        return
    manifest = json.loads((model_path / "manifest.json").read_text(encoding="utf-8"))
    source = getattr(model, "source_", None) or {}
    factors = getattr(model, "row_factors_", None)
    history = getattr(model, "history_", None) or [{}]
    document: dict[str, Any] = {
        "command": "info",
        "model": str(model_path),
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "task": source.get("task"),
        "n_rows": len(training_ids(model, "row")),
        "n_cols": len(training_ids(model, "col")),
        "n_factors": None if factors is None else factors.shape[1],
        "dtype": str(model.predict_entries([0], [0], positions=True).dtype),
        "row_column": source.get("row"),
        "col_column": source.get("col"),
        "value_column": source.get("value"),
        "row_ids": _sample(getattr(model, "row_ids_", None)),
        "col_ids": _sample(getattr(model, "col_ids_", None)),
        "row_features": source.get("row_feature_names") or getattr(model, "n_row_features_in_", None),
        "col_features": source.get("col_feature_names") or getattr(model, "n_col_features_in_", None),
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "objective": history[-1].get("objective"),
        "bytes": sum(file.stat().st_size for file in model_path.iterdir() if file.is_file()),
        "written_by": manifest.get("written_by"),
        "format_version": manifest.get("format_version"),
    }
    show_document(out, document)


def describe_machine(out: Output) -> None:
    """Say which kernels run here, and on which devices."""
    import unseen
    from unseen.kernels.devices import device_facts

    document: dict[str, Any] = {"command": "info", "unseen": unseen.__version__, **device_facts()}
    show_document(out, document)


def describe_labels(out: Output, model: Any, model_path: Path) -> None:
    """Say what a saved multi-label classifier is."""
    source = getattr(model, "source_", None) or {}
    document: dict[str, Any] = {
        "command": "info",
        "model": str(model_path),
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "task": "multilabel",
        "n_rows": source.get("n_rows"),
        "n_features": model.n_features_in_,
        "n_labels": model.n_labels_,
        "bytes": sum(file.stat().st_size for file in model_path.iterdir() if file.is_file()),
    }
    show_document(out, document)


def show_document(out: Output, document: dict[str, Any]) -> None:
    """Give out what was found: as a document, or as a table."""

    def show() -> None:
        lines = [(key, _told(value)) for key, value in document.items() if key != "command"]
        out.table(["", ""], [line for line in lines if line[1]], title=document.get("estimator", "unseen"))

    out.result(document, show)


def _sample(vocabulary: Any) -> list[Any] | None:
    return None if vocabulary is None else list(vocabulary[:3].tolist())


def _told(value: Any) -> str:
    """A value in a few words."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={entry!r}" for key, entry in value.items() if key != "verbose")
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:8]))
        return f"{shown}, ..." if len(value) > 8 or len(value) == 3 else shown
    return f"{value:,}" if isinstance(value, int) else str(value)
