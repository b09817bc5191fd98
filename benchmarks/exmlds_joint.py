"""Why a regressor learned in one go with the embedding trails ExMLDS1, and what helps: a list of trials.

Every trial is judged on a fifth of the training rows, which no trial learns from. Only what is best
there is run on the test rows, learned from all training rows. Neighbours vote by cosine.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from benchmarks._store import STORED, store
from unseen import kernels
from unseen.datasets import load_bibtex, load_delicious
from unseen.embeddings import joint_regression, sgns, sppmi

SETS: dict[str, dict[str, Any]] = {
    "bibtex": {"load": load_bibtex, "split": "sleec", "k": 25, "K": 250, "ridge": 1.0},
    "delicious": {"load": load_delicious, "split": "mulan", "k": 70, "K": 500, "ridge": 5.0},
}
VALIDATION_SEED = 7
START = {
    "n_components": 50,
    "n_neighbors": 10,
    "n_negatives": 10,
    "pool": None,
    "kernel": "cosine",
    "gamma": 10.0,
    "ridge": 0.0,
    "damping": 0.0,
    "init_scale": 50**-0.5,
    "rate": 0.1,
    "max_iter": 20,
}
POOLED = START | {"pool": 250, "n_components": 100, "init_scale": 0.1, "gamma": 5.0}
DOT = POOLED | {"kernel": "dot", "gamma": 1.0}
WARM = {"max_iter": 10, "rate": 0.02, "init": "sppmi"}
TRIALS: dict[str, dict[str, Any]] = {
    "paper: cosine, gamma 1, 50 dimensions": START | {"gamma": 1.0},
    "gamma 10": START,
    "gamma 10, slow rare features": START | {"damping": 1.0, "init_scale": 0.05},
    "gamma 5, neighbours drawn from 250": START | {"gamma": 5.0, "pool": 250},
    "gamma 5, drawn, 100 dimensions": POOLED,
    "inner product, drawn, 100 dimensions, ridge 0.3": DOT | {"ridge": 0.3},
    "inner product, drawn, 100 dimensions, ridge 1": DOT | {"ridge": 1.0},
    "inner product, drawn, 100 dimensions, ridge 3": DOT | {"ridge": 3.0},
    "inner product, drawn, 100 dimensions, ridge 1, 50 passes": DOT | {"ridge": 1.0, "max_iter": 50},
    "inner product, drawn, ridge 1, from ExMLDS1": DOT | WARM | {"ridge": 1.0},
    "cosine, gamma 5, drawn, from ExMLDS1": POOLED | WARM,
}
SKIP_GRAM: dict[str, dict[str, Any]] = {
    "skip-gram, 5 negatives, rate 0.025": {"n_negatives": 5, "rate": 0.025, "n_epochs": 20},
    "skip-gram, 5 negatives, rate 0.1": {"n_negatives": 5, "rate": 0.1, "n_epochs": 20},
    "skip-gram, 15 negatives, rate 0.1": {"n_negatives": 15, "rate": 0.1, "n_epochs": 10},
}


def rows_of(name: str) -> tuple[Any, Any, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Features of length one, labels, training and test rows; training rows have labels."""
    data = SETS[name]["load"]()
    train, test = data.splits[SETS[name]["split"]]
    X = sparse.csr_array(normalize(sparse.csr_array(data.X, dtype=np.float32)))
    Y = sparse.csr_array(data.Y, dtype=np.float32)
    return X, Y, train[np.diff(Y.indptr)[train] > 0], test


def scores(V: Any, X: Any, Y: Any, fit: Any, judge: Any, k: int, power: float) -> list[float]:
    """P@1, P@3, P@5 by the votes of the k nearest rows, in percent; ties to the frequent label."""
    near, new = (normalize(np.asarray(X[rows] @ V)) for rows in (fit, judge))
    ids, cosines = kernels.topk(new, near, k)
    weight = np.maximum(cosines, 0.0) ** power
    votes = sparse.csr_array(
        (weight.ravel(), ids.ravel(), np.arange(0, ids.size + 1, k)), shape=(len(judge), len(fit))
    )
    totals = (votes @ Y[fit]).toarray() + 1e-7 * Y[fit].mean(axis=0)
    best = np.argsort(-totals, axis=1, kind="stable")[:, :5]
    hits = np.take_along_axis(Y[judge].toarray(), best, axis=1)
    return [round(100 * float(hits[:, :p].mean()), 2) for p in (1, 3, 5)]


def ridge_map(X: Any, Z: Any, reg: float) -> Any:
    gram = (X.T @ X).toarray().astype(np.float64) + reg * np.eye(X.shape[1])
    return np.linalg.solve(gram, X.T @ Z).astype(np.float32)


def regressor(name: str, X: Any, Y: Any, fit: Any, settings: dict[str, Any], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    own = SETS[name]
    if settings.get("method") == "sppmi":
        return ridge_map(X[fit], sppmi(Y[fit], 100, rng=rng, n_neighbors=own["K"]).instances, own["ridge"])
    if settings.get("method") == "sgns":
        options = {key: value for key, value in settings.items() if key != "method"}
        return ridge_map(
            X[fit], sgns(Y[fit], 100, rng=rng, n_neighbors=own["K"], **options).instances, own["ridge"]
        )
    options = dict(settings)
    if options.get("init") == "sppmi":
        options["init"] = regressor(name, X, Y, fit, {"method": "sppmi"}, seed)
    return joint_regression(X[fit], Y[fit], rng=rng, **options)


def all_trials() -> dict[str, dict[str, Any]]:
    skip_gram = {title: {"method": "sgns"} | settings for title, settings in SKIP_GRAM.items()}
    return {"ExMLDS1": {"method": "sppmi"}} | TRIALS | skip_gram


def main(names: tuple[str, ...] = ("bibtex",), budget_s: float = 1e9) -> None:
    """Run the trials of each set, then the best on test rows; what is stored grows with every trial."""
    begin = time.monotonic()
    results: dict[str, Any] = {"validation_seed": VALIDATION_SEED, "sets": {}}
    for name in names:
        X, Y, train, test = rows_of(name)
        shuffled = np.random.default_rng(VALIDATION_SEED).permutation(train)
        held, fit = shuffled[: len(train) // 5], shuffled[len(train) // 5 :]
        trials: list[dict[str, Any]] = []
        results["sets"][name] = {"trials": trials, "test": []}
        for title, settings in all_trials().items():
            if time.monotonic() - begin > budget_s:
                break
            start = time.process_time()
            V = regressor(name, X, Y, fit, settings, 0)
            row = {"trial": title, "settings": settings, "cpu_s": round(time.process_time() - start, 1)}
            for power in (0, 4):
                row[f"power {power}"] = scores(V, X, Y, fit, held, SETS[name]["k"], power)
            trials.append(row)
            print(name, title, row["power 0"], row["power 4"], row["cpu_s"], flush=True)
            store("exmlds_joint", results)
        joint = [t for t in trials if "method" not in t["settings"] and "init" not in t["settings"]]
        chosen = [trials[0], max(joint, key=lambda t: sum(t["power 4"]))] if joint else trials[:1]
        for trial in chosen:
            V = regressor(name, X, Y, train, trial["settings"], 0)
            row = {"trial": trial["trial"]}
            for power in (0, 4):
                row[f"power {power}"] = scores(V, X, Y, train, test, SETS[name]["k"], power)
            results["sets"][name]["test"].append(row)
            print(name, "TEST", row, flush=True)
            store("exmlds_joint", results)
    print(STORED / "exmlds_joint.json")


if __name__ == "__main__":
    main()
