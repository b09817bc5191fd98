"""Blends of multi-label classifiers, their weights chosen on rows held out of training."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from benchmarks._list_tools import Spent, stored_parts
from benchmarks._store import peak_memory_gib, store
from unseen import Blend, ExMLDS, FastXML, GIMCClassifier, LinearOvA, RidgeOvA
from unseen.datasets import load_bibtex, load_delicious
from unseen.metrics import precision_at_k


def unit_rows(X: Any) -> Any:
    """Rows of length one."""
    rows = sparse.csr_array(X).astype(np.float64)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ rows)


def blended_labels(part: str, data: Any, splits: list[str], models: list[Any]) -> dict[str, Any]:
    """P@1, 3 and 5 of a blend whose weights rows held out of training choose, and of its models.

    Each split is stored when it is done; a run that was cut off goes on with the next one.
    """
    X, Y = unit_rows(data.X), data.Y
    found: dict[str, Any] = {"models": [repr(model) for model in models], "runs": []}
    before = stored_parts().get(part)
    if before is not None and before["models"] == found["models"] and len(before["runs"]) < len(splits):
        found["runs"] = before["runs"]
    for name in splits[len(found["runs"]) :]:
        train, test = data.splits[name]
        blend = Blend(models, validation_fraction=0.2, random_state=0)
        with Spent() as spent, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            blend.fit(X[train], Y[train])
            lists = blend.predict_topk(X[test], k=5)[0]
        alone = [model.predict_topk(X[test], k=5)[0] for model in blend.models_]
        precisions = [[float(precision_at_k(Y[test], ids, k)) for k in (1, 3, 5)] for ids in (lists, *alone)]
        run = {
            "split": name, "precision": precisions[0], "alone": precisions[1:],
            "weights": blend.weights_.tolist(), "validation": np.asarray(blend.validation_scores_).tolist(),
            **spent.told(),
        }  # fmt: skip
        print(run, flush=True)
        found["runs"].append(run)
        found["peak_gib"] = round(peak_memory_gib(), 2)
        store("lists", {"results": {**stored_parts(), part: found}})
    return found


def kernel_ridge(n_landmarks: int, *, gamma: float, reg: float) -> GIMCClassifier:
    """Ridge regression on fixed features of a Gaussian kernel."""
    return GIMCClassifier(
        n_landmarks, map="nystrom", gamma=gamma, reg=reg, learn_map=False, max_iter=1, random_state=0
    )


def bibtex() -> dict[str, Any]:
    """The ten published splits."""
    models = [
        ExMLDS("joint_sgns", neighbor_power=8.0, random_state=0),
        ExMLDS(n_neighbors=250, reg=3.0, neighbor_power=8.0),
        RidgeOvA(1.0),
        LinearOvA(C=0.3),
        kernel_ridge(2000, gamma=0.5, reg=0.1),
    ]
    return blended_labels("bibtex", load_bibtex(), [f"repository{number}" for number in range(10)], models)


def delicious() -> dict[str, Any]:
    """Mulan's split."""
    models = [
        ExMLDS("sgns", n_negatives=2, reg=3.0, k=70, neighbor_power=8.0, random_state=0),
        ExMLDS(n_neighbors=500, reg=3.0, k=70, neighbor_power=16.0),
        RidgeOvA(1.0),
        LinearOvA(C=0.3),
        kernel_ridge(1200, gamma=1.0, reg=1.0),
        FastXML(random_state=0),
    ]
    return blended_labels("delicious", load_delicious(), ["mulan"], models)
