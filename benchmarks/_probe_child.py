"""Seconds of a few fits of whatever release of the library runs this; see base_head.py."""

import json
import time
import warnings

import numpy as np
from scipy import sparse

from unseen import IMC, BiasMC, MatrixFactorization, SoftImpute

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
n, m, count = 20_000, 5_000, 400_000
places = np.unique(rng.integers(0, n * m, count))
shape, places = (n, m), (places // m, places % m)
cells = sparse.csr_array((np.ones(len(places[0]), dtype=np.float32), places), shape=shape)
rated = sparse.csr_array((rng.normal(3, 1, cells.nnz).astype(np.float32), places), shape=shape)
X, Y = (rng.standard_normal((size, 20)).astype(np.float32) for size in (n, m))
fast = {"tol": 0.0, "random_state": 0}
jobs = {
    "BiasMC rank 32": lambda: BiasMC(32, alpha=0.9, reg=1.0, max_iter=5, **fast).fit(cells),
    "MatrixFactorization rank 16": lambda: MatrixFactorization(16, max_iter=5, **fast).fit(rated),
    "SoftImpute": lambda: SoftImpute(30.0, max_rank=10, max_iter=5, **fast).fit(rated),
    "IMC rank 8": lambda: IMC(8, max_iter=3, **fast).fit(rated, row_features=X, col_features=Y),
}
seconds = {}
for name, job in jobs.items():
    job()
    start = time.perf_counter()
    job()
    seconds[name] = time.perf_counter() - start
print(json.dumps(seconds))
