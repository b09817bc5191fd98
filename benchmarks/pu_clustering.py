"""Clustering Mushroom and Segment from 100 pairs that belong together.

Pairs are drawn uniformly from all pairs of one class. For each data set, form of the features and penalty:
the share of wrong cells in the same-class matrix (20,000 random pairs) when scores are cut at the prior
1/n_clusters, and the pair error of the clusters that PUClustering reads from them. "unweighted" is the same
model with equal weights on known and unknown pairs (MC-inductive); "clusters" is told only their number.

    python -m benchmarks pu_clustering      writes benchmarks/stored/pu_clustering.json
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks._store import store
from unseen import PUClustering
from unseen.datasets import load_mushroom, load_segment
from unseen.metrics import pair_error

N_PAIRS = 100
SEEDS = (10, 11, 12, 13)
SAMPLE = 20_000


def draw_pairs(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Uniform over unordered pairs of one class, none twice."""
    found: set[tuple[int, int]] = set()
    while len(found) < N_PAIRS:
        i, j = sorted(int(item) for item in rng.integers(0, len(y), 2))
        if i < j and y[i] == y[j]:
            found.add((i, j))
    return np.array(sorted(found))


def run(X: np.ndarray, y: np.ndarray, pairs: np.ndarray, seed: int, **params: Any) -> dict[str, float]:
    k = int(y.max()) + 1
    model = PUClustering(k, random_state=seed, max_iter=150, tol=1e-4, **params).fit(X, pairs=pairs)
    rng = np.random.default_rng(1000 + seed)
    i, j = rng.integers(0, len(y), (2, SAMPLE))
    scores = model.completer_.predict_entries(i, j) + model.completer_.predict_entries(j, i)
    truth = y[i] == y[j]
    return {
        "cut_at_prior": float(np.mean((scores > np.quantile(scores, 1 - 1 / k)) != truth)),
        "cut_at_half": float(np.mean((scores > 1.0) != truth)),
        "clusters": pair_error(y, model.labels_),
    }


def main() -> None:
    runs = []
    for name, loader in (("Segment", load_segment), ("Mushroom", load_mushroom)):
        data = loader()
        X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
        for seed in SEEDS:
            pairs = draw_pairs(data.y, np.random.default_rng(seed))
            for whiten in (False, True):
                for method, alpha in (("weighted", None), ("unweighted", 0.5)):
                    for reg in ("0.02max", "0.3max"):
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            errors = run(X, data.y, pairs, seed, whiten=whiten, alpha=alpha, reg=reg)
                        facts = {"data": name, "seed": seed, "whiten": whiten, "method": method, "reg": reg}
                        runs.append({**facts, **errors})
                        print(runs[-1], flush=True)
    store("pu_clustering", {"n_pairs": N_PAIRS, "runs": runs})


if __name__ == "__main__":
    main()
