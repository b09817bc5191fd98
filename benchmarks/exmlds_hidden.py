"""Four fifths of the training labels hidden: both readings of the protocol, five draws.

python -m benchmarks exmlds_hidden                   everything
python -m benchmarks.exmlds_hidden ExMLDS1 SLEEC     some methods; stored results of others stay
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._store import STORED, store
from benchmarks._tables import stored
from unseen import LEML, SLEEC, BiasIMC, ExMLDS, RidgeOvA
from unseen.datasets import MultiLabelData, hide_labels, load_bibtex, load_rcv1_subset
from unseen.metrics import precision_at_k
from unseen.multilabel.rows import scaled_rows

N_JOBS = 1
DRAWS = range(5)
HIDDEN = 0.8
SETS: dict[str, tuple[Callable[[], MultiLabelData], str | None]] = {
    "Bibtex": (load_bibtex, "sleec"),
    "rcv1 subset": (load_rcv1_subset, None),
}
SETTINGS = {
    "n_components": 90,
    "n_neighbors": 250,
    "k": 25,
    "reg": 1.0,
    "note": "the values that the papers and their code use; nothing was chosen on the data of these runs",
}
Lists = Callable[[Any], Any]
Fit = Callable[[Any, Any, Any, str], Lists]


def neighbours(cls: Any, **settings: Any) -> Fit:
    def fit(X: Any, Y: Any, C: Any, reading: str) -> Lists:
        own = dict(settings)
        if own.pop("use_correlations", False):
            own["label_correlations"] = C
        model = cls(
            n_components=90, n_neighbors=250, k=25, unlabeled=reading, random_state=0, n_jobs=N_JOBS, **own
        ).fit(X, Y)
        return lambda rows: model.predict_topk(rows, 5)[0]

    return fit


def linear(make: Callable[[Any], Any]) -> Fit:
    """Models without a rule for unlabelled rows: dropping takes these rows out of the training set."""

    def fit(X: Any, Y: Any, C: Any, reading: str) -> Lists:
        kept = np.flatnonzero(np.diff(Y.indptr)) if reading == "drop" else np.arange(Y.shape[0])
        model = make(C).fit(X[kept], Y[kept])
        return lambda rows: model.predict_topk(rows, 5)[0]

    return fit


def pu(X: Any, Y: Any, C: Any, reading: str) -> Lists:
    """Positive-unlabelled completion of the label matrix, features on the side of the rows."""
    kept = np.flatnonzero(np.diff(Y.indptr)) if reading == "drop" else np.arange(Y.shape[0])
    model = BiasIMC(
        50, alpha=0.9, reg=1.0, standardize=False, max_iter=20, tol=1e-3, random_state=0, n_jobs=N_JOBS
    ).fit(Y[kept], row_features=X[kept])

    def lists(rows: Any) -> Any:
        scores = model.predict_new(row_features=rows)
        return np.argsort(-scores, axis=1, kind="stable")[:, :5]

    return lists


def scaled_eigenvectors(C: Any) -> Any:
    """U S^(1/2) of the counts of labels that occur together."""
    values, vectors = np.linalg.eigh(C.toarray())
    return vectors * np.sqrt(np.maximum(values, 0.0))


METHODS: dict[str, Fit] = {
    "ExMLDS1": neighbours(ExMLDS),
    "ExMLDS3, counts": neighbours(ExMLDS, use_correlations=True),
    "ExMLDS3, blocks": neighbours(ExMLDS, use_correlations=True, weighting="blocks"),
    "SLEEC": neighbours(SLEEC),
    "SLEEC, cosine": neighbours(SLEEC, metric="cosine"),
    "LEML": linear(lambda C: LEML(rank=90, reg=1.0, random_state=0, n_jobs=N_JOBS)),
    "LEML-IMC": linear(
        lambda C: LEML(rank=90, reg=1.0, label_features=scaled_eigenvectors(C), random_state=0, n_jobs=N_JOBS)
    ),
    "RidgeOvA": linear(lambda C: RidgeOvA(reg=1.0, n_jobs=N_JOBS)),
    "BiasIMC": pu,
}


def runs(names: set[str] | None = None) -> Iterator[dict[str, Any]]:
    for name, (loader, split) in SETS.items():
        X, Y, X_test, Y_test = loader().split(split)
        X, X_test = scaled_rows(X), scaled_rows(X_test)
        C = sparse.csr_array(Y.T @ Y)
        for draw in DRAWS:
            seen = hide_labels(Y, HIDDEN, random_state=draw)
            for method, fit in METHODS.items():
                if names is not None and method not in names:
                    continue
                for reading in ("keep", "drop"):
                    ids = fit(X, seen, C, reading)(X_test)
                    yield {
                        "data": name,
                        "draw": draw,
                        "method": method,
                        "reading": reading,
                        "unlabelled_rows": int((np.diff(seen.indptr) == 0).sum()),
                        "precision": [100 * precision_at_k(Y_test, ids, k) for k in (1, 3, 5)],
                    }


def keep(new: list[dict[str, Any]]) -> None:
    """Store results in place of those of the same data and method."""
    done = {(run["data"], run["method"]) for run in new}
    old = stored("exmlds_hidden")["runs"] if (STORED / "exmlds_hidden.json").exists() else []
    found = [run for run in old if (run["data"], run["method"]) not in done] + new
    order = list(METHODS)
    found.sort(key=lambda run: (list(SETS).index(run["data"]), order.index(run["method"])))
    store("exmlds_hidden", {"hidden": HIDDEN, "settings": SETTINGS, "runs": found})


def main() -> None:
    asked = sys.argv[1:] if sys.argv[0].endswith("exmlds_hidden.py") else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in [name for name in METHODS if name in asked] or list(METHODS):
            found = []
            for run in runs({method}):
                found.append(run)
                shown = " ".join(f"{value:.2f}" for value in run["precision"])
                print(
                    f"{run['data']:12s} {run['draw']} {run['method']:18s} {run['reading']} {shown}",
                    flush=True,
                )
            keep(found)


if __name__ == "__main__":
    main()
