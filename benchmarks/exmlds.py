"""Multi-label sets: ExMLDS, SLEEC and rivals, settings chosen on a validation part of the training rows.

python -m benchmarks exmlds
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks._store import store
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

    Settings of `at_fit` need a fit each, those of `at_prediction` only another prediction.
    """

    make: Callable[[], Any]
    at_fit: tuple[Setting, ...] = ({},)
    at_prediction: tuple[Setting, ...] = ({},)


def grid(**lists: Iterable[Any]) -> tuple[Setting, ...]:
    return tuple(dict(zip(lists, values, strict=True)) for values in product(*lists.values()))


REGS = (0.5, 1.0, 3.0)


def contenders(ks: tuple[int, ...], n_neighbors: tuple[int | None, ...]) -> dict[str, Contender]:
    votes, weighted = grid(k=ks), grid(k=ks, neighbor_power=(2.0, 4.0, 8.0))
    pairs = grid(n_neighbors=n_neighbors, reg=REGS)
    few_pairs = grid(reg=REGS, n_neighbors=tuple(n for n in n_neighbors if n is not None)[:1])

    def exmlds(**settings: Any) -> Callable[[], Any]:
        return lambda: ExMLDS(random_state=0, n_jobs=N_JOBS, **settings)

    return {
        "ExMLDS1": Contender(exmlds(), pairs, votes),
        "ExMLDS1, weighted votes": Contender(exmlds(), pairs, weighted),
        "ExMLDS2": Contender(exmlds(method="sgns"), few_pairs, votes),
        "SLEEC": Contender(lambda: SLEEC(random_state=0, n_jobs=N_JOBS), few_pairs, votes),
        "SLEEC, cosine and weighted votes": Contender(
            lambda: SLEEC(metric="cosine", random_state=0, n_jobs=N_JOBS), few_pairs, weighted
        ),
        "LEML": Contender(
            lambda: LEML(random_state=0, n_jobs=N_JOBS), grid(rank=(50, 100), reg=(0.3, 1.0, 3.0))
        ),
        "RidgeOvA": Contender(lambda: RidgeOvA(n_jobs=N_JOBS), grid(reg=(0.3, 1.0, 3.0))),
        "LinearOvA": Contender(lambda: LinearOvA(n_jobs=N_JOBS), grid(C=(0.1, 0.3, 1.0))),
    }


SETS: dict[str, tuple[Callable[[], MultiLabelData], list[str | None], dict[str, Contender]]] = {
    "Bibtex": (load_bibtex, [f"repository{i}" for i in range(10)], contenders((15, 25), (None, 250))),
    "Delicious": (load_delicious, [None], contenders((40, 70), (500,))),
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


def choose(contender: Contender, X: Any, Y: Any) -> Setting:
    """Best settings by the mean of P@1, P@3 and P@5 on held-out training rows."""
    order = np.random.default_rng(0).permutation(X.shape[0])
    held_out = order[: int(VALIDATION_SHARE * len(order))]
    rest = np.sort(order[len(held_out) :])
    best, best_value = {**contender.at_fit[0], **contender.at_prediction[0]}, -1.0
    if len(contender.at_fit) * len(contender.at_prediction) == 1:
        return best
    for at_fit in contender.at_fit:
        model = contender.make().set_params(**at_fit).fit(X[rest], Y[rest])
        for at_prediction in contender.at_prediction:
            ids, _ = model.set_params(**at_prediction).predict_topk(X[held_out], 5)
            value = float(np.mean([precision_at_k(Y[held_out], ids, k) for k in (1, 3, 5)]))
            if value > best_value:
                best, best_value = {**at_fit, **at_prediction}, value
    return best


def run_set(name: str, wanted: set[str] | None = None) -> Iterator[dict[str, Any]]:
    loader, splits, methods = SETS[name]
    data = loader()
    for method, contender in methods.items():
        if wanted is not None and method not in wanted:
            continue
        setting: Setting | None = None
        for split in splits:
            X, Y, X_test, Y_test = data.split(split)
            X, X_test = scaled_rows(X), scaled_rows(X_test)
            # Chosen on the first split alone: the ten test sets overlap with other training sets.
            setting = setting or choose(contender, X, Y)
            start = time.perf_counter()
            model = contender.make().set_params(**setting).fit(X, Y)
            middle = time.perf_counter()
            ids, _ = model.predict_topk(X_test, 5)
            end = time.perf_counter()
            yield {
                "data": name,
                "split": split,
                "method": method,
                "setting": setting,
                **scores(Y_test, ids, Y),
                "fit_s": middle - start,
                "predict_s": end - middle,
            }


def main(names: Iterable[str] = tuple(SETS), wanted: set[str] | None = None) -> None:
    runs = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            for run in run_set(name, wanted):
                runs.append(run)
                found = " ".join(f"{value:.2f}" for value in run["precision"])
                print(f"{name:18s} {run['split'] or '':12s} {run['method']:34s} {found}", flush=True)
    store("exmlds", {"validation_share": VALIDATION_SHARE, "runs": runs})


if __name__ == "__main__":
    main()
