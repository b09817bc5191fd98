"""One library on implicit feedback, in its own process and environment; see implicit_feedback.py.

All minimise  alpha sum_stored (s - 1)^2 + (1 - alpha) sum_blank s^2 + lam/2 (||W||^2 + ||H||^2),
in their own units. Seconds count whole fits as a user would call them, set-up included.
"""

import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse

request = json.loads(sys.argv[1])
system, variant = request["system"], request["variant"]
alpha, lam, rank = request["alpha"], request["lam"], request["rank"]
n_sweeps, n_threads, n_ranked = request["n_sweeps"], request["n_threads"], request["n_ranked"]
with np.load(request["data"]) as file:
    X = sparse.csr_matrix(
        (np.ones(len(file["indices"]), dtype=np.float32), file["indices"], file["indptr"]),
        shape=tuple(file["shape"]),
    )
curve = []  # seconds after each sweep, set-up included


def memory_mib():
    # Not getrusage: its peak survives the start of a new program and would be the parent's.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def run_unseen():
    from unseen import BiasMC

    warnings.simplefilter("ignore")
    start = time.perf_counter()
    model = BiasMC(
        rank,
        alpha=alpha,
        reg=lam,
        cg_steps={"cg": 3, "cg 2 steps": 2}.get(variant),
        max_iter=n_sweeps,
        tol=0.0,
        n_jobs=n_threads,
        random_state=0,
    ).fit(X)
    total = time.perf_counter() - start
    setup = total - model.history_[-1]["time_s"]
    curve.extend((setup + entry["time_s"], entry["objective"]) for entry in model.history_)
    return model.row_factors_, model.col_factors_, lambda rows: model.recommend(rows, 10, exclude=X)


def run_implicit():
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=rank,
        regularization=lam / (2 * (1 - alpha)),
        alpha=alpha / (1 - alpha),
        use_cg=variant == "cg",
        iterations=n_sweeps,
        num_threads=n_threads,
        random_state=0,
        calculate_training_loss=False,
    )
    paused = 0.0
    start = time.perf_counter()

    def after(iteration, *_):
        nonlocal paused
        now = time.perf_counter()
        curve.append((now - start - paused, loss(model.user_factors, model.item_factors)))
        paused += time.perf_counter() - now

    model.fit(X, show_progress=False, callback=after)
    return (
        model.user_factors,
        model.item_factors,
        lambda rows: model.recommend(rows, X[rows], N=10, filter_already_liked_items=True),
    )


def run_irspack():
    from irspack.recommenders.ials import IALSTrainer, LossType, SolverType

    scale = 4 * alpha - 2
    kinds = {"cg": SolverType.CG, "cholesky": SolverType.CHOLESKY, "ials++": SolverType.IALSPP}
    paused = 0.0
    start = time.perf_counter()
    trainer = IALSTrainer(
        X, rank, 2 * (1 - alpha) / scale, lam / scale, 0.0, 0.1, kinds[variant], 3, min(64, rank),
        LossType.ORIGINAL, 0, n_threads, 5, 5,
    )  # fmt: skip
    for _ in range(n_sweeps):
        trainer.run_epoch()
        now = time.perf_counter()
        user, item = trainer.core_trainer.user, trainer.core_trainer.item
        curve.append((now - start - paused, loss(user, item)))
        paused += time.perf_counter() - now
    return trainer.core_trainer.user, trainer.core_trainer.item, None


def run_cmfrec():
    from cmfrec import CMF_implicit

    # No hook between sweeps: one fit for each number of sweeps.
    cells = X.tocoo()
    for count in range(1, n_sweeps + 1):
        start = time.perf_counter()
        model = CMF_implicit(
            k=rank, lambda_=lam / (2 * (1 - alpha)), alpha=alpha / (1 - alpha) - 1, use_cg=variant == "cg",
            max_cg_steps=3, niter=count, nthreads=n_threads, use_float=True,
            precompute_for_predictions=False, finalize_chol=False, verbose=False, random_state=1,
        ).fit(cells)  # fmt: skip
        curve.append((time.perf_counter() - start, loss(model.A_, model.B_)))
    return model.A_, model.B_, None


def loss(left, right):
    """The common objective in float64, from factors, by row blocks."""
    left, right = np.asarray(left), np.asarray(right)
    total = 0.0
    for begin in range(0, X.shape[0], 20_000):
        block = X[begin : begin + 20_000]
        rows = np.repeat(np.arange(block.shape[0]) + begin, np.diff(block.indptr))
        s = np.einsum("ij,ij->i", left[rows], right[block.indices]).astype(np.float64)
        total += float(np.sum(alpha * (s - 1) ** 2 - (1 - alpha) * s**2))
    grams = [f.astype(np.float64).T @ f for f in (left, right)]
    total += (1 - alpha) * float(np.sum(grams[0] * grams[1]))
    return total + 0.5 * lam * float(np.trace(grams[0]) + np.trace(grams[1]))


before = memory_mib()
left, right, recommend = globals()[f"run_{system}"]()
peak = memory_mib()
final = loss(left, right)
# Each library's objective is the common formula; ours comes from its history and must agree with it.
assert abs(final - curve[-1][1]) <= 1e-4 * abs(final), (final, curve[-1][1])
answer = {
    "seconds": [seconds for seconds, _ in curve],
    "objective": [value for _, value in curve],
    "final_objective": final,
    "peak_mib": peak,
    "grown_mib": peak - before,
}
if recommend is not None and n_ranked:
    rows = np.arange(n_ranked)
    recommend(rows[:200])
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        recommend(rows)
        best = min(best, time.perf_counter() - start)
    answer["rank_seconds"] = best
print(json.dumps(answer))
