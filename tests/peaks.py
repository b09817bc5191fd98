"""Peak memory of a task, and a target that would be large if it were dense."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

N, M = 30_000, 20_000
CELLS = 60_000
DENSE_BYTES = 8 * N * M
LIMIT = DENSE_BYTES // 20


def peak_of(task: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def target(positive: bool) -> sparse.csr_array:
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, N, CELLS), rng.integers(0, M, CELLS)
    keep = np.unique(rows.astype(np.int64) * M + cols)
    values = np.ones(len(keep)) if positive else rng.standard_normal(len(keep))
    return sparse.csr_array((values, (keep // M, keep % M)), shape=(N, M))
