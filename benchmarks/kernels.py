"""Time every kernel on power-law data, beside SciPy or NumPy where they offer the same.

    python benchmarks/kernels.py --rows 200000 --cols 50000 --draws 5000000 --rank 64 --threads 2

Reports wall time and CPU time, the better of several runs each; on a busy machine trust the CPU time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

from unseen import kernels


def power_law(n_rows: int, n_cols: int, draws: int, exponent: float = 0.8, seed: int = 0) -> sparse.csr_array:
    """Cells drawn with power-law popularity on both sides, duplicates merged, all values 1."""
    rng = np.random.default_rng(seed)

    def entities(size: int) -> np.ndarray:
        cumulated = np.cumsum(np.arange(1, size + 1) ** -exponent)
        drawn = np.searchsorted(cumulated, rng.random(draws) * cumulated[-1])
        return rng.permutation(size)[np.minimum(drawn, size - 1)]

    cells = (np.ones(draws, dtype=np.float32), (entities(n_rows), entities(n_cols)))
    matrix = sparse.coo_array(cells, shape=(n_rows, n_cols)).tocsr()
    matrix.sort_indices()
    matrix.data[:] = 1
    return matrix


def best_of(runs: int, action: Callable[[], object]) -> str:
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        action()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return f"wall {min(walls):8.4f} s   cpu {min(cpus):8.4f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--cols", type=int, default=50_000)
    parser.add_argument("--draws", type=int, default=5_000_000)
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()

    matrix = power_law(given.rows, given.cols, given.draws)
    indptr, indices, nnz = matrix.indptr, matrix.indices, matrix.nnz
    places = sparse.csr_array((np.arange(nnz, dtype=indices.dtype), indices, indptr), shape=matrix.shape)
    by_col = places.tocsc()
    rng = np.random.default_rng(1)
    left = rng.normal(0, 0.1, (given.rows, given.rank)).astype(np.float32)
    right = rng.normal(0, 0.1, (given.cols, given.rank)).astype(np.float32)
    scores = np.zeros(nnz, dtype=np.float32)
    threads = given.threads

    def sweep(method: str) -> None:
        for pattern, solved, fixed in ((matrix, left, right), (by_col, right, left)):
            gram = kernels.gram(fixed, n_threads=threads) + np.eye(given.rank, dtype=np.float32)
            kernels.als_solve(
                pattern.indptr, pattern.indices, 10.0, 11.0, fixed, gram, None, solved,
                method=method, n_threads=threads,
            )  # fmt: skip

    def ccd(background: float) -> None:
        kernels.ccd_sweep(
            indptr, indices, by_col.indptr, by_col.indices, by_col.data, 1.0, 1.0, scores, left, right,
            background=background, reg=1.0, n_threads=threads,
        )  # fmt: skip

    asked = left[: min(5_000, given.rows)]
    seen = matrix[: len(asked)]
    work: dict[str, Callable[[], object]] = {
        "ALS iteration, cg": lambda: sweep("cg"),
        "ALS iteration, cholesky": lambda: sweep("cholesky"),
        f"top 10 of {len(asked)} rows": lambda: kernels.topk(
            asked, right, 10, exclude=(seen.indptr, seen.indices), n_threads=threads
        ),
        "  matrix product only (NumPy)": lambda: asked @ right.T,
        "CCD sweep": lambda: ccd(0.0),
        "CCD sweep with background": lambda: ccd(0.1),
        "sddmm": lambda: kernels.sddmm(indptr, indices, left, right, n_threads=threads),
        "spmm": lambda: kernels.spmm(indptr, indices, matrix.data, right, n_threads=threads),
        "  SciPy": lambda: matrix @ right,
        "spmm_t": lambda: kernels.spmm_t(indptr, indices, matrix.data, left, given.cols, n_threads=threads),
        "  SciPy, transposed": lambda: matrix.T @ left,
        "gram": lambda: kernels.gram(left, n_threads=threads),
        "  NumPy": lambda: left.T @ left,
    }
    print(f"{kernels.provider()} {kernels.isa()}, {nnz} cells, rank {given.rank}, {threads} threads")
    for name, action in work.items():
        print(f"{name:32} {best_of(given.runs, action)}", flush=True)


if __name__ == "__main__":
    main()
