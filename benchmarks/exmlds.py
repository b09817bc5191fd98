"""Multi-label sets: ExMLDS, SLEEC and rivals, settings chosen on a validation part of the training rows.

python -m benchmarks exmlds                          everything
python -m benchmarks.exmlds Bibtex ExMLDS1 LEML      some methods on some sets; stored results of others stay
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from benchmarks._store import STORED, store
from benchmarks._tables import stored
from unseen import LEML, SLEEC, ExMLDS, LinearOvA, RidgeOvA
from unseen.datasets import (
    MultiLabelData,
    load_bibtex,
    load_corel5k,
    load_delicious,
    load_mediamill_subset,
    load_rcv1_subset,
)
from unseen.metrics import (
    frequency_bins,
    label_propensities,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_precision_at_k,
)
from unseen.multilabel.rows import scaled_rows

N_JOBS = 1
VALIDATION_SHARE = 0.2
Setting = dict[str, Any]


@dataclass(frozen=True)
class Contender:
    """A method, with the settings among which validation rows choose.

    Settings of `at_fit` need a fit each, those of `variants` only another prediction. Each variant is a
    method of its own in the results.
    """

    make: Callable[[], Any]
    at_fit: tuple[Setting, ...] = ({},)
    variants: dict[str, tuple[Setting, ...]] = field(default_factory=dict)


def grid(**lists: Iterable[Any]) -> tuple[Setting, ...]:
    return tuple(dict(zip(lists, values, strict=True)) for values in product(*lists.values()))


REGS = (1.0, 3.0, 10.0)
POWERS = (4.0, 8.0, 16.0)


SMALL_SAMPLING = ({"n_negatives": 1, "max_iter": 35}, {"n_negatives": 5, "max_iter": 35})
LARGE_SAMPLING = ({"n_negatives": 2, "max_iter": 5},)
"""Negatives and passes of ExMLDS2; a pass grows with rows and neighbours, so large sets need fewer."""


def contenders(
    ks: tuple[int, ...],
    n_neighbors: tuple[int | None, ...],
    sampling: tuple[Setting, ...] = SMALL_SAMPLING,
) -> dict[str, Contender]:
    votes, weighted = grid(k=ks), grid(k=ks, neighbor_power=POWERS)
    pairs = n_neighbors[-1]

    def exmlds(**settings: Any) -> Callable[[], Any]:
        return lambda: ExMLDS(random_state=0, n_jobs=N_JOBS, **settings)

    return {
        "ExMLDS1": Contender(
            exmlds(),
            grid(n_neighbors=n_neighbors, reg=REGS),
            {"ExMLDS1": votes, "ExMLDS1, weighted votes": weighted},
        ),
        "ExMLDS2": Contender(
            exmlds(method="sgns", n_neighbors=pairs),
            tuple({**draws, **reg} for draws in sampling for reg in grid(reg=REGS[:2])),
            {"ExMLDS2": votes, "ExMLDS2, weighted votes": weighted},
        ),
        "joint": Contender(
            exmlds(method="joint_sgns"),
            grid(reg=REGS),
            {"joint": votes, "joint, weighted votes": weighted},
        ),
        "SLEEC": Contender(
            lambda: SLEEC(n_neighbors=pairs, random_state=0, n_jobs=N_JOBS),
            grid(reg=REGS),
            {
                "SLEEC": grid(k=ks, metric=("l2",)),
                "SLEEC, cosine and weighted votes": grid(k=ks, metric=("cosine",), neighbor_power=POWERS),
            },
        ),
        "LEML": Contender(
            lambda: LEML(100, random_state=0, n_jobs=N_JOBS), grid(reg=(0.3, 1.0, 3.0)), {"LEML": ({},)}
        ),
        "RidgeOvA": Contender(
            lambda: RidgeOvA(n_jobs=N_JOBS), grid(reg=(0.3, 1.0, 3.0, 10.0)), {"RidgeOvA": ({},)}
        ),
        "LinearOvA": Contender(
            lambda: LinearOvA(n_jobs=N_JOBS), grid(C=(0.1, 0.3, 1.0)), {"LinearOvA": ({},)}
        ),
    }


SETS: dict[str, tuple[Callable[[], MultiLabelData], list[str | None], dict[str, Contender]]] = {
    "Bibtex": (load_bibtex, [f"repository{i}" for i in range(10)], contenders((15, 25), (None, 250))),
    "Delicious": (load_delicious, [None], contenders((40, 70), (500,), LARGE_SAMPLING)),
    "Corel5k": (load_corel5k, [None], contenders((25, 60), (None, 250))),
    "rcv1 subset": (load_rcv1_subset, [None], contenders((10, 25), (None, 250))),
    "mediamill subset": (load_mediamill_subset, [None], contenders((10, 25), (None, 250))),
}


def scores(Y: Any, ids: Any, Y_train: Any) -> dict[str, Any]:
    counts = np.bincount(Y_train.indices, minlength=Y.shape[1])
    rarity = label_propensities(counts, Y_train.shape[0])
    return {
        "precision": [100 * precision_at_k(Y, ids, k) for k in (1, 3, 5)],
        "ndcg": [100 * ndcg_at_k(Y, ids, k) for k in (1, 3, 5)],
        "psp": [100 * propensity_scored_precision_at_k(Y, ids, rarity, k) for k in (1, 3, 5)],
        "recall_by_bin": {line["bin"]: 100 * line["recall"] for line in frequency_bins(Y, ids, counts, 5)},
    }


def choose(contender: Contender, X: Any, Y: Any) -> dict[str, tuple[Setting, Setting]]:
    """Best settings of each variant by the mean of P@1, P@3 and P@5 on held-out training rows."""
    order = np.random.default_rng(0).permutation(X.shape[0])
    held_out = order[: int(VALIDATION_SHARE * len(order))]
    rest = np.sort(order[len(held_out) :])
    best: dict[str, tuple[Setting, Setting]] = {}
    values = dict.fromkeys(contender.variants, -1.0)
    for at_fit in contender.at_fit:
        model = contender.make().set_params(**at_fit).fit(X[rest], Y[rest])
        for variant, settings in contender.variants.items():
            for at_prediction in settings:
                ids, _ = model.set_params(**at_prediction).predict_topk(X[held_out], 5)
                value = float(np.mean([precision_at_k(Y[held_out], ids, k) for k in (1, 3, 5)]))
                if value > values[variant]:
                    best[variant], values[variant] = (at_fit, at_prediction), value
    return best


def run_method(name: str, method: str) -> Iterator[dict[str, Any]]:
    loader, splits, methods = SETS[name]
    data, contender = loader(), methods[method]
    chosen: dict[str, tuple[Setting, Setting]] = {}
    for split in splits:
        X, Y, X_test, Y_test = data.split(split)
        X, X_test = scaled_rows(X), scaled_rows(X_test)
        # Chosen on the training rows of the first split, once for all.
        chosen = chosen or choose(contender, X, Y)
        fitted: dict[str, tuple[Any, float]] = {}
        for variant, (at_fit, at_prediction) in chosen.items():
            key = repr(at_fit)
            if key not in fitted:
                start = time.perf_counter()
                model = contender.make().set_params(**at_fit).fit(X, Y)
                fitted[key] = model, time.perf_counter() - start
            model, fit_s = fitted[key]
            start = time.perf_counter()
            ids, _ = model.set_params(**at_prediction).predict_topk(X_test, 5)
            yield {
                "data": name,
                "split": split,
                "method": variant,
                "setting": {**at_fit, **at_prediction},
                **scores(Y_test, ids, Y),
                "fit_s": fit_s,
                "predict_s": time.perf_counter() - start,
            }


def keep(new: list[dict[str, Any]]) -> None:
    """Store results in place of those of the same data and method."""
    done = {(run["data"], run["method"]) for run in new}
    old = stored("exmlds")["runs"] if (STORED / "exmlds.json").exists() else []
    runs = [run for run in old if (run["data"], run["method"]) not in done] + new
    order = [variant for contender in SETS["Bibtex"][2].values() for variant in contender.variants]
    runs.sort(key=lambda run: (list(SETS).index(run["data"]), order.index(run["method"])))
    store("exmlds", {"validation_share": VALIDATION_SHARE, "runs": runs})


def main() -> None:
    asked = sys.argv[1:] if sys.argv[0].endswith("exmlds.py") else []
    names = [name for name in SETS if name in asked] or list(SETS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            methods = [method for method in SETS[name][2] if method in asked] or list(SETS[name][2])
            for method in methods:
                runs = []
                for run in run_method(name, method):
                    runs.append(run)
                    found = " ".join(f"{value:.2f}" for value in run["precision"])
                    print(f"{name:18s} {run['split'] or '':12s} {run['method']:34s} {found}", flush=True)
                keep(runs)


if __name__ == "__main__":
    main()
