"""Sweeps of alternating least squares beside one gather of all factors that they name, in turns.

python -m benchmarks sweeps [--size small|medium|large]

The gather reads the factors of every cell once on each side, from tables on large pages, and does nothing
with them: what memory asks of any sweep. It is C, compiled here by ``cc``. A sweep is what ``history_`` of a
fit says: cells, Gram matrices, balancing and objective.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._store import keep
from benchmarks.kernels import power_law
from unseen import BiasMC, MatrixFactorization
from unseen.typing import CSR, Array

SHAPES = {
    "small": (4_000, 1_000, 100_000),
    "medium": (40_000, 10_000, 1_000_000),
    "large": (200_000, 50_000, 5_000_000),
}
"""Rows, columns and draws, some of which fall on the same cell."""
RANKS = (16, 64, 128)
ROUNDS, SWEEPS = 7, 6
"""Turns, and sweeps of the fit in each, of which the first is not counted."""
LINE, LARGE_PAGE, WILL_USE_LARGE_PAGES = 64, 1 << 21, 14


class Gather:
    """Reads the factors of all cells."""

    def __init__(self, X: CSR, folder: Path) -> None:
        library = folder / "gather.so"
        source = Path(__file__).parent / "_gather.c"
        flags = ["-O3", "-march=native", "-shared", "-fPIC", "-o", str(library)]
        subprocess.run([os.environ.get("CC", "cc"), *flags, str(source)], check=True)
        loaded = ctypes.CDLL(str(library))
        loaded.gather.restype = ctypes.c_float
        self.call = loaded.gather
        by_column = sparse.csc_array(X)
        self.sides = [
            (X.shape[1], X.indices.astype(np.int32)),
            (X.shape[0], by_column.indices.astype(np.int32)),
        ]

    def seconds(self, rank: int, n_threads: int) -> float:
        """Of both sides, for rows of whole lines of memory."""
        lines = -(-4 * rank // LINE)
        tables = [table(n_rows, lines) for n_rows, _ in self.sides]
        start = time.perf_counter()
        with ThreadPoolExecutor(n_threads) as pool:
            for rows, (_, ids) in zip(tables, self.sides, strict=True):
                parts = np.array_split(ids, n_threads)
                list(pool.map(lambda part, rows=rows: self._part(rows, part, lines), parts))
        return time.perf_counter() - start

    def _part(self, rows: Array, ids: Array, lines: int) -> None:
        self.call(
            ctypes.c_void_p(rows.ctypes.data),
            ctypes.c_void_p(ids.ctypes.data),
            ctypes.c_ssize_t(len(ids)),
            ctypes.c_ssize_t(lines),
        )


def table(n_rows: int, lines: int) -> Array:
    """Memory of so many rows, touched, on large pages where the system has them."""
    size = n_rows * lines * LINE
    room = np.empty(size + LARGE_PAGE, dtype=np.uint8)
    found: Array = room[-room.ctypes.data % LARGE_PAGE :][:size]
    ctypes.CDLL(None).madvise(ctypes.c_void_p(found.ctypes.data), ctypes.c_size_t(size), WILL_USE_LARGE_PAGES)
    found[:] = 1
    return found


def sweep_seconds(kind: str, X: CSR, rank: int, n_threads: int) -> list[float]:
    """Of each sweep of a fit but the first."""
    given = {"max_iter": SWEEPS, "tol": 0.0, "random_state": 0, "n_jobs": n_threads}
    model: Any
    if kind == "positives":
        model = BiasMC(rank, alpha=0.9, reg=0.2, cg_steps=3, **given)
    else:
        model = MatrixFactorization(rank, reg=5.0, center="joint", init="random", **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return [float(s) for s in np.diff([entry["time_s"] for entry in model.history_])]


def data(kind: str, size: str) -> CSR:
    """Positives, or ratings in the same places."""
    X = power_law(*SHAPES[size])
    if kind == "ratings":
        X.data = np.random.default_rng(0).normal(3.0, 1.0, X.nnz).astype(np.float32)
    return X


def measure(kind: str, X: CSR, gather: Gather, rank: int, n_threads: int) -> dict[str, Any]:
    """Medians over turns."""
    floors, sweeps = [], []
    for _ in range(ROUNDS):
        floors.append(gather.seconds(rank, n_threads))
        sweeps += sweep_seconds(kind, X, rank, n_threads)
    floor, sweep = float(np.median(floors)), float(np.median(sweeps))
    return {
        "kind": kind,
        "rank": rank,
        "threads": n_threads,
        "gather_s": floor,
        "sweep_s": sweep,
        "ratio": sweep / floor,
        "gathers": floors,
        "sweeps": sweeps,
    }


def main(size: str = "large") -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("positives", "ratings"):
            X = data(kind, size)
            gather = Gather(X, Path(folder))
            for n_threads in (1, 2):
                for rank in RANKS:
                    rows.append(measure(kind, X, gather, rank, n_threads))
                    print({k: v for k, v in rows[-1].items() if not isinstance(v, list)}, flush=True)
    shape = dict(zip(("rows", "columns"), X.shape, strict=True))
    print(keep("sweeps", {**shape, "cells": X.nnz, "rounds": ROUNDS, "measured": rows}, size))


if __name__ == "__main__":
    main()
