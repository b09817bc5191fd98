"""Learned against fixed feature maps at equal size, on classes and on labels.

Segment (70 % for training), Covtype (5,000 rows for training, 5,000 others for testing), Letter (8,000 of
the training rows, the usual test rows), Bibtex and Delicious (all rows divided anew, as many for training as
usual); three seeds, which draw rows, maps and validation rows. Every choice is made on a fifth of the
training rows:

- fixed maps (IMC-RFF, IMC-NYS): gamma from {0.03, 0.1, 0.3, 1, 3} times the median rule and reg from
  {0.001, 0.01, 0.1, 1, 10}; the chosen model is fitted again to all training rows;
- learned maps: the gamma of the fixed map, reg from {0.01, 0.1, 1} ({0.00001, 0.001, 0.1} where the
  Nystrom map is not whitened), and the number of steps; for labels gamma from {0.01, 0.03, 0.1} and reg
  from {0.3, 1, 3} with Fourier maps; the chosen number of steps is then made with all training rows;
- ridge on the features themselves: reg from {0.01, 0.1, 1, 10, 100}; LEML (rank 50): reg from
  {0.1, 0.5, 2, 8, 32}; both with an intercept, and with sparse features as they are or with rows of
  length one.

    python -m benchmarks.gimc_classify [DATA ...] [linear|maps]   writes benchmarks/stored/gimc_classify.json
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from benchmarks._store import STORED, store
from unseen import LEML, GIMCClassifier, RidgeOvA
from unseen.datasets import load_bibtex, load_covtype, load_delicious, load_letter, load_segment
from unseen.metrics import precision_at_k

SEEDS = (0, 1, 2)
GAMMAS = ("0.03median", "0.1median", "0.3median", "median", "3median")
FIXED_REGS = (1e-3, 1e-2, 0.1, 1.0, 10.0)
LEARNED_REGS = (0.01, 0.1, 1.0)
LABEL_GAMMAS = ("0.01median", "0.03median", "0.1median")
LABEL_REGS = (0.3, 1.0, 3.0)
PLAIN_REGS = (1e-5, 1e-3, 0.1)
RIDGE_REGS = (0.01, 0.1, 1.0, 10.0, 100.0)
LEML_REGS = (0.1, 0.5, 2.0, 8.0, 32.0)
VALIDATION = 0.2
SIZES = {"segment": (10, 20, 50), "covtype": (25,), "letter": (25,), "bibtex": (50,), "delicious": (50,)}


def split(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Training and test rows."""
    rng = np.random.default_rng(seed)
    if name == "segment":
        data = load_segment()
        order = rng.permutation(len(data.y))
        cut = round(0.7 * len(order))
        train, test = order[:cut], order[cut:]
    elif name == "covtype":
        data = load_covtype()
        order = rng.permutation(len(data.y))
        train, test = order[:5000], order[5000:10_000]
    elif name == "letter":
        data = load_letter()
        train, test = rng.permutation(16_000)[:8000], np.arange(16_000, 20_000)
    else:
        labels = (load_bibtex if name == "bibtex" else load_delicious)()
        # Rows of the usual training and test parts together, divided anew: settings were looked for with
        # the usual test rows in sight.
        order = np.random.default_rng(1000 + seed).permutation(labels.X.shape[0])
        n_train = len(labels.splits["mulan"][0])
        train, test = np.sort(order[:n_train]), np.sort(order[n_train:])
        X, Y = sparse.csr_array(labels.X, dtype=np.float32), sparse.csr_array(labels.Y)
        return X[train], Y[train], X[test], Y[test]
    X = np.asarray(data.X, dtype=np.float64)
    return X[train], data.y[train], X[test], data.y[test]


def quality(model: Any, X: Any, Y: Any) -> list[float]:
    """Accuracy, or P@1, P@3 and P@5."""
    if getattr(Y, "ndim", 2) == 1:
        return [float(model.score(X, Y))]
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            X = X if step == "passthrough" else step.transform(X)
        model = model.steps[-1][1]
    ids, _ = model.predict_topk(X, 5)
    return [float(precision_at_k(Y, ids, k)) for k in (1, 3, 5)]


def best_on_validation(
    make: Callable[..., Any], grid: list[dict[str, Any]], X: Any, Y: Any, seed: int
) -> tuple[dict[str, Any], float]:
    """Settings with the highest mean quality on held-out training rows."""
    order = np.random.default_rng(100 + seed).permutation(X.shape[0])
    held, kept = (
        np.sort(order[: round(VALIDATION * len(order))]),
        np.sort(order[round(VALIDATION * len(order)) :]),
    )
    scored = [
        (float(np.mean(quality(make(**settings).fit(X[kept], Y[kept]), X[held], Y[held]))), -place)
        for place, settings in enumerate(grid)
    ]
    score, place = max(scored)
    return grid[-place], score


def with_constant(X: Any) -> Any:
    """Features with a column of ones, since LEML has no intercept."""
    return sparse.csr_array(sparse.hstack([X, np.ones((X.shape[0], 1), dtype=X.dtype)], format="csr"))


