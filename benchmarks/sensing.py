"""Sampled measurements of AMF beside a stored matrix times the scores, by scipy, on one thread.

    python -m benchmarks sensing

Processor time, in turns; a ratio of 1 is the product of the stored map and a vector that is at hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._store import if_measured, store
from papers.display import markdown
from unseen import Observations
from unseen.sensing import ExplicitMap, HashedMap, Law, MeasurementOperator

SHAPE, RANK, NONZEROS, GAMMA, TURNS = (150, 100), 10, 2_900_000, 0.01, 15
BARS = {"explicit": 3.0, "hashed": 10.0}


def main() -> None:
    """Measure both maps and store the ratios."""
    rng = np.random.default_rng(0)
    m, n = SHAPE
    cells = Observations.from_sparse(sparse.random_array(SHAPE, density=0.1, rng=rng))
    law = Law(int(NONZEROS / (2 * GAMMA * m * n)), gamma=GAMMA)
    left, right = rng.standard_normal((m, RANK)), rng.standard_normal((n, RANK))
    values = rng.standard_normal(law.n_rows)
    maps: dict[str, MeasurementOperator] = {
        "explicit": ExplicitMap(cells, law),
        "hashed": HashedMap(cells, law),
    }
    stored = sparse.vstack([piece.signs for _, pieces in maps["explicit"].stretches() for piece in pieces])  # type: ignore[attr-defined]
    matrix, scores = sparse.csr_array(stored), (left @ right.T).ravel()
    jobs: dict[str, Callable[[], Any]] = {"stored": lambda: matrix @ scores}
    for name, a_map in maps.items():
        jobs[f"{name} forward"] = lambda a_map=a_map: a_map.forward(left, right)
        jobs[f"{name} dot"] = lambda a_map=a_map: a_map.dot(values, right)
        jobs[f"{name} tdot"] = lambda a_map=a_map: a_map.tdot(values, left)
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(TURNS):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            seconds[name].append(time.process_time() - start)
    base = float(np.median(seconds.pop("stored")))
    rows = [
        {
            "map": name.split()[0],
            "product": name.split()[1],
            "ratio": float(np.median(taken)) / base,
            "bar": BARS[name.split()[0]],
        }
        for name, taken in seconds.items()
    ]
    store("sensing", {"nonzeros": int(matrix.nnz), "stored_ms": 1e3 * base, "rows": rows})
    for row in rows:
        print(f"{row['map']:9s} {row['product']:8s} {row['ratio']:6.2f}  (bar {row['bar']:g})")


def products(found: dict[str, Any]) -> str:
    """A line for each map and product."""
    lines = [[row["map"], row["product"], f"{row['ratio']:.1f}", f"{row['bar']:g}"] for row in found["rows"]]
    return markdown(["map", "product", "times the stored product", "bar"], lines)


def tables() -> dict[str, str]:
    """What docs/papers/amf.md shows."""
    return {"sensing products": if_measured("sensing", products)}


if __name__ == "__main__":
    main()
