"""One library on ratings, in its own process and environment; see explicit_ratings.py."""

import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse

warnings.simplefilter("ignore")
request = json.loads(sys.argv[1])
n_threads, rank, variant = request["n_threads"], request["rank"], request["variant"]
with np.load(request["data"]) as file:
    shape = tuple(file["shape"].tolist())
    # Validation cells are scored in the first phase, and belong to the training part in the second.
    learned, validated, total = file["ends"]
    seen, scored = (
        (slice(0, validated), slice(validated, total))
        if request["test"]
        else (slice(0, learned), slice(learned, validated))
    )
    train, held_out = (
        tuple(file[name][part].copy() for name in ("rows", "cols", "values")) for part in (seen, scored)
    )


def memory_mib(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def rmse(predicted):
    return float(np.sqrt(np.mean((np.asarray(predicted, dtype=np.float64) - held_out[2]) ** 2)))


def run_unseen(reg, sweeps):
    from unseen import MatrixFactorization, Observations

    start = time.perf_counter()
    cells = Observations.from_triples(*train, shape)
    model = MatrixFactorization(
        rank,
        reg=reg,
        center="joint",
        bias_reg=reg,
        init=variant.removesuffix(" start"),
        max_iter=sweeps,
        tol=0.0,
        random_state=0,
        n_jobs=n_threads,
    ).fit(cells)
    seconds = time.perf_counter() - start
    return seconds, rmse(model.predict_entries(held_out[0], held_out[1]))


def run_cmfrec(reg, sweeps):
    from cmfrec import CMF

    start = time.perf_counter()
    cells = sparse.coo_matrix((train[2], (train[0], train[1])), shape=shape)
    model = CMF(
        k=rank, lambda_=reg, method="als", use_cg=variant == "cg", user_bias=True, item_bias=True,
        center=True, niter=sweeps, nthreads=n_threads, use_float=True, precompute_for_predictions=False,
        finalize_chol=False, verbose=False, random_state=1,
    ).fit(cells)  # fmt: skip
    seconds = time.perf_counter() - start
    return seconds, rmse(model.predict(held_out[0], held_out[1]))


if request["system"] == "unseen":
    from unseen import MatrixFactorization, Observations  # noqa: F401
else:
    import cmfrec  # noqa: F401
before = memory_mib("VmRSS")
fit = globals()[f"run_{request['system']}"]
runs = []
for reg in request["regs"]:
    for sweeps in request["sweeps"]:
        trials = [fit(reg, sweeps) for _ in range(request["repeats"])]
        runs.append(
            {"reg": reg, "sweeps": sweeps, "seconds": min(t[0] for t in trials), "rmse": trials[0][1]}
        )
peak = memory_mib("VmHWM")
print(json.dumps({"runs": runs, "peak_mib": peak, "grown_mib": peak - before}))
