"""One library on ratings, in its own process and environment; see explicit_ratings.py."""

import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse

warnings.simplefilter("ignore")
request = json.loads(sys.argv[1])
n_threads = request["n_threads"]
with np.load(request["data"]) as file:
    shape = tuple(file["shape"])
    train = tuple(file[f"train_{name}"] for name in ("rows", "cols", "values"))
    test = tuple(file[f"test_{name}"] for name in ("rows", "cols", "values"))


def memory_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def rmse(predicted):
    return float(np.sqrt(np.mean((np.asarray(predicted, dtype=np.float64) - test[2]) ** 2)))


def run_unseen(rank, reg, sweeps):
    from unseen import MatrixFactorization, Observations

    start = time.perf_counter()
    cells = Observations.from_triples(*train, shape)
    model = MatrixFactorization(
        rank,
        reg=reg,
        center="biases",
        bias_reg=5.0,
        max_iter=sweeps,
        tol=0.0,
        random_state=0,
        n_jobs=n_threads,
    ).fit(cells)
    seconds = time.perf_counter() - start
    return seconds, rmse(model.predict_entries(test[0], test[1]))


def run_cmfrec(rank, reg, sweeps):
    from cmfrec import CMF

    start = time.perf_counter()
    cells = sparse.coo_matrix((train[2], (train[0], train[1])), shape=shape)
    model = CMF(
        k=rank, lambda_=reg, method="als", use_cg=True, user_bias=True, item_bias=True, center=True,
        niter=sweeps, nthreads=n_threads, use_float=True, precompute_for_predictions=False,
        finalize_chol=False, verbose=False, random_state=1,
    ).fit(cells)  # fmt: skip
    seconds = time.perf_counter() - start
    return seconds, rmse(model.predict(test[0], test[1]))


runs = []
for setting in request["settings"]:
    seconds, error = globals()[f"run_{request['system']}"](**setting)
    runs.append({**setting, "seconds": seconds, "rmse": error})
print(json.dumps({"runs": runs, "peak_mib": memory_mib()}))
