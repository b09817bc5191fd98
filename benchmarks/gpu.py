"""The GPU's kernels, lists and fits, each beside the floor that this card's memory or cores set.

python -m benchmarks gpu [--size small|medium|large]

Times of kernels are medians of CUDA events with all data on the device; a fit is wall clock from host arrays,
after a first fit that compiles. The floor of a sweep gathers the factors of every cell once on each side.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._store import keep
from unseen import BiasMC, kernels
from unseen.datasets import make_scale_graph
from unseen.kernels.cuda.programs import padded
from unseen.typing import CSR

SHARES = {"small": 0.02, "medium": 0.2, "large": 1.0}
"""Part of the rows, columns and cells of the full sizes."""
GATHER = """
extern "C" __global__ void gather(const uint4 *table, const int *ids, int n, unsigned *out) {
    // Groups of eight lanes read sixteen rows each, all at once; nothing else is done with them.
    const int lane = threadIdx.x % 8, group = (blockIdx.x * blockDim.x + threadIdx.x) / 8;
    unsigned total = 0;
    for (int base = group * 16; base < n; base += gridDim.x * blockDim.x / 8 * 16)
#pragma unroll 8
        for (int t = 0; t < 16; ++t) {
            const uint4 *row = table + (long long)ids[min(base + t, n - 1)] * PIECES;
#pragma unroll
            for (int p = lane; p < PIECES; p += 8) {
                const uint4 raw = row[p];
                total += raw.x ^ raw.y ^ raw.z ^ raw.w;
            }
        }
    if (total == 0x12345678u) out[0] = total;
}
"""


def timed(task: Callable[[], Any], before: Callable[[], Any] = lambda: None, times: int = 9) -> float:
    """Median milliseconds of a task on the device."""
    import cupy as cp

    found = []
    for _ in range(times + 2):
        before()
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        task()
        end.record()
        end.synchronize()
        found.append(cp.cuda.get_elapsed_time(start, end))
    return float(np.median(found[2:]))


def power_law(n: int, m: int, cells: int, seed: int = 0) -> CSR:
    """Cells whose rows and columns follow a power law of 0.8."""
    rng = np.random.default_rng(seed)
    shares = [np.cumsum(np.arange(1, size + 1) ** -0.8) for size in (n, m)]
    places = [rng.permutation(size) for size in (n, m)]
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < cells:
        count = int(1.3 * (cells - len(keys))) + 1000
        row, col = (
            place[np.minimum(np.searchsorted(share, rng.random(count) * share[-1]), len(place) - 1)]
            for place, share in zip(places, shares, strict=True)
        )
        keys = np.unique(np.concatenate([keys, row * m + col]))
    keys = rng.permutation(keys)[:cells]
    return sparse.csr_array((np.ones(cells, np.float32), (keys // m, keys % m)), shape=(n, m))


class Half:
    """Half sweeps of J = 9 sum_stored (1 - x)^2 + sum_blank x^2 + ||W||^2 + ||H||^2 at a provider."""

    def __init__(self, provider: Any, X: CSR, rank: int, dtype: Any = np.float32) -> None:
        self.place, self.rank = provider, rank
        self.rows = provider.pattern(X.indptr, X.indices, 8.0, 9.0, n_cols=X.shape[1])
        self.cols = self.rows.transposed
        rng = np.random.default_rng(0)
        self.W, self.H = (
            provider.asarray((0.1 / np.sqrt(rank) * rng.standard_normal((size, rank))).astype(dtype))
            for size in X.shape
        )

    def solve(self, side: str, **options: Any) -> Any:
        """One side; gives its row values."""
        cells, other, out = (self.rows, self.H, self.W) if side == "rows" else (self.cols, self.W, self.H)
        xp = self.place.xp
        gram = self.place.gram(other) + xp.eye(self.rank)
        values = xp.empty(len(out))
        options = {"method": "cg", "cg_steps": 3, "definite": True} | options
        self.place.als_solve(cells, other, gram, None, out, row_values=values, **options)
        return values

    def sweep(self, **options: Any) -> float:
        """Columns, then rows; gives J."""
        self.solve("cols", **options)
        values = self.solve("rows", **options)
        stored = 9.0 * len(self.rows.indices)
        return stored + 2.0 * float(values.sum()) + float((self.H.astype(np.float64) ** 2).sum())

    def time(self, side: str | None = None, **options: Any) -> float:
        """Milliseconds of a sweep that does not begin at its own result."""
        for _ in range(3):
            self.sweep()
        kept = self.W.copy(), self.H.copy()

        def back() -> None:
            self.W[...], self.H[...] = kept[0] * 0.97, kept[1] * 0.97

        def task() -> None:
            for one in ("cols", "rows") if side is None else (side,):
                self.solve(one, **options)

        return timed(task, back)


def gather_rate(ids: Any, n_rows: int, width_bytes: int) -> float:
    """Bytes a second of rows gathered in the order of the cells."""
    import cupy as cp

    kernel = cp.RawKernel(GATHER, "gather", options=(f"-DPIECES={width_bytes // 16}",))
    table = cp.random.randint(0, 2**31, (n_rows, width_bytes // 4)).astype(cp.uint32)
    out = cp.zeros(1, cp.uint32)
    given = table, ids, np.int32(len(ids)), out
    blocks = 8 * cp.cuda.Device().attributes["MultiProcessorCount"]
    return len(ids) * width_bytes / timed(lambda: kernel((blocks,), (256,), given)) * 1e3


def shape_a(share: float) -> dict[str, Any]:
    """Power-law cells, rank 64: sweeps, products, lists."""
    place = kernels.get_provider("cuda")
    n, m, rank = int(200_000 * share), int(50_000 * share), 64
    X = power_law(n, m, int(4_457_024 * share))
    half, found = Half(place, X, rank), {"cells": X.nnz, "rows": n, "columns": m, "rank": rank}
    lengths = np.diff(X.indptr)
    found |= {"longest_row": int(lengths.max()), "longest_column": int(np.bincount(X.indices).max())}
    rates = [gather_rate(half.rows.indices, m, 4 * rank), gather_rate(half.cols.indices, n, 4 * rank)]
    found["gather_tb_s"] = [rate / 1e12 for rate in rates]
    found["floor_ms"] = sum(1e3 * X.nnz * 4 * rank / rate for rate in rates)
    found["sweep_ms"] = half.time()
    found["half_sweeps_ms"] = [half.time(side) for side in ("cols", "rows")]
    found["exact_sweep_ms"] = half.time(method="cholesky")
    place.table = "float16"
    found["sweep_float16_ms"] = half.time()
    place.table = "float32"
    wide = Half(place, X, rank, np.float64)
    found["sweep_float64_ms"] = wide.time()
    found |= objectives(place, X, rank)
    values, right = place.xp.ones(X.nnz, np.float32), half.H
    found["sddmm_ms"] = timed(lambda: place.sddmm(half.rows, half.W, right))
    found["spmm_ms"] = timed(lambda: place.spmm(half.rows, values, right))
    found["product_floor_ms"] = 1e3 * X.nnz * 4 * rank / rates[0]
    found["lists"] = lists(place, half, X, lengths)
    return found


def objectives(place: Any, X: CSR, rank: int) -> dict[str, Any]:
    """J after 10 sweeps relative to float64, and whether two runs have the same bits."""
    out: dict[str, Any] = {}
    wide = Half(place, X, rank, np.float64)
    exact = [wide.sweep() for _ in range(10)][-1]
    for table in ("float32", "float16", "bfloat16"):
        place.table = table
        runs = []
        for _ in range(2):
            half = Half(place, X, rank)
            reached = [half.sweep() for _ in range(10)][-1]
            runs.append((reached, half.W.get().tobytes()))
        out[f"objective_{table}"] = runs[0][0] / exact - 1
        out[f"same_bits_{table}"] = runs[0] == runs[1]
    place.table = "float32"
    return out | {"objective": exact}


def lists(place: Any, half: Half, X: CSR, lengths: Any) -> dict[str, Any]:
    """Top ten of random rows, of the longest, and of a million."""
    out: dict[str, Any] = {}
    count = min(20_000, len(lengths) // 4)
    random = np.random.default_rng(1).permutation(len(lengths))[:count]
    for name, rows in (("random", random), ("longest", np.argsort(-lengths)[:count])):
        seen = X[rows]
        seen.sort_indices()
        left = place.xp.ascontiguousarray(half.W[place.asarray(rows)])
        without = place.asarray(seen.indptr, np.int64), place.asarray(seen.indices, np.int64)
        out[f"{name}_ms"] = timed(
            lambda left=left, without=without: place.lists(left, half.H, 10, without, None)
        )
        found = place.lists(left[:2000], half.H, 10, without, None)[0].get()
        scores = (left[:2000].astype(np.float64) @ half.H.astype(np.float64).T).get()
        for place_of, row in enumerate(seen[:2000].indptr[:-1]):
            scores[place_of, seen.indices[row : seen.indptr[place_of + 1]]] = -np.inf
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :10]
        out[f"{name}_equal"] = float((found == expected).all(axis=1).mean())
    million = place.xp.tile(half.W, (-(-1_000_000 // len(half.W)), 1))[:1_000_000]
    out["million_ms"] = timed(lambda: place.lists(million, half.H, 10, None, None), times=3)
    half_product = million[:200_000].astype(np.float16)
    columns = half.H.astype(np.float16).T
    out["million_half_product_ms"] = 5 * timed(lambda: half_product @ columns, times=3)
    return out


def shape_b(share: float) -> dict[str, Any]:
    """A graph, rank 100: sweeps, products and a whole fit."""
    graph = make_scale_graph(int(2_000_000 * share), 45.0, random_state=0).observations.csr
    X = sparse.csr_array((graph.data.astype(np.float32), graph.indices, graph.indptr), shape=graph.shape)
    found = {"cells": X.nnz, "rows": X.shape[0], "rank": 100, "longest_row": int(np.diff(X.indptr).max())}
    found |= graph_kernels(X, 100)
    return found | whole_fit(X, 100)


def graph_kernels(X: CSR, rank: int) -> dict[str, Any]:
    """Sweeps and products of the graph."""
    place, n = kernels.get_provider("cuda"), X.shape[0]
    half, found = Half(place, X, rank), {}
    width = 4 * padded(rank)
    rates = [gather_rate(cells.indices, n, width) for cells in (half.rows, half.cols)]
    found["gather_tb_s"] = [rate / 1e12 for rate in rates]
    found["floor_ms"] = sum(1e3 * X.nnz * width / rate for rate in rates)
    found["sweep_ms"] = half.time()
    found["half_sweeps_ms"] = [half.time(side) for side in ("cols", "rows")]
    place.table = "float16"
    found["sweep_float16_ms"] = half.time()
    place.table = "float32"
    values = place.xp.ones(X.nnz, np.float32)
    found["sddmm_ms"] = timed(lambda: place.sddmm(half.rows, half.W, half.H), times=3)
    found["spmm_ms"] = timed(lambda: place.spmm(half.rows, values, half.H), times=3)
    found["product_floor_ms"] = 1e3 * X.nnz * width / rates[0]
    return found


def whole_fit(X: CSR, rank: int) -> dict[str, Any]:
    """Ten sweeps from host arrays to host arrays, after a small fit that compiles."""
    place = kernels.get_provider("cuda")
    pool = place.xp.get_default_memory_pool()
    pool.free_all_blocks()
    given = {"alpha": 0.9, "reg": 0.2, "cg_steps": 3, "tol": 0.0, "random_state": 0, "device": "cuda"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = min(X.shape[0], 20_000)
        BiasMC(rank, max_iter=2, **given).fit(X[:few, :few])
        start = time.perf_counter()
        model = BiasMC(rank, max_iter=10, **given).fit(X)
        seconds = time.perf_counter() - start
    return {
        "fit_s": seconds,
        "fit_sweeps_s": np.diff([entry["time_s"] for entry in model.history_]).tolist(),
        "fit_objective": model.history_[-1]["objective"],
        "pool_gb": pool.total_bytes() / 1e9,
    }


def copy_rate() -> float:
    """Bytes a second read and written by a copy on the device."""
    import cupy as cp

    source = cp.ones(1 << 29, cp.float32)
    target = cp.empty_like(source)
    return 2 * source.nbytes / timed(lambda: cp.copyto(target, source)) * 1e3


def main(size: str = "large") -> None:
    place = kernels.get_provider("cuda")
    results: dict[str, Any] = {"device": place.facts(), "copy_tb_s": copy_rate() / 1e12}
    for name, suite in (("a", shape_a), ("b", shape_b)):
        try:
            results[name] = suite(SHARES[size])
        except Exception:
            traceback.print_exc()
            results[name] = {"failed": traceback.format_exc(limit=1)}
        print(name, results[name], flush=True)
    print(keep("gpu", results, size))


if __name__ == "__main__":
    main()
