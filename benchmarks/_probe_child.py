"""Seconds and memory of a few fits of whatever release of the library runs this; see base_head.py."""

import json
import time
import warnings

start = time.perf_counter()
from unseen import (  # noqa: E402
    IMC,
    Background,
    BiasMC,
    Completion,
    LowRank,
    MatrixFactorization,
    NonNegative,
    SoftImpute,
    Squared,
    Term,
)
from unseen.solvers import CCD  # noqa: E402

found = {"import": time.perf_counter() - start}

import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
fast = {"tol": 0.0, "random_state": 0}


def memory_mib(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def matrix(n, m, count):
    places = np.unique(rng.integers(0, n * m, count))
    places = (places // m, places % m)
    return sparse.csr_array((np.ones(len(places[0]), dtype=np.float32), places), shape=(n, m))


def even(cells):
    """Non-negative factors, blanks as zeros."""
    terms = [Term(core=LowRank(16), reg=NonNegative(0.0))]
    loss = Squared(background=Background(1.0, 0.0))
    return Completion(terms, loss=loss, solver=CCD(), max_iter=5, **fast).fit(cells)


found["memory of the import, MiB"] = memory_mib("VmRSS")
many = matrix(400_000, 400_000, 4_000_000)
before = memory_mib("VmRSS")
MatrixFactorization(10, reg=1.0, center="joint", init="svd", max_iter=2, **fast).fit(many)
found["memory of ratings, 4 million cells, MiB"] = memory_mib("VmHWM") - before

cells = matrix(20_000, 5_000, 400_000)
rated = cells.copy()
rated.data = rng.normal(3, 1, cells.nnz).astype(np.float32)
X, Y = (rng.standard_normal((size, 20)).astype(np.float32) for size in cells.shape)
jobs = {
    "BiasMC rank 32": lambda: BiasMC(32, alpha=0.9, reg=1.0, cg_steps=None, max_iter=5, **fast).fit(cells),
    "BiasMC rank 32, long tables": lambda: BiasMC(
        32, alpha=0.9, reg=1.0, cg_steps=None, max_iter=3, **fast
    ).fit(many),
    "MatrixFactorization rank 16": lambda: MatrixFactorization(
        16, reg=1.0, center="none", max_iter=5, **fast
    ).fit(rated),
    "non-negative, blanks as zeros": lambda: even(cells),
    "SoftImpute": lambda: SoftImpute(30.0, max_rank=10, center="none", max_iter=5, **fast).fit(rated),
    "IMC rank 8": lambda: IMC(8, reg=1.0, center="none", max_iter=3, **fast).fit(
        rated, row_features=X, col_features=Y
    ),
}
for name, job in jobs.items():
    job()
    start = time.perf_counter()
    job()
    found[name] = time.perf_counter() - start
print(json.dumps(found))
