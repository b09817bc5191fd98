"""Lists of the best columns against scores that are sorted in plain NumPy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tests.hostile.forge import SHOWN
from unseen import kernels
from unseen.typing import Array

MOST_ROWS, MOST_COLUMNS, MOST_FACTORS = 4, 400, 12


def expected(scores: Array, k: int, excluded: Array, ids: Array) -> Array:
    """Ids by decreasing score and then by increasing id; -1 where none is left."""
    out = np.full((len(scores), k), -1, dtype=np.int64)
    for row, values in enumerate(scores):
        left = np.flatnonzero(~excluded[row] & ~np.isnan(values))
        order = left[np.lexsort((ids[left], -values[left]))][:k]
        out[row, : len(order)] = ids[order]
    return out


def question(rng: np.random.Generator) -> dict[str, Any]:
    """Factors whose products are exact in any order, so that a list has one right answer."""
    q, m = int(rng.integers(1, MOST_ROWS + 1)), int(rng.integers(1, MOST_COLUMNS))
    rank, dtype = int(rng.integers(1, MOST_FACTORS)), (np.float32, np.float64)[int(rng.integers(2))]
    largest = int(rng.choice([1, 3, 100]))  # small numbers make many ties
    left, right = (rng.integers(-largest, largest + 1, (size, rank)).astype(dtype) for size in (q, m))
    if rng.random() < 0.1:
        right[rng.random(m) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, 0.0])
    excluded = rng.random((q, m)) < rng.choice([0.0, 0.1, 0.9, 1.0])
    return {
        "left": left,
        "right": right,
        "k": int(rng.integers(0, m + 3)),
        "excluded": excluded,
        "ids": np.sort(rng.choice(10 * m, m, replace=False)),
        "n_threads": int(rng.integers(1, 4)),
    }


def attack(directory: Path, *, first: int, count: int) -> Counter[str]:
    """Ask for ``count`` lists, from as many seeds as that takes."""
    found: Counter[str] = Counter()
    asked = seed = first
    while asked < first + count:
        (directory / "current").write_text(str(seed))
        given = question(np.random.default_rng(seed))
        out = sparse.csr_array(given["excluded"])
        with np.errstate(invalid="ignore", over="ignore"):
            scores = given["left"] @ given["right"].T
            ids, values = kernels.topk(
                given["left"],
                given["right"],
                given["k"],
                exclude=(out.indptr, given["ids"][out.indices]),
                col_ids=given["ids"],
                n_threads=given["n_threads"],
            )
        wanted = expected(scores, given["k"], given["excluded"], given["ids"])
        places = np.searchsorted(given["ids"], np.maximum(wanted, 0)).clip(0, len(given["ids"]) - 1)
        best = np.where(wanted < 0, np.nan, np.take_along_axis(scores, places, axis=1))
        for row in range(len(wanted)):
            exact = np.array_equal(ids[row], wanted[row])
            exact = exact and np.array_equal(values[row], best[row], equal_nan=True)
            found["exact" if exact else "other lists"] += 1
            if not exact and found["other lists"] <= SHOWN:
                found[f"seed {seed}, row {row}: {ids[row][:5]} and not {wanted[row][:5]}"] += 1
            asked += 1
        seed += 1
    return found
