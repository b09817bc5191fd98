"""Classes that are in no other stored run, beside what does the same: tables of the reference.

    python -m benchmarks remaining

Positives with features go the way of ``compare``: settings by a part of the training cells, test cells
scored once. Clusters come from 100 pairs of one class, as in the reproduction pu-clustering, by
estimators as they are without a setting.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from statistics import mean
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks._store import store
from benchmarks.which_method import movielens_positives
from papers.gimc_clustering import load
from papers.pu_clustering import SEEDS, draw_pairs
from unseen import Biased, Identity, LowRank, PUClustering, Ridge, Term, WithOnes
from unseen.baselines import SpectralPairs
from unseen.comparison import compare
from unseen.comparison.candidates import CANDIDATES, POSITIVE, Candidate
from unseen.metrics import pair_error

REPEATS = 3


def both_parts(reg: float, free: float) -> list[Term]:
    """Features of both sides, and a free part beside them."""
    by_features = Term(WithOnes(), WithOnes(), LowRank(10), Ridge(reg))
    return [by_features, Term(Identity(), Identity(), LowRank(20), Ridge(free))]


OTHERS = {
    "shift-imc": Candidate(
        "ShiftIMC", POSITIVE, {"rho": [0.2, 0.5], "reg": ["0.01max", "0.05max"]}, features="either"
    ),
    "completion": Candidate(
        "Completion",
        POSITIVE,
        {"terms": [both_parts(reg, free) for reg in (1.0, 10.0) for free in (1.0, 3.0)]},
        {"loss": Biased(alpha=0.9), "max_iter": 30},
        features="either",
    ),
}
"""Methods that compare does not try by itself."""


def positives(split: str = "entries") -> Iterator[dict[str, Any]]:
    """Films that people liked, with features of both; films that nobody has seen where columns are split."""
    CANDIDATES.update(OTHERS)
    X, _, options = movielens_positives()
    new = split == "cols"
    methods = ["bias-imc", "shift-imc"] if new else ["bias-mc", "bias-imc", *OTHERS]
    found = compare(X, None, methods=methods, split=split, repeats=REPEATS, n_jobs=1, **options)
    entries = [
        {
            "label": entry.estimator,
            "estimator": entry.estimator,
            "simple": entry.simple,
            "scores": entry.scores[found.measures[0]],
            "settings": [" ".join(str(setting).split()) for setting in entry.settings],
        }
        for entry in found.entries
    ]
    yield {
        "data": f"MovieLens-100K, {'new movies that were liked' if new else 'liked (4 or 5)'}",
        "about": ["BiasIMC", "ShiftIMC"] if new else ["ShiftIMC", "Completion"],
        "measure": found.measures[0],
        "greater_is_better": True,
        "page": "/guide/which_method",
        "entries": entries,
    }


def clusters() -> Iterator[dict[str, Any]]:
    """Clusters of Segment from 100 pairs of one class."""
    X, y = load("Segment", None)
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    k = int(y.max()) + 1
    errors: dict[str, list[float]] = {}
    for seed in SEEDS:
        pairs = draw_pairs(y, np.random.default_rng(seed))
        labels = {
            "k-means": KMeans(k, n_init=10, random_state=seed).fit_predict(scaled),
            "SpectralPairs": SpectralPairs(k, random_state=seed).fit(X, pairs=pairs).labels_,
            "PUClustering": PUClustering(k, random_state=seed).fit(X, pairs=pairs).labels_,
        }
        for method, own in labels.items():
            errors.setdefault(method, []).append(pair_error(y, own))
    yield {
        "data": "Segment, 100 pairs",
        "about": ["SpectralPairs", "PUClustering"],
        "measure": "pairs of items told wrongly",
        "greater_is_better": False,
        "page": "/papers/pu",
        "entries": [
            {
                "label": method,
                "estimator": "" if method == "k-means" else method,
                "simple": method == "k-means",
                "scores": found,
            }
            for method, found in errors.items()
        ],
    }


def main() -> None:
    """Run all and store it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [*positives(), *positives("cols"), *clusters()]
    for case in cases:
        for entry in case["entries"]:
            print(case["data"], case["measure"], entry["label"], f"{mean(entry['scores']):.4f}", flush=True)
    store("remaining", {"cases": cases})


if __name__ == "__main__":
    main()
