"""This library or scikit-learn, in its own process and environment; see sklearn_peers.py."""

import contextlib
import json
import os
import sys
import time
import warnings

import numpy as np
from scipy import sparse

warnings.simplefilter("ignore")
request = json.loads(sys.argv[1])
n_threads, ours = request["n_threads"], request["system"] == "unseen"
with np.load(request["data"]) as file:
    arrays = {name: file[name] for name in file.files}


def matrix(name):
    inside = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(inside, shape=tuple(arrays[f"{name}_shape"]))


def status_mib(process):
    """Parent of a process, its peak, and what it shares with others: the files that it has loaded."""
    with open(f"/proc/{process}/status") as status:
        found = {
            key: value.split()[0]
            for key, _, value in (line.partition(":") for line in status)
            if value.strip()
        }
    return int(found["PPid"]), int(found.get("VmHWM", 0)) / 1024, int(found.get("RssFile", 0)) / 1024


def memory_mib():
    """Peak of this process, and of its workers less what they share with it."""
    own, workers = status_mib("self")[1], 0.0
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, KeyError):
            parent, peak, shared = status_mib(process)
            workers += peak - shared if parent == os.getpid() else 0.0
    return own + workers


def nmf():
    X, rank, sweeps = matrix("X"), request["rank"], request["sweeps"]
    if ours:
        from unseen import Background, Completion, LowRank, NonNegative, Squared, Term
        from unseen.solvers import CCD

        start = time.perf_counter()
        model = Completion(
            [Term(core=LowRank(rank), reg=NonNegative(0.0))], loss=Squared(background=Background(1.0, 0.0)),
            solver=CCD(), max_iter=sweeps, tol=0.0, random_state=0, n_jobs=n_threads,
        ).fit(X)  # fmt: skip
        setup = time.perf_counter() - start - model.history_[-1]["time_s"]
        curve = [(setup + entry["time_s"], entry["objective"]) for entry in model.history_]
        left, right = model.row_factors_, model.col_factors_
    else:
        from sklearn.decomposition import NMF
        from threadpoolctl import threadpool_limits

        curve, count = [], 1
        # No hook between sweeps: one fit for each number of sweeps, a third more each time.
        while True:
            model = NMF(rank, init="random", solver="cd", tol=0.0, max_iter=count, random_state=0)
            with threadpool_limits(n_threads):
                start = time.perf_counter()
                left = model.fit_transform(X)
                seconds = time.perf_counter() - start
            right = model.components_.T
            curve.append((seconds, loss(X, left, right)))
            if count == sweeps:
                break
            count = min(max(count + 1, round(1.33 * count)), sweeps)
    final = loss(X, left, right)
    assert abs(final - curve[-1][1]) <= 1e-4 * final, (final, curve[-1][1])
    return {"seconds": [s for s, _ in curve], "objective": [value for _, value in curve]}


def loss(X, left, right):
    """The common objective in float64."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    scores = np.einsum("ij,ij->i", left[rows], right[X.indices])
    values = X.data.astype(np.float64)
    everywhere = float(np.sum((left.T @ left) * (right.T @ right)))
    return 0.5 * (everywhere + float(values @ values) - 2.0 * float(values @ scores))


def labels():
    X, Y, X_test, Y_test = (matrix(name) for name in ("X", "Y", "X_test", "Y_test"))
    C, tol = request["C"], request["tol"]
    times = []
    for _ in range(request["repeats"]):
        start = time.perf_counter()
        if ours:
            from unseen import LinearOvA

            model = LinearOvA(C=C, tol=tol, prune=0.0, n_jobs=n_threads).fit(X, Y)
            times.append(time.perf_counter() - start)
            best = model.predict_topk(X_test, 1)[0][:, 0]
        else:
            from sklearn.multiclass import OneVsRestClassifier
            from sklearn.preprocessing import normalize
            from sklearn.svm import LinearSVC

            scaled = normalize(X)
            one = LinearSVC(C=C, tol=tol, dual=False)
            model = OneVsRestClassifier(one, n_jobs=n_threads).fit(scaled, Y.astype(int))
            times.append(time.perf_counter() - start)
            best = np.argmax(model.decision_function(normalize(X_test)), axis=1)
    hits = np.asarray(Y_test[np.arange(len(best)), best]).ravel()
    return {"fit_s": min(times), "precision_at_1": 100 * float(hits.mean())}


answer = globals()[request["task"]]()
print(json.dumps({**answer, "peak_mib": memory_mib()}))