def linear_runs(name: str, seed: int) -> Iterator[dict[str, Any]]:
    X, Y, X_test, Y_test = split(name, seed)
    dense = not sparse.issparse(X)

    def ridge(unit_rows: bool, reg: float) -> Any:
        scaler = StandardScaler() if dense else Normalizer() if unit_rows else "passthrough"
        return make_pipeline(scaler, RidgeOvA(reg, fit_intercept=True, n_jobs=1))

    def leml(unit_rows: bool, reg: float) -> Any:
        model = LEML(50, reg=reg, max_iter=20, random_state=seed, n_jobs=1)
        scaler = Normalizer() if unit_rows else "passthrough"
        return make_pipeline(scaler, FunctionTransformer(with_constant, accept_sparse=True), model)

    linear: list[tuple[str, Callable[..., Any], tuple[float, ...]]] = [("ridge", ridge, RIDGE_REGS)]
    if not dense:
        linear.append(("LEML", leml, LEML_REGS))
    for method, make, regs in linear:
        began = time.perf_counter()
        grid = [
            {"unit_rows": unit, "reg": reg} for unit in ((True,) if dense else (True, False)) for reg in regs
        ]
        settings, _ = best_on_validation(make, grid, X, Y, seed)
        yield facts(name, seed, method, None, settings, began, make(**settings).fit(X, Y), X_test, Y_test)


def facts(
    name: str,
    seed: int,
    method: str,
    m: int | None,
    settings: dict[str, Any],
    began: float,
    model: Any,
    X: Any,
    Y: Any,
) -> dict[str, Any]:
    return {
        "data": name, "seed": seed, "method": method, "m": m, "settings": settings,
        "test": quality(model, X, Y), "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


def map_runs(name: str, seed: int) -> Iterator[dict[str, Any]]:
    X, Y, X_test, Y_test = split(name, seed)
    for m in SIZES[name]:
        for kind in ("fourier", "nystrom"):

            def fixed(m: int = m, kind: str = kind, **settings: Any) -> GIMCClassifier:
                return GIMCClassifier(m, map=kind, learn_map=False, random_state=seed, n_jobs=1, **settings)

            began = time.perf_counter()
            grid = [{"gamma": gamma, "reg": reg} for gamma in GAMMAS for reg in FIXED_REGS]
            chosen, _ = best_on_validation(fixed, grid, X, Y, seed)
            short = "RFF" if kind == "fourier" else "NYS"
            yield facts(
                name, seed, f"IMC-{short}", m, chosen, began, fixed(**chosen).fit(X, Y), X_test, Y_test
            )
            variants = [("lbfgs", True, LEARNED_REGS)]
            if name == "segment":
                variants.append(("armijo", True, LEARNED_REGS))
                if kind == "nystrom":
                    variants.append(("armijo", False, PLAIN_REGS))
            if kind == "nystrom":
                variants.append(("lbfgs", False, PLAIN_REGS))
            for solver, whiten, regs in variants:
                began = time.perf_counter()
                found = []
                many = kind == "fourier" and name in ("bibtex", "delicious")
                tried = (
                    [(g, r) for g in LABEL_GAMMAS for r in LABEL_REGS]
                    if many
                    else [(chosen["gamma"], r) for r in regs]
                )
                for gamma, reg in tried:
                    settings = {"gamma": gamma, "reg": reg, "solver": solver, "whiten": whiten}
                    common = {**settings, "map": kind, "random_state": seed, "n_jobs": 1}
                    model = GIMCClassifier(
                        m, max_iter=100, patience=15, validation_fraction=VALIDATION, **common
                    ).fit(X, Y)  # fmt: skip
                    settings["best_iter"] = model.best_iter_
                    found.append((model.history_[model.best_iter_]["validation"], settings, common))
                score, settings, common = max(found, key=lambda item: item[0])
                settings["validation"] = score
                steps = {"max_iter": settings["best_iter"]} if settings["best_iter"] else {"learn_map": False}
                model = GIMCClassifier(m, tol=0.0, validation_fraction=None, **steps, **common).fit(X, Y)
                learned = "GIMC-LFF" if kind == "fourier" else "GIMC-LNYS"
                yield facts(name, seed, learned, m, settings, began, model, X_test, Y_test)


def main() -> None:
    names = [name for name in sys.argv[1:] if name in SIZES] or list(SIZES)
    path = STORED / "gimc_classify.json"
    parts = {"linear": linear_runs, "maps": map_runs}
    wanted = [part for part in parts if part in sys.argv[1:]] or list(parts)
    for name in names:
        for part in wanted:
            done: list[dict[str, Any]] = []
            for seed in SEEDS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for run in parts[part](name, seed):
                        done.append(run)
                        print(run, flush=True)
            runs = json.loads(path.read_text())["runs"] if path.exists() else []
            kept = [
                run
                for run in runs
                if run["data"] != name or ("linear" if run["m"] is None else "maps") != part
            ]
            store("gimc_classify", {"seeds": SEEDS, "validation": VALIDATION, "runs": kept + done})


if __name__ == "__main__":
    main()
